//! Batched affine additions, eight pairs of points at a time.
//!
//! # Operations
//! An addition costs a subtraction of x, two products for the running product and its way back, one for the reciprocal, one
//! for the slope, a square and a product for the result. That is 1,528 multiply-adds for eight in G1, 3,808 in G2, and 32 and 64 more to reduce the result; a doubling
//! takes a product more. One field inversion is shared by up to [`BATCH`] of them.
//!
//! # Forms
//! Coordinates are words `x 2^384` as they lie in memory, read as limbs without a shift. With R = 2^416 a product of such
//! d divides by R each time. The running products then are right up to powers of two, which cancel: with P_0 = 1 and
//! `P_i = P_(i-1) d_i / R`, and I_n = k / P_n, the way back gives `I_i P_(i-1) / R = k / d_i` and `I_(i-1) = I_i d_i / R`.
//! With k = 2^816 the slope comes out as `s 2^400`, so that its square is `s^2 2^384`, a coordinate again; shifted by 16
//! bits it is `s R`, so that its product with a coordinate is a coordinate.
//!
//! # Bounds
//! Coordinates are below p, negated ones at most p, differences `a - b + p` at most 2 p. Products are of numbers below 4 p,
//! times a slope of up to 2^17 p: results are below p + 2^-16 p, and in Fq2, where the first coordinate of a product is
//! lifted by p, below 2 p + 2^-15 p. A sum's x before it is reduced is below 4 p + 2^-15 p, its y below 3 p + 2^-15 p. For a
//! tangent x 2^16 is squared: below 2^16 p, in Fq2 with sums below 2^17 p, so parts of the wide product are within 2^33 p^2
//! of zero, less than p R = 2^35.3 p^2; the result, below 3 p, is reduced at once.

use super::FEW_ADDITIONS;
use super::field::{Fq, SCALE};
use super::lane::{Lane, Mask};
use super::product::{mul, mul_two, square};
use super::tower::{Fq2, fq2_mul, fq2_square};
use crate::portable::{self, Curve, Field};
use crate::sums::NEGATIVE;
use crate::{G1Point, G2Point};
use blst::{blst_fp, blst_fp2};
use bytemuck::Pod;
use std::cell::RefCell;

/// Additions in G1 that share one inversion; half as many in G2. The running products that they keep have 256 KiB.
const BATCH: usize = 4096;
/// Running products side by side: a chain of products is slow, two at once hide each other's waits.
const CHAINS: usize = 2;
/// How many pairs ahead their points are asked for.
const AHEAD: usize = 24;

/// Eight elements of the field of coordinates.
pub(crate) trait Coordinate: Copy {
    /// Words of one element.
    const WORDS: usize;
    /// One element, for the inversion.
    type Single: Field;

    fn zero() -> Self;
    fn one() -> Self;
    fn from_words(words: &[Lane]) -> Self;
    fn to_words(self, words: &mut [Lane]);
    fn add(&self, b: &Self) -> Self;
    /// `a - b + 2^K p`
    fn sub<const K: usize>(&self, b: &Self) -> Self;
    fn mul(&self, b: &Self) -> Self;
    /// Two products side by side.
    fn mul_two(x: [&Self; 2], y: [&Self; 2]) -> [Self; 2];
    fn square(&self) -> Self;
    /// Times 2^16, where products do not keep the form of the words.
    fn shifted(&self) -> Self;
    fn select(&self, mask: Mask, other: &Self) -> Self;
    /// The opposite in the lanes of the mask.
    fn negated(&self, mask: Mask) -> Self;
    /// The lanes whose limbs are equal.
    fn equal(&self, b: &Self) -> Mask;
    /// Lane i is lane i + K.
    fn rotated<const K: i32>(&self) -> Self;
    /// Below p, as far as [`Self::to_words`] asks for it.
    fn reduced(&self) -> Self;
    /// Below p, with equal limbs for equal elements, as just read ones have.
    fn canonical(&self) -> Self;
    /// What was just read, as a factor.
    fn carried(&self) -> Self;
    /// Its limbs, to be kept.
    fn save(&self, to: &mut [Lane]);
    fn restore(from: &[Lane]) -> Self;
    /// Its words as one element's, and back.
    fn single_from_words(words: &[u64]) -> Self::Single;
    fn words_of_single(one: &Self::Single, words: &mut [u64]);
    /// What an inverse must be multiplied with, in the form of the words, where a product divides by 2^384 (2^432 mod p, or one).
    fn scale() -> Self::Single;
}

impl Coordinate for Fq {
    const WORDS: usize = 6;
    type Single = blst_fp;

    #[inline(always)]
    fn zero() -> Self {
        Fq::zero()
    }
    #[inline(always)]
    fn one() -> Self {
        Fq::one()
    }
    #[inline(always)]
    fn from_words(words: &[Lane]) -> Self {
        Fq::from_words(words.first_chunk().expect("six words"))
    }
    #[inline(always)]
    fn to_words(self, words: &mut [Lane]) {
        *words.first_chunk_mut().expect("six words") = Fq::words(&self);
    }
    #[inline(always)]
    fn add(&self, b: &Self) -> Self {
        Fq::add(self, b)
    }
    #[inline(always)]
    fn sub<const K: usize>(&self, b: &Self) -> Self {
        Fq::sub::<K>(self, b)
    }
    #[inline(always)]
    fn mul(&self, b: &Self) -> Self {
        // SAFETY (here and below): lanes exist only where the features do.
        unsafe { mul(self, b) }
    }
    #[inline(always)]
    fn mul_two(x: [&Self; 2], y: [&Self; 2]) -> [Self; 2] {
        unsafe { mul_two(x, y) }
    }
    #[inline(always)]
    fn square(&self) -> Self {
        unsafe { square(self) }
    }
    #[inline(always)]
    fn shifted(&self) -> Self {
        Fq::shifted(self)
    }
    #[inline(always)]
    fn select(&self, mask: Mask, other: &Self) -> Self {
        Fq::select(self, mask, other)
    }
    #[inline(always)]
    fn negated(&self, mask: Mask) -> Self {
        Fq::negated(self, mask)
    }
    #[inline(always)]
    fn equal(&self, b: &Self) -> Mask {
        Fq::equal(self, b)
    }
    #[inline(always)]
    fn rotated<const K: i32>(&self) -> Self {
        Fq::rotated::<K>(self)
    }
    #[inline(always)]
    fn reduced(&self) -> Self {
        Fq::reduced(self)
    }
    #[inline(always)]
    fn canonical(&self) -> Self {
        Fq::canonical(self)
    }
    #[inline(always)]
    fn carried(&self) -> Self {
        Fq::carried(self)
    }
    #[inline(always)]
    fn save(&self, to: &mut [Lane]) {
        to[..8].copy_from_slice(&self.0);
    }
    #[inline(always)]
    fn restore(from: &[Lane]) -> Self {
        let mut limbs = [from[0]; 8];
        limbs.copy_from_slice(&from[..8]);
        Fq::new(limbs)
    }
    fn single_from_words(words: &[u64]) -> blst_fp {
        let mut l = [0; 6];
        l.copy_from_slice(&words[..6]);
        blst_fp { l }
    }
    fn words_of_single(one: &blst_fp, words: &mut [u64]) {
        words[..6].copy_from_slice(&one.l);
    }
    fn scale() -> blst_fp {
        blst_fp { l: SCALE }
    }
}

impl Coordinate for Fq2 {
    const WORDS: usize = 12;
    type Single = blst_fp2;

    #[inline(always)]
    fn zero() -> Self {
        Self { c0: Fq::zero(), c1: Fq::zero() }
    }
    #[inline(always)]
    fn one() -> Self {
        Self { c0: Fq::one(), c1: Fq::zero() }
    }
    #[inline(always)]
    fn from_words(words: &[Lane]) -> Self {
        Self { c0: Coordinate::from_words(&words[..6]), c1: Coordinate::from_words(&words[6..]) }
    }
    #[inline(always)]
    fn to_words(self, words: &mut [Lane]) {
        Coordinate::to_words(self.c0, &mut words[..6]);
        Coordinate::to_words(self.c1, &mut words[6..]);
    }
    #[inline(always)]
    fn add(&self, b: &Self) -> Self {
        Self { c0: self.c0.add(&b.c0), c1: self.c1.add(&b.c1) }
    }
    #[inline(always)]
    fn sub<const K: usize>(&self, b: &Self) -> Self {
        Self { c0: self.c0.sub::<K>(&b.c0), c1: self.c1.sub::<K>(&b.c1) }
    }
    #[inline(always)]
    fn mul(&self, b: &Self) -> Self {
        unsafe { fq2_mul(self, b) }
    }
    #[inline(always)]
    fn mul_two([a, b]: [&Self; 2], [c, d]: [&Self; 2]) -> [Self; 2] {
        [a.mul(b), c.mul(d)]
    }
    #[inline(always)]
    fn square(&self) -> Self {
        unsafe { fq2_square(self) }
    }
    #[inline(always)]
    fn shifted(&self) -> Self {
        Self { c0: self.c0.shifted(), c1: self.c1.shifted() }
    }
    #[inline(always)]
    fn select(&self, mask: Mask, other: &Self) -> Self {
        Self { c0: self.c0.select(mask, &other.c0), c1: self.c1.select(mask, &other.c1) }
    }
    #[inline(always)]
    fn negated(&self, mask: Mask) -> Self {
        Self { c0: self.c0.negated(mask), c1: self.c1.negated(mask) }
    }
    #[inline(always)]
    fn equal(&self, b: &Self) -> Mask {
        self.c0.equal(&b.c0) & self.c1.equal(&b.c1)
    }
    #[inline(always)]
    fn rotated<const K: i32>(&self) -> Self {
        Self { c0: self.c0.rotated::<K>(), c1: self.c1.rotated::<K>() }
    }
    #[inline(always)]
    fn reduced(&self) -> Self {
        Self { c0: self.c0.reduced(), c1: self.c1.reduced() }
    }
    #[inline(always)]
    fn canonical(&self) -> Self {
        Self { c0: self.c0.canonical(), c1: self.c1.canonical() }
    }
    #[inline(always)]
    fn carried(&self) -> Self {
        Self { c0: self.c0.carried(), c1: self.c1.carried() }
    }
    #[inline(always)]
    fn save(&self, to: &mut [Lane]) {
        self.c0.save(&mut to[..8]);
        self.c1.save(&mut to[8..]);
    }
    #[inline(always)]
    fn restore(from: &[Lane]) -> Self {
        Self { c0: Fq::restore(&from[..8]), c1: Fq::restore(&from[8..]) }
    }
    fn single_from_words(words: &[u64]) -> blst_fp2 {
        blst_fp2 { fp: [Fq::single_from_words(&words[..6]), Fq::single_from_words(&words[6..])] }
    }
    fn words_of_single(one: &blst_fp2, words: &mut [u64]) {
        Fq::words_of_single(&one.fp[0], &mut words[..6]);
        Fq::words_of_single(&one.fp[1], &mut words[6..]);
    }
    fn scale() -> blst_fp2 {
        blst_fp2 { fp: [Fq::scale(), blst_fp { l: [0; 6] }] }
    }
}

/// Points whose coordinates are worked on in lanes.
pub(crate) trait Point: Curve + Pod + PartialEq {
    type Lanes: Coordinate;
}

impl Point for G1Point {
    type Lanes = Fq;
}

impl Point for G2Point {
    type Lanes = Fq2;
}

/// Lanes of a vector that are not plain additions.
#[derive(Clone, Copy)]
struct Special {
    vector: usize,
    double: Mask,
    /// the sum is the first point, because the second is infinity
    first: Mask,
    second: Mask,
    /// the sum is infinity
    zero: Mask,
}

impl Special {
    /// What the slopes are divided by: differences of x, 2 y of a doubling, 1 where there is no slope.
    #[inline(always)]
    fn denominators<C: Coordinate>(&self, differences: &C, y: &C) -> C {
        let d = differences.select(self.first | self.second | self.zero, &C::one());
        d.select(self.double, &y.add(y))
    }
}

/// Words of a point.
#[inline(always)]
fn words_of<P: Point>(p: &P) -> &[u64] {
    bytemuck::cast_slice(std::slice::from_ref(p))
}

#[inline(always)]
fn eight<const N: usize>(words: &[u64], at: usize) -> &[u64; N] {
    words[at..].first_chunk().expect("rows are long enough")
}

/// The words in `from .. from + count` of eight points, as columns; `count` is a multiple of four.
#[inline(always)]
fn columns<P: Point>(rows: &[&P; 8], from: usize, count: usize, out: &mut [Lane]) {
    let words = [
        words_of(rows[0]),
        words_of(rows[1]),
        words_of(rows[2]),
        words_of(rows[3]),
        words_of(rows[4]),
        words_of(rows[5]),
        words_of(rows[6]),
        words_of(rows[7]),
    ];
    let mut at = 0;
    while at + 8 <= count {
        out[at..at + 8].copy_from_slice(&Lane::columns(words.map(|w| eight(w, from + at))));
        at += 8;
    }
    if at < count {
        out[at..at + 4].copy_from_slice(&Lane::half_columns(words.map(|w| eight(w, from + at))));
    }
}

/// The lanes in which all words are zero.
#[inline(always)]
fn zero_lanes(words: &[Lane]) -> Mask {
    let mut all = words[0];
    for word in &words[1..] {
        all = all.or(*word);
    }
    all.equal(Lane::splat(0))
}

thread_local! {
    /// What the way there leaves for the way back: a running product a vector.
    static SCRATCH: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
}

/// `out_i = src[a_i] + src[b_i]` for each pair of indices, whose top bit stands for a negative; complete (equal points,
/// opposite points, infinity).
pub(crate) fn add_pairs<P: Point>(src: &[P], pairs: &[[u32; 2]], out: &mut [P]) {
    assert_eq!(pairs.len(), out.len(), "as many sums as pairs");
    SCRATCH.with_borrow_mut(|scratch| {
        let batch = BATCH * 6 / P::Lanes::WORDS;
        let lanes = batch / 8 * (P::Lanes::WORDS / 6 * 8);
        if scratch.len() < lanes {
            scratch.resize(lanes, Lane::splat(0));
        }
        for (pairs, out) in pairs.chunks(batch).zip(out.chunks_mut(batch)) {
            if pairs.len() < FEW_ADDITIONS {
                portable::add_pairs(src, pairs, out);
            } else {
                // SAFETY: this backend is only called where the features are there.
                unsafe { add_batch(src, pairs, out, scratch) };
            }
        }
    });
}

/// Asks for the points of some pairs: all their cache lines.
#[inline(always)]
fn prefetch<'p, P: Point>(src: &[P], pairs: impl Iterator<Item = &'p [u32; 2]>) {
    for pair in pairs {
        for index in pair {
            let at = src.as_ptr().wrapping_add((index & !NEGATIVE) as usize);
            for line in (0..size_of::<P>()).step_by(64) {
                Lane::prefetch(at.wrapping_byte_add(line));
            }
            Lane::prefetch(at.wrapping_byte_add(size_of::<P>() - 1));
        }
    }
}

/// Eight pairs from `first` on; after the last one, the last again.
#[inline(always)]
fn rows<'s, P: Point>(src: &'s [P], pairs: &[[u32; 2]], first: usize, side: usize) -> ([&'s P; 8], Mask) {
    let mut rows = [&src[0]; 8];
    let mut negative = 0;
    for i in 0..8 {
        let index = pairs[(first + i).min(pairs.len() - 1)][side];
        rows[i] = &src[(index & !NEGATIVE) as usize];
        negative |= ((index >> 31) as Mask) << i;
    }
    (rows, negative)
}

lanes! {
    /// What the pairs of a vector are.
    #[cold]
    #[inline(never)]
    fn classify<P: Point>(src: &[P], pairs: &[[u32; 2]], vector: usize) -> Special {
        let mut words = [Lane::splat(0); 24];
        let (xa, ya) = point(src, pairs, 8 * vector, 0, &mut words);
        let (xb, yb) = point(src, pairs, 8 * vector, 1, &mut words);
        // a negated y of zero is p, or has zeros with a sign
        let (ya, yb, zero) = (ya.canonical(), yb.canonical(), P::Lanes::zero());
        let (none_a, none_b) = (xa.equal(&zero) & ya.equal(&zero), xb.equal(&zero) & yb.equal(&zero));
        let same_x = xa.equal(&xb) & !none_a & !none_b;
        let double = same_x & ya.equal(&yb) & !ya.equal(&zero);
        let zero = none_a & none_b | same_x & !double;
        Special { vector, double, first: none_b & !none_a, second: none_a & !none_b, zero }
    }
}

lanes! {
    #[inline(never)]
    fn add_batch<P: Point>(src: &[P], pairs: &[[u32; 2]], out: &mut [P], scratch: &mut [Lane]) {
        let vectors = pairs.len().div_ceil(8);
        let width = P::Lanes::WORDS;
        let size = width / 6 * 8; // lanes of a coordinate
        let mut specials: Vec<Special> = Vec::new();
        let mut products = [P::Lanes::one(); CHAINS];
        let (mut xa, mut xb) = ([Lane::splat(0); 12], [Lane::splat(0); 12]);
        let mut words = [Lane::splat(0); 24];
        for v in 0..vectors {
            prefetch(src, pairs.iter().skip(8 * v + AHEAD).take(8));
            let (a, _) = rows(src, pairs, 8 * v, 0);
            let (b, _) = rows(src, pairs, 8 * v, 1);
            let count = width.next_multiple_of(4);
            columns(&a, 0, count, &mut xa);
            columns(&b, 0, count, &mut xb);
            let mut equal = Mask::MAX;
            for j in 0..width {
                equal &= xa[j].equal(xb[j]);
            }
            let mut d = P::Lanes::from_words(&xb).sub::<0>(&P::Lanes::from_words(&xa));
            if equal | zero_lanes(&xa[..width]) | zero_lanes(&xb[..width]) != 0 {
                let special = classify(src, pairs, v);
                specials.push(special);
                d = special.denominators(&d, &point(src, pairs, 8 * v, 0, &mut words).1);
            }
            products[v % CHAINS].save(&mut scratch[size * v..][..size]);
            products[v % CHAINS] = products[v % CHAINS].mul(&d);
        }
        let mut inverses = invert(&products);
        for v in (0..vectors).rev() {
            prefetch(src, pairs.iter().take(8 * v).rev().skip(AHEAD - 8).take(8));
            let (xa, ya) = point(src, pairs, 8 * v, 0, &mut words);
            let (xb, yb) = point(src, pairs, 8 * v, 1, &mut words);
            let (mut d, mut rise) = (xb.sub::<0>(&xa), yb.sub::<0>(&ya));
            let special = specials.pop_if(|special| special.vector == v);
            if let Some(special) = special {
                d = special.denominators(&d, &ya);
                let factor = xa.carried().shifted();
                let square = factor.mul(&factor).reduced();
                rise = rise.select(special.double, &square.add(&square).add(&square));
            }
            let before = P::Lanes::restore(&scratch[size * v..][..size]);
            let inverse = &mut inverses[v % CHAINS];
            let [reciprocal, next] = Coordinate::mul_two([&*inverse, &before], [&*inverse, &d]);
            *inverse = next;
            let slope = rise.mul(&reciprocal);
            let mut x = slope.square().sub::<0>(&xa).sub::<0>(&xb).reduced();
            let mut y = slope.shifted().mul(&xa.sub::<0>(&x)).sub::<0>(&ya).reduced();
            if let Some(special) = special {
                let zero = P::Lanes::zero();
                // y as it is copied must be reduced
                let (ya, yb) = (ya.reduced(), yb.reduced());
                for (mask, x_of, y_of) in [(special.first, xa, ya), (special.second, xb, yb), (special.zero, zero, zero)] {
                    (x, y) = (x.select(mask, &x_of), y.select(mask, &y_of));
                }
            }
            x.to_words(&mut words[..width]);
            y.to_words(&mut words[width..2 * width]);
            let out = &mut out[8 * v..];
            if out.len() >= 8 {
                store(&words[..2 * width], bytemuck::cast_slice_mut(&mut out[..8]));
            } else {
                let mut rows = [P::ZERO; 8];
                store(&words[..2 * width], bytemuck::cast_slice_mut(&mut rows));
                out.copy_from_slice(&rows[..out.len()]);
            }
        }
    }
}

/// Coordinates of one side of eight pairs, signs applied, read by way of `words`.
#[inline(always)]
fn point<P: Point>(
    src: &[P],
    pairs: &[[u32; 2]],
    first: usize,
    side: usize,
    words: &mut [Lane; 24],
) -> (P::Lanes, P::Lanes) {
    let (rows, negative) = rows(src, pairs, first, side);
    let width = P::Lanes::WORDS;
    columns(&rows, 0, 2 * width, words);
    (P::Lanes::from_words(&words[..width]), P::Lanes::from_words(&words[width..]).negated(negative))
}

/// Eight rows of words from their columns.
#[inline(always)]
fn store(columns: &[Lane], to: &mut [u64]) {
    let stride = columns.len();
    for (at, part) in columns.chunks_exact(4).enumerate() {
        Lane::store_half_columns([part[0], part[1], part[2], part[3]], &mut to[4 * at..], stride);
    }
}

lanes! {
    /// `2^816 / x` for each lane of each chain, none zero: the inverse of the product of all, times all others.
    #[inline(never)]
    fn invert<C: Coordinate>([a, b]: &[C; CHAINS]) -> [C; CHAINS] {
        let two = a.mul(b);
        let four = two.mul(&two.rotated::<4>());
        let eight = four.mul(&four.rotated::<2>());
        let all = eight.mul(&eight.rotated::<1>());
        let (mut columns, mut words) = ([Lane::splat(0); 12], [0; 12]);
        all.reduced().to_words(&mut columns[..C::WORDS]);
        for (column, word) in columns.iter().zip(&mut words) {
            let mut lanes = [0; 8];
            column.store(&mut lanes);
            *word = lanes[0];
        }
        let inverse = C::single_from_words(&words[..C::WORDS]).invert().mul(&C::scale());
        C::words_of_single(&inverse, &mut words[..C::WORDS]);
        for (column, word) in columns.iter_mut().zip(words) {
            *column = Lane::splat(word);
        }
        let of_eight = C::from_words(&columns[..C::WORDS]).carried().mul(&eight.rotated::<1>());
        let of_four = of_eight.mul(&four.rotated::<2>());
        let of_two = of_four.mul(&two.rotated::<4>());
        [of_two.mul(b), of_two.mul(a)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fr, Group};

    /// Every kind of pair, at every place of a vector, in batches of all lengths up to five vectors, however few are portable.
    fn agrees<P: Point + Group>() {
        if !super::super::available() {
            return;
        }
        let mut points = vec![P::IDENTITY];
        points.extend((1..6u64).map(|x| P::generator().mul(&Fr::from(x))));
        let n = points.len() as u32;
        let signed = |i: u32| [i, i | NEGATIVE];
        let every: Vec<[u32; 2]> =
            (0..n).flat_map(signed).flat_map(|a| (0..n).flat_map(signed).map(move |b| [a, b])).collect();
        for length in 1..=40 {
            for start in (0..every.len()).step_by(29) {
                let pairs: Vec<[u32; 2]> = every.iter().cycle().skip(start).take(length).copied().collect();
                let (mut got, mut expected) = (vec![P::IDENTITY; length], vec![P::IDENTITY; length]);
                let mut scratch = vec![Lane::splat(0); BATCH * 2];
                // SAFETY: the features are there.
                unsafe { add_batch(&points, &pairs, &mut got, &mut scratch) };
                portable::add_pairs(&points, &pairs, &mut expected);
                assert_eq!(got, expected, "{length} pairs from {start} on");
            }
        }
    }

    #[test]
    fn batches_of_g1_agree_with_the_portable_ones() {
        agrees::<G1Point>();
    }

    #[test]
    fn batches_of_g2_agree_with_the_portable_ones() {
        agrees::<G2Point>();
    }
}
