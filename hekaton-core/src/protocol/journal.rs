//! The place where a run keeps its answers: the trait [`Journal`], implemented by the run directory
//! of the crate `hekaton-storage`.
//!
//! Every answer is a function of key, input and seed, so a recorded answer need not be computed
//! again, and computing one twice yields the same bytes (spec: zero-knowledge#randomness,
//! zero-knowledge#resume). A journal stores bytes; [`prove`](crate::prove()) decides which of them
//! are answers.

use crate::randomness::Randomness;
use crate::verifier::proof::Proof;
use crate::verifier::verifying_key::VerifyingKey;

/// The kind of failure that a journal reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalErrorKind {
    /// A file cannot be read or written; recorded answers are intact, and the run can be resumed.
    Io,
    /// The journal is damaged, has another version, or cannot be used for this run.
    Unusable,
    /// An intact log belongs to another execution.
    OtherExecution,
    /// Another process holds the run.
    Held,
}

/// The error of a [`Journal`].
#[derive(Debug)]
pub struct JournalError {
    kind: JournalErrorKind,
    error: Box<dyn std::error::Error + Send + Sync>,
}

impl JournalError {
    /// Wraps an error of a journal implementation.
    pub fn new(
        kind: JournalErrorKind,
        error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { kind, error: error.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> JournalErrorKind {
        self.kind
    }

    /// The wrapped error, if it has this type.
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

/// Identifies a log of a run: there is one per round and attempt.
#[derive(Clone, Copy, Debug)]
pub struct LogKey<'a> {
    /// `commitments` or `proofs`.
    pub round: &'static str,
    /// The number of the attempt, starting at 1.
    pub attempt: u32,
    /// The context on which the answers depend in addition to the run's identity. A log that was
    /// written for another context is an error.
    pub context: &'a [u8],
    /// The length of every message.
    pub message_length: usize,
}

/// Takes a batch of messages from a log, and returns how many of them are not answers of this run.
pub type Accept<'a> = dyn FnMut(Vec<&[u8]>) -> usize + 'a;

/// Keeps the answers of a run, so that an interrupted run can be resumed.
pub trait Journal: std::fmt::Debug + Sync {
    /// Reports whether the journal was opened for this key, and for a direct run with this digest or an
    /// aggregated one.
    fn is_for(&self, key: &VerifyingKey, direct: Option<[u8; 32]>) -> bool;

    /// Reports whether an earlier process started the run.
    fn is_resumed(&self) -> bool;

    /// Reports whether the run has a test seed, so that its proofs are not zero-knowledge.
    fn has_insecure_seed(&self) -> bool;

    /// Reports whether the seed still exists. The last step of a run removes it.
    fn has_seed(&self) -> bool;

    /// Returns notices for the user about the opening of the journal. A second call returns
    /// nothing.
    fn take_notices(&self) -> Vec<String>;

    /// The run's secret randomness.
    ///
    /// # Errors
    /// When the run is finished and its seed has been removed.
    fn randomness(&self) -> Result<Randomness, JournalError>;

    /// Opens the log of a round and passes its intact messages to `accept`, batch by batch. Also
    /// returns notices about records that had to be left out.
    ///
    /// # Errors
    /// When the log belongs to another execution, or cannot be read.
    fn log<'j>(
        &'j self,
        key: LogKey<'_>,
        accept: &mut Accept<'_>,
    ) -> Result<(Box<dyn RoundLog + 'j>, Vec<String>), JournalError>;

    /// The bytes of the proof, if the run is finished.
    fn proof(&self) -> Option<Vec<u8>>;

    /// Returns the error for a finished run whose proof does not verify for this execution.
    fn finished_otherwise(&self) -> JournalError;

    /// Stores the proof, then removes the seed, which is no longer needed.
    ///
    /// # Errors
    /// When the proof cannot be written.
    fn finish(&self, proof: &Proof) -> Result<(), JournalError>;

    /// Removes the seed of a finished run, in case an earlier process was killed before it did.
    ///
    /// # Errors
    /// When the seed cannot be removed.
    fn remove_seed(&self) -> Result<(), JournalError>;
}

/// The log of one round.
pub trait RoundLog: Sync {
    /// Appends a message.
    ///
    /// # Errors
    /// When it cannot be written. Earlier messages stay intact.
    fn append(&self, message: &[u8]) -> Result<(), JournalError>;

    /// Makes sure that all messages survive a power failure.
    ///
    /// # Errors
    /// When they cannot be synced.
    fn sync(&self) -> Result<(), JournalError>;
}
