//! Batched affine additions in G1, software-pipelined: all that is not a product is interleaved with products.
//!
//! What is computed, its forms and its bounds are those of [`super::batch`], which this replaces in G1. A processor such as Zen 4 does
//! one multiply-add a cycle and has other units for all else, but looks ahead by no more than some hundred operations: what lies
//! between two products does not overlap with them. So reading, transposing and cutting points, the end of each sum and its
//! writing are split into [`STEPS`] steps, which lie between the rows of a product that needs nothing of them:
//!
//! | product | beside it |
//! |---|---|
//! | running product, vector v | differences of x, vector v + 1 |
//! | slope, v | end of y, v + 1 |
//! | next inverse | writing v + 1; slope of v, shifted |
//! | square of the slope, v | reading the first points of v - 1 |
//! | reciprocal, v - 1 | end of x, v |
//! | y, v | reading the second points of v - 1, their slope's rise |
//!
//! Measured on Zen 4: 67 ns an addition, and 72 without (`docs/kernels.md`).

use super::batch::{
    Pairs, Saved, Special, classify, invert, prefetch_back, prefetch_there, saved, special_slopes, special_sums,
};
use super::field::{Element, Fq, Modulus, Q, cut_limb};
use super::lane::{Lane, Mask};
use super::loose::{Carrying, Loose, mend, quotient, surely_reduced};
use super::product::{STEPS, mul_loose_beside, square_loose_beside};
use crate::G1Point;
use crate::sums::NEGATIVE;

/// Limbs k and k + 1, written out.
macro_rules! two {
    ($k:ident = $from:expr, $body:block) => {{
        let $k = $from;
        $body
        let $k = $from + 1;
        $body
    }};
}

/// All steps, written out: states stay in registers only if all indices are known.
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

const _: () = assert!(STEPS == 16, "as many as are written out");

/// Words of a point.
const WORDS: usize = 12;

/// One side's points of eight pairs, being read.
struct Reading<'s> {
    rows: [&'s [u64; WORDS]; 8],
    columns: [Lane; 8],
}

impl<'s> Reading<'s> {
    #[inline(always)]
    fn new(src: &'s [G1Point], pairs: &[[u32; 2]; 8], side: usize) -> Self {
        let words: &[[u64; WORDS]] = bytemuck::cast_slice(src);
        let mut rows = [&words[0]; 8];
        for i in 0..8 {
            rows[i] = &words[(pairs[i][side] & !NEGATIVE) as usize];
        }
        Self { rows, columns: [Lane::splat(0); 8] }
    }

    /// Columns of eight words from `from` on, in four steps.
    #[inline(always)]
    fn transpose(&mut self, from: usize, step: usize) {
        if step < 2 {
            for i in 4 * step..4 * step + 4 {
                self.columns[i] = Lane::load(self.rows[i][from..].first_chunk().expect("eight words"));
            }
            Lane::transpose_step(&mut self.columns, step);
            for i in 4 * step..4 * step + 4 {
                self.columns[i] = self.columns[i].here();
            }
        } else {
            Lane::transpose_step(&mut self.columns, 2 * step - 2);
            Lane::transpose_step(&mut self.columns, 2 * step - 1);
            for i in 0..8 {
                self.columns[i] = self.columns[i].here();
            }
        }
    }

    /// Columns of the last four words.
    #[inline(always)]
    fn last_four(&self) -> [Lane; 4] {
        let mut rows = [self.rows[0].last_chunk().expect("four words"); 8];
        for i in 1..8 {
            rows[i] = self.rows[i].last_chunk().expect("four words");
        }
        Lane::half_columns(rows)
    }

    /// Limb k of the six columns from `from` on.
    #[inline(always)]
    fn limb(&self, from: usize, k: usize) -> Lane {
        cut_limb::<6>(self.columns[from..].first_chunk().expect("six words"), 0, k).here()
    }
}

/// `b - a + p` of the x of eight pairs.
struct Differences<'s> {
    a: Reading<'s>,
    b: Reading<'s>,
    xa: [Lane; 8],
    d: Carrying,
    // zero in lanes where x of a or b is zero, or both are equal
    any: [Lane; 3],
}

impl<'s> Differences<'s> {
    #[inline(always)]
    fn new(src: &'s [G1Point], pairs: &[[u32; 2]; 8]) -> Self {
        let (a, b) = (Reading::new(src, pairs, 0), Reading::new(src, pairs, 1));
        let zero = Lane::splat(0);
        Self { a, b, xa: [zero; 8], d: Carrying::new(), any: [zero; 3] }
    }

    #[inline(always)]
    fn step(&mut self, i: usize) {
        match i {
            0..4 => self.a.transpose(0, i),
            4..8 => {
                two!(k = 2 * (i - 4), {
                    self.xa[k] = self.a.limb(0, k);
                });
            }
            8..12 => self.b.transpose(0, i - 8),
            _ => {
                two!(k = 2 * (i - 12), {
                    let (xa, xb) = (self.xa[k], self.b.limb(0, k));
                    let difference = xb.sub(xa);
                    self.any[0] = self.any[0].or(xa);
                    self.any[1] = self.any[1].or(xb);
                    self.any[2] = self.any[2].or(difference);
                    self.d.put(k, difference.add(Lane::splat(Q::MULTIPLES[k][1])));
                });
            }
        }
    }

    /// Lanes that may not be plain additions.
    #[inline(always)]
    fn special(&self) -> Mask {
        let zero = Lane::splat(0);
        self.any[0].equal(zero) | self.any[1].equal(zero) | self.any[2].equal(zero)
    }
}

/// The first points of eight pairs.
struct First<'s> {
    reading: Reading<'s>,
    last_four: [Lane; 4],
    x: [Lane; 8],
    y: [Lane; 8],
}

impl<'s> First<'s> {
    #[inline(always)]
    fn new(src: &'s [G1Point], pairs: &[[u32; 2]; 8]) -> Self {
        let zero = Lane::splat(0);
        Self { reading: Reading::new(src, pairs, 0), last_four: [zero; 4], x: [zero; 8], y: [zero; 8] }
    }

    #[inline(always)]
    fn step(&mut self, i: usize) {
        match i {
            0..4 => self.reading.transpose(0, i),
            4..8 => {
                two!(k = 2 * (i - 4), {
                    self.x[k] = self.reading.limb(0, k);
                });
            }
            8 => self.last_four = self.reading.last_four(),
            10..14 => {
                let ([.., a, b], [c, d, e, f]) = (self.reading.columns, self.last_four);
                two!(k = 2 * (i - 10), {
                    self.y[k] = cut_limb(&[a, b, c, d, e, f], 0, k).here();
                });
            }
            _ => {}
        }
    }
}

/// `(+-b) - (+-a) + 2 p` of the y of eight pairs.
struct Rise<'s> {
    b: Reading<'s>,
    yb: [Lane; 8],
    negative_a: Mask,
    negative_b: Mask,
    rise: Carrying,
}

impl<'s> Rise<'s> {
    #[inline(always)]
    fn new(src: &'s [G1Point], pairs: &[[u32; 2]; 8]) -> Self {
        let (negative_a, negative_b) = (Lane::top_bits(pairs, 0), Lane::top_bits(pairs, 1));
        let b = Reading::new(src, pairs, 1);
        Self { b, yb: [Lane::splat(0); 8], negative_a, negative_b, rise: Carrying::new() }
    }

    #[inline(always)]
    fn step(&mut self, ya: &[Lane; 8], i: usize) {
        match i {
            0..4 => self.b.transpose(4, i),
            4..8 => {
                two!(k = 2 * (i - 4), {
                    self.yb[k] = self.b.limb(2, k);
                });
            }
            _ => {
                let k = i - 8;
                let (a, b) = (ya[k].negated(self.negative_a), self.yb[k].negated(self.negative_b));
                self.rise.put(k, b.sub(a).add(Lane::splat(Q::MULTIPLES[k][2])));
            }
        }
    }
}

/// What `sum + LIFT p` is below p, as [`Loose::reduced`] does it.
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

    /// Nine steps; the limbs of the sum are asked for in the first four.
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

    /// The number below p, and whether it had to be put right.
    #[inline(always)]
    fn done(&self) -> (Fq, bool) {
        let mut out = self.out.done();
        let sure = surely_reduced(&out);
        if !sure {
            // SAFETY: lanes exist only where the features do.
            out = unsafe { mend(out) };
        }
        out.check();
        (out, sure)
    }
}

/// Sums on their way back into memory.
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

/// A vector whose sum is known but for the end of its y.
struct Ending {
    vector: usize,
    x: Fq,
    y: Loose,
    ya: Fq,
    negative: Mask,
    special: Option<Special>,
}

lanes! {
    /// The sums of pairs, as [`super::batch`] has them; `scratch` holds what [`saved`] reads.
    #[inline(never)]
    pub(crate) fn add_batch(src: &[G1Point], pairs: &[[u32; 2]], out: &mut [G1Point], scratch: &mut [Lane]) {
        let vectors = pairs.len().div_ceil(8);
        let eights = Pairs::new(pairs);
        let mut specials: Vec<Special> = Vec::new();
        let mut products = [Fq::one(); 2];
        let mut next = Differences::new(src, eights.of(0));
        steps!(i, next.step(i));
        for v in 0..vectors {
            prefetch_there(src, pairs, v);
            let mut d = next.d.done();
            if next.special() != 0 {
                let special;
                (special, d) = classify(src, eights.of(v), v);
                specials.push(special);
            }
            let before = products[v % 2];
            Saved { before, d }.save(scratch, v);
            next = Differences::new(src, eights.of((v + 1).min(vectors - 1)));
            products[v % 2] = mul_loose_beside(&before, &d, |i| next.step(i)).carried();
        }
        let mut inverses = invert(&products);
        let last = vectors - 1;
        let Saved { before, mut d } = saved::<G1Point>(scratch, last);
        let mut reciprocal = mul_loose_beside(&inverses[last % 2], &before, |_| {}).carried();
        let eight = eights.of(last);
        let (mut first, mut second) = (First::new(src, eight), Rise::new(src, eight));
        steps!(i, first.step(i));
        steps!(i, second.step(&first.y, i));
        let zero = Fq::zero();
        let mut ending = Ending { vector: vectors, x: zero, y: Loose::of(&zero), ya: zero, negative: 0, special: None };
        // for the last vector if it is not whole, and for what comes before it
        let mut aside = [0; 8 * WORDS];
        for v in (0..vectors).rev() {
            prefetch_back(src, pairs, v);
            let eight = eights.of(v);
            let (xa, ya, negative) = (Element::new(first.x), Element::new(first.y), second.negative_a);
            let mut rise = second.rise.done();
            let special = specials.pop_if(|special| special.vector == v);
            let mut b_less_a = d;
            if let Some(special) = &special {
                (rise, b_less_a) = special_slopes(src, eight, special, rise);
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
            let ahead = v.saturating_sub(1);
            let eight = eights.of(ahead);
            first = First::new(src, eight);
            let square = square_loose_beside(&slope, |i| first.step(i));
            let before;
            Saved { before, d } = saved::<G1Point>(scratch, ahead);
            let (mut x, mut run) = (Reducing::<5>::new(), Carrying::new());
            reciprocal = mul_loose_beside(&inverses[ahead % 2], &before, |i| {
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
            second = Rise::new(src, eight);
            let y = mul_loose_beside(&Element::new(shifted), &run, |i| second.step(&first.y, i));
            let special = special.filter(Special::has_copies);
            ending = Ending { vector: v, x, y, ya, negative, special };
        }
        let mut y = Reducing::<2>::new();
        steps!(i, y.step(|k| ending.y_limb(k), i));
        let (end_x, end_y) = ending.done(src, &eights, &y);
        let to = target(out, &mut aside, 0);
        let mut writing = Writing::new();
        steps!(i, writing.step(&end_x, &end_y, to, i));
        finish(out, &aside, 0);
    }
}

impl Ending {
    /// A limb of y before it is reduced.
    #[inline(always)]
    fn y_limb(&self, k: usize) -> Lane {
        self.y.0[k].sub(self.ya.0[k].negated(self.negative))
    }

    /// The vector's sums.
    #[inline(always)]
    fn done(&self, src: &[G1Point], eights: &Pairs<'_>, y: &Reducing<2>) -> (Fq, Fq) {
        let (mut x, (mut y, _)) = (self.x, y.done());
        if let Some(special) = &self.special {
            // SAFETY: lanes exist only where the features do.
            (x, y) = unsafe { special_sums(src, eights.of(self.vector), special, x, y) };
        }
        (x, y)
    }
}

/// Where the sums of a vector go: to the output, or if it has not eight of them, aside.
#[inline(always)]
fn target<'o>(out: &'o mut [G1Point], aside: &'o mut [u64; 8 * WORDS], vector: usize) -> &'o mut [u64; 8 * WORDS] {
    let words: &mut [u64] = bytemuck::cast_slice_mut(out);
    words.get_mut(8 * WORDS * vector..).and_then(|rest| rest.first_chunk_mut()).unwrap_or(aside)
}

/// Copies to the output what was put aside.
#[inline(always)]
fn finish(out: &mut [G1Point], aside: &[u64; 8 * WORDS], vector: usize) {
    if let Some(rest) = out.get_mut(8 * vector..).filter(|rest| rest.len() < 8) {
        rest.copy_from_slice(&bytemuck::cast_slice(aside)[..rest.len()]);
    }
}
