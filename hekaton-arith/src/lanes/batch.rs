//! Batched affine additions, eight pairs of points at a time.
//!
//! # Operations
//! An addition takes a subtraction of x, two multiplications for the running product and its way
//! back, one for the reciprocal, one for the slope, and a square and a multiplication for the
//! result. With AVX-512 IFMA that is 1,486 multiply-adds for eight additions in G1 and 3,724 in G2;
//! a doubling takes one multiplication more. Up to [`Point::BATCH`] additions share one field
//! inversion. The backward pass takes its part of the second point's x from the stored
//! difference.
//!
//! # Forms
//! Coordinates are words `x 2^384` as they are in memory, read as limbs without a shift. With R =
//! 2^416, a product of such numbers divides by R each time, so the running products are correct up
//! to powers of two, which cancel: with P_0 = 1, `P_i = P_(i-1) d_i / R` and I_n = k / P_n, the
//! backward pass computes `I_i P_(i-1) / R = k / d_i` and `I_(i-1) = I_i d_i / R`. With k = 2^816
//! the slope is `s 2^400`, so its square is `s^2 2^384`, a coordinate again; shifted by 16 bits it
//! is `s R`, so its product with a coordinate is a coordinate.
//!
//! # Bounds
//! Coordinates are below p, negated ones at most p, differences d = `b - a + p` at most 2 p, and
//! the rise of y at most 4 p. Products are of numbers below 4 p, times a slope of up to 2^18 p:
//! results are below 1.3 p, and in Fq2, where the first coordinate of a product is lifted by p,
//! below 2.3 p. For x3, `s^2 - 2 a - d + 5 p` is between p and 6.3 p (7.3 p for a tangent, where d is 0), and for y3, `m -+ y + 2 p`
//! is between p and 5.3 p: both within the range p .. 8 p that
//! [`Loose::reduced`](super::loose::Loose::reduced) accepts. For a tangent, x 2^16 is squared: it
//! is below 2^16 p, and sums in Fq2 are below 2^17 p, so the parts of the wide product are within
//! 2^33 p^2 of zero, less than p R = 2^35.3 p^2; the result, below 3 p, is reduced at once.

use super::coordinate::Coordinate;
use super::lane::Lane;
use super::pairs::{
    CHAINS, Pairs, Point, Special, classify, invert, prefetch_back, prefetch_there, read_x, read_y,
    rows, special_slopes, special_sums,
};
use super::tower::Fq2;
use super::tuning::{BATCH_G2, FEW_ADDITIONS};
use crate::points::G2Point;
use crate::portable;
use std::cell::RefCell;

impl Point for G2Point {
    type Lanes = Fq2;
    const BATCH: usize = BATCH_G2;
    const KEPT: usize = KEPT;

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Lane]) {
        // SAFETY: the caller guarantees the features of this backend.
        unsafe { add_batch(src, pairs, out, scratch) }
    }
}

thread_local! {
    /// The elements that the forward pass leaves for the backward pass: [`Point::KEPT`] per vector.
    static SCRATCH: RefCell<Vec<Lane>> = const { RefCell::new(Vec::new()) };
}

/// Computes `out_i = src[a_i] + src[b_i]` for each pair of indices; an index with its top bit set
/// selects a negative. The addition is complete (equal points, opposite points, infinity).
pub(crate) fn add_pairs<P: Point>(src: &[P], pairs: &[[u32; 2]], out: &mut [P]) {
    assert_eq!(pairs.len(), out.len(), "one sum per pair");
    SCRATCH.with_borrow_mut(|scratch| {
        let lanes = P::BATCH / 8 * P::KEPT * (P::Lanes::WORDS / 6 * 8);
        if scratch.len() < lanes {
            scratch.resize(lanes, Lane::splat(0));
        }
        for (pairs, out) in pairs.chunks(P::BATCH).zip(out.chunks_mut(P::BATCH)) {
            if pairs.len() < FEW_ADDITIONS {
                portable::add_pairs(src, pairs, out);
            } else {
                // SAFETY: the dispatcher calls this backend only where its features are available.
                unsafe { P::add_batch(src, pairs, out, scratch) };
            }
        }
    });
}

/// The state that [`add_batch`] keeps of a vector: the product of all earlier denominators in its
/// chain, and its own denominator.
struct Saved<C> {
    before: C,
    d: C,
}

/// The number of elements in [`Saved`].
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

lanes! {
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
                (rise, d) = special_slopes(src, eight, special, &xa, rise);
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

/// Stores eight rows of words, given their columns.
#[inline(always)]
fn store(columns: &[Lane], to: &mut [u64]) {
    let stride = columns.len();
    for (at, part) in columns.chunks_exact(4).enumerate() {
        Lane::store_half_columns([part[0], part[1], part[2], part[3]], &mut to[4 * at..], stride);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sums::NEGATIVE;
    use crate::{Fr, G1Point, Group};

    /// Tests every kind of pair at every position of a vector, in batches of all lengths up to five
    /// vectors, even those that are too short for lanes in production.
    fn agrees<P: Point + Group>(others: &[P]) {
        if !super::super::available() {
            return;
        }
        let mut points = vec![P::IDENTITY];
        points.extend((1..6u64).map(|x| P::generator().mul(&Fr::from(x))));
        points.extend(others);
        let n = u32::try_from(points.len()).expect("a few points");
        let signed = |i: u32| [i, i | NEGATIVE];
        let every: Vec<[u32; 2]> = (0..n)
            .flat_map(signed)
            .flat_map(|a| (0..n).flat_map(signed).map(move |b| [a, b]))
            .collect();
        // Vectors of doublings alone have a path of their own.
        let doublings: Vec<[u32; 2]> = (0..n).map(|a| [a, a]).collect();
        let starts = (0..every.len()).step_by(29).map(|start| (&every, start));
        let starts = starts.chain((0..doublings.len()).map(|start| (&doublings, start)));
        for (list, start) in starts {
            for length in 1..=40 {
                let pairs: Vec<[u32; 2]> =
                    list.iter().cycle().skip(start).take(length).copied().collect();
                let (mut got, mut expected) =
                    (vec![P::IDENTITY; length], vec![P::IDENTITY; length]);
                let mut scratch = vec![Lane::splat(0); 5 * P::KEPT * (P::Lanes::WORDS / 6 * 8)];
                // SAFETY: the features are available (checked above).
                unsafe { P::add_batch(&points, &pairs, &mut got, &mut scratch) };
                portable::add_pairs(&points, &pairs, &mut expected);
                assert_eq!(got, expected, "{length} pairs from {start} on");
            }
        }
    }

    #[test]
    fn batches_of_g1_agree_with_the_portable_ones() {
        // (0, 2) has order 3: its tangent meets the curve at x = 0, which the formula returns as 4
        // p
        agrees(&[G1Point { x: [0; 6], y: ark_bls12_381::Fq::from(2u64).0.0 }]);
    }

    #[test]
    fn batches_of_g2_agree_with_the_portable_ones() {
        agrees::<G2Point>(&[]);
    }
}
