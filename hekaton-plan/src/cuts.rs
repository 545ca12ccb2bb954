//! The cost of a run of a circuit that is cut into parts, estimated from numbers alone, before there are
//! constraints, keys or a witness.
//!
//! Cuts are chosen by this cost. It uses the kernels of the same reference machine everywhere, so that all
//! machines choose the same cut of a circuit, and keys match.

use crate::calibration::{Calibration, Units};
use crate::estimate::{Kernels, RunTimes, TypeTimes, Workers, aggregation_key_bytes, run_times};
use crate::memory::{Columns, TypeSize};
use hekaton_arith::{Domain, MsmWork};
use hekaton_circuit::Masking;
use hekaton_circuit::prover::VariableLayout;

/// The cost of a term of a constraint, and of a value that is read, in butterflies.
const TERM: f64 = 4.0;
const VALUE: f64 = 8.0;
/// The cost to execute a slot, in butterflies.
const SLOT: f64 = 50.0;
/// The cost of setup, in additions in G1 per byte of a key.
const SETUP: f64 = 0.1;
/// The number of proofs among which the cost of setup is divided. Without it, the cheapest cut for one run
/// could have keys that take hours to make.
const PROOFS: f64 = 10.0;

/// A number of equal parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct CutType {
    /// The number of these parts.
    pub parts: u64,
    /// Constraints of a part, without those of the memory check.
    pub constraints: u64,
    /// Slots of a part, without masks.
    pub slots: u64,
    /// Own variables of a part.
    pub own: u64,
    /// Own variables whose values are 0 or 1.
    pub bits: u64,
    /// Variables that occur in A.
    pub in_a: u64,
    /// Variables that occur in B.
    pub in_b: u64,
    /// Terms of all constraints of a part.
    pub terms: u64,
}

/// The cost of a cut.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct CutCost {
    /// The seconds of each phase of a run, as [`Estimate::phases`](crate::Estimate::phases) has them.
    pub phases: [f64; 5],
    /// The processor time of a run, in seconds.
    pub cpu_seconds: f64,
    /// The seconds that setup takes.
    pub setup_seconds: f64,
    /// The size of all keys on disk, in bytes.
    pub key_bytes: u64,
}

impl CutCost {
    /// The seconds of a run.
    pub fn run_seconds(&self) -> f64 {
        self.phases.iter().sum()
    }

    /// The seconds of a run, with the share of the setup that falls to each of ten runs.
    pub fn seconds(&self) -> f64 {
        self.run_seconds() + self.setup_seconds / PROOFS
    }
}

/// A count as a number of items in memory. The counts of a cut are those of a circuit that was read.
fn number(count: u64) -> usize {
    usize::try_from(count).expect("a circuit in memory has fewer than 2^64 items")
}

/// A multi-scalar multiplication over full-size scalars and bits.
fn msm(all: u64, bits: u64) -> MsmWork {
    let long = number(all.saturating_sub(bits));
    // Every other bit is 0.
    MsmWork { ones: bits.min(all) as f64 / 2.0, ..MsmWork::of_long(long) }
}

impl CutType {
    /// The sizes of the type with its key, and the seconds of both rounds.
    fn times(&self, units: &Units) -> (TypeSize, [f64; 2]) {
        let Self { parts, own, bits, in_a, in_b, terms, .. } = *self;
        let masking = Masking::Masked;
        let own_slots = number(self.slots);
        let layout = VariableLayout::new(own_slots.saturating_add(masking.slots()), masking);
        let rows = layout.rows().saturating_add(number(self.constraints));
        let slots = layout.slots() as u64;
        let size = TypeSize {
            name: String::new(),
            constraints: rows as u64,
            variables: layout.len() as u64 + own,
            domain: Domain::size_for(rows) as u64,
            slots,
            instances: parts,
            key_bytes: 0,
            largest_part: 0,
            // A fingerprint row has five entries, and its inverse one more in row 0.
            entries: terms + 6 * slots,
            kept_bytes: 0,
        };
        // Each fingerprint row has the inverse of a slot in A and its value in B.
        let columns = Columns {
            own: own + slots,
            a: in_a + slots,
            b: in_b + slots,
            c: slots,
            coefficients: 0,
        };
        let kernels = Kernels::new(
            &size,
            [msm(own + slots, bits), msm(in_a + slots, bits), msm(slots, 0)],
            msm(in_b + slots, bits),
        );
        let values = TERM * size.entries as f64 + VALUE * size.variables as f64;
        let prove = kernels.seconds(units) + values * units.butterfly;
        let commit = Units::msm(units.g1, msm(slots, 0)) + 100.0 * units.g1[0];
        (size.with_key(columns), [commit, prove])
    }
}

/// Estimates a run of a circuit that is cut into these parts, and its setup, on machines like the one
/// of [`Calibration::reference`].
pub fn cut_cost(types: &[CutType], workers: Workers) -> CutCost {
    let units = Calibration::reference().median;
    let sizes: Vec<(TypeSize, [f64; 2])> = types.iter().map(|kind| kind.times(&units)).collect();
    let times: Vec<TypeTimes<'_>> = (sizes.iter())
        .map(|(size, [commit, prove])| TypeTimes { size, commit: *commit, prove: *prove })
        .collect();
    let type_keys: u64 = sizes.iter().map(|(size, _)| size.key_bytes).sum();
    let parts: u64 = types.iter().map(|kind| kind.parts).sum();
    let slots: u64 = types.iter().map(|kind| kind.parts * kind.slots).sum();
    let key_bytes = type_keys + aggregation_key_bytes(number(parts));
    let execute = SLOT * units.butterfly * slots as f64;
    let RunTimes { phases, cpu_seconds } =
        run_times(&times, &units, workers, workers.threads, key_bytes, execute);
    let threads = (workers.threads * workers.ranks).max(1) as f64;
    let setup_seconds = SETUP * units.g1[0] * key_bytes as f64 / threads;
    CutCost { phases, cpu_seconds, setup_seconds, key_bytes }
}
