//! Runners of tasks, and what they report.

use crate::record::{Task, TaskKey};
use async_trait::async_trait;
use hekaton_orchestrator_client::Digest;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The output is stored, and was verified.
    Done(Digest),
    /// It failed; another attempt may do better.
    Failed(String),
    /// It failed because of the task's own limits or inputs: another attempt may do better, and the back-end is not to blame.
    Unfit(String),
    /// The back-end produced a wrong output.
    Wrong(String),
    /// No attempt can succeed.
    Impossible(String),
    /// It was abandoned through no fault of the task.
    Again(String),
    /// Its worker was stopped.
    Stopped,
}

/// A task that this process has leased.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claimed<'a> {
    pub(crate) key: TaskKey,
    pub(crate) task: &'a Task,
    /// The revision of the claim.
    pub(crate) epoch: u64,
}

/// Runs tasks. Dropping the future, or cancelling, ends the run and all its processes.
#[async_trait]
pub(crate) trait Runner: Send + Sync + 'static {
    /// Makes one attempt.
    async fn run(
        &self,
        claimed: &Claimed<'_>,
        cancel: &CancellationToken,
        progress: &Progress,
    ) -> Attempt;

    /// Reports whether attempts run on other machines, where they survive a crash of this one.
    fn is_remote(&self, _: &Task) -> bool {
        false
    }

    /// Ends what attempts have left running on other machines.
    async fn abandon(&self, _: &Task) {}

    /// Forgets what was kept for a task whose result is written.
    fn settled(&self, _: &Task) {}
}

/// A handle by which a run reports its progress, from 0 to 1.
#[derive(Clone, Debug)]
pub struct Progress(pub(crate) Arc<dyn Report>);

/// Takes reports of progress.
pub(crate) trait Report: std::fmt::Debug + Send + Sync {
    fn report(&self, part: f32);

    /// Reports a part of the run that has ended.
    fn phase(&self, _name: &str, _from: u64, _to: u64) {}
}

impl Progress {
    /// Reports the fraction done, from 0 to 1. Reporting the same fraction again counts as progress, too.
    pub fn report(&self, part: f32) {
        self.0.report(if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 });
    }

    /// Reports a part of the run that has ended, for traces. Times are milliseconds since 1970.
    pub fn phase(&self, name: &str, from: u64, to: u64) {
        self.0.phase(name, from, to);
    }
}
