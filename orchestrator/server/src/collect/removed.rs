//! Jobs and tasks that were removed (`retention`), and what is still known of them.

use super::{Change, Collector, PAUSE, State, Step};
use crate::feed::is_newer;
use crate::record::{JobKey, JobState, OnDisk, Task, TaskKey, read, update_on_disk};
use crate::store::{Rev, Store, WriteError};
use hekaton_orchestrator_client::BlobError;
use std::collections::BTreeMap;

impl State {
    /// Forgets tasks that ended before their job was created: they were removed with an earlier job of this name. Jobs that replace others
    /// have a later generation.
    pub(super) fn forget_removed(&mut self, key: &JobKey) {
        let (Some(job), Some(tasks)) = (self.jobs.get(key), self.tasks.get_mut(key)) else {
            return;
        };
        if job.value.is_live() && job.value.generation == 0 {
            tasks.retain(|_, task| {
                !task.value.state.is_final() || is_newer(Some(job.rev), task.rev)
            });
        }
    }

    /// Forgets a task that was removed.
    pub(super) fn forget_task(&mut self, key: &JobKey, task: &TaskKey) {
        if let Some(tasks) = self.tasks.get_mut(key) {
            tasks.remove(task);
        }
        self.leases.remove(task);
    }
}

/// Writes a task, or reads it if it was written or removed meanwhile: there is no event of a removal.
pub(super) async fn rewrite(
    store: &dyn Store,
    task: TaskKey,
    next: Task,
    rev: Rev,
) -> Result<Change, WriteError> {
    let name = task.to_string();
    match update_on_disk(store, &name, next, rev, OnDisk::Soon).await {
        Err(WriteError::Conflict { key }) => match read(store, &name).await {
            Ok(found) => Ok(Change::Reread(task, found)),
            Err(error) => {
                tracing::warn!(%error, "a task will be planned again");
                Err(WriteError::Conflict { key })
            }
        },
        written => Ok(Change::Task(task, written?)),
    }
}

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
