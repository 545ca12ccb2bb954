//! The answers of the two rounds, and how a worker makes them.

use crate::events::Phase;
use crate::protocol::messages::{Commitment, Job, Message, ProofResponse, ProveRound};
use crate::protocol::worker::{Worker, WorkerError};
use hekaton_circuit::Circuit;

/// The answer of one instance in one of the rounds.
pub trait Answer: Message {
    /// The round.
    const PHASE: Phase;

    /// Index of the instance.
    fn instance(&self) -> usize;

    /// Does the job. `challenges` are those of the prove round; the commit round has none.
    ///
    /// # Errors
    /// What the worker says.
    fn make<C: Circuit>(
        worker: Worker<'_, C>,
        job: Job<C::Private>,
        challenges: Option<&ProveRound>,
    ) -> Result<Self, WorkerError>;
}

impl Answer for Commitment {
    const PHASE: Phase = Phase::Commit;

    fn instance(&self) -> usize {
        self.instance
    }

    fn make<C: Circuit>(
        worker: Worker<'_, C>,
        job: Job<C::Private>,
        _: Option<&ProveRound>,
    ) -> Result<Self, WorkerError> {
        Ok(worker.commit(job)?.1)
    }
}

impl Answer for ProofResponse {
    const PHASE: Phase = Phase::Prove;

    fn instance(&self) -> usize {
        self.instance
    }

    fn make<C: Circuit>(
        worker: Worker<'_, C>,
        job: Job<C::Private>,
        challenges: Option<&ProveRound>,
    ) -> Result<Self, WorkerError> {
        let instance = job.instance;
        let no_challenges = || WorkerError::Job { instance, why: "no challenges".into() };
        worker.resume(job).prove(challenges.ok_or_else(no_challenges)?)
    }
}
