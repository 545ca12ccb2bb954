//! The bodies of answers, made of records.

use crate::record::{Job, JobState, Publication};
use crate::standstill::Standstill;
use hekaton_orchestrator_client::body::{JobStatus, ProofBody, StandstillBody};

/// Returns the state of a job.
pub(crate) fn job_status(job: &Job) -> JobStatus {
    let (state, outputs, reason, ended) = match &job.state {
        JobState::Live => ("live", vec![], None, None),
        JobState::Done { outputs, at } => {
            ("done", outputs.iter().map(ToString::to_string).collect(), None, Some(*at))
        }
        JobState::Dead { reason, at } => ("dead", vec![], Some(reason.clone()), Some(*at)),
        JobState::Skipped { at } => ("skipped", vec![], None, Some(*at)),
        JobState::Cancelled { reason, at } => {
            ("cancelled", vec![], Some(reason.clone()), Some(*at))
        }
    };
    JobStatus {
        job: job.handle().to_string(),
        chain: job.chain.to_string(),
        block: job.block,
        id: job.id.to_string(),
        state: state.into(),
        outputs,
        reason,
        generation: job.generation,
        accepted: job.accepted,
        ended,
        trace: job.trace.clone(),
        missing: vec![],
    }
}

/// Returns the body for a block that stands still.
pub(crate) fn standstill(one: &Standstill) -> StandstillBody {
    StandstillBody {
        chain: one.chain.to_string(),
        block: one.block,
        id: one.id.to_string(),
        cause: one.cause.to_string(),
        seconds: one.millis / 1_000,
        halts: one.halts,
    }
}

/// Returns an entry of the log of a chain.
pub(crate) fn proof(rev: u64, publication: &Publication) -> ProofBody {
    let (entry, parent, outputs) = match publication {
        Publication::Block { parent, outputs, .. } => {
            ("block", Some(parent), outputs.iter().map(ToString::to_string).collect())
        }
        Publication::Skip { parent, .. } => ("skip", Some(parent), vec![]),
        Publication::Revert { .. } => ("revert", None, vec![]),
    };
    ProofBody {
        rev,
        entry: entry.into(),
        id: publication.tail().to_string(),
        block: publication.height(),
        parent: parent.map(ToString::to_string),
        outputs,
    }
}
