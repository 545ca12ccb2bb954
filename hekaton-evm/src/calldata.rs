//! The calldata of `verify(uint256[],bytes32,bytes)`.

use hekaton_core::Fr;
use hekaton_core::verifier::direct::encoding::{put_number, put_scalar};
use hekaton_core::verifier::direct::{Context, DirectProof};
use sha3::{Digest, Keccak256};

/// The calldata of a call that verifies a proof, as the contract ABI encodes it.
pub fn calldata(public_values: &[Fr], context: &Context, proof: &DirectProof) -> Vec<u8> {
    let proof = proof.words();
    let selector = Keccak256::digest("verify(uint256[],bytes32,bytes)");
    let mut out = selector[..4].to_vec();
    // The places of the values and of the proof, behind three words.
    put_number(&mut out, 96);
    out.extend_from_slice(context);
    put_number(&mut out, 128 + 32 * public_values.len() as u64);
    put_number(&mut out, public_values.len() as u64);
    public_values.iter().for_each(|value| put_scalar(&mut out, value));
    put_number(&mut out, proof.len() as u64);
    // A multiple of 32 bytes, so without padding.
    out.extend(proof);
    out
}
