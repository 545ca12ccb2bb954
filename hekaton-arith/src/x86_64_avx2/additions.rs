//! Batched affine additions: forms and bounds are those of [`super::batch`].

use super::coordinate::Coordinate;
use super::field::Fq;
use super::lane::Lane;
use super::pairs::{
    AHEAD, CHAINS, Pairs, Point, Special, classify, invert, prefetch, prefetch_there, read_x,
    read_y, rows, special_slopes, special_sums,
};
use super::product::square_loose;
use super::tower::{Fq2, fq2_square};
use super::tuning::{BATCH_G1, BATCH_G2};
use crate::points::{G1Point, G2Point};

impl Point for G1Point {
    type Lanes = Fq;
    const BATCH: usize = BATCH_G1;
    const SCRATCH: usize = KEPT * Self::BATCH / 8;

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Fq]) {
        // SAFETY: the caller guarantees the features of this backend.
        unsafe { add_batch(src, pairs, out, scratch) }
    }
}

impl Point for G2Point {
    type Lanes = Fq2;
    const BATCH: usize = BATCH_G2;
    const SCRATCH: usize = 2 * KEPT * Self::BATCH / 8;

    unsafe fn add_batch(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self], scratch: &mut [Fq]) {
        // SAFETY: the caller guarantees the features of this backend.
        unsafe { add_batch(src, pairs, out, scratch) }
    }
}

/// Operations of additions that are not in [`Coordinate`].
trait Addition: Coordinate {
    fn square(&self) -> Self;
    /// Stores the elements for the backward pass.
    fn save(&self, to: &mut [Fq]);
    fn restore(from: &[Fq]) -> Self;
}

impl Addition for Fq {
    #[inline(always)]
    fn square(&self) -> Self {
        square_loose(self).carried()
    }
    #[inline(always)]
    fn save(&self, to: &mut [Fq]) {
        to[0] = *self;
    }
    #[inline(always)]
    fn restore(from: &[Fq]) -> Self {
        from[0]
    }
}

impl Addition for Fq2 {
    #[inline(always)]
    fn square(&self) -> Self {
        // SAFETY: lanes exist only where the features of this backend do.
        unsafe { fq2_square(self) }
    }
    #[inline(always)]
    fn save(&self, to: &mut [Fq]) {
        to.copy_from_slice(&[self.c0, self.c1]);
    }
    #[inline(always)]
    fn restore(from: &[Fq]) -> Self {
        Self { c0: from[0], c1: from[1] }
    }
}

/// The state that [`add_batch`] keeps of a vector: the product of all earlier denominators in its
/// chain, and its own denominator.
struct Saved<C> {
    before: C,
    d: C,
}

/// The number of elements in [`Saved`].
const KEPT: usize = 2;

impl<C: Addition> Saved<C> {
    #[inline(always)]
    fn save(&self, scratch: &mut [Fq], v: usize) {
        let size = C::WORDS / 6;
        let to = &mut scratch[2 * size * v..][..2 * size];
        self.before.save(&mut to[..size]);
        self.d.save(&mut to[size..]);
    }
}

#[inline(always)]
fn saved<C: Addition>(scratch: &[Fq], v: usize) -> Saved<C> {
    let size = C::WORDS / 6;
    let from = &scratch[2 * size * v..][..2 * size];
    Saved { before: C::restore(&from[..size]), d: C::restore(&from[size..]) }
}

lanes! {
    #[inline(never)]
    fn add_batch<P: Point>(src: &[P], pairs: &[[u32; 2]], out: &mut [P], scratch: &mut [Fq])
    where
        P::Lanes: Addition,
    {
        let pairs = &pairs[..out.len()];
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
            prefetch(src, pairs.iter().take(8 * v).rev().skip(AHEAD - 8).take(8), Lane::prefetch);
            let eight = eights.of(v);
            let Saved { before, mut d } = saved(scratch, v);
            let inverse = &mut inverses[v % CHAINS];
            let reciprocal = inverse.mul(&before);
            *inverse = inverse.mul(&d);
            let (a, b) = (rows(src, eight, 0), rows(src, eight, 1));
            let (xa, ya) = (read_x(&a), read_y(&a).negated(Lane::top_bits(eight, 0)));
            let mut rise = read_y(&b).negated(Lane::top_bits(eight, 1)).sub::<0>(&ya);
            let special = specials.pop_if(|special| special.vector == v);
            if let Some(special) = &special {
                (rise, d) = special_slopes(src, eight, special, &xa, rise);
            }
            let slope = rise.mul(&reciprocal);
            let mut x = slope.square().sub::<0>(&xa).sub::<0>(&xa).sub::<0>(&d);
            let mut y = slope.mul(&xa.sub::<0>(&x)).sub::<0>(&ya);
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
