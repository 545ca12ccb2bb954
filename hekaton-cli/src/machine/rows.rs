//! The size of subcircuits with which the proof of a run takes the least work.

use hekaton_vm::{Counts, Input, MachineCircuit, Run, Sizes};

/// Powers of two that are compared.
const POWERS: std::ops::RangeInclusive<u32> = 12..=20;

// Fitted to the CPU time of proofs of 1,324 and of 431,253 cycles with 2^12 to 2^17 constraints, on one thread of a Zen 4: all twelve
// are within 11 %. Other machines take other times, in much the same proportions.
/// Seconds for each constraint of an operation with 2^14 rows. Multi-exponentiations take less per point the longer they are.
const OPERATION: f64 = 5.0e-6;
/// Seconds for each constraint of the domain, used or not.
const DOMAIN: f64 = 3.7e-6;
/// Seconds for each subcircuit.
const SUBCIRCUIT: f64 = 0.01;

/// The cheapest power of two, and its work over that of the size of an execution.
pub(crate) fn cheapest(execution: &MachineCircuit, run: &Run, input: &Input) -> (u32, f64) {
    let work = |execution: &MachineCircuit| {
        let domain = execution.sizes.rows.next_power_of_two();
        let shorter = 14.0 / f64::from(domain.ilog2());
        let operations = execution.sizes.constraints_of(run) as f64;
        let subcircuits = execution.subcircuits() as f64;
        OPERATION * shorter * shorter * operations
            + subcircuits * (DOMAIN * domain as f64 + SUBCIRCUIT)
    };
    let works = POWERS.filter_map(|power| {
        let sizes = Sizes { rows: 1 << power };
        let counts = Counts::of(run, &execution.program, input, sizes);
        let other = MachineCircuit { sizes, counts, ..execution.clone() };
        // Runs may be too long for small subcircuits.
        other.check().is_ok().then(|| (power, work(&other)))
    });
    let own = work(execution);
    let least = works.min_by(|a, b| a.1.total_cmp(&b.1));
    let (power, least) = least.unwrap_or((execution.sizes.rows.ilog2(), own));
    (power, least / own)
}
