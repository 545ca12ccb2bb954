//! Why a run ends without a proof.

use crate::protocol::coordinator::CoordinatorError;
use crate::protocol::journal::JournalError;
use crate::protocol::worker::WorkerError;
use crate::rank_error::RankError;

/// Why there is no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The coordinator stopped.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// A worker failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// No randomness.
    #[error("the operating system gives no randomness: {0}")]
    Randomness(#[from] getrandom::Error),
    /// The run directory can't be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The run directory is one for other keys.
    #[error("the run directory was opened for another verifying key than the one that is used")]
    ForeignJournal,
    /// A commitment is not what it must be: a machine is broken. Proofs under its challenges were made, so all begins again
    /// with new randomness.
    #[error("the commitment of subcircuit {instance}{by} was wrong: a machine is broken, or was")]
    WrongCommitment {
        /// The subcircuit.
        instance: usize,
        /// Who made it, if that is known and was not this process: " (by rank ...)".
        by: String,
    },
    /// The commitment to all subtraces was not what it must be, so proofs were made under wrong challenges; all begins again
    /// with new randomness.
    #[error(
        "the commitment to all subtraces was wrong, and so were the challenges: a machine is broken, or was"
    )]
    WrongChallenges,
    /// Somebody asked the run to stop.
    #[error("cancelled")]
    Cancelled,
}

impl ProveError {
    pub(crate) fn from_rank(error: RankError) -> Self {
        Self::Coordinator(error.into())
    }

    /// Whether another attempt, with new randomness, may end better.
    pub(crate) fn starts_over(&self) -> bool {
        matches!(
            self,
            Self::Worker(WorkerError::Pole { .. })
                | Self::Coordinator(CoordinatorError::Pole { .. })
                | Self::WrongCommitment { .. }
                | Self::WrongChallenges
        )
    }
}
