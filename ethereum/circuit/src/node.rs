//! The common part of all strings: each asks for its own digest, and gives the digests that it refers to.

use crate::blocks::{Block, BlockValues, Context};
use crate::chain::{ChainVar, StringKind, Tag};
use crate::forms::{Cs, Synthesized, Var, constant, sum, zero_if};
use ark_ff::{AdditiveGroup, One};
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{Bit, BusId, Fr};
use serde::{Deserialize, Serialize};

/// A string as its prover has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StringValues {
    pub(crate) blocks: Vec<BlockValues>,
    pub(crate) tag: Tag,
    /// The places of its parts: for a branch, the children that exist; for a leaf or an extension, the length of its path, the place of its
    /// value and that of the balance in it; for a branch with small children, the places at which its items begin.
    pub(crate) places: Vec<usize>,
    /// For each digest that the string refers to, the number of askers to which this string gives it.
    pub(crate) counts: Vec<u64>,
}

impl StringValues {
    /// Reports whether the string ends; a string without an end does not exist.
    pub(crate) fn is_there(&self) -> bool {
        self.blocks.iter().any(|block| block.end.is_some())
    }
}

/// A digest that a node refers to, as the key and value of an entry.
pub(crate) struct Given {
    pub(crate) low: Var,
    pub(crate) high: Var,
    pub(crate) tag: Var,
}

/// A node in the constraints.
pub(crate) struct Node {
    pub(crate) enable: Bit,
    /// A bit that is 1 if the node belongs to a storage trie.
    pub(crate) is_storage: Var,
    pub(crate) tag: Var,
    pub(crate) blocks: Vec<Block>,
    /// The bytes of all blocks.
    pub(crate) bytes: Vec<Var>,
    /// For each byte, 1 if the string ends before it.
    pub(crate) ends: Vec<Var>,
    /// The number of bytes.
    pub(crate) length: Var,
}

impl Node {
    /// Builds a node of at most `most` blocks, which asks for its digest.
    pub(crate) fn new(
        context: Context<'_>,
        links: BusId,
        values: Option<Option<&StringValues>>,
        most: usize,
    ) -> Synthesized<Self> {
        let subcircuit = context.subcircuit;
        let given = |bit: Option<bool>| move || bit.ok_or(SynthesisError::AssignmentMissing);
        let is_there = |values: &StringValues| values.is_there();
        let enable = values.map(|values| values.is_some_and(is_there));
        let enable = subcircuit.bit(given(enable))?;
        let is_storage =
            values.map(|values| values.is_some_and(|values| values.tag == Tag::Storage));
        let is_storage = subcircuit.bit(given(is_storage))?.variable().clone();
        // 1 or 2, and never 3: what a node refers to as a code cannot be answered by a node.
        let tag = constant(Fr::one()) + &is_storage;
        let own = values.map(|values| values.map_or(&[][..], |values| values.blocks.as_slice()));
        let blocks = context.string(own, &enable, most)?;
        ask(context, links, enable.variable(), &tag, &context.digest(&blocks)?)?;
        let length = context.length(&blocks)?;
        let bytes = blocks.iter().flat_map(|block| block.bytes.clone()).collect();
        let ends = blocks.iter().flat_map(|block| block.ends.clone()).collect();
        Ok(Self { enable, is_storage, tag, blocks, bytes, ends, length })
    }

    /// A bit of a byte; 7 is the most significant one.
    pub(crate) fn bit(&self, context: Context<'_>, byte: usize, bit: usize) -> Synthesized<Var> {
        let (block, byte) = (byte / crate::blocks::BLOCK, byte % crate::blocks::BLOCK);
        self.blocks[block].bit(context, byte, bit)
    }

    /// Returns 1 if the node has at least `bytes` bytes, and 0 otherwise.
    pub(crate) fn is_at_least(&self, cs: &Cs, bytes: usize) -> Synthesized<Var> {
        crate::forms::total(cs, &self.ends[bytes..])
    }

    /// Constrains the first byte of a list with a header of one byte, unless it has a longer one: c0 + its length.
    pub(crate) fn has_short_header(&self, is_long: &Var) -> Synthesized {
        let number = |value: u64| constant(Fr::from(value));
        let wanted = &self.bytes[0] - number(0xc0) - &self.length + number(1);
        zero_if(&(self.enable.variable() - is_long), &wanted)
    }

    /// Returns half of a digest that begins at a byte.
    pub(crate) fn half(&self, cs: &Cs, at: usize) -> Synthesized<Var> {
        crate::forms::digits(cs, 8, &self.bytes[at..at + 16])
    }

    /// Appends the node to the chain.
    pub(crate) fn chain(
        &self,
        context: Context<'_>,
        chain: ChainVar,
        kind: &Var,
    ) -> Synthesized<ChainVar> {
        let enable = self.enable.variable();
        chain.add_string(context, enable, (kind, &self.tag), &self.blocks)
    }
}

pub(crate) fn kind(kind: StringKind) -> Var {
    constant(Fr::from(kind as u64))
}

/// Returns the key of an entry: the tag above the 128 bits of half a digest, so that no two tags share a key (spec: witness#links).
fn key(context: Context<'_>, low: &Var, tag: &Var) -> Synthesized<Var> {
    sum(&context.subcircuit.cs(), [(Fr::one(), low), (Fr::from(1u128 << 127).double(), tag)])
}

/// Asks for a digest if a bit is 1.
pub(crate) fn ask(
    context: Context<'_>,
    links: BusId,
    enable: &Var,
    tag: &Var,
    [low, high]: &[Var; 2],
) -> Synthesized {
    let minus = enable * constant(-Fr::one());
    context.subcircuit.bus(links)?.add(&key(context, low, tag)?, high, &minus)
}

/// Gives a digest with the multiplicity that the prover chooses.
pub(crate) fn give(
    context: Context<'_>,
    links: BusId,
    given: &Given,
    count: Option<u64>,
) -> Synthesized {
    let subcircuit = context.subcircuit;
    // No row constrains the count: the bus balances only if it is the number of askers, which is below r (spec: witness#links).
    let count =
        subcircuit.commit(|| Ok(Fr::from(count.ok_or(SynthesisError::AssignmentMissing)?)))?;
    let key = key(context, &given.low, &given.tag)?;
    subcircuit.bus(links)?.add(&key, &given.high, &count)
}

/// Returns the count of a digest that a string gives: `None` at setup, zero without a string.
pub(crate) fn count_of(values: Option<Option<&StringValues>>, at: usize) -> Option<u64> {
    values.map(|string| string.and_then(|string| string.counts.get(at)).map_or(0, |count| *count))
}

/// Returns a place of a string: `None` at setup, zero without a string.
pub(crate) fn place_of(values: Option<Option<&StringValues>>, at: usize) -> Option<usize> {
    values.map(|string| string.and_then(|string| string.places.get(at)).map_or(0, |place| *place))
}
