//! Affine points, in the form they have in memory, in key files and on the wire.

use ark_bls12_381::{Fq, Fq2, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use bytemuck::{Pod, Zeroable};

/// Why bytes are not a point of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// The bytes are not a canonical compressed encoding.
    #[error("not a canonical compressed point (bad flags or an unreduced coordinate)")]
    Encoding,
    /// No point of the curve has this x coordinate.
    #[error("the point is not on the curve")]
    NotOnCurve,
    /// The point is on the curve, but not in the subgroup of order r.
    #[error("the point is not in the subgroup of prime order")]
    NotInSubgroup,
}

/// An affine point of G1: x and y in Montgomery form, six limbs each; all zeros is the point at
/// infinity.
///
/// Plain data of 96 bytes without padding, so a memory-mapped key section is a `&[G1Point]`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct G1Point {
    pub(crate) x: [u64; 6],
    pub(crate) y: [u64; 6],
}

/// An affine point of G2: x and y in Fq2 in Montgomery form; all zeros is the point at infinity.
/// Plain data of 192 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct G2Point {
    pub(crate) x: [[u64; 6]; 2],
    pub(crate) y: [[u64; 6]; 2],
}

/// The two arguments of a pairing.
pub type Pair<'a> = (&'a G1Point, &'a G2Point);

/// Pairs up the points of two vectors.
///
/// # Panics
/// If the lengths differ.
pub fn pairs<'a>(a: &'a [G1Point], b: &'a [G2Point]) -> impl Iterator<Item = Pair<'a>> {
    assert_eq!(a.len(), b.len(), "a product of pairings over different numbers of points");
    a.iter().zip(b)
}

pub(crate) fn fq(limbs: [u64; 6]) -> Fq {
    // both sides store Montgomery limbs: no conversion
    Fq::new_unchecked(ark_ff::BigInt(limbs))
}

fn fq2(limbs: [[u64; 6]; 2]) -> Fq2 {
    Fq2::new(fq(limbs[0]), fq(limbs[1]))
}

impl From<G1Affine> for G1Point {
    fn from(p: G1Affine) -> Self {
        p.xy().map_or(Self::zeroed(), |(x, y)| Self { x: x.0.0, y: y.0.0 })
    }
}

impl From<G1Point> for G1Affine {
    fn from(p: G1Point) -> Self {
        if p == G1Point::zeroed() {
            G1Affine::identity()
        } else {
            G1Affine::new_unchecked(fq(p.x), fq(p.y))
        }
    }
}

impl From<G2Affine> for G2Point {
    fn from(p: G2Affine) -> Self {
        p.xy().map_or(Self::zeroed(), |(x, y)| Self {
            x: [x.c0.0.0, x.c1.0.0],
            y: [y.c0.0.0, y.c1.0.0],
        })
    }
}

impl From<G2Point> for G2Affine {
    fn from(p: G2Point) -> Self {
        if p == G2Point::zeroed() {
            G2Affine::identity()
        } else {
            G2Affine::new_unchecked(fq2(p.x), fq2(p.y))
        }
    }
}
