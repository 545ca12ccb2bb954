//! The jobs of a rank that wait for a prover, and those that are held between the rounds (spec: distributed#jobs).

use super::jobs::Task;
use super::message::{Account, Begin};
use crate::protocol::messages::ProveRound;
use crate::system::{Clock, Times};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// A job that waits for a prover.
pub(super) struct Waiting {
    pub(super) task: Task,
    pub(super) begin: Begin,
    pub(super) run: u32,
    /// The challenges of the prove round; none in the commit round.
    pub(super) challenges: Option<ProveRound>,
}

/// The queue between the listener and the provers.
#[derive(Default)]
pub(super) struct JobQueue {
    state: Mutex<State>,
    ready: Condvar,
}

/// The jobs that wait, the jobs that are held, and the account of those that are done.
#[derive(Default)]
pub(super) struct State {
    pub(super) waiting: VecDeque<Waiting>,
    /// The run and attempt in progress.
    pub(super) run: u32,
    /// Jobs that were committed to and are not proven, by instance.
    pub(super) held: BTreeMap<usize, Task>,
    pub(super) account: Account,
    /// When the first job since the last account arrived.
    pub(super) since: Option<Instant>,
    closed: bool,
}

impl JobQueue {
    /// Locks the state. No code of a circuit runs under the lock, so a poisoned one is still
    /// consistent.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, tasks: Vec<Waiting>) {
        let mut state = self.lock();
        state.since.get_or_insert_with(Instant::now);
        state.waiting.extend(tasks);
        self.ready.notify_all();
    }

    /// Waits for the next task; `None` when the queue is closed.
    pub(super) fn next(&self) -> Option<Waiting> {
        let mut state = self.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(task) = state.waiting.pop_front() {
                return Some(task);
            }
            state = self.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Accounts for a job of this thread, before it is answered, and returns the time it took.
    pub(super) fn done(&self, since: Clock) -> Times {
        let times = since.elapsed();
        let mut state = self.lock();
        state.account.busy += times.seconds;
        state.account.cpu += times.cpu_seconds;
        state.account.subcircuits += 1;
        times
    }

    fn close(&self) {
        self.lock().closed = true;
        self.ready.notify_all();
    }
}

/// Closes the queue when it is dropped.
pub(super) struct Closing<'a>(pub(super) &'a JobQueue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
