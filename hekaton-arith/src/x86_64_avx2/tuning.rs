//! Thresholds from which lanes pay off, and batch sizes.

// Measured on a Zen 3, against blst one by one:

/// The number of pairs of points below which the portable addition is faster.
pub(super) const FEW_ADDITIONS: usize = 24;
/// Additions that share an inversion.
pub(super) const BATCH_G1: usize = 4096;
pub(super) const BATCH_G2: usize = 2048;
/// The number of points of G1 and G2 below which multiples are computed one by one: the same as in
/// the portable backend, whose additions few points use anyway.
pub(crate) use crate::portable::{FEW_MULTIPLES_G1, FEW_MULTIPLES_G2};
/// The number of pairs below which the portable Miller loop is faster (eight take 1.8 ms in lanes,
/// one takes 0.2 ms there).
pub(super) const FEW_MILLER_LOOPS: usize = 9;
/// The number of elements below which powers and final exponentiations are portable (eight take 2.4
/// ms in lanes, one takes 0.4 ms there).
pub(super) const FEW_POWERS: usize = 7;

/// `true` if products in Fq6 are summed before their reduction.
pub(super) const LAZY: bool = true;
