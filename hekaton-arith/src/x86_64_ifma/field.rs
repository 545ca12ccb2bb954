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
//! Inside a product a limb takes at most 4 N parts below 2^52, so it stays below 2^57 (Fq), far from 2^63.
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
const LIMB: u64 = (1 << LIMB_BITS) - 1;

/// A loop over rows, written out: the limbs of a product stay in registers only if all indices are known.
macro_rules! rows {
    ($i:ident < $n:expr, $body:block) => {
        rows!(@ $i, $n, $body, 0 1 2 3 4 5 6 7)
    };
    (@ $i:ident, $n:expr, $body:block, $($at:literal)*) => {
        $({
            let $i = $at;
            if $i < $n $body
        })*
    };
}

/// Cuts words of 64 bits into limbs of 52.
pub(crate) const fn limbs<const W: usize, const N: usize>(words: [u64; W], shift: usize) -> [u64; N] {
    let mut out = [0; N];
    let mut k = 0;
    while k < N {
        let mut bit = 0;
        while bit < 52 {
            let at = 52 * k + bit;
            if at >= shift && (at - shift) / 64 < W {
                out[k] |= (words[(at - shift) / 64] >> ((at - shift) % 64) & 1) << bit;
            }
            bit += 1;
        }
        k += 1;
    }
    out
}

/// A prime, in N limbs of 52 bits.
pub(crate) trait Modulus<const N: usize>: Copy + 'static {
    /// `2^k p` for k = 0 .. 4, so many bits to the left.
    const SHIFTED: [[u64; N]; 5];
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
            const SHIFTED: [[u64; $n]; 5] = {
                let p = <$config as MontConfig<$words>>::MODULUS.0;
                [limbs(p, 0), limbs(p, 1), limbs(p, 2), limbs(p, 3), limbs(p, 4)]
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
        Self::new(limbs.map(Lane::splat))
    }

    #[inline(always)]
    pub(crate) fn zero() -> Self {
        Self::new([Lane::splat(0); N])
    }

    /// `2^k p`
    #[inline(always)]
    fn p(k: usize) -> [Lane; N] {
        let mut out = [Lane::splat(0); N];
        for j in 0..N {
            out[j] = Lane::splat(M::SHIFTED[k][j]);
        }
        out
    }

    /// Carries from limb to limb; the number must not be negative, the limbs may be.
    #[inline(always)]
    fn settle(mut t: [Lane; N]) -> Self {
        let mask = Lane::splat(LIMB);
        for j in 0..N - 1 {
            t[j + 1] = t[j + 1].add(t[j].carry());
            t[j] = t[j].and(mask);
        }
        Self::new(t)
    }

    /// Debug builds: limbs are in `0 .. 2^52`.
    #[inline(always)]
    fn check(&self) {
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
        Self::settle(t)
    }

    /// `a - b + 2^k p`, for `b <= 2^k p`.
    #[inline(always)]
    pub(crate) fn sub<const K: usize>(&self, b: &Self) -> Self {
        let (mut t, p) = (self.0, Self::p(K));
        for j in 0..N {
            t[j] = t[j].sub(b.0[j]).add(p[j]);
        }
        Self::settle(t)
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
        let t = Self::settle(t);
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
    pub(crate) fn to_words<const W: usize>(&self) -> [Lane; W] {
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
        let t = Self::settle(t).0;
        let mut out = t;
        for j in 0..N {
            let high = if j + 1 < N { t[j + 1].shl(LIMB_BITS - BITS).and(Lane::splat(LIMB)) } else { Lane::splat(0) };
            out[j] = t[j].shr(BITS).or(high);
        }
        Self::new(out)
    }

    /// The lanes where both have the same limbs.
    #[cfg(test)]
    pub(crate) fn same(&self, other: &Self) -> Mask {
        (0..N).fold(u8::MAX, |mask, j| mask & self.0[j].equal(other.0[j]))
    }
}

lanes! {
    /// `a b / R mod p`: 2 N^2 multiply-adds for the product, 2 N^2 + N for the reduction (together 264 for Fq, 105 for Fr).
    #[inline(never)]
    pub(crate) fn mul<M: Modulus<N>, const N: usize>(a: &Element<M, N>, b: &Element<M, N>) -> Element<M, N> {
        a.check();
        b.check();
        let (a, b, p, inverse) = (&a.0, &b.0, Element::<M, N>::p(0), Lane::splat(M::INVERSE));
        let zero = Lane::splat(0);
        // row i works on t[i ..= i + N]; what does not depend on q comes before it, so that the chain from one q to the next
        // is short
        let mut t = [zero; 16];
        t[0] = zero.madd_low(a[0], b[0]);
        rows!(i < N, {
            for j in 1..N {
                t[i + j] = t[i + j].madd_low(a[j], b[i]);
            }
            for j in 0..N {
                t[i + j + 1] = t[i + j + 1].madd_high(a[j], b[i]);
            }
            if i + 1 < N {
                t[i + 1] = t[i + 1].madd_low(a[0], b[i + 1]);
            }
            let q = zero.madd_low(t[i], inverse);
            // all that goes into t[i + 1] side by side: the next row's q waits for it
            let high = zero.madd_high(q, p[0]);
            for j in 0..N {
                t[i + j] = t[i + j].madd_low(q, p[j]);
            }
            for j in 1..N {
                t[i + j + 1] = t[i + j + 1].madd_high(q, p[j]);
            }
            t[i + 1] = t[i + 1].add(high).add(t[i].carry());
        });
        let mut out = [zero; N];
        out.copy_from_slice(&t[N..2 * N]);
        Element::settle(out)
    }
}

// The parts of products are inlined wherever they are used, hence compiled for the features of those functions.

/// A product before its reduction: 2 N limbs that may be negative and longer than 52 bits. `W = 2 N`.
#[derive(Clone, Copy)]
pub(crate) struct Wide<M, const W: usize>([Lane; W], PhantomData<M>);

/// Of Fq.
pub(crate) type WideFq = Wide<Q, 16>;

impl<M, const W: usize> Wide<M, W> {
    #[inline(always)]
    pub(crate) fn add(&self, b: &Self) -> Self {
        let mut t = self.0;
        for j in 0..W {
            t[j] = t[j].add(b.0[j]);
        }
        Self(t, PhantomData)
    }

    #[inline(always)]
    pub(crate) fn sub(&self, b: &Self) -> Self {
        let mut t = self.0;
        for j in 0..W {
            t[j] = t[j].sub(b.0[j]);
        }
        Self(t, PhantomData)
    }
}

/// `a b`, 2 N^2 multiply-adds.
#[inline(always)]
pub(crate) fn mul_wide<M: Modulus<N>, const N: usize, const W: usize>(a: &Element<M, N>, b: &Element<M, N>) -> Wide<M, W> {
    a.check();
    b.check();
    let mut t = [Lane::splat(0); W];
    rows!(i < N, {
        for j in 0..N {
            t[i + j] = t[i + j].madd_low(a.0[j], b.0[i]);
        }
        for j in 0..N {
            t[i + j + 1] = t[i + j + 1].madd_high(a.0[j], b.0[i]);
        }
    });
    Wide(t, PhantomData)
}

/// `a^2`, N^2 + N multiply-adds.
#[inline(always)]
pub(crate) fn square_wide<M: Modulus<N>, const N: usize, const W: usize>(a: &Element<M, N>) -> Wide<M, W> {
    a.check();
    let mut t = [Lane::splat(0); W];
    rows!(i < N, {
        for j in i + 1..N {
            t[i + j] = t[i + j].madd_low(a.0[j], a.0[i]);
            t[i + j + 1] = t[i + j + 1].madd_high(a.0[j], a.0[i]);
        }
    });
    for t in &mut t {
        *t = t.add(*t);
    }
    for i in 0..N {
        t[2 * i] = t[2 * i].madd_low(a.0[i], a.0[i]);
        t[2 * i + 1] = t[2 * i + 1].madd_high(a.0[i], a.0[i]);
    }
    Wide(t, PhantomData)
}

/// `t / R mod p`, or with LIFT `t / R + p mod p`, for a t above `-p R`: 2 N^2 + N multiply-adds.
#[inline(always)]
pub(crate) fn reduce<const LIFT: bool, M: Modulus<N>, const N: usize, const W: usize>(t: &Wide<M, W>) -> Element<M, N> {
    let (mut t, p, inverse) = (t.0, Element::<M, N>::p(0), Lane::splat(M::INVERSE));
    let zero = Lane::splat(0);
    rows!(i < N, {
        let q = zero.madd_low(t[i], inverse);
        let high = zero.madd_high(q, p[0]);
        for j in 0..N {
            t[i + j] = t[i + j].madd_low(q, p[j]);
        }
        for j in 1..N {
            t[i + j + 1] = t[i + j + 1].madd_high(q, p[j]);
        }
        t[i + 1] = t[i + 1].add(high).add(t[i].carry());
    });
    let mut out = [Lane::splat(0); N];
    out.copy_from_slice(&t[N..]);
    if LIFT {
        for j in 0..N {
            out[j] = out[j].add(p[j]);
        }
    }
    Element::settle(out)
}

lanes! {
    /// `a^2 / R mod p`
    #[inline(never)]
    pub(crate) fn square<M: Modulus<N>, const N: usize, const W: usize>(a: &Element<M, N>) -> Element<M, N> {
        reduce::<false, M, N, W>(&square_wide(a))
    }
}
