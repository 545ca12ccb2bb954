//! The work of a run, as far as a prediction depends on it.

use crate::estimate::{Estimate, TypeEstimate, aggregation_key_bytes};
use crate::memory::TypeSize;

/// The subcircuits of a run. Means are over subcircuits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The total number of constraints.
    pub constraints: f64,
    /// The number of subcircuits.
    pub subcircuits: u64,
    /// Shared wires per subcircuit (mean), without mask wires.
    pub wires: f64,
    /// Mask wires per subcircuit: 2 for zero-knowledge proofs, otherwise 0.
    pub mask_wires: f64,
    /// Bytes of private input per subcircuit (mean), as encoded in a job.
    pub private_bytes: f64,
    /// The time to commit to and prove a subcircuit on an idle core (mean), in seconds.
    pub alone_seconds: f64,
    /// The time to execute a subcircuit, without its shared wires (mean), in seconds.
    pub execute_seconds: f64,
    /// The time to compare the keys of all types with the circuit's code when a run starts, one
    /// thread per type, in seconds: of all types together, and of the largest one.
    pub match_seconds: [f64; 2],
    /// The size of all keys, in bytes.
    pub key_bytes: f64,
    /// The sizes of the evaluation domains of all types together, in elements.
    pub all_domains: f64,
    /// The size of the largest domain, in elements.
    pub largest_domain: f64,
}

impl Load {
    /// The load of an estimated circuit. The estimate should be of one idle core, because the
    /// prediction itself accounts for a busy node. `execute_occurrence` is the time to execute one
    /// shared wire of one subcircuit, in seconds.
    pub fn of_estimate(estimate: &Estimate, mask_wires: u64, execute_occurrence: f64) -> Self {
        let n = estimate.subcircuits.max(1) as f64;
        let mean = |f: &dyn Fn(usize) -> f64| {
            let sum = |(i, t): (usize, &TypeSize)| t.instances as f64 * f(i);
            estimate.types.iter().map(|t| &t.size).enumerate().map(sum).sum::<f64>() / n
        };
        let types = &estimate.types;
        // Slots of an estimate include the masks, which are counted apart here.
        let wires = (mean(&|i| types[i].size.slots as f64) - mask_wires as f64).max(0.0);
        let domains = || types.iter().map(|t| t.size.domain as f64);
        Self {
            constraints: estimate.constraints as f64,
            subcircuits: estimate.subcircuits.max(1),
            wires,
            mask_wires: mask_wires as f64,
            private_bytes: mean(&|i| types[i].private_bytes as f64),
            alone_seconds: mean(&|i| types[i].commit_seconds + types[i].prove_seconds),
            // The second phase of an estimate is the measured execution of the whole circuit.
            execute_seconds: (estimate.phases[1] / n - wires * execute_occurrence).max(0.0),
            match_seconds: [
                types.iter().map(|t| t.match_seconds).sum(),
                types.iter().map(|t| t.match_seconds).fold(0.0, f64::max),
            ],
            key_bytes: estimate.key_bytes as f64,
            all_domains: domains().sum(),
            largest_domain: domains().fold(0.0, f64::max),
        }
    }

    /// The load with the subcircuits' times at the ends of their measured interval: the fastest, and
    /// the slowest.
    pub fn bounds(&self, estimate: &Estimate) -> [Self; 2] {
        let sum = |f: &dyn Fn(&TypeEstimate) -> f64| -> f64 {
            estimate.types.iter().map(|t| t.size.instances as f64 * f(t)).sum()
        };
        let median = sum(&|t| t.commit_seconds + t.prove_seconds);
        let at = |end: usize| {
            // The interval of a type is of both rounds together, so one factor scales the whole time.
            let factor = if median > 0.0 { sum(&|t| t.interval[end]) / median } else { 1.0 };
            Self { alone_seconds: self.alone_seconds * factor, ..*self }
        };
        [at(0), at(1)]
    }

    /// The load of another number of subcircuits of the same mean size.
    #[must_use]
    pub fn with_subcircuits(self, subcircuits: u64) -> Self {
        let factor = subcircuits as f64 / self.subcircuits as f64;
        // Types keep their keys; only the aggregation key grows with the number of subcircuits.
        let aggregation =
            |n: u64| usize::try_from(n).map_or(f64::INFINITY, |n| aggregation_key_bytes(n) as f64);
        Self {
            constraints: self.constraints * factor,
            subcircuits,
            key_bytes: self.key_bytes - aggregation(self.subcircuits) + aggregation(subcircuits),
            ..self
        }
    }

    /// Wires per subcircuit, mask wires included.
    pub(super) fn slots(&self) -> f64 {
        self.wires + self.mask_wires
    }
}
