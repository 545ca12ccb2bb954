//! One instance under a check: its constraints and values, and where its constraints were made.

use crate::buses::ledger::EntryValues;
use crate::check::error::CheckError;
use crate::check::violation::{MEMORY_CHECK, Violation};
use crate::execution::prepared::PreparedCircuit;
use crate::execution::{Execution, PrivateInput};
use crate::interface::{Masking, SlotAccess};
use crate::layout::ids::{InstanceId, TypeId};
use crate::memory::places::Places;
use crate::memory::prefix::Prefix;
use crate::memory::variables::VariableLayout;
use crate::synthesis::labels;
use crate::synthesis::r1cs::{R1cs, R1csDifference};
use crate::synthesis::synthesized::Synthesized;
use crate::synthesis::{Synthesis, SynthesizeError};
use ark_relations::gr1cs::SynthesisMode;
use hekaton_arith::Fr;
use std::borrow::Cow;

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
        let variables = layout.variables(kind, Masking::Masked);
        let synthesis = Synthesis { circuit, kind, variables };
        let inside = |source| CheckError::Synthesize { instance, source };
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
        let checked = Self {
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
        };
        checked.compare_marked()?;
        Ok(checked)
    }

    /// Compares the marked values with those under other challenges: what is committed to before the
    /// challenges are drawn cannot depend on them (spec: buses#commit-round).
    fn compare_marked(&self) -> Result<(), CheckError> {
        let marked = self.r1cs.layout.marked();
        if marked.is_empty() {
            return Ok(());
        }
        let instance = self.id.index();
        let inside = |source| CheckError::Synthesize { instance, source };
        let prefix =
            self.places.prefix(&self.values, 1).ok_or(CheckError::Unchecked { instance })?;
        let (kind, private) = (self.kind, &self.private);
        let count = marked.len();
        let again = self.circuit.marked(kind, Masking::Masked, &prefix, private, count);
        let (again, _) = again.map_err(inside)?;
        match again.iter().zip(&self.assignment[marked]).position(|(again, first)| again != first) {
            None => Ok(()),
            Some(marked) => {
                let kind = self.circuit.layout().type_name(kind).to_owned();
                Err(CheckError::MarkedDepends { instance, kind, marked })
            }
        }
    }

    /// Compares the constraints with those of the type: keys have no others.
    pub(crate) fn compare(&self, expected: &R1cs) -> Result<(), CheckError> {
        // A witness for other constraints would fail in the prover, without a hint at the reason.
        let Some(difference) = expected.first_difference(&self.r1cs) else { return Ok(()) };
        let label = match difference {
            R1csDifference::Row(row) => self.label(row)?,
            _ => String::new(),
        };
        let kind = expected.name.clone();
        Err(CheckError::Differs { instance: self.id.index(), kind, difference, label })
    }

    /// Synthesizes the instance again to find the label of a constraint.
    fn label(&self, constraint: usize) -> Result<String, CheckError> {
        if constraint < self.r1cs.layout.rows() {
            return Ok(MEMORY_CHECK.to_owned());
        }
        let made = labels::recorded(|| self.synthesize(&self.values))?;
        let label = |made: &Synthesized| labels::label(&made.cs, made.made_row(constraint));
        Ok(made.as_ref().map_or_else(String::new, label))
    }

    /// Adds the labels of violated constraints.
    pub(crate) fn with_labels(
        &self,
        mut list: Vec<Violation>,
    ) -> Result<Vec<Violation>, CheckError> {
        if list.is_empty() {
            return Ok(list);
        }
        // Recording labels makes synthesis several times as slow, so only instances with violations are
        // synthesized with them.
        let made = labels::recorded(|| self.synthesize(&self.values))?;
        for violation in &mut list {
            let place = self.circuit.describe(self.id, violation.constraint, Masking::Masked);
            if let Some(place) = place {
                violation.label = place;
                continue;
            }
            violation.label = match &made {
                Some(made) if violation.constraint >= made.layout.rows() => {
                    labels::label(&made.cs, made.made_row(violation.constraint))
                }
                _ => MEMORY_CHECK.to_owned(),
            };
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
        let synthesis = Synthesis { circuit, kind, variables };
        self.places
            .prefix(values, 0)
            .map(|prefix| synthesize(&synthesis, &prefix, &self.private))
            .transpose()
            .map_err(|source| CheckError::Synthesize { instance: self.id.index(), source })
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
