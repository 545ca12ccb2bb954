//! The parent's header: its hash is public, and it gives the digest of the state root.

use crate::blocks::{BlockValues, Context, marked};
use crate::chain::{ChainVar, Tag};
use crate::forms::{
    Synthesized, Var, big_endian, constant, digits, inverse_or_zero, witness, zero_if,
};
use crate::node::{Given, give};
use ark_r1cs_std::fields::FieldVar;
use hekaton_circuit::{Bit, BusId, Fr};
use hekaton_witness_format::EMPTY_ROOT;
use serde::{Deserialize, Serialize};

/// The number of blocks of the largest header.
pub(crate) const BLOCKS: usize = 6;

/// The place of the state root, behind its prefix: behind the list's header of 3 bytes, two hashes and an address.
const ROOT: usize = 91;

/// The smallest header whose list has a header of three bytes, in bytes. Smaller ones have no room for a Bloom filter.
pub(crate) const MIN_HEADER: usize = 3 + 256;

/// The largest header, in bytes.
// At least one byte of the last block is padding.
pub(crate) const MAX_HEADER: usize = BLOCKS * crate::blocks::BLOCK - 1;

/// Returns a digest as two numbers of 128 bits, little-endian.
pub(crate) fn halves(digest: &[u8; 32]) -> [u128; 2] {
    [0, 16].map(|at| {
        let mut half = [0; 16];
        half.copy_from_slice(&digest[at..at + 16]);
        u128::from_le_bytes(half)
    })
}

/// A header as its prover has it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeaderValues {
    pub(crate) blocks: Vec<BlockValues>,
    /// The number of times that the state root is asked for.
    pub(crate) count: u64,
}

/// The header, whose hash is `hash` (spec: witness#header).
pub(crate) fn header(
    context: Context<'_>,
    links: BusId,
    values: Option<&HeaderValues>,
    chain: &ChainVar,
    hash: [&Var; 2],
    enable: &Bit,
) -> Synthesized {
    let cs = context.subcircuit.cs();
    let own = values.map(|values| values.blocks.as_slice());
    let blocks = context.string(own, enable, BLOCKS)?;
    let one: Var = FieldVar::one();
    for (found, public) in context.digest(&blocks)?.iter().zip(hash) {
        found.mul_equals(&one, public)?;
    }
    let bytes: Vec<&Var> = blocks.iter().flat_map(|block| &block.bytes).collect();
    let length = context.length(&blocks)?;
    // The whole header is read, so that its hash is that of one list and of nothing before or behind it.
    // It begins with f9 and two bytes of length, so that all fields up to the root are in their places.
    let number = |value: u64| constant(Fr::from(value));
    zero_if(&one, &(bytes[0] - number(0xf9)))?;
    let payload = big_endian(&cs, [bytes[1], bytes[2]])?;
    zero_if(&one, &(payload + number(3) - length))?;
    for (at, prefix) in [(3, 0xa0), (36, 0xa0), (69, 0x94), (ROOT - 1, 0xa0)] {
        zero_if(&one, &(bytes[at] - number(prefix)))?;
    }
    let half = |at: usize| digits(&cs, 8, bytes[at..at + 16].iter().copied());
    let given = Given {
        low: marked(context, &one, &half(ROOT)?)?,
        high: marked(context, &one, &half(ROOT + 16)?)?,
        tag: number(Tag::Account as u64),
    };
    // Only an empty trie has no nodes: otherwise N = 0 would be provable for any state.
    let product = &chain.count * witness(&cs, inverse_or_zero(&chain.count))?;
    let is_empty = &one - product;
    zero_if(&chain.count, &is_empty)?;
    let [low, high] = halves(&EMPTY_ROOT);
    zero_if(&is_empty, &(&given.low - constant(Fr::from(low))))?;
    zero_if(&is_empty, &(&given.high - constant(Fr::from(high))))?;
    give(context, links, &given, values.map(|values| values.count))
}
