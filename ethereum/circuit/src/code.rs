//! Codes: a stream of blocks across subcircuits. Each block starts a code or continues the previous one.

use crate::blocks::{BlockValues, Context, LANES, marked};
use crate::chain::{ChainVar, StringKind, Tag};
use crate::forms::{Synthesized, Var, constant, zero_if};
use crate::node::{ask, kind};
use ark_ff::One;
use ark_r1cs_std::fields::FieldVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{BusId, Fr};

/// The slots in addition to those of the chain: a bit that is 1 if a code continues, and the lanes.
pub(crate) const SLOTS: usize = 1 + LANES;

/// Blocks of codes, from the state in the slots from `from` on to that in the slots from `to` on (spec: witness#code).
pub(crate) fn codes(
    context: Context<'_>,
    links: BusId,
    values: Option<&[BlockValues]>,
    mut chain: ChainVar,
    count: usize,
    [from, to]: [usize; 2],
) -> Synthesized<ChainVar> {
    let subcircuit = context.subcircuit;
    let slots = |at: usize| subcircuit.slots().get(at..at + SLOTS);
    let missing = SynthesisError::Unsatisfiable;
    let (Some(before), Some(after)) = (slots(from), slots(to)) else { return Err(missing) };
    let one: Var = FieldVar::one();
    // The state of a code that continues, zeros otherwise.
    let (mut continues, mut lanes) = (before[0].clone(), before[1..].to_vec());
    let kind_and_tag = (&kind(StringKind::Code), &constant(Fr::from(Tag::Code as u64)));
    let nothing = BlockValues { bytes: vec![0; crate::blocks::BLOCK], end: None };
    for at in 0..count {
        let own = values.map(|values| values.get(at));
        let given = |bit: Option<bool>| move || bit.ok_or(SynthesisError::AssignmentMissing);
        let active = subcircuit.bit(given(own.map(|own| own.is_some())))?;
        let inactive = constant(Fr::one()) - active.variable();
        // A code that is to continue must: otherwise its digest would be that of its first blocks.
        zero_if(&continues, &inactive)?;
        let bytes = own.map(|own| own.unwrap_or(&nothing));
        let blocks = [context.block(bytes, &active, Some(&lanes))?];
        let is_end = bytes.map(|own| own.end.is_some());
        let ends = subcircuit.bit(given(is_end))?.variable().clone();
        ends.mul_equals(&one, &blocks[0].is_last)?;
        zero_if(&ends, &inactive)?;
        ask(context, links, &ends, kind_and_tag.1, &context.digest(&blocks)?)?;
        let [block] = blocks;
        chain = chain.add(context, active.variable(), kind_and_tag, &block)?;
        continues = active.variable() - &ends;
        // The last state leaves by the slots, whose rows are below.
        lanes = match at + 1 == count {
            true => block.lanes,
            false => block
                .lanes
                .iter()
                .map(|lane| marked(context, &continues, lane))
                .collect::<Synthesized<_>>()?,
        };
    }
    continues.mul_equals(&one, &after[0])?;
    lanes.iter().zip(&after[1..]).try_for_each(|(lane, slot)| continues.mul_equals(lane, slot))?;
    Ok(chain)
}
