//! One instance under a check: its constraints and values, and where its constraints were made.

use crate::check_error::CheckError;
use crate::execution::{Execution, PrivateInput};
use crate::ids::{InstanceId, TypeId};
use crate::labels;
use crate::memory::{MemoryChallenges, SlotAccess};
use crate::prefix::Prefix;
use crate::prepared::PreparedCircuit;
use crate::r1cs::{R1cs, R1csDifference};
use crate::synthesis::{Synthesis, SynthesizeError};
use crate::variables::VariableLayout;
use crate::violation::{MEMORY_CHECK, Violation};
use ark_relations::gr1cs::{ConstraintSystemRef, SynthesisError, SynthesisMode};
use hekaton_arith::Fr;

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
    r1cs: R1cs,
    assignment: Vec<Fr>,
}

impl<'a> Instance<'a> {
    pub(crate) fn new(
        circuit: &'a PreparedCircuit<'a>,
        execution: &Execution<'_>,
        id: InstanceId,
        slots: &'a [SlotAccess],
        variables: VariableLayout,
    ) -> Result<Self, CheckError> {
        let (layout, instance) = (circuit.layout(), id.index());
        let private = execution.private_input(layout, id)?;
        // Any masks will do, because no constraint of the author's contains one
        // (spec: zero-knowledge#masks).
        let mask = |i: u64| Fr::from(u128::MAX) + Fr::from(i);
        let values = execution.values.masked_slots(layout, id, mask);
        let kind = layout.type_of(id);
        let synthesis = Synthesis { circuit, kind, variables };
        let inside = |source| CheckError::Synthesize { instance, source };
        let cs = synthesize(&synthesis, slots, &values, &private)
            .ok_or(CheckError::Unchecked { instance })?
            .map_err(inside)?;
        let r1cs = synthesis.matrices(&cs).map_err(inside)?;
        let assignment = assignment(&cs).map_err(|source| inside(synthesis.gadget(source)))?;
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
    /// poles.
    pub(crate) fn synthesize(
        &self,
        values: &[Fr],
    ) -> Result<Option<ConstraintSystemRef<Fr>>, CheckError> {
        let Self { circuit, kind, variables, .. } = *self;
        let synthesis = Synthesis { circuit, kind, variables };
        synthesize(&synthesis, self.slots, values, &self.private)
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

/// Synthesizes a subcircuit with values, under challenges that hit no pole (zero denominator). Any
/// such challenges will do: for s slots, at most s values of g are poles, so one of s + 1 values is
/// not (spec: memory-check#pole).
fn synthesize(
    synthesis: &Synthesis<'_>,
    slots: &[SlotAccess],
    values: &[Fr],
    private: &PrivateInput,
) -> Option<Result<ConstraintSystemRef<Fr>, SynthesizeError>> {
    let b = Fr::from(u128::MAX - 172);
    let challenges =
        |attempt: u64| MemoryChallenges { g: Fr::from(u128::MAX - 58) + Fr::from(attempt), b };
    let prefix =
        (0..=slots.len() as u64).find_map(|i| Prefix::new(slots, values, &challenges(i)).ok())?;
    let mode = SynthesisMode::Prove { construct_matrices: true, generate_lc_assignments: false };
    Some(synthesis.run(mode, Some(&prefix), Some(private)))
}
