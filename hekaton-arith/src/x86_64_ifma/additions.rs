//! Batched affine additions, software-pipelined: everything other than the products is interleaved
//! with them.
//!
//! Forms and bounds are those of [`super::batch`]. Points are read only in the forward pass;
//! everything that the backward pass needs is kept, in order. Zen 4 and 5 execute other
//! instructions on separate ports, but the reorder window holds only a few hundred operations, so
//! work placed between two multiplications does not overlap with them. Reading, transposing and
//! cutting points, finishing each sum and writing it are therefore split into steps, which are
//! placed between the rows of a product that does not depend on them:
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
//! A coordinate is N elements of Fq, 8 N limbs: N is 1 in G1 and 2 in G2. A product in Fq has 16
//! steps, and one in Fq2 has 40. Measurements are in `docs/kernels.md`.

use super::coordinate::Coordinate;
use super::field::{Fq, Modulus, Q};
use super::lane::Lane;
use super::loose::{Carry, Loose, Reducing};
use super::pairs::{
    CHAINS, Pairs, Point, Special, classify, invert, prefetch, prefetch_there, special_slopes,
    special_sums,
};
use super::product::{
    STEPS, STEPS_FQ2, complex_product_beside, mul_loose_beside, products_loose, square_loose,
};
use super::reading::{Arriving, BEFORE, D, KEPT, Kept, RISE, WORDS, Words, X, Y};
use super::tower::Fq2;
use super::tuning::{BATCH_G1, BATCH_G2};
use crate::points::{G1Point, G2Point};

/// Coordinates of N elements of Fq whose products are interleaved with other work.
trait Interleaved<const N: usize>: Coordinate {
    /// The number of steps of other work in a product.
    const STEPS: usize;

    fn of(parts: [Fq; N]) -> Self;
    fn parts(&self) -> [Fq; N];
    /// A product without carrying, with steps of other work between its rows.
    fn mul_beside(a: &[Fq; N], b: &[Fq; N], beside: impl FnMut(usize)) -> [Loose; N];
    /// A square without carrying.
    fn square(a: &[Fq; N]) -> [Loose; N];
}

impl Interleaved<1> for Fq {
    const STEPS: usize = STEPS;

    #[inline(always)]
    fn of([x]: [Fq; 1]) -> Self {
        x
    }
    #[inline(always)]
    fn parts(&self) -> [Fq; 1] {
        [*self]
    }
    #[inline(always)]
    fn mul_beside([a]: &[Fq; 1], [b]: &[Fq; 1], beside: impl FnMut(usize)) -> [Loose; 1] {
        [mul_loose_beside(a, b, beside)]
    }
    #[inline(always)]
    fn square([a]: &[Fq; 1]) -> [Loose; 1] {
        [square_loose(a)]
    }
}

impl Interleaved<2> for Fq2 {
    const STEPS: usize = STEPS_FQ2;

    #[inline(always)]
    fn of([c0, c1]: [Fq; 2]) -> Self {
        Self { c0, c1 }
    }
    #[inline(always)]
    fn parts(&self) -> [Fq; 2] {
        [self.c0, self.c1]
    }
    #[inline(always)]
    fn mul_beside([a0, a1]: &[Fq; 2], [b0, b1]: &[Fq; 2], beside: impl FnMut(usize)) -> [Loose; 2] {
        complex_product_beside([a0, a1], [b0, b1], beside)
    }
    #[inline(always)]
    fn square([a0, a1]: &[Fq; 2]) -> [Loose; 2] {
        let (sum, difference) = (a0.add(a1), a0.sub::<7>(a1));
        products_loose([&sum, &difference], [&a0.double(), a1])
    }
}

impl Point for G1Point {
    type Lanes = Fq;
    const BATCH: usize = BATCH_G1;
    const SCRATCH: usize = KEPT * (Self::BATCH / 8 + CHAINS);

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Fq]) {
        // SAFETY: the caller guarantees the features of this backend.
        unsafe { add_batch::<Self, 1>(src, pairs, out, scratch) }
    }
}

impl Point for G2Point {
    type Lanes = Fq2;
    const BATCH: usize = BATCH_G2;
    const SCRATCH: usize = 2 * KEPT * (Self::BATCH / 8 + CHAINS);

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Fq]) {
        // SAFETY: the caller guarantees the features of this backend.
        unsafe { add_batch::<Self, 2>(src, pairs, out, scratch) }
    }
}

/// Unrolls all steps: states stay in registers only if all indices are known.
macro_rules! steps {
    ($i:ident < $n:expr, $step:expr) => {
        steps!(@ $i, $n, $step, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19
            20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38 39)
    };
    (@ $i:ident, $n:expr, $step:expr, $($at:literal)*) => {
        $({
            let $i = $at;
            if $i < $n {
                $step
            }
        })*
    };
}

const _: () = assert!(STEPS == 16 && STEPS_FQ2 == 40, "`steps!` unrolls up to 40 steps");

#[inline(always)]
fn carried<const N: usize>(x: &[Loose; N]) -> [Fq; N] {
    let mut out = [Fq::zero(); N];
    for part in 0..N {
        out[part] = x[part].carried();
    }
    out
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

    /// One of 16 N steps: 16 for each [`WORDS`] words.
    #[inline(always)]
    fn step<const N: usize>(&mut self, x: &[Fq; N], y: &[Fq; N], to: &mut [Words<N>; 8], i: usize) {
        let (block, i) = (i / 16, i % 16);
        if block >= N {
            return;
        }
        let [first, second] = match (N, block) {
            (1, _) => [&x[0], &y[0]],
            (_, 0) => [&x[0], &x[1]],
            _ => [&y[0], &y[1]],
        };
        match i {
            0..6 => self.words[i] = first.joined_word(i).here(),
            6..12 => self.words[i] = second.joined_word(i - 6).here(),
            _ => {}
        }
        if i >= 4 {
            let group = i / 4 - 1;
            let columns = self.words[4 * group..].first_chunk().expect("four words");
            let to = &mut to.as_flattened_mut().as_flattened_mut()[WORDS * block + 4 * group..];
            Lane::store_half_columns_step(columns, to, WORDS * N, i % 4);
        }
    }
}

/// A vector whose sum is known except for the end of its y.
struct Ending<const N: usize> {
    vector: usize,
    x: [Fq; N],
    y: [Loose; N],
    ya: [Fq; N],
    special: Option<Special>,
}

lanes! {
    /// Adds pairs of points.
    // One function, because every product is interleaved with steps of its neighbors: the state that they
    // share must stay in registers, and a call would end the overlap.
    #[inline(never)]
    // One piece: the two passes share what is in registers and on the stack.
    fn add_batch<P: Point, const N: usize>(src: &[P], pairs: &[[u32; 2]], out: &mut [P], scratch: &mut [Fq])
    where P::Lanes: Interleaved<N> {
        let (pairs, next_pairs) = pairs.split_at(out.len());
        let vectors = pairs.len().div_ceil(8);
        let all = &mut scratch.as_chunks_mut::<N>().0.as_chunks_mut::<KEPT>().0[..vectors + CHAINS];
        let words = words_of::<P, N>(src);
        let eights = Pairs::new(pairs);
        let mut specials: Vec<Special> = Vec::new();
        all[0][BEFORE] = P::Lanes::one().parts();
        all[1][BEFORE] = all[0][BEFORE];
        let mut next = Arriving::new(words, eights.of(0));
        steps!(i < P::Lanes::STEPS, next.step(&mut all[0], i));
        for v in 0..vectors {
            prefetch_there(src, pairs, v);
            let [this, to, after] = all[v..].first_chunk_mut().expect("there are two more than vectors");
            if next.special() != 0 {
                let (special, denominators) = classify(src, eights.of(v), v);
                this[D] = denominators.parts();
                specials.push(special);
            }
            // past the end, the last vector is read again
            next = Arriving::new(words, eights.of((v + 1).min(vectors - 1)));
            after[BEFORE] = carried(&P::Lanes::mul_beside(&this[BEFORE], &this[D], #[inline(always)] |i| next.step(to, i)));
        }
        let [even, odd] = [vectors + vectors % 2, vectors + 1 - vectors % 2];
        let [a, b] = invert(&[P::Lanes::of(all[even][BEFORE]), P::Lanes::of(all[odd][BEFORE])]);
        let mut inverses = [a.parts(), b.parts()];
        let last = vectors - 1;
        let mut reciprocal =
            carried(&P::Lanes::mul_beside(&inverses[last % CHAINS], &all[last][BEFORE], #[inline(always)] |_| {}));
        let mut ending = Ending {
            vector: vectors,
            x: [Fq::zero(); N],
            y: [Loose::of(&Fq::zero()); N],
            ya: [Fq::zero(); N],
            special: None,
        };
        // buffer for the last vector if it is not full, and for the rounds before the first sum
        let mut aside = [[[0; WORDS]; N]; 8];
        for v in (0..vectors).rev() {
            prefetch_back(&all[..v], out, v);
            let to_come = next_pairs.iter().skip(8 * (last - v)).take(8);
            prefetch(src, to_come, Lane::prefetch_far);
            let this = &all[v];
            let special = specials.pop_if(|special| special.vector == v);
            let (rises, differences);
            let (rise, b_less_a) = if let Some(special) = &special {
                let (xa, rise) = (P::Lanes::of(this[X]), P::Lanes::of(this[RISE]));
                let slopes = special_slopes(src, eights.of(v), special, &xa, rise);
                (rises, differences) = (slopes.0.parts(), slopes.1.parts());
                (&rises, &differences)
            } else {
                (&this[RISE], &this[D])
            };
            let mut y = Reducing::<2, N>::new();
            let slope = carried(&P::Lanes::mul_beside(rise, &reciprocal, #[inline(always)] |i| {
                y.step(#[inline(always)] |part, k| ending.y_limb(part, k), i);
            }));
            let (end_x, end_y) = ending.done(src, &eights, &y);
            let to = target(out, &mut aside, ending.vector);
            let (mut writing, mut shifted) = (Writing::new(), [Fq::zero(); N]);
            inverses[v % CHAINS] = carried(&P::Lanes::mul_beside(&inverses[v % CHAINS], &this[D], #[inline(always)] |i| {
                writing.step(&end_x, &end_y, to, i);
                if i < 8 * N {
                    shifted[i / 8].0[i % 8] = slope[i / 8].shifted_limb(i % 8).here();
                }
            }));
            finish(out, &aside, ending.vector);
            let square = P::Lanes::square(&slope);
            let ahead = v.saturating_sub(1);
            let (mut x, mut run, mut carry) = (Reducing::<5, N>::new(), [Fq::zero(); N], Carry::new());
            reciprocal = carried(&P::Lanes::mul_beside(&inverses[ahead % CHAINS], &all[ahead][BEFORE], #[inline(always)] |i| {
                x.step(
                    #[inline(always)] |part, k| {
                        let xa = this[X][part].0[k];
                        square[part].0[k].sub(xa).sub(xa).sub(b_less_a[part].0[k])
                    },
                    i,
                );
                let run_step = i.wrapping_sub(Reducing::<5, N>::STEPS);
                if run_step < 4 * N {
                    for k in [2 * run_step, 2 * run_step + 1] {
                        let difference = this[X][k / 8].0[k % 8].sub(x.out[k / 8].0[k % 8]);
                        let lifted = difference.add(Lane::splat(Q::MULTIPLES[k % 8][1]));
                        run[k / 8].0[k % 8] = carry.put(k, lifted);
                    }
                }
            }));
            let (x, sure) = x.done();
            if !sure {
                for part in 0..N {
                    run[part] = this[X][part].sub::<0>(&x[part]);
                }
            }
            let y = P::Lanes::mul_beside(&shifted, &run, #[inline(always)] |_| {});
            let copies = special.filter(Special::has_copies);
            ending = Ending { vector: v, x, y, ya: this[Y], special: copies };
        }
        end_first(src, &eights, &ending, out, &mut aside);
    }
}

/// Prefetches what is kept of the vector before, and the place of the sums of a vector.
#[inline(always)]
fn prefetch_back<P: Point, const N: usize>(before: &[Kept<N>], out: &[P], vector: usize) {
    let at = out.as_ptr().wrapping_add(8 * vector);
    for line in (0..8 * size_of::<P>()).step_by(64) {
        Lane::prefetch(at.wrapping_byte_add(line));
    }
    let at = before.as_ptr().wrapping_add(before.len()).wrapping_sub(1);
    for line in (0..size_of::<Kept<N>>()).step_by(64) {
        Lane::prefetch(at.wrapping_byte_add(line));
    }
}

/// The points as words.
#[inline(always)]
fn words_of<P: Point, const N: usize>(points: &[P]) -> &[Words<N>] {
    let words: &[u64] = bytemuck::cast_slice(points);
    words.as_chunks().0.as_chunks().0
}

impl<const N: usize> Ending<N> {
    /// A limb of y before its reduction.
    #[inline(always)]
    fn y_limb(&self, part: usize, k: usize) -> Lane {
        self.y[part].0[k].sub(self.ya[part].0[k])
    }

    /// The sums of the vector.
    #[inline(always)]
    fn done<P: Point>(
        &self,
        src: &[P],
        eights: &Pairs<'_>,
        y: &Reducing<2, N>,
    ) -> ([Fq; N], [Fq; N])
    where
        P::Lanes: Interleaved<N>,
    {
        let (mut x, (mut y, _)) = (self.x, y.done());
        if let Some(special) = &self.special {
            let (of_x, of_y) = (P::Lanes::of(x), P::Lanes::of(y));
            // SAFETY: lanes exist only where AVX-512 IFMA does.
            let sums = unsafe { special_sums(src, eights.of(self.vector), special, of_x, of_y) };
            (x, y) = (sums.0.parts(), sums.1.parts());
        }
        (x, y)
    }
}

/// Ends the sums of the first vector, which come last and have no product to overlap with.
#[inline(always)]
fn end_first<P: Point, const N: usize>(
    src: &[P],
    eights: &Pairs<'_>,
    ending: &Ending<N>,
    out: &mut [P],
    aside: &mut [Words<N>; 8],
) where
    P::Lanes: Interleaved<N>,
{
    let mut y = Reducing::<2, N>::new();
    steps!(
        i < P::Lanes::STEPS,
        y.step(
            #[inline(always)]
            |part, k| ending.y_limb(part, k),
            i
        )
    );
    let (end_x, end_y) = ending.done(src, eights, &y);
    let to = target(out, aside, 0);
    let mut writing = Writing::new();
    steps!(i < P::Lanes::STEPS, writing.step(&end_x, &end_y, to, i));
    finish(out, aside, 0);
}

/// Returns the place to which the sums of a vector are written: the output or, if fewer than eight
/// of them fit, a buffer.
#[inline(always)]
fn target<'o, P: Point, const N: usize>(
    out: &'o mut [P],
    aside: &'o mut [Words<N>; 8],
    vector: usize,
) -> &'o mut [Words<N>; 8] {
    let words: &mut [u64] = bytemuck::cast_slice_mut(out);
    let points: &mut [Words<N>] = words.as_chunks_mut().0.as_chunks_mut().0;
    points.get_mut(8 * vector..).and_then(|rest| rest.first_chunk_mut()).unwrap_or(aside)
}

/// Copies buffered sums to the output.
#[inline(always)]
fn finish<P: Point, const N: usize>(out: &mut [P], aside: &[Words<N>; 8], vector: usize) {
    if let Some(rest) = out.get_mut(8 * vector..).filter(|rest| rest.len() < 8) {
        let sums: &[P] = bytemuck::cast_slice(aside.as_flattened().as_flattened());
        rest.copy_from_slice(&sums[..rest.len()]);
    }
}
