//! Who runs the rounds: [`Engine`], and [`LocalEngine`] over the threads of one machine.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Runs a function over many values, with threads; the results come in the order of the values.
pub trait Pool: Sync {
    /// Threads that work at once, at least 1.
    fn threads(&self) -> usize;

    /// `f` of each value.
    fn map<T: Send, R: Send>(&self, values: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R>;
}

/// Runs the two rounds and the folds of the aggregation.
pub trait Engine: Pool {
    /// Runs one round: `job(i)` for each of `order`, each on one thread, at most `provers` at once, pulled dynamically by
    /// idle workers. The first error stops the round: jobs under way are finished, no more are started.
    ///
    /// # Errors
    /// The error of the failed job with the lowest place in `order`.
    fn round<R: Send, E: Send>(
        &self,
        order: &[usize],
        provers: usize,
        job: impl Fn(usize) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E>;
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

impl Engine for LocalEngine {
    fn round<R: Send, E: Send>(
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
