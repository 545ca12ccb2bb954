//! A branch whose children are all hashes or empty: 16 bits say which exist, and all places follow.

use crate::blocks::{Context, marked};
use crate::chain::{ChainVar, StringKind};
use crate::forms::{Cs, Synthesized, Var, constant, select, sum, total, witness, zero_if};
use crate::node::{Given, Node, StringValues, count_of, give, kind, place_of};
use ark_ff::One;
use ark_r1cs_std::fields::FieldVar;
use hekaton_circuit::{BusId, Fr};

/// The number of blocks of the largest branch.
pub(crate) const BLOCKS: usize = 4;

const CHILDREN: usize = 16;

/// A branch, which gives its children (spec: witness#branch).
pub(crate) fn branch(
    context: Context<'_>,
    links: BusId,
    values: Option<Option<&StringValues>>,
    chain: ChainVar,
) -> Synthesized<ChainVar> {
    let cs = context.subcircuit.cs();
    let node = Node::new(context, links, values, BLOCKS)?;
    let enable = node.enable.variable();
    let bytes = &node.bytes;
    let present = |at: usize| place_of(values, at).map(|present| present != 0);
    // Its list is f8 with one byte of length, or f9 with two: then all items are one byte further back.
    let many = values.map(|_| (0..CHILDREN).filter(|&at| present(at) == Some(true)).count() >= 8);
    let is_long = witness(&cs, many.map(Fr::from))?;
    let shifted = |cs: &Cs, form: &dyn Fn(usize) -> Synthesized<Var>, at: usize| {
        let (near, far) = (form(2 + at)?, form(3 + at)?);
        let by = &is_long * (far - &near);
        total(cs, [&near, &by])
    };
    // `counts[k]` is 1 if k children precede the current one. All are zero if there is no branch.
    let mut counts = vec![enable.clone()];
    for at in 0..CHILDREN {
        let is_there = context.bit(present(at))?;
        let mut prefixes = Vec::new();
        let (mut lows, mut highs, mut both) = (Vec::new(), Vec::new(), Vec::new());
        for (before, count) in counts.iter().enumerate() {
            let place = at + 32 * before;
            prefixes.push(shifted(&cs, &|byte| Ok(bytes[byte].clone()), place)?);
            lows.push(shifted(&cs, &|byte| node.half(&cs, byte + 1), place)?);
            highs.push(shifted(&cs, &|byte| node.half(&cs, byte + 17), place)?);
            both.push(count * &is_there);
        }
        // An empty child is 80, a hash is a0 and 32 bytes.
        let prefix = select(&cs, counts.iter().zip(&prefixes))?;
        let wanted = [(Fr::from(0x80u64), enable), (Fr::from(0x20u64), &is_there)];
        prefix.mul_equals(&constant(Fr::one()), &sum(&cs, wanted)?)?;
        let one = constant(Fr::one());
        let low = marked(context, &one, &select(&cs, both.iter().zip(&lows))?)?;
        let high = marked(context, &one, &select(&cs, both.iter().zip(&highs))?)?;
        let given = Given { low, high, tag: node.tag.clone() };
        give(context, links, &given, count_of(values, at))?;
        let mut next = Vec::with_capacity(counts.len() + 1);
        for number in 0..=counts.len() {
            let mut terms = Vec::new();
            if let Some(count) = counts.get(number) {
                terms.extend([(Fr::one(), count), (-Fr::one(), &both[number])]);
            }
            if let Some(less) = number.checked_sub(1) {
                terms.push((Fr::one(), &both[less]));
            }
            next.push(sum(&cs, terms)?);
        }
        counts = next;
    }
    // The branch has no value, and nothing follows.
    let mut last = Vec::new();
    for before in 0..=CHILDREN {
        last.push(shifted(&cs, &|byte| Ok(bytes[byte].clone()), CHILDREN + 32 * before)?);
    }
    let one = FieldVar::one();
    let last = select(&cs, counts.iter().zip(&last))?;
    last.mul_equals(&one, &(enable * constant(Fr::from(0x80u64))))?;
    total(&cs, &counts[8..])?.mul_equals(&one, &is_long)?;
    zero_if(&constant(Fr::one()), &total(&cs, &counts[..2])?)?;
    let mut payload = vec![(Fr::from(17u64), enable)];
    payload.extend((0u64..).map(|count| Fr::from(32 * count)).zip(&counts));
    let payload = sum(&cs, payload)?;
    let length = [(Fr::one(), &payload), (Fr::from(2u64), enable), (Fr::one(), &is_long)];
    sum(&cs, length)?.mul_equals(&one, &node.length)?;
    zero_if(enable, &(&bytes[0] - constant(Fr::from(0xf8u64)) - &is_long))?;
    zero_if(&(enable - &is_long), &(&bytes[1] - &payload))?;
    let long = sum(&cs, [(Fr::from(256u64), &bytes[1]), (Fr::one(), &bytes[2])])?;
    zero_if(&is_long, &(long - &payload))?;
    node.chain(context, chain, &kind(StringKind::Branch))
}
