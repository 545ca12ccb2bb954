//! All nodes and codes that hang from a state root.

use crate::ssz::Items;
use crate::trie::{Node, NodeError, Position, Reference, Trie};
use crate::{EMPTY_CODE, EMPTY_ROOT, keccak};
use std::collections::HashSet;
use std::fmt;

/// A state that does not match its root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WalkError {
    /// A witness without the root.
    #[error("the node of the parent's state root is missing: no node has the hash 0x{}", Hex(.0))]
    Root([u8; 32]),
    /// A node that cannot be read.
    #[error("node {at} of {bytes} bytes: {why}")]
    Node {
        /// The index of the node.
        at: usize,
        /// Its length, in bytes.
        bytes: usize,
        /// The reason.
        why: NodeError,
    },
    /// A node that is reached at two depths, of which at most one can be right.
    #[error("node {0} is at two depths of its trie")]
    Depth(usize),
}

/// Bytes as hexadecimal digits.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Items by their digests, sorted: a table of digests would take twice the memory.
#[derive(Debug)]
pub struct Digests {
    sorted: Vec<([u8; 32], u32)>,
    /// The positions at which the digests with each first two bytes begin. Most look-ups fail, and this makes them fast.
    begins: Vec<u32>,
}

impl Digests {
    /// Hashes all items of a list.
    pub fn of(items: &Items<'_>) -> Self {
        let digests = (0u32..).zip(items.iter()).map(|(at, item)| (keccak(item), at));
        let mut sorted: Vec<([u8; 32], u32)> = digests.collect();
        sorted.sort_unstable();
        // `begins[i + 1]` counts the digests that start with i; the sums below turn counts into positions.
        let mut begins = vec![0; (1 << 16) + 1];
        for (digest, _) in &sorted {
            begins[first(digest) + 1] += 1;
        }
        for at in 1..begins.len() {
            begins[at] += begins[at - 1];
        }
        Self { sorted, begins }
    }

    /// Returns the index of the item with a digest: the first one, if it is repeated.
    pub fn find(&self, digest: &[u8; 32]) -> Option<usize> {
        let (from, to) = (self.begins[first(digest)], self.begins[first(digest) + 1]);
        let near = &self.sorted[from as usize..to as usize];
        let at = near.partition_point(|(known, _)| known < digest);
        near.get(at).filter(|(known, _)| known == digest).map(|(_, index)| *index as usize)
    }

    /// Returns all items that are not repeats of earlier ones, each with its digest, in the order of digests.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8; 32], usize)> {
        let before =
            std::iter::once(None).chain(self.sorted.iter().map(|(digest, _)| Some(digest)));
        let pairs = self.sorted.iter().zip(before);
        pairs
            .filter(|((digest, _), before)| Some(digest) != *before)
            .map(|((digest, index), _)| (digest, *index as usize))
    }
}

/// Returns the first two bytes of a digest.
fn first(digest: &[u8; 32]) -> usize {
    usize::from(u16::from_be_bytes([digest[0], digest[1]]))
}

/// The nodes and codes that hang from a root.
#[derive(Debug)]
pub struct Walk {
    /// The depth of each node, in the trie of accounts and in those of storage; `None` where it is not reached.
    pub reached: Vec<[Option<u8>; 2]>,
    /// The hashes of the codes of all accounts.
    pub codes: HashSet<[u8; 32]>,
    /// The number of references to nodes that are absent.
    pub absent: usize,
}

impl Walk {
    /// Walks all nodes below a root and calls `visit` with each node, its index and its trie, once for each kind of trie that contains
    /// the node. Absent nodes are only counted, because a witness has only the nodes that its block reads.
    ///
    /// # Errors
    /// If the root is missing or a node is malformed.
    pub fn from_root<'a>(
        state: &Items<'a>,
        digests: &Digests,
        root: [u8; 32],
        mut visit: impl FnMut(usize, Trie, &Node<'a>),
    ) -> Result<Self, WalkError> {
        let mut walk =
            Self { reached: vec![[None; 2]; state.len()], codes: HashSet::new(), absent: 0 };
        // Depth first: this holds at most 16 nodes for each level of two tries, where breadth first would hold entire levels.
        let mut open = Vec::new();
        if root != EMPTY_ROOT {
            let at = digests.find(&root).ok_or(WalkError::Root(root))?;
            walk.reached[at][Trie::Accounts as usize] = Some(0);
            open.push((at, Position::root(Trie::Accounts)));
        }
        while let Some((at, position)) = open.pop() {
            let bytes = state.get(at).expect("digests are those of the state's items");
            let node = Node::read(bytes, position).map_err(|why| WalkError::Node {
                at,
                bytes: bytes.len(),
                why,
            })?;
            visit(at, position.trie, &node);
            for reference in node.references() {
                let (digest, below) = match reference {
                    Reference::Code(digest) => {
                        walk.codes.insert(*digest);
                        continue;
                    }
                    // Most accounts have no storage; that is not an absent node.
                    Reference::Root(digest) if *digest == EMPTY_ROOT => continue,
                    Reference::Root(digest) => (digest, Position::root(Trie::Storage)),
                    Reference::Node(digest, below) => (digest, below),
                };
                if let Some(next) = walk.refer(digests, digest, below)? {
                    open.push((next, below));
                }
            }
        }
        Ok(walk)
    }

    /// Follows a reference. Returns the index of the node if it is reached for the first time.
    fn refer(
        &mut self,
        digests: &Digests,
        digest: &[u8; 32],
        position: Position,
    ) -> Result<Option<usize>, WalkError> {
        // The empty node and the empty string, which some nodes of the network send, are not nodes of a trie.
        let is_node = *digest != EMPTY_ROOT && *digest != EMPTY_CODE;
        let Some(at) = digests.find(digest).filter(|_| is_node) else {
            self.absent += 1;
            return Ok(None);
        };
        // Tries may share nodes, but the path below a node fixes how deep it is: paths have one length.
        match &mut self.reached[at][position.trie as usize] {
            // A shared node is read once. Otherwise a witness of 64 branches, each of which names
            // the next one 16 times, would be a walk without end.
            Some(depth) if *depth == position.depth => Ok(None),
            Some(_) => Err(WalkError::Depth(at)),
            none => {
                *none = Some(position.depth);
                Ok(Some(at))
            }
        }
    }
}
