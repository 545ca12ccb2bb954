//! The types of subcircuits: a path in quarters, before and after a change, and the end of the epoch.

use super::values::{digest, number};
use ark_ff::{AdditiveGroup, One};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::{LinearCombination, SynthesisError, Variable};
use hekaton_circuit::parts::{Cs, Leaf, Part, Slot, Slots, Synthesized, Var};
use hekaton_circuit::{CircuitError, Fr};
use hekaton_directory::{Commitment, Digest, EMPTY, Index, Leaf as TreeLeaf, Profile};
pub(super) use hekaton_standard::sha256::digest_halves as fields;
use hekaton_standard::sha256::{self, Message, Word, digest_from_wires, enforce_half};
use serde::{Deserialize, Serialize};

type Made<T> = Result<T, SynthesisError>;

/// A digest in the circuit.
type Bits = sha256::Digest;

fn variables(wires: &[Var; 2]) -> Made<[Variable; 2]> {
    let variable = |wire: &Var| match wire {
        FpVar::Var(var) => Ok(var.variable),
        FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
    };
    Ok([variable(&wires[0])?, variable(&wires[1])?])
}

/// The digest that two wires have; none if they have no value, or that of no digest, which fails a constraint.
fn value_of(wires: &[Var; 2]) -> Option<Digest> {
    let value = |wire: &Var| number(&wire.value().ok()?);
    Some(digest([value(&wires[0])?, value(&wires[1])?]))
}

fn from_wires(cs: &Cs, wires: &[Var; 2]) -> Made<Bits> {
    let has_value = wires[0].value().is_ok();
    let value = value_of(wires).or(has_value.then_some(EMPTY));
    digest_from_wires(cs, variables(wires)?, value)
}

fn enforce_digest(cs: &Cs, digest: &Bits, wires: &[Var; 2]) -> Synthesized {
    let [high, low] = variables(wires)?;
    enforce_half(cs, &digest[..4], high)?;
    enforce_half(cs, &digest[4..], low)
}

/// A linear combination of variables.
type Combination = LinearCombination<Fr>;

/// The constant 1.
fn one() -> Combination {
    Variable::One.into()
}

/// A slot as a combination.
fn slot(slot: &Var) -> Made<Combination> {
    match slot {
        FpVar::Var(var) => Ok(var.variable.into()),
        FpVar::Constant(_) => Err(SynthesisError::Unsatisfiable),
    }
}

/// The row `a b = c`.
fn product(cs: &Cs, a: Combination, b: Combination, c: Combination) -> Synthesized {
    cs.enforce_r1cs_constraint(|| a, || b, || c)
}

/// The row `a = b`.
fn equal(cs: &Cs, a: Combination, b: Combination) -> Synthesized {
    product(cs, a, one(), b)
}

/// Bits of a message equal a slot.
fn enforce_number(
    cs: &Cs,
    message: &Message,
    bits: std::ops::Range<usize>,
    wire: &Var,
) -> Synthesized {
    equal(cs, bits_of(message, bits)?, slot(wire)?)
}

/// Bits of a message as a number.
fn bits_of(message: &Message, bits: std::ops::Range<usize>) -> Made<Combination> {
    let mut number = message.number(bits)?;
    // Constant bits are one term each otherwise.
    number.compactify();
    Ok(number)
}

/// Goes up some levels with these siblings, the lowest one first. The bits of the index that say on which side are
/// those of a message before its bit `end`, the last one first.
fn climb(
    cs: &Cs,
    (message, end): (&Message, usize),
    mut current: Bits,
    siblings: &[[Var; 2]],
) -> Made<Bits> {
    for (level, sibling) in siblings.iter().enumerate() {
        let sibling = from_wires(cs, sibling)?;
        let [left, right] = message.swap(cs, end - 1 - level, &current, &sibling)?;
        current = Message::new().digest(&left).digest(&right).sha256(cs)?;
        current[7] = current[7].with_last_bit(false);
    }
    Ok(current)
}

/// The same natively, with the last bits of a number.
pub(super) fn climbed(mut current: Digest, path: u128, siblings: &[Digest]) -> Digest {
    for (level, sibling) in siblings.iter().enumerate() {
        current = match path >> level & 1 {
            0 => Profile::Full.combine(&current, sibling),
            _ => Profile::Full.combine(sibling, &current),
        };
        current[31] &= 0xfe;
    }
    current
}

/// A leaf as a message: index, version, epoch, zeros, commitment.
fn leaf_message(cs: &Cs, leaf: Option<&TreeLeaf>) -> Made<Message> {
    let bytes = leaf.map(TreeLeaf::encode);
    let part = |from: usize, to: usize| bytes.as_ref().map(|bytes| &bytes[from..to]);
    Message::new()
        .witness(cs, 16, part(0, 16))?
        .witness(cs, 4, part(16, 20))?
        .witness(cs, 4, part(20, 24))?
        .constant(&[0; 8])
        .witness(cs, 32, part(24, TreeLeaf::LENGTH))
}

/// The bits of each part of a leaf.
const INDEX: std::ops::Range<usize> = 0..128;
const VERSION: std::ops::Range<usize> = 128..160;
const EPOCH: std::ops::Range<usize> = 160..192;

/// The digest of a leaf.
fn hash_leaf(cs: &Cs, message: &Message) -> Made<Bits> {
    let mut leaf = message.clone().sha256(cs)?;
    leaf[7] = leaf[7].with_last_bit(true);
    Ok(leaf)
}

fn digest_of(wires: &[Fr; 2]) -> Result<Digest, CircuitError> {
    let half = |wire| number(wire).ok_or("a wire does not hold half a digest");
    Ok(digest([half(&wires[0])?, half(&wires[1])?]))
}

fn expect(found: &Digest, expected: &[Fr; 2]) -> Result<(), CircuitError> {
    match fields(found) == *expected {
        true => Ok(()),
        false => Err("the path does not lead to the root".into()),
    }
}

/// A part of a path, from the digest above it down, before a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OldPath {
    pub(super) levels: usize,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct OldReads<W> {
    pub(super) above: [W; 2],
    /// The bits of the index, as a number.
    pub(super) index: W,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct OldWrites<W> {
    pub(super) below: [W; 2],
    /// The lowest one first.
    pub(super) siblings: Vec<[W; 2]>,
}

/// The siblings of a part of a path, and the digest below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OldPrivate {
    pub(super) below: Digest,
    pub(super) siblings: Vec<Digest>,
}

impl Part for OldPath {
    const NAME: &'static str = "old-path";
    type Reads<W: Leaf> = OldReads<W>;
    type Writes<W: Leaf> = OldWrites<W>;
    type Private = OldPrivate;

    fn writes(&self) -> OldWrites<Slot> {
        OldWrites { below: [Slot; 2], siblings: vec![[Slot; 2]; self.levels] }
    }

    fn run(
        &self,
        reads: &OldReads<Fr>,
        private: &OldPrivate,
    ) -> Result<OldWrites<Fr>, CircuitError> {
        let OldPrivate { below, siblings } = private;
        let index = number(&reads.index).ok_or("a wire does not hold bits of an index")?;
        expect(&climbed(*below, index, siblings), &reads.above)?;
        Ok(OldWrites { below: fields(below), siblings: siblings.iter().map(fields).collect() })
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &OldReads<Var>,
        writes: &OldWrites<Var>,
        _: Option<&OldPrivate>,
    ) -> Synthesized {
        let index = index_bits(&cs, &reads.index)?;
        let below = from_wires(&cs, &writes.below)?;
        let above = climb(&cs, (&index, 32), below, &writes.siblings)?;
        enforce_digest(&cs, &above, &reads.above)
    }
}

/// 32 bits of an index.
fn index_bits(cs: &Cs, wire: &Var) -> Made<Message> {
    let value = wire.value().ok();
    // A wire with another value has no 32 bits. It is zero here, and the row below fails.
    #[allow(clippy::cast_possible_truncation, reason = "another value fails the row")]
    let bytes = value.map(|value| (number(&value).unwrap_or(0) as u32).to_be_bytes());
    let message = Message::new().witness(cs, 4, bytes.as_ref().map(|bytes| &bytes[..]))?;
    enforce_number(cs, &message, 0..32, wire)?;
    Ok(message)
}

/// A part of a path, from the digest below it up, after a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NewPath {
    pub(super) levels: usize,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct NewReads<W> {
    pub(super) below: [W; 2],
    pub(super) index: W,
    pub(super) siblings: Vec<[W; 2]>,
}

impl Part for NewPath {
    const NAME: &'static str = "new-path";
    type Reads<W: Leaf> = NewReads<W>;
    type Writes<W: Leaf> = [W; 2];
    type Private = ();

    fn reads(&self) -> NewReads<Slot> {
        NewReads { below: [Slot; 2], index: Slot, siblings: vec![[Slot; 2]; self.levels] }
    }

    fn run(&self, reads: &NewReads<Fr>, (): &()) -> Result<[Fr; 2], CircuitError> {
        let index = number(&reads.index).ok_or("a wire does not hold bits of an index")?;
        let siblings = reads.siblings.iter().map(digest_of).collect::<Result<Vec<_>, _>>()?;
        Ok(fields(&climbed(digest_of(&reads.below)?, index, &siblings)))
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &NewReads<Var>,
        above: &[Var; 2],
        _: Option<&()>,
    ) -> Synthesized {
        let index = index_bits(&cs, &reads.index)?;
        let below = from_wires(&cs, &reads.below)?;
        enforce_digest(&cs, &climb(&cs, (&index, 32), below, &reads.siblings)?, above)
    }
}

/// The lowest part of a path before a change, with the leaf, or nothing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OldLeaf {
    pub(super) levels: usize,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct OldLeafReads<W> {
    pub(super) above: [W; 2],
    /// The least index that the change may have: one more than that of the change before it.
    pub(super) least: W,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct OldLeafWrites<W> {
    /// The index, 32 bits in each.
    pub(super) index: [W; 4],
    /// The version that the leaf gets.
    pub(super) version: W,
    /// The least index of the next change.
    pub(super) next: W,
    pub(super) siblings: Vec<[W; 2]>,
}

/// The leaf at the end of a path, and the siblings of its lowest part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OldLeafPrivate {
    pub(super) index: u128,
    /// Version, epoch and commitment of the leaf; none if the change inserts one.
    pub(super) leaf: Option<(u32, u32, Digest)>,
    pub(super) siblings: Vec<Digest>,
}

impl OldLeafPrivate {
    fn leaf(&self) -> TreeLeaf {
        // The message of a leaf is there without a leaf, too; the flag selects the digest of nothing then.
        let (version, epoch, commitment) = self.leaf.unwrap_or((0, 0, EMPTY));
        let index = Index(self.index.to_be_bytes());
        TreeLeaf { index, version, epoch, commitment: Commitment(commitment) }
    }

    fn current(&self) -> Digest {
        self.leaf.map_or(EMPTY, |_| self.leaf().digest(Profile::Full))
    }
}

impl Part for OldLeaf {
    const NAME: &'static str = "old-leaf";
    type Reads<W: Leaf> = OldLeafReads<W>;
    type Writes<W: Leaf> = OldLeafWrites<W>;
    type Private = OldLeafPrivate;

    fn writes(&self) -> OldLeafWrites<Slot> {
        OldLeafWrites {
            index: [Slot; 4],
            version: Slot,
            next: Slot,
            siblings: vec![[Slot; 2]; self.levels],
        }
    }

    fn run(
        &self,
        reads: &OldLeafReads<Fr>,
        private: &OldLeafPrivate,
    ) -> Result<OldLeafWrites<Fr>, CircuitError> {
        let OldLeafPrivate { index, leaf, siblings } = private;
        expect(&climbed(private.current(), *index, siblings), &reads.above)?;
        Ok(OldLeafWrites {
            index: quarters(*index).map(Fr::from),
            version: leaf.map_or(Fr::from(0u64), |(version, ..)| Fr::from(version) + Fr::one()),
            next: Fr::from(*index) + Fr::one(),
            siblings: siblings.iter().map(fields).collect(),
        })
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &OldLeafReads<Var>,
        writes: &OldLeafWrites<Var>,
        private: Option<&OldLeafPrivate>,
    ) -> Synthesized {
        let leaf = private.map(OldLeafPrivate::leaf);
        let message = leaf_message(&cs, leaf.as_ref())?;
        let hashed = hash_leaf(&cs, &message)?;
        // One bit that says whether there is a leaf.
        let is_there = private.map(|private| [u8::from(private.leaf.is_some())]);
        let flag = Message::new().witness(&cs, 1, is_there.as_ref().map(|byte| &byte[..]))?;
        equal(&cs, bits_of(&flag, 0..7)?, LinearCombination::zero())?;
        let nothing = [Word::constant(0); 8];
        let [current, _] = flag.swap(&cs, 7, &nothing, &hashed)?;
        let above = climb(&cs, (&message, INDEX.end), current, &writes.siblings)?;
        enforce_digest(&cs, &above, &reads.above)?;
        for (quarter, wire) in writes.index.iter().enumerate() {
            enforce_number(&cs, &message, 32 * quarter..32 * (quarter + 1), wire)?;
        }
        // An insertion gives version 0.
        let next = bits_of(&message, VERSION)? + &one();
        product(&cs, bits_of(&flag, 7..8)?, next, slot(&writes.version)?)?;
        // Indices rise, so a leaf changes once in an epoch.
        let index = bits_of(&message, INDEX)?;
        let difference = private.zip(reads.least.value().ok()).map(|(private, least)| {
            // Below the least index there is no such number, and the row below fails.
            number(&(Fr::from(private.index) - least)).unwrap_or(0).to_be_bytes()
        });
        let above_least =
            Message::new().witness(&cs, 16, difference.as_ref().map(|bytes| &bytes[..]))?;
        let least = bits_of(&above_least, 0..128)? + &slot(&reads.least)?;
        equal(&cs, least, index.clone())?;
        equal(&cs, index + &one(), slot(&writes.next)?)
    }
}

/// An index in four numbers of 32 bits.
pub(super) fn quarters(index: u128) -> [u32; 4] {
    #[allow(clippy::cast_possible_truncation, reason = "these are the digits")]
    [96, 64, 32, 0].map(|bits| (index >> bits) as u32)
}

/// The lowest part of a path after a change, with the new leaf.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NewLeaf {
    pub(super) levels: usize,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct NewLeafReads<W> {
    pub(super) index: [W; 4],
    pub(super) version: W,
    pub(super) epoch: W,
    pub(super) siblings: Vec<[W; 2]>,
}

impl NewLeafReads<Fr> {
    fn leaf(&self, commitment: &Digest) -> Option<TreeLeaf> {
        let index =
            self.index.iter().try_fold(0, |index, part| Some(index << 32 | number(part)?))?;
        let small = |value| number(value).and_then(|value| u32::try_from(value).ok());
        let (version, epoch) = (small(&self.version)?, small(&self.epoch)?);
        let (index, commitment) = (Index(index.to_be_bytes()), Commitment(*commitment));
        Some(TreeLeaf { index, version, epoch, commitment })
    }
}

impl Part for NewLeaf {
    const NAME: &'static str = "new-leaf";
    type Reads<W: Leaf> = NewLeafReads<W>;
    type Writes<W: Leaf> = [W; 2];
    /// The commitment.
    type Private = Digest;

    fn reads(&self) -> NewLeafReads<Slot> {
        NewLeafReads {
            index: [Slot; 4],
            version: Slot,
            epoch: Slot,
            siblings: vec![[Slot; 2]; self.levels],
        }
    }

    fn run(&self, reads: &NewLeafReads<Fr>, commitment: &Digest) -> Result<[Fr; 2], CircuitError> {
        let leaf = reads.leaf(commitment).ok_or("the leaf already has the largest version")?;
        let siblings = reads.siblings.iter().map(digest_of).collect::<Result<Vec<_>, _>>()?;
        let index = u128::from_be_bytes(leaf.index.0);
        Ok(fields(&climbed(leaf.digest(Profile::Full), index, &siblings)))
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &NewLeafReads<Var>,
        above: &[Var; 2],
        commitment: Option<&Digest>,
    ) -> Synthesized {
        // Only for `leaf`, which is not made at setup, when wires have no values.
        let value = |wire: &Var| wire.value().unwrap_or(Fr::ZERO);
        let values = NewLeafReads {
            index: reads.index.each_ref().map(value),
            version: value(&reads.version),
            epoch: value(&reads.epoch),
            siblings: Vec::new(),
        };
        let none =
            TreeLeaf { index: Index([0; 16]), version: 0, epoch: 0, commitment: Commitment::NONE };
        // Values that are not those of a leaf fail the rows below.
        let leaf = commitment.map(|commitment| values.leaf(commitment).unwrap_or(none));
        let message = leaf_message(&cs, leaf.as_ref())?;
        for (quarter, wire) in reads.index.iter().enumerate() {
            enforce_number(&cs, &message, 32 * quarter..32 * (quarter + 1), wire)?;
        }
        enforce_number(&cs, &message, VERSION, &reads.version)?;
        enforce_number(&cs, &message, EPOCH, &reads.epoch)?;
        let leaf = hash_leaf(&cs, &message)?;
        let found = climb(&cs, (&message, INDEX.end), leaf, &reads.siblings)?;
        enforce_digest(&cs, &found, above)
    }
}

/// The end of the epoch: its root goes into the chain.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Close;

#[derive(Clone, Debug, Slots)]
pub(super) struct CloseReads<W> {
    pub(super) chain: [W; 2],
    pub(super) root: [W; 2],
    pub(super) epoch: W,
}

#[derive(Clone, Debug, Slots)]
pub(super) struct CloseWrites<W> {
    pub(super) chain: [W; 2],
    pub(super) epoch: W,
}

impl Part for Close {
    const NAME: &'static str = "close";
    type Reads<W: Leaf> = CloseReads<W>;
    type Writes<W: Leaf> = CloseWrites<W>;
    type Private = ();

    fn run(&self, reads: &CloseReads<Fr>, (): &()) -> Result<CloseWrites<Fr>, CircuitError> {
        let chain = Profile::Full.combine(&digest_of(&reads.chain)?, &digest_of(&reads.root)?);
        Ok(CloseWrites { chain: fields(&chain), epoch: reads.epoch + Fr::one() })
    }

    fn synthesize(
        &self,
        cs: Cs,
        reads: &CloseReads<Var>,
        writes: &CloseWrites<Var>,
        _: Option<&()>,
    ) -> Synthesized {
        let (chain, root) = (from_wires(&cs, &reads.chain)?, from_wires(&cs, &reads.root)?);
        let chain = Message::new().digest(&chain).digest(&root).sha256(&cs)?;
        enforce_digest(&cs, &chain, &writes.chain)?;
        equal(&cs, slot(&reads.epoch)? + &one(), slot(&writes.epoch)?)
    }
}
