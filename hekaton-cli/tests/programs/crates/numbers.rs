//! a b + c mod m on numbers of 256 and 384 bits by the calls of the machine, and copies of memory of all lengths.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use hekaton_guest::{commit_bytes, input, mul_add_mod_256, mul_add_mod_384};

fn numbers<const N: usize>(bytes: &[u8]) -> [[u32; N]; 4] {
    let word = |at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().unwrap());
    core::array::from_fn(|which| core::array::from_fn(|at| word(which * N + at)))
}

fn commit(words: &[u32]) {
    commit_bytes(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
}

/// Copies between all positions in words.
fn copies() {
    let from: Vec<u8> = (0..200).map(|n| n * 7 + 3).collect();
    for (start, end) in (0..4).flat_map(|start| (0..4).map(move |end| (start, end))) {
        for length in (0..80).chain([127, 128, 129, 160]) {
            let mut to = [0xee; 200];
            to[end..end + length].copy_from_slice(core::hint::black_box(&from[start..start + length]));
            for (at, byte) in to.iter().enumerate() {
                let copied = at.wrapping_sub(end) < length;
                assert_eq!(*byte, if copied { from[at - end + start] } else { 0xee });
            }
        }
    }
}

#[hekaton_guest::main]
fn main() {
    copies();
    let (first, second) = input().split_at(128);
    let [mut a, b, c, m] = numbers(first);
    commit(&mul_add_mod_256(&a, &b, &c, &m));
    a = mul_add_mod_256(&a, &a, &c, &m);
    commit(&a);
    let [mut a, b, c, m] = numbers(second);
    commit(&mul_add_mod_384(&a, &b, &c, &m));
    a = mul_add_mod_384(&a, &a, &c, &m);
    commit(&a);
}
