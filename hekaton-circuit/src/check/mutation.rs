//! `check` with mutations: changes the value of one slot at a time, lets the author's code compute
//! everything else anew, and asks whether a constraint notices.
//!
//! A slot that is in a constraint can still be free: an author who allocates a witness with the
//! value of a slot, and constrains that witness, has tied nothing to the slot.

use crate::check::instance::Instance;
use crate::check::violation::sides;
use crate::layout::Layout;
use crate::layout::ids::{TypeId, WireId};
use ark_ff::{AdditiveGroup, Field};
use hekaton_arith::Fr;
use std::collections::{BTreeMap, BTreeSet};

/// A slot whose change no constraint noticed, in any instance of its type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnoticed {
    /// The name of the type.
    pub kind: String,
    /// The slot, with its name if it has one.
    pub slot: String,
    /// The number of instances in which the slot was changed.
    pub instances: usize,
    /// `true` if an instance of the type writes the slot; the values of slots that are only read
    /// come from elsewhere, so those may be meant.
    pub written: bool,
    /// The first public value that is in the slot, by its place among all, if there is one: the verifier
    /// has it from the prover, who may then claim any other.
    pub public: Option<usize>,
}

impl std::fmt::Display for Unnoticed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { kind, slot, instances, written, public } = self;
        let what = match (written, public) {
            (true, _) => "a prover could write any value there",
            (false, Some(_)) => "a prover could claim any public value there",
            (false, None) => "the value that it reads there has no effect",
        };
        write!(
            f,
            "{slot} of type '{kind}' was changed in {instances} instances, and no constraint \
             noticed: {what}"
        )?;
        match public {
            Some(index) => write!(f, "; it is public value {index}, counted from 0"),
            None => Ok(()),
        }
    }
}

/// The outcome for one slot of one instance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mutation {
    kind: TypeId,
    slot: usize,
    noticed: bool,
    written: bool,
    public: Option<usize>,
}

/// The combined outcomes for a slot of a type in all its instances.
#[derive(Default)]
struct OfSlot {
    instances: usize,
    noticed: bool,
    written: bool,
    public: Option<usize>,
}

impl Mutation {
    /// The slots that were changed in some instances and noticed in none.
    pub(crate) fn summarize(layout: &Layout, mutations: Vec<Self>) -> Vec<Unnoticed> {
        let mut slots: BTreeMap<(TypeId, usize), OfSlot> = BTreeMap::new();
        for Self { kind, slot, noticed, written, public } in mutations {
            let entry = slots.entry((kind, slot)).or_default();
            entry.instances += 1;
            entry.noticed |= noticed;
            entry.written |= written;
            entry.public = entry.public.or(public);
        }
        let unnoticed = slots.into_iter().filter(|(_, slot)| !slot.noticed);
        let describe = |((kind, slot), found): ((TypeId, usize), OfSlot)| Unnoticed {
            kind: layout.type_name(kind).to_owned(),
            slot: layout.slot_label(kind, slot),
            instances: found.instances,
            written: found.written,
            public: found.public,
        };
        unnoticed.map(describe).collect()
    }
}

/// The places of the public wires among the public values.
pub(crate) fn public_places(layout: &Layout) -> BTreeMap<WireId, usize> {
    layout.public_wires().enumerate().map(|(index, wire)| (wire, index)).collect()
}

/// Changes each slot of an instance that holds a wire. Slots that the circuit declares to be in no
/// constraint are left out and counted, unless they hold a public wire: the value that the verifier
/// receives there matters to it.
pub(crate) fn mutate(
    instance: &Instance<'_>,
    public: &BTreeMap<WireId, usize>,
    mutations: &mut Vec<Mutation>,
    left_out: &mut BTreeSet<(TypeId, usize)>,
) {
    let layout = instance.circuit.layout();
    let kind = instance.kind;
    let wires: Vec<_> = layout.wires_of(instance.id).collect();
    for (slot, wire) in wires.into_iter().enumerate() {
        let Some(wire) = wire else { continue };
        let place = public.get(&wire).copied();
        if place.is_none() && layout.is_unconstrained(kind, slot) {
            left_out.insert((kind, slot));
            continue;
        }
        let noticed = changes(instance.values[slot])
            .into_iter()
            .any(|value| is_noticed(instance, slot, value));
        let written = layout.writes_slot(instance.id, slot);
        mutations.push(Mutation { kind, slot, noticed, written, public: place });
    }
}

/// Other values for a slot. A neighbor finds missing equalities; the other bit stays within constraints that
/// ask only for a bit; a large value leaves every range.
fn changes(value: Fr) -> [Fr; 3] {
    let bit = if value == Fr::ONE { Fr::ZERO } else { Fr::ONE };
    [value + Fr::ONE, bit, value + Fr::from(u128::MAX)]
}

/// Reports whether a constraint of the author fails when a slot has another value and everything
/// else is computed anew. An error of the author's code is not a constraint: a cheating prover does
/// not run it. In that case the other variables keep their values.
fn is_noticed(instance: &Instance<'_>, slot: usize, value: Fr) -> bool {
    let mut values = instance.values.clone();
    values[slot] = value;
    // Everything that the gadgets derive from the slot changes with it. Only a constraint that ties the
    // slot to something else can still fail.
    let again = match instance.synthesize(&values) {
        Ok(Some(made)) => instance.assignment_of(&made),
        _ => None,
    };
    let r1cs = instance.r1cs();
    let assignment = again.unwrap_or_else(|| {
        let mut assignment = instance.assignment().to_vec();
        assignment[r1cs.layout.committed().start + slot] = value;
        assignment
    });
    r1cs.layout.author_rows(r1cs.constraints()).any(|row| {
        let [a, b, c] = sides(r1cs, row, &assignment);
        a * b != c
    })
}
