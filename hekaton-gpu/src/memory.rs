//! The memory that types take on a device, and the time of their proofs.

use crate::msm::{Curve, Sizes};
use hekaton_arith::{G1Point, G2Point};
use hekaton_core::mirage::ProvingKey;

/// The rows of a batch that occupy a device.
const ROWS: usize = 1 << 20;
/// The largest batch, since each of its subcircuits waits in a thread of its own.
const BATCH: usize = 32;
/// The batches that have a place for their assignments: the one that computes, and the one that is copied.
pub(crate) const PLACES: usize = 2;

/// The seconds of an H200 per batch, per row, and per row of full-size values: fitted to batches of 2^18 to 2^21 rows with multiples
/// of points (hekaton-gpu/results/2026-11-27-h200), to 15 %.
const H200: [f64; 3] = [10e-3, 17e-9, 22.5e-9];

/// The sizes of a type that decide how much memory it takes on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeMemory {
    /// The number of variables.
    pub variables: u64,
    /// The number of constraints.
    pub constraints: u64,
    /// The number of elements of the domain.
    pub domain: u64,
    /// The number of entries of all matrices.
    pub entries: u64,
    /// The number of points of the queries A, X, L, H and D.
    pub g1: [usize; 5],
    /// The number of points of the query B.
    pub g2: usize,
}

impl TypeMemory {
    /// Returns the sizes of a key.
    pub fn of(key: &ProvingKey) -> Self {
        // Sections are in memory, so a usize counts their points.
        let count = |name: &str, size: usize| {
            usize::try_from(key.sections().bytes_of(name)).expect("a section in memory") / size
        };
        Self {
            variables: key.variables() as u64,
            constraints: key.constraints() as u64,
            domain: key.domain().size() as u64,
            entries: key.entries(),
            g1: ["a", "x", "l", "h", "d"].map(|name| count(name, size_of::<G1Point>())),
            g2: count("b", size_of::<G2Point>()),
        }
    }

    /// Returns the number of subcircuits of a batch on a device with this much memory; 0 if the type does not fit.
    pub fn batch(&self, memory: u64) -> usize {
        let domain = usize::try_from(self.domain).expect("domains have at most 2^32 elements");
        let most = (ROWS / domain.max(1)).clamp(1, BATCH);
        (1..=most).rev().find(|batch| self.bytes(*batch, false) <= memory).unwrap_or(0)
    }

    /// Reports whether the multiples of points fit: into half of the memory, so that two types that alternate can both have
    /// them.
    pub fn has_room_for_multiples(&self, memory: u64) -> bool {
        self.bytes(self.batch(memory), true) <= memory / 2
    }

    /// Returns the most bytes of a device's memory that the type takes, with batches of `vectors` subcircuits.
    pub fn bytes(&self, vectors: usize, multiples: bool) -> u64 {
        let Self { variables, constraints, domain, entries, g1, g2 } = *self;
        let most = g1.into_iter().fold(0, usize::max);
        let points = |points: usize, size: usize| {
            let windows = if multiples { Sizes::of(points, vectors, true).windows() } else { 1 };
            (points * size) as u64 * u64::from(windows)
        };
        // Each scalar and its digits twice, and for each bucket its sum twice and six numbers.
        let working = |points: usize, sum: usize| {
            let sizes = Sizes::of(points, vectors, multiples);
            let buckets = u64::from(sizes.rows()) << (sizes.bits - 1);
            let digits = points as u64 * (u64::from(sizes.windows()) * 8 + 32);
            vectors as u64 * (digits + buckets * (2 * sum as u64 + 24))
        };
        let keys = g1.map(|n| points(n, size_of::<G1Point>())).iter().sum::<u64>()
            + points(g2, size_of::<G2Point>());
        let matrices = entries * 8 + 3 * 4 * constraints;
        // Roots, thirds of them, and factors.
        let transforms = 4 * 32 * domain;
        let assignments = vectors as u64 * 32 * (PLACES as u64 * variables + 2 * domain);
        let sums = working(most, size_of::<<G1Point as Curve>::Sum>())
            + working(g2, size_of::<<G2Point as Curve>::Sum>());
        keys + matrices + transforms + assignments + sums
    }

    /// Returns the seconds that an H200 takes for a subcircuit in batches of this size. `full_size` is the share of values
    /// that are not small.
    pub fn seconds_on_h200(&self, batch: usize, full_size: f64) -> f64 {
        let [once, row, full_row] = H200;
        once / batch.max(1) as f64 + self.domain as f64 * (row + full_row * full_size)
    }
}
