//! The backend for processors with AVX-512 IFMA: eight field elements at a time, in limbs of 52 bits.
//!
//! `unsafe` is in [`lane`], which wraps the instructions, in [`fft`], which reads elements as words, and where code without
//! these features calls code with them: functions in `lanes!` are compiled for the features, and so is what they inline.
//! They may be called where [`available`] has said yes, which the dispatching front ([`crate::backend`]) sees to.
//!
//! What functions in `lanes!` call must be inlined into them or be in `lanes!` itself: anything else is compiled without the
//! features, and each instruction becomes a call. So lanes are never passed to a closure or a function as a value that the
//! standard library calls; loops are written out.
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

mod batch;
pub(crate) mod fft;
mod field;
#[cfg(not(any(hekaton_plain_lanes, miri)))]
mod lane;
#[cfg(any(hekaton_plain_lanes, miri))]
#[path = "lane_plain.rs"]
mod lane;
mod pairing;
mod product;
mod target_group;
mod tower;

pub(crate) use batch::{FEW_MULTIPLES_G1, FEW_MULTIPLES_G2, add_pairs};
pub(crate) use pairing::miller_loops;
pub(crate) use target_group::{Row, final_exponentiations, to_abs_u};

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
