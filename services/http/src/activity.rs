//! Whether anything happens on a connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What happens on a connection.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<State>);

#[derive(Debug)]
struct State {
    /// How many requests wait for their answer.
    open: usize,
    /// When something happened the last time.
    since: Instant,
}

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(State { open: 0, since: Instant::now() }))
    }
}

/// A request that waits for its answer, until it is dropped.
#[derive(Debug)]
pub(crate) struct Busy(Arc<Activity>);

impl Activity {
    /// A request begins.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.change(|state| state.open += 1);
        Busy(Arc::clone(self))
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes that something happened.
    pub(crate) fn touch(&self) {
        self.change(|state| state.since = Instant::now());
    }

    /// Waits until nothing has happened for some time.
    pub(crate) async fn silent(&self, most: Duration) {
        loop {
            let silent = self.change(|state| match state.open {
                0 => state.since.elapsed(),
                _ => Duration::ZERO,
            });
            match most.checked_sub(silent) {
                None | Some(Duration::ZERO) => return,
                Some(rest) => tokio::time::sleep(rest).await,
            }
        }
    }
}

impl Busy {
    /// The answer is there. Returns what is told of each part of it.
    pub(crate) fn answered(self) -> Arc<Activity> {
        Arc::clone(&self.0)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.change(|state| {
            state.open -= 1;
            state.since = Instant::now();
        });
    }
}
