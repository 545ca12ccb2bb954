//! Records that tests start from.

use super::world::name;
use crate::backend::{Backend, Outcome, Rejected, Work};
use crate::dispatch::Progress;
use crate::record::{Job, JobKey, JobState, Limits, Order, Task, TaskKey, TaskState};
use async_trait::async_trait;
use hekaton_orchestrator_client::Digest;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use tokio_util::sync::CancellationToken;

pub(crate) fn task(tenant: &str, chain: &str, block: u64, lane: u8) -> (TaskKey, Task) {
    let job = JobKey { tenant: name(tenant), chain: name(chain), slot: name(&block.to_string()) };
    let digest = Digest::of(format!("{job}").as_bytes());
    let key = TaskKey { partition: job.partition(), job: digest, stage: 0, index: 0, copy: 0 };
    let task = Task {
        id: digest,
        job,
        generation: 0,
        block,
        block_id: name("b"),
        lane,
        stage: name("s"),
        depth: 0,
        backend: name("prove"),
        inputs: vec![],
        limits: Limits { attempts: 4, seconds: 1, stall_seconds: 1 },
        trace: None,
        created: 0,
        attempts: 0,
        failed: BTreeMap::new(),
        refused: BTreeSet::new(),
        last: None,
        deaths: 0,
        returns: 0,
        not_before: 0,
        last_failure: None,
        state: TaskState::Ready,
    };
    (key, task)
}

/// Returns a job of one block, without order.
pub(crate) fn job(inputs: Vec<Digest>) -> Job {
    Job {
        tenant: name("t"),
        chain: name("c"),
        order: Order::None,
        block: 1,
        id: name("b"),
        parent: None,
        lane: 0,
        workflow: Digest::of(b"w"),
        inputs: BTreeMap::from([(name("a"), inputs)]),
        generation: 0,
        trace: None,
        accepted: 0,
        state: JobState::Live,
    }
}

/// A back-end that runs nothing and accepts every output.
#[derive(Debug)]
pub(crate) struct Nothing;

#[async_trait]
impl Backend for Nothing {
    async fn run(&self, _: &Work<'_>, _: &CancellationToken, _: &Progress) -> Outcome {
        Outcome::Again("nothing is run".into())
    }

    async fn verify(&self, _: &Work<'_>, _: &Path) -> Result<(), Rejected> {
        Ok(())
    }
}
