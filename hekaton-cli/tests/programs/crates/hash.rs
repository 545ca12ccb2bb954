//! SHA-256 and SHA-512 of the input, by the crate `sha2`.
#![no_std]
#![no_main]

use sha2::{Digest, Sha256, Sha512};

#[hekaton_guest::main]
fn main() {
    hekaton_guest::commit_bytes(&Sha256::digest(hekaton_guest::input()));
    hekaton_guest::commit_bytes(&Sha512::digest(hekaton_guest::input()));
}
