//! Processor time, so that other processes on the machine do not count.

use rustix::time::{ClockId, clock_gettime};

fn seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// The processor time of the calling thread, in seconds.
pub(super) fn thread() -> f64 {
    seconds(ClockId::ThreadCPUTime)
}

/// The processor time of all threads of this process, in seconds.
pub(super) fn process() -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

/// The median of five measurements.
pub(super) fn median<E>(mut measure: impl FnMut() -> Result<f64, E>) -> Result<f64, E> {
    let mut found = [0.0; 5];
    for value in &mut found {
        *value = measure()?;
    }
    found.sort_by(f64::total_cmp);
    Ok(found[2])
}

/// The processor time of this thread for one call of `f`: the median of five batches of `calls`.
pub(super) fn per_call<R>(calls: u32, mut f: impl FnMut() -> R) -> f64 {
    let batch = || {
        let since = thread();
        for _ in 0..calls {
            std::hint::black_box(f());
        }
        Ok::<_, std::convert::Infallible>((thread() - since) / f64::from(calls))
    };
    let Ok(seconds) = median(batch);
    seconds
}
