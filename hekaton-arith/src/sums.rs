//! Sums of many groups of points: what a bucket method, a table of multiples and a batch of membership checks have in common.
//!
//! Each group is summed as a tree, pairs first, and all groups of a block go through the tree together, so additions come in
//! large batches that share inversions. How the points fall into groups makes no difference to the cost: n points in one
//! group take n - 1 additions, more groups fewer, so chosen scalars can't force a slow path.

/// The bit of an index that stands for the negative of a point.
pub(crate) const NEGATIVE: u32 = 1 << 31;
/// What trees of sums are over: points, or elements of the target group.
///
/// Public only because [`crate::Group`] extends it; the module is private, so no other type can implement it.
pub trait Summand: Copy {
    /// The neutral element.
    const ZERO: Self;

    /// `out_i = src[a_i] + src[b_i]` for each pair of indices, whose top bit ([`NEGATIVE`]) stands for a negative; complete.
    fn add_pairs(src: &[Self], pairs: &[[u32; 2]], out: &mut [Self]);

    /// The element at an index whose top bit stands for its negative.
    fn signed(src: &[Self], index: u32) -> Self;
}

/// `a_i += b_i` for each i.
pub(crate) fn add_each<S: Summand>(a: &mut [S], b: &[S]) {
    assert_eq!(a.len(), b.len(), "batch addition of vectors of different length");
    for (a, b) in a.chunks_mut(1 << 12).zip(b.chunks(1 << 12)) {
        let n = a.len() as u32;
        let both = [&*a, b].concat();
        let pairs: Vec<[u32; 2]> = (0..n).map(|i| [i, n + i]).collect();
        S::add_pairs(&both, &pairs, a);
    }
}

/// Points that go through a tree together: their sums stay in the cache.
const BLOCK: usize = 1 << 14;

/// `sum_j src[entries_j]` for each group of entries, which end at `ends`, in order. The top bit of an entry stands for a
/// negative. An empty group gives infinity.
pub(crate) fn sum_groups<S: Summand>(src: &[S], entries: &[u32], ends: &[u32]) -> Vec<S> {
    assert_eq!(ends.last().map_or(0, |end| *end as usize), entries.len(), "the last group ends where the entries end");
    let lengths = ends.iter().zip(std::iter::once(&0).chain(ends)).map(|(end, start)| end - start);
    if lengths.max().is_none_or(|n| n as usize <= BLOCK) {
        return sum_pieces(src, entries, ends);
    }
    // groups longer than a block are cut, and their parts' sums summed
    let mut pieces = Vec::with_capacity(ends.len());
    let mut pieces_ends = Vec::with_capacity(ends.len());
    let mut start = 0;
    for end in ends {
        while (end - start) as usize > BLOCK {
            start += BLOCK as u32;
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

/// [`sum_groups`] of groups that are no longer than a block.
fn sum_pieces<S: Summand>(src: &[S], entries: &[u32], ends: &[u32]) -> Vec<S> {
    let mut out = vec![S::ZERO; ends.len()];
    let mut tree = Tree::default();
    let (mut first, mut start) = (0, 0);
    while first < ends.len() {
        // as many groups as fit a block
        let fit = ends[first..].iter().take_while(|end| **end as usize - start <= BLOCK).count();
        let groups = &ends[first..first + fit];
        let end = groups.last().map_or(start, |end| *end as usize);
        tree.sum(src, &entries[start..end], start as u32, groups, &mut out[first..first + fit]);
        (first, start) = (first + fit, end);
    }
    out
}

/// One block's tree; its memory is used again for the next block.
struct Tree<S> {
    /// What has been summed so far, in the order it was made; nothing moves.
    points: Vec<S>,
    /// the groups' entries, one group after the other, and [`AT_ONCE`] more that do not count
    entries: Vec<u32>,
    next: Vec<u32>,
    pairs: Vec<[u32; 2]>,
    /// lengths of the groups
    lengths: Vec<u32>,
}

/// Entries of a group that are paired at once, whether or not it has so many.
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
        if self.points.len() < entries.len() {
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

    /// Copies the last element of each group of odd length, which has no partner among the first pairs; returns how many.
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

    /// Pairs the entries of each group. Afterwards it consists of the pairs' sums, the first of which will be at
    /// `first_sum`, and of the one without a partner.
    ///
    /// Groups are short and of random lengths, so there is no branch for each length: eight entries are paired, and what is
    /// too much is overwritten by the next group.
    fn halve(&mut self, first_sum: u32) {
        let Self { entries, next, pairs, lengths, .. } = self;
        pairs.resize(entries.len() / 2 + AT_ONCE, [0; 2]);
        next.resize(entries.len() + AT_ONCE, 0);
        let (mut from, mut to, mut paired) = (0, 0, 0);
        for length in lengths {
            let (n, half) = (*length as usize, *length as usize / 2);
            for i in (0..half.max(1)).step_by(AT_ONCE / 2) {
                let some: &[u32; AT_ONCE] = entries[from + 2 * i..].first_chunk().expect("there are so many more");
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
