//! Jobs and tasks that were removed (`retention`), and what is still known of them.

use super::{Collector, PAUSE, State, Step};
use crate::record::{JobKey, JobState};
use hekaton_orchestrator_client::BlobError;
use std::collections::BTreeMap;

impl Collector {
    /// Cancels tasks that were created by a late write, after their job was removed.
    pub(super) fn cancel_strays(state: &mut State, key: &JobKey, steps: &mut Vec<(JobKey, Step)>) {
        let all = state.tasks.remove(key).into_iter().flatten();
        let open: BTreeMap<_, _> = all.filter(|(_, task)| !task.value.state.is_final()).collect();
        if !open.is_empty() {
            steps.extend(open.keys().map(|task| (key.clone(), Step::Cancel(*task))));
            state.tasks.insert(key.clone(), open);
        }
        state.added.remove(key);
    }

    /// Reports whether outputs that a plan uses are missing, so that the tasks must be read again: those that are known may have been
    /// removed, with their outputs, before the job was accepted again. The second time, the files are at fault, and the plan stands.
    pub(super) fn is_doubtful(&self, state: &mut State, key: &JobKey, steps: &[Step]) -> bool {
        let Err(error) = self.hold(steps) else { return false };
        let is_first = state.doubted.insert(key.clone());
        if is_first {
            tracing::warn!(job = %key, %error, "its tasks are read again");
            state.tasks.remove(key);
            state.due.insert(key.clone(), self.clock.after(PAUSE));
        }
        is_first
    }

    /// Keeps the blobs that the steps of a plan name.
    fn hold(&self, steps: &[Step]) -> Result<(), BlobError> {
        steps.iter().try_for_each(|step| match step {
            Step::Create(_, task) => self.workflows.hold(&task.inputs),
            Step::End(JobState::Done { outputs, .. }) => self.workflows.hold(outputs),
            Step::End(_) | Step::Cancel(_) | Step::Revive(_) => Ok(()),
        })
    }
}
