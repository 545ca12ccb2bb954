//! Eight elements of Fq at once, in limbs of 48 bits that are doubles.
//!
//! # Form and bounds
//! An element is eight limbs `x_j`, each a [`Lane`] of doubles with integer values, and stands for
//! `sum_j x_j 2^(48 j)`. With R = 2^384 that is the Montgomery form of the 64-bit libraries:
//! reading cuts words and converts nothing. Limbs are signed, and so are elements. After every
//! operation except [reading](Fq::from_words),
//!
//! - limbs but the last are within 2^47 + 2^4 of zero, and the last is at most `2^-335 |x|` and so
//!   below 2^46;
//! - the number itself is between -p and p.
//!
//! Callers have no bounds to keep: sums and differences subtract the nearest multiple of p (see
//! [`settle`]), which leaves at most `(1/2 + 2^-40) p`; products are below `(1/2 + 2^-3.2) p`
//! ([`super::product`]); values read are below p.
//!
//! # Exactness
//! A double holds integers up to 2^53. Limbs and sums of a few limbs and carries are far below, so
//! no addition here rounds, except on purpose: `(x + 3 2^99) - 3 2^99` is x rounded to a multiple
//! of 2^48, since doubles between 2^100 and 2^101 are 2^48 apart. All of this relies on the default
//! rounding mode, to nearest, which Rust programs always have.

#![allow(
    clippy::cast_possible_truncation,
    reason = "limbs are masked to 48 bits, magnitudes are below 2^48"
)]

use super::lane::{Lane, Mask};
use crate::lanes::power_of_two;
use crate::portable::Field;
use ark_bls12_381::FqConfig;
use ark_ff::MontConfig;
use blst::blst_fp;
use std::arch::x86_64::*;

const LIMB_BITS: u32 = 48;
const LIMB: i64 = (1 << LIMB_BITS) - 1;
/// The number 2^52: a double in 2^52 .. 2^53 holds its excess over 2^52 as an integer in its low
/// bits.
const TWO_TO_52: f64 = (1u64 << 52) as f64;
/// Same as [`TWO_TO_52`], with room for negative integers.
const THREE_TO_51: f64 = 1.5 * TWO_TO_52;
pub(super) const TWO_TO_48: f64 = (1u64 << LIMB_BITS) as f64;
pub(super) const TWO_TO_MINUS_48: f64 = 1.0 / TWO_TO_48;
/// The number 3 2^99: adding and subtracting it rounds numbers within 2^99 of zero to multiples of
/// 2^48.
pub(super) const ROUND: f64 = THREE_TO_51 * TWO_TO_48;

/// Cuts words into limbs of 48 bits.
const fn limbs(words: &[u64; 6]) -> [i64; 8] {
    let mut out = [0; 8];
    let mut k = 0;
    while k < 8 {
        let (word, bit) = (48 * k / 64, 48 * k % 64);
        let high = if word < 5 { words[word + 1] } else { 0 };
        out[k] = (((high as u128) << 64 | words[word] as u128) >> bit) as i64 & LIMB;
        k += 1;
    }
    out
}

/// Converts eight limbs, lowest first, to doubles within 2^47 of zero, except for the last.
pub(super) const fn balanced(mut limbs: [i64; 8]) -> [f64; 8] {
    let mut out = [0.0; 8];
    let mut k = 0;
    while k < 7 {
        let carry = (limbs[k] + (1 << 47)) >> 48;
        out[k] = (limbs[k] - (carry << 48)) as f64;
        limbs[k + 1] += carry;
        k += 1;
    }
    out[7] = limbs[7] as f64;
    out
}

/// The modulus p in nonnegative limbs, and in balanced ones.
pub(super) const P: [i64; 8] = limbs(&<FqConfig as MontConfig<6>>::MODULUS.0);
pub(super) const BALANCED_P: [f64; 8] = balanced(P);

/// One in Montgomery form, 2^384 mod p.
const ONE: [u64; 6] = power_of_two(384);

/// The factor that corrects an inverse of words: one, because none is needed.
pub(crate) const SCALE: [u64; 6] = ONE;

/// Eight elements of Fq, one per lane.
#[derive(Clone, Copy)]
pub(crate) struct Fq(pub(super) [Lane; 8]);

impl Fq {
    #[inline(always)]
    pub(crate) fn new(limbs: [Lane; 8]) -> Self {
        Self(limbs)
    }

    #[inline(always)]
    fn splat(limbs: &[f64; 8]) -> Self {
        let mut out = [Lane::splat(0); 8];
        for j in 0..8 {
            out[j] = Lane::double(limbs[j]);
        }
        Self(out)
    }

    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self([Lane::splat(0); 8])
    }

    #[inline(always)]
    pub(crate) fn one() -> Self {
        Self::splat(&balanced(limbs(&ONE)))
    }

    /// The same number with limbs within 2^47 + 2^4 of zero, except for the last, from limbs within
    /// 2^52.
    #[inline(always)]
    pub(crate) fn carried(&self) -> Self {
        let mut out = *self;
        // SAFETY: lanes exist only where AVX2 and FMA do.
        unsafe { normalise::<false>(&mut out) };
        out
    }

    /// Asserts, in debug builds, that limbs are within their bound.
    #[inline(always)]
    pub(super) fn check(&self) {
        if cfg!(debug_assertions) {
            for (j, limb) in self.0.iter().enumerate() {
                let mut words = [0; 8];
                limb.store(&mut words);
                let most = if j < 7 { (1u64 << 47) + (1 << 4) } else { 1 << 46 };
                for word in words {
                    let x = f64::from_bits(word);
                    assert!(
                        x.abs() <= most as f64 && x == x.trunc(),
                        "limb {j} has left its bound: {x}"
                    );
                }
            }
        }
    }

    #[inline(always)]
    pub(crate) fn add(&self, b: &Self) -> Self {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        unsafe { sum::<false>(self, b) }
    }

    /// Computes `a - b`. K applies to backends with unsigned limbs.
    #[inline(always)]
    pub(crate) fn sub<const K: usize>(&self, b: &Self) -> Self {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        unsafe { sum::<true>(self, b) }
    }

    /// Computes `2 a`.
    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        self.add(self)
    }

    /// The limbs of p for every k: [`Self::sub`] needs no bounds either.
    #[cfg(test)]
    pub(crate) fn p(_k: usize) -> [Lane; 8] {
        Self::splat(&BALANCED_P).0
    }

    /// Selects `other` in the lanes of the mask.
    #[inline(always)]
    pub(crate) fn select(&self, mask: Mask, other: &Self) -> Self {
        let mut t = self.0;
        for j in 0..8 {
            t[j] = t[j].blend(mask, other.0[j]);
        }
        Self(t)
    }

    /// The negative, in the lanes of the mask.
    #[inline(always)]
    pub(crate) fn negated(&self, mask: Mask) -> Self {
        let sign = Lane::splat(0).blend(mask, Lane::double(-0.0));
        let mut t = self.0;
        for j in 0..8 {
            t[j] = t[j].xor(sign);
        }
        Self(t)
    }

    /// The lanes whose limbs are equal: for [canonical](Self::canonical) elements and those just
    /// read.
    #[inline(always)]
    pub(crate) fn equal(&self, b: &Self) -> Mask {
        let mut equal = Mask::MAX;
        for j in 0..8 {
            equal &= self.0[j].equal(b.0[j]);
        }
        equal
    }

    /// Rotates the lanes: lane i becomes lane i + K, modulo 8.
    #[inline(always)]
    pub(crate) fn rotated<const K: i32>(&self) -> Self {
        let mut t = self.0;
        for j in 0..8 {
            t[j] = t[j].rotated::<K>();
        }
        Self(t)
    }

    /// Multiplies by the factor that brings a product of words to the form of words, which is one here.
    #[inline(always)]
    pub(crate) fn shifted(&self) -> Self {
        *self
    }

    /// Reduces to little more than p, which every element already is.
    #[inline(always)]
    pub(crate) fn nearly_reduced(&self) -> Self {
        *self
    }

    /// Reads words below p as an operand of sums and differences: limbs are up to 2^48.
    /// [`Self::carried`] turns it into a factor.
    #[inline(always)]
    pub(crate) fn from_words(words: &[Lane; 6]) -> Self {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        unsafe { from_words(words) }
    }

    /// Writes words: the residue between 0 and p.
    #[inline(always)]
    pub(crate) fn words(&self) -> [Lane; 6] {
        // SAFETY: lanes exist only where AVX2 and FMA do.
        unsafe { words(self) }
    }

    /// Reduces as [`Self::words`] requires, which every element already is.
    #[inline(always)]
    pub(crate) fn reduced(&self) -> Self {
        *self
    }

    /// The residue between 0 and p in nonnegative limbs: equal elements have equal limbs.
    #[inline(always)]
    pub(crate) fn canonical(&self) -> Self {
        Self::from_words(&self.words())
    }

    /// Reads words in Montgomery form.
    #[inline(always)]
    pub(crate) fn from_montgomery(words: &[Lane; 6]) -> Self {
        Self::from_words(words).carried()
    }

    /// Writes reduced words in Montgomery form.
    #[inline(always)]
    pub(crate) fn to_montgomery(self) -> [Lane; 6] {
        self.words()
    }
}

/// Four lanes of a limb, as doubles.
#[inline(always)]
fn doubles(lane: &Lane, h: usize) -> __m256d {
    // SAFETY: lanes exist only where AVX2 and FMA do.
    unsafe { _mm256_castsi256_pd(lane.0[h]) }
}

lanes! {
    /// Carries all limbs but the last at once: each is rounded to a multiple of 2^48, keeps at most
    /// 2^47, and receives at most 2^4 from the limb below if that was within 2^52.
    #[inline]
    fn carry(t: &mut [__m256d; 8]) {
        let (round, down) = (_mm256_set1_pd(ROUND), _mm256_set1_pd(TWO_TO_MINUS_48));
        let mut below = _mm256_setzero_pd();
        for j in 0..7 {
            let carry = _mm256_sub_pd(_mm256_add_pd(t[j], round), round);
            t[j] = _mm256_fmadd_pd(below, down, _mm256_sub_pd(t[j], carry));
            below = carry;
        }
        t[7] = _mm256_fmadd_pd(below, down, t[7]);
    }

    /// Applies [`settle`] in place to a number within 16 p of zero with limbs within 2^50, or only
    /// [`carry`].
    #[inline(never)]
    pub(super) fn normalise<const SETTLE: bool>(x: &mut Fq) {
        for h in 0..2 {
            let mut t = [_mm256_setzero_pd(); 8];
            for j in 0..8 {
                t[j] = doubles(&x.0[j], h);
            }
            if SETTLE {
                settle(&mut t);
            } else {
                carry(&mut t);
            }
            for j in 0..8 {
                x.0[j].0[h] = _mm256_castpd_si256(t[j]);
            }
        }
    }

    /// Subtracts the nearest multiple of p and carries.
    ///
    /// The last limb determines the multiple: it is `x / 2^336` up to 2^3, and p is 2^44.7 times
    /// 2^336. The multiple k is at most 17, so limbs `x_j - k p_j` are below 2^52 and exact.
    #[inline]
    fn settle(t: &mut [__m256d; 8]) {
        const TO_QUOTIENT: f64 = 1.0 / P[7] as f64;
        let integer = _mm256_set1_pd(THREE_TO_51);
        let k = _mm256_sub_pd(_mm256_fmadd_pd(t[7], _mm256_set1_pd(TO_QUOTIENT), integer), integer);
        for j in 0..8 {
            t[j] = _mm256_fnmadd_pd(k, _mm256_set1_pd(BALANCED_P[j]), t[j]);
        }
        carry(t);
    }

    /// Computes `a + b` or `a - b`, settled.
    #[inline(never)]
    fn sum<const MINUS: bool>(a: &Fq, b: &Fq) -> Fq {
        let mut out = Fq::zero();
        for h in 0..2 {
            let mut t = [_mm256_setzero_pd(); 8];
            for j in 0..8 {
                let (a, b) = (doubles(&a.0[j], h), doubles(&b.0[j], h));
                t[j] = if MINUS { _mm256_sub_pd(a, b) } else { _mm256_add_pd(a, b) };
            }
            settle(&mut t);
            for j in 0..8 {
                out.0[j].0[h] = _mm256_castpd_si256(t[j]);
            }
        }
        out
    }

    #[inline(never)]
    fn from_words(w: &[Lane; 6]) -> Fq {
        let (mask, exponent) = (_mm256_set1_epi64x(LIMB), _mm256_set1_pd(TWO_TO_52));
        let mut out = Fq::zero();
        for h in 0..2 {
            for three in 0..2 {
                let (a, b, c) = (w[3 * three].0[h], w[3 * three + 1].0[h], w[3 * three + 2].0[h]);
                let cut = [
                    a,
                    _mm256_or_si256(_mm256_srli_epi64::<48>(a), _mm256_slli_epi64::<16>(b)),
                    _mm256_or_si256(_mm256_srli_epi64::<32>(b), _mm256_slli_epi64::<32>(c)),
                    _mm256_srli_epi64::<16>(c),
                ];
                for j in 0..4 {
                    let above = _mm256_or_si256(_mm256_and_si256(cut[j], mask), _mm256_castpd_si256(exponent));
                    let limb = _mm256_sub_pd(_mm256_castsi256_pd(above), exponent);
                    out.0[4 * three + j].0[h] = _mm256_castpd_si256(limb);
                }
            }
        }
        out
    }

    /// Adds p to negative numbers. The sign is that of the highest nonzero limb, since everything
    /// below it is smaller: Horner's rule in doubles preserves it, however it rounds.
    #[inline(never)]
    fn words(x: &Fq) -> [Lane; 6] {
        // A limb as a signed integer is the difference between the bits of its double plus 3 2^51
        // and the bits of 3 2^51; 2^60 in every limb but the last keeps it positive, and its carry
        // is subtracted one limb above.
        const LIFT: i64 = 1 << 60;
        let up = _mm256_set1_pd(TWO_TO_48);
        let three = _mm256_set1_pd(THREE_TO_51);
        let mask = _mm256_set1_epi64x(LIMB);
        let mut out = [Lane::splat(0); 6];
        for h in 0..2 {
            let mut horner = doubles(&x.0[7], h);
            for j in (0..7).rev() {
                horner = _mm256_fmadd_pd(horner, up, doubles(&x.0[j], h));
            }
            let negative = _mm256_castpd_si256(_mm256_cmp_pd::<_CMP_LT_OQ>(horner, _mm256_setzero_pd()));
            let mut t = [_mm256_setzero_si256(); 8];
            let mut carry = _mm256_setzero_si256();
            for j in 0..8 {
                let lift = if j < 7 { LIFT } else { 0 } - if j > 0 { LIFT >> 48 } else { 0 };
                let offset = _mm256_set1_epi64x(lift.wrapping_sub(THREE_TO_51.to_bits() as i64));
                let p = _mm256_and_si256(negative, _mm256_set1_epi64x(P[j]));
                let limb = _mm256_castpd_si256(_mm256_add_pd(doubles(&x.0[j], h), three));
                t[j] = _mm256_add_epi64(_mm256_add_epi64(limb, offset), _mm256_add_epi64(p, carry));
                carry = _mm256_srli_epi64::<48>(t[j]);
                t[j] = _mm256_and_si256(t[j], mask);
            }
            for three in 0..2 {
                let [a, b, c, d] = [t[4 * three], t[4 * three + 1], t[4 * three + 2], t[4 * three + 3]];
                out[3 * three].0[h] = _mm256_or_si256(a, _mm256_slli_epi64::<48>(b));
                out[3 * three + 1].0[h] = _mm256_or_si256(_mm256_srli_epi64::<16>(b), _mm256_slli_epi64::<32>(c));
                out[3 * three + 2].0[h] = _mm256_or_si256(_mm256_srli_epi64::<32>(c), _mm256_slli_epi64::<16>(d));
            }
        }
        out
    }
}

/// The limbs of one element, in the form of a lane of [`Fq`].
pub(crate) const fn to_row(x: &blst_fp) -> [u64; 8] {
    let limbs = balanced(limbs(&x.l));
    let mut out = [0; 8];
    let mut k = 0;
    while k < 8 {
        out[k] = limbs[k].to_bits();
        k += 1;
    }
    out
}

/// One, as a row.
pub(crate) const ROW_ONE: [u64; 8] = to_row(&blst_fp { l: ONE });

/// The element that a row stands for.
pub(crate) fn from_row(row: &[u64; 8]) -> blst_fp {
    // limbs times powers of two, in Montgomery form; then back to the number itself, which is in
    // Montgomery form
    const STEP: blst_fp = blst_fp { l: power_of_two(384 + 48) };
    let mut acc = blst_fp::default();
    for limb in row.iter().rev() {
        let limb = f64::from_bits(*limb);
        let number = blst_fp { l: [limb.abs() as u64, 0, 0, 0, 0, 0] }.mul(&SQUARE);
        acc = acc.mul(&STEP);
        acc = if limb < 0.0 { acc.sub(&number) } else { acc.add(&number) };
    }
    acc.mul(&blst_fp { l: [1, 0, 0, 0, 0, 0] })
}

/// The factor 2^768 mod p: a product with it converts to Montgomery form.
const SQUARE: blst_fp = blst_fp { l: power_of_two(768) };

/// Negates a row.
pub(crate) fn negate_row(row: &mut [u64; 8]) {
    for limb in row {
        *limb ^= 1 << 63;
    }
}
