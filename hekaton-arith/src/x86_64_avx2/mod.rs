//! The backend for processors with AVX2 and FMA but without AVX-512 IFMA: eight field elements at a
//! time, in limbs of 48 bits that are doubles.
//!
//! Products of limbs are exact: one fused multiply-add rounds to a multiple of 2^48, and a second
//! one returns the remainder ([`product`]). Fourier transforms are the portable ones, which vectors
//! of doubles would not beat.
//!
//! The rules of [`crate::x86_64_ifma`] for `lanes!` and `unsafe` apply here too; the inline
//! assembly of [`product`] is further `unsafe` code.

#![allow(unsafe_code)]
// Loops over limbs index several arrays at once.
#![allow(clippy::needless_range_loop)]

/// Compiles functions for the instructions of this backend.
macro_rules! lanes {
    ($($item:item)*) => {
        $(
            #[target_feature(enable = "avx2,fma")]
            $item
        )*
    };
}

mod additions;
#[path = "../lanes/batch.rs"]
mod batch;
#[path = "../lanes/coordinate.rs"]
mod coordinate;
mod field;
mod lane;
mod loose;
#[path = "../lanes/pairing.rs"]
mod pairing;
#[path = "../lanes/pairs.rs"]
mod pairs;
mod product;
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
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}
