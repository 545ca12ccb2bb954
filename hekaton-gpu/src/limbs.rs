//! Scalars as devices have them: in Montgomery form, like the CPU's.

use ark_bls12_381::Fr;
use ark_ff::BigInt;

/// The limbs of a scalar in Montgomery form, which the CPU reads as four of 64 bits, and devices as eight of 32.
pub type FrLimbs = [u64; 4];

/// Returns the limbs of scalars.
pub fn limbs(scalars: &[Fr]) -> Vec<FrLimbs> {
    scalars.iter().map(|x| x.0.0).collect()
}

/// Returns the scalars with these limbs, which a kernel has written: they are below the modulus.
pub fn scalars(limbs: &[FrLimbs]) -> Vec<Fr> {
    limbs.iter().map(|x| Fr::new_unchecked(BigInt(*x))).collect()
}
