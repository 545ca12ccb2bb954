//! The portable backend: blst's assembly behind safe functions.
//!
//! Apart from the instruction-set backends and `lanes/`, this is the only module that uses
//! `unsafe`. [`G1Point`] and [`G2Point`] are `repr(C)` with the same fields, sizes and limb form as
//! blst's affine points (asserted below), so pointers to one are pointers to the other.

#![allow(unsafe_code)]

mod batch;
mod butterflies;
mod endomorphisms;
pub(crate) mod fft;
mod fields;
mod pairing;
mod points;
mod radix3;
mod target_group;

pub(crate) use batch::{FEW_MULTIPLES_G1, FEW_MULTIPLES_G2, add_pairs, signed};
pub(crate) use endomorphisms::{minus_phi, minus_psi};
pub(crate) use fields::*;
pub(crate) use pairing::{final_exponentiations, miller_loops};
pub(crate) use points::*;
pub(crate) use target_group::{Row, to_abs_u};

use crate::points::{G1Point, G2Point};

const _: () = {
    assert!(size_of::<G1Point>() == size_of::<blst::blst_p1_affine>());
    assert!(align_of::<G1Point>() == align_of::<blst::blst_p1_affine>());
    assert!(size_of::<G2Point>() == size_of::<blst::blst_p2_affine>());
    assert!(align_of::<G2Point>() == align_of::<blst::blst_p2_affine>());
    assert!(size_of::<ark_bls12_381::Fr>() == size_of::<blst::blst_fr>());
    assert!(size_of::<ark_bls12_381::Fq>() == size_of::<blst::blst_fp>());
};
