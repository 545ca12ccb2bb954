//! The transcript of direct proofs (spec: direct#transcript): Keccak-256 over fields of fixed length,
//! in the encodings that the precompiles take.

use super::Context;
use super::encoding::{keccak, put_scalar, tag};
use super::key::DirectKey;
use super::proof::DirectProof;
use ark_ff::PrimeField;
use hekaton_arith::{Fr, G1Point};
use hekaton_circuit::MemoryChallenges;

pub(crate) const TAG: [u8; 32] = tag(b"hekaton direct v1");

/// Challenge `number` of a state: a hash mod r.
pub(crate) fn challenge(state: &[u8; 32], number: u8) -> Fr {
    let mut word = [0; 32];
    word[31] = number;
    Fr::from_be_bytes_mod_order(&keccak(&[state, &word]))
}

/// The challenges of the memory check of a state; b_T and b_V are 0 without buses.
pub(crate) fn memory(state: &[u8; 32], buses: bool) -> MemoryChallenges {
    let [g, b] = [1, 2].map(|number| challenge(state, number));
    let of_buses = |number| if buses { challenge(state, number) } else { Fr::from(0u64) };
    MemoryChallenges { g, b, b_t: of_buses(3), b_v: of_buses(4) }
}

/// T0: the statement and all commitments D.
pub(crate) fn committed(
    key: &DirectKey,
    context: &Context,
    public_values: &[Fr],
    d: &[G1Point],
) -> [u8; 32] {
    let mut public = Vec::with_capacity(32 * public_values.len());
    public_values.iter().for_each(|value| put_scalar(&mut public, value));
    keccak(&[&TAG, &key.digest(), context, &public, &DirectProof::words_of_d(d)])
}

/// T1: T0, and everything that the prove round answers.
pub(crate) fn proven(committed: &[u8; 32], proof: &DirectProof) -> [u8; 32] {
    keccak(&[committed, &proof.words_of_answers()])
}

/// The factor r of a state T1.
pub(crate) fn factor(proven: &[u8; 32]) -> Fr {
    challenge(proven, 5)
}
