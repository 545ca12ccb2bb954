//! Measures the constants of this machine with the program's own code.

mod clock;
mod kernels;
mod ladder;
mod program;

use super::constants::{Constant, Constants};
use clock::Measurement;
use hekaton_core::LocalEngine;

/// A measurement that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot measure {what}: {why}")]
pub struct CalibrateError {
    /// The quantity that was being measured.
    pub what: &'static str,
    /// The reason it cannot be measured.
    pub why: String,
}

/// Adds a constant with its interval.
fn put(out: &mut Constants, constant: Constant, found: Measurement, how: &str) {
    out.measured_between(constant, found.median, [found.low, found.high], how);
}

/// Measures the constants of this machine in processor time, for about half a minute. `pool` should
/// have a thread for each core; `step` is called with the name of each group of constants before it is
/// measured. `program` and `processor` are recorded.
///
/// # Errors
/// If a synthetic circuit cannot be set up or proven, or temporary files cannot be written.
pub fn calibrate(
    pool: &LocalEngine,
    program: &str,
    processor: &str,
    step: &dyn Fn(&str),
) -> Result<Constants, CalibrateError> {
    let mut out = Constants::new(program, processor);
    step("points, pairings and digests");
    kernels::measure(pool, &mut out);
    step("layout and execution");
    program::layout(&mut out)?;
    step("jobs, answers and the aggregation");
    program::protocol(&mut out)?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::Design;
    use super::*;
    use hekaton_core::LocalEngine;

    /// Every constant is measured. The test only demands that times exist, so no clock can fail it.
    #[test]
    fn all_that_exists_is_measured() {
        let engine = LocalEngine::new(None).unwrap();
        let found = calibrate(&engine, "0.1.0", "test", &|_| ()).unwrap();
        assert_eq!(found.absent(), [], "every constant");
        for (constant, found) in found.iter() {
            assert!(constant.allows(found.value), "{}: {}", constant.name(), found.value);
            let [low, high] = found.interval.unwrap();
            assert!(low <= found.value && found.value <= high, "{}", constant.name());
        }
        for design in Design::ALL {
            let needed = Constant::of_design(&design);
            assert!(needed.iter().all(|constant| found.get(*constant).is_ok()));
        }
    }
}
