//! Stopping a service.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A signal that stops a service: once gently, and a second time in a hurry.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<(Mutex<u32>, Condvar)>);

impl Stop {
    fn lock(&self) -> MutexGuard<'_, u32> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks to stop. The first time, updates that are accepted still become visible; the second time, they are left for the
    /// next start.
    pub fn ask(&self) {
        let mut times = self.lock();
        *times = times.saturating_add(1);
        drop(times);
        self.0.1.notify_all();
    }

    /// Reports whether a stop was requested.
    pub fn is_asked(&self) -> bool {
        *self.lock() > 0
    }

    /// Reports whether it was requested again.
    pub fn is_urgent(&self) -> bool {
        *self.lock() > 1
    }

    /// Waits until it is asked for, at most this long. Returns whether it was.
    pub fn wait(&self, at_most: Duration) -> bool {
        let waited = self.0.1.wait_timeout_while(self.lock(), at_most, |times| *times == 0);
        *waited.unwrap_or_else(PoisonError::into_inner).0 > 0
    }
}
