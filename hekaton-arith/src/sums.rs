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
const BLOCK: usize = 1 << 13;

/// `sum_j src[entries_j]` for each group of entries, which end at `ends`, in order. The top bit of an entry stands for a
/// negative. An empty group gives infinity.
pub(crate) fn sum_groups<S: Summand>(src: &[S], entries: &[u32], ends: &[u32]) -> Vec<S> {
    assert_eq!(ends.last().map_or(0, |end| *end as usize), entries.len(), "the last group ends where the entries end");
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
    if pieces.len() == ends.len() {
        return sums;
    }
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
    points: Vec<S>,
    next: Vec<S>,
    entries: Vec<u32>,
    pairs: Vec<[u32; 2]>,
    /// lengths of the groups
    lengths: Vec<u32>,
}

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
        self.entries.clear();
        self.entries.extend_from_slice(entries);
        self.layer(src);
        while self.lengths.iter().any(|n| *n > 1) {
            let points = std::mem::take(&mut self.points);
            self.layer(&points);
            self.next = points;
        }
        let mut points = self.points.iter();
        for (out, n) in out.iter_mut().zip(&self.lengths) {
            *out = if *n == 0 { S::ZERO } else { *points.next().expect("one point a group") };
        }
    }

    /// Halves each group: sums of pairs, and what has no partner as it is. Afterwards `points` holds the groups one after
    /// the other, and `entries` counts through them.
    fn layer(&mut self, src: &[S]) {
        let Self { next, entries, pairs, lengths, .. } = self;
        pairs.clear();
        let mut at = 0;
        for n in lengths.iter() {
            let group = &entries[at..at + *n as usize];
            pairs.extend(group.as_chunks::<2>().0);
            at += group.len();
        }
        // The sums go to the end, and from there to their places; those without a partner come between them.
        let total: usize = lengths.iter().map(|n| n.div_ceil(2) as usize).sum();
        next.clear();
        next.resize(total, S::ZERO);
        let first_sum = total - pairs.len();
        S::add_pairs(src, pairs, &mut next[first_sum..]);
        let (mut from, mut to, mut at) = (first_sum, 0, 0);
        for n in lengths.iter_mut() {
            let sums = (*n / 2) as usize;
            if from != to {
                next.copy_within(from..from + sums, to);
            }
            (from, to) = (from + sums, to + sums);
            if *n % 2 == 1 {
                next[to] = S::signed(src, entries[at + *n as usize - 1]);
                to += 1;
            }
            at += *n as usize;
            *n = n.div_ceil(2);
        }
        entries.clear();
        entries.extend(0..total as u32);
        std::mem::swap(&mut self.points, &mut self.next);
    }
}
