//! Products of Miller loops, and final exponentiations.

use crate::{G1Point, G2Point};
use blst::{blst_final_exp, blst_fp12, blst_miller_loop_n};

/// The product of Miller loops; no point may be at infinity, the slices are not empty and equally long.
pub(crate) fn miller_loop(a: &[&G1Point], b: &[&G2Point]) -> blst_fp12 {
    assert!(!a.is_empty() && a.len() == b.len(), "a Miller loop over {} and {} points", a.len(), b.len());
    let mut out = blst_fp12::default();
    // SAFETY: `&G1Point` and `&G2Point` have the layout of non-null pointers to blst's affine points; as many as passed.
    unsafe { blst_miller_loop_n(&mut out, b.as_ptr().cast(), a.as_ptr().cast(), a.len()) };
    out
}

/// Final exponentiations, one by one.
pub(crate) fn final_exponentiations(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    let finish = |a: &blst_fp12| {
        let mut out = blst_fp12::default();
        // SAFETY: valid pointers to whole elements.
        unsafe { blst_final_exp(&mut out, a) };
        out
    };
    elements.iter().map(finish).collect()
}
