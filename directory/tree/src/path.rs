//! Paths: proofs that a tree has a leaf for an index, or has none.

use crate::hash::{DEPTH, Digest, EMPTY, Profile, is_leaf};
use crate::key::Index;
use crate::leaf::Leaf;
use crate::read::{DecodeError, Reader};

/// The version of the format.
const VERSION: u8 = 1;

/// The way from the root to where an index is, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The siblings along the path, from the root on; `None` for a subtree without leaves.
    pub siblings: Vec<Option<Digest>>,
    /// The end of the path.
    pub end: End,
}

/// The end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// A subtree without leaves: the index has no leaf.
    Empty,
    /// A leaf: that of the index, or another one in its place, and then the index has none.
    Leaf(Leaf),
}

/// The reason why a path was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path is longer than any, or, where all leaves have the same depth, shorter.
    #[error("the path has {0} steps, which no path of this tree has")]
    Depth(usize),
    /// The digest of an empty subtree is given, although paths leave them out.
    #[error("the path spells out the digest of an empty subtree at depth {0}: it must be left out")]
    Sibling(usize),
    /// The path does not lead to this root: it is of another epoch, or damaged.
    #[error("the path does not lead to the root of the record")]
    Root,
    /// The root has a leaf where its index does not belong. **That is evidence against the server**, together with the
    /// record: it has signed something that is not a tree.
    #[error(
        "the tree has a leaf in the place of another index: its record is evidence against the server"
    )]
    OtherPlace,
    /// The root has an end of a path further down than its tree would have it. **That is evidence against the
    /// server**, too.
    #[error("the tree has a path that is too long: its record is evidence against the server")]
    TooDeep,
}

impl Path {
    /// The leaf that the tree with this root has for an index, or none: no root has two answers, and one that a tree
    /// has exactly one.
    ///
    /// The path is recomputed as a way of inner nodes only: a leaf that moved up because it is alone is at the end of a
    /// shorter path. Otherwise a leaf could be shown beside an empty subtree below its own place, where its index would
    /// seem to have none.
    ///
    /// # Errors
    /// If the path does not lead from the index to the root, or the root is not that of a tree.
    pub fn verify(
        &self,
        profile: Profile,
        root: &Digest,
        index: &Index,
    ) -> Result<Option<Leaf>, PathError> {
        let depth = self.siblings.len();
        // The length is the server's choice, and `Index::bit` panics at 128.
        if depth > DEPTH || (!profile.collapses() && depth != DEPTH) {
            return Err(PathError::Depth(depth));
        }
        let mut siblings = Vec::with_capacity(depth);
        for (above, sibling) in self.siblings.iter().enumerate() {
            let empty = profile.empty(above + 1);
            // With two spellings of a path, the bytes of answers could not be compared.
            if *sibling == Some(empty) {
                return Err(PathError::Sibling(above + 1));
            }
            siblings.push(sibling.unwrap_or(empty));
        }
        let end = match &self.end {
            End::Empty => profile.empty(depth),
            End::Leaf(leaf) => leaf.digest(profile),
        };
        let top =
            siblings.iter().enumerate().rev().fold(end, |below, (above, sibling)| {
                match index.bit(above) {
                    false => profile.node(&below, sibling),
                    true => profile.node(sibling, &below),
                }
            });
        if top != *root {
            return Err(PathError::Root);
        }
        let last = siblings.last().filter(|_| profile.collapses());
        match self.end {
            // Beside a leaf alone, or nothing, there would be no node.
            End::Empty if last.is_some_and(|last| is_leaf(last) || *last == EMPTY) => {
                Err(PathError::TooDeep)
            }
            End::Empty => Ok(None),
            End::Leaf(leaf) if leaf.index.common(index) < depth => Err(PathError::OtherPlace),
            End::Leaf(_) if last == Some(&EMPTY) => Err(PathError::TooDeep),
            End::Leaf(leaf) => Ok(Some(leaf).filter(|leaf| leaf.index == *index)),
        }
    }

    /// The bytes: version, number of steps, kind of the end (0 nothing, 1 a leaf), a bit for each sibling that is there
    /// (from the root on, the highest one of each byte first), these siblings, and the leaf: index, version, epoch,
    /// commitment. Numbers are big-endian.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let depth = self.siblings.len();
        #[allow(clippy::cast_possible_truncation, reason = "paths have at most 128 steps")]
        out.extend([VERSION, depth as u8, u8::from(self.end != End::Empty)]);
        let mut bits = vec![0; depth.div_ceil(8)];
        for at in self.siblings.iter().enumerate().filter_map(|(at, s)| s.map(|_| at)) {
            bits[at / 8] |= 1 << (7 - at % 8);
        }
        out.extend(bits);
        out.extend(self.siblings.iter().flatten().flatten());
        if let End::Leaf(leaf) = &self.end {
            leaf.write(out);
        }
    }

    /// Reads a path. Nothing of it is verified.
    ///
    /// # Errors
    /// If the bytes are not what [`encode`](Self::encode) writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let path = Self::read(&mut reader)?;
        reader.end()?;
        Ok(path)
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.version(VERSION)?;
        let depth = usize::from(reader.byte("number of steps")?);
        if depth > DEPTH {
            return Err(DecodeError::Field(format!("number of steps is {depth}, at most {DEPTH}")));
        }
        let kind = reader.byte("kind of end")?;
        let bits = reader.bytes(depth.div_ceil(8), "siblings")?;
        let is_there = |at: usize| bits[at / 8] >> (7 - at % 8) & 1 == 1;
        // Otherwise several encodings would decode to the same path.
        if (depth..8 * bits.len()).any(is_there) {
            return Err(DecodeError::Field("siblings: bits are set past the last step".into()));
        }
        let sibling = |at| is_there(at).then(|| reader.array("siblings")).transpose();
        let siblings = (0..depth).map(sibling).collect::<Result<_, _>>()?;
        let end = match kind {
            0 => End::Empty,
            1 => End::Leaf(Leaf::read(reader)?),
            other => return Err(DecodeError::Field(format!("kind of end is {other}: 0 or 1"))),
        };
        Ok(Self { siblings, end })
    }
}
