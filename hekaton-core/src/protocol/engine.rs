//! Who runs the rounds: [`Engine`], and [`LocalEngine`] over the threads of one machine.

use crate::aggregation::block::Shared;
use crate::aggregation::blocks::{Blocks, LocalBlocks};
use crate::events::{Phase, RankAccount};
use crate::pool::{LocalEngine, Pool};
use crate::protocol::answer::Answer;
use crate::protocol::coordinator::Coordinator;
use crate::protocol::error::ProveError;
use crate::protocol::messages::{Commitment, Message, ProofResponse, ProveRound};
use crate::protocol::options::Cancellation;
use crate::protocol::worker::Worker;
use crate::randomness::Randomness;
use hekaton_circuit::Circuit;
use std::num::NonZeroUsize;
use std::time::Instant;

/// How one subcircuit of a round was done.
#[derive(Clone, Debug)]
pub struct Work {
    /// Seconds that its prover took.
    pub seconds: f64,
    /// Bytes to and from the prover.
    pub bytes: u64,
    /// Who did it.
    pub prover: String,
}

/// Called with each answer as it comes, for logs and events. An error ends the round.
pub type Done<'a, A> = &'a (dyn Fn(&A, Work) -> Result<(), ProveError> + Sync);

/// One round over the subcircuits of a run, as an engine sees it.
pub struct Round<'a, C: Circuit> {
    pub(crate) coordinator: &'a Coordinator<'a, C>,
    pub(crate) worker: Worker<'a, C>,
    pub(crate) randomness: &'a Randomness,
    /// number of the attempt, from 1
    pub(crate) attempt: u32,
    /// in the prove round
    pub(crate) challenges: Option<ProveRound>,
    /// subcircuits at once, at most
    pub(crate) provers: usize,
    pub(crate) cancellation: &'a Cancellation,
}

impl<C: Circuit> std::fmt::Debug for Round<'_, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Round")
            .field("attempt", &self.attempt)
            .field("provers", &self.provers)
            .finish_non_exhaustive()
    }
}

impl<C: Circuit> Round<'_, C> {
    /// The answer of one instance, made in this process.
    pub(crate) fn make<A: Answer>(&self, instance: usize) -> Result<A, ProveError> {
        let job = match self.challenges {
            None => self.coordinator.commit_job(instance, self.randomness),
            Some(_) => self.coordinator.prove_job(instance, self.randomness)?,
        };
        Ok(A::make(self.worker, job, self.challenges.as_ref())?)
    }
}

/// Runs the two rounds and the folds of the aggregation: the threads of this machine ([`LocalEngine`]), or ranks
/// ([`RankEngine`](crate::distributed::RankEngine)).
pub trait Engine: sealed::Sealed {
    /// The threads of this process.
    type Pool: Pool;
    /// Who holds the vectors of the aggregation.
    type Blocks<'s>: Blocks
    where
        Self: 's;

    /// The threads of this process.
    fn pool(&self) -> &Self::Pool;

    /// How many subcircuits are proven at once, when so many are asked for.
    fn provers(&self, asked: Option<NonZeroUsize>) -> usize;

    /// Ranks that take part beside this process's threads; 1 for threads alone.
    fn ranks(&self) -> usize {
        1
    }

    /// Runs one round over these instances; `done` is told of each answer. The first error stops the round: what is
    /// under way is finished, no more is started.
    ///
    /// # Errors
    /// The first error of a prover, of `done`, or of the engine.
    fn round<C: Circuit, A: Answer>(
        &self,
        round: &Round<'_, C>,
        order: &[usize],
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError>;

    /// Who holds the vectors of an aggregation.
    fn blocks<'s>(&'s self, shared: &'s Shared<'s>) -> Self::Blocks<'s>;

    /// Who made an instance's answers in this process's lifetime, when that is not this process itself.
    fn maker(&self, _instance: usize) -> Option<String> {
        None
    }

    /// What the ranks did since this was last asked, for events.
    ///
    /// # Errors
    /// When a rank is lost or sends something wrong.
    fn account(&self, _phase: Phase) -> Result<Vec<RankAccount>, ProveError> {
        Ok(Vec::new())
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::pool::LocalEngine {}
}

impl Engine for LocalEngine {
    type Pool = Self;
    type Blocks<'s> = LocalBlocks<'s, Self>;

    fn pool(&self) -> &Self {
        self
    }

    fn provers(&self, asked: Option<NonZeroUsize>) -> usize {
        asked.map_or(self.threads(), NonZeroUsize::get).min(self.threads())
    }

    fn round<C: Circuit, A: Answer>(
        &self,
        round: &Round<'_, C>,
        order: &[usize],
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError> {
        self.each(order, round.provers, |i| {
            if round.cancellation.is_cancelled() {
                return Err(ProveError::Cancelled);
            }
            let since = Instant::now();
            let answer = round.make::<A>(i)?;
            let seconds = since.elapsed().as_secs_f64();
            let prover = std::thread::current().name().unwrap_or("prover").to_owned();
            done(
                &answer,
                Work { seconds, bytes: traffic(round.coordinator, A::PHASE, i), prover },
            )?;
            Ok(answer)
        })
    }

    fn blocks<'s>(&'s self, shared: &'s Shared<'s>) -> LocalBlocks<'s, Self> {
        LocalBlocks::all(shared, self)
    }
}

/// Bytes to and from a subcircuit's prover if it were elsewhere, private inputs not counted: values up and D down;
/// challenges up and the proof down.
fn traffic<C: Circuit>(coordinator: &Coordinator<'_, C>, phase: Phase, instance: usize) -> u64 {
    let bytes = match phase {
        Phase::Commit => 32 * coordinator.slots(instance) + Commitment::LEN,
        Phase::Prove => ProveRound::LEN + ProofResponse::LEN,
        Phase::LoadKeys | Phase::Execute | Phase::Aggregate => 0,
    };
    bytes as u64
}
