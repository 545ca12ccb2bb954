//! The pairing, with Miller loops apart from the final exponentiation.
//!
//! A product of pairings needs one final exponentiation, and the parts of a product may be computed by different
//! threads or ranks: [`MillerLoop`] is such a part.

use crate::points::fq;
use crate::{G1Point, G2Point, Group, Gt, backend, portable};
use ark_bls12_381::Fq;
use ark_ff::PrimeField;
use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};

/// Two points to be paired.
pub type Pair<'a> = (&'a G1Point, &'a G2Point);

/// Pairs of points of two vectors.
///
/// # Panics
/// When the lengths differ.
pub fn pairs<'a>(a: &'a [G1Point], b: &'a [G2Point]) -> impl Iterator<Item = Pair<'a>> {
    assert_eq!(a.len(), b.len(), "a product of pairings over different numbers of points");
    a.iter().zip(b)
}

/// Why bytes are no Miller loop's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no value of a Miller loop (a wrong length, a coordinate that is not reduced, or zero)")]
pub struct MillerLoopError;

/// The product of the Miller loops of some pairs, before the final exponentiation. Not canonical: only
/// [`MillerLoop::finish`] gives a group element.
#[derive(Clone, Copy, Debug)]
pub struct MillerLoop(blst_fp12);

impl MillerLoop {
    /// Length of the encoding in bytes: twelve coordinates of Fq.
    pub const BYTES: usize = 576;

    /// How it goes from one rank to another: the coordinates' limbs as they lie in memory, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let coordinates = self.0.fp6.iter().flat_map(|x| &x.fp2).flat_map(|x| &x.fp);
        coordinates.flat_map(|x| x.l).flat_map(u64::to_le_bytes).collect()
    }

    /// Decodes.
    ///
    /// # Errors
    /// When the length is wrong, a coordinate is not below q, or the value is zero, which no Miller loop has.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MillerLoopError> {
        let (limbs, rest) = bytes.as_chunks::<8>();
        let limbs: Vec<u64> = limbs.iter().map(|limb| u64::from_le_bytes(*limb)).collect();
        let (coordinates, more) = limbs.as_chunks::<6>();
        if bytes.len() != Self::BYTES || !rest.is_empty() || !more.is_empty() {
            return Err(MillerLoopError);
        }
        if coordinates.iter().any(|x| fq(*x).0 >= Fq::MODULUS) || limbs.iter().all(|limb| *limb == 0) {
            return Err(MillerLoopError);
        }
        let fp = |at: usize| blst_fp { l: coordinates[at] };
        let fp2 = |at: usize| blst_fp2 { fp: [fp(at), fp(at + 1)] };
        let fp6 = |at: usize| blst_fp6 { fp2: [fp2(at), fp2(at + 2), fp2(at + 4)] };
        Ok(Self(blst_fp12 { fp6: [fp6(0), fp6(6)] }))
    }

    /// The empty product.
    pub fn one() -> Self {
        Self(portable::fp12_one())
    }

    /// `prod_i f(a_i, b_i)`; pairs with a point at infinity contribute nothing.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn new(a: &[G1Point], b: &[G2Point]) -> Self {
        Self::of_pairs(pairs(a, b))
    }

    /// [`MillerLoop::new`] over an iterator of pairs.
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = Pair<'a>>) -> Self {
        let [product] = Self::many([pairs.into_iter().collect()]);
        product
    }

    /// A product for each list of pairs. In lanes short lists together take less time than one by one.
    pub fn many<const N: usize>(mut lists: [Vec<Pair<'_>>; N]) -> [Self; N] {
        for pairs in &mut lists {
            pairs.retain(|(a, b)| !a.is_identity() && !b.is_identity());
        }
        let products = backend::miller_loops(&lists);
        std::array::from_fn(|i| Self(products[i]))
    }

    /// The product of two parts.
    #[must_use]
    pub fn combine(&self, other: &Self) -> Self {
        Self(portable::fp12_mul(&self.0, &other.0))
    }

    /// The product of many parts.
    pub fn product(parts: impl IntoIterator<Item = Self>) -> Self {
        parts.into_iter().fold(Self::one(), |acc, part| acc.combine(&part))
    }

    /// The final exponentiation.
    pub fn finish(&self) -> Gt {
        let [finished] = Self::finish_all([*self]);
        finished
    }

    /// Many final exponentiations: in lanes eight take little more time than one.
    pub fn finish_all<const N: usize>(loops: [Self; N]) -> [Gt; N] {
        let finished = backend::final_exponentiations(&loops.map(|product| product.0));
        std::array::from_fn(|i| Gt(finished[i]))
    }
}

/// `e(a, b)`.
pub fn pairing(a: &G1Point, b: &G2Point) -> Gt {
    MillerLoop::of_pairs([(a, b)]).finish()
}
