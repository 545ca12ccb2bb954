//! Proves that the prover has a signature of a message under a public key: ECDSA on secp256k1, by the crate `k256`. The private
//! input is the key, 33 bytes, the signature, 64 bytes, and the message; the output is the key and the message. With
//! `cargo hekaton patch k256`, it takes a tenth of the constraints.
#![no_std]
#![no_main]

use hekaton_guest::{commit_bytes, input, println};
use k256::ecdsa::signature::Verifier;
use k256::ecdsa::{Error, Signature, VerifyingKey};

#[hekaton_guest::main]
fn main() -> Result<(), Error> {
    let (key, rest) = input().split_at_checked(33).ok_or_else(Error::new)?;
    let (signature, message) = rest.split_at_checked(64).ok_or_else(Error::new)?;
    VerifyingKey::from_sec1_bytes(key)?.verify(message, &Signature::from_slice(signature)?)?;
    println!("the signature is right");
    commit_bytes(key);
    commit_bytes(message);
    Ok(())
}
