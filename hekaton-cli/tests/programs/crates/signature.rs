//! Signatures: ECDSA on secp256k1 by `k256`, and the multiplication of the base point by `curve25519-dalek`.
#![no_std]
#![no_main]

use curve25519_dalek::edwards::EdwardsPoint;
use hekaton_guest::{commit_bytes, input};
use k256::ecdsa::signature::Verifier;
use k256::ecdsa::{Error, Signature, VerifyingKey};
use sha2::{Digest, Sha512};

#[hekaton_guest::main]
fn main() -> Result<(), Error> {
    // The public key, the signature, and a secret key of Ed25519.
    let (key, rest) = input().split_at(33);
    let (signature, rest) = rest.split_at(64);
    let (seed, message) = rest.split_at(32);
    let key = VerifyingKey::from_sec1_bytes(key)?;
    key.verify(message, &Signature::from_slice(signature)?)?;
    let mut scalar = [0; 32];
    scalar.copy_from_slice(&Sha512::digest(seed)[..32]);
    commit_bytes(EdwardsPoint::mul_base_clamped(scalar).compress().as_bytes());
    Ok(())
}
