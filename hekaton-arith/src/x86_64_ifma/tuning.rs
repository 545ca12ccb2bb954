//! Thresholds from which lanes pay off, and batch sizes.

/// The number of pairs below which the portable addition is faster, by counting: it takes 0.2 us in
/// G1 and 0.5 us in G2 per addition, both have one inversion, and the products of a vector and
/// those around the inversion wait for each other for about 1 us.
pub(super) const FEW_ADDITIONS: usize = 5;
/// Additions that share an inversion. G1 keeps 320 KiB for this many and G2 640 KiB, which stays in
/// the second-level cache (on Zen 5 an MSM in G1 takes 6 % longer with 4,096; on Zen 4 one in G2
/// takes as long with 512).
pub(super) const BATCH_G1: usize = 1024;
pub(super) const BATCH_G2: usize = 1024;
/// The number of points of G1 and G2 below which multiples are computed one by one: on Zen 4 eight
/// in lanes take 0.83 and 0.81 ms, a single one 0.083 and 0.165 ms.
pub(crate) const FEW_MULTIPLES_G1: usize = 12;
pub(crate) const FEW_MULTIPLES_G2: usize = 6;
/// The number of pairs below which the portable Miller loop is faster: on Zen 4 a loop of up to
/// eight pairs takes 0.65 ms in lanes, and 0.09 ms plus 0.17 ms per pair with blst.
pub(super) const FEW_MILLER_LOOPS: usize = 4;
/// The number of elements below which powers and final exponentiations are portable: on Zen 4 up to
/// eight take 0.86 ms in lanes, and 0.34 ms each with blst.
pub(super) const FEW_POWERS: usize = 3;

/// `true` if products in Fq6 are summed before their reduction: it would save a fifth of the
/// multiply-adds, but the wide values take more time to store and load.
pub(super) const LAZY: bool = false;
