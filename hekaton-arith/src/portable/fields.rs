//! Field arithmetic: Fq and Fq2 for batched affine additions, Fq12 for the target group.

use blst::*;

/// Arithmetic of a coordinate field.
pub trait Field: Copy + PartialEq {
    const ZERO: Self;
    fn one() -> Self;
    fn add(&self, b: &Self) -> Self;
    fn sub(&self, b: &Self) -> Self;
    fn mul(&self, b: &Self) -> Self;
    fn square(&self) -> Self;
    fn neg(&self) -> Self;
    /// `self = a b`, written in place, here and below.
    fn set_product(&mut self, a: &Self, b: &Self);
    fn set_square(&mut self, a: &Self);
    fn set_difference(&mut self, a: &Self, b: &Self);
    /// `self = a` or `-a`
    fn set_signed(&mut self, a: &Self, negative: bool);
    /// `self = self b`
    fn multiply(&mut self, b: &Self);
    /// `self = self - b`
    fn subtract(&mut self, b: &Self);
    /// The inverse; zero gives zero.
    fn invert(&self) -> Self;
    fn is_zero(&self) -> bool;
    /// Whether all limbs stand for numbers below q.
    fn is_reduced(&self) -> bool;
}

/// Limbs of a number below q.
fn is_below_q(x: &blst_fp) -> bool {
    ark_ff::BigInt(x.l) < <ark_bls12_381::Fq as ark_ff::PrimeField>::MODULUS
}

macro_rules! field {
    ($ty:ty, $zero:expr, $one:expr, $limbs:expr, $reduced:expr, $add:ident, $sub:ident, $mul:ident, $sqr:ident, $cneg:ident, $inv:ident) => {
        // SAFETY (all calls): blst reads and writes whole field elements through valid pointers.
        impl Field for $ty {
            const ZERO: Self = $zero;
            #[inline]
            fn one() -> Self {
                $one
            }
            #[inline]
            fn add(&self, b: &Self) -> Self {
                let mut out = Self::ZERO;
                unsafe { $add(&mut out, self, b) };
                out
            }
            #[inline]
            fn sub(&self, b: &Self) -> Self {
                let mut out = Self::ZERO;
                unsafe { $sub(&mut out, self, b) };
                out
            }
            #[inline]
            fn mul(&self, b: &Self) -> Self {
                let mut out = Self::ZERO;
                unsafe { $mul(&mut out, self, b) };
                out
            }
            #[inline]
            fn square(&self) -> Self {
                let mut out = Self::ZERO;
                unsafe { $sqr(&mut out, self) };
                out
            }
            #[inline]
            fn neg(&self) -> Self {
                let mut out = Self::ZERO;
                unsafe { $cneg(&mut out, self, true) };
                out
            }
            #[inline]
            fn set_product(&mut self, a: &Self, b: &Self) {
                unsafe { $mul(self, a, b) }
            }
            #[inline]
            fn set_square(&mut self, a: &Self) {
                unsafe { $sqr(self, a) }
            }
            #[inline]
            fn set_difference(&mut self, a: &Self, b: &Self) {
                unsafe { $sub(self, a, b) }
            }
            #[inline]
            fn set_signed(&mut self, a: &Self, negative: bool) {
                unsafe { $cneg(self, a, negative) }
            }
            #[inline]
            fn multiply(&mut self, b: &Self) {
                let this: *mut Self = self;
                // blst allows the result to alias an operand
                unsafe { $mul(this, this, b) }
            }
            #[inline]
            fn subtract(&mut self, b: &Self) {
                let this: *mut Self = self;
                unsafe { $sub(this, this, b) }
            }
            #[inline]
            fn invert(&self) -> Self {
                let mut out = Self::ZERO;
                unsafe { $inv(&mut out, self) };
                out
            }
            #[inline]
            fn is_zero(&self) -> bool {
                // without a call to compare memory
                $limbs(self).into_iter().fold(0, |all, limb| all | limb) == 0
            }
            fn is_reduced(&self) -> bool {
                $reduced(self)
            }
        }
    };
}

const FP_ZERO: blst_fp = blst_fp { l: [0; 6] };

fn fp_one() -> blst_fp {
    blst_fp { l: <ark_bls12_381::Fq as ark_ff::Field>::ONE.0.0 }
}

field!(
    blst_fp,
    FP_ZERO,
    fp_one(),
    |x: &blst_fp| x.l,
    is_below_q,
    blst_fp_add,
    blst_fp_sub,
    blst_fp_mul,
    blst_fp_sqr,
    blst_fp_cneg,
    blst_fp_eucl_inverse
);
field!(
    blst_fp2,
    blst_fp2 { fp: [FP_ZERO; 2] },
    blst_fp2 { fp: [fp_one(), FP_ZERO] },
    |x: &blst_fp2| std::array::from_fn::<_, 6, _>(|i| x.fp[0].l[i] | x.fp[1].l[i]),
    |x: &blst_fp2| x.fp.iter().all(is_below_q),
    blst_fp2_add,
    blst_fp2_sub,
    blst_fp2_mul,
    blst_fp2_sqr,
    blst_fp2_cneg,
    blst_fp2_eucl_inverse
);

pub(crate) fn fp12_one() -> blst_fp12 {
    // SAFETY: a pointer to a static.
    unsafe { *blst_fp12_one() }
}

pub(crate) fn fp12_mul(a: &blst_fp12, b: &blst_fp12) -> blst_fp12 {
    let mut out = blst_fp12::default();
    // SAFETY: valid pointers to whole elements, here and below.
    unsafe { blst_fp12_mul(&mut out, a, b) };
    out
}

pub(crate) fn fp12_cyclotomic_square(a: &blst_fp12) -> blst_fp12 {
    let mut out = blst_fp12::default();
    // SAFETY: as above.
    unsafe { blst_fp12_cyclotomic_sqr(&mut out, a) };
    out
}

pub(crate) fn fp12_conjugate(a: &blst_fp12) -> blst_fp12 {
    let mut out = *a;
    // SAFETY: as above.
    unsafe { blst_fp12_conjugate(&mut out) };
    out
}

/// `a^(q^power)`, power in 1..=3.
pub(crate) fn fp12_frobenius(a: &blst_fp12, power: usize) -> blst_fp12 {
    assert!((1..=3).contains(&power), "blst has the Frobenius map to the powers 1, 2 and 3");
    let mut out = blst_fp12::default();
    // SAFETY: as above; the power is in blst's range.
    unsafe { blst_fp12_frobenius_map(&mut out, a, power) };
    out
}

// only lanes take it
#[cfg_attr(not(any(target_arch = "x86_64", hekaton_plain_lanes, miri)), allow(dead_code))]
pub(crate) fn fp12_inverse(a: &blst_fp12) -> blst_fp12 {
    let mut out = blst_fp12::default();
    // SAFETY: as above.
    unsafe { blst_fp12_inverse(&mut out, a) };
    out
}
