//! The endomorphisms, which multiply points of the two groups by a known number.

use super::fields::Field;
use super::points::{Curve, generator, mul, neg, normalise_one};
use crate::points::{G1Point, G2Point};
use crate::scalar::ABS_U;
use ark_bls12_381::{Fq, Fq2, FqConfig};
use ark_ff::{BigInteger, Field as _, MontConfig};
use blst::{blst_fp, blst_fp2};
use std::sync::LazyLock;

/// The limbs of `(q - 1) / by`.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the remainder is below the divisor, so a quotient fits a limb"
)]
fn order_divided(by: u64) -> Vec<u64> {
    let mut limbs = FqConfig::MODULUS;
    limbs.sub_with_borrow(&1u64.into());
    let mut remainder = 0u128;
    let mut out = limbs.0.to_vec();
    for limb in out.iter_mut().rev() {
        let dividend = remainder << 64 | u128::from(*limb);
        *limb = (dividend / u128::from(by)) as u64;
        remainder = dividend % u128::from(by);
    }
    out
}

/// The third root of unity for which `(x, y) -> (b x, -y)` is multiplication by u^2 on G1 (the
/// other one multiplies by 1 - u^2).
static BETA: LazyLock<blst_fp> = LazyLock::new(|| {
    let root = Fq::from(2u64).pow(order_divided(3));
    let g: G1Point = generator();
    let mut square = [0; 32];
    square[..16].copy_from_slice(&u128::from(ABS_U).pow(2).to_le_bytes());
    let expected: G1Point = normalise_one(&mul(&g, &square, 128));
    [root, root.square()]
        .map(|x| blst_fp { l: x.0.0 })
        .into_iter()
        .find(|beta| minus_phi_with(&g, beta) == expected)
        .expect("one of the two third roots of unity belongs to u^2")
});

fn minus_phi_with(p: &G1Point, beta: &blst_fp) -> G1Point {
    let (x, y) = p.coordinates();
    neg(&G1Point::from_coordinates(x.mul(beta), y))
}

/// The multiple `u^2 p`, for p in G1.
pub(crate) fn minus_phi(p: &G1Point) -> G1Point {
    minus_phi_with(p, &BETA)
}

/// The constants `1 / (1 + i)^((q - 1) / 3)` and `1 / (1 + i)^((q - 1) / 2)` of the Frobenius map
/// between twist and curve.
static PSI: LazyLock<[blst_fp2; 2]> = LazyLock::new(|| {
    [3, 2].map(|by| {
        let x =
            Fq2::new(Fq::ONE, Fq::ONE).pow(order_divided(by)).inverse().expect("1 + i is not zero");
        blst_fp2 { fp: [blst_fp { l: x.c0.0.0 }, blst_fp { l: x.c1.0.0 }] }
    })
});

/// The multiple `|u| p`, for p in G2, where the Frobenius map multiplies by q = u mod r, and u is
/// negative.
pub(crate) fn minus_psi(p: &G2Point) -> G2Point {
    let conjugate = |x: blst_fp2| blst_fp2 { fp: [x.fp[0], x.fp[1].neg()] };
    let (x, y) = p.coordinates();
    neg(&G2Point::from_coordinates(conjugate(x).mul(&PSI[0]), conjugate(y).mul(&PSI[1])))
}
