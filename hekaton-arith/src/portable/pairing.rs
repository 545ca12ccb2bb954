//! Products of Miller loops, and final exponentiations.

use super::fields::fp12_one;
use crate::points::{G1Point, G2Point, Pair};
use blst::{blst_final_exp, blst_fp12, blst_miller_loop_n};

/// The product of the Miller loops of each list of pairs; no point may be at infinity.
pub(crate) fn miller_loops(products: &[Vec<Pair<'_>>]) -> Vec<blst_fp12> {
    products.iter().map(|pairs| miller_loop(pairs)).collect()
}

fn miller_loop(pairs: &[Pair<'_>]) -> blst_fp12 {
    if pairs.is_empty() {
        return fp12_one();
    }
    let (a, b): (Vec<&G1Point>, Vec<&G2Point>) = pairs.iter().copied().unzip();
    let mut out = blst_fp12::default();
    // SAFETY: `&G1Point` and `&G2Point` have the layout of non-null pointers to blst's affine
    // points, and both vectors have the length passed.
    unsafe { blst_miller_loop_n(&mut out, b.as_ptr().cast(), a.as_ptr().cast(), a.len()) };
    out
}

/// Final exponentiations, one by one.
pub(crate) fn final_exponentiations(elements: &[blst_fp12]) -> Vec<blst_fp12> {
    let finish = |a: &blst_fp12| {
        let mut out = blst_fp12::default();
        // SAFETY: the pointers are valid references to whole elements.
        unsafe { blst_final_exp(&mut out, a) };
        out
    };
    elements.iter().map(finish).collect()
}
