//! Batched affine additions in G1, software-pipelined: everything other than the products is
//! interleaved with them.
//!
//! Results, forms and bounds are those of [`super::batch`], which this module replaces in G1,
//! except that points are read only in the forward pass; everything that the backward pass needs is
//! kept, in order. Zen 4 and 5 execute other instructions on separate ports, but the reorder window
//! holds only a few hundred operations, so work placed between two multiplications does not overlap
//! with them. Reading, transposing and cutting points, finishing each sum and writing it are
//! therefore split into [`STEPS`] steps, which are placed between the rows of a product that does
//! not depend on them:
//!
//! | product | interleaved with it |
//! |---|---|
//! | running product, vector v | reading vector v + 1: x and y, differences of both |
//! | slope, v | end of y, v + 1 |
//! | next inverse | writing v + 1; slope of v, shifted |
//! | square of the slope, v | |
//! | reciprocal, v - 1 | end of x, v |
//! | y, v | |
//!
//! Measurements are in `docs/kernels.md`.

use super::field::{Element, Fq, Modulus, Q, cut_limb};
use super::lane::{Lane, Mask};
use super::loose::{Carrying, Loose, mend, quotient, surely_reduced};
use super::pairs::{
    Pairs, Point, Special, classify, invert, prefetch_there, special_slopes, special_sums,
};
use super::product::{STEPS, mul_loose, mul_loose_beside, square_loose};
use super::tuning::BATCH_G1;
use crate::points::G1Point;
use crate::sums::NEGATIVE;

impl Point for G1Point {
    type Lanes = Fq;
    const BATCH: usize = BATCH_G1;
    const KEPT: usize = KEPT;

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Lane]) {
        // SAFETY: the caller guarantees the features of this backend.
        unsafe { add_batch(src, pairs, out, scratch) }
    }
}

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

/// Unrolls all steps: states stay in registers only if all indices are known.
macro_rules! steps {
    ($i:ident, $step:expr) => {
        steps!(@ $i, $step, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
    };
    (@ $i:ident, $step:expr, $($at:literal)*) => {
        $({
            let $i = $at;
            $step
        })*
    };
}

const _: () = assert!(STEPS == 16, "`steps!` unrolls 16 steps");

/// Words per point.
const WORDS: usize = 12;

/// The number of elements per vector that the backward pass needs: 320 bytes per pair.
const KEPT: usize = 5;
/// The limbs of these elements.
type Kept = [Lane; 8 * KEPT];

/// Offsets in [`Kept`]: the product of all earlier denominators in the chain, the vector's own
/// denominator, x of the first points, their y with sign, not carried, and the rise to the second
/// points' y.
const BEFORE: usize = 0;
const D: usize = 8;
const X: usize = 16;
const Y: usize = 24;
const RISE: usize = 32;

/// Loads a kept element.
#[inline(always)]
fn kept(from: &Kept, at: usize) -> Fq {
    Element::new(*from[at..].first_chunk().expect("eight limbs"))
}

/// The points on one side of eight pairs, while they are read.
struct Reading<'s> {
    rows: [&'s [u64; WORDS]; 8],
    columns: [Lane; WORDS],
    negative: Mask,
}

impl<'s> Reading<'s> {
    #[inline(always)]
    fn new(src: &'s [G1Point], pairs: &[[u32; 2]; 8], side: usize) -> Self {
        let words: &[[u64; WORDS]] = bytemuck::cast_slice(src);
        let mut rows = [&words[0]; 8];
        for i in 0..8 {
            rows[i] = &words[(pairs[i][side] & !NEGATIVE) as usize];
        }
        Self { rows, columns: [Lane::splat(0); WORDS], negative: Lane::top_bits(pairs, side) }
    }

    /// Transposes all columns, in three steps.
    #[inline(always)]
    fn transpose(&mut self, step: usize) {
        let columns = self.columns.first_chunk_mut().expect("eight columns");
        match step {
            0 => {
                for i in 0..8 {
                    columns[i] = Lane::load(self.rows[i].first_chunk().expect("eight words"));
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
                let mut rows = [self.rows[0].last_chunk().expect("four words"); 8];
                for i in 1..8 {
                    rows[i] = self.rows[i].last_chunk().expect("four words");
                }
                self.columns[8..].copy_from_slice(&Lane::half_columns(rows));
            }
        }
        // all columns at every step: an MSM is 3 % faster than with only those of the step
        for i in 0..WORDS {
            self.columns[i] = self.columns[i].here();
        }
    }

    /// A limb of x.
    #[inline(always)]
    fn x(&self, k: usize) -> Lane {
        cut_limb::<6>(self.columns.first_chunk().expect("six words"), 0, k).here()
    }

    /// A limb of y, negated where the point is.
    #[inline(always)]
    fn y(&self, k: usize) -> Lane {
        cut_limb::<6>(self.columns.last_chunk().expect("six words"), 0, k)
            .negated(self.negative)
            .here()
    }
}

/// Eight pairs that are being read, and what can be computed without a product: `b - a + p` of
/// their x and `b - a + 2 p` of their y.
struct Arriving<'s> {
    a: Reading<'s>,
    b: Reading<'s>,
    d: Carrying,
    rise: Carrying,
    // zero in lanes where x of a or of b is zero, or both are equal
    any: [Lane; 3],
}

impl<'s> Arriving<'s> {
    #[inline(always)]
    fn new(src: &'s [G1Point], pairs: &[[u32; 2]; 8]) -> Self {
        let (a, b) = (Reading::new(src, pairs, 0), Reading::new(src, pairs, 1));
        Self { a, b, d: Carrying::new(), rise: Carrying::new(), any: [Lane::splat(0); 3] }
    }

    #[inline(always)]
    fn step(&mut self, to: &mut Kept, i: usize) {
        match i {
            0..3 => self.a.transpose(i),
            3..5 => {
                four!(k = 4 * (i - 3), {
                    to[X + k] = self.a.x(k);
                });
            }
            5..7 => {
                four!(k = 4 * (i - 5), {
                    to[Y + k] = self.a.y(k);
                });
            }
            7..10 => self.b.transpose(i - 7),
            10..12 => {
                four!(k = 4 * (i - 10), {
                    let (xa, xb) = (to[X + k], self.b.x(k));
                    let difference = xb.sub(xa);
                    self.any[0] = self.any[0].or(xa);
                    self.any[1] = self.any[1].or(xb);
                    self.any[2] = self.any[2].or(difference);
                    self.d.put(k, difference.add(Lane::splat(Q::MULTIPLES[k][1])));
                });
            }
            _ => {
                two!(k = 2 * (i - 12), {
                    self.rise
                        .put(k, self.b.y(k).sub(to[Y + k]).add(Lane::splat(Q::MULTIPLES[k][2])));
                    to[RISE + k] = self.rise.limb(k);
                });
            }
        }
    }

    /// The lanes that may not be plain additions.
    #[inline(always)]
    fn special(&self) -> Mask {
        let zero = Lane::splat(0);
        self.any[0].equal(zero) | self.any[1].equal(zero) | self.any[2].equal(zero)
    }
}

/// Reduces `sum + LIFT p` below p in steps, as [`Loose::reduced`] does at once.
struct Reducing<const LIFT: usize> {
    sum: [Lane; 8],
    quotient: Lane,
    out: Carrying,
}

impl<const LIFT: usize> Reducing<LIFT> {
    #[inline(always)]
    fn new() -> Self {
        Self { sum: [Lane::splat(0); 8], quotient: Lane::splat(0), out: Carrying::new() }
    }

    /// One of nine steps; the first four ask for the limbs of the sum.
    #[inline(always)]
    fn step(&mut self, limb: impl Fn(usize) -> Lane, i: usize) {
        match i {
            0..4 => {
                two!(k = 2 * i, {
                    self.sum[k] = limb(k).add(Lane::splat(Q::MULTIPLES[k][LIFT])).here();
                });
            }
            4 => self.quotient = quotient(&self.sum).here(),
            5..9 => {
                two!(k = 2 * (i - 5), {
                    self.out.put(k, self.sum[k].sub(self.quotient.lookup(&Q::MULTIPLES[k])));
                });
            }
            _ => {}
        }
    }

    /// The number below p, and whether it needed no correction.
    #[inline(always)]
    fn done(&self) -> (Fq, bool) {
        let mut out = self.out.done();
        let sure = surely_reduced(&out);
        if !sure {
            // SAFETY: lanes exist only where AVX-512 IFMA does.
            out = unsafe { mend(out) };
        }
        out.check();
        (out, sure)
    }
}

/// Sums on their way back to memory.
struct Writing {
    words: [Lane; WORDS],
}

impl Writing {
    #[inline(always)]
    fn new() -> Self {
        Self { words: [Lane::splat(0); WORDS] }
    }

    #[inline(always)]
    fn step(&mut self, x: &Fq, y: &Fq, to: &mut [u64; 8 * WORDS], i: usize) {
        match i {
            0..6 => self.words[i] = x.joined_word(i).here(),
            6..12 => self.words[i] = y.joined_word(i - 6).here(),
            _ => {}
        }
        if i >= 4 {
            let group = i / 4 - 1;
            let columns = self.words[4 * group..].first_chunk().expect("four words");
            Lane::store_half_columns_step(columns, &mut to[4 * group..], WORDS, i % 4);
        }
    }
}

/// A vector whose sum is known except for the end of its y.
struct Ending {
    vector: usize,
    x: Fq,
    y: Loose,
    ya: Loose,
    special: Option<Special>,
}

lanes! {
    /// Adds pairs, with the same results as [`super::batch`].
    // One function, because every product is interleaved with steps of its neighbors: the state that they
    // share must stay in registers, and a call would end the overlap.
    #[inline(never)]
    // One piece: the two passes share what is in registers and on the stack.
    fn add_batch(src: &[G1Point], pairs: &[[u32; 2]], out: &mut [G1Point], scratch: &mut [Lane]) {
        let vectors = pairs.len().div_ceil(8);
        let all = &mut scratch.as_chunks_mut::<{ 8 * KEPT }>().0[..vectors];
        let eights = Pairs::new(pairs);
        let mut specials: Vec<Special> = Vec::new();
        let mut products = [Fq::one(); 2];
        let mut next = Arriving::new(src, eights.of(0));
        steps!(i, next.step(&mut all[0], i));
        for v in 0..vectors {
            prefetch_there(src, pairs, v);
            let mut d = next.d.done();
            if next.special() != 0 {
                let special;
                (special, d) = classify(src, eights.of(v), v);
                specials.push(special);
            }
            let before = products[v % 2];
            all[v][BEFORE..D].copy_from_slice(&before.0);
            all[v][D..X].copy_from_slice(&d.0);
            // past the end, the last vector is read again
            let ahead = (v + 1).min(vectors - 1);
            next = Arriving::new(src, eights.of(ahead));
            let to = &mut all[ahead];
            products[v % 2] = mul_loose_beside(&before, &d, |i| next.step(to, i)).carried();
        }
        let mut inverses = invert(&products);
        let last = vectors - 1;
        let mut reciprocal = mul_loose(&inverses[last % 2], &kept(&all[last], BEFORE)).carried();
        let zero = Fq::zero();
        let mut ending = Ending { vector: vectors, x: zero, y: Loose::of(&zero), ya: Loose::of(&zero), special: None };
        // buffer for the last vector if it is not full, and for the rounds before the first sum
        let mut aside = [0; 8 * WORDS];
        for v in (0..vectors).rev() {
            let this = &all[v];
            let (d, xa, mut rise) = (kept(this, D), kept(this, X), kept(this, RISE));
            let special = specials.pop_if(|special| special.vector == v);
            let mut b_less_a = d;
            if let Some(special) = &special {
                (rise, b_less_a) = special_slopes(src, eights.of(v), special, &xa, rise);
            }
            let mut y = Reducing::<2>::new();
            let slope = mul_loose_beside(&rise, &reciprocal, |i| {
                y.step(|k| ending.y_limb(k), i);
            })
            .carried();
            let (end_x, end_y) = ending.done(src, &eights, &y);
            let to = target(out, &mut aside, ending.vector);
            let (mut writing, mut shifted) = (Writing::new(), [Lane::splat(0); 8]);
            inverses[v % 2] = mul_loose_beside(&inverses[v % 2], &d, |i| {
                writing.step(&end_x, &end_y, to, i);
                if i < 8 {
                    shifted[i] = slope.shifted_limb(i).here();
                }
            })
            .carried();
            finish(out, &aside, ending.vector);
            let square = square_loose(&slope);
            let ahead = v.saturating_sub(1);
            let (mut x, mut run) = (Reducing::<5>::new(), Carrying::new());
            reciprocal = mul_loose_beside(&inverses[ahead % 2], &kept(&all[ahead], BEFORE), |i| {
                x.step(|k| square.0[k].sub(xa.0[k]).sub(xa.0[k]).sub(b_less_a.0[k]), i);
                if (9..13).contains(&i) {
                    two!(k = 2 * (i - 9), {
                        run.put(k, xa.0[k].sub(x.out.limb(k)).add(Lane::splat(Q::MULTIPLES[k][1])));
                    });
                }
            })
            .carried();
            let (x, sure) = x.done();
            let run = if sure { run.done() } else { xa.sub::<0>(&x) };
            let y = mul_loose(&Element::new(shifted), &run);
            let copies = special.filter(Special::has_copies);
            ending = Ending { vector: v, x, y, ya: Loose(*this[Y..].first_chunk().expect("eight limbs")), special: copies };
        }
        end_first(src, &eights, &ending, out, &mut aside);
    }
}

impl Ending {
    /// A limb of y before its reduction.
    #[inline(always)]
    fn y_limb(&self, k: usize) -> Lane {
        self.y.0[k].sub(self.ya.0[k])
    }

    /// The sums of the vector.
    #[inline(always)]
    fn done(&self, src: &[G1Point], eights: &Pairs<'_>, y: &Reducing<2>) -> (Fq, Fq) {
        let (mut x, (mut y, _)) = (self.x, y.done());
        if let Some(special) = &self.special {
            // SAFETY: lanes exist only where AVX-512 IFMA does.
            (x, y) = unsafe { special_sums(src, eights.of(self.vector), special, x, y) };
        }
        (x, y)
    }
}

/// Ends the sums of the first vector, which come last and have no product to overlap with.
#[inline(always)]
fn end_first(
    src: &[G1Point],
    eights: &Pairs<'_>,
    ending: &Ending,
    out: &mut [G1Point],
    aside: &mut [u64; 8 * WORDS],
) {
    let mut y = Reducing::<2>::new();
    steps!(i, y.step(|k| ending.y_limb(k), i));
    let (end_x, end_y) = ending.done(src, eights, &y);
    let to = target(out, aside, 0);
    let mut writing = Writing::new();
    steps!(i, writing.step(&end_x, &end_y, to, i));
    finish(out, aside, 0);
}

/// Returns the place to which the sums of a vector are written: the output or, if fewer than eight
/// of them fit, a buffer.
#[inline(always)]
fn target<'o>(
    out: &'o mut [G1Point],
    aside: &'o mut [u64; 8 * WORDS],
    vector: usize,
) -> &'o mut [u64; 8 * WORDS] {
    let words: &mut [u64] = bytemuck::cast_slice_mut(out);
    words.get_mut(8 * WORDS * vector..).and_then(|rest| rest.first_chunk_mut()).unwrap_or(aside)
}

/// Copies buffered sums to the output.
#[inline(always)]
fn finish(out: &mut [G1Point], aside: &[u64; 8 * WORDS], vector: usize) {
    if let Some(rest) = out.get_mut(8 * vector..).filter(|rest| rest.len() < 8) {
        rest.copy_from_slice(&bytemuck::cast_slice(aside)[..rest.len()]);
    }
}
