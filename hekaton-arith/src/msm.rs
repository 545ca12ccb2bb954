//! Multi-scalar multiplication that looks at its scalars first.
//!
//! Witnesses are mostly zeros and ones. Zeros are skipped, ones are added up by batched affine additions, scalars of
//! at most 64 bits go through a bucket method with a quarter of the windows, the rest through the full one.

use crate::{Fr, Group, portable, scalar::fr_to_bytes};

/// Scalars at most this long in bits count as small.
const SMALL_BITS: usize = 64;
/// The length of the others.
const FULL_BITS: usize = 255;

/// The scalars of a multi-scalar multiplication, sorted by size once so that several MSMs can share the work.
#[derive(Clone, Debug, Default)]
pub struct Scalars {
    len: usize,
    ones: Vec<u32>,
    small: Vec<(u32, u64)>,
    full: Vec<(u32, [u8; 32])>,
}

impl Scalars {
    /// Sorts the scalars.
    ///
    /// # Panics
    /// When there are 2^32 scalars or more.
    pub fn new(scalars: &[Fr]) -> Self {
        Self::gather(scalars.len(), scalars.iter().copied())
    }

    /// Sorts `values[index]` for each index, in that order.
    ///
    /// # Panics
    /// When an index is out of bounds.
    pub fn select(values: &[Fr], indices: &[u32]) -> Self {
        Self::gather(indices.len(), indices.iter().map(|i| values[*i as usize]))
    }

    fn gather(len: usize, scalars: impl Iterator<Item = Fr>) -> Self {
        use ark_ff::{Field, Zero};
        assert!(u32::try_from(len).is_ok(), "an MSM of 2^32 or more scalars");
        let mut out = Self { len, ..Self::default() };
        for (i, x) in scalars.enumerate() {
            let i = i as u32;
            if x.is_zero() {
            } else if x == Fr::ONE {
                out.ones.push(i);
            } else {
                let bytes = fr_to_bytes(&x);
                let (low, high) = bytes.split_at(8);
                if high.iter().all(|b| *b == 0) {
                    let low = low.iter().rev().fold(0, |acc, b| acc << 8 | u64::from(*b));
                    out.small.push((i, low));
                } else {
                    out.full.push((i, bytes));
                }
            }
        }
        out
    }

    /// What an MSM over these scalars will cost.
    pub fn work(&self) -> MsmWork {
        let longest = self.small.iter().fold(0, |acc, (_, x)| acc | x);
        let small = bucket_additions(self.small.len(), SMALL_BITS - longest.leading_zeros() as usize);
        let additions = small + bucket_additions(self.full.len(), FULL_BITS);
        MsmWork { ones: self.ones.len() as f64, additions }
    }

    /// Number of scalars, zeros included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The cost of an MSM in additions, for foreseeing times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MsmWork {
    /// Points that are only added up.
    pub ones: f64,
    /// Additions of the bucket methods.
    pub additions: f64,
}

impl MsmWork {
    /// An MSM over `n` long scalars.
    pub fn of_long(n: usize) -> Self {
        Self { ones: 0.0, additions: bucket_additions(n, FULL_BITS) }
    }
}

/// Additions of the bucket method: each window puts every point into a bucket and sums the buckets up.
fn bucket_additions(points: usize, bits: usize) -> f64 {
    if points == 0 || bits == 0 {
        return 0.0;
    }
    // the backend's choice of windows
    let log = points.ilog2() as usize;
    let window = match log {
        13.. => log - 3,
        5.. => log - 2,
        0 => 1,
        _ => 2,
    };
    (bits.div_ceil(window) * (points + (1 << window))) as f64 + bits as f64
}

pub(crate) fn msm<G: Group>(bases: &[G], scalars: &Scalars) -> G {
    assert_eq!(bases.len(), scalars.len, "an MSM over different numbers of bases and scalars");
    let base = |i: &u32| &bases[*i as usize];
    let mut parts = Vec::with_capacity(3);
    if !scalars.ones.is_empty() {
        parts.push(portable::sum_of(&scalars.ones.iter().map(base).collect::<Vec<_>>()));
    }
    if !scalars.small.is_empty() {
        let points: Vec<&G> = scalars.small.iter().map(|(i, _)| base(i)).collect();
        let longest = scalars.small.iter().fold(0, |acc, (_, x)| acc | x);
        let bits = SMALL_BITS - longest.leading_zeros() as usize;
        let bytes: Vec<u8> =
            scalars.small.iter().flat_map(|(_, x)| x.to_le_bytes().into_iter().take(bits.div_ceil(8))).collect();
        parts.push(portable::pippenger(&points, &bytes, bits));
    }
    if !scalars.full.is_empty() {
        let points: Vec<&G> = scalars.full.iter().map(|(i, _)| base(i)).collect();
        let bytes: Vec<u8> = scalars.full.iter().flat_map(|(_, x)| *x).collect();
        parts.push(portable::pippenger(&points, &bytes, FULL_BITS));
    }
    portable::normalise_one(&portable::sum_projective::<G>(&parts))
}
