//! The execution, with a count of what subcircuits look up in tables (spec: buses#counting).

use crate::execution::{Execution, ExecutionError};
use crate::ids::{BusId, InstanceId};
use crate::layout::Layout;
use crate::library::{BusKind, BusSpec};
use crate::memory::Masking;
use crate::places::Places;
use crate::prepared::PreparedCircuit;
use crate::synthesis::{Synthesis, SynthesizeError};
use ark_relations::gr1cs::SynthesisMode;
use std::sync::atomic::{AtomicU64, Ordering};

impl PreparedCircuit<'_> {
    /// Executes the circuit on its input.
    ///
    /// # Errors
    /// If the circuit's `execute` fails or leaves a wire without a value, there is no input, or what is
    /// looked up is not in its table.
    pub fn execute(&self) -> Result<Execution<'_>, ExecutionError> {
        self.execute_on(|instances, count| instances.into_iter().map(count).collect())
    }

    /// [`execute`](Self::execute) where look-ups are counted on several threads: `map` applies a
    /// function to all elements of a list, and returns the results in the same order.
    ///
    /// # Errors
    /// As for [`execute`](Self::execute).
    pub fn execute_on(
        &self,
        map: impl Fn(
            Vec<InstanceId>,
            &(dyn Fn(InstanceId) -> Result<(), ExecutionError> + Sync),
        ) -> Vec<Result<(), ExecutionError>>,
    ) -> Result<Execution<'_>, ExecutionError> {
        let mut execution = self.execute_author()?;
        let layout = self.layout();
        if layout.has_tables() {
            let counts = Counts::new(layout);
            // Tables ask for nothing; sparse memories check ranges.
            let is_asker = |id: &InstanceId| match layout.library(layout.type_of(*id)) {
                Some(library) => layout.is_sparse(library),
                None => true,
            };
            let askers = layout.instance_ids().filter(is_asker).collect();
            let count = |instance| counts.add(self, &execution, instance);
            map(askers, &count).into_iter().collect::<Result<(), _>>()?;
            execution.counts = counts.take();
        }
        Ok(execution)
    }

    /// What an instance asks tables for: tables and rows.
    pub(crate) fn look_ups(
        &self,
        execution: &Execution<'_>,
        instance: InstanceId,
    ) -> Result<Vec<(BusId, u32)>, ExecutionError> {
        let (layout, masking) = (self.layout(), Masking::Unmasked);
        let private = execution.private_input(layout, instance)?;
        let (slots, values) =
            (layout.accesses(instance, masking), execution.values.slots(layout, instance));
        let kind = layout.type_of(instance);
        let variables = layout.variables(kind, masking);
        let synthesis = Synthesis { circuit: self, kind, variables };
        let mode =
            SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
        // Under any challenges that hit no pole of a slot: what is looked up does not depend on them.
        let place = Places { slots: &slots, preprocessed: layout.preprocessed(instance) };
        let counted = match place.prefix(&values, 2) {
            Some(prefix) => synthesis.run_author(mode, Some(&prefix), Some(&private)),
            None => Err(SynthesizeError::Pole { kind: synthesis.name() }),
        };
        let counted = counted
            .map_err(|e| ExecutionError::Count { instance: instance.index(), source: e.into() })?;
        let look_ups = std::mem::take(&mut counted.ledger().borrow_mut().look_ups);
        Ok(look_ups)
    }
}

/// How often each row of each table is asked for. Tables count what subcircuits ask for, so they are
/// counted anew whenever the circuit is executed (spec: buses#counting).
struct Counts(Vec<Vec<AtomicU64>>);

impl Counts {
    fn new(layout: &Layout) -> Self {
        let rows = |bus: &BusSpec| match &bus.kind {
            BusKind::Table(table) => (0..table.len()).map(|_| AtomicU64::new(0)).collect(),
            _ => Vec::new(),
        };
        Self(layout.buses.iter().map(rows).collect())
    }

    /// Adds what an instance asks for.
    fn add(
        &self,
        circuit: &PreparedCircuit<'_>,
        execution: &Execution<'_>,
        instance: InstanceId,
    ) -> Result<(), ExecutionError> {
        let look_ups = circuit.look_ups(execution, instance)?;
        for (bus, row) in look_ups {
            self.0[bus.index()][row as usize].fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    fn take(self) -> Vec<Vec<u64>> {
        self.0
            .into_iter()
            .map(|rows| rows.into_iter().map(AtomicU64::into_inner).collect())
            .collect()
    }
}
