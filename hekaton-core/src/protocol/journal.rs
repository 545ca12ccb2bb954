//! Where a run keeps its answers: [`Journal`], which a run directory implements (crate `hekaton-storage`).
//!
//! Every answer is a function of key, input and seed, so an answer that was kept need not be computed again, and one that
//! is computed twice is the same. A journal carries bytes: which of them are answers is for [`prove`](crate::prove()) to
//! say.

use crate::randomness::Randomness;
use crate::verifier::proof::Proof;
use crate::verifier::verifying_key::VerifyingKey;

/// What kind of failure a journal reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalErrorKind {
    /// A file can't be read or written; what was kept is intact, and the run can be resumed.
    Io,
    /// The journal is damaged, of another version, or can't be used for this run.
    Unusable,
    /// An intact log belongs to another execution.
    OtherExecution,
    /// Another process holds the run.
    Held,
}

/// Why a journal can't be used.
#[derive(Debug)]
pub struct JournalError {
    kind: JournalErrorKind,
    error: Box<dyn std::error::Error + Send + Sync>,
}

impl JournalError {
    /// An error of a journal's own.
    pub fn new(
        kind: JournalErrorKind,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { kind, error: error.into() }
    }

    /// What kind of failure it is.
    pub fn kind(&self) -> JournalErrorKind {
        self.kind
    }

    /// The journal's own error, if it is of this type.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.error.downcast_ref()
    }
}

impl std::fmt::Display for JournalError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for JournalError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

/// Which log of a run: one per round and attempt.
#[derive(Clone, Copy, Debug)]
pub struct LogKey<'a> {
    /// `commitments` or `proofs`.
    pub round: &'static str,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// What the answers depend on in addition to the run's identity. Answers for another context are an error.
    pub context: &'a [u8],
    /// The length of every message.
    pub message_length: usize,
}

/// Takes a batch of messages from a log and returns how many of them are not answers of this run.
pub type Accept<'a> = dyn FnMut(Vec<&[u8]>) -> usize + 'a;

/// Keeps the answers of a run, so that an interrupted run can be resumed.
pub trait Journal: std::fmt::Debug + Sync {
    /// Whether the journal was opened for this key.
    fn is_for(&self, key: &VerifyingKey) -> bool;

    /// Whether an earlier process began the run.
    fn is_resumed(&self) -> bool;

    /// Whether the run's seed is one for tests: its proofs are not zero-knowledge.
    fn has_insecure_seed(&self) -> bool;

    /// Whether the seed is still there. It is removed with the last step of a run.
    fn has_seed(&self) -> bool;

    /// What a user should know about opening the journal, once.
    fn take_notices(&self) -> Vec<String>;

    /// The run's secret randomness.
    ///
    /// # Errors
    /// When the run is finished and its seed was removed.
    fn randomness(&self) -> Result<Randomness, JournalError>;

    /// Opens the log of a round and passes the intact messages in it to `accept`, batch by batch. Also returns notices
    /// about what had to be left out.
    ///
    /// # Errors
    /// When the log belongs to another execution, or can't be read.
    fn log<'j>(
        &'j self,
        key: LogKey<'_>,
        accept: &mut Accept<'_>,
    ) -> Result<(Box<dyn RoundLog + 'j>, Vec<String>), JournalError>;

    /// The bytes of a finished run's proof, if there are any.
    fn proof(&self) -> Option<Vec<u8>>;

    /// The error for a finished run whose proof does not verify for this execution.
    fn finished_otherwise(&self) -> JournalError;

    /// Keeps the proof and removes the seed, which nobody needs any more.
    ///
    /// # Errors
    /// When the proof can't be written.
    fn finish(&self, proof: &Proof) -> Result<(), JournalError>;

    /// Removes the seed of a finished run; an earlier process may have been killed before it did.
    ///
    /// # Errors
    /// When the seed can't be removed.
    fn remove_seed(&self) -> Result<(), JournalError>;
}

/// The log of one round.
pub trait RoundLog: Sync {
    /// Appends a message.
    ///
    /// # Errors
    /// When it can't be written. The log keeps what it had.
    fn append(&self, message: &[u8]) -> Result<(), JournalError>;

    /// Makes sure that all messages outlive a power failure.
    ///
    /// # Errors
    /// When they can't be synced.
    fn sync(&self) -> Result<(), JournalError>;
}
