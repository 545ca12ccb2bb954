//! The circuit: a chain of subcircuits for branches, leaves, codes and mixed strings, and the header from which all strings hang.

use crate::assignment::Assignment;
use crate::blocks::{BlockValues, Context, Hashes, LANES};
use crate::branch::branch;
use crate::chain::{self, Chain, StringKind, Tag};
use crate::code::{SLOTS as STATE, codes};
use crate::forms::{Synthesized, constant};
use crate::header::{HeaderValues, halves, header};
use crate::mixed::mixed;
use crate::node::StringValues;
use crate::short::short;
use crate::sizes::{Counts, Sizes};
use ark_ff::One;
use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    BusId, Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Subcircuit, TypeId,
    WireId, WireValues,
};
use hekaton_standard::keccak::Tables;
use hekaton_witness_format::EncodedWitness;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The largest number of subcircuits of a type.
pub(crate) const MAX_COUNT: usize = 1 << 20;

/// A circuit for the strings of a witness, each of which is the node of the parent's state root or is referred to by another string: see
/// the [crate](crate).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateWitness {
    /// The number of strings of each type that a subcircuit holds.
    pub sizes: Sizes,
    /// The number of subcircuits of each type.
    pub counts: Counts,
}

/// The kind of strings that a type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Branches,
    Leaves,
    Codes,
    Mixed,
    Header,
}

/// The subcircuits of one type.
type Group = (TypeId, Part, Range<usize>);

/// The ids of the layout.
#[derive(Debug)]
pub struct Plan {
    tables: Tables,
    links: BusId,
    groups: Vec<Group>,
    /// The chain after each subcircuit but the last one: W and the count.
    chain: Vec<[WireId; 2]>,
    /// The state after each subcircuit of codes but the last one.
    states: Vec<Vec<WireId>>,
    /// Both halves of the hash, the number of strings, W.
    public: [WireId; 4],
}

/// The private values of a subcircuit.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Private(Values);

#[derive(Clone, Debug, Serialize, Deserialize)]
enum Values {
    Strings(Vec<StringValues>),
    Blocks(Vec<BlockValues>),
    Mixed(Vec<StringValues>, Vec<StringValues>),
    Header(HeaderValues),
}

/// The strings of a subcircuit in two lists, of which only mixed ones use the second; `None` at setup.
type Lists<'a> = (Option<&'a [StringValues]>, Option<&'a [StringValues]>);

/// Values arrive with a job, so values of the wrong type are the sender's error, not a broken invariant.
impl Values {
    fn strings_of(values: Option<&Self>, part: Part) -> Synthesized<Lists<'_>> {
        match (part, values) {
            (Part::Codes | Part::Header, _) | (_, None) => Ok((None, None)),
            (_, Some(Self::Strings(strings))) => Ok((Some(strings), Some(&[]))),
            (_, Some(Self::Mixed(branches, leaves))) => Ok((Some(branches), Some(leaves))),
            _ => Err(SynthesisError::Unsatisfiable),
        }
    }

    fn blocks_of(values: Option<&Self>) -> Synthesized<Option<&[BlockValues]>> {
        match values {
            None => Ok(None),
            Some(Self::Blocks(blocks)) => Ok(Some(blocks)),
            Some(_) => Err(SynthesisError::Unsatisfiable),
        }
    }

    fn header_of(values: Option<&Self>) -> Synthesized<Option<&HeaderValues>> {
        match values {
            None => Ok(None),
            Some(Self::Header(header)) => Ok(Some(header)),
            Some(_) => Err(SynthesisError::Unsatisfiable),
        }
    }
}

impl Plan {
    fn part(&self, kind: TypeId) -> Option<Part> {
        self.groups.iter().find(|(id, ..)| *id == kind).map(|(_, part, _)| *part)
    }

    /// Reports whether the layout has no subcircuit of a type.
    #[cfg(test)]
    pub(crate) fn is_unused(&self, kind: TypeId) -> bool {
        self.groups.iter().any(|(id, _, range)| *id == kind && range.is_empty())
    }

    fn place(&self, instance: InstanceId) -> Option<(Part, usize)> {
        let index = instance.index();
        let found = self.groups.iter().find(|(.., range)| range.contains(&index));
        found.map(|(_, part, range)| (*part, index - range.start))
    }
}

/// Returns the string in a place of a subcircuit: `None` at setup, `Some(None)` in a place that is not used.
fn at(strings: Option<&[StringValues]>, number: usize) -> Option<Option<&StringValues>> {
    strings.map(|strings| strings.get(number))
}

/// Returns a subcircuit's share of a list.
fn own<T: Clone>(all: &[T], number: usize, size: usize) -> Vec<T> {
    all.iter().skip(number * size).take(size).cloned().collect()
}

impl StateWitness {
    /// Returns the number of subcircuits.
    pub fn subcircuits(&self) -> usize {
        // Saturating, since this may be called before `plan` refuses counts that are too large.
        let counts = self.counts.all().into_iter().map(|(_, count)| count);
        counts.fold(1 + self.sizes.tables(), usize::saturating_add)
    }

    /// Returns the values of a subcircuit: its share of each list, in the order of the chain.
    fn private(&self, assignment: &Assignment, part: Part, number: usize) -> Option<Values> {
        let Sizes { branches, leaves, codes, mixed_branches, mixed_leaves, .. } = self.sizes;
        Some(match part {
            Part::Branches => Values::Strings(own(&assignment.branches, number, branches)),
            Part::Leaves => Values::Strings(own(&assignment.leaves, number, leaves)),
            Part::Codes => Values::Blocks(own(&assignment.codes, number, codes)),
            Part::Mixed => Values::Mixed(
                own(&assignment.mixed_branches, number, mixed_branches),
                own(&assignment.mixed_leaves, number, mixed_leaves),
            ),
            Part::Header => Values::Header(assignment.header.clone()?),
        })
    }
}

/// Returns the kind of a leaf or an extension, natively.
fn kind_of_short(string: &StringValues) -> StringKind {
    let bytes = string.blocks.first().map_or(&[][..], |block| block.bytes.as_slice());
    // Values come with a job; those without these bytes are refused by the rows.
    let byte = |at: usize| bytes.get(at).map_or(0, |byte| *byte);
    let header = if byte(0) == 0xf8 { 2 } else { 1 };
    let first = if byte(header) < 0x80 { byte(header) } else { byte(header + 1) };
    if first & 0x20 != 0 { StringKind::Leaf } else { StringKind::Extension }
}

fn add_string(chain: &mut Chain, kind: StringKind, string: &StringValues) {
    let blocks = if string.is_there() { string.blocks.as_slice() } else { &[] };
    blocks.iter().for_each(|block| chain.add(kind, string.tag, block));
}

/// Appends the values of a subcircuit to the chain.
fn add_all(chain: &mut Chain, values: &Values, part: Part) {
    match values {
        Values::Strings(strings) => strings.iter().for_each(|string| {
            let kind = match part {
                Part::Branches => StringKind::Branch,
                _ => kind_of_short(string),
            };
            add_string(chain, kind, string);
        }),
        Values::Blocks(blocks) => {
            blocks.iter().for_each(|block| chain.add(StringKind::Code, Tag::Code, block));
        }
        Values::Mixed(branches, leaves) => {
            branches.iter().for_each(|branch| add_string(chain, StringKind::Branch, branch));
            leaves.iter().for_each(|leaf| add_string(chain, kind_of_short(leaf), leaf));
        }
        Values::Header(_) => {}
    }
}

/// The sponge between two blocks of codes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sponge {
    pub(crate) lanes: [u64; LANES],
    pub(crate) continues: bool,
}

impl Sponge {
    /// Absorbs blocks.
    pub(crate) fn absorb(&mut self, blocks: &[BlockValues]) {
        for block in blocks {
            if !self.continues {
                self.lanes = [0; LANES];
            }
            for (lane, bytes) in self.lanes.iter_mut().zip(block.bytes.chunks_exact(8)) {
                *lane ^= bytes.iter().rev().fold(0, |lane, byte| lane << 8 | u64::from(*byte));
            }
            keccak::f1600(&mut self.lanes);
            self.continues = block.end.is_none();
        }
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = Fr> {
        let number = |lane: u64| {
            let bits = (0..64).rev().map(|at| lane >> at & 1);
            bits.fold(Fr::from(0u64), |number, bit| number * Fr::from(7u64) + Fr::from(bit))
        };
        let lanes = if self.continues { self.lanes } else { [0; LANES] };
        std::iter::once(Fr::from(self.continues)).chain(lanes.map(number))
    }
}

impl Circuit for StateWitness {
    type Input = EncodedWitness;
    type Plan = Plan;
    type Trace = Assignment;
    type Private = Private;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Plan, LayoutError> {
        let zero = layout.constant(Fr::from(0u64));
        self.plan(layout, zero, &[zero; STATE])
    }

    fn execute(
        &self,
        plan: &Plan,
        input: &EncodedWitness,
        values: &mut WireValues,
    ) -> Result<Assignment, CircuitError> {
        let assignment = Assignment::new(&input.witness())?;
        assignment.check(self.sizes, self.counts)?;
        self.publish(plan, &assignment, values)?;
        Ok(assignment)
    }

    fn private_input(
        &self,
        plan: &Plan,
        _: &EncodedWitness,
        assignment: &Assignment,
        instance: InstanceId,
    ) -> Result<Private, CircuitError> {
        let (part, number) = plan.place(instance).ok_or("there is no such subcircuit")?;
        let values = self.private(assignment, part, number);
        Ok(Private(values.ok_or("there is no header")?))
    }

    fn synthesize(
        &self,
        plan: &Plan,
        subcircuit: &Subcircuit,
        private: Option<&Private>,
    ) -> Result<(), SynthesisError> {
        self.build(plan, subcircuit, private, Hashes::Proven)
    }
}

/// Adds the header, which ends the chain. Returns its group and the public wires.
fn add_header(layout: &mut LayoutBuilder, chain: [WireId; 2]) -> (Group, [WireId; 4]) {
    let kind = layout.subcircuit_type("header", 6);
    let first = layout.instances();
    let instance = layout.instance(kind);
    chain.iter().enumerate().for_each(|(slot, wire)| layout.read(instance, slot, *wire));
    let [low, high] = [0, 1].map(|half| layout.public_output("hash", half));
    let public = [low, high, layout.public_output("strings", 0), layout.public_output("W", 0)];
    public.iter().enumerate().for_each(|(slot, wire)| layout.write(instance, 2 + slot, *wire));
    ((kind, Part::Header, first..first + 1), public)
}

impl StateWitness {
    /// Builds the layout. The codes begin with a state of zeros: a state of the prover's choice would produce any digest.
    pub(crate) fn plan(
        &self,
        layout: &mut LayoutBuilder,
        zero: WireId,
        first_state: &[WireId; STATE],
    ) -> Result<Plan, LayoutError> {
        // Not split up: the order of its calls determines the layout, on which keys and digests depend.
        if self.counts.all().iter().any(|(_, count)| *count > MAX_COUNT) {
            return Err(format!("at most {MAX_COUNT} subcircuits of a type").into());
        }
        let links = layout.bus("links");
        let rows = self.sizes.table();
        let tables = Tables::new(self.sizes.pieces, |name, table| {
            layout.table(name, table.rows_per_subcircuit(rows))
        });
        let (mut groups, mut chain, mut states) = (Vec::new(), Vec::new(), Vec::new());
        let mut before = [zero; 2];
        let Counts { branches, leaves, codes, mixed } = self.counts;
        for (name, part, count) in [
            ("branches", Part::Branches, branches),
            ("leaves", Part::Leaves, leaves),
            ("codes", Part::Codes, codes),
            ("mixed", Part::Mixed, mixed),
        ] {
            let slots = if part == Part::Codes { 4 + 2 * STATE } else { 4 };
            let kind = layout.subcircuit_type(name, slots);
            let first = layout.instances();
            let mut state = first_state.to_vec();
            for number in 1..=count {
                let instance = layout.instance(kind);
                let mut after = before;
                for slot in 0..2 {
                    layout.read(instance, slot, before[slot]);
                    after[slot] = layout.wire("chain", 2 * chain.len() as u64 + slot as u64);
                    layout.write(instance, 2 + slot, after[slot]);
                }
                chain.push(after);
                before = after;
                if part != Part::Codes {
                    continue;
                }
                for (slot, wire) in (4..).zip(&state) {
                    layout.read(instance, slot, *wire);
                }
                if number == count {
                    // No code is left unfinished.
                    (4 + STATE..4 + 2 * STATE).for_each(|slot| layout.read(instance, slot, zero));
                    continue;
                }
                for (slot, wire) in state.iter_mut().enumerate() {
                    let index = states.len() * STATE + slot;
                    *wire = layout.wire("state of a code", index as u64);
                    layout.write(instance, 4 + STATE + slot, *wire);
                }
                states.push(state.clone());
            }
            groups.push((kind, part, first..first + count));
        }
        // Last, since its rows need the number of all strings.
        let (header, public) = add_header(layout, before);
        groups.push(header);
        Ok(Plan { tables, links, groups, chain, states, public })
    }

    /// The constraints of a subcircuit.
    pub(crate) fn build(
        &self,
        plan: &Plan,
        subcircuit: &Subcircuit,
        private: Option<&Private>,
        hashes: Hashes,
    ) -> Result<(), SynthesisError> {
        let part = plan.part(subcircuit.kind()).ok_or(SynthesisError::Unsatisfiable)?;
        let context = Context { subcircuit, tables: &plan.tables, hashes };
        let (links, sizes) = (plan.links, self.sizes);
        let mut chain = chain::read(context, 0)?;
        let values = private.map(|Private(values)| values);
        let (first, second) = Values::strings_of(values, part)?;
        match part {
            Part::Branches => {
                for number in 0..sizes.branches {
                    chain = branch(context, links, at(first, number), chain)?;
                }
            }
            Part::Leaves => {
                for number in 0..sizes.leaves {
                    chain = short(context, links, at(first, number), chain, 1)?;
                }
            }
            Part::Mixed => {
                for number in 0..sizes.mixed_branches {
                    chain = mixed(context, links, at(first, number), chain)?;
                }
                for number in 0..sizes.mixed_leaves {
                    chain = short(context, links, at(second, number), chain, 2)?;
                }
            }
            Part::Codes => {
                let blocks = Values::blocks_of(values)?;
                chain = codes(context, links, blocks, chain, sizes.codes, [4, 4 + STATE])?;
            }
            Part::Header => {
                let own = Values::header_of(values)?;
                let always = subcircuit.bit_of(&constant(Fr::one()))?;
                let hash = [subcircuit.slot(2)?, subcircuit.slot(3)?];
                header(context, links, own, &chain, hash, &always)?;
                chain.count.enforce_equal(subcircuit.slot(4)?)?;
                return chain.digest.enforce_equal(subcircuit.slot(5)?);
            }
        }
        chain.digest.enforce_equal(subcircuit.slot(2)?)?;
        chain.count.enforce_equal(subcircuit.slot(3)?)
    }

    /// Sets the values of all wires.
    pub(crate) fn publish(
        &self,
        plan: &Plan,
        assignment: &Assignment,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let (mut chain, mut wires) = (Chain::default(), plan.chain.iter());
        let (mut sponge, mut states) = (Sponge::default(), plan.states.iter());
        for (_, part, range) in &plan.groups {
            if *part == Part::Header {
                continue;
            }
            for number in 0..range.len() {
                let own = self.private(assignment, *part, number).ok_or("there is no header")?;
                add_all(&mut chain, &own, *part);
                if let Some([digest, count]) = wires.next() {
                    values.set(*digest, chain.digest);
                    values.set(*count, Fr::from(chain.count));
                }
                let Values::Blocks(blocks) = own else { continue };
                sponge.absorb(&blocks);
                if let Some(state) = states.next() {
                    let values_of = state.iter().zip(sponge.values());
                    values_of.for_each(|(wire, value)| values.set(*wire, value));
                }
            }
        }
        let [low, high] = halves(&assignment.hash);
        let public = [Fr::from(low), Fr::from(high), Fr::from(chain.count), chain.digest];
        plan.public.iter().zip(public).for_each(|(wire, value)| values.set(*wire, value));
        Ok(())
    }
}
