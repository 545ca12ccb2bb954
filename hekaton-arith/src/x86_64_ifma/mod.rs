//! The backend for processors with AVX-512 IFMA: eight field elements at a time, in limbs of 52 bits.
//!
//! `unsafe` is in [`lane`], which wraps the instructions, in [`fft`], which reads elements as words, and where code without
//! these features calls code with them: functions in `lanes!` are compiled for the features, and so is what they inline.
//! They may be called where [`available`] has said yes, which the dispatching front ([`crate::backend`]) sees to.
//!
//! What functions in `lanes!` call must be inlined into them or be in `lanes!` itself: anything else is compiled without the
//! features, and each instruction becomes a call. So lanes are never passed to a closure or a function as a value that the
//! standard library calls; loops are written out, and closures that stand beside products are called by functions that are always inlined.
//!
//! With `--cfg hekaton_plain_lanes`, and under Miri, a [`lane`] of plain words takes the place of the instructions: slow, but
//! everything above it is the same code and can be tested on any machine.

#![allow(unsafe_code)]
// plain lanes need no `unsafe` where lanes with instructions do
#![cfg_attr(any(hekaton_plain_lanes, miri), allow(unused_unsafe))]
// loops over limbs index several arrays at once
#![allow(clippy::needless_range_loop)]

/// Functions compiled for the instructions of this backend.
macro_rules! lanes {
    ($($item:item)*) => {
        $(
            #[cfg_attr(not(any(hekaton_plain_lanes, miri)), target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma"))]
            $item
        )*
    };
}

mod additions;
#[path = "../lanes/batch.rs"]
mod batch;
#[path = "../lanes/coordinate.rs"]
mod coordinate;
pub(crate) mod fft;
mod field;
#[cfg(not(any(hekaton_plain_lanes, miri)))]
mod lane;
#[cfg(any(hekaton_plain_lanes, miri))]
#[path = "lane_plain.rs"]
mod lane;
mod loose;
#[path = "../lanes/pairing.rs"]
mod pairing;
mod product;
#[path = "../lanes/target_group.rs"]
mod target_group;
#[path = "../lanes/tower.rs"]
mod tower;

use additions::{KEPT as KEPT_G1, add_batch as add_batch_g1};
pub(crate) use batch::add_pairs;
pub(crate) use pairing::miller_loops;
pub(crate) use target_group::{Row, final_exponentiations, to_abs_u};

/// With fewer pairs the portable addition is quicker, by counting: an addition takes it 0.2 us in G1 and 0.5 us in G2, both
/// have one inversion, and a vector's products and those around the inversion wait for each other for about 1 us.
const FEW_ADDITIONS: usize = 5;
/// Additions that share an inversion: what G1 keeps of so many, 320 KiB, stays in the second cache with their points (on Zen 5 an MSM takes 6 %
/// longer with 4,096).
const BATCH_G1: usize = 1024;
const BATCH_G2: usize = 2048;
/// Multiples of fewer points of G1 and G2 are taken one by one: on Zen 4 eight in lanes take 0.83 and 0.81 ms, one 0.083 and 0.165.
pub(crate) const FEW_MULTIPLES_G1: usize = 12;
pub(crate) const FEW_MULTIPLES_G2: usize = 6;
/// A loop of up to eight pairs takes 0.65 ms on Zen 4, by blst 0.09 ms and 0.17 a pair.
const FEW_MILLER_LOOPS: usize = 4;
/// Up to eight powers or final exponentiations take 0.86 ms on Zen 4, by blst 0.34 each.
const FEW_POWERS: usize = 3;

/// Sums of products before their reduction would save a fifth of the multiply-adds of Fq6, but take more time to store and load.
const LAZY: bool = false;

/// Whether this processor has the instructions.
pub(crate) fn available() -> bool {
    #[cfg(any(hekaton_plain_lanes, miri))]
    return true;
    #[cfg(not(any(hekaton_plain_lanes, miri)))]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512ifma");
}
