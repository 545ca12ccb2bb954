//! Removes what ended longer ago than the operator wants to keep it, and nothing that is still wanted.
//!
//! **Age.** A record is old if it was written before a revision ([`Store::written_before`]) that the *previous* sweep found, at least
//! [`SWEEP`] earlier, with a clock that has since advanced as much as the monotonic one: the jump of a clock that is corrected within an hour
//! removes nothing, and the clocks of different machines are never compared. A new process removes nothing in its first sweep. A published
//! block is as old as its entry in the log, which has no time, and counts as new until another record is written after it. All removals
//! expect the revision that was judged, so what was revived, replaced or written in the meantime stays, and any number of processes may
//! sweep at the same time.
//!
//! **Jobs.** Live jobs stay. In a chain without order, a job goes once it is dead or cancelled, or its publication is in the log; the record
//! of the publication stays and keeps it from being accepted again. In a chain with strict order:
//!
//! - The last [`KEPT`] published blocks stay, and so does everything above them that is not cancelled.
//! - A *floor* ([`Floor`]) is raised first; the chain cannot be reverted to a block before it. Blocks below a floor that an earlier sweep
//!   has raised are thus published for good. A revert at the same moment may tear the floor's block off: the floor is then void, and lowered.
//! - Blocks whose outputs are still to be bundled stay, and so do those of a bundle that a revert to the floor would tear off. The floor of a
//!   chain of bundles is at most that of its source.
//! - The record of a published block is its chain's only protection against another block in its place, or a second block of the name
//!   before it. A mark ([`Passed`]) replaces it, which submissions and publishers look for; the job goes in a later sweep, when no process
//!   can be acting on a look from before the mark.
//! - This holds whatever the job of a published block says: a process may die after it has cancelled the job and before it has torn the
//!   block off. It is torn off by requests only, and not below the floor.
//! - A cancelled block that is not published goes once nothing follows it, so that the descendants of a branch can always be found, and once
//!   no publisher that has seen it done can publish it.
//!
//! Tasks go before their job: if the process dies in between, the next sweep finds the job. A task stays as long as its run folder does,
//! which only processes with its back-end remove. A task without a job was created by a write that took effect late.
//!
//! **Blobs** are removed if no record names them and they were not touched for a day (`unused`). Each record that names a blob is written
//! only after it was touched, or after it was created: by submissions, chains of bundles, and the collectors that end jobs and make tasks of
//! outputs. The files are listed before the records, and records that this sweep removes still count. So a blob that is removed was named by
//! no record when the records were listed, and by none after that. Removals of records are on disk before that of a blob.
//!
//! The log of a chain stays whole, and so do marks and the records of publications: names must never occur twice.

mod named;
#[cfg(test)]
mod tests;
mod trail;
mod unused;

pub(crate) use unused::{restore, touch};

use crate::clock::{Clock, millis};
use crate::id::PARTITIONS;
use crate::publish::is_in_log;
use crate::record::{
    BadRecord, Chain, Floor, Job, JobKey, JobState, OnDisk, Order, Passed, ReadError, Stored, Task,
    TaskKey, create, create_on_disk, decode, floor_key, log_name, passed_key, publication_key,
    read, update,
};
use crate::store::{Entry, Rev, Store, Unavailable, WriteError};
use crate::submissions::{SubmissionError, Submissions};
use hekaton_orchestrator_client::{BlobError, Blobs, Digest, Name};
use named::Named;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use trail::Trail;
use unused::Unused;

/// The interval between sweeps.
pub(crate) const SWEEP: Duration = Duration::from_secs(3_600);

/// The number of published blocks of a chain with strict order that stay whatever their age: two epochs of Ethereum, after which blocks are
/// final.
pub(crate) const KEPT: usize = 64;

/// The difference between the wall clock and the monotonic one after which the wall clock was set.
const JUMP: Duration = Duration::from_secs(60);

type ChainId = (Name, Name);

/// The files that belong to records.
#[derive(Debug)]
pub(crate) struct Files {
    pub(crate) blobs: Blobs,
    /// The folder of the blobs.
    pub(crate) folder: PathBuf,
    /// The folder with a folder for each task.
    pub(crate) spool: PathBuf,
}

/// The configuration and dependencies of the sweeps.
pub(crate) struct Retention {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<dyn Store>,
    pub(crate) submissions: Submissions,
    pub(crate) clock: Clock,
    /// The time for which everything is kept.
    pub(crate) keep: Duration,
    pub(crate) interval: Duration,
    /// The number of published blocks that stay whatever their age.
    pub(crate) last: usize,
    pub(crate) files: Option<Files>,
}

/// Why a sweep ended early. The next one does the rest.
#[derive(Debug, thiserror::Error)]
enum SweepError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error("its chain: {0}")]
    Chain(SubmissionError),
    #[error("the files cannot be swept: {0}")]
    Files(tokio::task::JoinError),
}

impl From<SubmissionError> for SweepError {
    fn from(error: SubmissionError) -> Self {
        Self::Chain(error)
    }
}

impl From<tokio::task::JoinError> for SweepError {
    fn from(error: tokio::task::JoinError) -> Self {
        Self::Files(error)
    }
}

impl From<Unavailable> for SweepError {
    fn from(error: Unavailable) -> Self {
        Self::Read(error.into())
    }
}

impl From<BadRecord> for SweepError {
    fn from(error: BadRecord) -> Self {
        Self::Read(error.into())
    }
}

/// The state of the store at the start of a sweep.
#[derive(Debug)]
struct Look {
    monotonic: Duration,
    wall: u64,
    counter: Rev,
    /// The floors by their keys.
    floors: BTreeMap<String, Floor>,
    /// Records that were written up to this revision are old.
    horizon: u64,
    /// Sessions, and when they were written.
    sessions: BTreeMap<String, Rev>,
}

#[derive(Default)]
struct State {
    before: Option<Look>,
    trails: BTreeMap<ChainId, Trail>,
}

/// The chains at the start of a sweep.
#[derive(Default)]
struct Chains {
    chains: BTreeMap<ChainId, Chain>,
    floors: BTreeMap<ChainId, Stored<Floor>>,
    /// The heights up to which published blocks of chains with strict order may be removed.
    limits: BTreeMap<ChainId, u64>,
}

impl Chains {
    /// The chains of bundles of a chain.
    fn bundling(&self, (tenant, chain): &ChainId) -> impl Iterator<Item = &ChainId> {
        let of = self.chains.iter().filter(move |((other, _), made)| {
            let bundles = made.bundles.as_ref();
            other == tenant && bundles.is_some_and(|bundles| bundles.of == *chain)
        });
        of.map(|(id, _)| id)
    }
}

/// The number of things that a sweep has removed.
#[derive(Debug, Default)]
struct Removed {
    jobs: usize,
    tasks: usize,
    blobs: usize,
    /// The least heights of blocks that are below the limit and were not removed yet.
    left: BTreeMap<ChainId, u64>,
}

impl Removed {
    fn leave(&mut self, job: &Job) {
        let chain = (job.tenant.clone(), job.chain.clone());
        let least = self.left.entry(chain).or_insert(job.block);
        *least = job.block.min(*least);
    }
}

impl Retention {
    /// Sweeps until the future is dropped.
    pub(crate) async fn run(self) {
        let mut state = State::default();
        loop {
            match self.sweep(&mut state).await {
                Ok(Removed { jobs: 0, tasks: 0, blobs: 0, .. }) => {}
                Ok(Removed { jobs, tasks, blobs, .. }) => {
                    tracing::info!(jobs, tasks, blobs, "removed what was old");
                }
                Err(error) => tracing::warn!(%error, "old jobs and blobs are removed later"),
            }
            self.clock.sleep(self.interval).await;
        }
    }

    async fn sweep(&self, state: &mut State) -> Result<Removed, SweepError> {
        let mut removed = Removed::default();
        let look = self.look().await?;
        let is_early =
            |before: &Look| look.monotonic.saturating_sub(before.monotonic) < self.interval / 2;
        if state.before.as_ref().is_some_and(is_early) {
            return Ok(removed);
        }
        let Some(before) = state.before.take().filter(|before| is_steady(before, &look)) else {
            // Trails may be of another store.
            *state = State { before: Some(look), ..State::default() };
            return Ok(removed);
        };
        let unused = self.untouched().await?;
        let mut named = Named::default();
        let chains = self.chains(state, &before, &mut named).await?;
        for partition in 0..PARTITIONS {
            self.partition(partition, (&before, &chains, &state.trails), &mut named, &mut removed)
                .await?;
        }
        for (id, limit) in &chains.limits {
            let first = removed.left.get(id).map_or(*limit, |left| *left.min(limit));
            state.trails.entry(id.clone()).or_default().forget(first);
        }
        for (key, rev) in &look.sessions {
            // A session that is alive is written each second, and one that was removed too early is created again.
            if before.sessions.get(key) == Some(rev) {
                settled(self.sessions.remove(key, *rev).await)?;
            }
        }
        self.store.prune(before.horizon).await?;
        if unused.is_some() {
            // A crash of the machine could take back removals of this and other processes, whose records name blobs. The list only shows
            // the present revision.
            let at = self.store.list("owner/00", 0).await?.at;
            self.store.on_disk(at).await?;
        }
        removed.blobs = self.remove_unused(unused, named).await?;
        state.before = Some(look);
        Ok(removed)
    }

    async fn look(&self) -> Result<Look, SweepError> {
        let wall = self.clock.wall();
        let horizon = self.store.written_before(wall.saturating_sub(millis(self.keep))).await?;
        let sessions = self.sessions.list("session/", 0).await?.entries.into_iter();
        let floors = self.store.list("floor/", 0).await?;
        let read = |entry: &Entry| Ok((entry.key.clone(), decode::<Floor>(entry)?.value));
        Ok(Look {
            monotonic: self.clock.monotonic(),
            wall,
            counter: floors.at,
            floors: floors.entries.iter().map(read).collect::<Result<_, BadRecord>>()?,
            horizon,
            sessions: sessions.map(|entry| (entry.key, entry.rev)).collect(),
        })
    }

    /// Reads the chains, raises their floors, and finds what may be removed below floors that were raised before.
    async fn chains(
        &self,
        state: &mut State,
        before: &Look,
        named: &mut Named,
    ) -> Result<Chains, SweepError> {
        let mut found = Chains::default();
        for entry in &self.store.list("chain/", 0).await?.entries {
            let chain = decode::<Chain>(entry)?.value;
            named.chain(&chain);
            let id = (chain.tenant.clone(), chain.chain.clone());
            if chain.order == Order::Strict {
                let trail = state.trails.entry(id.clone()).or_default();
                trail.read_on(&*self.store, &log_name(&id.0, &id.1)).await?;
                let floor = read::<Floor>(&*self.store, &floor_key(&id.0, &id.1)).await?;
                found.floors.extend(floor.map(|floor| (id.clone(), floor)));
            }
            found.chains.insert(id, chain);
        }
        for id in found.chains.keys() {
            let limit = limit(&found, &state.trails, id, before);
            found.limits.extend(limit.map(|limit| (id.clone(), limit)));
            self.raise(&found, &state.trails, id, before.horizon).await?;
        }
        Ok(found)
    }

    /// Raises the floor of a chain to its last old block.
    async fn raise(
        &self,
        chains: &Chains,
        trails: &BTreeMap<ChainId, Trail>,
        id: &ChainId,
        horizon: u64,
    ) -> Result<(), SweepError> {
        let Some(trail) = trails.get(id) else { return Ok(()) };
        let mut most = u64::MAX;
        for bundling in chains.bundling(id) {
            // Blocks that are not bundled yet are needed.
            let end = trails.get(bundling).and_then(Trail::height);
            let Some(end) = end else { return Ok(()) };
            most = most.min(end);
        }
        if let Some(bundles) = chains.chains.get(id).and_then(|chain| chain.bundles.as_ref()) {
            // A revert of the source must be able to tear off the bundles of its blocks.
            let of = (id.0.clone(), bundles.of.clone());
            let floor = chains.floors.get(&of);
            let is_valid =
                |floor: &&Stored<Floor>| trails.get(&of).is_some_and(|it| it.is_on(&floor.value));
            let Some(floor) = floor.filter(is_valid) else { return Ok(()) };
            most = most.min(floor.value.block);
        }
        let Some(block) = trail.last_old(horizon, most, self.last) else { return Ok(()) };
        let (key, known) = (floor_key(&id.0, &id.1), chains.floors.get(id));
        let floor = Floor { id: block.id.clone(), block: block.height };
        let written = match known {
            Some(known) if known.value.block >= floor.block && trail.is_on(&known.value) => {
                return Ok(());
            }
            Some(known) => update(&*self.store, &key, floor, known.rev).await,
            None => create(&*self.store, &key, floor).await,
        };
        settled(written.map(|written| written.rev))?;
        Ok(())
    }

    /// Removes what is old in a partition.
    async fn partition(
        &self,
        partition: u8,
        (before, chains, trails): (&Look, &Chains, &BTreeMap<ChainId, Trail>),
        named: &mut Named,
        removed: &mut Removed,
    ) -> Result<(), SweepError> {
        // The tasks first: their jobs are older, so they are listed, too, unless they were removed.
        let listed = self.store.list(&format!("task/{partition:02}/"), 0).await?;
        let mut tasks: BTreeMap<JobKey, Vec<(TaskKey, Stored<Task>)>> = BTreeMap::new();
        let mut unreadable = BTreeSet::new();
        for entry in &listed.entries {
            match (entry.key.parse::<TaskKey>(), decode::<Task>(entry)) {
                (Ok(key), Ok(task)) => {
                    named.task(&task.value);
                    tasks.entry(task.value.job.clone()).or_default().push((key, task));
                }
                // Written by a later version: nothing is known of the job and the blobs that belong to it.
                (key, _) => {
                    named.is_incomplete = true;
                    unreadable.extend(key.map(|key| key.job));
                }
            }
        }
        for entry in &self.store.list(&format!("job/{partition:02}/"), 0).await?.entries {
            let (Ok(key), Ok(job)) = (entry.key.parse::<JobKey>(), decode::<Job>(entry)) else {
                named.is_incomplete = true;
                continue;
            };
            named.job(&job.value);
            let own: Vec<_> = tasks.remove(&key).into_iter().flatten().collect();
            let is_left = unreadable.contains(&job.value.identity());
            let are_old = own.iter().all(|(_, task)| self.is_over(task, before.horizon));
            let may_go = !is_left && are_old;
            if may_go
                && self.is_removable(&job, (before, chains, trails)).await?
                && self.remove_tasks(&own, removed).await?
                && settled(self.store.remove(&entry.key, job.rev).await)?
            {
                removed.jobs += 1;
            } else {
                removed.leave(&job.value);
            }
        }
        if named.is_incomplete {
            return Ok(());
        }
        for (_, own) in tasks {
            let old: Vec<_> =
                own.into_iter().filter(|(_, task)| self.is_over(task, before.horizon)).collect();
            self.remove_tasks(&old, removed).await?;
        }
        Ok(())
    }

    /// Reports whether nothing needs a task any longer once its job is removed.
    fn is_over(&self, task: &Stored<Task>, horizon: u64) -> bool {
        let Stored { value: task, rev } = task;
        let folder = self.files.as_ref().map(|files| files.spool.join(task.id.to_string()));
        task.state.is_final()
            && rev.number <= horizon
            && !folder.is_some_and(|folder| folder.exists())
    }

    /// Removes tasks. Returns `false` if one of them was written meanwhile.
    async fn remove_tasks(
        &self,
        tasks: &[(TaskKey, Stored<Task>)],
        removed: &mut Removed,
    ) -> Result<bool, SweepError> {
        for (key, task) in tasks {
            if !settled(self.store.remove(&key.to_string(), task.rev).await)? {
                return Ok(false);
            }
            removed.tasks += 1;
        }
        Ok(true)
    }

    /// Reports whether a job may be removed now, and prepares that where it is necessary.
    async fn is_removable(
        &self,
        job: &Stored<Job>,
        (before, chains, trails): (&Look, &Chains, &BTreeMap<ChainId, Trail>),
    ) -> Result<bool, SweepError> {
        let Stored { value, rev } = job;
        let id = (value.tenant.clone(), value.chain.clone());
        if rev.number > before.horizon || value.is_live() || !chains.chains.contains_key(&id) {
            return Ok(false);
        }
        let Some(parent) = &value.parent else {
            return match value.state {
                JobState::Done { .. } | JobState::Skipped { .. } => {
                    let key = publication_key(&id.0, &id.1, &value.id);
                    let record = self.store.get(&key).await?;
                    let old = record.filter(|record| record.rev.number <= before.horizon);
                    Ok(old.as_ref().map(is_in_log).transpose()? == Some(true))
                }
                _ => Ok(true),
            };
        };
        let is_below = chains.limits.get(&id).is_some_and(|limit| value.block <= *limit);
        let is_cancelled = matches!(value.state, JobState::Cancelled { .. });
        if !is_below {
            let (tenant, chain) = id.clone();
            let key = JobKey { tenant, chain, slot: value.id.clone() };
            if !is_cancelled || self.submissions.read_job(&key).await?.is_some() {
                return Ok(false);
            }
        }
        // Whatever its state is: the process that cancelled, reverted or skipped it may have ended before it did the rest. The trail may
        // have forgotten the block.
        let trail = trails.get(&id);
        let is_published = trail.is_some_and(|trail| trail.has(value.block, parent, &value.id))
            || self.submissions.is_published(value).await?;
        if is_published {
            return match is_below {
                true => self.pass(value, parent, before.counter.number).await,
                false => Ok(false),
            };
        }
        self.submissions.free_place(job).await?;
        Ok(true)
    }

    /// Marks the place of a published block. Returns whether an earlier sweep has done that.
    async fn pass(&self, job: &Job, parent: &Name, counter: u64) -> Result<bool, SweepError> {
        let key = passed_key(&job.tenant, &job.chain, parent);
        match read::<Passed>(&*self.store, &key).await? {
            Some(passed) => Ok(passed.rev.number <= counter && passed.value.id == job.id),
            None => {
                let mark = Passed { id: job.id.clone() };
                // On disk before the removal, which is a later write.
                let passed = create_on_disk(&*self.store, &key, mark, OnDisk::Soon).await;
                settled(passed.map(|passed| passed.rev))?;
                Ok(false)
            }
        }
    }

    /// The folder of blobs, with those that were not touched for a day.
    async fn untouched(&self) -> Result<Option<(Unused, Vec<Digest>)>, SweepError> {
        let Some(files) = &self.files else { return Ok(None) };
        let (blobs, folder) = (files.blobs.clone(), files.folder.clone());
        let list = move || {
            let unused = Unused::open(blobs, &folder)?;
            let untouched = unused.untouched()?;
            Ok::<_, BlobError>(Some((unused, untouched)))
        };
        Ok(tokio::task::spawn_blocking(list).await??)
    }

    /// Removes the blobs that no record names. Returns how many.
    async fn remove_unused(
        &self,
        unused: Option<(Unused, Vec<Digest>)>,
        named: Named,
    ) -> Result<usize, SweepError> {
        let Some((unused, untouched)) = unused else { return Ok(0) };
        if named.is_incomplete {
            tracing::error!(
                "no blobs are removed: there are records that this version cannot read"
            );
            return Ok(0);
        }
        let remove = move || {
            let mut count = 0;
            for digest in untouched.iter().filter(|digest| !named.has(digest)) {
                count += usize::from(unused.remove(digest)?);
            }
            Ok::<_, BlobError>(count)
        };
        Ok(tokio::task::spawn_blocking(remove).await??)
    }
}

/// Returns the height up to which the published blocks of a chain may be removed: they are below the floor that the chain had at the last
/// sweep. The present one may be higher, since a chain that keeps publishing has its floor raised by each sweep.
fn limit(
    chains: &Chains,
    trails: &BTreeMap<ChainId, Trail>,
    id: &ChainId,
    before: &Look,
) -> Option<u64> {
    let floor = before.floors.get(&floor_key(&id.0, &id.1))?;
    if chains.floors.get(id)?.value.block < floor.block || !trails.get(id)?.is_on(floor) {
        return None;
    }
    let mut limit = floor.block.checked_sub(1)?;
    for bundling in chains.bundling(id) {
        // A revert to the floor tears off the bundle that has the floor's block in it, and the blocks before it are bundled again.
        limit = limit.min(trails.get(bundling)?.height_upto(floor.block)?);
    }
    Some(limit)
}

/// Reports whether two looks are at the same store, and the clock was not set in between.
fn is_steady(before: &Look, look: &Look) -> bool {
    let passed = look.monotonic.saturating_sub(before.monotonic);
    let shown = Duration::from_millis(look.wall.saturating_sub(before.wall));
    before.counter.incarnation == look.counter.incarnation && passed.abs_diff(shown) <= JUMP
}

/// Reports whether a conditional write was made. If another process was faster, the next sweep looks again.
fn settled(written: Result<Rev, WriteError>) -> Result<bool, WriteError> {
    match written {
        Ok(_) => Ok(true),
        Err(WriteError::Conflict { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}
