//! Reads pairs of points in steps, which [`super::additions`] places between the rows of a product.

use super::field::{Fq, Modulus, Q, cut_limb};
use super::lane::{Lane, Mask};
use super::loose::Carry;
use crate::sums::NEGATIVE;

/// Unrolls a block for limbs k and k + 1.
macro_rules! two {
    ($k:ident = $from:expr, $body:block) => {{
        let $k = $from;
        $body
        let $k = $from + 1;
        $body
    }};
}

/// Unrolls a block for limbs k to k + 3.
macro_rules! four {
    ($k:ident = $from:expr, $body:block) => {{
        two!($k = $from, $body);
        two!($k = $from + 2, $body);
    }};
}

/// Words of two elements of Fq: a point of G1, or a coordinate of G2.
pub(super) const WORDS: usize = 12;
/// The words of a point.
pub(super) type Words<const N: usize> = [[u64; WORDS]; N];
/// The number of coordinates per vector that the backward pass needs: 320 bytes per pair in G1, and
/// 640 in G2.
pub(super) const KEPT: usize = 5;
pub(super) type Kept<const N: usize> = [[Fq; N]; KEPT];

/// Indices in [`Kept`]: the product of all earlier denominators in the chain, the vector's own
/// denominator, x of the first points, their y with sign, not carried, and the rise to the second
/// points' y.
pub(super) const BEFORE: usize = 0;
pub(super) const D: usize = 1;
pub(super) const X: usize = 2;
pub(super) const Y: usize = 3;
pub(super) const RISE: usize = 4;

/// The points on one side of eight pairs, while they are read.
struct Reading<'s, const N: usize> {
    rows: [&'s Words<N>; 8],
    columns: [Lane; WORDS],
    negative: Mask,
}

impl<'s, const N: usize> Reading<'s, N> {
    #[inline(always)]
    fn new(src: &'s [Words<N>], pairs: &[[u32; 2]; 8], side: usize) -> Self {
        let mut rows = [&src[0]; 8];
        for i in 0..8 {
            rows[i] = &src[(pairs[i][side] & !NEGATIVE) as usize];
        }
        Self { rows, columns: [Lane::splat(0); WORDS], negative: Lane::top_bits(pairs, side) }
    }

    /// Transposes the columns of [`WORDS`] words, in three steps; then come the next words.
    #[inline(always)]
    fn transpose(&mut self, step: usize) {
        let block = step / 3;
        let columns = self.columns.first_chunk_mut().expect("eight columns");
        match step % 3 {
            0 => {
                for i in 0..8 {
                    columns[i] =
                        Lane::load(self.rows[i][block].first_chunk().expect("eight words"));
                }
                Lane::transpose_step(columns, 0);
                Lane::transpose_step(columns, 1);
            }
            1 => {
                for step in 2..Lane::TRANSPOSITION {
                    Lane::transpose_step(columns, step);
                }
            }
            _ => {
                let mut rows = [self.rows[0][block].last_chunk().expect("four words"); 8];
                for i in 1..8 {
                    rows[i] = self.rows[i][block].last_chunk().expect("four words");
                }
                self.columns[8..].copy_from_slice(&Lane::half_columns(rows));
            }
        }
        // all columns at every step: an MSM is 3 % faster than with only those of the step
        if N == 1 {
            for i in 0..WORDS {
                self.columns[i] = self.columns[i].here();
            }
        }
    }

    /// A limb of the first or second element in the columns.
    #[inline(always)]
    fn limb(&self, half: usize, k: usize) -> Lane {
        cut_limb::<6>(self.columns[6 * half..].first_chunk().expect("six words"), 0, k)
    }

    /// A limb of x.
    #[inline(always)]
    fn x(&self, part: usize, k: usize) -> Lane {
        self.limb(part, k).here()
    }

    /// A limb of y, negated where the point is.
    #[inline(always)]
    fn y(&self, part: usize, k: usize) -> Lane {
        self.limb(if N == 1 { 1 } else { part }, k).negated(self.negative).here()
    }
}

/// A step of reading eight pairs.
enum ReadStep {
    /// Transposes the next columns of the first or second points.
    First(usize),
    Second(usize),
    /// Four limbs of x or y of the first points.
    X(usize),
    Y(usize),
    /// Four limbs of the difference of x.
    Difference(usize),
    /// Two limbs of the difference of y.
    Rise(usize),
    Nothing,
}

impl ReadStep {
    /// The steps of G1, where both coordinates are in the columns at once.
    #[inline(always)]
    fn of_one(i: usize) -> Self {
        match i {
            0..3 => Self::First(i),
            3..5 => Self::X(i - 3),
            5..7 => Self::Y(i - 5),
            7..10 => Self::Second(i - 7),
            10..12 => Self::Difference(i - 10),
            12..16 => Self::Rise(i - 12),
            _ => Self::Nothing,
        }
    }

    /// The steps of G2, where y follows x.
    #[inline(always)]
    fn of_two(i: usize) -> Self {
        match i {
            0..3 => Self::First(i),
            3..7 => Self::X(i - 3),
            7..10 => Self::Second(i - 7),
            10..14 => Self::Difference(i - 10),
            14..17 => Self::First(i - 14 + 3),
            17..21 => Self::Y(i - 17),
            21..24 => Self::Second(i - 21 + 3),
            24..32 => Self::Rise(i - 24),
            _ => Self::Nothing,
        }
    }
}

/// Eight pairs that are being read, and what can be computed without a product: `b - a + p` of
/// their x and `b - a + 2 p` of their y.
pub(super) struct Arriving<'s, const N: usize> {
    a: Reading<'s, N>,
    b: Reading<'s, N>,
    d: Carry,
    rise: Carry,
    // zero in lanes where x of a or of b is zero, or both are equal
    any: [Lane; 3],
}

impl<'s, const N: usize> Arriving<'s, N> {
    #[inline(always)]
    pub(super) fn new(src: &'s [Words<N>], pairs: &[[u32; 2]; 8]) -> Self {
        let (a, b) = (Reading::new(src, pairs, 0), Reading::new(src, pairs, 1));
        Self { a, b, d: Carry::new(), rise: Carry::new(), any: [Lane::splat(0); 3] }
    }

    #[inline(always)]
    pub(super) fn step(&mut self, to: &mut Kept<N>, i: usize) {
        match if N == 1 { ReadStep::of_one(i) } else { ReadStep::of_two(i) } {
            ReadStep::First(i) => self.a.transpose(i),
            ReadStep::Second(i) => self.b.transpose(i),
            ReadStep::X(i) => four!(k = 4 * i, {
                to[X][k / 8].0[k % 8] = self.a.x(k / 8, k % 8);
            }),
            ReadStep::Y(i) => four!(k = 4 * i, {
                to[Y][k / 8].0[k % 8] = self.a.y(k / 8, k % 8);
            }),
            ReadStep::Difference(i) => four!(k = 4 * i, {
                let (xa, xb) = (to[X][k / 8].0[k % 8], self.b.x(k / 8, k % 8));
                let difference = xb.sub(xa);
                self.any[0] = self.any[0].or(xa);
                self.any[1] = self.any[1].or(xb);
                self.any[2] = self.any[2].or(difference);
                to[D][k / 8].0[k % 8] =
                    self.d.put(k, difference.add(Lane::splat(Q::MULTIPLES[k % 8][1])));
            }),
            ReadStep::Rise(i) => two!(k = 2 * i, {
                let rise = self.b.y(k / 8, k % 8).sub(to[Y][k / 8].0[k % 8]);
                to[RISE][k / 8].0[k % 8] =
                    self.rise.put(k, rise.add(Lane::splat(Q::MULTIPLES[k % 8][2])));
            }),
            ReadStep::Nothing => {}
        }
    }

    /// The lanes that may not be plain additions.
    #[inline(always)]
    pub(super) fn special(&self) -> Mask {
        let zero = Lane::splat(0);
        self.any[0].equal(zero) | self.any[1].equal(zero) | self.any[2].equal(zero)
    }
}
