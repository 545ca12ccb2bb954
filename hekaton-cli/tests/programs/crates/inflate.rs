//! Compresses the input and decompresses it again.
#![no_std]
#![no_main]

use hekaton_guest::{commit, commit_bytes, input};
use miniz_oxide::{deflate::compress_to_vec, inflate::decompress_to_vec};

#[hekaton_guest::main(stack = 0x4_0000)]
fn main() {
    let short = compress_to_vec(input(), 6);
    let long = decompress_to_vec(&short).expect("what was just compressed");
    assert_eq!(long, input());
    commit(&(short.len() as u32));
    commit_bytes(&long);
}
