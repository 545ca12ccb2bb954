//! The tree of an epoch.

use crate::hash::{DEPTH, Digest, Profile};
use crate::key::{Commitment, Index};
use crate::leaf::Leaf;
use crate::path::{End, Path};
use crate::place::{Away, Place};
use std::cmp::Ordering;
use std::sync::Arc;

/// The number of changes from which on the sides of a node are computed at the same time.
#[cfg(feature = "parallel")]
const PARALLEL: usize = 256;

/// A change of an epoch: the commitment that an index has from then on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// The place of the label.
    pub index: Index,
    /// The commitment to all values, the new one included.
    pub commitment: Commitment,
}

/// Changes that no epoch can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// Two changes of one index: an epoch makes one.
    #[error("changes {0} and {1} are of the same index")]
    Twice(usize, usize),
    /// A label has been changed 2^32 - 1 times.
    #[error("the leaf of change {0} has the largest version that there is")]
    Version(usize),
    /// There have been 2^32 - 1 epochs.
    #[error("there are no epochs after {}", u32::MAX)]
    Epoch,
    /// A part of the tree that changes is not in memory.
    #[error(transparent)]
    Away(#[from] Away),
    /// There are no changes, and nothing to begin the steps of such an epoch with.
    #[error(
        "an epoch without changes can be proven only of a tree that has leaves, which move up where they are alone"
    )]
    NoSteps,
}

/// The tree of an epoch. Trees share what they have in common, so older ones may be kept. Parts may be [`Away`]: of a
/// tree that begins with [`new`](Self::new) and is only updated, none is.
#[derive(Clone, Debug)]
pub struct Tree {
    pub(crate) profile: Profile,
    epoch: u32,
    leaves: u64,
    pub(crate) root: Node,
}

/// A subtree. One with a single leaf is that leaf, whatever the profile; its digest is that of its place.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    Empty,
    Leaf(Arc<Lone>),
    Inner(Arc<Inner>),
    /// One that is not in memory.
    Away(Arc<Digest>),
}

#[derive(Debug)]
pub(crate) struct Lone {
    pub(crate) leaf: Leaf,
    digest: Digest,
}

#[derive(Debug)]
pub(crate) struct Inner {
    digest: Digest,
    pub(crate) sides: [Node; 2],
}

/// A change with its number in the batch.
pub(crate) type Numbered = (usize, Change);

impl Tree {
    /// The tree of epoch 0, which has nothing.
    pub fn new(profile: Profile) -> Self {
        Self { profile, epoch: 0, leaves: 0, root: Node::Empty }
    }

    /// A tree of one leaf, as it may be after very many epochs.
    #[cfg(test)]
    pub(crate) fn with_one(profile: Profile, leaf: Leaf, epoch: u32) -> Self {
        let root = Batch { profile, epoch }.lone(leaf, 0);
        Self { profile, epoch, leaves: 1, root }
    }

    /// The tree of an epoch with nothing in memory but its root.
    pub fn away(profile: Profile, epoch: u32, leaves: u64, root: Digest) -> Self {
        Self { profile, epoch, leaves, root: Node::Away(Arc::new(root)) }
    }

    /// The same tree with another part of it in memory.
    pub(crate) fn with_root(&self, root: Node) -> Self {
        Self { root, ..*self }
    }

    /// The profile.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// The epoch.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// The number of leaves.
    pub fn leaves(&self) -> u64 {
        self.leaves
    }

    /// The root's digest.
    pub fn root(&self) -> Digest {
        self.root.digest(self.profile, 0)
    }

    /// The leaf of an index.
    ///
    /// # Errors
    /// If the part of the tree where it is is not in memory.
    pub fn leaf(&self, index: &Index) -> Result<Option<Leaf>, Away> {
        Ok(match self.walk(index, |_| {})? {
            End::Leaf(leaf) => Some(leaf).filter(|leaf| leaf.index == *index),
            End::Empty => None,
        })
    }

    /// The proof of what [`leaf`](Self::leaf) says.
    ///
    /// # Errors
    /// If the part of the tree where the index is is not in memory.
    pub fn path(&self, index: &Index) -> Result<Path, Away> {
        let mut siblings = Vec::new();
        let mut end = self.walk(index, |other| siblings.push(other.given()))?;
        if self.profile.collapses() {
            return Ok(Path { siblings, end });
        }
        // All leaves are at the same depth; a leaf here stands for the way down to it, which is alone from here on.
        if let End::Leaf(leaf) = end {
            let common = leaf.index.common(index);
            if common < DEPTH {
                siblings.resize(common, None);
                siblings.push(Some(leaf.digest_at(self.profile, common + 1)));
                end = End::Empty;
            }
        }
        siblings.resize(DEPTH, None);
        Ok(Path { siblings, end })
    }

    /// Goes down to an index, and visits the siblings on the way.
    fn walk<'t>(&'t self, index: &Index, mut beside: impl FnMut(&'t Node)) -> Result<End, Away> {
        let (mut node, mut depth) = (&self.root, 0);
        loop {
            match node {
                Node::Empty => return Ok(End::Empty),
                Node::Leaf(lone) => return Ok(End::Leaf(lone.leaf)),
                Node::Away(_) => return Err(Away(Place::of(index, depth))),
                Node::Inner(inner) => {
                    let side = usize::from(index.bit(depth));
                    beside(&inner.sides[1 - side]);
                    (node, depth) = (&inner.sides[side], depth + 1);
                }
            }
        }
    }

    /// The tree of the next epoch: each change inserts a leaf of version 0, or gives one its next version. These leaves
    /// say this tree's epoch, which ends with them.
    ///
    /// # Errors
    /// If changes are not those of one epoch; then nothing happens.
    pub fn update(&self, changes: &[Change]) -> Result<Self, UpdateError> {
        let next = self.epoch.checked_add(1).ok_or(UpdateError::Epoch)?;
        let sorted = Self::sorted(changes)?;
        let batch = Batch { profile: self.profile, epoch: self.epoch };
        let (root, inserted) = batch.update(&self.root, 0, &sorted)?;
        Ok(Self { profile: self.profile, epoch: next, leaves: self.leaves + inserted, root })
    }

    /// The tree with one change of an epoch that has not ended.
    pub(crate) fn with_change(&self, change: Numbered) -> Result<Self, UpdateError> {
        let batch = Batch { profile: self.profile, epoch: self.epoch };
        let (root, inserted) = batch.update(&self.root, 0, &[change])?;
        Ok(Self { leaves: self.leaves + inserted, root, ..*self })
    }

    /// Changes with their numbers, by their indices.
    pub(crate) fn sorted(changes: &[Change]) -> Result<Vec<Numbered>, UpdateError> {
        let mut sorted: Vec<Numbered> = changes.iter().copied().enumerate().collect();
        // By their numbers as well, so that the error names the two changes in their order.
        sorted.sort_unstable_by(|(i, a), (j, b)| match a.index.cmp(&b.index) {
            Ordering::Equal => i.cmp(j),
            other => other,
        });
        match sorted.windows(2).find(|pair| pair[0].1.index == pair[1].1.index) {
            Some(pair) => Err(UpdateError::Twice(pair[0].0, pair[1].0)),
            None => Ok(sorted),
        }
    }
}

impl Node {
    /// A subtree of one leaf that begins at a depth.
    pub(crate) fn lone(profile: Profile, leaf: Leaf, depth: usize) -> Self {
        Self::Leaf(Arc::new(Lone { leaf, digest: leaf.digest_at(profile, depth) }))
    }

    /// A subtree that begins at a depth and has these two below it.
    pub(crate) fn inner(profile: Profile, sides: [Self; 2], depth: usize) -> Self {
        let [left, right] = &sides;
        let digest =
            profile.node(&left.digest(profile, depth + 1), &right.digest(profile, depth + 1));
        Self::Inner(Arc::new(Inner { digest, sides }))
    }

    /// The same inner node, of which more or less is in memory.
    pub(crate) fn replaced(inner: &Inner, sides: [Self; 2]) -> Self {
        Self::Inner(Arc::new(Inner { digest: inner.digest, sides }))
    }

    pub(crate) fn digest(&self, profile: Profile, depth: usize) -> Digest {
        match self {
            Self::Empty => profile.empty(depth),
            Self::Leaf(lone) => lone.digest,
            Self::Inner(inner) => inner.digest,
            Self::Away(digest) => **digest,
        }
    }

    /// The digest as paths have it, which leave out those of subtrees without leaves.
    pub(crate) fn given(&self) -> Option<Digest> {
        match self {
            Self::Empty => None,
            Self::Leaf(lone) => Some(lone.digest),
            Self::Inner(inner) => Some(inner.digest),
            Self::Away(digest) => Some(**digest),
        }
    }
}

/// The values that all changes of an epoch have in common.
#[derive(Clone, Copy)]
struct Batch {
    profile: Profile,
    epoch: u32,
}

impl Batch {
    fn lone(self, leaf: Leaf, depth: usize) -> Node {
        Node::lone(self.profile, leaf, depth)
    }

    /// A subtree after changes in it, sorted by their indices, and the number of leaves that are new.
    fn update(
        self,
        node: &Node,
        depth: usize,
        changes: &[Numbered],
    ) -> Result<(Node, u64), UpdateError> {
        let Some(((number, change), more)) = changes.split_first() else {
            // Shared instead of copied: what has no changes is still the subtree of older trees.
            return Ok((node.clone(), 0));
        };
        let Change { index, commitment } = *change;
        let sides = match node {
            Node::Empty if more.is_empty() => {
                let leaf = Leaf { index, version: 0, epoch: self.epoch, commitment };
                return Ok((self.lone(leaf, depth), 1));
            }
            Node::Empty => [Node::Empty, Node::Empty],
            Node::Leaf(lone) if more.is_empty() && lone.leaf.index == index => {
                let next = lone.leaf.version.checked_add(1);
                let version = next.ok_or(UpdateError::Version(*number))?;
                let leaf = Leaf { index, version, epoch: self.epoch, commitment };
                return Ok((self.lone(leaf, depth), 0));
            }
            Node::Leaf(lone) => {
                // It has others beside it now, and moves down.
                let below = match self.profile.collapses() {
                    true => Node::Leaf(Arc::clone(lone)),
                    // The digest is that of the place and has to be computed again.
                    false => self.lone(lone.leaf, depth + 1),
                };
                match lone.leaf.index.bit(depth) {
                    false => [below, Node::Empty],
                    true => [Node::Empty, below],
                }
            }
            Node::Inner(inner) => inner.sides.clone(),
            Node::Away(_) => return Err(Away(Place::of(&index, depth)).into()),
        };
        let middle = changes.partition_point(|(_, change)| !change.index.bit(depth));
        let (left, right) = changes.split_at(middle);
        let [below, beside] = &sides;
        let (left, right) = self.both(
            changes.len(),
            || self.update(below, depth + 1, left),
            || self.update(beside, depth + 1, right),
        );
        let ((left, i), (right, j)) = (left?, right?);
        Ok((Node::inner(self.profile, [left, right], depth), i + j))
    }

    #[cfg(feature = "parallel")]
    fn both<R: Send>(
        self,
        changes: usize,
        left: impl FnOnce() -> R + Send,
        right: impl FnOnce() -> R + Send,
    ) -> (R, R) {
        match changes < PARALLEL {
            true => (left(), right()),
            false => rayon::join(left, right),
        }
    }

    #[cfg(not(feature = "parallel"))]
    fn both<R>(self, _: usize, left: impl FnOnce() -> R, right: impl FnOnce() -> R) -> (R, R) {
        (left(), right())
    }
}
