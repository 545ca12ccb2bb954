//! Sums of many groups of points, which the bucket method, tables of multiples and batched
//! membership checks have in common.
//!
//! Each group is summed as a tree, pairs first, and all groups of a block go through the tree
//! together, so additions come in large batches that share inversions. How the points are
//! distributed over groups does not raise the cost: n points in one group take n - 1 additions and
//! in several groups fewer, so adversarial scalars cannot force a slow path.

#![allow(
    clippy::cast_possible_truncation,
    reason = "entries are indices below 2^31, so sums and lengths of groups fit 32 bits"
)]

/// The bit of an index that selects the negative of a point.
pub(crate) const NEGATIVE: u32 = 1 << 31;

/// Values that can be summed: points, or elements of the target group.
///
/// Public only because [`crate::Group`] extends it; the module is private, so no other type can
/// implement it.
#[allow(unnameable_types, reason = "seals `Group`: only this crate implements it")]
pub trait Summand: Copy {
    /// The neutral element.
    const ZERO: Self;

    /// Computes `out_i = src[a_i] + src[b_i]` for each pair of indices; an index with its top bit
    /// ([`NEGATIVE`]) set selects a negative. The addition is complete.
    fn add_pairs(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self]);

    /// The element at an index; its negative if the top bit is set.
    fn signed(src: &[Self], index: u32) -> Self;
}

/// Adds `b_i` to `a_i` for each i.
pub(crate) fn add_each<S: Summand>(a: &mut [S], b: &[S]) {
    assert_eq!(a.len(), b.len(), "batch addition of vectors of different lengths");
    for (a, b) in a.chunks_mut(1 << 12).zip(b.chunks(1 << 12)) {
        let n = a.len() as u32;
        let both = [&*a, b].concat();
        let pairs: Vec<[u32; 2]> = (0..n).map(|i| [i, n + i]).collect();
        S::add_pairs(&both, &pairs, a);
    }
}

/// The number of elements that go through a tree together: their sums take 1.5 MiB, as 2^14 points of G1 or 2^13 of G2 do.
const fn block<S>() -> usize {
    (3 << 19) / size_of::<S>()
}

/// The sum `sum_j src[entries_j]` of each group of entries. Groups are consecutive and end at
/// `ends`. The top bit of an entry selects a negative. The sum of an empty group is infinity.
pub(crate) fn sum_groups<S: Summand>(src: &[S], entries: &[u32], ends: &[u32]) -> Vec<S> {
    assert_eq!(
        ends.last().map_or(0, |end| *end as usize),
        entries.len(),
        "the last group must end where the entries end"
    );
    let lengths = ends.iter().zip(std::iter::once(&0).chain(ends)).map(|(end, start)| end - start);
    if lengths.max().is_none_or(|n| n as usize <= block::<S>()) {
        return sum_pieces(src, entries, ends);
    }
    // groups longer than a block are cut into pieces, and the sums of the pieces are summed
    let mut pieces = Vec::with_capacity(ends.len());
    let mut pieces_ends = Vec::with_capacity(ends.len());
    let mut start = 0;
    for end in ends {
        while (end - start) as usize > block::<S>() {
            start += block::<S>() as u32;
            pieces.push(start);
        }
        pieces.push(*end);
        pieces_ends.push(pieces.len() as u32);
        start = *end;
    }
    let sums = sum_pieces(src, entries, &pieces);
    let all: Vec<u32> = (0..pieces.len() as u32).collect();
    sum_groups(&sums, &all, &pieces_ends)
}

/// Same as [`sum_groups`], for groups no longer than a block.
fn sum_pieces<S: Summand>(src: &[S], entries: &[u32], ends: &[u32]) -> Vec<S> {
    let mut out = vec![S::ZERO; ends.len()];
    let mut tree = Tree::default();
    let (mut first, mut start) = (0, 0);
    while first < ends.len() {
        // as many groups as fit into a block
        let fit =
            ends[first..].iter().take_while(|end| **end as usize - start <= block::<S>()).count();
        let groups = &ends[first..first + fit];
        let end = groups.last().map_or(start, |end| *end as usize);
        tree.sum(src, &entries[start..end], start as u32, groups, &mut out[first..first + fit]);
        (first, start) = (first + fit, end);
    }
    out
}

/// The tree of one block; its memory is reused for the next.
struct Tree<S> {
    /// The sums so far, in the order in which they were computed; nothing moves.
    points: Vec<S>,
    /// The entries of the groups, one group after another, followed by [`AT_ONCE`] entries of
    /// padding.
    entries: Vec<u32>,
    next: Vec<u32>,
    pairs: Vec<[u32; 2]>,
    /// The lengths of the groups.
    lengths: Vec<u32>,
}

/// The number of entries of a group that are paired at once, even if the group has fewer.
const AT_ONCE: usize = 8;

impl<S> Default for Tree<S> {
    fn default() -> Self {
        let (points, next, entries, pairs, lengths) = Default::default();
        Self { points, next, entries, pairs, lengths }
    }
}

impl<S: Summand> Tree<S> {
    fn sum(&mut self, src: &[S], entries: &[u32], start: u32, ends: &[u32], out: &mut [S]) {
        self.lengths.clear();
        let mut before = start;
        for end in ends {
            self.lengths.push(end - before);
            before = *end;
        }
        if let Some(more) = entries.len().checked_sub(self.points.len()) {
            self.points.reserve_exact(more);
            self.points.resize(entries.len(), S::ZERO);
        }
        self.entries.clear();
        self.entries.extend_from_slice(entries);
        self.entries.extend_from_slice(&[0; AT_ONCE]);
        let mut used = self.copy_odd(src);
        let mut layers = 0;
        while self.lengths.iter().any(|n| *n > 1) {
            self.halve(used as u32);
            let (points, sums) = self.points.split_at_mut(used);
            let sums = &mut sums[..self.pairs.len()];
            S::add_pairs(if layers == 0 { src } else { points }, &self.pairs, sums);
            used += sums.len();
            layers += 1;
        }
        let mut at = 0;
        for (out, n) in out.iter_mut().zip(&self.lengths) {
            *out = if *n == 0 { S::ZERO } else { S::signed(&self.points, self.entries[at]) };
            at += *n as usize;
        }
    }

    /// Copies the last element of each group of odd length, which has no partner in the first
    /// layer; returns their number.
    fn copy_odd(&mut self, src: &[S]) -> usize {
        let Self { points, entries, next, lengths, .. } = self;
        next.resize(lengths.len() + 1, 0);
        let (mut end, mut used) = (0, 0);
        for n in lengths {
            end += *n as usize;
            let entry = &mut entries[end.saturating_sub(1)];
            next[used] = *entry;
            let odd = *n % 2 == 1;
            *entry = if odd { used as u32 | *entry & NEGATIVE } else { *entry };
            used += usize::from(odd);
        }
        for (point, entry) in points.iter_mut().zip(&next[..used]) {
            *point = src[(*entry & !NEGATIVE) as usize];
        }
        used
    }

    /// Pairs the entries of each group. Each group then consists of the sums of its pairs, the
    /// first of which will be at `first_sum`, and of the entry without a partner, if any.
    ///
    /// Groups are short and their lengths random, so there is no branch per length: eight entries
    /// are paired at a time, and the excess is overwritten by the next group.
    fn halve(&mut self, first_sum: u32) {
        let Self { entries, next, pairs, lengths, .. } = self;
        pairs.resize(entries.len() / 2 + AT_ONCE, [0; 2]);
        next.resize(entries.len() + AT_ONCE, 0);
        let (mut from, mut to, mut paired) = (0, 0, 0);
        for length in lengths {
            let (n, half) = (*length as usize, *length as usize / 2);
            for i in (0..half.max(1)).step_by(AT_ONCE / 2) {
                let some: &[u32; AT_ONCE] = entries[from + 2 * i..]
                    .first_chunk()
                    .expect("entries are padded with AT_ONCE more");
                pairs[paired + i..][..AT_ONCE / 2].copy_from_slice(some.as_chunks().0);
                let sum = first_sum + (paired + i) as u32;
                next[to + i..][..AT_ONCE / 2].copy_from_slice(&[sum, sum + 1, sum + 2, sum + 3]);
            }
            next[to + half] = entries[(from + n).saturating_sub(1)];
            (from, to, paired) = (from + n, to + half + n % 2, paired + half);
            *length = (half + n % 2) as u32;
        }
        pairs.truncate(paired);
        next.truncate(to + AT_ONCE);
        std::mem::swap(entries, next);
    }
}
