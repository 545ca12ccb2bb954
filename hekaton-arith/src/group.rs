//! The front for points: one trait, implemented by [`G1Point`] and [`G2Point`].

use crate::msm::Scalars;
use crate::points::{G1Point, G2Point, PointError};
use crate::scalar::canonical;
use crate::sums::add_each;
use crate::{backend, membership, msm, multiples, portable, sparse};
use ark_bls12_381::Fr;
use bytemuck::Pod;
use std::num::NonZeroUsize;

/// A group of prime order r whose elements are affine points.
///
/// All results are affine, hence canonical. Functions over slices normalize once per batch.
///
/// Sums and batched additions are correct for all points of the curve. Scalar multiplications
/// require points of the group: they replace x by `-(r - x)` and use endomorphisms, which yield
/// other multiples outside the group. Untrusted points must be checked first
/// ([`Group::find_outside`], [`Group::from_compressed`]).
pub trait Group: backend::Curve + Pod + PartialEq + Eq + std::fmt::Debug + Send + Sync {
    /// The neutral element, the point at infinity.
    const IDENTITY: Self;
    /// Length in bytes of the compressed encoding (Zcash's, which all BLS12-381 libraries use).
    const COMPRESSED: usize;

    /// Length in bytes of the uncompressed encoding: both coordinates.
    const UNCOMPRESSED: usize = size_of::<Self>();

    /// The standard generator.
    fn generator() -> Self;

    /// Encodes the point in [`Self::COMPRESSED`] bytes.
    fn to_compressed(&self) -> Vec<u8>;

    /// Decodes a point and checks the encoding and the curve, but not the subgroup, which takes
    /// most of the time of [`Self::from_compressed`]: for points that [`Self::find_outside`] checks
    /// in batches. Infinity is accepted.
    fn on_curve_from_compressed(bytes: &[u8]) -> Result<Self, PointError>;

    /// Writes the uncompressed encoding (Zcash's): x and y, big-endian, with a flag for infinity.
    ///
    /// # Panics
    /// If `out` is not [`Self::UNCOMPRESSED`] bytes long.
    fn write_uncompressed(&self, out: &mut [u8]);

    /// Decodes [`Self::write_uncompressed`] and checks the encoding and the curve, but not the subgroup:
    /// for points that a [`SubgroupCheck`](crate::SubgroupCheck) takes in batches. Infinity is accepted.
    fn on_curve_from_uncompressed(bytes: &[u8]) -> Result<Self, PointError>;

    /// Decodes a point and checks the encoding, the curve and the subgroup. Infinity is accepted.
    fn from_compressed(bytes: &[u8]) -> Result<Self, PointError> {
        let point = Self::on_curve_from_compressed(bytes)?;
        if point.is_in_group() { Ok(point) } else { Err(PointError::NotInSubgroup) }
    }

    /// Reports whether this is the point at infinity.
    fn is_identity(&self) -> bool {
        *self == Self::IDENTITY
    }

    /// Reports whether the point is on the curve and in the subgroup of order r.
    fn is_in_group(&self) -> bool;

    /// Checks points from an untrusted source: coordinates must be reduced, and the point on the
    /// curve and in the subgroup of order r. Returns the index of the first point that fails.
    ///
    /// Subgroup membership is checked in batches: points are assigned to buckets at random and only
    /// the bucket sums are checked, eight times over. `random` must be unpredictable to those who
    /// chose the points; a point outside the subgroup then passes with probability below 2^-64.
    fn find_outside(points: &[Self], random: &mut dyn FnMut() -> u64) -> Option<usize>;

    /// The index of the first point whose coordinates are not reduced or not on the curve. Does not
    /// check the subgroup.
    fn find_off_curve(points: &[Self]) -> Option<usize>;

    /// The inverse, `-self`.
    fn neg(&self) -> Self {
        portable::neg(self)
    }

    /// The sum, `self + other`.
    fn add(&self, other: &Self) -> Self;

    /// The difference, `self - other`.
    fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    /// The multiple `x self`.
    fn mul(&self, x: &Fr) -> Self;

    /// The sum of all points.
    ///
    /// # Panics
    /// If there are 2^31 points or more.
    fn sum(points: &[Self]) -> Self;

    /// The multi-scalar multiplication `sum_i scalars_i bases_i`.
    ///
    /// # Panics
    /// If the lengths differ: an MSM never truncates silently.
    fn msm(bases: &[Self], scalars: &[Fr]) -> Self {
        Self::msm_prepared(bases, &Scalars::new(scalars))
    }

    /// Same as [`Self::msm`], with scalars prepared for several MSMs.
    ///
    /// # Panics
    /// If the lengths differ.
    fn msm_prepared(bases: &[Self], scalars: &Scalars) -> Self {
        Self::msm_on_threads(bases, scalars, NonZeroUsize::MIN)
    }

    /// Same as [`Self::msm_prepared`], on `threads` threads that it starts itself, without locks.
    /// The result does not depend on their number.
    ///
    /// # Panics
    /// If the lengths differ, or the operating system cannot start a thread.
    fn msm_on_threads(bases: &[Self], scalars: &Scalars, threads: NonZeroUsize) -> Self;

    /// The products `scalars_i points_i`.
    ///
    /// # Panics
    /// If the lengths differ.
    fn mul_each(points: &[Self], scalars: &[Fr]) -> Vec<Self>;

    /// The products `x points_i`.
    fn mul_all(points: &[Self], x: &Fr) -> Vec<Self> {
        Self::mul_each(points, &vec![*x; points.len()])
    }

    /// The sums `sum_k c_k points[i_k]` of lists of terms `(i_k, c_k)`: a product with a sparse matrix. Terms
    /// with the coefficients 1 and -1 take an addition, others a multiplication. `ends` has the end in `terms`
    /// of each list.
    ///
    /// # Panics
    /// If an index is out of range, or the last of `ends` is not `terms.len()`.
    fn sparse_sums(points: &[Self], terms: &[(u32, Fr)], ends: &[u32]) -> Vec<Self>;

    /// The multiple by [`cube_root`](crate::cube_root), at the cost of a few field multiplications: the twiddle of a
    /// transform of three points.
    #[must_use]
    fn times_cube_root(&self) -> Self {
        // u^2 is a sixth root of unity z, and -z a third one.
        self.times_square_of_u().neg()
    }

    /// One GIPA round of the inner pairing product argument: `points_{2i} + x points_{2i+1}`, half
    /// as many points.
    ///
    /// # Panics
    /// If the length is odd.
    fn fold_pairs(points: &[Self], x: &Fr) -> Vec<Self> {
        assert!(points.len().is_multiple_of(2), "folding an odd number of points");
        let (mut even, odd): (Vec<_>, Vec<_>) =
            points.as_chunks().0.iter().map(|[even, odd]| (*even, *odd)).unzip();
        Self::batch_add(&mut even, &Self::mul_all(&odd, x));
        even
    }

    /// Adds `b_i` to `a_i` for each i, with one field inversion for the whole batch.
    ///
    /// # Panics
    /// If the lengths differ.
    fn batch_add(a: &mut [Self], b: &[Self]);
}

// In the implementations and not in the trait, so that they are compiled in this crate and nowhere else.
macro_rules! group {
    ($point:ty, $bytes:literal) => {
        impl Group for $point {
            const IDENTITY: Self = <$point as portable::Curve>::ZERO;
            const COMPRESSED: usize = $bytes;

            fn generator() -> Self {
                portable::generator()
            }

            fn to_compressed(&self) -> Vec<u8> {
                let mut out = [0u8; $bytes];
                portable::compress(self, &mut out);
                out.to_vec()
            }

            fn on_curve_from_compressed(bytes: &[u8]) -> Result<Self, PointError> {
                let bytes: &[u8; $bytes] = bytes.try_into().map_err(|_| PointError::Encoding)?;
                portable::decompress(bytes)
            }

            fn write_uncompressed(&self, out: &mut [u8]) {
                portable::serialize(self, out);
            }

            fn on_curve_from_uncompressed(bytes: &[u8]) -> Result<Self, PointError> {
                portable::deserialize(bytes)
            }

            fn is_in_group(&self) -> bool {
                portable::is_in_group(self)
            }

            fn find_outside(points: &[Self], random: &mut dyn FnMut() -> u64) -> Option<usize> {
                membership::find_outside(points, random)
            }

            fn find_off_curve(points: &[Self]) -> Option<usize> {
                points.iter().position(|p| !portable::is_on_curve(p))
            }

            fn add(&self, other: &Self) -> Self {
                portable::normalise_one(&portable::sum(&[*self, *other]))
            }

            fn mul(&self, x: &Fr) -> Self {
                let (bytes, bits) = canonical(x);
                portable::normalise_one(&portable::mul(self, &bytes, bits))
            }

            fn sum(points: &[Self]) -> Self {
                msm::sum(points)
            }

            fn msm_on_threads(bases: &[Self], scalars: &Scalars, threads: NonZeroUsize) -> Self {
                msm::msm(bases, scalars, threads.get())
            }

            fn mul_each(points: &[Self], scalars: &[Fr]) -> Vec<Self> {
                assert_eq!(points.len(), scalars.len(), "different numbers of points and scalars");
                multiples::mul_each(points, scalars)
            }

            fn sparse_sums(points: &[Self], terms: &[(u32, Fr)], ends: &[u32]) -> Vec<Self> {
                sparse::sums(points, terms, ends)
            }

            fn batch_add(a: &mut [Self], b: &[Self]) {
                add_each(a, b);
            }
        }
    };
}

group!(G1Point, 48);
group!(G2Point, 96);
