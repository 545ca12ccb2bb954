//! The threads of this machine: [`LocalEngine`].

use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// One single-threaded prover per core of this machine.
#[derive(Debug)]
pub struct LocalEngine {
    pool: rayon::ThreadPool,
}

impl LocalEngine {
    /// Creates an engine with `threads` threads; `None` means one per core that this process may
    /// use.
    ///
    /// # Errors
    /// When the operating system cannot start the threads.
    pub fn new(threads: Option<NonZeroUsize>) -> Result<Self, std::io::Error> {
        let number = threads
            .or_else(|| std::thread::available_parallelism().ok())
            .map_or(1, NonZeroUsize::get);
        let builder = rayon::ThreadPoolBuilder::new()
            .num_threads(number)
            .thread_name(|i| format!("prover-{i}"));
        Ok(Self { pool: builder.build().map_err(std::io::Error::other)? })
    }

    /// Runs a function on this thread, which may start tasks on the engine's threads; returns when
    /// all of them have ended.
    pub(crate) fn in_place_scope<'scope, R>(
        &self,
        f: impl FnOnce(&rayon::Scope<'scope>) -> R,
    ) -> R {
        self.pool.in_place_scope(f)
    }

    /// Runs a function on the engine's threads, for setup.
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.pool.install(f)
    }

    /// Number of threads that work at once, at least 1.
    pub fn threads(&self) -> usize {
        self.pool.current_num_threads()
    }

    /// Returns `f` of each value, in the order of the values. Values are few and large: each is a task of its own.
    pub fn map<T: Send, R: Send>(&self, values: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
        let values: Vec<Mutex<Option<T>>> =
            values.into_iter().map(|value| Mutex::new(Some(value))).collect();
        let results: Vec<Mutex<Option<R>>> = values.iter().map(|_| Mutex::default()).collect();
        self.run(values.len(), &|i| {
            let value = values[i].lock().unwrap_or_else(PoisonError::into_inner).take();
            let result = value.map(&f);
            *results[i].lock().unwrap_or_else(PoisonError::into_inner) = result;
        });
        let results =
            results.into_iter().map(|it| it.into_inner().unwrap_or_else(PoisonError::into_inner));
        results.map(|result| result.expect("each task has run once")).collect()
    }

    /// Runs `task(i)` for each `i` below `tasks`.
    // Without type parameters: compiled once, and not for each function that is mapped.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        use rayon::prelude::*;
        self.pool.install(|| (0..tasks).into_par_iter().with_max_len(1).for_each(task));
    }

    /// Runs `job(i)` for each `i` of `order`, each on one thread and at most `provers` at once;
    /// idle threads take the next job. The first error stops the round: running jobs finish, no
    /// more are started.
    ///
    /// # Errors
    /// The error of the failed job with the lowest place in `order`.
    pub fn each<R: Send, E: Send>(
        &self,
        order: &[usize],
        provers: usize,
        job: impl Fn(usize) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        self.each_with(order, provers, 0, job)
    }

    /// Like [`Self::each`], with up to `waiting` more jobs at once on threads of their own, for jobs that
    /// mostly wait for devices.
    pub(crate) fn each_with<R: Send, E: Send>(
        &self,
        order: &[usize],
        provers: usize,
        waiting: usize,
        job: impl Fn(usize) -> Result<R, E> + Sync,
    ) -> Result<Vec<R>, E> {
        // A shared counter is the queue: an idle thread takes the next job, so subcircuits of
        // unequal size keep all threads busy.
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let worker = || {
            let mut results = Vec::new();
            while !failed.load(Ordering::Relaxed) {
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
        let of_pool = |context: rayon::BroadcastContext<'_>| match context.index() < provers.max(1)
        {
            true => worker(),
            false => Vec::new(),
        };
        let mut results: Vec<(usize, Result<R, E>)> = std::thread::scope(|scope| {
            let start = |i: usize| {
                let name = format!("waiting-prover-{i}");
                std::thread::Builder::new().name(name).spawn_scoped(scope, worker)
            };
            // If the system has no more threads, the others do the jobs.
            let started: Vec<_> =
                (0..waiting.min(order.len())).map_while(|i| start(i).ok()).collect();
            let mut results = self.pool.broadcast(of_pool);
            for thread in started {
                results.push(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            results.into_iter().flatten().collect()
        });
        results.sort_by_key(|(place, _)| *place);
        results.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(threads: usize) -> LocalEngine {
        LocalEngine::new(NonZeroUsize::new(threads)).unwrap()
    }

    /// Results are in the order of the values, also within a task of the same pool, and a panic reaches the caller.
    #[test]
    fn values_are_mapped_in_order() {
        for threads in [1, 2, 8] {
            let engine = engine(threads);
            let names = |n: usize| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
            let lengths = engine.map(names(300), |name| {
                let inner = engine.map(names(3), |other| name.clone() + &other);
                (inner.concat(), inner.len())
            });
            for (i, (text, len)) in lengths.into_iter().enumerate() {
                assert_eq!((text, len), (format!("{i}0{i}1{i}2"), 3));
            }
            assert!(engine.map(Vec::<String>::new(), |name| name).is_empty());
            let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                engine.map(names(20), |name| assert_ne!(name, "13"))
            }));
            assert!(panics.is_err());
        }
    }

    /// The queue deals each job once, and the answers are in order; also run under ThreadSanitizer.
    #[test]
    fn each_job_is_done_once() {
        for threads in [1, 2, 8] {
            let done: Vec<AtomicUsize> = (0..5000).map(|_| AtomicUsize::new(0)).collect();
            // Jobs write without a lock; the writes are visible to other threads after the round.
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

    /// Jobs that wait have threads of their own: here each waits for all others.
    #[test]
    fn waiting_jobs_are_beyond_the_threads() {
        let all = std::sync::Barrier::new(7);
        let order: Vec<usize> = (0..7).collect();
        let result = engine(2).each_with(&order, 2, 5, |i| {
            all.wait();
            Ok::<_, ()>(i)
        });
        assert_eq!(result.unwrap(), order);
    }

    /// An error stops the round: running jobs finish, no others start, and the first error in order
    /// is returned.
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
