//! Values of several types in the input, texts, and an output whose length is part of the input.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::hint::black_box;
use hekaton_guest::{commit, commit_bytes, print, println, read};
use serde::{Deserialize, Serialize};

#[derive(Debug, Deserialize, Serialize)]
enum Order {
    Count(u32),
    Words(Vec<String>),
    Depth(u32),
}

/// Calls inside each other, each with 200 bytes of stack.
#[inline(never)]
fn deep(n: u32) -> u32 {
    let room = black_box([n; 50]);
    if n == 0 { 0 } else { deep(n - 1) + room[n as usize % 50] }
}

#[hekaton_guest::main(stack = 0x1_8000)]
fn main() -> Result<(), Order> {
    let order: Order = read();
    print!("an order: ");
    println!("{order:?}");
    match order {
        Order::Count(n) => commit_bytes(&(0..n).map(|i| i as u8).collect::<Vec<u8>>()),
        Order::Depth(n) => commit(&deep(n)),
        Order::Words(words) if words.is_empty() => return Err(Order::Words(words)),
        Order::Words(words) => {
            let mut counts = BTreeMap::new();
            words.iter().for_each(|word| *counts.entry(word).or_insert(0u32) += 1);
            commit(&counts);
            let last: char = read();
            assert_eq!(last, 'z', "the input must end with z");
        }
    }
    Ok(())
}
