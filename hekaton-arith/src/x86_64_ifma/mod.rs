//! The backend for processors with AVX-512 IFMA: eight field elements at a time, in limbs of 52
//! bits.
//!
//! `unsafe` is used in [`lane`], which wraps the instructions, in [`blocks`], which reads elements
//! as words, and where code without these features calls code with them: functions in `lanes!` are
//! compiled for the features, together with everything inlined into them. They may be called only
//! where [`available`] returned `true`, which the dispatcher ([`crate::backend`]) ensures.
//!
//! Functions called from `lanes!` must be inlined or be in `lanes!` themselves: anything else is
//! compiled without the features, and each instruction becomes a call. Lanes are therefore never
//! passed to closures or functions that the standard library calls by value; loops are written out,
//! and closures interleaved with products are called by functions that are always inlined.
//!
//! With the feature `plain-lanes`, and under Miri, a [`lane`] of plain words replaces the
//! instructions: slow, but everything above it is the same code and can be tested on any machine.

#![allow(unsafe_code)]
// Plain lanes need no `unsafe` where lanes with instructions do.
#![cfg_attr(any(feature = "plain-lanes", miri), allow(unused_unsafe))]
// Loops over limbs index several arrays at once.
#![allow(clippy::needless_range_loop)]

/// Compiles functions for the instructions of this backend.
macro_rules! lanes {
    ($($item:item)*) => {
        $(
            #[cfg_attr(not(any(feature = "plain-lanes", miri)), target_feature(enable = "avx512f,avx512dq,avx512vl,avx512ifma"))]
            $item
        )*
    };
}

mod additions;
#[path = "../lanes/batch.rs"]
mod batch;
mod blocks;
#[path = "../lanes/coordinate.rs"]
mod coordinate;
pub(crate) mod fft;
mod field;
#[cfg(not(any(feature = "plain-lanes", miri)))]
mod lane;
#[cfg(any(feature = "plain-lanes", miri))]
#[path = "lane_plain.rs"]
mod lane;
mod loose;
#[path = "../lanes/pairing.rs"]
mod pairing;
#[path = "../lanes/pairs.rs"]
mod pairs;
mod product;
mod radix3;
mod reading;
#[path = "../lanes/target_group.rs"]
mod target_group;
#[path = "../lanes/tower.rs"]
mod tower;
mod tuning;

pub(crate) use batch::add_pairs;
pub(crate) use pairing::miller_loops;
pub(crate) use target_group::{Row, final_exponentiations, to_abs_u};
pub(crate) use tuning::{FEW_MULTIPLES_G1, FEW_MULTIPLES_G2};

/// Reports whether this processor has the instructions.
pub(crate) fn available() -> bool {
    #[cfg(any(feature = "plain-lanes", miri))]
    return true;
    #[cfg(not(any(feature = "plain-lanes", miri)))]
    return is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512ifma");
}
