//! The commit round of a circuit with tables: first all subcircuits that look something up, whose
//! provers report their look-ups, then the tables (spec: buses#counting).

use crate::pool::LocalEngine;
use crate::protocol::coordinator::Coordinator;
use crate::protocol::error::ProveError;
use crate::protocol::options::Cancellation;
use hekaton_circuit::{Counts, LookUps};
use std::sync::{Mutex, PoisonError};

/// The look-ups that have been counted so far. Logs do not have them, since they follow from the values.
pub(crate) struct Counting<'a> {
    coordinator: &'a Coordinator<'a>,
    counts: Mutex<Counts>,
}

impl<'a> Counting<'a> {
    /// `None` if nothing is to be counted: the layout has no tables, or an earlier attempt has counted.
    pub(crate) fn start(coordinator: &'a Coordinator<'a>) -> Option<Self> {
        let counts = coordinator.no_look_ups()?;
        coordinator.counts().is_none().then(|| Self { coordinator, counts: Mutex::new(counts) })
    }

    /// Reports whether an instance must wait until all look-ups have been counted.
    pub(crate) fn must_wait(&self, instance: usize) -> bool {
        self.coordinator.is_table(instance)
    }

    /// Adds the look-ups that the prover of an instance reports.
    pub(crate) fn add(
        &self,
        instance: usize,
        look_ups: &LookUps,
        prover: &str,
    ) -> Result<(), ProveError> {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.add(look_ups).map_err(|why| ProveError::LookUps {
            instance,
            prover: prover.to_owned(),
            why,
        })
    }

    /// Counts what instances look up whose answers are in the log of an earlier process.
    pub(crate) fn add_again(
        &self,
        instances: Vec<usize>,
        pool: &LocalEngine,
        cancellation: &Cancellation,
    ) -> Result<(), ProveError> {
        if instances.is_empty() {
            return Ok(());
        }
        let execution = self.coordinator.execution()?;
        let each = pool.map(instances, |instance| {
            if cancellation.is_cancelled() {
                return Err(ProveError::Cancelled);
            }
            let look_ups = self.coordinator.look_ups(&execution, instance)?;
            self.add(instance, &look_ups, "this process")
        });
        each.into_iter().collect()
    }

    /// Passes the counts on to the jobs of tables.
    pub(crate) fn finish(&self) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        self.coordinator.set_counts(counts.clone());
    }
}

/// Counts everything, in this process.
pub(crate) fn count_again(
    coordinator: &Coordinator<'_>,
    pool: &LocalEngine,
    cancellation: &Cancellation,
) -> Result<(), ProveError> {
    let Some(none) = coordinator.no_look_ups() else { return Ok(()) };
    let again = Counting { coordinator, counts: Mutex::new(none) };
    again.add_again((0..coordinator.instances()).collect(), pool, cancellation)?;
    again.finish();
    Ok(())
}
