//! Eight elements of Fq or Fr at once, in limbs of 52 bits.
//!
//! # Form and bounds
//! An element is N limbs of 52 bits, each limb a [`Lane`]: eight numbers side by side. Limbs are in
//! `0 .. 2^52` after every operation (debug builds check it at every product), but numbers are not
//! reduced: they stay below a multiple of p that each caller states. With R = 2^(52 N), a product
//! `a b / R mod p` of `a < A p` and `b < B p` is below `(1 + c / 2^52 + A B p / R) p`, with the c
//! of [`Modulus::MULTIPLIER`]:
//!
//! | | N | R | p / R | c / 2^52 | so a product is below 2 p while |
//! |---|---|---|---|---|---|
//! | Fq | 8 | 2^416 | 2^-35.3 | 1/4 | A B <= 2^34 |
//! | Fr | 5 | 2^260 | 2^-5.1 | 2^-20 | A B <= 2^5 |
//!
//! Products are in [`super::product`].
//!
//! # Montgomery forms
//! The 64-bit libraries store `x 2^384` (Fq) and `x 2^256` (Fr). A product here divides by R
//! instead, so the same words read as limbs of 52 bits stand for x up to a power of two. Where all
//! terms of a formula carry the same power it does not matter; elsewhere, shifting by 32 (Fq) or 4
//! bits (Fr) on reading yields `x R`, below 2^32 p or 2^4 p.

#![allow(clippy::cast_possible_truncation, reason = "limbs are masked to 52 bits")]

use super::lane::{Lane, Mask};
use crate::lanes::{divide_power_of_two, power_of_two};
use crate::portable::Field;
use ark_bls12_381::{FqConfig, FrConfig};
use ark_ff::MontConfig;
use blst::blst_fp;
use std::marker::PhantomData;

pub(crate) const LIMB_BITS: u32 = 52;
pub(crate) const LIMB: u64 = (1 << LIMB_BITS) - 1;

/// Cuts words of 64 bits into limbs of 52, shifted left by `shift` < 52 bits. Bits above the last
/// limb are dropped.
pub(crate) const fn limbs<const W: usize, const N: usize>(
    words: &[u64; W],
    shift: usize,
) -> [u64; N] {
    let mut out = [0; N];
    out[0] = words[0] << shift & LIMB;
    let mut k = 1;
    while k < N {
        let (word, bit) = ((52 * k - shift) / 64, (52 * k - shift) % 64);
        let low = if word < W { words[word] } else { 0 };
        let high = if word + 1 < W { words[word + 1] } else { 0 };
        out[k] = (((high as u128) << 64 | low as u128) >> bit) as u64 & LIMB;
        k += 1;
    }
    out
}

/// One, multiplied by R.
const ONE: [u64; 8] = limbs(&power_of_two(416), 0);

/// A prime, in N limbs of 52 bits.
pub(crate) trait Modulus<const N: usize>: Copy + 'static {
    /// The multiples `2^k p` for k = 0 .. 7; those that do not fit N limbs are unused.
    const SHIFTED: [[u64; N]; 8];
    /// The multiples `k p` for k = 0 .. 7, limb by limb.
    const MULTIPLES: [[u64; 8]; N] = {
        let (mut out, mut k) = ([[0; 8]; N], 0);
        while k < 8 {
            let (mut carry, mut j) = (0, 0);
            while j < N {
                let sum = Self::SHIFTED[0][j] * k as u64 + carry;
                out[j][k] = sum & LIMB;
                carry = sum >> LIMB_BITS;
                j += 1;
            }
            k += 1;
        }
        out
    };
    /// The inverse `-1 / p mod 2^52`.
    const INVERSE: u64;
    /// The factor c with `c p = 1` or -1 modulo 2^52, whichever is smaller.
    const MULTIPLIER: u64;
    /// `true` if `c p` is -1 rather than 1.
    const MINUS_ONE: bool;
    /// The multiple `c p` without its lowest limb: `(c p + 1) / 2^52` or `(c p - 1) / 2^52`.
    const MULTIPLE: [u64; N] = {
        let (mut out, mut j) = ([0; N], 0);
        let mut carry = if Self::MINUS_ONE { 1 } else { 0 };
        while j <= N {
            let limb = if j < N { Self::SHIFTED[0][j] } else { 0 };
            let sum = limb as u128 * Self::MULTIPLIER as u128 + carry;
            if j > 0 {
                out[j - 1] = sum as u64 & LIMB;
            } else {
                assert!(sum as u64 & LIMB == if Self::MINUS_ONE { 0 } else { 1 });
            }
            carry = sum >> LIMB_BITS;
            j += 1;
        }
        assert!(carry == 0);
        out
    };
}

/// The modulus q of the curve's coordinates.
#[derive(Clone, Copy)]
pub(crate) struct Q;
/// The order r of the groups.
#[derive(Clone, Copy)]
pub(crate) struct R;

macro_rules! modulus {
    ($name:ty, $n:literal, $config:ty, $words:literal, minus_one: $minus_one:literal) => {
        impl Modulus<$n> for $name {
            const SHIFTED: [[u64; $n]; 8] = {
                let p = &<$config as MontConfig<$words>>::MODULUS.0;
                [
                    limbs(p, 0),
                    limbs(p, 1),
                    limbs(p, 2),
                    limbs(p, 3),
                    limbs(p, 4),
                    limbs(p, 5),
                    limbs(p, 6),
                    limbs(p, 7),
                ]
            };
            const INVERSE: u64 = <$config as MontConfig<$words>>::INV & LIMB;
            const MINUS_ONE: bool = $minus_one;
            const MULTIPLIER: u64 =
                if $minus_one { Self::INVERSE } else { (1 << LIMB_BITS) - Self::INVERSE };
        }
    };
}

// c = 2^50 - 0x300030003
modulus!(Q, 8, FqConfig, 6, minus_one: true);
// c = 2^32 + 1
modulus!(R, 5, FrConfig, 4, minus_one: false);

/// Eight elements, one per lane.
#[derive(Clone, Copy)]
pub(crate) struct Element<M, const N: usize>(pub(super) [Lane; N], PhantomData<M>);

pub(crate) type Fq = Element<Q, 8>;
pub(crate) type Fr = Element<R, 5>;

/// Limb k of words of 64 bits, shifted left by `shift` < 52 bits.
#[inline(always)]
pub(super) fn cut_limb<const W: usize>(words: &[Lane; W], shift: u32, k: usize) -> Lane {
    // bits from 52 k - shift on
    let at = (LIMB_BITS * k as u32) as i32 - shift as i32;
    let limb = if at < 0 {
        words[0].shl(shift)
    } else {
        let (word, bit) = (at as usize / 64, at as u32 % 64);
        let low = if word < W { words[word].shr(bit) } else { Lane::splat(0) };
        if bit > 64 - LIMB_BITS && word + 1 < W {
            low.or(words[word + 1].shl(64 - bit))
        } else {
            low
        }
    };
    limb.and(Lane::splat(LIMB))
}

impl<M: Modulus<N>, const N: usize> Element<M, N> {
    #[inline(always)]
    pub(crate) fn new(limbs: [Lane; N]) -> Self {
        Self(limbs, PhantomData)
    }

    /// The same number in all lanes.
    #[inline(always)]
    pub(crate) fn splat(limbs: &[u64; N]) -> Self {
        let mut out = [Lane::splat(0); N];
        for j in 0..N {
            out[j] = Lane::splat(limbs[j]);
        }
        Self::new(out)
    }

    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self::new([Lane::splat(0); N])
    }

    /// The limbs of `2^k p`.
    #[inline(always)]
    pub(crate) fn p(k: usize) -> [Lane; N] {
        let mut out = [Lane::splat(0); N];
        for j in 0..N {
            out[j] = Lane::splat(M::SHIFTED[k][j]);
        }
        out
    }

    /// Carries from limb to limb; the number must not be negative, although limbs may be.
    #[inline(always)]
    pub(crate) fn propagate(mut t: [Lane; N]) -> Self {
        let mask = Lane::splat(LIMB);
        for j in 0..N - 1 {
            t[j + 1] = t[j + 1].add(t[j].carry());
            t[j] = t[j].and(mask);
        }
        Self::new(t)
    }

    /// Asserts, in debug builds, that limbs are in `0 .. 2^52`.
    #[inline(always)]
    pub(crate) fn check(&self) {
        if cfg!(debug_assertions) {
            for limb in self.0 {
                assert_eq!(
                    limb.shr(LIMB_BITS).equal(Lane::splat(0)),
                    u8::MAX,
                    "a limb has left its 52 bits"
                );
            }
        }
    }

    #[inline(always)]
    pub(crate) fn add(&self, b: &Self) -> Self {
        let mut t = self.0;
        for j in 0..N {
            t[j] = t[j].add(b.0[j]);
        }
        Self::propagate(t)
    }

    /// Computes `a - b + 2^k p`, for `b <= 2^k p`.
    #[inline(always)]
    pub(crate) fn sub<const K: usize>(&self, b: &Self) -> Self {
        let (mut t, p) = (self.0, Self::p(K));
        for j in 0..N {
            t[j] = t[j].sub(b.0[j]).add(p[j]);
        }
        Self::propagate(t)
    }

    /// Computes `2 a`.
    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        self.add(self)
    }

    /// Subtracts `2^k p` unless the number is below it.
    #[inline(always)]
    pub(crate) fn reduce_once<const K: usize>(&self) -> Self {
        let (mut t, p) = (self.0, Self::p(K));
        for j in 0..N {
            t[j] = t[j].sub(p[j]);
        }
        let t = Self::propagate(t);
        t.select(t.0[N - 1].negative(), self)
    }

    /// Selects `other` in the lanes of the mask.
    #[inline(always)]
    pub(crate) fn select(&self, mask: Mask, other: &Self) -> Self {
        let mut t = self.0;
        for j in 0..N {
            t[j] = t[j].blend(mask, other.0[j]);
        }
        Self::new(t)
    }

    /// The lanes whose limbs are equal.
    #[inline(always)]
    pub(crate) fn equal(&self, b: &Self) -> Mask {
        let mut equal = Mask::MAX;
        for j in 0..N {
            equal &= self.0[j].equal(b.0[j]);
        }
        equal
    }

    /// Rotates the lanes: lane i becomes lane i + K, modulo 8.
    #[inline(always)]
    pub(crate) fn rotated<const K: i32>(&self) -> Self {
        let mut t = self.0;
        for j in 0..N {
            t[j] = t[j].rotated::<K>();
        }
        Self::new(t)
    }

    /// Computes `2^by a`, by < 52, for a result below 2^(52 N).
    #[inline(always)]
    pub(crate) fn shift_left(&self, by: u32) -> Self {
        let mut t = self.0;
        for j in 0..N {
            t[j] = self.shifted_left_limb(by, j);
        }
        Self::new(t)
    }

    #[inline(always)]
    fn shifted_left_limb(&self, by: u32, j: usize) -> Lane {
        let low = if j > 0 { self.0[j - 1].shr(LIMB_BITS - by) } else { Lane::splat(0) };
        self.0[j].shl(by).and(Lane::splat(LIMB)).or(low)
    }

    /// Reads words of 64 bits, shifted left by `shift` < 52 bits.
    #[inline(always)]
    pub(crate) fn cut<const W: usize>(words: &[Lane; W], shift: u32) -> Self {
        let mut t = [Lane::splat(0); N];
        for k in 0..N {
            t[k] = cut_limb(words, shift, k);
        }
        Self::new(t)
    }

    /// Writes words of 64 bits; the number must fit.
    #[inline(always)]
    pub(crate) fn joined<const W: usize>(&self) -> [Lane; W] {
        let mut out = [Lane::splat(0); W];
        for k in 0..W {
            out[k] = self.joined_word(k);
        }
        out
    }

    /// One of the words that [`Self::joined`] writes.
    #[inline(always)]
    pub(super) fn joined_word(&self, k: usize) -> Lane {
        let (limb, bit) = (64 * k / 52, 64 * k as u32 % 52);
        let mut out = self.0[limb].shr(bit);
        let mut have = LIMB_BITS - bit;
        for next in limb + 1..N {
            if have < 64 {
                out = out.or(self.0[next].shl(have));
                have += LIMB_BITS;
            }
        }
        out
    }

    /// Computes `a / 2^bits mod p`, below `p` plus `a / 2^bits`; bits < 52. Converts from the form
    /// with R to that of the 64-bit words.
    #[inline(always)]
    pub(crate) fn divide<const BITS: u32>(&self) -> Self {
        let p = Self::p(0);
        let q = Lane::splat(0)
            .madd_low(self.0[0], Lane::splat(M::INVERSE))
            .and(Lane::splat((1 << BITS) - 1));
        let mut t = self.0;
        for j in 0..N {
            t[j] = t[j].madd_low(q, p[j]);
        }
        for j in 0..N - 1 {
            t[j + 1] = t[j + 1].madd_high(q, p[j]);
        }
        let t = Self::propagate(t).0;
        let mut out = t;
        for j in 0..N {
            let high = if j + 1 < N {
                t[j + 1].shl(LIMB_BITS - BITS).and(Lane::splat(LIMB))
            } else {
                Lane::splat(0)
            };
            out[j] = t[j].shr(BITS).or(high);
        }
        Self::new(out)
    }
}

/// The quotient 2^(243 + 52) / r, rounded down: 2^127 / (r / 2^168), with the divisor rounded up.
const SETTLING: u64 = {
    let top = (R::SHIFTED[0][4] as u128) << LIMB_BITS | R::SHIFTED[0][3] as u128;
    ((1 << 127) / ((top >> 12) + 1)) as u64
};

impl Fr {
    /// Reduces a number below 8 p, with limbs that have not been carried, to below `p + 2^-10 p`.
    ///
    /// The quotient is estimated from the bits of the top limb from 2^243 upward, rounded down; p
    /// has 12 of them.
    #[inline(always)]
    pub(super) fn settled(mut t: [Lane; 5]) -> Self {
        // for a number next to zero the top may appear to be -1
        let top = t[4].add(t[3].carry()).not_negative().shr(35);
        let q = Lane::splat(0).madd_high(top, Lane::splat(SETTLING));
        for j in 0..5 {
            t[j] = t[j].sub(q.lookup(&R::MULTIPLES[j]));
        }
        let out = Self::propagate(t);
        out.check();
        out
    }
}

/// The factor 2^432 mod p, by which an inverse must be multiplied in batches of additions
/// ([`super::batch`]).
pub(crate) const SCALE: [u64; 6] = power_of_two(432);
/// The quotient `2^416 / p`, rounded down.
pub(super) const QUOTIENT: u64 = divide_power_of_two(416).1;

impl Fq {
    /// One, multiplied by R.
    #[inline(always)]
    pub(crate) fn one() -> Self {
        Self::splat(&ONE)
    }

    /// Reads words without changing the form.
    #[inline(always)]
    pub(crate) fn from_words(words: &[Lane; 6]) -> Self {
        Self::cut(words, 0)
    }

    /// Writes words without changing the form.
    #[inline(always)]
    pub(crate) fn words(&self) -> [Lane; 6] {
        self.joined()
    }

    /// Converts a number times R, below 2^8 p, to reduced words times 2^384.
    #[inline(always)]
    pub(crate) fn to_montgomery(self) -> [Lane; 6] {
        // little more than p after the division
        self.divide::<32>().reduce_once::<0>().words()
    }

    /// Multiplies by 2^16, so that a product with the words of a coordinate has the form of a
    /// coordinate's words ([`super::batch`]).
    #[inline(always)]
    pub(crate) fn shifted(&self) -> Self {
        self.shift_left(16)
    }

    /// One limb of [`Self::shifted`].
    #[inline(always)]
    pub(super) fn shifted_limb(&self, j: usize) -> Lane {
        self.shifted_left_limb(16, j)
    }

    /// Reduces a number below 2^16 p to below p.
    #[inline(always)]
    pub(crate) fn reduced(&self) -> Self {
        self.nearly_reduced().reduce_once::<0>()
    }

    /// The only limbs that a number below p has: same as [`Self::reduced`].
    #[inline(always)]
    pub(crate) fn canonical(&self) -> Self {
        self.reduced()
    }

    /// Computes p minus the number in the lanes of the mask: at most p, and p for zero.
    #[inline(always)]
    pub(crate) fn negated(&self, mask: Mask) -> Self {
        self.select(mask, &Self::zero().sub::<0>(self))
    }

    /// Makes a valid factor, which every element already is in this backend.
    #[inline(always)]
    pub(crate) fn carried(&self) -> Self {
        *self
    }

    /// Reduces a number below 2^16 p to below `p + 2^-16 p`: 16 multiply-adds.
    ///
    /// The quotient is estimated as the top limb, `x / 2^364`, times `2^416 / p`, divided by 2^52.
    /// Before rounding the estimate is never too large, and too small by less than 2^-16.5: by
    /// 2^-16.7 for the rest of x, which is below 2^364, and by 2^-19 for the truncation of `2^416 /
    /// p`.
    #[inline(always)]
    pub(crate) fn nearly_reduced(&self) -> Self {
        // 2^416 - p: adding q times it subtracts q p, up to multiples of 2^416, which are masked
        // off
        const MINUS_P: [u64; 8] = {
            let mut out = [LIMB; 8];
            let mut j = 0;
            while j < 8 {
                out[j] -= Q::SHIFTED[0][j];
                j += 1;
            }
            out[0] += 1;
            out
        };
        let q = Lane::splat(0).madd_high(self.0[7], Lane::splat(QUOTIENT));
        let mut t = self.0;
        for j in 0..8 {
            t[j] = t[j].madd_low(q, Lane::splat(MINUS_P[j]));
        }
        for j in 0..7 {
            t[j + 1] = t[j + 1].madd_high(q, Lane::splat(MINUS_P[j]));
        }
        let mut out = Self::propagate(t);
        out.0[7] = out.0[7].and(Lane::splat(LIMB));
        out
    }
}

/// The factor 2^416 mod p: a product with it multiplies by 2^32.
const TWO_TO_32: blst_fp = blst_fp { l: power_of_two(416) };
/// The factor 2^352 mod p: a product (which divides by 2^384) with it divides by 2^32.
const BACK: blst_fp = blst_fp { l: power_of_two(352) };

/// The limbs of one element, times R, in the form of a lane of [`Fq`].
pub(crate) fn to_row(x: &blst_fp) -> [u64; 8] {
    limbs(&x.mul(&TWO_TO_32).l, 0)
}

/// One, as a row.
pub(crate) const ROW_ONE: [u64; 8] = ONE;

/// The element that a row stands for.
pub(crate) fn from_row(row: &[u64; 8]) -> blst_fp {
    // the sum of the limbs times powers of two, all in the form of the 64-bit library (times 2^384,
    // so read as a number times 1)
    const TO_FORM: blst_fp = blst_fp { l: power_of_two(768) };
    const STEP: blst_fp = blst_fp { l: power_of_two(384 + 52) };
    let mut acc = blst_fp::default();
    for limb in row.iter().rev() {
        let number = blst_fp { l: [*limb, 0, 0, 0, 0, 0] };
        acc = acc.mul(&STEP).add(&number.mul(&TO_FORM));
    }
    // back to the number itself
    acc.mul(&blst_fp { l: [1, 0, 0, 0, 0, 0] }).mul(&BACK)
}

/// Negates a row: 2^6 p minus it.
pub(crate) fn negate_row(row: &mut [u64; 8]) {
    let mut carry = 0;
    for (limb, p) in row.iter_mut().zip(Q::SHIFTED[6]) {
        let difference = p as i64 - *limb as i64 + carry;
        (*limb, carry) = (difference as u64 & LIMB, difference >> LIMB_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::super::loose::{Loose, Reducing};
    use super::*;

    /// The limbs of `k p + delta`.
    fn multiple_of<M: Modulus<N>, const N: usize>(k: u64, delta: i128) -> [u64; N] {
        let mut out = [0; N];
        let mut carry = delta;
        for (out, p) in out.iter_mut().zip(M::SHIFTED[0]) {
            let sum = i128::from(k) * i128::from(p) + carry;
            (*out, carry) = (sum as u64 & LIMB, sum >> LIMB_BITS);
        }
        assert_eq!(carry, 0);
        out
    }

    fn multiple(k: u64, delta: i128) -> [u64; 8] {
        multiple_of::<Q, 8>(k, delta)
    }

    /// The same number in limbs that have to be carried, some of them negative.
    fn loosened<const N: usize>(x: &[u64; N], lane: u64) -> [u64; N] {
        let mut out = *x;
        for j in 0..N - 1 {
            // from -2^59 to 2^59
            let moved = ((lane * 37 + j as u64 * 11) % 257).wrapping_sub(128);
            out[j] = out[j].wrapping_add(moved << LIMB_BITS);
            out[j + 1] = out[j + 1].wrapping_sub(moved);
        }
        out
    }

    /// The limbs of `x + LIFT p`, reduced.
    fn reduced<const LIFT: usize>(x: Loose) -> [[u64; 8]; 8] {
        let mut reducing = Reducing::<LIFT, 1>::new();
        for step in 0..Reducing::<LIFT, 1>::STEPS {
            reducing.step(|_, k| x.0[k], step);
        }
        lanes_of(reducing.done().0[0].0)
    }

    fn lanes_of<const N: usize>(x: [Lane; N]) -> [[u64; N]; 8] {
        let mut out = [[0; N]; 8];
        for (j, limb) in x.iter().enumerate() {
            let mut words = [0; 8];
            limb.store(&mut words);
            (0..8).for_each(|lane| out[lane][j] = words[lane]);
        }
        out
    }

    /// Numbers from `least p` up to 8 p with their residues modulo p: those around multiples of p,
    /// and the largest ones whose bits from `bit` upward, times `factor` over 2^52, still yield the
    /// quotient below.
    fn edges<M: Modulus<N>, const N: usize>(
        least: u64,
        bit: u32,
        factor: u64,
    ) -> Vec<([u64; N], [u64; N])> {
        let mut out = Vec::new();
        for k in least..=8 {
            for delta in [0, 1, 2, 1 << 60, 1 << 100] {
                if k < 8 {
                    out.push((multiple_of::<M, N>(k, delta), multiple_of::<M, N>(0, delta)));
                }
                if k > least && delta > 0 {
                    out.push((multiple_of::<M, N>(k, -delta), multiple_of::<M, N>(1, -delta)));
                }
            }
            if k > least && k < 8 {
                let least_of_k = ((u128::from(k) << LIMB_BITS).div_ceil(factor.into())) as u64;
                let mut x = [LIMB; N];
                x[N - 1] = (least_of_k << (bit - LIMB_BITS * (N as u32 - 1))) - 1;
                let (rest, negative) = difference(&x, &multiple_of::<M, N>(k, 0));
                assert!(!negative, "the estimate is never too large");
                out.push((x, rest));
            }
        }
        out
    }

    #[test]
    fn loose_sums_are_reduced() {
        if !super::super::available() {
            return;
        }
        // p .. 8 p, with and without the lift included
        for (i, (x, expected)) in edges::<Q, 8>(1, 364, QUOTIENT).into_iter().enumerate() {
            let all: [[u64; 8]; 8] =
                std::array::from_fn(|lane| loosened(&x, (8 * i + lane) as u64));
            let limbs: [Lane; 8] =
                std::array::from_fn(|j| Lane::load(&std::array::from_fn(|lane| all[lane][j])));
            assert_eq!(reduced::<0>(Loose(limbs)), [expected; 8], "{x:x?}");
            let less = Loose(limbs).minus(Loose(Fq::p(0)));
            assert_eq!(reduced::<1>(less), [expected; 8], "{x:x?}");
        }
        // 0 .. 8 p: at most a little above p
        for (i, (x, expected)) in edges::<R, 5>(0, 243, SETTLING).into_iter().enumerate() {
            let all: [[u64; 5]; 8] =
                std::array::from_fn(|lane| loosened(&x, (8 * i + lane) as u64));
            let limbs: [Lane; 5] =
                std::array::from_fn(|j| Lane::load(&std::array::from_fn(|lane| all[lane][j])));
            let settled = Fr::settled(limbs);
            assert_eq!(lanes_of(settled.reduce_once::<0>().0), [expected; 8], "{x:x?}");
            // below p + 2^-10 p: 2^244.9 is less than 2^37 times 2^208
            assert!(lanes_of(settled.0)[i % 8][4] <= R::SHIFTED[0][4] + (1 << 37), "{x:x?}");
        }
    }

    fn difference<const N: usize>(a: &[u64; N], b: &[u64; N]) -> ([u64; N], bool) {
        let (mut out, mut carry) = ([0; N], 0);
        for j in 0..N {
            let x = a[j] as i64 - b[j] as i64 + carry;
            (out[j], carry) = (x as u64 & LIMB, x >> LIMB_BITS);
        }
        (out, carry < 0)
    }

    /// Tests multiples of p and their neighbors, and where the estimate of the quotient is worst,
    /// up to 2^16 p.
    #[test]
    fn nearly_reduced_takes_multiples_away() {
        if !super::super::available() {
            return;
        }
        let mut inputs = Vec::new();
        for k in (0..40).chain([255, 256, 32_767, 65_296, 65_534, 65_535]) {
            for delta in [-1, 0, 1, 12_345] {
                if k > 0 || delta >= 0 {
                    inputs.push(multiple(k, delta));
                }
            }
            // the largest number whose top limb still yields the quotient below
            let (quotient, mut x) = (divide_power_of_two(416).1, [LIMB; 8]);
            x[7] = (u128::from(k + 1) << 52).div_ceil(u128::from(quotient)) as u64 - 1;
            inputs.push(x);
        }
        for eight in inputs.chunks(8) {
            let mut limbs = [Lane::splat(0); 8];
            for (j, limb) in limbs.iter_mut().enumerate() {
                *limb =
                    Lane::load(&std::array::from_fn(|lane| eight[lane.min(eight.len() - 1)][j]));
            }
            let reduced = Fq::new(limbs).nearly_reduced();
            reduced.check();
            let mut words = [[0; 8]; 8];
            reduced.0.iter().zip(&mut words).for_each(|(limb, words)| limb.store(words));
            for (lane, x) in eight.iter().enumerate() {
                let r: [u64; 8] = std::array::from_fn(|j| words[j][lane]);
                let (taken, negative) = difference(x, &r);
                // a multiple of p: its top limb determines which one, up to one
                let k =
                    ((u128::from(taken[7]) * u128::from(divide_power_of_two(416).1)) >> 52) as u64;
                assert!(
                    !negative && (taken == multiple(k, 0) || taken == multiple(k + 1, 0)),
                    "{x:x?}"
                );
                // r < p + 2^365: 2^-16 p is 2^364.7
                let (above, below_p) = difference(&r, &Q::SHIFTED[0]);
                assert!(below_p || above[7] <= 1, "{x:x?}");
            }
        }
    }
}
