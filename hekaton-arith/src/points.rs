//! Affine points as they lie in memory, in key files and on the wire.

use ark_bls12_381::{Fq, Fq2, G1Affine, G2Affine};
use ark_ec::AffineRepr;
use bytemuck::{Pod, Zeroable};

/// Why bytes are not a point of the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointError {
    /// The bytes are no canonical compressed encoding.
    #[error("not a canonical compressed point (bad flags or a coordinate that is not reduced)")]
    Encoding,
    /// The x coordinate belongs to no point of the curve.
    #[error("the point is not on the curve")]
    NotOnCurve,
    /// On the curve, but not in the subgroup of order r.
    #[error("the point is not in the subgroup of prime order")]
    NotInSubgroup,
}

/// An affine point of G1: x, y in Montgomery form, six limbs each; all zero is the point at infinity.
///
/// Plain data of 96 bytes without padding, so a memory-mapped key section is a `&[G1Point]`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct G1Point {
    pub(crate) x: [u64; 6],
    pub(crate) y: [u64; 6],
}

/// An affine point of G2: x, y in Fq2 in Montgomery form; all zero is the point at infinity. Plain data of 192 bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
pub struct G2Point {
    pub(crate) x: [[u64; 6]; 2],
    pub(crate) y: [[u64; 6]; 2],
}

pub(crate) fn fq(limbs: [u64; 6]) -> Fq {
    // Montgomery limbs in, Montgomery limbs stored: no conversion.
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
        if p == G1Point::zeroed() { G1Affine::identity() } else { G1Affine::new_unchecked(fq(p.x), fq(p.y)) }
    }
}

impl From<G2Affine> for G2Point {
    fn from(p: G2Affine) -> Self {
        p.xy().map_or(Self::zeroed(), |(x, y)| Self { x: [x.c0.0.0, x.c1.0.0], y: [y.c0.0.0, y.c1.0.0] })
    }
}

impl From<G2Point> for G2Affine {
    fn from(p: G2Point) -> Self {
        if p == G2Point::zeroed() { G2Affine::identity() } else { G2Affine::new_unchecked(fq2(p.x), fq2(p.y)) }
    }
}
