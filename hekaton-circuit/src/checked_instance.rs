//! One instance under a check: its constraints and values, and where its constraints were made.

use crate::check_error::CheckError;
use crate::execution::{Execution, PrivateInput};
use crate::ids::{InstanceId, TypeId};
use crate::labels;
use crate::memory::{Masking, MemoryChallenges, SlotAccess};
use crate::prefix::Prefix;
use crate::prepared::PreparedCircuit;
use crate::r1cs::{R1cs, R1csDifference};
use crate::synthesis::{Synthesis, SynthesizeError};
use crate::variables::VariableLayout;
use crate::violation::{MEMORY_CHECK, Violation};
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError, SynthesisMode};
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
    slots: &'a [SlotAccess],
    variables: VariableLayout,
    r1cs: Cow<'a, R1cs>,
    assignment: Vec<Fr>,
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
        let (kind, variables) = (layout.type_of(id), expected.layout);
        let synthesis = Synthesis { circuit, kind, variables };
        let inside = |source| CheckError::Synthesize { instance, source };
        let prefix = prefix(slots, &values).ok_or(CheckError::Unchecked { instance })?;
        let (r1cs, assignment) = if circuit.stored().is_some() {
            // Stored constraints are the same for all instances.
            let count = expected.variables;
            let z = circuit.witness(kind, Masking::Masked, &prefix, &private, count);
            (Cow::Borrowed(expected), z.map_err(inside)?)
        } else {
            let cs = synthesize(&synthesis, &prefix, &private).map_err(inside)?;
            let z = assignment(&cs).map_err(|source| inside(synthesis.gadget(source)))?;
            (Cow::Owned(synthesis.matrices(&cs).map_err(inside)?), z)
        };
        Ok(Self { circuit, id, kind, private, values, slots, variables, r1cs, assignment })
    }

    /// Compares the constraints with those of the type: keys have no others.
    pub(crate) fn compare(&self, expected: &R1cs) -> Result<(), CheckError> {
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
        if constraint < self.variables.rows() {
            return Ok(MEMORY_CHECK.to_owned());
        }
        let cs = labels::recorded(|| self.synthesize(&self.values))?;
        Ok(cs.map_or_else(String::new, |cs| labels::label(&cs, constraint)))
    }

    /// Adds the labels of violated constraints.
    pub(crate) fn with_labels(
        &self,
        mut list: Vec<Violation>,
    ) -> Result<Vec<Violation>, CheckError> {
        if list.is_empty() {
            return Ok(list);
        }
        let cs = labels::recorded(|| self.synthesize(&self.values))?;
        for violation in &mut list {
            let place = self.circuit.describe(self.id, violation.constraint, Masking::Masked);
            if let Some(place) = place {
                violation.label = place;
                continue;
            }
            violation.label = match &cs {
                Some(cs) if violation.constraint >= self.variables.rows() => {
                    labels::label(cs, violation.constraint)
                }
                _ => MEMORY_CHECK.to_owned(),
            };
        }
        Ok(list)
    }

    /// Synthesizes the instance with these values in its slots; `None` if no challenges are off the
    /// poles, or the constraints are stored.
    pub(crate) fn synthesize(
        &self,
        values: &[Fr],
    ) -> Result<Option<ConstraintSystemRef<Fr>>, CheckError> {
        let Self { circuit, kind, variables, .. } = *self;
        if circuit.stored().is_some() {
            return Ok(None);
        }
        let synthesis = Synthesis { circuit, kind, variables };
        prefix(self.slots, values)
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

    /// The values of all variables of another synthesis of this instance, if it has as many.
    pub(crate) fn assignment_of(&self, cs: &ConstraintSystemRef<Fr>) -> Option<Vec<Fr>> {
        assignment(cs).ok().filter(|z| z.len() == self.assignment.len())
    }
}

/// The values of all variables.
fn assignment(cs: &ConstraintSystemRef<Fr>) -> Result<Vec<Fr>, SynthesisError> {
    let mut assignment = cs.instance_assignment()?;
    assignment.extend(cs.witness_assignment()?);
    Ok(assignment)
}

/// The variables of the memory check under challenges that hit no pole (zero denominator). Any such
/// challenges will do: for s slots, at most s values of g are poles, so one of s + 1 values is not
/// (spec: memory-check#pole).
fn prefix(slots: &[SlotAccess], values: &[Fr]) -> Option<Prefix> {
    let b = Fr::from(u128::MAX - 172);
    let challenges =
        |attempt: u64| MemoryChallenges { g: Fr::from(u128::MAX - 58) + Fr::from(attempt), b };
    (0..=slots.len() as u64).find_map(|i| Prefix::new(slots, values, &challenges(i)).ok())
}

/// Synthesizes a subcircuit with values.
fn synthesize(
    synthesis: &Synthesis<'_>,
    prefix: &Prefix,
    private: &PrivateInput,
) -> Result<ConstraintSystemRef<Fr>, SynthesizeError> {
    let mode = SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false };
    synthesis.run(mode, Some(prefix), Some(private))
}
