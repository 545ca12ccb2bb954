//! The errors that end a run without a proof.

use crate::protocol::coordinator::CoordinatorError;
use crate::protocol::journal::JournalError;
use crate::protocol::worker::WorkerError;
use crate::rank_error::RankError;

/// The error of a run that produced no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The coordinator stopped.
    #[error(transparent)]
    Coordinator(#[from] CoordinatorError),
    /// A worker failed.
    #[error(transparent)]
    Worker(#[from] WorkerError),
    /// The operating system provided no randomness.
    #[error("cannot get randomness from the operating system: {0}")]
    Randomness(getrandom::Error),
    /// The journal (run directory) cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The journal belongs to other keys.
    #[error("the run directory was opened for another verifying key than the one in use")]
    ForeignJournal,
    /// The direct key belongs to other keys.
    #[error(
        "the direct key is of another verifying key than the one in use: export it from these keys"
    )]
    ForeignDirectKey,
    /// A commitment differs when it is recomputed. Proofs were made under its challenges, so
    /// everything restarts with new randomness (spec: distributed#repair).
    #[error("the commitment of subcircuit {instance}{by} was wrong: possible hardware fault")]
    WrongCommitment {
        /// The subcircuit.
        instance: usize,
        /// The rank that computed it, if that is known and was not this process: " (by rank ...)".
        by: String,
    },
    /// The marked values of a subcircuit differ from call to call, so no run can prove it.
    #[error(transparent)]
    NotDeterministic(#[from] hekaton_circuit::NotDeterministic),
    /// The commitment to all subtraces differs when it is recomputed, so proofs were made under
    /// wrong challenges; everything restarts with new randomness (spec: distributed#repair).
    #[error(
        "the commitment to all subtraces was wrong, and therefore the challenges: \
         possible hardware fault"
    )]
    WrongChallenges,
    /// A worker reported a pole (zero denominator) where there is none.
    #[error(
        "subcircuit {instance}{by} was reported to hit a pole (zero denominator), but does not"
    )]
    FalsePole {
        /// The subcircuit.
        instance: usize,
        /// The rank that reported it, if that is known: " (by rank ...)".
        by: String,
    },
    /// A prover reported look-ups in rows that no table has.
    #[error("the look-ups of subcircuit {instance} (by {prover}) are wrong: {why}")]
    LookUps {
        /// The subcircuit.
        instance: usize,
        /// The prover, with its rank if there are ranks.
        prover: String,
        /// The reason they are wrong.
        why: String,
    },
    /// Look-ups were counted wrongly, so tables have committed to other multiplicities; everything
    /// restarts with new randomness (spec: buses#counting).
    #[error("look-ups were counted wrongly: possible hardware fault")]
    WrongCounts,
    /// All attempts of a run with a journal failed, and resuming it would replay them.
    #[error(
        "{0}; this was the last attempt of this run, and resuming the run would only repeat its \
         attempts: start a new run in a new directory"
    )]
    AttemptsExhausted(Box<ProveError>),
    /// The run was cancelled from outside.
    #[error("cancelled")]
    Cancelled,
}

impl From<getrandom::Error> for ProveError {
    fn from(error: getrandom::Error) -> Self {
        Self::Randomness(error)
    }
}

impl ProveError {
    pub(crate) fn from_rank(error: RankError) -> Self {
        Self::Coordinator(error.into())
    }

    /// Reports whether another attempt with new randomness may succeed
    /// (spec: zero-knowledge#restart).
    pub(crate) fn starts_over(&self) -> bool {
        matches!(
            self,
            Self::Worker(WorkerError::Pole { .. })
                | Self::Coordinator(CoordinatorError::Pole { .. })
                | Self::WrongCommitment { .. }
                | Self::WrongChallenges
                | Self::WrongCounts
        )
    }
}
