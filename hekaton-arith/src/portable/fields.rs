//! Field arithmetic: Fq and Fq2 for batched affine additions, Fq12 for the target group.

use blst::*;

/// Arithmetic of a coordinate field.
#[allow(unnameable_types, reason = "seals `Group`: only this crate implements it")]
pub trait Field: Copy + PartialEq {
    const ZERO: Self;
    fn one() -> Self;
    fn add(&self, b: &Self) -> Self;
    fn sub(&self, b: &Self) -> Self;
    fn mul(&self, b: &Self) -> Self;
    fn square(&self) -> Self;
    fn neg(&self) -> Self;
    /// Sets `self` to `a b` in place, as do the methods below.
    fn set_product(&mut self, a: &Self, b: &Self);
    fn set_square(&mut self, a: &Self);
    fn set_difference(&mut self, a: &Self, b: &Self);
    /// Sets `self` to `a` or `-a`.
    fn set_signed(&mut self, a: &Self, negative: bool);
    /// Multiplies `self` by `b`.
    fn multiply(&mut self, b: &Self);
    /// Subtracts `b` from `self`.
    fn subtract(&mut self, b: &Self);
    /// The inverse, or zero for zero.
    fn invert(&self) -> Self;
    fn is_zero(&self) -> bool;
    /// Reports whether all coordinates are below q.
    fn is_reduced(&self) -> bool;
}

/// Reports whether the number is below q.
fn is_below_q(x: &blst_fp) -> bool {
    ark_ff::BigInt(x.l) < <ark_bls12_381::Fq as ark_ff::PrimeField>::MODULUS
}

macro_rules! field {
    ($ty:ty, $zero:expr, $one:expr, $limbs:expr, $reduced:expr, $add:ident, $sub:ident, $mul:ident, $sqr:ident, $cneg:ident, $inv:ident) => {
        impl Field for $ty {
            const ZERO: Self = $zero;
            #[inline]
            fn one() -> Self {
                $one
            }
            #[inline]
            fn add(&self, b: &Self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $add(&mut out, self, b) };
                out
            }
            #[inline]
            fn sub(&self, b: &Self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $sub(&mut out, self, b) };
                out
            }
            #[inline]
            fn mul(&self, b: &Self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $mul(&mut out, self, b) };
                out
            }
            #[inline]
            fn square(&self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $sqr(&mut out, self) };
                out
            }
            #[inline]
            fn neg(&self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $cneg(&mut out, self, true) };
                out
            }
            #[inline]
            fn set_product(&mut self, a: &Self, b: &Self) {
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $mul(self, a, b) }
            }
            #[inline]
            fn set_square(&mut self, a: &Self) {
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $sqr(self, a) }
            }
            #[inline]
            fn set_difference(&mut self, a: &Self, b: &Self) {
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $sub(self, a, b) }
            }
            #[inline]
            fn set_signed(&mut self, a: &Self, negative: bool) {
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $cneg(self, a, negative) }
            }
            #[inline]
            fn multiply(&mut self, b: &Self) {
                let this: *mut Self = self;
                // SAFETY: as in `mul`; blst allows the result to alias an operand.
                unsafe { $mul(this, this, b) }
            }
            #[inline]
            fn subtract(&mut self, b: &Self) {
                let this: *mut Self = self;
                // SAFETY: as in `sub`; blst allows the result to alias an operand.
                unsafe { $sub(this, this, b) }
            }
            #[inline]
            fn invert(&self) -> Self {
                let mut out = Self::ZERO;
                // SAFETY: blst reads and writes whole field elements behind valid references.
                unsafe { $inv(&mut out, self) };
                out
            }
            #[inline]
            fn is_zero(&self) -> bool {
                // folding the limbs avoids a call to `memcmp`
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
    // SAFETY: blst returns a pointer to a static element.
    unsafe { *blst_fp12_one() }
}

pub(crate) fn fp12_mul(a: &blst_fp12, b: &blst_fp12) -> blst_fp12 {
    let mut out = blst_fp12::default();
    // SAFETY: the pointers are valid references to whole elements.
    unsafe { blst_fp12_mul(&mut out, a, b) };
    out
}

pub(crate) fn fp12_cyclotomic_square(a: &blst_fp12) -> blst_fp12 {
    let mut out = blst_fp12::default();
    // SAFETY: the pointers are valid references to whole elements.
    unsafe { blst_fp12_cyclotomic_sqr(&mut out, a) };
    out
}

pub(crate) fn fp12_conjugate(a: &blst_fp12) -> blst_fp12 {
    let mut out = *a;
    // SAFETY: the pointer is a valid reference to a whole element.
    unsafe { blst_fp12_conjugate(&mut out) };
    out
}

/// The Frobenius image `a^(q^power)`, for power in 1..=3.
pub(crate) fn fp12_frobenius(a: &blst_fp12, power: usize) -> blst_fp12 {
    assert!((1..=3).contains(&power), "blst supports only the Frobenius powers 1, 2 and 3");
    let mut out = blst_fp12::default();
    // SAFETY: the pointers are valid references to whole elements, and the power is in blst's
    // range.
    unsafe { blst_fp12_frobenius_map(&mut out, a, power) };
    out
}

// used by the lane backends only
#[cfg_attr(not(any(target_arch = "x86_64", feature = "plain-lanes", miri)), allow(dead_code))]
pub(crate) fn fp12_inverse(a: &blst_fp12) -> blst_fp12 {
    let mut out = blst_fp12::default();
    // SAFETY: the pointers are valid references to whole elements.
    unsafe { blst_fp12_inverse(&mut out, a) };
    out
}
