//! Clocks, and where tests stop them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Seconds since 1970.
pub(crate) fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

/// The CPU time of the process so far.
pub(crate) fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// A place where tests let the process die or wait.
#[inline]
pub(crate) fn fail_point(name: &str) {
    #[cfg(test)]
    fail::fail_point!(name);
    #[cfg(not(test))]
    let _ = name;
}
