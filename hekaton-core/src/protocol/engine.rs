//! The interface that runs the rounds: [`Engine`], implemented by [`LocalEngine`] over the threads
//! of one machine.

use crate::aggregation::block::Shared;
use crate::aggregation::blocks::{Blocks, LocalBlocks};
use crate::events::{Event, Phase};
use crate::keys::ProverKeys;
use crate::pool::LocalEngine;
use crate::protocol::answer::{Answer, Made};
use crate::protocol::coordinator::{Coordinator, CoordinatorError};
use crate::protocol::error::ProveError;
use crate::protocol::executed::Executed;
use crate::protocol::messages::{Commitment, Message, ProofResponse, ProveRound};
use crate::protocol::options::Cancellation;
use crate::protocol::worker::Worker;
use crate::randomness::Randomness;
use crate::system::{Clock, Times};
use hekaton_circuit::{LookUps, PreparedCircuit};
use std::num::NonZeroUsize;

/// Information about how an answer was computed.
#[derive(Clone, Debug)]
pub struct Work {
    /// The time that its prover took.
    pub times: Times,
    /// The bytes sent to and received from the prover.
    pub bytes: u64,
    /// The name of the prover.
    pub prover: String,
    /// The look-ups of the subcircuit; empty in the prove round.
    pub look_ups: LookUps,
    /// The number of the device of this process that computed the sums, if one did.
    pub device: Option<usize>,
}

/// Called with each answer as it arrives, for logs and events. An error ends the round.
pub type Done<'a, A> = &'a (dyn Fn(&A, Work) -> Result<(), ProveError> + Sync);

/// One round over the subcircuits of a run, as an engine sees it.
pub struct Round<'a> {
    pub(crate) coordinator: &'a Coordinator<'a>,
    pub(crate) worker: Worker<'a>,
    pub(crate) randomness: &'a Randomness,
    /// The number of the attempt, starting at 1.
    pub(crate) attempt: u32,
    /// The challenges of the prove round; the commit round has none.
    pub(crate) challenges: Option<ProveRound>,
    /// The maximum number of subcircuits to prove at the same time.
    pub(crate) provers: usize,
    /// The number of further subcircuits that wait for devices of this process.
    pub(crate) waiting: usize,
    pub(crate) cancellation: &'a Cancellation,
}

impl std::fmt::Debug for Round<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Round")
            .field("attempt", &self.attempt)
            .field("provers", &self.provers)
            .finish_non_exhaustive()
    }
}

impl Round<'_> {
    /// Computes the answer for one instance in this process.
    pub(crate) fn make<A: Answer>(&self, instance: usize) -> Result<Made<A>, ProveError> {
        let job = match self.challenges {
            None => self.coordinator.commit_job(instance, self.randomness)?,
            Some(_) => self.coordinator.prove_job(instance, self.randomness)?,
        };
        Ok(A::make(self.worker, job, self.challenges.as_ref())?)
    }
}

/// Runs the two rounds and the phases of the aggregation, on the threads of this machine
/// ([`LocalEngine`]) or on ranks ([`RankEngine`](crate::distributed::RankEngine)). The proof does
/// not depend on the engine (spec: distributed#independence).
pub trait Engine: sealed::Sealed {
    /// The threads of this process.
    fn pool(&self) -> &LocalEngine;

    /// Returns how many subcircuits are proven at the same time if `asked` are requested.
    fn provers(&self, asked: Option<NonZeroUsize>) -> usize;

    /// The number of ranks; 1 for an engine without ranks.
    fn ranks(&self) -> usize {
        1
    }

    /// Executes the circuit of keys, in this process or on ranks, each its own slice
    /// (spec: distributed#slices).
    ///
    /// # Errors
    /// When the circuit cannot be executed, or a rank fails.
    #[allow(private_interfaces)]
    fn execute<'c>(
        &self,
        circuit: &'c PreparedCircuit<'c>,
        keys: &ProverKeys,
    ) -> Result<Executed<'c>, ProveError> {
        let _ = keys;
        Ok(Executed::here(circuit, self.pool()).map_err(CoordinatorError::from)?)
    }

    /// Runs the commit round over these instances and calls `done` with each answer. The first error stops
    /// the round: subcircuits in progress are finished, and no more are started.
    ///
    /// # Errors
    /// The first error of a prover, of `done`, or of the engine.
    fn commit_round(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, Commitment>,
    ) -> Result<Vec<Commitment>, ProveError>;

    /// Runs the prove round in the same way.
    ///
    /// # Errors
    /// As for [`Self::commit_round`].
    fn prove_round(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, ProofResponse>,
    ) -> Result<Vec<ProofResponse>, ProveError>;

    /// Returns the holder of the vectors of an aggregation.
    fn blocks<'s>(&'s self, shared: &'s Shared<'s>) -> Box<dyn Blocks + 's>;

    /// The rank that computed an instance's answers during the lifetime of this process, if it was
    /// not this process itself.
    fn maker(&self, _instance: usize) -> Option<String> {
        None
    }

    /// Tells the rank that computed a wrong answer to an instance to give up its devices, if it has any.
    fn give_up_devices(&self, _instance: usize) {}

    /// Returns the work of the ranks and of their devices since the previous call, as events.
    ///
    /// # Errors
    /// When a rank is lost or sends an invalid message.
    fn account(&self, _phase: Phase) -> Result<Vec<Event>, ProveError> {
        Ok(Vec::new())
    }
}

/// The answers of one of the two rounds.
pub(crate) trait RoundAnswer: Answer {
    /// Runs the round over these instances.
    fn round(
        engine: &dyn Engine,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, Self>,
    ) -> Result<Vec<Self>, ProveError>;
}

impl RoundAnswer for Commitment {
    fn round(
        engine: &dyn Engine,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, Self>,
    ) -> Result<Vec<Self>, ProveError> {
        engine.commit_round(round, order, done)
    }
}

impl RoundAnswer for ProofResponse {
    fn round(
        engine: &dyn Engine,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, Self>,
    ) -> Result<Vec<Self>, ProveError> {
        engine.prove_round(round, order, done)
    }
}

pub(crate) mod sealed {
    #[allow(unnameable_types, reason = "seals `Engine`")]
    pub trait Sealed {}
    impl Sealed for crate::pool::LocalEngine {}
}

impl Engine for LocalEngine {
    fn pool(&self) -> &Self {
        self
    }

    fn provers(&self, asked: Option<NonZeroUsize>) -> usize {
        asked.map_or(self.threads(), NonZeroUsize::get).min(self.threads())
    }

    fn commit_round(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, Commitment>,
    ) -> Result<Vec<Commitment>, ProveError> {
        self.round(round, order, done)
    }

    fn prove_round(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, ProofResponse>,
    ) -> Result<Vec<ProofResponse>, ProveError> {
        self.round(round, order, done)
    }

    fn blocks<'s>(&'s self, shared: &'s Shared<'s>) -> Box<dyn Blocks + 's> {
        Box::new(LocalBlocks::all(shared, self))
    }
}

impl LocalEngine {
    fn round<A: Answer>(
        &self,
        round: &Round<'_>,
        order: &[usize],
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError> {
        self.each_with(order, round.provers, round.waiting, |i| {
            // Between subcircuits only: one in progress is finished and kept.
            if round.cancellation.is_cancelled() {
                return Err(ProveError::Cancelled);
            }
            let since = Clock::start();
            let Made { answer, look_ups, device } = round.make::<A>(i)?;
            let times = since.elapsed();
            let prover = match round.worker.device_name(device) {
                Some(name) => name.to_owned(),
                None => std::thread::current().name().unwrap_or("prover").to_owned(),
            };
            let bytes = traffic(round.coordinator, A::PHASE, i);
            done(&answer, Work { times, bytes, prover, look_ups, device })?;
            Ok(answer)
        })
    }
}

/// The bytes to and from a subcircuit's prover if it were on another machine, private inputs not
/// counted: values to it and D from it; challenges to it and the proof from it.
fn traffic(coordinator: &Coordinator<'_>, phase: Phase, instance: usize) -> u64 {
    let bytes = match phase {
        Phase::Commit => 32 * coordinator.slots(instance) + Commitment::LEN,
        Phase::Prove => ProveRound::LEN + ProofResponse::LEN,
        Phase::LoadKeys | Phase::Execute | Phase::Aggregate | Phase::Assemble => 0,
    };
    bytes as u64
}
