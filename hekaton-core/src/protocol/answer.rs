//! The answers of the two rounds, and how a worker computes them.

use crate::events::Phase;
use crate::pool::Pool;
use crate::protocol::messages::{Commitment, Job, Message, ProofResponse, ProveRound};
use crate::protocol::worker::{Worker, WorkerError};
use std::collections::BTreeMap;

/// The answer for one instance in one of the rounds.
pub trait Answer: Message {
    /// The round that the answer belongs to.
    const PHASE: Phase;

    /// The index of the instance that the answer is for.
    fn instance(&self) -> usize;

    /// Does the job. `challenges` are those of the prove round; the commit round has none.
    ///
    /// # Errors
    /// The error of the worker.
    fn make(
        worker: Worker<'_>,
        job: Job,
        challenges: Option<&ProveRound>,
    ) -> Result<Self, WorkerError>;
}

impl Answer for Commitment {
    const PHASE: Phase = Phase::Commit;

    fn instance(&self) -> usize {
        self.instance
    }

    fn make(worker: Worker<'_>, job: Job, _: Option<&ProveRound>) -> Result<Self, WorkerError> {
        Ok(worker.commit(job)?.1)
    }
}

impl Answer for ProofResponse {
    const PHASE: Phase = Phase::Prove;

    fn instance(&self) -> usize {
        self.instance
    }

    fn make(
        worker: Worker<'_>,
        job: Job,
        challenges: Option<&ProveRound>,
    ) -> Result<Self, WorkerError> {
        let instance = job.instance;
        let no_challenges = || WorkerError::Job {
            instance,
            why: "the prove round needs challenges, and none were passed".into(),
        };
        // The job carries everything that the commit round used, so the worker that committed to it
        // is not needed (spec: distributed#jobs).
        worker.resume(job).prove(challenges.ok_or_else(no_challenges)?)
    }
}

/// Takes a batch of messages from a log and returns how many of them are not answers of a run.
///
/// A message counts only if it decodes as an answer for one of `instances` subcircuits: points in
/// their subgroups, scalars reduced, the instance in range. Whether it is the right answer is not
/// known: wrong ones are found after the aggregation (spec: distributed#blame). Of two answers for
/// one instance the later one counts, because a repair appends.
pub fn accept<A: Answer>(
    messages: Vec<&[u8]>,
    instances: usize,
    pool: &impl Pool,
    answers: &mut BTreeMap<usize, A>,
) -> usize {
    let all = messages.len();
    let decode =
        |message: &[u8]| A::from_bytes(message).ok().filter(|answer| answer.instance() < instances);
    let intact: Vec<A> = pool.map(messages, decode).into_iter().flatten().collect();
    let refused = all - intact.len();
    answers.extend(intact.into_iter().map(|answer| (answer.instance(), answer)));
    refused
}
