//! The pairing, with Miller loops apart from the final exponentiation.
//!
//! A product of pairings needs one final exponentiation, and the parts of a product may be computed by different
//! threads or ranks: [`MillerLoop`] is such a part.

use crate::{G1Point, G2Point, Group, Gt, portable};
use blst::blst_fp12;

/// The product of the Miller loops of some pairs, before the final exponentiation. Not canonical: only
/// [`MillerLoop::finish`] gives a group element.
#[derive(Clone, Copy, Debug)]
pub struct MillerLoop(blst_fp12);

impl MillerLoop {
    /// The empty product.
    pub fn one() -> Self {
        Self(portable::fp12_one())
    }

    /// `prod_i f(a_i, b_i)`; pairs with a point at infinity contribute nothing.
    ///
    /// # Panics
    /// When the lengths differ.
    pub fn new(a: &[G1Point], b: &[G2Point]) -> Self {
        assert_eq!(a.len(), b.len(), "a product of pairings over different numbers of points");
        Self::of_pairs(a.iter().zip(b))
    }

    /// [`MillerLoop::new`] over an iterator of pairs.
    pub fn of_pairs<'a>(pairs: impl IntoIterator<Item = (&'a G1Point, &'a G2Point)>) -> Self {
        let (a, b): (Vec<_>, Vec<_>) = pairs.into_iter().filter(|(a, b)| !a.is_identity() && !b.is_identity()).unzip();
        if a.is_empty() { Self::one() } else { Self(portable::miller_loop(&a, &b)) }
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
        Gt(portable::final_exponentiation(&self.0))
    }
}

/// `e(a, b)`.
pub fn pairing(a: &G1Point, b: &G2Point) -> Gt {
    MillerLoop::of_pairs([(a, b)]).finish()
}
