//! Append-only logs, of updates and of records: a Merkle tree over all entries, hashed as in RFC 9162, section 2.1. A server keeps
//! the [`Frontier`] and the subtrees that are complete; clients check that a log contains an entry, and that one log
//! continues another.

use crate::hash::Digest;
use sha2::{Digest as _, Sha256};

/// The digest of an entry.
pub fn entry(bytes: &[u8]) -> Digest {
    // The first byte separates entries from nodes. RFC 9162, section 2.1.1, requires it against
    // second preimages.
    Sha256::new().chain_update([0]).chain_update(bytes).finalize().into()
}

/// The root of a subtree from those of its two halves.
pub fn node(left: &Digest, right: &Digest) -> Digest {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// A complete subtree: its `2^level` entries begin with number `index * 2^level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Complete {
    /// The number of levels below its root.
    pub level: u32,
    /// Its number among those of this level.
    pub index: u64,
    /// Its root.
    pub digest: Digest,
}

/// The part of a log from which it can be continued: the roots of the largest complete subtrees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frontier {
    size: u64,
    /// The peaks by level: there is one where the size has a bit.
    peaks: Vec<Option<Digest>>,
}

impl Frontier {
    /// The number of entries.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The end of a log of this size, from the roots of its largest complete subtrees by level.
    pub fn of(size: u64, mut peaks: Vec<Option<Digest>>) -> Self {
        peaks.truncate((u64::BITS - size.leading_zeros()) as usize);
        Self { size, peaks }
    }

    /// The roots of the largest complete subtrees, the smallest one first.
    pub fn peaks(&self) -> Vec<Digest> {
        self.peaks.iter().flatten().copied().collect()
    }

    /// The end of a log of this size, from its [`peaks`](Self::peaks). Returns `None` if their number is that of another size.
    pub fn with_peaks(size: u64, peaks: &[Digest]) -> Option<Self> {
        let mut rest = peaks.iter().copied();
        let all = (0..u64::BITS - size.leading_zeros()).map(|level| match size >> level & 1 {
            1 => rest.next().map(Some),
            _ => Some(None),
        });
        let found = Self { size, peaks: all.collect::<Option<_>>()? };
        rest.next().is_none().then_some(found)
    }

    /// The root: SHA-256 of nothing for a log without entries.
    pub fn root(&self) -> Digest {
        let peaks = self.peaks.iter().flatten().copied();
        peaks.reduce(|right, left| node(&left, &right)).unwrap_or_else(|| Sha256::digest([]).into())
    }

    /// Appends the digests of entries, and returns the subtrees that they complete, entries included, level by level:
    /// whatever the number of entries at once, all of them together are the same.
    pub fn append(&mut self, entries: &[Digest]) -> Vec<Complete> {
        let mut complete = Vec::with_capacity(2 * entries.len());
        let (mut first, mut row, mut level) = (self.size, entries.to_vec(), 0u32);
        self.size += entries.len() as u64;
        while !row.is_empty() {
            let all = (first..).zip(&row).map(|(index, digest)| (index, *digest));
            complete.extend(all.map(|(index, digest)| Complete { level, index, digest }));
            if self.peaks.len() <= level as usize {
                self.peaks.push(None);
            }
            // With the one that waits, pairs are complete; the last one may wait.
            if let Some(waiting) = self.peaks[level as usize].take() {
                row.insert(0, waiting);
                first -= 1;
            }
            if row.len() % 2 == 1 {
                self.peaks[level as usize] = row.pop();
            }
            row = pairs(&row);
            (first, level) = (first / 2, level + 1);
        }
        complete
    }
}

/// The root of a complete subtree with these digests, a power of two of them.
///
/// # Panics
/// Without a digest.
pub fn root_of(digests: &[Digest]) -> Digest {
    match digests {
        [digest] => *digest,
        _ => {
            let (left, right) = digests.split_at(digests.len() / 2);
            node(&root_of(left), &root_of(right))
        }
    }
}

#[cfg(feature = "parallel")]
fn pairs(row: &[Digest]) -> Vec<Digest> {
    use rayon::prelude::*;
    row.par_chunks_exact(2).with_min_len(256).map(|pair| node(&pair[0], &pair[1])).collect()
}

#[cfg(not(feature = "parallel"))]
fn pairs(row: &[Digest]) -> Vec<Digest> {
    row.chunks_exact(2).map(|pair| node(&pair[0], &pair[1])).collect()
}

/// Reports whether a log of `size` entries with this root has an entry at an index (RFC 9162, section 2.1.3.2). A root
/// does not determine the number of entries: take both from one record.
pub fn contains(root: &Digest, size: u64, index: u64, bytes: &[u8], proof: &[Digest]) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut digest) = (index, size - 1, entry(bytes));
    for beside in proof {
        // The proof is longer than the tree is high, and the RFC demands that it is rejected.
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            digest = node(beside, &digest);
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            digest = node(&digest, beside);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && digest == *root
}

/// Reports whether a log of `size` entries begins with all entries of one of `old` entries (RFC 9162, section 2.1.4.2).
/// Sizes and roots are those of two records.
pub fn continues(
    (old_root, old): (&Digest, u64),
    (root, size): (&Digest, u64),
    proof: &[Digest],
) -> bool {
    if old > size {
        return false;
    }
    if old == size {
        return proof.is_empty() && old_root == root;
    }
    // The RFC defines no proof from an empty log, which every log continues. Its root has to be the
    // right one.
    if old == 0 {
        return proof.is_empty() && *old_root == Frontier::default().root();
    }
    let (mut at, mut last) = (old - 1, size - 1);
    // Up to the first level at which the old log ends on a left side, both logs have the same
    // subtrees.
    while at & 1 == 1 {
        (at, last) = (at >> 1, last >> 1);
    }
    let mut rest = proof.iter();
    // The old log is a complete subtree of the new one: its root is not in the proof.
    let first = if old.is_power_of_two() { Some(old_root) } else { rest.next() };
    let Some(first) = first else { return false };
    let (mut of_old, mut of_new) = (*first, *first);
    for beside in rest {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            (of_old, of_new) = (node(beside, &of_old), node(beside, &of_new));
            while at & 1 == 0 && at != 0 {
                (at, last) = (at >> 1, last >> 1);
            }
        } else {
            of_new = node(&of_new, beside);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && of_old == *old_root && of_new == *root
}
