//! Many points, each times its own scalar, in batched affine additions.
//!
//! Both groups have an endomorphism that multiplies by a known base: |u| in G2 (the Frobenius map)
//! and u^2 in G1, for the curve parameter u. A scalar is split into digits in that base, four of 64
//! bits or two of 128, so a multiple takes 64 or 128 doublings. Each digit is made odd (the excess
//! is subtracted at the end) and recoded in windows whose digits are odd as well, hence never zero:
//! all points take the same steps, and no addition meets infinity on the way.

#![allow(
    clippy::cast_possible_truncation,
    reason = "at most 1,024 points of 40 slots; digits have at most 5 bits"
)]

use crate::backend::Curve;
use crate::portable;
use crate::scalar::canonical;
use crate::sums::{NEGATIVE, Summand};
use ark_bls12_381::Fr;
use zeroize::Zeroizing;

/// Points processed together: one inversion is shared by this many additions.
const TOGETHER: usize = 1024;

/// The products `scalars_i points_i`. The points must be in the group.
pub(crate) fn mul_each<G: Curve>(points: &[G], scalars: &[Fr]) -> Vec<G> {
    if points.len() < G::few_multiples() {
        let products = points.iter().zip(scalars).map(|(p, x)| {
            let (bytes, bits) = canonical(x);
            portable::mul(p, &bytes, bits)
        });
        return portable::normalise(&products.collect::<Vec<_>>());
    }
    let chunk = points.len().div_ceil(points.len().div_ceil(TOGETHER));
    points
        .chunks(chunk)
        .zip(scalars.chunks(chunk))
        .flat_map(|(p, x)| Multiples::new(p, x).run())
        .collect()
}

/// The accumulators and tables of some points.
struct Multiples<G> {
    n: usize,
    window: usize,
    /// The points, n per slot: first the accumulators; then, for each digit of the scalars, twice
    /// the base and its odd multiples.
    slots: Vec<G>,
    /// For each point, the digits of its scalar, made odd, and whether 1 (otherwise 2) was added.
    digits: Zeroizing<Vec<Vec<(u128, bool)>>>,
    windows: usize,
    pairs: Vec<[u32; 2]>,
    sums: Vec<G>,
}

impl<G: Curve> Multiples<G> {
    fn new(points: &[G], scalars: &[Fr]) -> Self {
        // Scalars may be secrets of a setup, so their digits are wiped, and no list of them grows.
        let mut split = Zeroizing::new(Vec::with_capacity(scalars.len()));
        split.extend(scalars.iter().map(|x| G::decompose(x)));
        let parts = (1..=4).rev().find(|i| split.iter().any(|x| x[i - 1] != 0)).unwrap_or(1);
        let longest = split.iter().flatten().fold(0, |acc, x| acc | (x + 2));
        let bits = (u128::BITS - longest.leading_zeros()) as usize;
        let window = if bits * parts > 100 { 4 } else { 3 };
        let odd = |x: &u128| if x.is_multiple_of(2) { (x + 1, true) } else { (x + 2, false) };
        let digits = split.iter().map(|x| x[..parts].iter().map(odd).collect()).collect();
        let n = points.len();
        let mut out = Self {
            n,
            window,
            slots: vec![<G as Summand>::ZERO; n * (1 + parts * (1 + (1 << (window - 1))))],
            digits: Zeroizing::new(digits),
            windows: bits.div_ceil(window),
            pairs: Vec::new(),
            sums: Vec::new(),
        };
        let mut bases = points.to_vec();
        for part in 0..parts {
            if part > 0 {
                bases.iter_mut().for_each(|p| *p = p.times_base());
            }
            let slot = out.odd_multiple(part, 1);
            out.slots[slot * n..][..n].copy_from_slice(&bases);
        }
        out
    }

    fn parts(&self) -> usize {
        self.digits[0].len()
    }

    /// The slot that holds twice the base of a part.
    fn twice(&self, part: usize) -> usize {
        1 + part * (1 + (1 << (self.window - 1)))
    }

    fn odd_multiple(&self, part: usize, by: usize) -> usize {
        self.twice(part) + 1 + by / 2
    }

    /// The index of point i of a slot.
    fn at(&self, slot: usize, i: usize) -> u32 {
        (slot * self.n + i) as u32
    }

    /// Adds the queued pairs and writes the sums into slots, n into each.
    fn step(&mut self, to: impl Iterator<Item = usize>) {
        self.sums.resize(self.pairs.len(), <G as Summand>::ZERO);
        G::add_pairs(&self.slots, &self.pairs, &mut self.sums);
        for (slot, sums) in to.zip(self.sums.chunks(self.n)) {
            self.slots[slot * self.n..][..self.n].copy_from_slice(sums);
        }
        self.pairs.clear();
    }

    /// Adds to each accumulator the slot that `choose` returns for it, or its negative.
    fn accumulate(&mut self, choose: impl Fn(&Self, usize) -> (usize, bool)) {
        for i in 0..self.n {
            let (slot, negative) = choose(self, i);
            let sign = if negative { NEGATIVE } else { 0 };
            self.pairs.push([i as u32, self.at(slot, i) | sign]);
        }
        self.step(std::iter::once(0));
    }

    /// The digit of a window: odd, between -(2^c - 1) and 2^c - 1.
    fn digit(&self, i: usize, part: usize, window: usize) -> i32 {
        let rest = self.digits[i][part].0 >> (self.window * window);
        if window + 1 == self.windows {
            // what remains above the last window, made odd by the windows below it
            return (rest | 1) as i32;
        }
        let low = (rest & ((2 << self.window) - 1)) as i32 | 1;
        low - (1 << self.window)
    }

    fn run(mut self) -> Vec<G> {
        let (n, parts) = (self.n, self.parts());
        for part in 0..parts {
            let slot = self.odd_multiple(part, 1);
            for i in 0..n {
                let p = self.at(slot, i);
                self.pairs.push([p, p]);
            }
        }
        let twice: Vec<usize> = (0..parts).map(|part| self.twice(part)).collect();
        self.step(twice.into_iter());
        for by in (3..1 << self.window).step_by(2) {
            for part in 0..parts {
                for i in 0..n {
                    let pair =
                        [self.at(self.odd_multiple(part, by - 2), i), self.at(self.twice(part), i)];
                    self.pairs.push(pair);
                }
            }
            let to: Vec<usize> = (0..parts).map(|part| self.odd_multiple(part, by)).collect();
            self.step(to.into_iter());
        }
        for window in (0..self.windows).rev() {
            if window + 1 < self.windows {
                for _ in 0..self.window {
                    self.pairs.extend((0..n as u32).map(|i| [i, i]));
                    self.step(std::iter::once(0));
                }
            }
            for part in 0..parts {
                if window + 1 == self.windows && part == 0 {
                    for i in 0..n {
                        let from =
                            self.at(self.odd_multiple(0, self.digit(i, 0, window) as usize), i);
                        self.slots[i] = self.slots[from as usize];
                    }
                    continue;
                }
                self.accumulate(|this, i| {
                    let digit = this.digit(i, part, window);
                    (this.odd_multiple(part, digit.unsigned_abs() as usize), digit < 0)
                });
            }
        }
        for part in 0..parts {
            self.accumulate(|this, i| {
                let one = this.digits[i][part].1;
                (if one { this.odd_multiple(part, 1) } else { this.twice(part) }, true)
            });
        }
        self.slots.truncate(n);
        self.slots
    }
}
