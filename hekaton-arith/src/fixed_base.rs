//! Many multiples of one base: the setup's work.

use crate::{Fr, Group, portable, scalar::fr_to_bytes};

/// Scalars handled together: one field inversion is shared by this many additions.
const BATCH: usize = 1024;

/// A table of multiples of one base.
///
/// Window w holds `j 2^(cw) base` for j in 0..2^(c-1); digits are signed. Each multiple costs about `255 / c` batched
/// affine additions.
#[derive(Clone, Debug)]
pub struct FixedBase<G> {
    window: usize,
    windows: Vec<Vec<G>>,
}

impl<G: Group> FixedBase<G> {
    /// A table sized for about `expected` multiplications (at most 13 bits a window: 8 MiB in G1, 16 MiB in G2).
    pub fn new(base: &G, expected: usize) -> Self {
        let window = (expected.max(1).ilog2() as usize / 2 + 4).clamp(4, 13);
        let half = 1usize << (window - 1);
        let count = 256usize.div_ceil(window);
        let mut windows = Vec::with_capacity(count);
        let mut first = *base;
        for _ in 0..count {
            // j * first for j = 1..=half by doubling the known prefix with batched additions
            let mut row = vec![first];
            while row.len() < half {
                let take = row.len().min(half - row.len());
                let top = row[row.len() - 1];
                let mut next = row[..take].to_vec();
                G::batch_add(&mut next, &vec![top; take]);
                row.extend(next);
            }
            first = row[half - 1].add(&row[half - 1]);
            windows.push(row);
        }
        Self { window, windows }
    }

    /// `x base` for each scalar.
    pub fn mul_each(&self, scalars: &[Fr]) -> Vec<G> {
        let mut out = vec![G::IDENTITY; scalars.len()];
        let mut digits = vec![0i32; self.windows.len()];
        let mut all = Vec::new();
        for (out, scalars) in out.chunks_mut(BATCH).zip(scalars.chunks(BATCH)) {
            all.clear();
            for x in scalars {
                self.signed_digits(&fr_to_bytes(x), &mut digits);
                all.extend_from_slice(&digits);
            }
            let mut addends = vec![G::IDENTITY; out.len()];
            for (w, row) in self.windows.iter().enumerate() {
                for (i, addend) in addends.iter_mut().enumerate() {
                    let digit = all[i * self.windows.len() + w];
                    *addend = match digit {
                        0 => G::IDENTITY,
                        d if d > 0 => row[d as usize - 1],
                        d => portable::neg(&row[-d as usize - 1]),
                    };
                }
                G::batch_add(out, &addends);
            }
        }
        out
    }

    /// Digits in -2^(c-1)..=2^(c-1), least significant first.
    fn signed_digits(&self, bytes: &[u8; 32], digits: &mut [i32]) {
        let mut carry = 0i32;
        for (w, digit) in digits.iter_mut().enumerate() {
            let start = w * self.window;
            let raw = (0..self.window).fold(0i32, |acc, b| {
                let bit = start + b;
                let set = bit < 256 && bytes[bit / 8] >> (bit % 8) & 1 == 1;
                acc | i32::from(set) << b
            }) + carry;
            carry = i32::from(raw > 1 << (self.window - 1));
            *digit = raw - (carry << self.window);
        }
        debug_assert_eq!(carry, 0, "scalars are below 2^255 and the windows cover 256 bits");
    }
}
