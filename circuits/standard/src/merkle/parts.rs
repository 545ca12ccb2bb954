//! The types of subcircuits, as parts.

use super::hash::{EMPTY, ITERATION_TAG, NodeKind, join_halves, leaf_digest, node_digest};
use crate::sha256::{DIGEST, Message, digest_from_wires, digest_halves, enforce_half};
use ark_ff::Field;
use hekaton_circuit::ark::r1cs_std::GR1CSVar;
use hekaton_circuit::ark::r1cs_std::fields::fp::FpVar;
use hekaton_circuit::ark::relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::parts::{Access, Cs, Leaf as SlotLeaf, Part, Slot, Slots, Synthesized, Var};
use hekaton_circuit::{CircuitError, Fr, Subcircuit};

/// The values of the additional wires that a subcircuit writes. Any values will do, because only
/// the memory check constrains them. Full-size ones are the realistic case for benchmarks.
fn extra_values(read: &[Fr]) -> Vec<Fr> {
    let next = |x: &Fr| Some(x.square() + Fr::from(3u64));
    let Some(last) = read.last() else { return Vec::new() };
    std::iter::successors(next(last), next).take(read.len()).collect()
}

/// The order of the slots of a node: its own, then the additional wires.
fn order(own: &[Access], extra: usize) -> Vec<Access> {
    // Fixed by keys: another order would be another layout.
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

/// The values that a leaf or a parent writes.
#[derive(Clone, Debug, Slots)]
pub(super) struct NodeWrites<W> {
    pub(super) digest: [W; 2],
    pub(super) extra: Vec<W>,
}

/// A leaf of the tree.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Leaf {
    pub(super) leaf_bytes: usize,
    pub(super) iterations: usize,
    pub(super) extra: usize,
}

/// The private input of a leaf.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct LeafBytes {
    /// The bytes of the leaf, padded.
    pub(super) bytes: Vec<u8>,
    /// The number of bytes that belong to the file.
    pub(super) used: usize,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct LeafReads<W> {
    /// The number of bytes of the file that the leaf has.
    pub(super) bytes: W,
    pub(super) extra: Vec<W>,
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
        let bytes = || Message::new().witness(&cs, self.leaf_bytes, leaf.map(|l| &l.bytes[..]));
        let data = Subcircuit::given(&cs, bytes)?;
        // Ties the number of bytes to the padding, so that the length in the root is the file's.
        data.enforce_filling(&cs, variable(&reads.bytes)?, leaf.map(|l| l.used))?;
        let mut digest = data.constant(&[NodeKind::Leaf.tag()]).sha256(&cs)?;
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
pub(super) struct ParentReads<W> {
    pub(super) left: [W; 2],
    pub(super) right: [W; 2],
    pub(super) extra: Vec<W>,
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
pub(super) struct Parent {
    pub(super) kind: NodeKind,
    pub(super) extra: usize,
}

impl Part for Parent {
    const NAME: &'static str = "inner-parent";
    type Reads<W: SlotLeaf> = ParentReads<W>;
    type Writes<W: SlotLeaf> = NodeWrites<W>;
    type Private = ();

    fn name(&self) -> String {
        match self.kind {
            NodeKind::FirstParent => "first-parent".into(),
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
        // The second block is constant: tag, padding and length. Its message schedule costs no rows.
        let digest = reads.message(&cs)?.constant(&[self.kind.tag()]).sha256(&cs)?;
        enforce_digest(&cs, &digest, &writes.digest)
    }
}

/// The root, which also hashes the length of the file; the length is its private input.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Root {
    pub(super) extra: usize,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct RootReads<W> {
    pub(super) children: ParentReads<W>,
    /// The number of bytes in the leaves before the last: a constant of the layout, so that the root
    /// has the same constraints in trees of all sizes.
    pub(super) before_last: W,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct RootWrites<W> {
    pub(super) digest: [W; 2],
    /// The number of bytes of the file that the last leaf has.
    pub(super) rest: W,
    pub(super) extra: Vec<W>,
}

impl Part for Root {
    const NAME: &'static str = "root";
    type Reads<W: SlotLeaf> = RootReads<W>;
    type Writes<W: SlotLeaf> = RootWrites<W>;
    type Private = u64;

    fn reads(&self) -> RootReads<Slot> {
        RootReads { children: ParentReads::slots(self.extra), before_last: Slot }
    }

    fn writes(&self) -> RootWrites<Slot> {
        RootWrites { digest: [Slot; 2], rest: Slot, extra: vec![Slot; self.extra] }
    }

    fn order(&self, _: usize, _: usize) -> Vec<Access> {
        // The additional wires of a parent come before the constant among what it reads.
        let own = [WRITE, WRITE, READ, READ, READ, READ, WRITE];
        [order(&own, self.extra), vec![READ]].concat()
    }

    fn unconstrained(&self) -> Vec<usize> {
        extra_slots(7, self.extra)
    }

    fn run(&self, reads: &RootReads<Fr>, length: &u64) -> Result<RootWrites<Fr>, CircuitError> {
        let [left, right] = reads.children.children()?;
        let digest = digest_halves(&node_digest(NodeKind::Root, &left, &right, Some(*length)));
        let rest = Fr::from(*length) - reads.before_last;
        Ok(RootWrites { digest, rest, extra: extra_values(&reads.children.extra) })
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &RootReads<Var>,
        writes: &RootWrites<Var>,
        length: Option<&u64>,
    ) -> Synthesized {
        let length_bytes = length.map(|length| length.to_be_bytes());
        let children = reads.children.message(&cs)?;
        let length = || children.witness(&cs, 8, length_bytes.as_ref().map(|bytes| &bytes[..]));
        let message = Subcircuit::given(&cs, length)?;
        // The hashed length is that of the full leaves plus what the last leaf has.
        let (before_last, rest) = (variable(&reads.before_last)?, variable(&writes.rest)?);
        // 8 bytes: the length that is hashed is below 2^64, and so is the sum, for `rest` is at most a
        // leaf.
        message.enforce_number(&cs, 8, [before_last, rest])?;
        enforce_not_empty(&cs, &reads.before_last, &writes.rest)?;
        let digest = message.constant(&[NodeKind::Root.tag()]).sha256(&cs)?;
        enforce_digest(&cs, &digest, &writes.digest)
    }
}

/// Enforces that a last leaf after other leaves is not empty: that file would have fewer leaves. The
/// row is `rest * ratio = before_last`, so with bytes before the last leaf, `rest` is not zero.
fn enforce_not_empty(cs: &Cs, before_last: &Var, rest: &Var) -> Synthesized {
    let _span = tracing::info_span!(target: "gr1cs", "enforce_not_empty").entered();
    let ratio = cs.new_witness_variable(|| {
        // No ratio fits an empty leaf after others, so any will do: the row fails.
        let inverse = rest.value()?.inverse().unwrap_or(Fr::ONE);
        Ok(inverse * before_last.value()?)
    })?;
    let [before_last, rest] = [variable(before_last)?, variable(rest)?];
    cs.enforce_r1cs_constraint(|| rest.into(), || ratio.into(), || before_last.into())
}

/// The only writer of the constants, so no prover can choose them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Padding {
    /// The number of bytes in a full leaf.
    pub(super) full: u64,
    pub(super) extra: usize,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct PaddingWrites<W> {
    pub(super) empty: [W; 2],
    pub(super) full: W,
    pub(super) extra: Vec<W>,
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
        extra_slots(3, self.extra)
    }

    fn run(&self, extra: &Vec<Fr>, (): &()) -> Result<PaddingWrites<Fr>, CircuitError> {
        let full = Fr::from(self.full);
        Ok(PaddingWrites { empty: [Fr::default(); 2], full, extra: extra_values(extra) })
    }

    fn synthesize(
        &self,
        cs: Cs,
        _: &Vec<Var>,
        writes: &PaddingWrites<Var>,
        _: Option<&()>,
    ) -> Synthesized {
        // A prover who could choose these could give a missing child any digest.
        for slot in variables(&writes.empty)? {
            cs.enforce_r1cs_constraint(
                || slot.into(),
                || Variable::One.into(),
                LinearCombination::zero,
            )?;
        }
        let (full, slot) = (Fr::from(self.full), variable(&writes.full)?);
        let constant = || LinearCombination(vec![(full, Variable::One)]);
        cs.enforce_r1cs_constraint(|| slot.into(), || Variable::One.into(), constant)
    }
}
