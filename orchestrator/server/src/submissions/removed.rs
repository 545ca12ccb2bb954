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
        match self.floor_after(chain, path, at).await? {
            None => Ok(()),
            Some(Floor { id, block }) => Err(SubmissionError::Bad(format!(
                "the chain can only be reverted to block {block} '{id}' or a later one: older jobs may have been removed"
            ))),
        }
    }

    /// Refuses to tear a published block off, or to replace it, if that would revert the chain to a block before its floor.
    pub(super) async fn check_final(
        &self,
        chain: &Chain,
        path: &Path,
        job: &Job,
    ) -> Result<(), SubmissionError> {
        let parent = job.parent.as_ref();
        let Some(at) = parent.and_then(|parent| path.before(parent, &job.id)) else {
            return Ok(());
        };
        match self.floor_after(chain, path, at).await? {
            None => Ok(()),
            Some(Floor { id, block }) => Err(SubmissionError::Taken(format!(
                "block '{}' is published, and its chain can only be reverted to block {block} '{id}' or a later one",
                job.id
            ))),
        }
    }

    /// The floor of a chain, if a block of its path is before it.
    async fn floor_after(
        &self,
        chain: &Chain,
        path: &Path,
        at: usize,
    ) -> Result<Option<Floor>, ReadError> {
        let Some(floor) = self.floor(chain).await? else { return Ok(None) };
        let is_before = match path.blocks.iter().position(|one| one.id == floor.id) {
            Some(floor) => at < floor,
            // The chain was reverted while the floor was raised.
            None => path.blocks[at].height < floor.block,
        };
        Ok(is_before.then_some(floor))
    }

    /// Refuses to replace a cancelled block that is published before the chain's floor: the process that cancelled it ended before it tore
    /// the block off, and now its descendants may have been removed.
    pub(super) async fn check_cancelled(&self, job: &Job) -> Result<(), SubmissionError> {
        let chain = self.chain(&job.tenant, &job.chain).await?;
        let floor = self.floor(&chain).await?;
        // Heights rise along a chain.
        let (Some(genesis), true) =
            (&chain.genesis, floor.is_some_and(|floor| job.block <= floor.block))
        else {
            return Ok(());
        };
        let path = self.path(&log_name(&job.tenant, &job.chain), genesis).await?;
        self.check_final(&chain, &path, job).await
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
