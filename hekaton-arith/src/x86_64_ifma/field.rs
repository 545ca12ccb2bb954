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

/// [`limbs`] without a shift, quickly.
#[inline]
pub(crate) fn cut<const W: usize, const N: usize>(words: &[u64; W]) -> [u64; N] {
    let mut out = [0; N];
    for (k, out) in out.iter_mut().enumerate() {
        let (word, bit) = (52 * k / 64, 52 * k % 64);
        let high = if word + 1 < W { words[word + 1] } else { 0 };
        let both = u128::from(high) << 64 | u128::from(if word < W { words[word] } else { 0 });
        *out = (both >> bit) as u64 & LIMB;
    }
    out
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
                let p = <$config as MontConfig<$words>>::MODULUS.0;
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
        let t = Self::settle(t).0;
        let mut out = t;
        for j in 0..N {
            let high = if j + 1 < N { t[j + 1].shl(LIMB_BITS - BITS).and(Lane::splat(LIMB)) } else { Lane::splat(0) };
            out[j] = t[j].shr(BITS).or(high);
        }
        Self::new(out)
    }
}

// Products are inlined wherever they are used, hence compiled for the features of those functions.

/// Row i of a product and of its reduction works on `t[i ..= i + N]`. `t[0]` begins with the low half of `a_0 b_0`; what does
/// not depend on q comes before it, so that the chain from one q to the next is short.
#[inline(always)]
fn multiply_row<const N: usize, const W: usize>(t: &mut [Lane; W], a: &[Lane; N], b: &[Lane; N], i: usize) {
    for j in 1..N {
        t[i + j] = t[i + j].madd_low(a[j], b[i]);
    }
    for j in 0..N {
        t[i + j + 1] = t[i + j + 1].madd_high(a[j], b[i]);
    }
    if i + 1 < N {
        t[i + 1] = t[i + 1].madd_low(a[0], b[i + 1]);
    }
}

/// Adds the multiple of p that makes `t[i]` a carry.
#[inline(always)]
fn reduce_row<M: Modulus<N>, const N: usize, const W: usize>(t: &mut [Lane; W], p: &[Lane; N], i: usize) {
    let zero = Lane::splat(0);
    let q = zero.madd_low(t[i], Lane::splat(M::INVERSE));
    // all that goes into t[i + 1] side by side: the next row's q waits for it
    let high = zero.madd_high(q, p[0]);
    for j in 0..N {
        t[i + j] = t[i + j].madd_low(q, p[j]);
    }
    for j in 1..N {
        t[i + j + 1] = t[i + j + 1].madd_high(q, p[j]);
    }
    t[i + 1] = t[i + 1].add(high).add(t[i].carry());
}

/// `a b / R mod p`: 2 N^2 multiply-adds for the product, 2 N^2 + N for the reduction (together 264 for Fq, 105 for Fr).
#[inline(always)]
pub(crate) fn product<M: Modulus<N>, const N: usize>(a: &Element<M, N>, b: &Element<M, N>) -> Element<M, N> {
    a.check();
    b.check();
    let (zero, p) = (Lane::splat(0), Element::<M, N>::p(0));
    let mut t = [zero; 16];
    t[0] = zero.madd_low(a.0[0], b.0[0]);
    rows!(i < N, {
        multiply_row(&mut t, &a.0, &b.0, i);
        reduce_row::<M, N, 16>(&mut t, &p, i);
    });
    let mut out = [zero; N];
    out.copy_from_slice(&t[N..2 * N]);
    Element::settle(out)
}

/// Two products side by side: one waits for its q where the other works.
#[inline(always)]
pub(crate) fn products<M: Modulus<N>, const N: usize>(
    [a, b]: [&Element<M, N>; 2],
    [c, d]: [&Element<M, N>; 2],
) -> [Element<M, N>; 2] {
    for x in [a, b, c, d] {
        x.check();
    }
    let (zero, p) = (Lane::splat(0), Element::<M, N>::p(0));
    let (mut t, mut s) = ([zero; 16], [zero; 16]);
    t[0] = zero.madd_low(a.0[0], b.0[0]);
    s[0] = zero.madd_low(c.0[0], d.0[0]);
    rows!(i < N, {
        multiply_row(&mut t, &a.0, &b.0, i);
        multiply_row(&mut s, &c.0, &d.0, i);
        reduce_row::<M, N, 16>(&mut t, &p, i);
        reduce_row::<M, N, 16>(&mut s, &p, i);
    });
    let mut out = [[zero; N]; 2];
    out[0].copy_from_slice(&t[N..2 * N]);
    out[1].copy_from_slice(&s[N..2 * N]);
    [Element::settle(out[0]), Element::settle(out[1])]
}

lanes! {
    /// [`product`], not inlined.
    #[inline(never)]
    pub(crate) fn mul<M: Modulus<N>, const N: usize>(a: &Element<M, N>, b: &Element<M, N>) -> Element<M, N> {
        product(a, b)
    }

    /// [`products`], not inlined.
    #[inline(never)]
    pub(crate) fn mul_two<M: Modulus<N>, const N: usize>(
        x: [&Element<M, N>; 2],
        y: [&Element<M, N>; 2],
    ) -> [Element<M, N>; 2] {
        products(x, y)
    }
}

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
pub(crate) fn mul_wide<M: Modulus<N>, const N: usize, const W: usize>(
    a: &Element<M, N>,
    b: &Element<M, N>,
) -> Wide<M, W> {
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

/// `t / R mod p`, for a t that is not negative: 2 N^2 + N multiply-adds.
#[inline(always)]
pub(crate) fn reduce<M: Modulus<N>, const N: usize, const W: usize>(t: &Wide<M, W>) -> Element<M, N> {
    let (mut t, p) = (t.0, Element::<M, N>::p(0));
    rows!(i < N, {
        reduce_row::<M, N, W>(&mut t, &p, i);
    });
    let mut out = [Lane::splat(0); N];
    out.copy_from_slice(&t[N..]);
    Element::settle(out)
}

/// `t / R + p mod p` of two side by side, for t above `-p R`.
#[inline(always)]
pub(crate) fn reduce_lifted<M: Modulus<N>, const N: usize, const W: usize>(
    t: &Wide<M, W>,
    s: &Wide<M, W>,
) -> [Element<M, N>; 2] {
    let (mut t, mut s, p) = (t.0, s.0, Element::<M, N>::p(0));
    rows!(i < N, {
        reduce_row::<M, N, W>(&mut t, &p, i);
        reduce_row::<M, N, W>(&mut s, &p, i);
    });
    let mut out = [[Lane::splat(0); N]; 2];
    for j in 0..N {
        out[0][j] = t[N + j].add(p[j]);
        out[1][j] = s[N + j].add(p[j]);
    }
    [Element::settle(out[0]), Element::settle(out[1])]
}

lanes! {
    /// `a^2 / R mod p`
    #[inline(never)]
    pub(crate) fn square<M: Modulus<N>, const N: usize, const W: usize>(a: &Element<M, N>) -> Element<M, N> {
        reduce::<M, N, W>(&square_wide(a))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::{Field as _, PrimeField};

    /// Numbers around 0, p and the bound 2^k p, and between.
    fn edges<M: Modulus<N>, const N: usize>(k: usize) -> Vec<[u64; N]> {
        let mut out = Vec::new();
        let p = M::SHIFTED[0];
        let one = std::array::from_fn(|j| u64::from(j == 0));
        let all = std::array::from_fn(|j| if j + 1 < N { LIMB } else { p[N - 1] / 2 });
        for x in [[0; N], p, M::SHIFTED[k], all] {
            out.extend([x, add(&x, &one), subtract(&x, &one)]);
        }
        let mut state = 1u64;
        for _ in 0..20 {
            let mut x = p.map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                state >> 12
            });
            x[N - 1] %= (p[N - 1] << k) / 2 + 1;
            out.push(x);
        }
        // not negative
        out.retain(|x| x[N - 1] <= LIMB);
        out
    }

    fn add<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        let mut carry = 0;
        std::array::from_fn(|j| {
            let sum = a[j] + b[j] + carry;
            carry = if j + 1 < N { sum >> 52 } else { 0 };
            sum - (carry << 52)
        })
    }

    fn subtract<const N: usize>(a: &[u64; N], b: &[u64; N]) -> [u64; N] {
        let mut carry = 0i64;
        std::array::from_fn(|j| {
            let difference = a[j] as i64 - b[j] as i64 + carry;
            carry = if j + 1 < N { difference >> 52 } else { 0 };
            (difference - (carry << 52)) as u64
        })
    }

    /// The number mod p.
    fn value<F: PrimeField>(limbs: &[u64]) -> F {
        limbs.iter().rev().fold(F::ZERO, |acc, limb| acc * F::from(1u64 << 52) + F::from(*limb))
    }

    fn lanes<const N: usize>(x: &[Lane; N]) -> [[u64; N]; 8] {
        let mut out = [[0; N]; 8];
        for (j, limb) in x.iter().enumerate() {
            let mut words = [0; 8];
            limb.store(&mut words);
            for lane in 0..8 {
                out[lane][j] = words[lane];
            }
        }
        out
    }

    /// Eight numbers, a lane each.
    fn gather<M: Modulus<N>, const N: usize>(x: &[[u64; N]; 8]) -> Element<M, N> {
        let mut out = [Lane::splat(0); N];
        for (j, out) in out.iter_mut().enumerate() {
            *out = Lane::load(&std::array::from_fn(|lane| x[lane][j]));
        }
        Element::new(out)
    }

    fn laws<F: PrimeField, M: Modulus<N>, const N: usize, const W: usize, const WORDS: usize>(bound: usize) {
        if !super::super::available() {
            return;
        }
        let edges = edges::<M, N>(bound);
        let r = F::from(2u64).pow([52 * N as u64]);
        let below = |x: &[u64; N], k: usize| subtract(x, &M::SHIFTED[k])[N - 1] >> 63 == 1;
        for (i, a) in edges.iter().enumerate() {
            // all pairs, eight at a time, each lane with another partner
            for first in (0..edges.len()).step_by(8) {
                let a8 = [*a; 8];
                let b8: [[u64; N]; 8] = std::array::from_fn(|lane| edges[(first + lane + i) % edges.len()]);
                let (x, y) = (gather::<M, N>(&a8), gather::<M, N>(&b8));
                // SAFETY: the features are there.
                let (product, square) = unsafe { (mul(&x, &y), square::<M, N, W>(&y)) };
                let wide = mul_wide::<M, N, W>(&x, &y).sub(&square_wide(&y));
                let [wide, twice] = reduce_lifted::<M, N, W>(&wide, &wide.add(&wide));
                // SAFETY: as above.
                let [two, _] = unsafe { mul_two([&y, &y], [&x, &y]) };
                let got = [product, square, wide, x.add(&y), twice, two].map(|z| lanes(&z.0));
                for lane in 0..8 {
                    let (a, b) = (value::<F>(a), value::<F>(&b8[lane]));
                    let (wide, square) = ((a * b - b.square()) / r, b.square() / r);
                    let expected = [a * b / r, square, wide, a + b, wide + wide, square];
                    for (got, expected) in got.iter().zip(expected) {
                        assert_eq!(value::<F>(&got[lane]), expected);
                        assert!(got[lane].iter().all(|limb| *limb <= LIMB));
                    }
                    assert!(below(&got[0][lane], 1) && below(&got[1][lane], 1), "a product is below 2 p");
                    assert!(below(&subtract(&got[2][lane], &M::SHIFTED[0]), 1), "a lifted one below 3 p");
                }
                if below(&b8[0], 1) {
                    let y = gather::<M, N>(&[b8[0]; 8]);
                    let got = lanes(&x.sub::<1>(&y).0)[0];
                    assert_eq!(value::<F>(&got), value::<F>(a) - value::<F>(&b8[0]));
                    let once = lanes(&y.reduce_once::<0>().0)[0];
                    assert_eq!(
                        (value::<F>(&once), below(&once, 0)),
                        (value::<F>(&b8[0]), true),
                        "b < 2 p reduces below p"
                    );
                }
            }
        }
        // the words of 64 bits, there and back, with and without a shift
        for x in edges.iter().map(|x| value::<F>(x)) {
            let words: [u64; WORDS] = x.into_bigint().as_ref().try_into().expect("as many words");
            let columns = words.map(Lane::splat);
            let there = Element::<M, N>::from_words(&columns, 0);
            assert_eq!(lanes(&there.0)[3], cut(&words));
            assert_eq!(lanes(&there.words::<WORDS>())[5], words);
            let shifted = Element::<M, N>::from_words(&columns, 4);
            assert_eq!(lanes(&shifted.0)[0], limbs(words, 4));
            assert_eq!(lanes(&there.shift_left(4).0)[7], limbs(words, 4));
            assert_eq!(value::<F>(&lanes(&shifted.divide::<4>().0)[1]), x);
        }
    }

    #[test]
    fn fq_at_the_bounds() {
        laws::<ark_bls12_381::Fq, Q, 8, 16, 6>(7);
    }

    #[test]
    fn fr_at_the_bounds() {
        // 2^2 p times 2^2 p: at the limit A B = 2^5 of the bound, less what the test of 3 p takes
        laws::<ark_bls12_381::Fr, R, 5, 10, 4>(2);
    }

    #[test]
    fn a_word_form_is_its_montgomery_form() {
        let x = ark_bls12_381::Fq::from(5u64);
        assert_eq!(x.0.0, (x * ark_bls12_381::Fq::from(2u64).pow([384])).into_bigint().0);
    }
}
