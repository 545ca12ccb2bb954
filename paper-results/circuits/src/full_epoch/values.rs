//! Values of slots: digests as two numbers, and slots in their order.

use ark_ff::{PrimeField, Zero};
use hekaton_circuit::Fr;
#[cfg(test)]
use hekaton_circuit::parts::Slots;
use hekaton_directory::{Digest, EMPTY};

/// The digest with these halves, the more significant one first.
pub(super) fn digest([high, low]: [u128; 2]) -> Digest {
    let mut digest = EMPTY;
    digest[..16].copy_from_slice(&high.to_be_bytes());
    digest[16..].copy_from_slice(&low.to_be_bytes());
    digest
}

/// A number below 2^128 from a field element; none for larger ones, which no half of a digest is.
pub(super) fn number(value: &Fr) -> Option<u128> {
    let limbs = value.into_bigint();
    let [low, high, rest @ ..] = limbs.as_ref() else { return None };
    rest.iter().all(Zero::is_zero).then(|| u128::from(*high) << 64 | u128::from(*low))
}

/// The values of slots, in their order.
#[cfg(test)]
pub(super) fn list<W: Clone, S: Slots<W>>(slots: &S) -> Vec<W> {
    let mut values = Vec::new();
    slots.visit(&mut |value| values.push(value.clone()));
    values
}
