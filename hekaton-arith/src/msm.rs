//! Multi-scalar multiplication that looks at its scalars first.
//!
//! Witnesses are mostly zeros and ones. Zeros are skipped, ones are summed, scalars of at most 63
//! bits go through a bucket method with a quarter of the windows, and the rest through the full
//! one. A scalar x above r/2 counts as -(r - x), so -1 is a one and small negative numbers are
//! small.
//!
//! # The bucket method
//! Scalars are cut into windows of c bits, or of c + 1 and c bits if the bits cannot be divided
//! evenly. Adding `2^(c-1)` in each window to a scalar makes its windows, less 2^(c-1) each, signed
//! digits, of which the last is not negative. Points with the same digit
//! fall into one bucket; all buckets are summed by trees of batched affine additions
//! ([`crate::sums`]). What remains is `sum_j j B_j` over the 2^(c-1) buckets. With `P_l` the sums
//! of 2^l neighboring buckets, it equals the sum of all buckets (the first has digit 1) plus 2^l
//! times the elements of P_l at odd positions, for each l. That takes two additions per bucket,
//! also in large batches.

#![allow(
    clippy::cast_possible_truncation,
    reason = "indices are below 2^31 (`Scalars` refuses more) and digits have at most 16 bits"
)]

use crate::sums::{NEGATIVE, Summand, add_each, sum_groups};
use crate::{backend::Curve, portable};
use ark_bls12_381::Fr;
use ark_ff::{BigInt, BigInteger, PrimeField};
use std::ops::Range;
use zeroize::Zeroize;

/// Scalars whose absolute value has at most this many bits count as small.
const SMALL_BITS: usize = 63;
/// Absolute values are below r/2, which has this many bits.
const FULL_BITS: usize = 254;
/// The widest window: more buckets do not fit a cache.
const WIDEST: usize = 16;
/// The number of entries that are sorted into buckets at once: those of several windows, or of one
/// window if it has more.
const ENTRIES: usize = 1 << 16;
/// The scalars of a multi-scalar multiplication, sorted by size once so that several MSMs can share
/// the work.
#[derive(Clone, Debug, Default)]
pub struct Scalars {
    len: usize,
    /// Indices of ones and, with the top bit set, of minus ones.
    ones: Vec<u32>,
    small: Digits<1>,
    full: Digits<4>,
}

/// Absolute values of scalars, cut into windows.
#[derive(Clone, Debug)]
pub(crate) struct Digits<const W: usize> {
    /// Indices, with the top bit set for negatives.
    entries: Vec<u32>,
    /// Absolute values; after [`Digits::recode`] including the constant that makes digits signed.
    values: Vec<[u64; W]>,
    bits: usize,
    windows: Windows,
}

impl<const W: usize> Default for Digits<W> {
    fn default() -> Self {
        Self { entries: Vec::new(), values: Vec::new(), bits: 0, windows: Windows::uniform(0, 1) }
    }
}

/// The windows of scalars: the first ones, which may be none, have one bit more than the others.
#[derive(Clone, Copy, Debug)]
struct Windows {
    count: usize,
    /// The number of windows with one bit more.
    wide: usize,
    /// The bits of the others.
    width: usize,
}

impl Windows {
    /// Windows of the same width for values of `bits` bits and one more bit for the last carry.
    fn uniform(bits: usize, width: usize) -> Self {
        Self { count: (bits + 1).div_ceil(width), wide: 0, width }
    }

    /// The windows with the fewest additions.
    fn best(points: usize, bits: usize) -> Self {
        let of = |count: usize| Self { count, wide: (bits + 1) % count, width: (bits + 1) / count };
        (1..=bits.div_ceil(2))
            .map(of)
            .filter(|windows| windows.width_of(0) <= WIDEST)
            .min_by(|a, b| a.additions(points).total_cmp(&b.additions(points)))
            .unwrap_or(Self::uniform(bits, 2))
    }

    /// The number of additions of the bucket method: in each window every point goes into a bucket,
    /// and every bucket takes two additions.
    fn additions(&self, points: usize) -> f64 {
        let buckets = (self.count + self.wide) << self.width;
        (self.count * points + buckets) as f64
    }

    /// The bits below a window.
    #[inline(always)]
    fn start(&self, window: usize) -> usize {
        self.width * window + window.min(self.wide)
    }

    #[inline(always)]
    fn width_of(&self, window: usize) -> usize {
        self.width + usize::from(window < self.wide)
    }

    /// Splits a range of windows into the wide ones and the others.
    fn by_width(&self, windows: Range<usize>) -> [Range<usize>; 2] {
        let between = self.wide.clamp(windows.start, windows.end);
        [windows.start..between, between..windows.end]
    }
}

impl Digits<4> {
    /// The number of windows per scalar.
    pub(crate) fn windows_of_scalars(window: usize) -> usize {
        Windows::uniform(FULL_BITS, window).count
    }

    /// The digits of all scalars, in windows of `window` bits.
    pub(crate) fn of_scalars(scalars: &[Fr], window: usize) -> Self {
        // With room for all: growing would leave copies of the scalars, which may be trapdoors, in
        // freed memory.
        let n = scalars.len();
        let (entries, values) = (Vec::with_capacity(n), Vec::with_capacity(n));
        let mut out = Self { entries, values, ..Self::default() };
        for x in scalars {
            let (entry, value) = absolute(0, x);
            out.push(entry, value);
        }
        out.recode(FULL_BITS, Windows::uniform(FULL_BITS, window));
        out
    }

    /// Overwrites the digits.
    pub(crate) fn wipe(&mut self) {
        self.entries.zeroize();
        self.values.zeroize();
    }

    /// The digits of one scalar, least significant first.
    pub(crate) fn of(&self, i: usize) -> impl Iterator<Item = i32> {
        let sign = if self.entries[i] & NEGATIVE == 0 { 1 } else { -1 };
        (0..self.windows.count).map(move |w| sign * self.digit(&self.values[i], w))
    }
}

impl<const W: usize> Digits<W> {
    pub(crate) fn push(&mut self, entry: u32, value: [u64; W]) {
        self.entries.push(entry);
        self.values.push(value);
    }

    /// The length in bits of the longest value.
    fn longest(&self) -> usize {
        let mut all = [0; W];
        for value in &self.values {
            all.iter_mut().zip(value).for_each(|(all, word)| *all |= word);
        }
        (0..64 * W).rev().find(|bit| all[bit / 64] >> (bit % 64) & 1 == 1).map_or(0, |bit| bit + 1)
    }

    /// Chooses the windows with the fewest additions and recodes.
    pub(crate) fn recode_best(&mut self) {
        let bits = self.longest();
        self.recode(bits, Windows::best(self.entries.len(), bits));
    }

    /// The bits of a window.
    pub(crate) fn width_of(&self, window: usize) -> usize {
        self.windows.width_of(window)
    }

    /// Adds the constant that makes digits signed.
    fn recode(&mut self, bits: usize, windows: Windows) {
        (self.bits, self.windows) = (bits, windows);
        let mut constant = [0u64; W];
        for w in 1..windows.count {
            let bit = windows.start(w) - 1;
            constant[bit / 64] |= 1 << (bit % 64);
        }
        for value in &mut self.values {
            let mut carry = false;
            for (word, add) in value.iter_mut().zip(&constant) {
                let (sum, first) = word.overflowing_add(*add);
                let (sum, second) = sum.overflowing_add(u64::from(carry));
                (*word, carry) = (sum, first | second);
            }
        }
    }

    /// The digit of a value in a window of c bits, in `-2^(c-1) ..= 2^(c-1)`.
    #[inline(always)]
    fn digit(&self, value: &[u64; W], window: usize) -> i32 {
        let (at, width) = (self.windows.start(window), self.windows.width_of(window));
        let (word, bit) = (at / 64, at % 64);
        let mut bits = value[word] >> bit;
        if bit + width > 64 && word + 1 < W {
            bits |= value[word + 1] << (64 - bit);
        }
        let digit = (bits & ((1 << width) - 1)) as i32;
        if window + 1 < self.windows.count { digit - (1 << (width - 1)) } else { digit }
    }
}

impl Scalars {
    /// Sorts the scalars.
    ///
    /// # Panics
    /// If there are 2^31 scalars or more.
    pub fn new(scalars: &[Fr]) -> Self {
        Self::gather(scalars.len(), scalars.iter().copied())
    }

    /// Sorts `values[index]` for each index, in that order.
    ///
    /// # Panics
    /// If an index is out of bounds.
    pub fn select(values: &[Fr], indices: &[u32]) -> Self {
        Self::gather(indices.len(), indices.iter().map(|i| values[*i as usize]))
    }

    fn gather(len: usize, scalars: impl Iterator<Item = Fr>) -> Self {
        use ark_ff::{Field, Zero};
        assert!(len < NEGATIVE as usize, "an MSM of 2^31 or more scalars");
        let mut out = Self { len, ..Self::default() };
        let minus_one = -Fr::ONE;
        for (i, x) in (0u32..).zip(scalars) {
            if x.is_zero() {
            } else if x == Fr::ONE {
                out.ones.push(i);
            } else if x == minus_one {
                out.ones.push(i | NEGATIVE);
            } else {
                let (entry, value) = absolute(i, &x);
                match value {
                    [low, 0, 0, 0] if low >> SMALL_BITS == 0 => out.small.push(entry, [low]),
                    _ => out.full.push(entry, value),
                }
            }
        }
        out.small.recode_best();
        out.full.recode_best();
        out
    }

    /// The cost of an MSM over these scalars.
    pub fn work(&self) -> MsmWork {
        fn of<const W: usize>(digits: &Digits<W>) -> f64 {
            if digits.entries.is_empty() {
                return 0.0;
            }
            digits.windows.additions(digits.entries.len()) + digits.bits as f64
        }
        MsmWork { ones: self.ones.len() as f64, additions: of(&self.small) + of(&self.full) }
    }

    /// Number of scalars, zeros included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Reports whether there are no scalars.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// The cost of an MSM in additions, for estimating times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MsmWork {
    /// Points that are only summed.
    pub ones: f64,
    /// Additions of the bucket methods.
    pub additions: f64,
}

impl MsmWork {
    /// The cost of an MSM over `n` full-size scalars.
    pub fn of_long(n: usize) -> Self {
        if n == 0 {
            return Self::default();
        }
        let additions = Windows::best(n, FULL_BITS).additions(n) + FULL_BITS as f64;
        Self { ones: 0.0, additions }
    }
}

/// Returns `x` or, with the top bit of the entry set, `r - x`, whichever is smaller.
fn absolute(entry: u32, x: &Fr) -> (u32, [u64; 4]) {
    let (plus, mut minus): (BigInt<4>, BigInt<4>) = (x.into_bigint(), Fr::MODULUS);
    minus.sub_with_borrow(&plus);
    if plus <= minus { (entry, plus.0) } else { (entry | NEGATIVE, minus.0) }
}

/// The MSM, shared by `most_threads` threads, or one per scalar if that is fewer. Each computes some windows over all points or, if there
/// are more threads than windows, over some of the points; all shared data is read-only.
pub(crate) fn msm<G: Curve + Send + Sync>(
    bases: &[G],
    scalars: &Scalars,
    most_threads: usize,
) -> G {
    assert_eq!(bases.len(), scalars.len, "an MSM over different numbers of bases and scalars");
    let threads = most_threads.min(scalars.len).max(1);
    struct Share<G> {
        ones: G,
        small: Vec<G>,
        full: Vec<G>,
    }
    let share = |thread: usize| {
        let ones = &scalars.ones[part(scalars.ones.len(), thread, threads)];
        Share {
            ones: sum_groups(bases, ones, &[ones.len() as u32])[0],
            small: share_of_windows(bases, &scalars.small, thread, threads),
            full: share_of_windows(bases, &scalars.full, thread, threads),
        }
    };
    let shares: Vec<Share<G>> = std::thread::scope(|scope| {
        let handles: Vec<_> =
            (1..threads).map(|thread| scope.spawn(move || share(thread))).collect();
        let others = handles
            .into_iter()
            .map(|h| h.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        std::iter::once(share(0)).chain(others).collect()
    });
    let mut parts: Vec<G> = shares.iter().map(|share| share.ones).collect();
    parts.extend(join_windows(&scalars.small, shares.iter().map(|share| &share.small[..])));
    parts.extend(join_windows(&scalars.full, shares.iter().map(|share| &share.full[..])));
    sum(&parts)
}

/// The sum of fewer than 2^31 points.
pub(crate) fn sum<G: Curve>(points: &[G]) -> G {
    if points.len() < 64 {
        return portable::normalise_one(&portable::sum(points));
    }
    assert!(points.len() < 1 << 31, "a sum of 2^31 or more points");
    let all: Vec<u32> = (0..points.len() as u32).collect();
    sum_groups(points, &all, &[all.len() as u32])[0]
}

/// The range of the i-th of n parts of about equal length.
fn part(len: usize, i: usize, n: usize) -> Range<usize> {
    len * i / n..len * (i + 1) / n
}

/// The windows and the points that a thread computes.
fn share_of<const W: usize>(
    digits: &Digits<W>,
    thread: usize,
    threads: usize,
) -> (Range<usize>, Range<usize>) {
    let groups = threads.min(digits.windows.count);
    let (group, piece, pieces) = (thread % groups, thread / groups, threads / groups);
    if piece == pieces {
        // a thread that is left over
        return (0..0, 0..0);
    }
    (part(digits.windows.count, group, groups), part(digits.entries.len(), piece, pieces))
}

fn share_of_windows<G: Curve, const W: usize>(
    bases: &[G],
    digits: &Digits<W>,
    thread: usize,
    threads: usize,
) -> Vec<G> {
    let (windows, points) = share_of(digits, thread, threads);
    some_window_sums(bases, digits, windows, points)
}

/// Combines the window sums of all threads, each times the power of two where its window begins; `None` if there are no
/// digits.
fn join_windows<'a, G: Curve, const W: usize>(
    digits: &Digits<W>,
    shares: impl ExactSizeIterator<Item = &'a [G]>,
) -> Option<G> {
    if digits.entries.is_empty() {
        return None;
    }
    let mut sums = vec![<G as Summand>::ZERO; digits.windows.count];
    let threads = shares.len();
    for (thread, share) in shares.enumerate() {
        let (windows, _) = share_of(digits, thread, threads);
        // the first part of each window is copied, the others are added
        if thread < digits.windows.count {
            sums[windows].copy_from_slice(share);
        } else {
            add_each(&mut sums[windows], share);
        }
    }
    let projective = sums.iter().enumerate().rev().fold(G::infinity(), |acc, (w, sum)| {
        let shifted = (0..digits.width_of(w)).fold(acc, |acc, _| portable::double::<G>(&acc));
        portable::add_mixed(&shifted, sum)
    });
    Some(portable::normalise_one(&projective))
}

/// For each window, the sum of its digits times the bases.
pub(crate) fn window_sums<S: Summand, const W: usize>(bases: &[S], digits: &Digits<W>) -> Vec<S> {
    some_window_sums(bases, digits, 0..digits.windows.count, 0..digits.entries.len())
}

/// Same as [`window_sums`], for some of the windows and some of the entries.
fn some_window_sums<S: Summand, const W: usize>(
    bases: &[S],
    digits: &Digits<W>,
    windows: Range<usize>,
    entries: Range<usize>,
) -> Vec<S> {
    if entries.is_empty() {
        return vec![S::ZERO; windows.len()];
    }
    let at_once = (ENTRIES / entries.len()).max(1);
    let mut sums = Vec::with_capacity(windows.len());
    let mut sorter = Sorter::default();
    for windows in digits.windows.by_width(windows) {
        for first in windows.clone().step_by(at_once) {
            let some = first..(first + at_once).min(windows.end);
            let buckets = sorter.buckets(bases, digits, some, entries.clone());
            sums.extend(weighted_sums(buckets, 1 << (digits.width_of(first) - 1)));
        }
    }
    sums
}

/// A counting sort of entries by window and bucket.
#[derive(Default)]
struct Sorter {
    /// The bucket of each digit.
    buckets: Vec<u32>,
    /// The entry of each digit, with the digit's sign.
    signed: Vec<u32>,
    ends: Vec<u32>,
    sorted: Vec<u32>,
}

impl Sorter {
    /// The bucket sums of some windows of the same width, window after window, over some of the
    /// entries.
    fn buckets<S: Summand, const W: usize>(
        &mut self,
        bases: &[S],
        digits: &Digits<W>,
        some: Range<usize>,
        entries: Range<usize>,
    ) -> Vec<S> {
        let half = 1usize << (digits.width_of(some.start) - 1);
        let Self { buckets, signed, ends, sorted } = self;
        // zero digits go into an extra bucket at the end
        let last = some.len() * half;
        let (values, entries) = (&digits.values[entries.clone()], &digits.entries[entries]);
        let n = entries.len();
        buckets.resize(some.len() * n, 0);
        signed.resize(some.len() * n, 0);
        ends.clear();
        ends.resize(last + 1, 0);
        for ((w, buckets), (signed, first)) in some
            .zip(buckets.chunks_exact_mut(n))
            .zip(signed.chunks_exact_mut(n).zip((0..).step_by(half)))
        {
            let of = buckets.iter_mut().zip(signed).zip(values.iter().zip(entries));
            for ((bucket, signed), (value, entry)) in of {
                let digit = digits.digit(value, w);
                let absolute = digit.unsigned_abs() as usize;
                let at = if digit == 0 { last } else { first + absolute - 1 };
                (*bucket, *signed) = (at as u32, entry ^ digit as u32 & NEGATIVE);
                ends[at] += 1;
            }
        }
        // first where each bucket begins and, once all entries are placed, where it ends
        let mut sum = 0;
        for end in ends.iter_mut() {
            (sum, *end) = (sum + *end, sum);
        }
        sorted.resize(buckets.len(), 0);
        for (bucket, entry) in buckets.iter().zip(signed) {
            let next = &mut ends[*bucket as usize];
            sorted[*next as usize] = *entry;
            *next += 1;
        }
        ends.truncate(last);
        sum_groups(bases, &sorted[..ends[last - 1] as usize], ends)
    }
}

/// The weighted sum `sum_j (j + 1) B_j` of each window of `half` buckets, a power of two.
fn weighted_sums<S: Summand>(buckets: Vec<S>, half: usize) -> Vec<S> {
    let windows = buckets.len() / half;
    let levels = half.ilog2();
    // All levels one after another: level l has windows * half / 2^l elements, and the last one
    // holds the sums of whole windows.
    let mut sums = buckets;
    let (mut odd, mut ends) = (Vec::new(), Vec::new());
    let mut start = 0;
    for level in 0..levels {
        let n = windows * (half >> level);
        for window in (start..start + n).step_by(half >> level) {
            odd.extend((window + 1..window + (half >> level)).step_by(2).map(|i| i as u32));
            ends.push(odd.len() as u32);
        }
        let pairs: Vec<[u32; 2]> = (0..n as u32 / 2).map(|i| [2 * i, 2 * i + 1]).collect();
        sums.resize(start + n + n / 2, S::ZERO);
        let (known, next) = sums.split_at_mut(start + n);
        S::add_pairs(&known[start..], &pairs, next);
        start += n;
    }
    let roots = sums.split_off(start);
    let odd = sum_groups(&sums, &odd, &ends);
    // sum_l 2^l O_l by Horner's rule, for all windows at once
    let mut out = vec![S::ZERO; windows];
    for level in (0..levels as usize).rev() {
        let doubled = out.clone();
        add_each(&mut out, &doubled);
        add_each(&mut out, &odd[level * windows..(level + 1) * windows]);
    }
    add_each(&mut out, &roots);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digits are within their buckets and add up to the value, for windows of one width and of two.
    #[test]
    fn digits_add_up() {
        let mut two_widths = 0;
        for bits in 1..=120 {
            let all = u128::MAX >> (128 - bits);
            for points in [1, 100, 1 << 14, 1 << 20] {
                let windows = Windows::best(points, bits);
                assert!(windows.start(windows.count) > bits && windows.width_of(0) <= WIDEST);
                two_widths += usize::from(windows.wide > 0);
                for value in [0, 1, all, all >> 1, all - 1, all / 3, all / 5 * 2] {
                    let mut digits = Digits::<2>::default();
                    digits.push(0, [value as u64, (value >> 64) as u64]);
                    digits.recode(bits, windows);
                    let sum = (0..windows.count).map(|w| {
                        let digit = digits.digit(&digits.values[0], w);
                        assert!(digit.unsigned_abs() <= 1 << (windows.width_of(w) - 1));
                        i128::from(digit) << windows.start(w)
                    });
                    assert_eq!(sum.sum::<i128>(), value as i128, "{value:x} in {windows:?}");
                }
            }
        }
        assert!(two_widths > 100, "windows of two widths were tested");
    }
}
