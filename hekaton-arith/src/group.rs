//! The front for points: one trait, implemented by [`G1Point`] and [`G2Point`].

use crate::sums::{add_each, sum_groups};
use crate::{
    Fr, G1Point, G2Point, PointError, Scalars, backend, membership, msm, multiples, portable, scalar::canonical,
};
use bytemuck::Pod;
use std::num::NonZeroUsize;

/// A group of prime order r whose elements are affine points.
///
/// All results are affine, hence canonical. Functions over slices do one batched normalisation.
///
/// Sums and batched additions are right for all points of the curve. Products with scalars are for points of the group: they
/// take `-(r - x)` for x, and endomorphisms for multiples, which are other multiples outside it. What comes from outside is
/// checked first ([`Group::find_outside`], [`Group::from_compressed`]).
pub trait Group: backend::Curve + Pod + PartialEq + Eq + std::fmt::Debug + Send + Sync {
    /// The neutral element, the point at infinity.
    const IDENTITY: Self;
    /// Length in bytes of the compressed encoding (the one of Zcash, as used by all BLS12-381 libraries).
    const COMPRESSED: usize;

    /// The standard generator.
    fn generator() -> Self;

    /// The compressed encoding, [`Self::COMPRESSED`] bytes.
    fn to_compressed(&self) -> Vec<u8>;

    /// Decodes a point; checks the encoding, the curve and the subgroup. Infinity is accepted.
    fn from_compressed(bytes: &[u8]) -> Result<Self, PointError>;

    /// Whether this is the point at infinity.
    fn is_identity(&self) -> bool {
        *self == Self::IDENTITY
    }

    /// On the curve and in the subgroup of order r.
    fn is_in_group(&self) -> bool {
        portable::is_in_group(self)
    }

    /// Reduced coordinates, on the curve and in the subgroup of order r, for points that lie in memory as they came. Gives
    /// the index of the first that is not.
    ///
    /// Membership in the subgroup is checked in batches: points are thrown into buckets at random, and only the buckets'
    /// sums are checked, eight times. `random` must be unpredictable for whoever made the points: points outside the
    /// subgroup pass with a probability below 2^-64.
    fn find_outside(points: &[Self], random: &mut dyn FnMut() -> u64) -> Option<usize> {
        membership::find_outside(points, random)
    }

    /// The index of the first point whose coordinates are not reduced or not on the curve. The subgroup is not checked.
    fn find_off_curve(points: &[Self]) -> Option<usize> {
        points.iter().position(|p| !portable::is_on_curve(p))
    }

    /// `-self`.
    fn neg(&self) -> Self {
        portable::neg(self)
    }

    /// `self + other`.
    fn add(&self, other: &Self) -> Self {
        portable::normalise_one(&portable::sum(&[*self, *other]))
    }

    /// `self - other`.
    fn sub(&self, other: &Self) -> Self {
        self.add(&other.neg())
    }

    /// `x self`.
    fn mul(&self, x: &Fr) -> Self {
        let (bytes, bits) = canonical(x);
        portable::normalise_one(&portable::mul(self, &bytes, bits))
    }

    /// The sum of all points.
    ///
    /// # Panics
    /// When there are 2^31 points or more.
    fn sum(points: &[Self]) -> Self {
        if points.len() < 64 {
            return portable::normalise_one(&portable::sum(points));
        }
        assert!(points.len() < 1 << 31, "a sum of 2^31 or more points");
        let all: Vec<u32> = (0..points.len() as u32).collect();
        sum_groups(points, &all, &[all.len() as u32])[0]
    }

    /// `sum_i scalars_i bases_i`.
    ///
    /// # Panics
    /// When the lengths differ: an MSM never shortens silently.
    fn msm(bases: &[Self], scalars: &[Fr]) -> Self {
        msm::msm(bases, &Scalars::new(scalars), 1)
    }

    /// [`Self::msm`] with scalars that were prepared for several of them.
    ///
    /// # Panics
    /// When the lengths differ.
    fn msm_prepared(bases: &[Self], scalars: &Scalars) -> Self {
        msm::msm(bases, scalars, 1)
    }

    /// [`Self::msm_prepared`] on so many threads of its own, without locks. The result does not depend on their number.
    ///
    /// # Panics
    /// When the lengths differ, or the operating system gives no threads.
    fn msm_on_threads(bases: &[Self], scalars: &Scalars, threads: NonZeroUsize) -> Self {
        msm::msm(bases, scalars, threads.get())
    }

    /// `scalars_i points_i` for each i.
    ///
    /// # Panics
    /// When the lengths differ.
    fn mul_each(points: &[Self], scalars: &[Fr]) -> Vec<Self> {
        assert_eq!(points.len(), scalars.len(), "points and scalars of different length");
        multiples::mul_each(points, scalars)
    }

    /// `x points_i` for each i.
    fn mul_all(points: &[Self], x: &Fr) -> Vec<Self> {
        multiples::mul_each(points, &vec![*x; points.len()])
    }

    /// One halving of an inner-product argument: `points_{2i} + x points_{2i+1}`, half as many points.
    ///
    /// # Panics
    /// When the length is odd.
    fn fold_pairs(points: &[Self], x: &Fr) -> Vec<Self> {
        assert!(points.len().is_multiple_of(2), "folding an odd number of points");
        let (mut even, odd): (Vec<_>, Vec<_>) = points.as_chunks().0.iter().map(|[even, odd]| (*even, *odd)).unzip();
        Self::batch_add(&mut even, &Self::mul_all(&odd, x));
        even
    }

    /// `a_i += b_i` for each i, with one field inversion for the whole batch.
    ///
    /// # Panics
    /// When the lengths differ.
    fn batch_add(a: &mut [Self], b: &[Self]) {
        add_each(a, b);
    }
}

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

            fn from_compressed(bytes: &[u8]) -> Result<Self, PointError> {
                let bytes: &[u8; $bytes] = bytes.try_into().map_err(|_| PointError::Encoding)?;
                portable::decompress(bytes)
            }
        }
    };
}

group!(G1Point, 48);
group!(G2Point, 96);
