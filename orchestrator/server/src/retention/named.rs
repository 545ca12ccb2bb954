//! The blobs that records name.

use crate::record::{Chain, Job, JobState, Task, TaskState};
use hekaton_orchestrator_client::Digest;
use std::collections::HashSet;

/// The blobs that the listed records name.
#[derive(Debug, Default)]
pub(super) struct Named {
    digests: HashSet<Digest>,
    /// `true` if a record could not be read, which may name any blob.
    pub(super) is_incomplete: bool,
}

impl Named {
    pub(super) fn job(&mut self, job: &Job) {
        self.digests.insert(job.workflow);
        self.digests.extend(job.inputs.values().flatten());
        if let JobState::Done { outputs, .. } = &job.state {
            self.digests.extend(outputs);
        }
    }

    pub(super) fn task(&mut self, task: &Task) {
        self.digests.extend(&task.inputs);
        if let TaskState::Done { output, .. } = task.state {
            self.digests.insert(output);
        }
    }

    pub(super) fn chain(&mut self, chain: &Chain) {
        self.digests.extend(chain.bundles.as_ref().map(|bundles| bundles.workflow));
    }

    pub(super) fn has(&self, digest: &Digest) -> bool {
        self.digests.contains(digest)
    }
}
