//! The backend for processors with AVX2 and FMA, but without AVX-512 IFMA: eight field elements at a time, in limbs of 48 bits
//! that are doubles.
//!
//! Products of limbs are exact: a fused multiply-add rounds to a multiple of 2^48, a second one gives what was cut off
//! ([`product`]). Fourier transforms are the portable ones, which a vector of doubles would not beat.
//!
//! What [`crate::x86_64_ifma`] says of `lanes!` and of `unsafe` holds here too; the instructions of [`product`] are more `unsafe`.

#![allow(unsafe_code)]
// loops over limbs index several arrays at once
#![allow(clippy::needless_range_loop)]

/// Functions compiled for the instructions of this backend.
macro_rules! lanes {
    ($($item:item)*) => {
        $(
            #[target_feature(enable = "avx2,fma")]
            $item
        )*
    };
}

#[path = "../lanes/batch.rs"]
mod batch;
#[path = "../lanes/coordinate.rs"]
mod coordinate;
mod field;
mod lane;
#[path = "../lanes/pairing.rs"]
mod pairing;
mod product;
#[path = "../lanes/target_group.rs"]
mod target_group;
#[path = "../lanes/tower.rs"]
mod tower;

pub(crate) use batch::add_pairs;
use batch::{KEPT as KEPT_G1, add_batch as add_batch_g1};
pub(crate) use pairing::miller_loops;
pub(crate) use target_group::{Row, final_exponentiations, to_abs_u};

// Measured on a Zen 3, against one by one by blst:

/// With fewer pairs of points the portable addition is quicker.
const FEW_ADDITIONS: usize = 24;
/// Additions that share an inversion.
const BATCH_G1: usize = 4096;
const BATCH_G2: usize = 2048;
/// Multiples of fewer points of G1 and G2 are taken one by one: as in the portable backend, whose additions few points take.
pub(crate) use crate::portable::{FEW_MULTIPLES_G1, FEW_MULTIPLES_G2};
/// Fewer pairs go through the portable Miller loop (eight in lanes take 1.8 ms, one there 0.2).
const FEW_MILLER_LOOPS: usize = 9;
/// Powers and final exponentiations of fewer elements are portable (eight in lanes take 2.4 ms, one there 0.4).
const FEW_POWERS: usize = 7;

/// Sums of products in Fq6 are taken before their reduction.
const LAZY: bool = true;

/// Whether this processor has the instructions.
pub(crate) fn available() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}
