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
    let [before, after] =
        [slots(from), slots(to)].map(|slots| slots.ok_or(SynthesisError::Unsatisfiable));
    let (before, after) = (before?, after?);
    let one: Var = FieldVar::one();
    // The state of a code that continues, zeros otherwise.
    let (mut goes_on, mut lanes) = (before[0].clone(), before[1..].to_vec());
    let tag = constant(Fr::from(Tag::Code as u64));
    let nothing = BlockValues { bytes: vec![0; crate::blocks::BLOCK], end: None };
    for at in 0..count {
        let own = values.map(|values| values.get(at));
        let given = |bit: Option<bool>| move || bit.ok_or(SynthesisError::AssignmentMissing);
        let active = subcircuit.bit(given(own.map(|own| own.is_some())))?;
        let own = own.map(|own| own.unwrap_or(&nothing));
        // A code that is to continue must.
        zero_if(&goes_on, &(constant(Fr::one()) - active.variable()))?;
        let block = context.block(own, &active, Some(&lanes))?;
        let ends = own.map(|own| own.end.is_some());
        let ends = subcircuit.bit(given(ends))?.variable().clone();
        ends.mul_equals(&one, &block.is_last)?;
        zero_if(&ends, &(constant(Fr::one()) - active.variable()))?;
        let blocks = [block];
        ask(context, links, &ends, &tag, &context.digest(&blocks)?)?;
        let [block] = blocks;
        let kind = kind(StringKind::Code);
        chain = chain.add(context, active.variable(), (&kind, &tag), &block)?;
        goes_on = active.variable() - &ends;
        if at + 1 == count {
            lanes = block.lanes;
        } else {
            let next = block.lanes.iter().map(|lane| marked(context, &goes_on, lane));
            lanes = next.collect::<Synthesized<_>>()?;
        }
    }
    goes_on.mul_equals(&one, &after[0])?;
    lanes.iter().zip(&after[1..]).try_for_each(|(lane, slot)| goes_on.mul_equals(lane, slot))?;
    Ok(chain)
}
