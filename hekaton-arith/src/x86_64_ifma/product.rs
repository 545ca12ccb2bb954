//! Products of eight elements of Fq or Fr at once, and their values before reduction.
//!
//! # Bounds
//! Inside a product a limb accumulates at most 4 N parts below 2^52, so it stays below 2^57 (Fq),
//! far from 2^63. [`super::field`] states the bounds of products of bounded numbers.

use super::field::{Element, Fq, Fr, Modulus, Q, R, limbs};
use super::lane::Lane;
use super::loose::{Carry, Loose};
use crate::lanes::power_of_two;
use std::marker::PhantomData;

/// Unrolls a loop over rows: the limbs of a product stay in registers only if all indices are
/// known.
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

/// Same as [`rows!`], from the last row to the first.
macro_rules! rows_down {
    ($i:ident < $n:expr, $body:block) => {
        rows!(@ $i, $n, $body, 7 6 5 4 3 2 1 0)
    };
}

// Products are inlined wherever they are used, and hence compiled for the features of those
// functions.

/// Adds row i of a product to `t[i ..= i + N]`; its reduction needs one limb more. `t[0]` begins
/// with the low half of `a_0 b_0`; the terms that do not depend on q come before it, so the chain
/// from one q to the next is short.
#[inline(always)]
fn multiply_row<const N: usize, const W: usize>(
    t: &mut [Lane; W],
    a: &[Lane; N],
    b: &[Lane; N],
    i: usize,
) {
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
///
/// All rows but the last add a multiple of `c p`, which is 1 or -1 modulo 2^52: its factor is the
/// limb itself or its negative, without a product for which the next row would wait, and it cancels
/// exactly that limb. At the end these rows leave at most `c p / 2^52`. The last row adds a
/// multiple of p, so nothing more remains.
#[inline(always)]
fn reduce_row<M: Modulus<N>, const N: usize, const W: usize>(
    t: &mut [Lane; W],
    p: &[Lane; N],
    i: usize,
) {
    if i + 1 < N {
        let m = Element::<M, N>::splat(&M::MULTIPLE).0;
        let q = if M::MINUS_ONE { t[i] } else { Lane::splat(0).sub(t[i]) };
        // t + q, or t - q, without its low limb, which is zero
        t[i + 1] = if M::MINUS_ONE { t[i + 1].add(q.carry()) } else { t[i + 1].sub(q.carry()) };
        for j in 0..N {
            t[i + j + 1] = t[i + j + 1].madd_low(q, m[j]);
        }
        for j in 0..N {
            t[i + j + 2] = t[i + j + 2].madd_high(q, m[j]);
        }
        return;
    }
    let zero = Lane::splat(0);
    let q = zero.madd_low(t[i], Lane::splat(M::INVERSE));
    let high = zero.madd_high(q, p[0]);
    for j in 0..N {
        t[i + j] = t[i + j].madd_low(q, p[j]);
    }
    for j in 1..N {
        t[i + j + 1] = t[i + j + 1].madd_high(q, p[j]);
    }
    t[i + 1] = t[i + 1].add(high).add(t[i].carry());
}

/// Computes `a b / R mod p`: 2 N^2 multiply-adds for the product, 2 N^2 + 1 for the reduction
/// (together 257 for Fq, 101 for Fr).
#[inline(always)]
pub(crate) fn product<M: Modulus<N>, const N: usize>(
    a: &Element<M, N>,
    b: &Element<M, N>,
) -> Element<M, N> {
    Element::propagate(product_limbs(a, b))
}

/// The factor 2^448 mod p: a product with it turns a coordinate times 2^384 into one times R.
const TO_R: [u64; 8] = limbs(&power_of_two(448), 0);

impl Fq {
    /// Converts words times 2^384 to the form with R.
    #[inline(always)]
    pub(crate) fn from_montgomery(words: &[Lane; 6]) -> Self {
        product(&Self::from_words(words), &Self::splat(&TO_R))
    }
}

/// Work between the rows of a product: takes the step and an accumulator of the row before it.
trait Beside: FnMut(usize, &mut Lane) {}
impl<F: FnMut(usize, &mut Lane)> Beside for F {}

/// Interleaves nothing.
#[inline(always)]
fn nothing(_: usize, _: &mut Lane) {}

/// Interleaves a step of other work and keeps it in place, after the row before it.
#[inline(always)]
fn interleaved(mut step: impl FnMut(usize)) -> impl Beside {
    #[inline(always)]
    move |i, accumulator| {
        *accumulator = accumulator.here();
        step(i);
    }
}

/// Same as [`product`], without carrying: limbs are below 2^57. Interleaves [`STEPS`] steps, two
/// per row.
#[inline(always)]
fn product_limbs_beside<M: Modulus<N>, const N: usize>(
    a: &Element<M, N>,
    b: &Element<M, N>,
    mut beside: impl Beside,
) -> [Lane; N] {
    a.check();
    b.check();
    let (zero, p) = (Lane::splat(0), Element::<M, N>::p(0));
    let mut t = [zero; 16];
    t[0] = zero.madd_low(a.0[0], b.0[0]);
    rows!(i < N, {
        multiply_row(&mut t, &a.0, &b.0, i);
        beside(2 * i, &mut t[i + 2]);
        reduce_row::<M, N, 16>(&mut t, &p, i);
        beside(2 * i + 1, &mut t[i + 2]);
    });
    let mut out = [zero; N];
    out.copy_from_slice(&t[N..2 * N]);
    out
}

/// Same as [`product`], without carrying.
#[inline(always)]
pub(super) fn product_limbs<M: Modulus<N>, const N: usize>(
    a: &Element<M, N>,
    b: &Element<M, N>,
) -> [Lane; N] {
    product_limbs_beside(a, b, nothing)
}

/// Two products in Fr without carrying, alternating row by row: the rows of one proceed while those
/// of the other wait. (Two in Fq need more registers than there are.)
#[inline(always)]
pub(super) fn products_limbs([a, c]: [&Fr; 2], [b, d]: [&Fr; 2]) -> [[Lane; 5]; 2] {
    a.check();
    b.check();
    c.check();
    d.check();
    let (zero, p) = (Lane::splat(0), Fr::p(0));
    let (mut t, mut s) = ([zero; 10], [zero; 10]);
    t[0] = zero.madd_low(a.0[0], b.0[0]);
    s[0] = zero.madd_low(c.0[0], d.0[0]);
    rows!(i < 5, {
        multiply_row(&mut t, &a.0, &b.0, i);
        s[i] = s[i].here();
        multiply_row(&mut s, &c.0, &d.0, i);
        t[i] = t[i].here();
        reduce_row::<R, 5, 10>(&mut t, &p, i);
        s[i] = s[i].here();
        reduce_row::<R, 5, 10>(&mut s, &p, i);
        t[i + 1] = t[i + 1].here();
    });
    let mut out = [[zero; 5]; 2];
    out[0].copy_from_slice(&t[5..]);
    out[1].copy_from_slice(&s[5..]);
    out
}

/// The number of steps that can be interleaved with a product in Fq.
pub(crate) const STEPS: usize = 16;

/// Same as [`product`], without carrying.
#[inline(always)]
pub(crate) fn mul_loose(a: &Fq, b: &Fq) -> Loose {
    Loose(product_limbs(a, b))
}

/// Same as [`mul_loose`], with [`STEPS`] steps of other work between its rows.
#[inline(always)]
pub(crate) fn mul_loose_beside(a: &Fq, b: &Fq, beside: impl FnMut(usize)) -> Loose {
    Loose(product_limbs_beside(a, b, interleaved(beside)))
}

/// Computes `a^2 / R mod p`, without carrying.
#[inline(always)]
pub(crate) fn square_loose(a: &Fq) -> Loose {
    Loose(reduce_limbs::<Q, 8, 16>(square_wide(a)))
}

/// A product before its reduction: 2 N limbs that may be negative and longer than 52 bits. `W = 2
/// N`.
#[derive(Clone, Copy)]
pub(crate) struct Wide<M, const W: usize>([Lane; W], PhantomData<M>);

/// A wide product of elements of Fq.
pub(crate) type WideFq = Wide<Q, 16>;

impl<M: Copy, const W: usize> Wide<M, W> {
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

    /// The same number with limbs that may be summed, which is already true of these.
    #[inline(always)]
    pub(crate) fn settled(&self) -> Self {
        *self
    }
}

/// Computes `a b` in 2 N^2 multiply-adds.
#[inline(always)]
pub(crate) fn mul_wide<M: Modulus<N>, const N: usize, const W: usize>(
    a: &Element<M, N>,
    b: &Element<M, N>,
) -> Wide<M, W> {
    a.check();
    b.check();
    let mut t = [Lane::splat(0); W];
    rows!(i < N, {
        wide_row(&mut t, &a.0, &b.0, i);
    });
    Wide(t, PhantomData)
}

/// Adds row i of a product to `t[i ..= i + N]`.
#[inline(always)]
fn wide_row<const N: usize, const W: usize>(
    t: &mut [Lane; W],
    a: &[Lane; N],
    b: &[Lane; N],
    i: usize,
) {
    for j in 0..N {
        t[i + j] = t[i + j].madd_low(a[j], b[i]);
    }
    for j in 0..N {
        t[i + j + 1] = t[i + j + 1].madd_high(a[j], b[i]);
    }
}

/// Computes `a^2` in N^2 + N multiply-adds.
#[inline(always)]
pub(crate) fn square_wide<M: Modulus<N>, const N: usize, const W: usize>(
    a: &Element<M, N>,
) -> Wide<M, W> {
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

/// Computes `t / R mod p` for a nonnegative t, without carrying: 2 N^2 + 1 multiply-adds.
#[inline(always)]
fn reduce_limbs<M: Modulus<N>, const N: usize, const W: usize>(t: Wide<M, W>) -> [Lane; N] {
    let (mut t, p) = (t.0, Element::<M, N>::p(0));
    rows!(i < N, {
        reduce_row::<M, N, W>(&mut t, &p, i);
    });
    let mut out = [Lane::splat(0); N];
    out.copy_from_slice(&t[N..]);
    out
}

/// Two products without carrying, one after the other: side by side they need more registers than
/// there are.
#[inline(always)]
pub(crate) fn products_loose([a, b]: [&Fq; 2], [c, d]: [&Fq; 2]) -> [Loose; 2] {
    [mul_loose(a, b), mul_loose(c, d)]
}

/// The number of steps that can be interleaved with a product in Fq2.
pub(crate) const STEPS_FQ2: usize = 40;

/// Computes `(a0 + a1 i) (b0 + b1 i) / R`, with the first coordinate lifted by p: three products
/// and two reductions.
#[inline(always)]
pub(crate) fn complex_product(a: [&Fq; 2], b: [&Fq; 2]) -> [Loose; 2] {
    complex_product_beside(
        a,
        b,
        #[inline(always)]
        |_| {},
    )
}

/// Same as [`complex_product`], with [`STEPS_FQ2`] steps of other work between its rows.
///
/// All three products accumulate in the same limbs. A row changes nine of them; the rows of the
/// second product go from the last to the first, so each product begins where the one before it
/// ended, and the other limbs need no registers.
#[inline(always)]
pub(crate) fn complex_product_beside(
    [a0, a1]: [&Fq; 2],
    [b0, b1]: [&Fq; 2],
    beside: impl FnMut(usize),
) -> [Loose; 2] {
    for factor in [a0, a1, b0, b1] {
        factor.check();
    }
    let mut beside = interleaved(beside);
    let zero = Lane::splat(0);
    // the sums of coordinates, between the rows of the first two products
    let (mut a, mut b) = (Fq::zero(), Fq::zero());
    let (mut carry_a, mut carry_b) = (Carry::new(), Carry::new());
    let mut t = [zero; 16];
    rows!(i < 8, {
        wide_row(&mut t, &a0.0, &b0.0, i);
        a.0[i] = carry_a.put(i, a0.0[i].add(a1.0[i]));
        beside(i, &mut t[i + 1]);
    });
    // a0 b0; then a0 b0 - a1 b1 = 2 a0 b0 - t, and t becomes negative
    let mut c0 = t;
    rows_down!(i < 8, {
        wide_row(&mut t, &a1.0, &b1.0, i);
        c0[i + 8] = c0[i + 8].add(c0[i + 8]).sub(t[i + 8]).here();
        t[i + 8] = zero.sub(t[i + 8]).here();
        b.0[7 - i] = carry_b.put(7 - i, b0.0[7 - i].add(b1.0[7 - i]));
        beside(15 - i, &mut t[i + 1]);
    });
    for j in 0..8 {
        t[j] = zero.sub(t[j]);
        c0[j] = c0[j].add(c0[j]).add(t[j]);
    }
    // a0 b1 + a1 b0, which is not negative
    rows!(i < 8, {
        wide_row(&mut t, &a.0, &b.0, i);
        beside(16 + i, &mut t[i + 1]);
    });
    let p = Fq::p(0);
    rows!(i < 8, {
        reduce_row::<Q, 8, 16>(&mut t, &p, i);
        beside(24 + i, &mut t[i + 2]);
    });
    rows!(i < 8, {
        reduce_row::<Q, 8, 16>(&mut c0, &p, i);
        beside(32 + i, &mut c0[i + 2]);
    });
    [upper(&c0).lifted::<1>(), upper(&t)]
}

/// The result of a reduction: the upper half of the limbs.
#[inline(always)]
fn upper(t: &[Lane; 16]) -> Loose {
    Loose(*t.last_chunk().expect("eight limbs"))
}

/// Computes `t / R + p mod p` of two numbers t above `-p R`.
#[inline(always)]
pub(crate) fn reduce_lifted<M: Modulus<N>, const N: usize, const W: usize>(
    t: &Wide<M, W>,
    s: &Wide<M, W>,
) -> [Element<M, N>; 2] {
    [reduce_one_lifted(*t), reduce_one_lifted(*s)]
}

#[inline(always)]
fn reduce_one_lifted<M: Modulus<N>, const N: usize, const W: usize>(
    t: Wide<M, W>,
) -> Element<M, N> {
    let (mut t, p) = (reduce_limbs(t), Element::<M, N>::p(0));
    for j in 0..N {
        t[j] = t[j].add(p[j]);
    }
    Element::propagate(t)
}

#[cfg(test)]
mod tests {
    use super::super::field::LIMB;
    use super::*;
    use ark_ff::{Field as _, PrimeField};

    /// Numbers around 0, p and the bound 2^k p, and in between.
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

    /// The residue modulo p.
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

    /// Eight numbers, one per lane.
    fn gather<M: Modulus<N>, const N: usize>(x: &[[u64; N]; 8]) -> Element<M, N> {
        let mut out = [Lane::splat(0); N];
        for (j, out) in out.iter_mut().enumerate() {
            *out = Lane::load(&std::array::from_fn(|lane| x[lane][j]));
        }
        Element::new(out)
    }

    fn laws<F: PrimeField, M: Modulus<N>, const N: usize, const W: usize, const WORDS: usize>(
        bound: usize,
    ) {
        if !super::super::available() {
            return;
        }
        let edges = edges::<M, N>(bound);
        let r = F::from(2u64).pow([52 * N as u64]);
        let below = |x: &[u64; N], k: usize| subtract(x, &M::SHIFTED[k])[N - 1] >> 63 == 1;
        for (i, a) in edges.iter().enumerate() {
            // all pairs, eight at a time, each lane with a different partner
            for first in (0..edges.len()).step_by(8) {
                let a8 = [*a; 8];
                let b8: [[u64; N]; 8] =
                    std::array::from_fn(|lane| edges[(first + lane + i) % edges.len()]);
                let (x, y) = (gather::<M, N>(&a8), gather::<M, N>(&b8));
                let product = product(&x, &y);
                let square = Element::<M, N>::propagate(reduce_limbs::<M, N, W>(square_wide(&y)));
                let wide = mul_wide::<M, N, W>(&x, &y).sub(&square_wide(&y));
                let [wide, twice] = reduce_lifted::<M, N, W>(&wide, &wide.add(&wide));
                let got = [product, square, wide, x.add(&y), twice].map(|z| lanes(&z.0));
                for lane in 0..8 {
                    let (a, b) = (value::<F>(a), value::<F>(&b8[lane]));
                    let (wide, square) = ((a * b - b.square()) / r, b.square() / r);
                    let expected = [a * b / r, square, wide, a + b, wide + wide];
                    for (got, expected) in got.iter().zip(expected) {
                        assert_eq!(value::<F>(&got[lane]), expected);
                        assert!(got[lane].iter().all(|limb| *limb <= LIMB));
                    }
                    assert!(
                        below(&got[0][lane], 1) && below(&got[1][lane], 1),
                        "a product is below 2 p"
                    );
                    assert!(
                        below(&subtract(&got[2][lane], &M::SHIFTED[0]), 1),
                        "a lifted one below 3 p"
                    );
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
        // words of 64 bits, converted both ways, with and without a shift
        for x in edges.iter().map(|x| value::<F>(x)) {
            let words: [u64; WORDS] =
                x.into_bigint().as_ref().try_into().expect("the number of words");
            let columns = words.map(Lane::splat);
            let there = Element::<M, N>::cut(&columns, 0);
            assert_eq!(lanes(&there.0)[3], limbs(&words, 0));
            assert_eq!(lanes(&there.joined::<WORDS>())[5], words);
            let shifted = Element::<M, N>::cut(&columns, 4);
            assert_eq!(lanes(&shifted.0)[0], limbs(&words, 4));
            assert_eq!(lanes(&there.shift_left(4).0)[7], limbs(&words, 4));
            assert_eq!(value::<F>(&lanes(&shifted.divide::<4>().0)[1]), x);
        }
    }

    #[test]
    fn fq_at_the_bounds() {
        laws::<ark_bls12_381::Fq, Q, 8, 16, 6>(7);
    }

    #[test]
    fn fr_at_the_bounds() {
        // 2^2 p times 2^2 p: at the limit A B = 2^5 of the bound, less the share that the 3 p check
        // takes
        laws::<ark_bls12_381::Fr, R, 5, 10, 4>(2);
    }

    #[test]
    fn two_products_are_those_of_each() {
        if !super::super::available() {
            return;
        }
        let edges = edges::<R, 5>(2);
        for (i, a) in edges.iter().enumerate() {
            let vector = |shift: usize| {
                gather::<R, 5>(&std::array::from_fn(|lane| {
                    edges[(i * shift + lane * (shift + 1)) % edges.len()]
                }))
            };
            let (a, b, c, d) = (gather::<R, 5>(&[*a; 8]), vector(1), vector(3), vector(5));
            let both =
                products_limbs([&a, &c], [&b, &d]).map(|x| lanes(&Element::<R, 5>::propagate(x).0));
            assert_eq!(both, [product(&a, &b), product(&c, &d)].map(|x| lanes(&x.0)));
        }
    }

    #[test]
    fn a_word_form_is_its_montgomery_form() {
        let x = ark_bls12_381::Fq::from(5u64);
        assert_eq!(x.0.0, (x * ark_bls12_381::Fq::from(2u64).pow([384])).into_bigint().0);
    }
}
