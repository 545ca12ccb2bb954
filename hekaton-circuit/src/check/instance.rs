//! One instance under a check: its constraints and values, and where its constraints were made.

use crate::buses::ledger::EntryValues;
use crate::check::error::{CheckError, NotDeterministic};
use crate::check::violation::{MEMORY_CHECK, Violation};
use crate::execution::prepared::PreparedCircuit;
use crate::execution::{Execution, PrivateInput};
use crate::interface::{Masking, SlotAccess};
use crate::layout::ids::{InstanceId, TypeId};
use crate::memory::places::Places;
use crate::memory::prefix::Prefix;
use crate::memory::variables::VariableLayout;
use crate::synthesis::places;
use crate::synthesis::r1cs::{R1cs, R1csDifference};
use crate::synthesis::synthesized::Synthesized;
use crate::synthesis::{Synthesis, SynthesizeError};
use ark_relations::gr1cs::SynthesisMode;
use hekaton_arith::Fr;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The number of calls under the same challenges that tell chance from a dependence on challenges: one of two orders
/// comes out in all of them once in 256 times.
const REPEATS: usize = 8;

/// One instance of a checked run.
pub(crate) struct Instance<'a> {
    pub(crate) circuit: &'a PreparedCircuit<'a>,
    pub(crate) id: InstanceId,
    pub(crate) kind: TypeId,
    pub(crate) private: PrivateInput,
    /// The values of its slots, masks included.
    pub(crate) values: Vec<Fr>,
    places: Places<'a>,
    /// The order of the variables, from the layout.
    variables: VariableLayout,
    r1cs: Cow<'a, R1cs>,
    assignment: Vec<Fr>,
    /// The entries that it adds to buses.
    entries: Vec<EntryValues>,
    /// The variables that the author marked as private input.
    given: Vec<usize>,
}

impl<'a> Instance<'a> {
    pub(crate) fn new(
        circuit: &'a PreparedCircuit<'a>,
        execution: &Execution<'_>,
        id: InstanceId,
        slots: &'a [SlotAccess],
        expected: &'a R1cs,
    ) -> Result<Self, CheckError> {
        let (layout, instance) = (circuit.layout(), id.index());
        let private = execution.private_input(layout, id)?;
        // Any masks will do, because no constraint of the author's contains one
        // (spec: zero-knowledge#masks).
        let mask = |i: u64| Fr::from(u128::MAX) + Fr::from(i);
        let values = execution.values.masked_slots(layout, id, mask);
        let kind = layout.type_of(id);
        // The part that this instance was added with, not the one that it is equal to.
        let synthesis =
            Synthesis { instance: Some(id), ..Synthesis::new(circuit, kind, Masking::Masked) };
        let variables = synthesis.variables;
        let inside = |error| CheckError::Synthesize { instance, error };
        let places = Places { slots, preprocessed: layout.preprocessed(id) };
        let prefix = places.prefix(&values, 0).ok_or(CheckError::Unchecked { instance })?;
        let (mut entries, mut given) = (Vec::new(), Vec::new());
        let (r1cs, assignment) = if circuit.stored().is_some() {
            // Stored constraints are the same for all instances by construction, so there is nothing to
            // compare them with.
            let count = expected.variables;
            let z = circuit.witness(kind, Masking::Masked, &prefix, &private, count);
            (Cow::Borrowed(expected), z.map_err(inside)?)
        } else {
            let made = synthesize(&synthesis, &prefix, &private).map_err(inside)?;
            let gadget = |source| inside(synthesis.gadget(source));
            let z = made.assignment().map_err(gadget)?;
            let pairs = places.preprocessed.pairs;
            entries = made.ledger().entry_values(pairs).map_err(gadget)?;
            given = made.given();
            (Cow::Owned(synthesis.matrices(&made).map_err(inside)?), z)
        };
        Ok(Self {
            circuit,
            id,
            kind,
            private,
            values,
            places,
            variables,
            r1cs,
            assignment,
            entries,
            given,
        })
    }

    /// Compares the marked values with those of another call, under other challenges: what is committed to
    /// before the challenges are drawn cannot depend on them (spec: buses#commit-round).
    pub(crate) fn compare_marked(&self, execution: &Execution<'_>) -> Result<(), CheckError> {
        let marked = self.r1cs.layout.marked();
        if marked.is_empty() {
            return Ok(());
        }
        let private = execution.private_input(self.circuit.layout(), self.id)?;
        let first = &self.assignment[marked];
        let Some(marked) = self.first_other(first, 1, &private)? else { return Ok(()) };
        let (instance, kind) = (self.id.index(), self.circuit.layout().type_name(self.kind));
        let kind = kind.to_owned();
        // Under the same challenges, only chance is left. Values in one of two orders are the same in half of all calls.
        for _ in 0..REPEATS {
            let private = execution.private_input(self.circuit.layout(), self.id)?;
            if let Some(marked) = self.first_other(first, 0, &private)? {
                return Err(NotDeterministic { instance, kind, marked }.into());
            }
        }
        Err(CheckError::MarkedDepends { instance, kind, marked })
    }

    /// The first of the marked values that is another one under the challenges with this number.
    fn first_other(
        &self,
        first: &[Fr],
        challenges: u64,
        private: &PrivateInput,
    ) -> Result<Option<usize>, CheckError> {
        let instance = self.id.index();
        let prefix = self.places.prefix(&self.values, challenges);
        let prefix = prefix.ok_or(CheckError::Unchecked { instance })?;
        let again = self.circuit.marked(self.kind, Masking::Masked, &prefix, private, first.len());
        let (again, _) = again.map_err(|error| CheckError::Synthesize { instance, error })?;
        Ok(again.iter().zip(first).position(|(again, first)| again != first))
    }

    /// Compares the constraints with those of the type: keys have no others.
    pub(crate) fn compare(&self, expected: &R1cs) -> Result<(), CheckError> {
        // A witness for other constraints would fail in the prover, without a hint at the reason.
        let Some(difference) = expected.first_difference(&self.r1cs) else { return Ok(()) };
        let label = match difference {
            R1csDifference::Row(row) => self.labels([row])?.into_values().collect(),
            R1csDifference::MemoryRow(_) => MEMORY_CHECK.to_owned(),
            _ => String::new(),
        };
        let (instance, kind) = (self.id.index(), expected.name.clone());
        // Without values: is it the part that differs, or do its constraints depend on values?
        let Self { circuit, variables, .. } = *self;
        let own = Synthesis { circuit, kind: self.kind, variables, instance: Some(self.id) };
        let is_part = circuit.stored().is_none()
            && own.r1cs().is_ok_and(|own| expected.first_difference(&own).is_some())
            && Synthesis { instance: None, ..own }
                .r1cs()
                .is_ok_and(|shared| expected.first_difference(&shared).is_none());
        Err(match is_part {
            true => CheckError::EqualParts { instance, kind, difference, label },
            false => CheckError::Differs { instance, kind, difference, label },
        })
    }

    /// Synthesizes the instance again to find the places of some of the author's constraints, by their numbers.
    fn labels(
        &self,
        constraints: impl IntoIterator<Item = usize>,
    ) -> Result<BTreeMap<usize, String>, CheckError> {
        // The author's constraints follow those of the memory check, except in circuits with buses.
        let has_buses = self.circuit.layout().has_buses();
        let first = if has_buses { 0 } else { self.r1cs.layout.rows() };
        let constraints: Vec<usize> = constraints.into_iter().collect();
        let wanted = constraints.iter().map(|constraint| first + constraint);
        let (made, places) = places::recorded(wanted, || self.synthesize(&self.values));
        // An author who asks for the current span is counted as a constraint, and all later places are wrong.
        let is_right = made?.is_some_and(|made| made.cs.num_constraints() == places.made);
        let label = |constraint: usize| match is_right {
            true => places.of(first + constraint),
            false => places::UNKNOWN.to_owned(),
        };
        Ok(constraints.into_iter().map(|constraint| (constraint, label(constraint))).collect())
    }

    /// Adds the labels of violated constraints.
    pub(crate) fn with_labels(
        &self,
        mut list: Vec<Violation>,
    ) -> Result<Vec<Violation>, CheckError> {
        // Only instances with violations are synthesized again.
        let own = list.iter().filter_map(|violation| violation.constraint);
        let labels = match self.circuit.stored() {
            None if !list.is_empty() => self.labels(own)?,
            _ => BTreeMap::new(),
        };
        for violation in &mut list {
            let of_source = self.circuit.describe(self.id, violation.row, Masking::Masked);
            let label = || violation.constraint.and_then(|own| labels.get(&own).cloned());
            violation.label = of_source.or_else(label).unwrap_or_else(|| MEMORY_CHECK.to_owned());
        }
        Ok(list)
    }

    /// Synthesizes the instance with these values in its slots; `None` if no challenges are off the
    /// poles, or the constraints are stored.
    pub(crate) fn synthesize(&self, values: &[Fr]) -> Result<Option<Synthesized>, CheckError> {
        let Self { circuit, kind, variables, .. } = *self;
        if circuit.stored().is_some() {
            return Ok(None);
        }
        let synthesis = Synthesis { circuit, kind, variables, instance: Some(self.id) };
        self.places
            .prefix(values, 0)
            .map(|prefix| synthesize(&synthesis, &prefix, &self.private))
            .transpose()
            .map_err(|error| CheckError::Synthesize { instance: self.id.index(), error })
    }

    /// The R1CS of the instance.
    pub(crate) fn r1cs(&self) -> &R1cs {
        &self.r1cs
    }

    /// The values of all variables.
    pub(crate) fn assignment(&self) -> &[Fr] {
        &self.assignment
    }

    /// The variables that the author marked as private input, in ascending order.
    pub(crate) fn given(&self) -> &[usize] {
        &self.given
    }

    /// The entries that the instance adds to buses.
    pub(crate) fn entries(&self) -> &[EntryValues] {
        &self.entries
    }
}

/// Synthesizes a subcircuit with values.
fn synthesize(
    synthesis: &Synthesis<'_>,
    prefix: &Prefix,
    private: &PrivateInput,
) -> Result<Synthesized, SynthesizeError> {
    let mode = SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false };
    synthesis.run(mode, Some(prefix), Some(private))
}
