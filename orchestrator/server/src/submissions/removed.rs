//! Requests about blocks whose jobs were removed (`retention`).

use super::{Accepted, Path, SubmissionError, Submissions};
use crate::record::{
    Chain, Floor, Job, JobState, Order, Passed, ReadError, chain_key, floor_key, log_name,
    passed_key, publication_key, read,
};
use hekaton_orchestrator_client::Name;

impl Submissions {
    /// Reports whether a chain with strict order has published a block in the place after this name for so long that its job may be
    /// removed.
    pub(crate) async fn is_passed(&self, chain: &Chain, slot: &Name) -> Result<bool, ReadError> {
        let key = passed_key(&chain.tenant, &chain.chain, slot);
        Ok(read::<Passed>(&*self.store, &key).await?.is_some())
    }

    /// Refuses a block that was published and whose job was removed: it would be proven again. Returns the job if it is still there, but
    /// may be removed at any time: nothing may then be created in its place.
    pub(super) async fn check_place(&self, job: &Job) -> Result<Option<Accepted>, SubmissionError> {
        let names: Vec<String> = match &job.parent {
            Some(parent) => {
                let key = |slot: &Name| passed_key(&job.tenant, &job.chain, slot);
                vec![key(parent), key(&job.id)]
            }
            None => vec![publication_key(&job.tenant, &job.chain, &job.id)],
        };
        let mut is_published = false;
        for name in names {
            is_published |= self.store.get(&name).await?.is_some();
        }
        if !is_published {
            return Ok(None);
        }
        match self.read_job(&job.key()).await?.map(|found| found.value) {
            Some(found) if found.identity() == job.identity() => {
                Ok(Some(Accepted { job: found, new: false }))
            }
            // The usual refusal: the record in its place is in the way.
            Some(found) if !matches!(found.state, JobState::Cancelled { .. }) => {
                Err(SubmissionError::Taken(super::taken(job, &found, &found.state)))
            }
            _ => Err(SubmissionError::Taken(was_published(job))),
        }
    }

    /// Keeps the blobs of a job that is about to be accepted.
    pub(super) fn hold(&self, job: &Job) -> Result<(), SubmissionError> {
        let inputs = job.inputs.values().flatten().copied();
        let blobs: Vec<_> = inputs.chain([job.workflow]).collect();
        self.workflows.hold(&blobs).map_err(SubmissionError::NoBlob)
    }

    /// Refuses a new chain of bundles of a chain of which some blocks may have been removed.
    pub(super) async fn check_source(
        &self,
        chain: &Chain,
        of: &Chain,
    ) -> Result<(), SubmissionError> {
        let Some(Floor { id, block }) = self.floor(of).await? else { return Ok(()) };
        let key = chain_key(&chain.tenant, &chain.chain);
        if read::<Chain>(&*self.store, &key).await?.is_some() {
            return Ok(());
        }
        let why = format!(
            "'{}' cannot be bundled any longer: its jobs before block {block} '{id}' may have been removed",
            of.chain
        );
        Err(SubmissionError::Taken(why))
    }

    /// Refuses to revert a chain to a block before its floor: the jobs that would have to be cancelled, and the outputs that bundles are
    /// made of, may have been removed.
    pub(super) async fn check_floor(
        &self,
        chain: &Chain,
        path: &Path,
        at: usize,
    ) -> Result<(), SubmissionError> {
        let Some(Floor { id, block }) = self.floor(chain).await? else { return Ok(()) };
        let floor = path.blocks.iter().position(|one| one.id == id);
        // It is no longer on the path if the chain was reverted while it was raised.
        if floor.map_or(path.blocks[at].height >= block, |floor| floor <= at) {
            return Ok(());
        }
        let why = format!(
            "the chain can only be reverted to block {block} '{id}' or a later one: older jobs may have been removed"
        );
        Err(SubmissionError::Bad(why))
    }

    async fn floor(&self, chain: &Chain) -> Result<Option<Floor>, ReadError> {
        let key = floor_key(&chain.tenant, &chain.chain);
        Ok(read::<Floor>(&*self.store, &key).await?.map(|floor| floor.value))
    }
}

fn was_published(job: &Job) -> String {
    match job.order {
        Order::Strict => format!(
            "block '{}' cannot be accepted: the chain published it, or another block in its place, and the job was removed since",
            job.id
        ),
        Order::None => format!(
            "block '{}' was published, and its job was removed since: submit it under another name to have it proven again",
            job.id
        ),
    }
}
