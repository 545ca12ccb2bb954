//! Pairs of points to be added, eight at a time: the parts that all batches of additions
//! ([`super::batch`]) share.

use super::coordinate::Coordinate;
use super::field::Fq;
use super::lane::{Lane, Mask};
use crate::portable::{Curve, Field};
use crate::sums::NEGATIVE;
use bytemuck::Pod;

/// Running products side by side: a chain of products is latency-bound, and two chains hide each
/// other's latency.
pub(super) const CHAINS: usize = 2;
/// The number of pairs ahead for which points are prefetched.
pub(super) const AHEAD: usize = 24;

/// Points with coordinates that can be worked on in lanes.
pub(crate) trait Point: Curve + Pod + PartialEq {
    type Lanes: Coordinate;
    /// Additions that share one inversion.
    const BATCH: usize;
    /// The number of elements that [`Self::add_batch`] needs for its own use.
    const SCRATCH: usize;

    /// Computes a batch of sums, those of the first pairs. The points of the other pairs, which come
    /// next, may be prefetched meanwhile.
    ///
    /// # Safety
    /// The processor must have the backend's features.
    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Fq]);
}

/// The lanes of a vector that are not plain additions.
#[derive(Clone, Copy)]
pub(super) struct Special {
    pub(super) vector: usize,
    double: Mask,
    /// The sum is the first point, because the second is infinity.
    first: Mask,
    second: Mask,
    /// The sum is infinity.
    zero: Mask,
    /// `true` if each pair is the same point twice, without a sign.
    tangents: bool,
}

impl Special {
    /// Reports whether some sum does not come from a slope but is a copy or infinity. Doublings, of
    /// which multiples consist, do have slopes.
    #[inline(always)]
    pub(super) fn has_copies(&self) -> bool {
        self.first | self.second | self.zero != 0
    }
}

/// Reports whether each pair is the same point twice, without a sign.
#[inline(always)]
fn are_tangents(pairs: &[[u32; 2]; 8]) -> bool {
    pairs.iter().all(|[a, b]| a == b && a & NEGATIVE == 0)
}

/// The words of a point.
#[inline(always)]
fn words_of<P: Point>(p: &P) -> &[u64] {
    bytemuck::cast_slice(std::slice::from_ref(p))
}

#[inline(always)]
fn eight<const N: usize>(words: &[u64], at: usize) -> &[u64; N] {
    words[at..].first_chunk().expect("rows are long enough")
}

/// Reads the words `from .. from + count` of eight points as columns; `count` is a multiple of
/// four.
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

/// Prefetches all cache lines of the points of some pairs.
#[inline(always)]
pub(super) fn prefetch<'p, P: Point>(
    src: &[P],
    pairs: impl Iterator<Item = &'p [u32; 2]>,
    line: impl Fn(*const P),
) {
    for pair in pairs {
        for index in pair {
            let at = src.as_ptr().wrapping_add((index & !NEGATIVE) as usize);
            for offset in (0..size_of::<P>()).step_by(64) {
                line(at.wrapping_byte_add(offset));
            }
            line(at.wrapping_byte_add(size_of::<P>() - 1));
        }
    }
}

/// Prefetches the points of the vector that comes [`AHEAD`] pairs after vector v.
#[inline(always)]
pub(super) fn prefetch_there<P: Point>(src: &[P], pairs: &[[u32; 2]], v: usize) {
    prefetch(src, pairs.iter().skip(8 * v + AHEAD).take(8), Lane::prefetch);
}

/// Pairs, eight at a time.
pub(super) struct Pairs<'p> {
    whole: &'p [[[u32; 2]; 8]],
    /// The remaining pairs, padded with the last one.
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
pub(super) fn rows<'s, P: Point>(src: &'s [P], pairs: &[[u32; 2]; 8], side: usize) -> [&'s P; 8] {
    let mut rows = [&src[0]; 8];
    for i in 0..8 {
        rows[i] = &src[(pairs[i][side] & !NEGATIVE) as usize];
    }
    rows
}

/// Reads the x coordinates of eight points.
#[inline(always)]
pub(super) fn read_x<P: Point>(rows: &[&P; 8]) -> P::Lanes {
    let mut words = [Lane::splat(0); 12];
    columns(rows, 0, P::Lanes::WORDS.next_multiple_of(4), &mut words);
    P::Lanes::from_words(&words[..P::Lanes::WORDS])
}

/// Reads the y coordinates of eight points.
#[inline(always)]
pub(super) fn read_y<P: Point>(rows: &[&P; 8]) -> P::Lanes {
    let mut words = [Lane::splat(0); 12];
    // columns are read four at a time
    let from = P::Lanes::WORDS / 4 * 4;
    columns(rows, from, 2 * P::Lanes::WORDS - from, &mut words);
    P::Lanes::from_words(&words[P::Lanes::WORDS - from..][..P::Lanes::WORDS])
}

lanes! {
    /// Classifies the pairs of a vector and returns the denominators of their slopes.
    #[inline(never)]
    pub(super) fn classify<P: Point>(src: &[P], pairs: &[[u32; 2]; 8], vector: usize) -> (Special, P::Lanes) {
        if !are_tangents(pairs) {
            return classify_mixed(src, pairs, vector);
        }
        let y = read_y(&rows(src, pairs, 0));
        // a point at infinity, or one of order two outside the group
        let zero = y.equal(&P::Lanes::zero());
        let special = Special { vector, double: !zero, first: 0, second: 0, zero, tangents: true };
        (special, y.add(&y).select(zero, &P::Lanes::one()))
    }

    /// Same as [`classify`], for any pairs.
    #[cold]
    #[inline(never)]
    fn classify_mixed<P: Point>(src: &[P], pairs: &[[u32; 2]; 8], vector: usize) -> (Special, P::Lanes) {
        let (a, b) = (rows(src, pairs, 0), rows(src, pairs, 1));
        let (xa, xb) = (read_x(&a), read_x(&b));
        // the negative of y = 0 comes out as p, or as zeros with a sign
        let (ya, yb) = (read_y(&a).negated(Lane::top_bits(pairs, 0)), read_y(&b).negated(Lane::top_bits(pairs, 1)));
        let (sa, sb, zero) = (ya.canonical(), yb.canonical(), P::Lanes::zero());
        let (none_a, none_b) = (xa.equal(&zero) & sa.equal(&zero), xb.equal(&zero) & sb.equal(&zero));
        let same_x = xa.equal(&xb) & !none_a & !none_b;
        let double = same_x & sa.equal(&sb) & !sa.equal(&zero);
        let zero = none_a & none_b | same_x & !double;
        let special = Special { vector, double, first: none_b & !none_a, second: none_a & !none_b, zero, tangents: false };
        let d = xb.sub::<0>(&xa).select(special.first | special.second | special.zero, &P::Lanes::one());
        (special, d.select(double, &ya.add(&ya)))
    }

    /// Returns the numerators of the slopes of a vector whose first points have these x coordinates, and `b - a`, which is not the
    /// denominator where a point is doubled.
    #[inline(never)]
    pub(super) fn special_slopes<P: Point>(
        src: &[P],
        pairs: &[[u32; 2]; 8],
        special: &Special,
        xa: &P::Lanes,
        rise: P::Lanes,
    ) -> (P::Lanes, P::Lanes) {
        let factor = xa.carried().shifted();
        let square = factor.mul(&factor).reduced();
        let tangent = square.add(&square).add(&square);
        if special.tangents {
            return (tangent, P::Lanes::zero());
        }
        (rise.select(special.double, &tangent), read_x(&rows(src, pairs, 1)).sub::<0>(xa))
    }

    /// Replaces the sums that do not come from a slope.
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
}

lanes! {
    /// Computes `2^816 / x` for each lane of each chain, none of which may be zero: the inverse of
    /// the product of all, times all others.
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
