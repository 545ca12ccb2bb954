//! The job of one block: submitted, found again, or given up.

use super::{JobSubmitter, Placed, is_of};
use crate::again::Again;
use crate::branch::Link;
use crate::jobs::Jobs;
use crate::record::Record;
use alloy_primitives::B256;
use hekaton_orchestrator_client::Order;
use hekaton_orchestrator_client::body::{JobBody, JobStatus};
use hekaton_orchestrator_client::{ClientError, Digest};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl JobSubmitter {
    /// Makes sure that the job of a block exists.
    pub(super) fn place(
        &self,
        jobs: &Jobs,
        block: &B256,
        link: Link,
        order: Order,
        again: &mut Again,
    ) -> Result<Placed, ClientError> {
        let Some(mut record) = self.read_known(block) else { return Ok(Placed::Refused) };
        if let (Some(job), false) = (&record.job, record.pending) {
            if let Some(placed) = self.look_up(jobs, job, &record, again.why(block))? {
                return Ok(placed);
            }
            if !again.is_time(block, Instant::now()) {
                return Ok(Placed::Refused);
            }
            // Recorded before the job is made: if this process dies in between, the next one makes the job.
            match self.store.change(&record, |record| Record { pending: true, ..record }) {
                Ok(changed) => record = changed,
                Err(error) => {
                    tracing::error!(%error, "cannot update the record of a block; its job is made again all the same")
                }
            }
        } else if link.refused && !link.pending {
            return Ok(Placed::Refused);
        }
        // If the process dies after the orchestrator's answer, the job exists without a note of it.
        // The next round submits it again, and finds it by its fixed name.
        let outcome = match self.submit_one(jobs, &record, order) {
            Err(ClientError::Problem { problem, .. }) if problem.status == 409 => {
                match self.same_block(jobs, &record)? {
                    Some(job) => Ok(job),
                    None => return Ok(Placed::Taken(problem.to_string())),
                }
            }
            outcome => outcome,
        };
        let said = again.why(block);
        if let Some(why) = &said {
            tracing::error!(block = record.block, why, "nothing is published");
        }
        self.settle(&record, &outcome, said);
        match outcome {
            Ok(_) => {
                self.store.counts.jobs.fetch_add(1, Ordering::Relaxed);
                Ok(Placed::Made)
            }
            // A missing blob is not a reason to hold up other blocks: sending its block again brings it back.
            Err(ClientError::File { .. }) => Ok(Placed::Refused),
            Err(error) if is_final(&error) => Ok(Placed::Refused),
            Err(error) => Err(error),
        }
    }

    /// Looks up the job that a record names. Returns its outcome, or `None` if it has to be made again.
    fn look_up(
        &self,
        jobs: &Jobs,
        job: &str,
        record: &Record,
        said: Option<String>,
    ) -> Result<Option<Placed>, ClientError> {
        match jobs.client.job(job, 0) {
            Ok(found) if found.state == "dead" => {
                let reason = found.reason.as_deref().unwrap_or("no reason was given");
                let why =
                    format!("its job is dead: {reason}; requeue or skip it at the orchestrator");
                self.revise(record, |record| Record { refused: Some(why), ..record });
                Ok(Some(Placed::Refused))
            }
            Ok(found) if found.state != "cancelled" => {
                self.heed(record, &found, said);
                Ok(Some(Placed::There))
            }
            Ok(_) => {
                tracing::info!(block = record.block, "its job was cancelled: it is made again");
                Ok(None)
            }
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Records the outcome of a submission; for a job that was made, `refused` is anything else to report about it.
    fn settle(
        &self,
        record: &Record,
        outcome: &Result<String, ClientError>,
        refused: Option<String>,
    ) {
        self.revise(record, |record| match outcome {
            Ok(job) => Record { job: Some(job.clone()), refused, pending: false, ..record },
            Err(error) => {
                // Without the address that was asked: clients that read records need not know it.
                let why = match error {
                    ClientError::Problem { problem, .. } => problem.to_string(),
                    ClientError::Failed { .. } => "the orchestrator does not answer".to_owned(),
                    error => {
                        tracing::error!(%error, block = record.block, "its witness cannot be sent");
                        "its witness cannot be sent: see the log".to_owned()
                    }
                };
                Record { refused: Some(why), pending: !is_final(error), ..record }
            }
        });
    }

    /// Records what a job under way waits for, or else `said`.
    fn heed(&self, record: &Record, found: &JobStatus, said: Option<String>) {
        let missing = found.missing.join("', '");
        let waits = (!missing.is_empty()).then(|| {
            format!("its job waits for the back-end '{missing}', which no process of the orchestrator has")
        });
        let refused = waits.or(said);
        if refused != record.refused {
            if let Some(why) = &refused {
                tracing::warn!(block = record.block, job = found.job, why);
            }
            self.revise(record, |record| Record { refused, ..record });
        }
    }

    /// Returns the job of the same block that another client has submitted with another witness: it serves as well.
    fn same_block(&self, jobs: &Jobs, record: &Record) -> Result<Option<String>, ClientError> {
        let mut found = jobs.client.jobs()?.jobs.into_iter().map(|view| view.job);
        Ok(found.find(|job| is_of(job, jobs, record)).map(|job| job.job))
    }

    fn submit_one(
        &self,
        jobs: &Jobs,
        record: &Record,
        order: Order,
    ) -> Result<String, ClientError> {
        let digest: Digest = record.witness.parse().expect("records with other names are not read");
        // A witness may have hundreds of megabytes, and an earlier submission may have sent it.
        if !jobs.client.has_blob(&digest)? {
            jobs.client.put_file(&self.store.blobs.path(&digest))?;
        }
        let job = JobBody {
            chain: jobs.chain.clone(),
            block: record.number,
            id: Some(record.block.clone()),
            parent: (order == Order::Strict).then(|| record.parent.clone()),
            backend: Some(jobs.backend.clone()),
            inputs: BTreeMap::from([("input".into(), vec![record.witness.clone()])]),
            ..JobBody::default()
        };
        // The job belongs to the trace of the request that brought its witness.
        let client = match &record.trace {
            Some(trace) => jobs.client.traced(trace),
            None => jobs.client.clone(),
        };
        Ok(client.submit(&job)?.job)
    }
}

/// Reports whether the job itself is at fault, so that it is not submitted again until its block is sent again. An operator may fix
/// all other causes, such as a full queue or a wrong token.
fn is_final(error: &ClientError) -> bool {
    match error {
        ClientError::Problem { problem, .. } => [400, 413, 422].contains(&problem.status),
        ClientError::Failed { .. } | ClientError::File { .. } | ClientError::OtherBlob { .. } => {
            false
        }
    }
}
