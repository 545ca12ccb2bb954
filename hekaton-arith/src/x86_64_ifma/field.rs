//! Eight elements of Fq or Fr at once, in limbs of 52 bits.
//!
//! # Form and bounds
//! An element is N limbs of 52 bits, each limb a [`Lane`]: eight numbers side by side. Limbs are in `0 .. 2^52` after every
//! operation (debug builds check it at every product), but numbers are not reduced: they stay below a multiple of p that
//! each caller states. With R = 2^(52 N), a product `a b / R mod p` of `a < A p` and `b < B p` is below
//! `(1 + A B p / R) p`:
//!
//! | | N | R | p / R | so a product is below 2 p while |
//! |---|---|---|---|---|
//! | Fq | 8 | 2^416 | 2^-35.3 | A B <= 2^35 |
//! | Fr | 5 | 2^260 | 2^-5.1 | A B <= 2^5 |
//!
//! Products are in [`super::product`].
//!
//! # Montgomery forms
//! The 64-bit libraries keep `x 2^384` (Fq) and `x 2^256` (Fr). A product here divides by R, not by those, so the same
//! words read as limbs of 52 bits stand for x up to a power of two. Where all terms of a formula carry the same power it
//! never matters; where it does, a shift by 32 (Fq) or 4 bits (Fr) on reading makes `x R`, below 2^32 p or 2^4 p.

use super::lane::{Lane, Mask};
use ark_bls12_381::{FqConfig, FrConfig};
use ark_ff::MontConfig;
use std::marker::PhantomData;

pub(crate) const LIMB_BITS: u32 = 52;
pub(crate) const LIMB: u64 = (1 << LIMB_BITS) - 1;

/// Cuts words of 64 bits into limbs of 52, shifted to the left by `shift` < 52 bits. Bits above the last limb are dropped.
pub(crate) const fn limbs<const W: usize, const N: usize>(words: &[u64; W], shift: usize) -> [u64; N] {
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

/// `2^k` divided by q: the remainder in words and the quotient modulo 2^64, by doubling.
const fn divide_power_of_two(k: usize) -> ([u64; 6], u64) {
    let p = <FqConfig as MontConfig<6>>::MODULUS.0;
    let (mut x, mut quotient) = ([1, 0, 0, 0, 0, 0], 0u64);
    let mut done = 0;
    while done < k {
        let (mut twice, mut less, mut carry, mut borrow, mut j) = ([0u64; 6], [0u64; 6], 0, false, 0);
        while j < 6 {
            twice[j] = x[j] << 1 | carry;
            carry = x[j] >> 63;
            let (a, b1) = twice[j].overflowing_sub(p[j]);
            let (a, b2) = a.overflowing_sub(borrow as u64);
            less[j] = a;
            borrow = b1 | b2;
            j += 1;
        }
        x = if borrow { twice } else { less };
        quotient = quotient << 1 | !borrow as u64;
        done += 1;
    }
    (x, quotient)
}

/// `2^k mod q` in words.
pub(crate) const fn power_of_two(k: usize) -> [u64; 6] {
    divide_power_of_two(k).0
}

/// A prime, in N limbs of 52 bits.
pub(crate) trait Modulus<const N: usize>: Copy + 'static {
    /// `2^k p` for k = 0 .. 7; those that do not fit N limbs are not used.
    const SHIFTED: [[u64; N]; 8];
    /// `-1 / p mod 2^52`
    const INVERSE: u64;
}

/// q, the modulus of the curve's coordinates.
#[derive(Clone, Copy)]
pub(crate) struct Q;
/// r, the order of the groups.
#[derive(Clone, Copy)]
pub(crate) struct R;

macro_rules! modulus {
    ($name:ty, $n:literal, $config:ty, $words:literal) => {
        impl Modulus<$n> for $name {
            const SHIFTED: [[u64; $n]; 8] = {
                let p = &<$config as MontConfig<$words>>::MODULUS.0;
                [limbs(p, 0), limbs(p, 1), limbs(p, 2), limbs(p, 3), limbs(p, 4), limbs(p, 5), limbs(p, 6), limbs(p, 7)]
            };
            const INVERSE: u64 = <$config as MontConfig<$words>>::INV & LIMB;
        }
    };
}

modulus!(Q, 8, FqConfig, 6);
modulus!(R, 5, FrConfig, 4);

/// Eight elements, a lane each.
#[derive(Clone, Copy)]
pub(crate) struct Element<M, const N: usize>(pub(super) [Lane; N], PhantomData<M>);

pub(crate) type Fq = Element<Q, 8>;
pub(crate) type Fr = Element<R, 5>;

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

    /// `2^k p`
    #[inline(always)]
    pub(crate) fn p(k: usize) -> [Lane; N] {
        let mut out = [Lane::splat(0); N];
        for j in 0..N {
            out[j] = Lane::splat(M::SHIFTED[k][j]);
        }
        out
    }

    /// Carries from limb to limb; the number must not be negative, the limbs may be.
    #[inline(always)]
    pub(crate) fn propagate(mut t: [Lane; N]) -> Self {
        let mask = Lane::splat(LIMB);
        for j in 0..N - 1 {
            t[j + 1] = t[j + 1].add(t[j].carry());
            t[j] = t[j].and(mask);
        }
        Self::new(t)
    }

    /// Debug builds: limbs are in `0 .. 2^52`.
    #[inline(always)]
    pub(crate) fn check(&self) {
        if cfg!(debug_assertions) {
            for limb in self.0 {
                assert_eq!(limb.shr(LIMB_BITS).equal(Lane::splat(0)), u8::MAX, "a limb has left its 52 bits");
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

    /// `a - b + 2^k p`, for `b <= 2^k p`.
    #[inline(always)]
    pub(crate) fn sub<const K: usize>(&self, b: &Self) -> Self {
        let (mut t, p) = (self.0, Self::p(K));
        for j in 0..N {
            t[j] = t[j].sub(b.0[j]).add(p[j]);
        }
        Self::propagate(t)
    }

    /// `2 a`
    #[inline(always)]
    pub(crate) fn double(&self) -> Self {
        self.add(self)
    }

    /// Takes `2^k p` away where the number is not below it.
    #[inline(always)]
    pub(crate) fn reduce_once<const K: usize>(&self) -> Self {
        let (mut t, p) = (self.0, Self::p(K));
        for j in 0..N {
            t[j] = t[j].sub(p[j]);
        }
        let t = Self::propagate(t);
        t.select(t.0[N - 1].negative(), self)
    }

    /// `other` in the lanes of the mask.
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

    /// Lane i is lane i + K of before, modulo 8.
    #[inline(always)]
    pub(crate) fn rotated<const K: i32>(&self) -> Self {
        let mut t = self.0;
        for j in 0..N {
            t[j] = t[j].rotated::<K>();
        }
        Self::new(t)
    }

    /// `2^by a`, by < 52, for a number that stays below 2^(52 N).
    #[inline(always)]
    pub(crate) fn shift_left(&self, by: u32) -> Self {
        let mut t = self.0;
        for j in (0..N).rev() {
            let low = if j > 0 { self.0[j - 1].shr(LIMB_BITS - by) } else { Lane::splat(0) };
            t[j] = t[j].shl(by).and(Lane::splat(LIMB)).or(low);
        }
        Self::new(t)
    }

    /// Reads words of 64 bits, shifted to the left by `shift` < 52 bits.
    #[inline(always)]
    pub(crate) fn from_words<const W: usize>(words: &[Lane; W], shift: u32) -> Self {
        let mut t = [Lane::splat(0); N];
        for k in 0..N {
            // bits 52 k - shift and on
            let at = (LIMB_BITS * k as u32) as i32 - shift as i32;
            t[k] = if at < 0 {
                words[0].shl(shift)
            } else {
                let (word, bit) = (at as usize / 64, at as u32 % 64);
                let low = if word < W { words[word].shr(bit) } else { Lane::splat(0) };
                if bit > 64 - LIMB_BITS && word + 1 < W { low.or(words[word + 1].shl(64 - bit)) } else { low }
            };
            t[k] = t[k].and(Lane::splat(LIMB));
        }
        Self::new(t)
    }

    /// Writes words of 64 bits; the number must fit.
    #[inline(always)]
    pub(crate) fn words<const W: usize>(&self) -> [Lane; W] {
        let mut out = [Lane::splat(0); W];
        for (k, out) in out.iter_mut().enumerate() {
            let (limb, bit) = (64 * k / 52, 64 * k as u32 % 52);
            *out = self.0[limb].shr(bit);
            let mut have = LIMB_BITS - bit;
            for next in limb + 1..N {
                if have < 64 {
                    *out = out.or(self.0[next].shl(have));
                    have += LIMB_BITS;
                }
            }
        }
        out
    }

    /// `a / 2^bits mod p`, below `p` plus `a / 2^bits`; bits < 52. From the form with R to that of the 64-bit words.
    #[inline(always)]
    pub(crate) fn divide<const BITS: u32>(&self) -> Self {
        let p = Self::p(0);
        let q = Lane::splat(0).madd_low(self.0[0], Lane::splat(M::INVERSE)).and(Lane::splat((1 << BITS) - 1));
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
            let high = if j + 1 < N { t[j + 1].shl(LIMB_BITS - BITS).and(Lane::splat(LIMB)) } else { Lane::splat(0) };
            out[j] = t[j].shr(BITS).or(high);
        }
        Self::new(out)
    }
}

impl Fq {
    /// Below `p + 2^-16 p`, from below 2^16 p: 16 multiply-adds.
    ///
    /// The top limb, `x / 2^364`, times `2^416 / p` is at most 2^52 times `x / p`, and by less than 2^-17 + 2^-19 of it
    /// smaller: for the rest of x below 2^364 < 2^-16.7 p, and for what is cut off from `2^416 / p`.
    #[inline(always)]
    pub(crate) fn nearly_reduced(&self) -> Self {
        const QUOTIENT: u64 = divide_power_of_two(416).1;
        // 2^416 - p, so that q times it takes q p away and leaves q in the bits above the last limb
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
