//! Counts of the look-ups of each row of a table, which the provers of tables must know
//! (spec: buses#counting).

use crate::buses::look_ups::{Counts, LookUps};
use crate::execution::prepared::PreparedCircuit;
use crate::execution::{Execution, ExecutionError};
use crate::interface::Masking;
use crate::layout::Layout;
use crate::layout::ids::InstanceId;
use crate::memory::places::Places;
use crate::synthesis::{Synthesis, SynthesizeError};
use ark_relations::gr1cs::SynthesisMode;

impl Layout {
    /// Reports whether an instance holds rows of a table, so that its private input is known only
    /// after all look-ups have been counted.
    pub fn is_table(&self, instance: InstanceId) -> bool {
        self.library(self.type_of(instance)).is_some_and(|library| !self.is_memory(library))
    }
}

impl PreparedCircuit<'_> {
    /// Executes the circuit on its input, and counts all look-ups.
    ///
    /// # Errors
    /// If the circuit's `execute` fails or leaves a wire without a value, there is no input, or a
    /// subcircuit looks up a row that its table does not have.
    pub fn execute(&self) -> Result<Execution<'_>, ExecutionError> {
        let execution = self.execute_uncounted()?;
        self.count(&execution)?;
        Ok(execution)
    }

    /// Counts all look-ups of an execution, one subcircuit after the other, and sets them.
    ///
    /// # Errors
    /// If a subcircuit cannot be synthesized, or looks up a row that its table does not have.
    pub fn count(&self, execution: &Execution<'_>) -> Result<(), ExecutionError> {
        let mut counts = Counts::new(self.layout());
        for instance in self.layout().instance_ids() {
            let look_ups = self.own_look_ups(execution, instance, Some(instance))?;
            counts.add(&look_ups).map_err(|why| ExecutionError::Count {
                instance: instance.index(),
                error: why.into(),
            })?;
        }
        execution.set_counts(counts);
        Ok(())
    }

    /// Returns the look-ups of an instance, from a synthesis of its own.
    ///
    /// # Errors
    /// If it cannot be synthesized, or looks up a row that its table does not have.
    pub fn look_ups(
        &self,
        execution: &Execution<'_>,
        instance: InstanceId,
    ) -> Result<LookUps, ExecutionError> {
        self.own_look_ups(execution, instance, None)
    }

    /// [`look_ups`](Self::look_ups) of the instance's own part, in checks, or of the part of its type.
    fn own_look_ups(
        &self,
        execution: &Execution<'_>,
        instance: InstanceId,
        own: Option<InstanceId>,
    ) -> Result<LookUps, ExecutionError> {
        let (layout, masking) = (self.layout(), Masking::Unmasked);
        // Tables look nothing up, and their own private input does not exist before the counts do.
        if !layout.has_tables() || layout.is_table(instance) {
            return Ok(LookUps::default());
        }
        let private = execution.private_input(layout, instance)?;
        let (slots, values) =
            (layout.accesses(instance, masking), execution.values.slots(layout, instance));
        let kind = layout.type_of(instance);
        let synthesis = Synthesis { instance: own, ..Synthesis::new(self, kind, masking) };
        let mode =
            SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
        // Look-ups are of marked values and shared wires, which precede the challenges. So any challenges
        // that hit no pole of a slot will do (spec: buses#commit-round).
        let place = Places { slots: &slots, preprocessed: layout.preprocessed(instance) };
        let synthesized = match place.prefix(&values, 2) {
            Some(prefix) => synthesis.run_author(mode, Some(&prefix), Some(&private)),
            None => Err(SynthesizeError::Pole { kind: synthesis.name() }),
        };
        let counted = synthesized
            .map_err(|e| ExecutionError::Count { instance: instance.index(), error: e.into() })?;
        let asked = std::mem::take(&mut counted.ledger().borrow_mut().look_ups);
        Ok(LookUps::of(asked))
    }
}
