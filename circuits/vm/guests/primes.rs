//! The primes below the public number n, at most 65,536: the output has how many there are, and the largest one.
#![no_std]
#![no_main]

use hekaton_guest::words;

const MOST: usize = 1 << 16;

static mut COMPOSITE: [bool; MOST] = [false; MOST];

#[hekaton_guest::main]
fn main() -> u32 {
    let n = words::public_input(0) as usize;
    if n > MOST {
        return 1;
    }
    // SAFETY: there is one thread, and this is the only use.
    let composite: &mut [bool; MOST] = unsafe { &mut *(&raw mut COMPOSITE) };
    let (mut count, mut largest) = (0, 0);
    for p in 2..n {
        if composite[p] {
            continue;
        }
        (count, largest) = (count + 1, p as u32);
        for multiple in (p * p..n).step_by(p) {
            composite[multiple] = true;
        }
    }
    words::output(0, count);
    words::output(1, largest);
    0
}
