//! Butterflies over Fr, products and sums, by blst and in place.

use ark_bls12_381::Fr;
use blst::{blst_fr_add, blst_fr_ct_bfly, blst_fr_gs_bfly, blst_fr_mul, blst_fr_sub};

/// The butterfly `(a, b) <- (a + t b, a - t b)`.
#[inline]
pub(super) fn butterfly_dit(a: &mut Fr, b: &mut Fr, t: &Fr) {
    // SAFETY: arkworks' Fr consists of its four Montgomery limbs, as does blst's (sizes asserted in
    // the module root); all three references are valid.
    unsafe {
        blst_fr_ct_bfly((a as *mut Fr).cast(), (b as *mut Fr).cast(), (t as *const Fr).cast())
    }
}

/// The butterfly `(a, b) <- (a + b, t (a - b))`.
#[inline]
pub(super) fn butterfly_dif(a: &mut Fr, b: &mut Fr, t: &Fr) {
    // SAFETY: the layouts agree as in `butterfly_dit`; all three references are valid.
    unsafe {
        blst_fr_gs_bfly((a as *mut Fr).cast(), (b as *mut Fr).cast(), (t as *const Fr).cast())
    }
}

/// The product `a <- a b` in Fr.
#[inline]
pub(super) fn multiply(a: &mut Fr, b: &Fr) {
    let to = (a as *mut Fr).cast();
    // SAFETY: the layouts agree as in `butterfly_dit`; blst allows the result to alias an operand.
    unsafe { blst_fr_mul(to, to, (b as *const Fr).cast()) }
}

/// The sum `a <- a + b` in Fr.
#[inline]
pub(super) fn add(a: &mut Fr, b: &Fr) {
    let to = (a as *mut Fr).cast();
    // SAFETY: the layouts agree as in `butterfly_dit`; blst allows the result to alias an operand.
    unsafe { blst_fr_add(to, to, (b as *const Fr).cast()) }
}

/// The difference `a <- a - b` in Fr.
#[inline]
pub(super) fn subtract(a: &mut Fr, b: &Fr) {
    let to = (a as *mut Fr).cast();
    // SAFETY: the layouts agree as in `butterfly_dit`; blst allows the result to alias an operand.
    unsafe { blst_fr_sub(to, to, (b as *const Fr).cast()) }
}
