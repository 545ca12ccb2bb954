//! Time, as components see it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A clock that may be wrong: simulations run components with clocks that are fast, slow or set differently.
#[derive(Clone)]
pub struct Clock(Arc<dyn Time>);

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// A source of time for a clock.
pub trait Time: Send + Sync {
    /// Time since some point in the past. It never goes back, and passes while the machine sleeps.
    fn monotonic(&self) -> Duration;
    /// Milliseconds since 1970.
    fn wall(&self) -> u64;
    /// Returns how long the runtime waits for a span of this clock.
    fn real(&self, span: Duration) -> Duration;
}

struct System;

impl Time for System {
    fn monotonic(&self) -> Duration {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let (seconds, nanos) = (now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs());
        Duration::from_secs(seconds) + Duration::from_nanos(nanos)
    }

    fn wall(&self) -> u64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        // A clock before 1970 has not been set yet. Leases count on the monotonic clock; times that people read are wrong then, and
        // jobs with a time before which they are not to start wait.
        since.map_or(0, millis)
    }

    fn real(&self, span: Duration) -> Duration {
        span
    }
}

/// Returns a span in milliseconds, capped at the largest number: spans may come from settings.
pub(crate) fn millis(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000).saturating_add(span.subsec_millis().into())
}

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self(Arc::new(System))
    }

    /// A custom clock.
    pub fn new(time: impl Time + 'static) -> Self {
        Self(Arc::new(time))
    }

    /// Time since some point in the past.
    pub fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }

    /// Milliseconds since 1970.
    pub fn wall(&self) -> u64 {
        self.0.wall()
    }

    /// Returns how long the runtime waits for a span of this clock.
    pub(crate) fn real(&self, span: Duration) -> Duration {
        self.0.real(span)
    }

    /// Waits.
    pub async fn sleep(&self, span: Duration) {
        tokio::time::sleep(self.0.real(span)).await;
    }

    /// A time from now, for the runtime's timers.
    pub(crate) fn after(&self, span: Duration) -> Instant {
        Instant::now() + self.0.real(span)
    }
}
