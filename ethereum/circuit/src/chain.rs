//! W: a chain of Poseidon over the blocks of all strings, so that another circuit can open them without Keccak (spec: witness#chain).

use crate::blocks::{BLOCK, Block, BlockValues, Context};
use crate::forms::{Synthesized, Var, digits, sum};
use crate::poseidon;
use ark_ff::{One, Zero};
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::Fr;
use hekaton_witness_format::trie::Trie;
use serde::{Deserialize, Serialize};

/// The number of bytes in an element.
// With 31 bytes, every number is below the field's order. With 32, two different contents could give
// the same element.
pub(crate) const ELEMENT: usize = 31;

/// The kind of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StringKind {
    /// A branch.
    Branch = 1,
    /// A leaf.
    Leaf = 2,
    /// An extension.
    Extension = 3,
    /// A code.
    Code = 4,
}

/// The kind of reference by which a string is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Tag {
    /// A node of the account trie.
    Account = 1,
    /// A node of a storage trie.
    Storage = 2,
    /// A code.
    Code = 3,
}

impl From<Trie> for Tag {
    fn from(trie: Trie) -> Self {
        match trie {
            Trie::Accounts => Self::Account,
            Trie::Storage => Self::Storage,
        }
    }
}

/// The chain so far: W, and the number of strings in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The digest.
    pub digest: Fr,
    /// The number of strings.
    pub count: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { digest: Fr::zero(), count: 0 }
    }
}

// Kinds and tags are below 2^8, so a head is the number of exactly one kind, tag and length.

/// The factors of the tag and of the number of bytes in the head of a block.
const TAG: u64 = 1 << 8;
const LENGTH: u64 = 1 << 16;

impl Chain {
    /// Appends a block.
    pub(crate) fn add(&mut self, kind: StringKind, tag: Tag, block: &BlockValues) {
        let head = kind as u64 + TAG * tag as u64 + LENGTH * block.len() as u64;
        let mut elements = vec![self.digest, Fr::from(head)];
        let base = Fr::from(256u64);
        elements.extend(
            block
                .content()
                .chunks(ELEMENT)
                .map(|bytes| bytes.iter().rev().fold(Fr::zero(), |sum, byte| sum * base + byte)),
        );
        self.digest = poseidon::hash(&elements);
        self.count += u64::from(block.end.is_some());
    }

    /// Appends a string. Appending all of them yields W (spec: witness#chain): branches first, then leaves and extensions, codes, and
    /// mixed ones, each type in the order of the witness.
    pub fn add_string(&mut self, kind: StringKind, tag: Tag, string: &[u8]) {
        BlockValues::of(string).iter().for_each(|block| self.add(kind, tag, block));
    }
}

/// The chain in the constraints.
#[derive(Clone)]
pub(crate) struct ChainVar {
    pub(crate) digest: Var,
    pub(crate) count: Var,
}

impl ChainVar {
    /// Appends a block if it is active.
    pub(crate) fn add(
        self,
        context: Context<'_>,
        active: &Var,
        kind_and_tag: (&Var, &Var),
        block: &Block,
    ) -> Synthesized<Self> {
        let cs = context.subcircuit.cs();
        let (kind, tag) = kind_and_tag;
        let full = Fr::from(BLOCK as u64 * LENGTH);
        let head = [
            (Fr::one(), kind),
            (Fr::from(TAG), tag),
            (full, active),
            // The last block counts only the bytes of the string in it.
            (-full, &block.is_last),
            (Fr::from(LENGTH), &block.end),
        ];
        let mut elements = vec![self.digest.clone(), sum(&cs, head)?];
        for bytes in block.content.chunks(ELEMENT) {
            elements.push(digits(&cs, 8, bytes)?);
        }
        let hashed = poseidon::hash_in_constraints(&elements)?;
        // A block that is off leaves W as it is: otherwise the prover could append to it.
        let digest = &self.digest + active * (hashed - &self.digest);
        let count = self.count + &block.is_last;
        Ok(Self { digest, count })
    }

    /// Appends all blocks of a string.
    pub(crate) fn add_string(
        self,
        context: Context<'_>,
        enable: &Var,
        kind_and_tag: (&Var, &Var),
        blocks: &[Block],
    ) -> Synthesized<Self> {
        let mut active = enable.clone();
        let mut chain = self;
        for block in blocks {
            chain = chain.add(context, &active, kind_and_tag, block)?;
            // Blocks behind the last one are off; `is_last` is 1 at most once (`Context::string`).
            active -= &block.is_last;
        }
        Ok(chain)
    }
}

/// Reads a chain from two slots.
pub(crate) fn read(context: Context<'_>, at: usize) -> Result<ChainVar, SynthesisError> {
    let digest = context.subcircuit.slot(at)?.clone();
    Ok(ChainVar { digest, count: context.subcircuit.slot(at + 1)?.clone() })
}
