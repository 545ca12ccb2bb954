//! Who runs the rounds: [`Engine`], and [`LocalEngine`] over the threads of one machine.

use crate::aggregation::block::Shared;
use crate::aggregation::blocks::{Blocks, LocalBlocks};
use crate::circuit::Circuit;
use crate::coordinator::Coordinator;
use crate::events::{Phase, RankAccount};
use crate::messages::{Answer, Commitment, Message, ProofResponse, ProveRound};
use crate::options::Cancellation;
use crate::prove::ProveError;
use crate::randomness::Randomness;
use crate::worker::Worker;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

/// Runs a function over many values, with threads; the results come in the order of the values.
pub trait Pool: Sync {
    /// Threads that work at once, at least 1.
    fn threads(&self) -> usize;

    /// `f` of each value.
    fn map<T: Send, R: Send>(&self, values: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R>;
}

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

/// What is told of each answer as it comes: for logs and events. An error ends the round.
pub(crate) type Done<'a, A> = &'a (dyn Fn(&A, Work) -> Result<(), ProveError> + Sync);

/// What a round is about.
pub(crate) struct Round<'a, C: Circuit> {
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

impl<C: Circuit> Round<'_, C> {
    /// The answer of one instance, made in this process.
    pub(crate) fn make<A: Answer>(&self, instance: usize) -> Result<A, ProveError> {
        let job = self.coordinator.job(instance, self.randomness, self.challenges.is_some())?;
        Ok(A::make(self.worker, job, self.challenges.as_ref())?)
    }
}

/// Runs the two rounds and the folds of the aggregation: the threads of this machine ([`LocalEngine`]), or ranks
/// ([`RankEngine`](crate::ranks::RankEngine)).
#[allow(private_interfaces, private_bounds)]
pub trait Engine: sealed::Sealed {
    /// The threads of this process.
    type Pool: Pool;
    /// Who holds the vectors of the aggregation.
    #[doc(hidden)]
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
    #[doc(hidden)]
    fn round<C: Circuit, A: Answer>(
        &self,
        round: &Round<'_, C>,
        order: &[usize],
        done: Done<'_, A>,
    ) -> Result<Vec<A>, ProveError>;

    #[doc(hidden)]
    fn blocks<'s>(&'s self, shared: &'s Shared<'s>) -> Self::Blocks<'s>;

    /// Who made an instance's answers in this process's lifetime, when that is not this process itself.
    #[doc(hidden)]
    fn maker(&self, _instance: usize) -> Option<String> {
        None
    }

    /// What the ranks did since this was last asked, for events.
    #[doc(hidden)]
    fn account(&self, _phase: Phase) -> Result<Vec<RankAccount>, ProveError> {
        Ok(Vec::new())
    }
}

pub(crate) mod sealed {
    pub trait Sealed {}
    impl Sealed for super::LocalEngine {}
}

/// One single-threaded prover a core of this machine.
#[derive(Debug)]
pub struct LocalEngine {
    pool: rayon::ThreadPool,
}

impl LocalEngine {
    /// An engine of so many threads; `None` takes the number of cores that this process may use.
    ///
    /// # Errors
    /// When the operating system gives no threads.
    pub fn new(threads: Option<NonZeroUsize>) -> Result<Self, std::io::Error> {
        let threads = threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get);
        let builder = rayon::ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("prover-{i}"));
        Ok(Self { pool: builder.build().map_err(std::io::Error::other)? })
    }

    /// Runs a function on the engine's threads, for setup.
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.pool.install(f)
    }
}

impl Pool for LocalEngine {
    fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    fn map<T: Send, R: Send>(&self, values: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
        use rayon::prelude::*;
        self.pool.install(|| values.into_par_iter().with_max_len(1).map(&f).collect())
    }
}

impl LocalEngine {
    /// Runs `job(i)` for each of `order`, each on one thread, at most `provers` at once, pulled dynamically by idle
    /// threads. The first error stops the round: jobs under way are finished, no more are started.
    ///
    /// # Errors
    /// The error of the failed job with the lowest place in `order`.
    pub fn each<R: Send, E: Send>(
        &self,
        order: &[usize],
        provers: usize,
        job: impl Fn(usize) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        // A shared counter is the queue: who is idle takes the next job, so unequal subcircuits keep all threads busy.
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let worker = |context: rayon::BroadcastContext<'_>| {
            let mut results = Vec::new();
            while context.index() < provers.max(1) && !failed.load(Ordering::Relaxed) {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(index) = order.get(place) else { break };
                let result = job(*index);
                if result.is_err() {
                    failed.store(true, Ordering::Relaxed);
                }
                results.push((place, result));
            }
            results
        };
        let mut results: Vec<(usize, Result<R, E>)> = self.pool.broadcast(worker).into_iter().flatten().collect();
        results.sort_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

#[allow(private_interfaces)]
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
            done(&answer, Work { seconds, bytes: traffic(round.coordinator, A::PHASE, i), prover })?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(threads: usize) -> LocalEngine {
        LocalEngine::new(NonZeroUsize::new(threads)).unwrap()
    }

    /// The queue gives out each job once, and the answers come in order; also run under ThreadSanitizer.
    #[test]
    fn each_job_is_done_once() {
        for threads in [1, 2, 8] {
            let done: Vec<AtomicUsize> = (0..5000).map(|_| AtomicUsize::new(0)).collect();
            // what a job writes without any lock, others read after the round
            let order: Vec<usize> = (0..5000).rev().collect();
            let results = engine(threads).each(&order, usize::MAX, |i| {
                done[i].fetch_add(1, Ordering::Relaxed);
                Ok::<_, ()>(vec![i; 2])
            });
            assert_eq!(results.unwrap().into_iter().map(|r| r[1]).collect::<Vec<_>>(), order);
            assert!(done.iter().all(|n| n.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn no_more_than_the_provers_work_at_once() {
        let engine = engine(6);
        for provers in [0, 1, 2, 4, 100] {
            let (now, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let order: Vec<usize> = (0..60).collect();
            let result = engine.each(&order, provers, |i| {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::sleep(std::time::Duration::from_millis(1));
                now.fetch_sub(1, Ordering::SeqCst);
                Ok::<_, ()>(i)
            });
            assert_eq!(result.unwrap(), order);
            assert!((1..=provers.clamp(1, 6)).contains(&most.into_inner()), "{provers}");
        }
    }

    /// An error stops the round: what is under way ends, nothing else begins, and the first in order is told.
    #[test]
    fn an_error_stops_the_round() {
        for threads in [1, 4] {
            let started = AtomicUsize::new(0);
            let order: Vec<usize> = (0..10_000).collect();
            let result = engine(threads).each(&order, threads, |i| {
                started.fetch_add(1, Ordering::SeqCst);
                if i >= 10 { Err(i) } else { Ok(i) }
            });
            assert_eq!(result, Err(10));
            assert!(started.into_inner() <= 10 + threads);
        }
    }
}
