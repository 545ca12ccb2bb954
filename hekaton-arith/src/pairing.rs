//! The pairing, with Miller loops separate from the final exponentiation.
//!
//! A product of pairings needs only one final exponentiation, and different threads or ranks may
//! compute its factors: [`MillerLoop`] is such a factor.

use crate::backend;
use crate::group::Group;
use crate::gt::Gt;
use crate::points::{G1Point, G2Point, Pair, fq, pairs};
use crate::portable;
use ark_bls12_381::Fq;
use ark_ff::PrimeField;
use blst::{blst_fp, blst_fp2, blst_fp6, blst_fp12};

/// The bytes do not encode the value of a Miller loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the value of a Miller loop (wrong length, unreduced coordinate, or zero)")]
pub struct MillerLoopError;

/// The product of the Miller loops of some pairs, before the final exponentiation. It is not
/// canonical: only [`MillerLoop::finish`] returns a group element.
#[derive(Clone, Copy, Debug)]
pub struct MillerLoop(blst_fp12);

impl MillerLoop {
    /// Length of the encoding in bytes: twelve coordinates of Fq.
    pub const BYTES: usize = 576;

    /// The encoding for sending it to another rank: the limbs of the coordinates as they are in
    /// memory, little-endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let coordinates = self.0.fp6.iter().flat_map(|x| &x.fp2).flat_map(|x| &x.fp);
        coordinates.flat_map(|x| x.l).flat_map(u64::to_le_bytes).collect()
    }

    /// Decodes [`MillerLoop::to_bytes`].
    ///
    /// # Errors
    /// If the length is wrong, a coordinate is not below q, or the value is zero, which no Miller
    /// loop returns.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, MillerLoopError> {
        let (words, rest) = bytes.as_chunks::<8>();
        let limbs: Vec<u64> = words.iter().map(|limb| u64::from_le_bytes(*limb)).collect();
        let (coordinates, more) = limbs.as_chunks::<6>();
        if bytes.len() != Self::BYTES || !rest.is_empty() || !more.is_empty() {
            return Err(MillerLoopError);
        }
        if coordinates.iter().any(|x| fq(*x).0 >= Fq::MODULUS)
            || limbs.iter().all(|limb| *limb == 0)
        {
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

    /// The product `prod_i f(a_i, b_i)`; pairs with a point at infinity contribute nothing.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn new(a: &[G1Point], b: &[G2Point]) -> Self {
        Self::of_pairs(pairs(a, b))
    }

    /// Same as [`MillerLoop::new`], from an iterator of pairs.
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = Pair<'a>>) -> Self {
        let [product] = Self::many([pairs.into_iter().collect()]);
        product
    }

    /// One product per list of pairs. With AVX2 or AVX-512, several short lists together take less
    /// time than one after another.
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

    /// Applies the final exponentiation.
    pub fn finish(&self) -> Gt {
        let [finished] = Self::finish_all([*self]);
        finished
    }

    /// Applies many final exponentiations: with AVX2 or AVX-512, eight take little more time than
    /// one.
    pub fn finish_all<const N: usize>(loops: [Self; N]) -> [Gt; N] {
        let finished = backend::final_exponentiations(&loops.map(|product| product.0));
        std::array::from_fn(|i| Gt(finished[i]))
    }
}

/// The pairing `e(a, b)`.
pub fn pairing(a: &G1Point, b: &G2Point) -> Gt {
    MillerLoop::of_pairs([(a, b)]).finish()
}
