//! Many multiples of one base, as setup needs them.

#![allow(
    clippy::cast_possible_truncation,
    reason = "a table has fewer than 2^20 multiples, a batch fewer than 2^21 digits"
)]

use crate::group::Group;
use crate::msm::Digits;
use crate::scalar::powers;
use crate::sums::{NEGATIVE, sum_groups};
use ark_bls12_381::Fr;
use zeroize::Zeroizing;

/// The number of scalars that are processed together.
const BATCH: usize = 1 << 12;

/// A table of multiples of one base.
///
/// Window w holds `j 2^(cw) base` for j in 1..=2^(c-1); digits are signed. Each multiple costs
/// about `255 / c` batched affine additions.
#[derive(Clone, Debug)]
pub struct FixedBase<G> {
    window: usize,
    /// The windows, one after another.
    table: Vec<G>,
}

impl<G: Group> FixedBase<G> {
    /// A table of a base in the group, sized for about `expected` multiplications (at most 13 bits per window: 8 MiB in G1,
    /// 16 MiB in G2).
    pub fn new(base: &G, expected: usize) -> Self {
        let window = (expected.max(1).ilog2() as usize / 2 + 4).clamp(4, 13);
        let half = 1usize << (window - 1);
        let windows = Digits::<4>::windows_of_scalars(window);
        let shift = Fr::from(1u64 << window);
        let shifts: Vec<Fr> = powers(shift, windows);
        let firsts = G::mul_each(&vec![*base; windows], &shifts);
        let mut table = vec![G::IDENTITY; windows * half];
        // Several windows at a time, so that the first doublings are large batches, too.
        let at_once = (BATCH / half).max(1);
        for (firsts, table) in firsts.chunks(at_once).zip(table.chunks_mut(at_once * half)) {
            for (first, multiples) in firsts.iter().zip(table.chunks_mut(half)) {
                multiples[0] = *first;
            }
            // (known + j) first is the sum of j first and known first.
            let mut known = 1;
            while known < half {
                let of_window = |start| (0..known).map(move |j| [start + j, start + known - 1]);
                let starts = (0..firsts.len()).map(|w| w * half);
                let pairs: Vec<[u32; 2]> =
                    starts.flat_map(of_window).map(|pair| pair.map(|i| i as u32)).collect();
                let mut sums = vec![G::IDENTITY; pairs.len()];
                G::add_pairs(table, &pairs, &mut sums);
                for (sums, multiples) in sums.chunks(known).zip(table.chunks_mut(half)) {
                    multiples[known..2 * known].copy_from_slice(sums);
                }
                known *= 2;
            }
        }
        Self { window, table }
    }

    /// The product `x base` for each scalar x.
    pub fn mul_each(&self, scalars: &[Fr]) -> Vec<G> {
        let half = 1u32 << (self.window - 1);
        let mut out = Vec::with_capacity(scalars.len());
        // The scalars may be trapdoors: their digits are wiped, and the vector never grows, which
        // would leave a copy in freed memory.
        let digits = scalars.len().min(BATCH) * Digits::<4>::windows_of_scalars(self.window);
        let mut entries = Zeroizing::new(Vec::with_capacity(digits));
        let mut ends = Vec::new();
        for scalars in scalars.chunks(BATCH) {
            entries.clear();
            ends.clear();
            let mut digits = Digits::of_scalars(scalars, self.window);
            for i in 0..scalars.len() {
                for (w, digit) in digits.of(i).enumerate() {
                    if digit != 0 {
                        let sign = if digit < 0 { NEGATIVE } else { 0 };
                        entries.push((w as u32 * half + digit.unsigned_abs() - 1) | sign);
                    }
                }
                ends.push(entries.len() as u32);
            }
            digits.wipe();
            out.extend(sum_groups(&self.table, &entries, &ends));
        }
        out
    }
}
