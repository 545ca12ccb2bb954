//! Batched affine additions, eight pairs of points at a time.
//!
//! # Operations
//! An addition costs a subtraction of x, two products for the running product and its way back, one for the reciprocal, one
//! for the slope, a square and a product for the result. That is 1,486 multiply-adds for eight in G1, 3,724 in G2 with AVX-512 IFMA; a doubling
//! takes a product more. One field inversion is shared by up to [`Point::BATCH`] of them. What the way back needs of the second
//! point's x it has from the difference, which is kept.
//!
//! # Forms
//! Coordinates are words `x 2^384` as they lie in memory, read as limbs without a shift. With R = 2^416 a product of such
//! d divides by R each time. The running products then are right up to powers of two, which cancel: with P_0 = 1 and
//! `P_i = P_(i-1) d_i / R`, and I_n = k / P_n, the way back gives `I_i P_(i-1) / R = k / d_i` and `I_(i-1) = I_i d_i / R`.
//! With k = 2^816 the slope comes out as `s 2^400`, so that its square is `s^2 2^384`, a coordinate again; shifted by 16
//! bits it is `s R`, so that its product with a coordinate is a coordinate.
//!
//! # Bounds
//! Coordinates are below p, negated ones at most p, differences d = `b - a + p` at most 2 p, the rise of y at most 4 p. Products
//! are of numbers below 4 p, times a slope of up to 2^18 p: results are below 1.3 p, and in Fq2, where the first coordinate of a
//! product is lifted by p, below 2.3 p. For x3, `s^2 - 2 a - d + 5 p` is between p and 6.3 p, for y3 `m -+ y + 2 p` between p and
//! 5.3 p: within the p .. 8 p of which [`Loose::reduced`](super::field::Loose::reduced) takes the multiple of p away. For a
//! tangent x 2^16 is squared: below 2^16 p, in Fq2 with sums below 2^17 p, so parts of the wide product are within 2^33 p^2
//! of zero, less than p R = 2^35.3 p^2; the result, below 3 p, is reduced at once.

use super::FEW_ADDITIONS;
use super::coordinate::Coordinate;
use super::field::Fq;
use super::lane::{Lane, Mask};
use super::tower::Fq2;
use crate::portable::{self, Curve, Field};
use crate::sums::NEGATIVE;
use crate::{G1Point, G2Point};
use bytemuck::Pod;
use std::cell::RefCell;

/// Running products side by side: a chain of products is slow, two at once hide each other's waits.
const CHAINS: usize = 2;
/// How many pairs ahead their points are asked for.
const AHEAD: usize = 24;

/// Points whose coordinates are worked on in lanes.
pub(crate) trait Point: Curve + Pod + PartialEq {
    type Lanes: Coordinate;
    /// Additions that share one inversion.
    const BATCH: usize;
    /// Elements that are kept of a vector for the way back.
    const KEPT: usize;

    /// [`add_batch`], or what a backend has for it.
    ///
    /// # Safety
    /// The processor must have the backend's features.
    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Lane]);
}

impl Point for G1Point {
    type Lanes = Fq;
    const BATCH: usize = super::BATCH_G1;
    const KEPT: usize = super::KEPT_G1;

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Lane]) {
        // SAFETY: the caller's.
        unsafe { super::add_batch_g1(src, pairs, out, scratch) }
    }
}

impl Point for G2Point {
    type Lanes = Fq2;
    const BATCH: usize = super::BATCH_G2;
    const KEPT: usize = KEPT;

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Lane]) {
        // SAFETY: the caller's.
        unsafe { add_batch(src, pairs, out, scratch) }
    }
}

/// Lanes of a vector that are not plain additions.
#[derive(Clone, Copy)]
pub(super) struct Special {
    pub(super) vector: usize,
    double: Mask,
    /// the sum is the first point, because the second is infinity
    first: Mask,
    second: Mask,
    /// the sum is infinity
    zero: Mask,
}

impl Special {
    /// Whether a sum is none by a slope: a copy, or infinity. Where points are doubled, as multiples do all along, none is.
    #[inline(always)]
    pub(super) fn has_copies(&self) -> bool {
        self.first | self.second | self.zero != 0
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
    let mut at = 0;
    while at + 8 <= count {
        let mut words = [eight(words_of(rows[0]), from + at); 8];
        for i in 1..8 {
            words[i] = eight(words_of(rows[i]), from + at);
        }
        out[at..at + 8].copy_from_slice(&Lane::columns(words));
        at += 8;
    }
    if at < count {
        let mut words = [eight(words_of(rows[0]), from + at); 8];
        for i in 1..8 {
            words[i] = eight(words_of(rows[i]), from + at);
        }
        out[at..at + 4].copy_from_slice(&Lane::half_columns(words));
    }
}

thread_local! {
    /// What the way there leaves for the way back, [`Point::KEPT`] elements a vector.
    static SCRATCH: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
}

/// `out_i = src[a_i] + src[b_i]` for each pair of indices, whose top bit stands for a negative; complete (equal points,
/// opposite points, infinity).
pub(crate) fn add_pairs<P: Point>(src: &[P], pairs: &[[u32; 2]], out: &mut [P]) {
    assert_eq!(pairs.len(), out.len(), "as many sums as pairs");
    SCRATCH.with_borrow_mut(|scratch| {
        let lanes = P::BATCH / 8 * P::KEPT * (P::Lanes::WORDS / 6 * 8);
        if scratch.len() < lanes {
            scratch.resize(lanes, Lane::splat(0));
        }
        for (pairs, out) in pairs.chunks(P::BATCH).zip(out.chunks_mut(P::BATCH)) {
            if pairs.len() < FEW_ADDITIONS {
                portable::add_pairs(src, pairs, out);
            } else {
                // SAFETY: this backend is only called where the features are there.
                unsafe { P::add_batch(src, pairs, out, scratch) };
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

/// Asks for the points of the vector that comes [`AHEAD`] pairs after v.
#[inline(always)]
pub(super) fn prefetch_there<P: Point>(src: &[P], pairs: &[[u32; 2]], v: usize) {
    prefetch(src, pairs.iter().skip(8 * v + AHEAD).take(8));
}

/// The same on the way back.
#[inline(always)]
fn prefetch_back<P: Point>(src: &[P], pairs: &[[u32; 2]], v: usize) {
    prefetch(src, pairs.iter().take(8 * v).rev().skip(AHEAD - 8).take(8));
}

/// What [`add_batch`] keeps of a vector: the product of all denominators before its own in its chain, and its own.
struct Saved<C> {
    before: C,
    d: C,
}

/// Elements of it.
pub(super) const KEPT: usize = 2;

impl<C: Coordinate> Saved<C> {
    #[inline(always)]
    fn save(&self, scratch: &mut [Lane], v: usize) {
        let size = C::WORDS / 6 * 8;
        let to = &mut scratch[2 * size * v..][..2 * size];
        self.before.save(&mut to[..size]);
        self.d.save(&mut to[size..]);
    }
}

#[inline(always)]
fn saved<P: Point>(scratch: &[Lane], v: usize) -> Saved<P::Lanes> {
    let size = P::Lanes::WORDS / 6 * 8;
    let from = &scratch[2 * size * v..][..2 * size];
    Saved { before: P::Lanes::restore(&from[..size]), d: P::Lanes::restore(&from[size..]) }
}

/// Pairs, eight at a time.
pub(super) struct Pairs<'p> {
    whole: &'p [[[u32; 2]; 8]],
    /// what is left over, and after the last one, that one again
    rest: [[u32; 2]; 8],
}

impl<'p> Pairs<'p> {
    #[inline(always)]
    pub(super) fn new(pairs: &'p [[u32; 2]]) -> Self {
        let (whole, left) = pairs.as_chunks();
        let mut rest = [*pairs.last().expect("pairs to add"); 8];
        rest[..left.len()].copy_from_slice(left);
        Self { whole, rest }
    }

    #[inline(always)]
    pub(super) fn of(&self, vector: usize) -> &[[u32; 2]; 8] {
        self.whole.get(vector).unwrap_or(&self.rest)
    }
}

/// The points on one side of eight pairs.
#[inline(always)]
fn rows<'s, P: Point>(src: &'s [P], pairs: &[[u32; 2]; 8], side: usize) -> [&'s P; 8] {
    let mut rows = [&src[0]; 8];
    for i in 0..8 {
        rows[i] = &src[(pairs[i][side] & !NEGATIVE) as usize];
    }
    rows
}

/// x of eight points.
#[inline(always)]
fn read_x<P: Point>(rows: &[&P; 8]) -> P::Lanes {
    let mut words = [Lane::splat(0); 12];
    columns(rows, 0, P::Lanes::WORDS.next_multiple_of(4), &mut words);
    P::Lanes::from_words(&words[..P::Lanes::WORDS])
}

/// y of eight points.
#[inline(always)]
fn read_y<P: Point>(rows: &[&P; 8]) -> P::Lanes {
    let mut words = [Lane::splat(0); 12];
    // columns are read by fours
    let from = P::Lanes::WORDS / 4 * 4;
    columns(rows, from, 2 * P::Lanes::WORDS - from, &mut words);
    P::Lanes::from_words(&words[P::Lanes::WORDS - from..][..P::Lanes::WORDS])
}

lanes! {
    /// What the pairs of a vector are, and what their slopes are divided by.
    #[cold]
    #[inline(never)]
    pub(super) fn classify<P: Point>(src: &[P], pairs: &[[u32; 2]; 8], vector: usize) -> (Special, P::Lanes) {
        let (a, b) = (rows(src, pairs, 0), rows(src, pairs, 1));
        let (xa, xb) = (read_x(&a), read_x(&b));
        // a negated y of zero is p, or has zeros with a sign
        let (ya, yb) = (read_y(&a).negated(Lane::top_bits(pairs, 0)), read_y(&b).negated(Lane::top_bits(pairs, 1)));
        let (sa, sb, zero) = (ya.canonical(), yb.canonical(), P::Lanes::zero());
        let (none_a, none_b) = (xa.equal(&zero) & sa.equal(&zero), xb.equal(&zero) & sb.equal(&zero));
        let same_x = xa.equal(&xb) & !none_a & !none_b;
        let double = same_x & sa.equal(&sb) & !sa.equal(&zero);
        let zero = none_a & none_b | same_x & !double;
        let special = Special { vector, double, first: none_b & !none_a, second: none_a & !none_b, zero };
        let d = xb.sub::<0>(&xa).select(special.first | special.second | special.zero, &P::Lanes::one());
        (special, d.select(double, &ya.add(&ya)))
    }

    /// What the slopes of a vector are times their denominators, and `b - a`, which those are not where a point is doubled.
    #[cold]
    #[inline(never)]
    pub(super) fn special_slopes<P: Point>(
        src: &[P],
        pairs: &[[u32; 2]; 8],
        special: &Special,
        rise: P::Lanes,
    ) -> (P::Lanes, P::Lanes) {
        let (xa, xb) = (read_x(&rows(src, pairs, 0)), read_x(&rows(src, pairs, 1)));
        let factor = xa.carried().shifted();
        let square = factor.mul(&factor).reduced();
        (rise.select(special.double, &square.add(&square).add(&square)), xb.sub::<0>(&xa))
    }

    /// Puts right what is no sum by a slope.
    #[cold]
    #[inline(never)]
    pub(super) fn special_sums<P: Point>(
        src: &[P],
        pairs: &[[u32; 2]; 8],
        special: &Special,
        mut x: P::Lanes,
        mut y: P::Lanes,
    ) -> (P::Lanes, P::Lanes) {
        let (a, b) = (rows(src, pairs, 0), rows(src, pairs, 1));
        let (ya, yb) = (read_y(&a).negated(Lane::top_bits(pairs, 0)), read_y(&b).negated(Lane::top_bits(pairs, 1)));
        let zero = P::Lanes::zero();
        for (mask, x_of, y_of) in [
            (special.first, read_x(&a), ya.reduced()),
            (special.second, read_x(&b), yb.reduced()),
            (special.zero, zero, zero),
        ] {
            (x, y) = (x.select(mask, &x_of), y.select(mask, &y_of));
        }
        (x, y)
    }

    #[inline(never)]
    pub(super) fn add_batch<P: Point>(src: &[P], pairs: &[[u32; 2]], out: &mut [P], scratch: &mut [Lane]) {
        let vectors = pairs.len().div_ceil(8);
        let eights = Pairs::new(pairs);
        let width = P::Lanes::WORDS;
        let mut specials: Vec<Special> = Vec::new();
        let mut products = [P::Lanes::one(); CHAINS];
        for v in 0..vectors {
            prefetch_there(src, pairs, v);
            let eight = eights.of(v);
            let (xa, xb) = (read_x(&rows(src, eight, 0)), read_x(&rows(src, eight, 1)));
            let zero = P::Lanes::zero();
            let mut d = xb.sub::<0>(&xa);
            if xa.equal(&xb) | xa.equal(&zero) | xb.equal(&zero) != 0 {
                let special;
                (special, d) = classify(src, eight, v);
                specials.push(special);
            }
            let before = products[v % CHAINS];
            Saved { before, d }.save(scratch, v);
            products[v % CHAINS] = before.mul(&d);
        }
        let mut inverses = invert(&products);
        let mut words = [Lane::splat(0); 24];
        for v in (0..vectors).rev() {
            prefetch_back(src, pairs, v);
            let eight = eights.of(v);
            let Saved { before, mut d } = saved::<P>(scratch, v);
            let inverse = &mut inverses[v % CHAINS];
            let reciprocal = inverse.mul(&before);
            *inverse = inverse.mul(&d);
            let (a, b) = (rows(src, eight, 0), rows(src, eight, 1));
            let (negative_a, negative_b) = (Lane::top_bits(eight, 0), Lane::top_bits(eight, 1));
            let (xa, ya, yb) = (read_x(&a), read_y(&a), read_y(&b));
            let mut rise = P::Lanes::rise(&ya, negative_a, &yb, negative_b);
            let special = specials.pop_if(|special| special.vector == v);
            if let Some(special) = &special {
                (rise, d) = special_slopes(src, eight, special, rise);
            }
            let slope = rise.mul(&reciprocal);
            let mut x = P::Lanes::third_x(&slope, &xa, &d);
            let mut y = P::Lanes::third_y(&slope.shifted(), &xa.sub::<0>(&x), &ya, negative_a);
            if let Some(special) = special.filter(Special::has_copies) {
                (x, y) = special_sums(src, eight, &special, x, y);
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
    pub(super) fn invert<C: Coordinate>([a, b]: &[C; CHAINS]) -> [C; CHAINS] {
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
    fn agrees<P: Point + Group>(others: &[P]) {
        if !super::super::available() {
            return;
        }
        let mut points = vec![P::IDENTITY];
        points.extend((1..6u64).map(|x| P::generator().mul(&Fr::from(x))));
        points.extend(others);
        let n = points.len() as u32;
        let signed = |i: u32| [i, i | NEGATIVE];
        let every: Vec<[u32; 2]> =
            (0..n).flat_map(signed).flat_map(|a| (0..n).flat_map(signed).map(move |b| [a, b])).collect();
        for length in 1..=40 {
            for start in (0..every.len()).step_by(29) {
                let pairs: Vec<[u32; 2]> = every.iter().cycle().skip(start).take(length).copied().collect();
                let (mut got, mut expected) = (vec![P::IDENTITY; length], vec![P::IDENTITY; length]);
                let mut scratch = vec![Lane::splat(0); 5 * P::KEPT * (P::Lanes::WORDS / 6 * 8)];
                // SAFETY: the features are there.
                unsafe { P::add_batch(&points, &pairs, &mut got, &mut scratch) };
                portable::add_pairs(&points, &pairs, &mut expected);
                assert_eq!(got, expected, "{length} pairs from {start} on");
            }
        }
    }

    #[test]
    fn batches_of_g1_agree_with_the_portable_ones() {
        // (0, 2), of order 3: its tangent meets the curve at x = 0, which comes out of the formula as 4 p
        agrees(&[G1Point { x: [0; 6], y: ark_bls12_381::Fq::from(2u64).0.0 }]);
    }

    #[test]
    fn batches_of_g2_agree_with_the_portable_ones() {
        agrees::<G2Point>(&[]);
    }
}
