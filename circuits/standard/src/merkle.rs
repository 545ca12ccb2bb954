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
//! subcircuit. The public values are the two halves of the root. With `extra-wires` = x, each
//! subcircuit but the last writes x additional wires that the next one reads, for scaling
//! experiments.

use crate::sha256::{DIGEST, Message, digest_from_wires, digest_halves, enforce_half};
use ark_ff::Field;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, Layout, LayoutBuilder, LayoutError, Subcircuit, WireId,
    WireValues,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use std::borrow::Cow;

/// The digest that stands in for a missing right child.
const EMPTY: [u8; DIGEST] = [0; DIGEST];

/// The tag of a leaf's later iterations; messages of nodes end with the tags 0 to 3.
const ITERATION_TAG: u8 = 4;

/// The Merkle tree circuit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// The private input of a subcircuit, in addition to its shared wires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Private {
    /// The private input of a leaf.
    Leaf {
        /// The bytes of the leaf, padded.
        bytes: Vec<u8>,
        /// The number of bytes that belong to the file.
        used: usize,
    },
    /// The private input of an inner node.
    Node {
        /// The digest of the left child.
        left: [u8; DIGEST],
        /// The digest of the right child.
        right: [u8; DIGEST],
        /// The length of the file in bytes, which only the root uses.
        length: u64,
    },
    /// The padding subcircuit has no private input.
    Padding,
}

/// The kinds of subcircuits, in the order of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Leaf,
    FirstParent,
    InnerParent,
    Root,
    Padding,
}

impl Kind {
    const ALL: [Self; 5] =
        [Self::Leaf, Self::FirstParent, Self::InnerParent, Self::Root, Self::Padding];

    fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::FirstParent => "first-parent",
            Self::InnerParent => "inner-parent",
            Self::Root => "root",
            Self::Padding => "padding",
        }
    }

    fn tag(self) -> u8 {
        match self {
            Self::FirstParent => 1,
            Self::InnerParent => 2,
            Self::Root => 3,
            Self::Leaf | Self::Padding => 0,
        }
    }

    /// The number of slots without extra wires: the digest of the node (2), then those of its
    /// children (4), or for a leaf its number of bytes (1). The root also has the bytes of the last
    /// leaf (1).
    fn own_slots(self) -> usize {
        match self {
            Self::Leaf | Self::Padding => 3,
            Self::Root => 7,
            Self::FirstParent | Self::InnerParent => 6,
        }
    }
}

/// A node of the tree: its kind and, for parents, the positions of its children in the list of
/// nodes.
#[derive(Clone, Copy, Debug)]
struct Node {
    kind: Kind,
    children: Option<(usize, Option<usize>)>,
}

impl Merkle {
    /// Creates the circuit for a file of `length` bytes, with leaves of `leaf_bytes` bytes.
    pub fn for_length(length: usize, leaf_bytes: usize) -> Self {
        let leaf_bytes = leaf_bytes.max(1);
        Self {
            leaves: length.div_ceil(leaf_bytes).max(1),
            leaf_bytes,
            iterations: 1,
            extra_wires: 0,
        }
    }

    /// All nodes, children before parents, the root last. The padding subcircuit follows and is not
    /// a node.
    fn nodes(&self) -> Vec<Node> {
        let mut nodes = vec![Node { kind: Kind::Leaf, children: None }; self.leaves];
        let mut level: Vec<usize> = (0..self.leaves).collect();
        let mut first = true;
        loop {
            let kind = match (level.len() <= 2, first) {
                (true, _) => Kind::Root,
                (false, true) => Kind::FirstParent,
                (false, false) => Kind::InnerParent,
            };
            let start = nodes.len();
            nodes.extend(
                level
                    .chunks(2)
                    .map(|pair| Node { kind, children: Some((pair[0], pair.get(1).copied())) }),
            );
            level = (start..nodes.len()).collect();
            first = false;
            if kind == Kind::Root {
                return nodes;
            }
        }
    }

    /// The kinds that occur, in the order of the layout's types.
    fn kinds(&self) -> Vec<Kind> {
        let occurs = |kind| match kind {
            Kind::FirstParent => self.leaves > 2,
            Kind::InnerParent => self.leaves > 4,
            _ => true,
        };
        Kind::ALL.into_iter().filter(|k| occurs(*k)).collect()
    }

    fn slots(&self, kind: Kind) -> usize {
        kind.own_slots() + 2 * self.extra_wires
    }

    /// The layout and its wires.
    fn build(&self) -> Result<(Layout, Wires), LayoutError> {
        if self.leaves == 0 || self.leaf_bytes == 0 || self.iterations == 0 {
            return Err(LayoutError::Empty);
        }
        let mut layout = Layout::builder();
        let kinds = self.kinds();
        let types: Vec<_> =
            kinds.iter().map(|k| layout.subcircuit_type(k.name(), self.slots(*k))).collect();
        let kind_type = |kind: Kind| kinds.iter().position(|k| *k == kind).map(|i| types[i]);
        let nodes = self.nodes();
        let wires = self.wires(&mut layout, &nodes);
        // One instance per node, in the order of the nodes; `private_input` relies on it.
        for (i, node) in nodes.iter().enumerate() {
            let Some(kind) = kind_type(node.kind) else { continue };
            let instance = layout.instance(kind);
            self.place_node(&mut layout, &wires, i, node, instance);
            self.place_extra(&mut layout, &wires, i, node.kind, instance);
        }
        // The padding subcircuit is the only writer of the constants, so no prover can choose them.
        if let Some(kind) = kind_type(Kind::Padding) {
            let instance = layout.instance(kind);
            (0..2).for_each(|half| match wires.empty {
                Some(empty) => layout.write(instance, half, empty[half]),
                None => layout.unused(instance, half),
            });
            match wires.full {
                Some(full) => layout.write(instance, 2, full),
                None => layout.unused(instance, 2),
            }
            self.place_extra(&mut layout, &wires, nodes.len(), Kind::Padding, instance);
        }
        Ok((layout.build()?, wires))
    }

    /// Declares all wires. Their order determines their addresses, and so the keys.
    fn wires(&self, layout: &mut LayoutBuilder, nodes: &[Node]) -> Wires {
        let last = nodes.len() - 1;
        let pair = |layout: &mut LayoutBuilder, name, i: usize| {
            [0, 1].map(|half| layout.wire(name, 2 * i as u64 + half))
        };
        let mut digests = Vec::with_capacity(nodes.len());
        for i in 0..nodes.len() {
            digests.push(if i == last {
                [0, 1].map(|half| layout.public_output("root", half))
            } else {
                pair(layout, "digest", i)
            });
        }
        let missing = nodes.iter().any(|n| matches!(n.children, Some((_, None))));
        let empty = missing.then(|| pair(layout, "empty", 0));
        let full = (self.leaves > 1).then(|| layout.wire("bytes of a full leaf", 0));
        let rest = layout.wire("bytes of the last leaf", 0);
        let count = nodes.len() + 1;
        let extra: Vec<Vec<WireId>> = (1..count)
            .map(|i| {
                (0..self.extra_wires)
                    .map(|j| layout.wire("extra", (i * self.extra_wires + j) as u64))
                    .collect()
            })
            .collect();
        Wires { digests, empty, full, rest, extra }
    }

    /// Places the wires of a node, in the slots that `synthesize` expects.
    fn place_node(
        &self,
        layout: &mut LayoutBuilder,
        wires: &Wires,
        i: usize,
        node: &Node,
        instance: InstanceId,
    ) {
        (0..2).for_each(|half| layout.write(instance, half, wires.digests[i][half]));
        match node.kind {
            Kind::Leaf => {
                let full = wires.full.filter(|_| i + 1 < self.leaves);
                layout.read(instance, 2, full.unwrap_or(wires.rest));
            }
            Kind::Root => layout.write(instance, 6, wires.rest),
            _ => {}
        }
        if let Some((left, right)) = node.children {
            let right = right.map(|i| wires.digests[i]).or(wires.empty);
            for half in 0..2 {
                layout.read(instance, 2 + half, wires.digests[left][half]);
                if let Some(right) = right {
                    layout.read(instance, 4 + half, right[half]);
                }
            }
        }
    }

    /// Places the extra wires of subcircuit i after its other slots: those of its predecessor, then
    /// its own.
    fn place_extra(
        &self,
        layout: &mut LayoutBuilder,
        wires: &Wires,
        i: usize,
        kind: Kind,
        instance: InstanceId,
    ) {
        let first = kind.own_slots();
        for j in 0..self.extra_wires {
            match i.checked_sub(1) {
                Some(before) => layout.read(instance, first + j, wires.extra[before][j]),
                None => layout.unused(instance, first + j),
            }
            match wires.extra.get(i) {
                Some(wires) => layout.write(instance, first + self.extra_wires + j, wires[j]),
                None => layout.unused(instance, first + self.extra_wires + j),
            }
        }
    }

    /// The bytes of a leaf, padded.
    fn leaf<'f>(&self, file: &'f [u8], i: usize) -> Cow<'f, [u8]> {
        let start = (i * self.leaf_bytes).min(file.len());
        let bytes = &file[start..(start + self.leaf_bytes).min(file.len())];
        if bytes.len() == self.leaf_bytes {
            return Cow::Borrowed(bytes);
        }
        let mut filled = bytes.to_vec();
        filled.resize(self.leaf_bytes, 0);
        Cow::Owned(filled)
    }

    /// The number of the file's bytes in a leaf.
    fn used(&self, file: &[u8], i: usize) -> usize {
        file.len().saturating_sub(i * self.leaf_bytes).min(self.leaf_bytes)
    }

    /// The number of bytes in the leaves before the last.
    fn before_last(&self) -> u64 {
        (self.leaves as u64 - 1) * self.leaf_bytes as u64
    }

    fn check_length(&self, file: &[u8]) -> Result<(), CircuitError> {
        let leaves = file.len().div_ceil(self.leaf_bytes.max(1)).max(1);
        if leaves == self.leaves {
            return Ok(());
        }
        let noun = |leaves| if leaves == 1 { "leaf" } else { "leaves" };
        Err(format!(
            "the file has {} bytes, which is {leaves} {} of {} bytes, but the circuit is for {} {}: \
             use keys or parameters with leaves={leaves}",
            file.len(),
            noun(leaves),
            self.leaf_bytes,
            self.leaves,
            noun(self.leaves),
        )
        .into())
    }

    /// Computes the tree of a file natively.
    fn tree(&self, file: &[u8]) -> Result<Tree, CircuitError> {
        self.check_length(file)?;
        let nodes = self.nodes();
        let mut digests: Vec<[u8; DIGEST]> = Vec::with_capacity(nodes.len());
        for (i, node) in nodes.iter().enumerate() {
            let digest = match node.children {
                None => {
                    let first: [u8; DIGEST] = Sha256::new()
                        .chain_update(self.leaf(file, i))
                        .chain_update([0])
                        .finalize()
                        .into();
                    (1..self.iterations).fold(first, |d, _| {
                        Sha256::new()
                            .chain_update(d)
                            .chain_update([ITERATION_TAG])
                            .finalize()
                            .into()
                    })
                }
                Some((left, right)) => {
                    let right = right.map_or(EMPTY, |i| digests[i]);
                    let mut hasher = Sha256::new().chain_update(digests[left]).chain_update(right);
                    if node.kind == Kind::Root {
                        hasher.update((file.len() as u64).to_be_bytes());
                    }
                    hasher.chain_update([node.kind.tag()]).finalize().into()
                }
            };
            digests.push(digest);
        }
        Ok(Tree { nodes, digests })
    }

    /// Computes the root of a file's tree natively.
    ///
    /// # Errors
    /// If the file does not have the circuit's number of leaves.
    pub fn root(&self, file: &[u8]) -> Result<[u8; DIGEST], CircuitError> {
        Ok(self.tree(file)?.digests.last().copied().unwrap_or(EMPTY))
    }
}

/// The tree of a file: all nodes and their digests, the root last.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    digests: Vec<[u8; DIGEST]>,
}

/// The wires of the layout.
struct Wires {
    /// The digests by node; those of the root are public.
    digests: Vec<[WireId; 2]>,
    /// The digest of a missing right child, if one is missing.
    empty: Option<[WireId; 2]>,
    /// The number of bytes in a full leaf, if there are leaves before the last.
    full: Option<WireId>,
    /// The number of the file's bytes in the last leaf.
    rest: WireId,
    /// The extra wires from subcircuit i to i + 1.
    extra: Vec<Vec<WireId>>,
}

impl Circuit for Merkle {
    type Input = [u8];
    type Trace = Tree;
    type Private = Private;

    fn layout(&self) -> Result<Layout, LayoutError> {
        Ok(self.build()?.0)
    }

    fn execute(&self, file: &[u8], values: &mut WireValues) -> Result<Tree, CircuitError> {
        let (_, wires) = self.build()?;
        let tree = self.tree(file)?;
        for (wires, digest) in wires.digests.iter().zip(&tree.digests) {
            wires
                .iter()
                .zip(digest_halves(digest))
                .for_each(|(wire, half)| values.set(*wire, half));
        }
        for wire in wires.empty.iter().flatten() {
            values.set(*wire, Fr::default());
        }
        wires.full.into_iter().for_each(|wire| values.set(wire, Fr::from(self.leaf_bytes as u64)));
        values.set(wires.rest, Fr::from(self.used(file, self.leaves - 1) as u64));
        // Any values will do, because only the memory check constrains them. Full-size ones are the
        // realistic case for benchmarks.
        let mut x = Fr::from(3u64);
        for wire in wires.extra.iter().flatten() {
            x = x.square() + Fr::ONE;
            values.set(*wire, x);
        }
        Ok(tree)
    }

    fn private_input(
        &self,
        file: &[u8],
        tree: &Tree,
        instance: InstanceId,
    ) -> Result<Private, CircuitError> {
        let Some(node) = tree.nodes.get(instance.index()) else { return Ok(Private::Padding) };
        Ok(match node.children {
            None => Private::Leaf {
                bytes: self.leaf(file, instance.index()).into_owned(),
                used: self.used(file, instance.index()),
            },
            Some((left, right)) => Private::Node {
                left: tree.digests[left],
                right: right.map_or(EMPTY, |i| tree.digests[i]),
                length: file.len() as u64,
            },
        })
    }

    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&Private>,
    ) -> Result<(), SynthesisError> {
        let cs = subcircuit.cs();
        let kind = self.kinds()[subcircuit.kind().index()];
        let wire = |slot: usize| match subcircuit.slot(slot)? {
            FpVar::Var(v) => Ok(v.variable),
            FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
        };
        let digest = match (kind, private) {
            // Constants: zero halves, and the number of bytes in a full leaf.
            (Kind::Padding, _) => {
                for half in 0..2 {
                    let slot = wire(half)?;
                    cs.enforce_r1cs_constraint(
                        || slot.into(),
                        || Variable::One.into(),
                        LinearCombination::zero,
                    )?;
                }
                if self.leaves > 1 {
                    let (full, slot) = (Fr::from(self.leaf_bytes as u64), wire(2)?);
                    let constant = || LinearCombination(vec![(full, Variable::One)]);
                    cs.enforce_r1cs_constraint(|| slot.into(), || Variable::One.into(), constant)?;
                }
                return Ok(());
            }
            (Kind::Leaf, None | Some(Private::Leaf { .. })) => {
                let (bytes, used) = match private {
                    Some(Private::Leaf { bytes, used }) => (Some(&bytes[..]), Some(*used)),
                    _ => (None, None),
                };
                let data = Message::new().witness(&cs, self.leaf_bytes, bytes)?;
                // Ties the number of bytes to the padding, so that the length in the root is the
                // file's. With several leaves none is empty: that file would have fewer leaves.
                data.enforce_filling(&cs, wire(2)?, used, self.leaves > 1)?;
                let mut digest = data.constant(&[0]).sha256(&cs)?;
                for _ in 1..self.iterations {
                    digest =
                        Message::new().digest(&digest).constant(&[ITERATION_TAG]).sha256(&cs)?;
                }
                digest
            }
            (_, None | Some(Private::Node { .. })) => {
                let (left, right, length) = match private {
                    Some(Private::Node { left, right, length }) => {
                        (Some(*left), Some(*right), Some(length.to_be_bytes()))
                    }
                    _ => (None, None, None),
                };
                let left = digest_from_wires(&cs, [wire(2)?, wire(3)?], left)?;
                let right = digest_from_wires(&cs, [wire(4)?, wire(5)?], right)?;
                let mut message = Message::new().digest(&left).digest(&right);
                if kind == Kind::Root {
                    message = message.witness(&cs, 8, length.as_ref().map(|l| &l[..]))?;
                    // The hashed length is that of the full leaves plus what the last leaf has.
                    message.enforce_number(&cs, 8, self.before_last(), wire(6)?)?;
                }
                message.constant(&[kind.tag()]).sha256(&cs)?
            }
            _ => return Err(SynthesisError::Unsatisfiable),
        };
        enforce_half(&cs, &digest[..4], wire(0)?)?;
        enforce_half(&cs, &digest[4..], wire(1)?)
    }
}

mod named;
#[cfg(test)]
mod tests;
