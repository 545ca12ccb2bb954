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

/// Several measurements of one quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Measurement {
    pub(super) low: f64,
    pub(super) median: f64,
    pub(super) high: f64,
}

impl Measurement {
    /// Summarizes an odd number of measurements.
    pub(super) fn of<const N: usize>(mut found: [f64; N]) -> Self {
        found.sort_by(f64::total_cmp);
        Self { low: found[0], median: found[N / 2], high: found[N - 1] }
    }

    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self { low: f(self.low), median: f(self.median), high: f(self.high) }
    }

    /// The measurement divided by a positive number.
    pub(super) fn per(self, n: f64) -> Self {
        self.map(|value| value / n)
    }

    /// The difference to an independent measurement. The quantity is known not to be negative.
    pub(super) fn minus(self, other: Self) -> Self {
        // The errors of independent measurements add up in the worst case.
        let low = self.low - other.high;
        let difference =
            Self { low, median: self.median - other.median, high: self.high - other.low };
        difference.map(|value| value.max(0.0))
    }
}

impl std::ops::Mul<f64> for Measurement {
    type Output = Self;

    /// The measurement times a positive number.
    fn mul(self, factor: f64) -> Self {
        self.map(|value| value * factor)
    }
}

/// The number of times that a quantity is measured. The figures of a build with checks are meaningless, so
/// that one is quick.
const TIMES: usize = if cfg!(debug_assertions) { 1 } else { 5 };

/// Measures several times.
pub(super) fn repeated<E>(mut measure: impl FnMut() -> Result<f64, E>) -> Result<Measurement, E> {
    let mut found = [0.0; TIMES];
    for value in &mut found {
        *value = measure()?;
    }
    Ok(Measurement::of(found))
}

/// The processor time of this thread for one call of `f`, from several batches of `calls`.
pub(super) fn per_call<R>(calls: u32, mut f: impl FnMut() -> R) -> Measurement {
    let batch = || {
        let since = thread();
        for _ in 0..calls {
            std::hint::black_box(f());
        }
        Ok::<_, std::convert::Infallible>((thread() - since) / f64::from(calls))
    };
    // `Infallible` has no values, so there is no other case.
    let Ok(seconds) = repeated(batch);
    seconds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_as_uncertain_as_both_parts() {
        let (a, b) = (Measurement::of([5.0, 4.0, 7.0]), Measurement::of([2.0, 1.0, 4.5]));
        assert_eq!(a, Measurement { low: 4.0, median: 5.0, high: 7.0 });
        assert_eq!(a.minus(b), Measurement { low: 0.0, median: 3.0, high: 6.0 });
        assert_eq!((a * 2.0).per(4.0), Measurement { low: 2.0, median: 2.5, high: 3.5 });
    }
}
