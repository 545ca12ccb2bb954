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
use ark_ff::{BigInteger, Field, PrimeField};
use hekaton_circuit::ark::r1cs_std::GR1CSVar;
use hekaton_circuit::ark::r1cs_std::fields::fp::FpVar;
use hekaton_circuit::ark::relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::parts::{
    Access, Cs, Leaf as SlotLeaf, Part, Slot, Slots, Synthesized, Var, Wire, WiredCircuit, Wires,
};
use hekaton_circuit::{CircuitError, Fr, LayoutError};
use sha2::{Digest as _, Sha256};

mod named;
#[cfg(test)]
mod tests;

/// The digest that stands in for a missing right child.
const EMPTY: [u8; DIGEST] = [0; DIGEST];

/// The tag of a leaf's later iterations; messages of nodes end with the tags 0 to 3.
const ITERATION_TAG: u8 = 4;

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

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Leaf,
    FirstParent,
    InnerParent,
    Root,
}

impl Kind {
    const fn tag(self) -> u8 {
        match self {
            Self::Leaf => 0,
            Self::FirstParent => 1,
            Self::InnerParent => 2,
            Self::Root => 3,
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

    /// The bytes of a leaf, padded, and how many of them belong to the file.
    fn leaf(&self, file: &[u8], i: usize) -> LeafBytes {
        let start = (i * self.leaf_bytes).min(file.len());
        let mut bytes = file[start..(start + self.leaf_bytes).min(file.len())].to_vec();
        let used = bytes.len();
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
                    let right = right.map_or(EMPTY, |i| digests[i]);
                    let length = (node.kind == Kind::Root).then_some(file.len() as u64);
                    node_digest(node.kind, &digests[left], &right, length)
                }
            });
        }
        Ok(digests.last().copied().unwrap_or(EMPTY))
    }
}

/// The digest of a leaf.
fn leaf_digest(bytes: &[u8], iterations: usize) -> [u8; DIGEST] {
    let first = Sha256::new().chain_update(bytes).chain_update([Kind::Leaf.tag()]).finalize();
    (1..iterations).fold(first.into(), |digest: [u8; DIGEST], _| {
        Sha256::new().chain_update(digest).chain_update([ITERATION_TAG]).finalize().into()
    })
}

/// The digest of a parent; the root also hashes the length of the file.
fn node_digest(
    kind: Kind,
    left: &[u8; DIGEST],
    right: &[u8; DIGEST],
    length: Option<u64>,
) -> [u8; DIGEST] {
    let mut hasher = Sha256::new().chain_update(left).chain_update(right);
    if let Some(length) = length {
        hasher.update(length.to_be_bytes());
    }
    hasher.chain_update([kind.tag()]).finalize().into()
}

/// A digest from its halves; `None` unless each is below 2^128.
fn join_halves(halves: &[Fr]) -> Option<[u8; DIGEST]> {
    let [high, low] = halves else { return None };
    let mut out = [0; DIGEST];
    for (chunk, half) in out.chunks_exact_mut(16).zip([high, low]) {
        let bytes = half.into_bigint().to_bytes_be();
        let (zeros, value) = bytes.split_at(16);
        if zeros.iter().any(|b| *b != 0) {
            return None;
        }
        chunk.copy_from_slice(value);
    }
    Some(out)
}

/// The values of the additional wires that a subcircuit writes. Any values will do, because only
/// the memory check constrains them. Full-size ones are the realistic case for benchmarks.
fn extra_values(read: &[Fr]) -> Vec<Fr> {
    let next = |x: &Fr| Some(x.square() + Fr::from(3u64));
    let first = read.last().copied().unwrap_or_default();
    std::iter::successors(next(&first), next).take(read.len()).collect()
}

/// The order of the slots of a node: its own, then the additional wires.
fn order(own: &[Access], extra: usize) -> Vec<Access> {
    [own, &vec![Access::Read; extra], &vec![Access::Write; extra]].concat()
}

/// The additional slots, which are in no constraint of the node.
fn extra_slots(own: usize, extra: usize) -> Vec<usize> {
    (own..own + 2 * extra).collect()
}

/// The variable of a slot.
fn variable(slot: &Var) -> Result<Variable, SynthesisError> {
    match slot {
        FpVar::Var(v) => Ok(v.variable),
        FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
    }
}

fn variables(slots: &[Var; 2]) -> Result<[Variable; 2], SynthesisError> {
    Ok([variable(&slots[0])?, variable(&slots[1])?])
}

const READ: Access = Access::Read;
const WRITE: Access = Access::Write;

/// What a leaf or a parent writes.
#[derive(Clone, Debug, Slots)]
struct NodeWrites<W> {
    digest: [W; 2],
    extra: Vec<W>,
}

/// A leaf of the tree.
#[derive(Clone, Debug, PartialEq)]
struct Leaf {
    leaf_bytes: usize,
    iterations: usize,
    /// Whether there are several leaves: then none is empty.
    several: bool,
    extra: usize,
}

/// The private input of a leaf.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct LeafBytes {
    /// The bytes of the leaf, padded.
    bytes: Vec<u8>,
    /// The number of bytes that belong to the file.
    used: usize,
}

#[derive(Clone, Debug, Slots)]
struct LeafReads<W> {
    /// How many bytes of the file the leaf has.
    bytes: W,
    extra: Vec<W>,
}

impl Part for Leaf {
    const NAME: &'static str = "leaf";
    type Reads<W: SlotLeaf> = LeafReads<W>;
    type Writes<W: SlotLeaf> = NodeWrites<W>;
    type Private = LeafBytes;

    fn reads(&self) -> LeafReads<Slot> {
        LeafReads { bytes: Slot, extra: vec![Slot; self.extra] }
    }

    fn writes(&self) -> NodeWrites<Slot> {
        NodeWrites { digest: [Slot; 2], extra: vec![Slot; self.extra] }
    }

    fn order(&self, _: usize, _: usize) -> Vec<Access> {
        order(&[WRITE, WRITE, READ], self.extra)
    }

    fn unconstrained(&self) -> Vec<usize> {
        extra_slots(3, self.extra)
    }

    fn run(&self, reads: &LeafReads<Fr>, leaf: &LeafBytes) -> Result<NodeWrites<Fr>, CircuitError> {
        let digest = digest_halves(&leaf_digest(&leaf.bytes, self.iterations));
        Ok(NodeWrites { digest, extra: extra_values(&reads.extra) })
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &LeafReads<Var>,
        writes: &NodeWrites<Var>,
        leaf: Option<&LeafBytes>,
    ) -> Synthesized {
        let data = Message::new().witness(&cs, self.leaf_bytes, leaf.map(|l| &l.bytes[..]))?;
        // Ties the number of bytes to the padding, so that the length in the root is the file's.
        // With several leaves none is empty: that file would have fewer leaves.
        data.enforce_filling(&cs, variable(&reads.bytes)?, leaf.map(|l| l.used), self.several)?;
        let mut digest = data.constant(&[Kind::Leaf.tag()]).sha256(&cs)?;
        for _ in 1..self.iterations {
            digest = Message::new().digest(&digest).constant(&[ITERATION_TAG]).sha256(&cs)?;
        }
        enforce_digest(&cs, &digest, &writes.digest)
    }
}

/// Constrains a digest to equal two wires.
fn enforce_digest(cs: &Cs, digest: &crate::sha256::Digest, wires: &[Var; 2]) -> Synthesized {
    enforce_half(cs, &digest[..4], variable(&wires[0])?)?;
    enforce_half(cs, &digest[4..], variable(&wires[1])?)
}

#[derive(Clone, Debug, Slots)]
struct ParentReads<W> {
    left: [W; 2],
    right: [W; 2],
    extra: Vec<W>,
}

impl ParentReads<Slot> {
    fn slots(extra: usize) -> Self {
        Self { left: [Slot; 2], right: [Slot; 2], extra: vec![Slot; extra] }
    }
}

impl ParentReads<Fr> {
    /// The digests of the children.
    fn children(&self) -> Result<[[u8; DIGEST]; 2], CircuitError> {
        let child = |halves| join_halves(halves).ok_or("a wire does not hold half a digest");
        Ok([child(&self.left)?, child(&self.right)?])
    }
}

impl ParentReads<Var> {
    /// The message that starts with the digests of the children.
    fn message(&self, cs: &Cs) -> Result<Message, SynthesisError> {
        let child = |halves: &[Var; 2]| {
            // The bytes of the witness; a wire that does not hold half a digest fails a constraint.
            let value = halves[0].value().ok().zip(halves[1].value().ok());
            let bytes = value.map(|(high, low)| join_halves(&[high, low]).unwrap_or(EMPTY));
            digest_from_wires(cs, variables(halves)?, bytes)
        };
        Ok(Message::new().digest(&child(&self.left)?).digest(&child(&self.right)?))
    }
}

/// A parent of leaves, or of parents.
#[derive(Clone, Debug, PartialEq)]
struct Parent {
    kind: Kind,
    extra: usize,
}

impl Part for Parent {
    const NAME: &'static str = "inner-parent";
    type Reads<W: SlotLeaf> = ParentReads<W>;
    type Writes<W: SlotLeaf> = NodeWrites<W>;
    type Private = ();

    fn name(&self) -> String {
        match self.kind {
            Kind::FirstParent => "first-parent".into(),
            _ => Self::NAME.into(),
        }
    }

    fn reads(&self) -> ParentReads<Slot> {
        ParentReads::slots(self.extra)
    }

    fn writes(&self) -> NodeWrites<Slot> {
        NodeWrites { digest: [Slot; 2], extra: vec![Slot; self.extra] }
    }

    fn order(&self, _: usize, _: usize) -> Vec<Access> {
        order(&[WRITE, WRITE, READ, READ, READ, READ], self.extra)
    }

    fn unconstrained(&self) -> Vec<usize> {
        extra_slots(6, self.extra)
    }

    fn run(&self, reads: &ParentReads<Fr>, (): &()) -> Result<NodeWrites<Fr>, CircuitError> {
        let [left, right] = reads.children()?;
        let digest = digest_halves(&node_digest(self.kind, &left, &right, None));
        Ok(NodeWrites { digest, extra: extra_values(&reads.extra) })
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &ParentReads<Var>,
        writes: &NodeWrites<Var>,
        _: Option<&()>,
    ) -> Synthesized {
        let digest = reads.message(&cs)?.constant(&[self.kind.tag()]).sha256(&cs)?;
        enforce_digest(&cs, &digest, &writes.digest)
    }
}

/// The root, which also hashes the length of the file; the length is its private input.
#[derive(Clone, Debug, PartialEq)]
struct Root {
    /// The number of bytes in the leaves before the last.
    before_last: u64,
    extra: usize,
}

#[derive(Clone, Debug, Slots)]
struct RootWrites<W> {
    digest: [W; 2],
    /// How many bytes of the file the last leaf has.
    rest: W,
    extra: Vec<W>,
}

impl Part for Root {
    const NAME: &'static str = "root";
    type Reads<W: SlotLeaf> = ParentReads<W>;
    type Writes<W: SlotLeaf> = RootWrites<W>;
    type Private = u64;

    fn reads(&self) -> ParentReads<Slot> {
        ParentReads::slots(self.extra)
    }

    fn writes(&self) -> RootWrites<Slot> {
        RootWrites { digest: [Slot; 2], rest: Slot, extra: vec![Slot; self.extra] }
    }

    fn order(&self, _: usize, _: usize) -> Vec<Access> {
        order(&[WRITE, WRITE, READ, READ, READ, READ, WRITE], self.extra)
    }

    fn unconstrained(&self) -> Vec<usize> {
        extra_slots(7, self.extra)
    }

    fn run(&self, reads: &ParentReads<Fr>, length: &u64) -> Result<RootWrites<Fr>, CircuitError> {
        let [left, right] = reads.children()?;
        let digest = digest_halves(&node_digest(Kind::Root, &left, &right, Some(*length)));
        let rest = Fr::from(*length) - Fr::from(self.before_last);
        Ok(RootWrites { digest, rest, extra: extra_values(&reads.extra) })
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &ParentReads<Var>,
        writes: &RootWrites<Var>,
        length: Option<&u64>,
    ) -> Synthesized {
        let length = length.map(|length| length.to_be_bytes());
        let message = reads.message(&cs)?.witness(&cs, 8, length.as_ref().map(|l| &l[..]))?;
        // The hashed length is that of the full leaves plus what the last leaf has.
        message.enforce_number(&cs, 8, self.before_last, variable(&writes.rest)?)?;
        let digest = message.constant(&[Kind::Root.tag()]).sha256(&cs)?;
        enforce_digest(&cs, &digest, &writes.digest)
    }
}

/// The only writer of the constants, so no prover can choose them.
#[derive(Clone, Debug, PartialEq)]
struct Padding {
    /// The number of bytes in a full leaf, if there are leaves before the last.
    full: Option<u64>,
    extra: usize,
}

#[derive(Clone, Debug, Slots)]
struct PaddingWrites<W> {
    empty: [W; 2],
    full: W,
    extra: Vec<W>,
}

impl Part for Padding {
    const NAME: &'static str = "padding";
    type Reads<W: SlotLeaf> = Vec<W>;
    type Writes<W: SlotLeaf> = PaddingWrites<W>;
    type Private = ();

    fn reads(&self) -> Vec<Slot> {
        vec![Slot; self.extra]
    }

    fn writes(&self) -> PaddingWrites<Slot> {
        PaddingWrites { empty: [Slot; 2], full: Slot, extra: vec![Slot; self.extra] }
    }

    fn order(&self, _: usize, _: usize) -> Vec<Access> {
        order(&[WRITE; 3], self.extra)
    }

    fn unconstrained(&self) -> Vec<usize> {
        let mut slots = extra_slots(3, self.extra);
        // Without leaves before the last, nobody reads the number.
        slots.extend(self.full.is_none().then_some(2));
        slots
    }

    fn run(&self, extra: &Vec<Fr>, (): &()) -> Result<PaddingWrites<Fr>, CircuitError> {
        let full = Fr::from(self.full.unwrap_or_default());
        Ok(PaddingWrites { empty: [Fr::default(); 2], full, extra: extra_values(extra) })
    }

    fn synthesize(
        &self,
        cs: Cs,
        _: &Vec<Var>,
        writes: &PaddingWrites<Var>,
        _: Option<&()>,
    ) -> Synthesized {
        for slot in variables(&writes.empty)? {
            cs.enforce_r1cs_constraint(
                || slot.into(),
                || Variable::One.into(),
                LinearCombination::zero,
            )?;
        }
        if let Some(full) = self.full {
            let (full, slot) = (Fr::from(full), variable(&writes.full)?);
            let constant = || LinearCombination(vec![(full, Variable::One)]);
            cs.enforce_r1cs_constraint(|| slot.into(), || Variable::One.into(), constant)?;
        }
        Ok(())
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
        let several = self.leaves > 1;
        let full_bytes = if several { self.leaf_bytes as u64 } else { 0 };
        let full = c.promise("bytes of a full leaf", 0, move |_| Ok(Fr::from(full_bytes)));
        let rest = c.promise("bytes of the last leaf", 0, move |file| {
            circuit.check_length(file.len() as u64)?;
            Ok(Fr::from(circuit.leaf(file, circuit.leaves - 1).used as u64))
        });
        // The first subcircuit reads no additional wires, and nobody reads those of the last.
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
                let bytes = if i + 1 < self.leaves { full } else { rest };
                c.add_into(
                    &Leaf { leaf_bytes, iterations, several, extra },
                    LeafReads { bytes, extra: read(i) },
                    NodeWrites { digest, extra: written(i) },
                    move |file| Ok(circuit.leaf(file, i)),
                );
                continue;
            };
            let right = right.map_or(empty, |right| digests[right]);
            let reads = ParentReads { left: digests[left], right, extra: read(i) };
            if node.kind == Kind::Root {
                let root = Root { before_last: self.before_last(), extra };
                let writes = RootWrites { digest, rest, extra: written(i) };
                c.add_into(&root, reads, writes, |file| Ok(file.len() as u64));
                (0..2).for_each(|half| c.output_at("root", half, digest[usize::from(half == 1)]));
            } else {
                let writes = NodeWrites { digest, extra: written(i) };
                c.add_into(&Parent { kind: node.kind, extra }, reads, writes, |_| Ok(()));
            }
        }
        let padding = Padding { full: several.then_some(full_bytes), extra: self.extra_wires };
        let writes = PaddingWrites { empty, full, extra: written(nodes.len()) };
        c.add_into(&padding, read(nodes.len()), writes, |_| Ok(()));
        Ok(())
    }
}
