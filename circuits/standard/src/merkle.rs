//! The SHA-256 Merkle tree of a file, with one subcircuit per leaf and inner node.
//!
//! # The tree
//!
//! The file is split into leaves of `leaf-bytes` bytes; the last leaf is padded with zero bytes,
//! and an empty file has one leaf. With `H` = SHA-256 and `||` for concatenation:
//!
//! ```text
//! leaf          H(data || 00)                      iterated: H(.. H(H(data || 00) || 04) .. || 04)
//! first parent  H(left || right || 01)             of two leaves
//! inner parent  H(left || right || 02)             of two parents
//! root          H(left || right || length || 03)   file length in bytes, 8 bytes big-endian
//! ```
//!
//! Levels are built from left to right; 32 zero bytes stand in for a missing right child. Level 0
//! holds the leaves, level 1 the first parents, the levels above the inner parents, and the level
//! with one node is the root. A tree of one or two leaves is a root over leaves. With `iterations`
//! = t, a leaf is hashed t times in total. The tag at the end separates the kinds of nodes (all
//! messages of one kind have the same length). It also keeps the second block of a parent constant,
//! which saves its message schedule. `docs/merkle.py` computes the same root in ten lines of
//! Python.
//!
//! # What a proof shows
//!
//! The prover knows a file with this root and the circuit's number of leaves. The length in the
//! root is that of the file: it is the sum of the bytes in all leaves, and the last leaf is zero
//! after its last byte of the file.
//!
//! # The subcircuits
//!
//! The types are `leaf`, `first-parent`, `inner-parent`, `root` and `padding`; the last one has a
//! single instance, which supplies the 32 zero bytes and the number of bytes in a full leaf. A
//! digest is two shared wires of 128 bits, the more significant half first. Each leaf reads how
//! many bytes of the file it has: the last one from the root, the others from the padding
//! subcircuit. How many bytes precede the last leaf is a constant of the layout, so that all types
//! are the same for files of every length: one setup serves all of them. The public values are the two halves of the root. With `extra-wires` = x, each
//! subcircuit but the last writes x additional wires that the next one reads, for scaling
//! experiments.

use crate::sha256::DIGEST;
use hash::{EMPTY, NodeKind, leaf_digest, node_digest};
use hekaton_circuit::parts::{Wire, WiredCircuit, Wires};
use hekaton_circuit::{CircuitError, Fr, LayoutError};
use parts::{
    Leaf, LeafBytes, LeafReads, NodeWrites, Padding, PaddingWrites, Parent, ParentReads, Root,
    RootReads, RootWrites,
};

mod hash;
mod named;
mod parts;
#[cfg(test)]
mod tests;

/// The Merkle tree circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Merkle {
    /// The number of leaves, at least 1.
    pub leaves: usize,
    /// The number of bytes per leaf, at least 1.
    pub leaf_bytes: usize,
    /// The number of SHA-256 iterations per leaf, at least 1.
    pub iterations: usize,
    /// The number of shared wires from each subcircuit to the next, in addition to the digests.
    pub extra_wires: usize,
}

/// A node of the tree: its kind and, for parents, the positions of its children in the list of
/// nodes.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: NodeKind,
    children: Option<(usize, Option<usize>)>,
}

impl Merkle {
    /// Creates the circuit for a file of `length` bytes, with leaves of `leaf_bytes` bytes.
    pub fn for_length(length: usize, leaf_bytes: usize) -> Self {
        let whole = leaf_bytes.max(1);
        Self {
            leaves: length.div_ceil(whole).max(1),
            leaf_bytes: whole,
            iterations: 1,
            extra_wires: 0,
        }
    }

    /// All nodes, children before parents, the root last. The padding subcircuit follows and is not
    /// a node.
    fn nodes(&self) -> Vec<Node> {
        let mut nodes = vec![Node { kind: NodeKind::Leaf, children: None }; self.leaves];
        let mut level: Vec<usize> = (0..self.leaves).collect();
        let mut first = true;
        loop {
            // One or two nodes are below a root, even where they are leaves: the root hashes the length,
            // which no other node does.
            let kind = match (level.len() <= 2, first) {
                (true, _) => NodeKind::Root,
                (false, true) => NodeKind::FirstParent,
                (false, false) => NodeKind::InnerParent,
            };
            let start = nodes.len();
            nodes.extend(
                level
                    .chunks(2)
                    .map(|pair| Node { kind, children: Some((pair[0], pair.get(1).copied())) }),
            );
            level = (start..nodes.len()).collect();
            first = false;
            if kind == NodeKind::Root {
                return nodes;
            }
        }
    }

    /// The number of subcircuits: one for each node, and the padding.
    fn instances(&self) -> usize {
        let (mut count, mut level) = (self.leaves + 1, self.leaves);
        loop {
            let parents = level.div_ceil(2);
            count += parents;
            if level <= 2 {
                return count;
            }
            level = parents;
        }
    }

    /// The bytes of a leaf, padded, and how many of them belong to the file.
    fn leaf(&self, file: &[u8], i: usize) -> LeafBytes {
        let start = (i * self.leaf_bytes).min(file.len());
        let mut bytes = file[start..(start + self.leaf_bytes).min(file.len())].to_vec();
        let used = bytes.len();
        // Zeros, which the circuit requires behind the file's last byte: other padding would be part of a
        // file with the same root.
        bytes.resize(self.leaf_bytes, 0);
        LeafBytes { bytes, used }
    }

    /// The number of bytes in the leaves before the last.
    fn before_last(&self) -> u64 {
        (self.leaves as u64 - 1) * self.leaf_bytes as u64
    }

    fn check_length(&self, length: u64) -> Result<(), CircuitError> {
        let leaves = length.div_ceil(self.leaf_bytes.max(1) as u64).max(1);
        if leaves == self.leaves as u64 {
            return Ok(());
        }
        let noun = |leaves| if leaves == 1 { "leaf" } else { "leaves" };
        Err(format!(
            "the file has {length} bytes, which is {leaves} {} of {} bytes, but the circuit is for \
             {} {}: use keys or parameters with leaves={leaves}",
            noun(leaves),
            self.leaf_bytes,
            self.leaves,
            noun(self.leaves as u64),
        )
        .into())
    }

    /// Computes the root of a file's tree natively.
    ///
    /// # Errors
    /// If the file does not have the circuit's number of leaves.
    pub fn root(&self, file: &[u8]) -> Result<[u8; DIGEST], CircuitError> {
        self.check_length(file.len() as u64)?;
        let nodes = self.nodes();
        let mut digests: Vec<[u8; DIGEST]> = Vec::with_capacity(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            digests.push(match node.children {
                None => leaf_digest(&self.leaf(file, i).bytes, self.iterations),
                Some((left, right)) => {
                    let sibling = right.map_or(EMPTY, |i| digests[i]);
                    let length = (node.kind == NodeKind::Root).then_some(file.len() as u64);
                    node_digest(node.kind, &digests[left], &sibling, length)
                }
            });
        }
        Ok(*digests.last().expect("every tree has a root"))
    }
}

impl WiredCircuit for Merkle {
    type Input = [u8];

    /// One instance per node, in the order of the nodes, and the padding subcircuit. The order in
    /// which wires are declared determines their addresses, and so the keys.
    fn wire(&self, c: &mut Wires<[u8]>) -> Result<(), LayoutError> {
        if self.leaves == 0 || self.leaf_bytes == 0 || self.iterations == 0 {
            return Err(
                "a tree needs at least one leaf, one byte per leaf, and one iteration".into()
            );
        }
        let (circuit, nodes) = (*self, self.nodes());
        let digests: Vec<[Wire; 2]> = (0..nodes.len())
            .map(|i| [0, 1].map(|half| c.declare("digest", 2 * i as u64 + half)))
            .collect();
        let empty = [0, 1].map(|half| c.promise("empty", half, |_| Ok(Fr::default())));
        let full_bytes = self.leaf_bytes as u64;
        let full = c.promise("bytes of a full leaf", 0, move |_| Ok(Fr::from(full_bytes)));
        let rest = c.promise("bytes of the last leaf", 0, move |file| {
            circuit.check_length(file.len() as u64)?;
            Ok(Fr::from(circuit.leaf(file, circuit.leaves - 1).used as u64))
        });
        let before_last = c.constant(self.before_last());
        // The first subcircuit reads no additional wires, and those of the last are not read.
        let mut extra: Vec<Vec<Wire>> = vec![vec![c.unused(); self.extra_wires]];
        for i in 0..nodes.len() + 1 {
            let wire = |j| c.declare("extra", ((i + 1) * self.extra_wires + j) as u64);
            extra.push((0..self.extra_wires).map(wire).collect());
        }
        let (read, written) = (|i: usize| extra[i].clone(), |i: usize| extra[i + 1].clone());
        for (i, node) in nodes.iter().enumerate() {
            let (digest, extra) = (digests[i], self.extra_wires);
            let Some((left, right)) = node.children else {
                let Self { leaf_bytes, iterations, .. } = circuit;
                // All leaves but the last are full, so the lengths of all follow from one wire.
                let bytes = if i + 1 < self.leaves { full } else { rest };
                c.add_into(
                    &Leaf { leaf_bytes, iterations, extra },
                    LeafReads { bytes, extra: read(i) },
                    NodeWrites { digest, extra: written(i) },
                    move |file| Ok(circuit.leaf(file, i)),
                );
                continue;
            };
            let sibling = right.map_or(empty, |right| digests[right]);
            let children = ParentReads { left: digests[left], right: sibling, extra: read(i) };
            if node.kind == NodeKind::Root {
                let reads = RootReads { children, before_last };
                let writes = RootWrites { digest, rest, extra: written(i) };
                c.add_into(&Root { extra }, reads, writes, |file| Ok(file.len() as u64));
                (0..2).for_each(|half| c.output_at("root", half, digest[usize::from(half == 1)]));
            } else {
                let writes = NodeWrites { digest, extra: written(i) };
                c.add_into(&Parent { kind: node.kind, extra }, children, writes, |_| Ok(()));
            }
        }
        let padding = Padding { full: full_bytes, extra: self.extra_wires };
        let writes = PaddingWrites { empty, full, extra: written(nodes.len()) };
        // Last, so that the numbers of nodes are those of subcircuits.
        c.add_into(&padding, read(nodes.len()), writes, |_| Ok(()));
        Ok(())
    }
}
