//! Scalars: encodings and the few vector operations that more than one caller needs.

use ark_bls12_381::Fr;
use ark_ff::{BigInteger, Field, PrimeField, Zero};
use zeroize::{Zeroize, Zeroizing};

/// Why 32 bytes are not a scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a canonical scalar: the value is not below the group order r")]
pub struct ScalarError;

/// The 32-byte little-endian canonical encoding of a scalar.
pub fn fr_to_bytes(x: &Fr) -> [u8; 32] {
    let mut out = [0; 32];
    for (chunk, limb) in out.chunks_exact_mut(8).zip(x.into_bigint().0) {
        chunk.copy_from_slice(&limb.to_le_bytes());
    }
    out
}

/// Decodes [`fr_to_bytes`]; rejects values that are not below r.
pub fn fr_from_bytes(bytes: &[u8; 32]) -> Result<Fr, ScalarError> {
    let mut limbs = [0u64; 4];
    for (limb, chunk) in limbs.iter_mut().zip(bytes.chunks_exact(8)) {
        *limb = u64::from_le_bytes(chunk.try_into().map_err(|_| ScalarError)?);
    }
    Fr::from_bigint(ark_ff::BigInt(limbs)).ok_or(ScalarError)
}

/// Derives a scalar from 64 uniform bytes (bias below 2^-256).
pub fn fr_from_uniform(bytes: &[u8; 64]) -> Fr {
    Fr::from_le_bytes_mod_order(bytes)
}

/// The first `n` powers `[1, x, x^2, ..]`.
pub fn powers(x: Fr, n: usize) -> Vec<Fr> {
    // Allocated once: the powers of a trapdoor must not stay behind in a buffer that grew.
    let mut out = Vec::with_capacity(n);
    out.extend(std::iter::successors(Some(Fr::ONE), |p| Some(*p * x)).take(n));
    out
}

/// Replaces every element by its inverse; zeros stay zero.
pub fn batch_invert(values: &mut [Fr]) {
    // The products of prefixes, from which all values follow. Setup inverts trapdoors, so they are
    // wiped, which `ark_ff::batch_inversion` does not do.
    let mut products = Zeroizing::new(Vec::with_capacity(values.len()));
    let mut product = Fr::ONE;
    for x in values.iter().filter(|x| !x.is_zero()) {
        products.push(product);
        product *= x;
    }
    let inverted = product.inverse().expect("a product of values that are not zero");
    let mut inverse = Zeroizing::new(inverted);
    product.zeroize();
    let rest = values.iter_mut().rev().filter(|x| !x.is_zero());
    for (x, before) in rest.zip(products.iter().rev()) {
        let next = *inverse * *x;
        *x = *inverse * before;
        *inverse = next;
    }
}

/// The third root of unity by which [`Group::times_cube_root`](crate::Group::times_cube_root) multiplies.
pub fn cube_root() -> Fr {
    // u^4 - u^2 + 1 = r, so u^2 is a sixth root of unity.
    -Fr::from(u128::from(ABS_U).pow(2))
}

/// The inner product `sum_i a_i b_i`.
///
/// # Panics
/// If the lengths differ.
pub fn inner_product(a: &[Fr], b: &[Fr]) -> Fr {
    assert_eq!(a.len(), b.len(), "inner product of vectors of different lengths");
    a.iter().zip(b).fold(Fr::zero(), |s, (x, y)| s + *x * y)
}

/// The little-endian canonical bytes and the number of significant bits.
pub(crate) fn canonical(x: &Fr) -> ([u8; 32], usize) {
    (fr_to_bytes(x), x.into_bigint().num_bits() as usize)
}

/// The absolute value of the curve parameter u = -0xd201000000010000. On elements of order r of the
/// target group, and on G2, the Frobenius map is multiplication by u.
pub(crate) const ABS_U: u64 = 0xd201_0000_0001_0000;

/// The four digits of a scalar in base |u|; r < |u|^4.
#[allow(
    clippy::cast_possible_truncation,
    reason = "the remainder is below |u|, so a quotient fits a limb"
)]
pub(crate) fn digits_to_base_u(x: &Fr) -> [u64; 4] {
    let mut limbs = x.into_bigint().0;
    let mut digits = [0; 4];
    for digit in &mut digits {
        let mut remainder = 0u128;
        for limb in limbs.iter_mut().rev() {
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / u128::from(ABS_U)) as u64;
            remainder = dividend % u128::from(ABS_U);
        }
        *digit = remainder as u64;
    }
    digits
}
