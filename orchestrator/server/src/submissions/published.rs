//! The publications of a chain, and how operators change them: re-orgs and skips.

use super::{PAUSE, SubmissionError, Submissions};
use crate::id::{PARTITIONS, random};
use crate::record::{
    Chain, Handle, Job, JobKey, JobState, Order, Publication, ReadError, Stored, decode, encode,
    log_name, read, update,
};
use crate::store::{Rev, WriteError};
use hekaton_orchestrator_client::{Digest, Name};
use std::collections::{BTreeMap, BTreeSet};

/// The number of blocks behind the published ones that are looked at.
// Each is one read of the store. A request must end even if clients are far ahead of the provers.
const MAX_PENDING: usize = 10_000;

/// A block that a chain has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathBlock {
    pub(crate) id: Name,
    pub(crate) height: u64,
    /// `None` if it was skipped.
    pub(crate) outputs: Option<Vec<Digest>>,
    /// The number of its entry in the log, counted from 1: the same entry has the same blocks before it.
    pub(crate) entry: u64,
}

/// The published path of a chain: the genesis, and what follows it without what was torn off.
#[derive(Debug)]
pub(crate) struct Path {
    /// Never empty.
    pub(crate) blocks: Vec<PathBlock>,
    /// The number of entries of the log that were read.
    entries: u64,
    /// The last one.
    last: Option<Rev>,
}

impl Path {
    /// The path of a chain that has published nothing.
    pub(crate) fn new(genesis: Name) -> Self {
        let genesis = PathBlock { id: genesis, height: 0, outputs: None, entry: 0 };
        Self { blocks: vec![genesis], entries: 0, last: None }
    }

    pub(crate) fn add(&mut self, publication: Publication) {
        self.entries += 1;
        let (id, height, outputs) = match publication {
            Publication::Block { id, block, outputs, .. } => (id, block, Some(outputs)),
            Publication::Skip { id, block, .. } => (id, block, None),
            Publication::Revert { to, .. } => {
                if let Some(keep) = self.blocks.iter().position(|block| block.id == to) {
                    self.blocks.truncate(keep + 1);
                }
                return;
            }
        };
        self.blocks.push(PathBlock { id, height, outputs, entry: self.entries });
    }

    /// Returns the position of a block of this height.
    fn position(&self, wanted: &Name, height: u64) -> Option<usize> {
        self.blocks.iter().position(|block| block.id == *wanted && block.height == height)
    }

    /// The position of the block before another one, where both are on the path.
    pub(super) fn before(&self, parent: &Name, id: &Name) -> Option<usize> {
        self.blocks.windows(2).position(|two| two[0].id == *parent && two[1].id == *id)
    }

    fn skips(&self, id: &Name) -> bool {
        self.blocks[1..].iter().any(|block| block.id == *id && block.outputs.is_none())
    }

    /// The last entry that was read.
    pub(crate) fn last(&self) -> Option<Rev> {
        self.last
    }

    fn last_block(&self) -> &PathBlock {
        // The genesis is never torn off.
        self.blocks.last().unwrap_or(&self.blocks[0])
    }

    fn tail(&self) -> &Name {
        &self.last_block().id
    }

    /// Reports whether a block of this height that is not on the path never will be.
    fn is_beyond(&self, height: u64) -> bool {
        // The genesis has no height of its own: the first block may have 0.
        self.blocks.len() > 1 && self.height() >= height
    }

    fn height(&self) -> u64 {
        self.last_block().height
    }
}

/// A re-org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reversal {
    /// The last block that stays; the genesis to remove all blocks.
    pub to: Name,
    /// Its height.
    pub block: u64,
    /// The block that is to follow. If it already does, nothing is removed.
    pub next: Option<Name>,
}

impl Reversal {
    /// Returns the error for a block that the chain does not have.
    fn not_there(&self) -> SubmissionError {
        let Self { to, block, .. } = self;
        let why = format!(
            "block {block} '{to}' is neither one that the chain has published nor one that waits behind these"
        );
        SubmissionError::Bad(why)
    }
}

impl Submissions {
    /// Removes the blocks after a given block from the chain. The blocks published after it, or else the block that follows it now, are
    /// cancelled with all their descendants; then an entry is appended to the log, in any case, so that no publisher that is under way gets
    /// past it. The re-org is complete when this returns. Blocks that descend from others stay, whatever their height, because they may
    /// belong to the new branch.
    ///
    /// `next` is the block that is to follow instead. If it already follows, nothing is done.
    ///
    /// # Errors
    /// If the chain has no order, or the block is not known.
    pub async fn revert(
        &self,
        tenant: &Name,
        chain: &Name,
        reversal: &Reversal,
    ) -> Result<(), SubmissionError> {
        let Reversal { to, block, next } = reversal;
        let (chain, log) = (self.chain(tenant, chain).await?, log_name(tenant, chain));
        let Some(genesis) = &chain.genesis else {
            return Err(SubmissionError::Bad("a chain without order cannot be reverted".into()));
        };
        if to == genesis && *block != 0 {
            return Err(SubmissionError::Bad("the height of the genesis is 0".into()));
        }
        // Reads the follower before the path: if it has replaced another block in its place, the publishers of that block were stopped
        // first, so what they have published is on the path.
        let place = JobKey { tenant: tenant.clone(), chain: chain.chain.clone(), slot: to.clone() };
        let follower = self.read_job(&place).await?.map(|follower| follower.value);
        let path = self.path(&log, genesis).await?;
        let at = path.position(to, *block);
        if at.is_none() && (path.is_beyond(*block) || !self.is_known(&chain, to, *block).await?) {
            return Err(reversal.not_there());
        }
        let after: Vec<Name> = at
            .map_or(&[][..], |at| &path.blocks[at + 1..])
            .iter()
            .map(|it| it.id.clone())
            .collect();
        let is_wanted = match (next, after.first()) {
            (Some(next), Some(published)) => published == next,
            (Some(next), None) => follower.as_ref().is_some_and(|job| {
                job.id == *next && !matches!(job.state, JobState::Cancelled { .. })
            }),
            (None, _) => false,
        };
        if is_wanted {
            return Ok(());
        }
        if let Some(at) = at {
            self.check_floor(&chain, &path, at).await?;
        }
        // From here on by name: blocks that take their place in the meantime are of the new branch.
        let mut torn: BTreeSet<Name> = after.into_iter().collect();
        if torn.is_empty() {
            torn.extend(follower.map(|follower| follower.id));
        }
        self.cancel_torn(&chain, to, &mut torn).await?;
        self.tear_off((&chain, genesis, &log), reversal, torn).await
    }

    /// Appends the entry of a re-org to the log, and cancels what came back of the torn blocks meanwhile.
    async fn tear_off(
        &self,
        (chain, genesis, log): (&Chain, &Name, &str),
        reversal: &Reversal,
        mut torn: BTreeSet<Name>,
    ) -> Result<(), SubmissionError> {
        let Reversal { to, block, .. } = reversal;
        loop {
            // Asked again each time, since blocks may have been published meanwhile.
            let path = self.path(log, genesis).await?;
            let entry = match path.position(to, *block) {
                Some(at) => {
                    // Again, since the process may have been stopped for long.
                    self.check_floor(chain, &path, at).await?;
                    Publication::Revert { to: to.clone(), block: *block }
                }
                None if path.is_beyond(*block) => return Err(reversal.not_there()),
                // Nothing above the block is out yet: the entry only stops publishers that are under way.
                None => Publication::Revert { to: path.tail().clone(), block: path.height() },
            };
            match self.store.append(log, encode(&entry, random()), path.last).await {
                Ok(_) => {}
                Err(WriteError::Conflict { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            // A client that sent a job of the old branch again may have revived it before the entry was there, and it may be
            // published after it. What is there now is cancelled, too, and the chain torn off again.
            if self.cancel_torn(chain, to, &mut torn).await? == 0 {
                return Ok(());
            }
        }
    }

    /// Reports whether a block that is not published was accepted.
    async fn is_known(
        &self,
        chain: &Chain,
        id: &Name,
        block: u64,
    ) -> Result<bool, SubmissionError> {
        // A job's partition follows from its parent's name, which is not known here, so the block
        // may be in any of them.
        for partition in 0..PARTITIONS {
            let prefix = JobKey::prefix(partition, &chain.tenant, &chain.chain);
            let listing = self.store.list(&prefix, 0).await?;
            let mut jobs = listing.entries.iter().filter_map(|entry| decode::<Job>(entry).ok());
            if jobs.any(|job| (&job.value.id, job.value.block) == (id, block)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Cancels the blocks that are torn off after a block, and all their descendants, whose names it adds. Returns how many.
    async fn cancel_torn(
        &self,
        chain: &Chain,
        to: &Name,
        torn: &mut BTreeSet<Name>,
    ) -> Result<usize, SubmissionError> {
        let mut count = 0;
        let mut places: Vec<Name> = torn.iter().cloned().chain([to.clone()]).collect();
        while let Some(slot) = places.pop() {
            let is_first = slot == *to;
            let (tenant, name) = (chain.tenant.clone(), chain.chain.clone());
            let key = JobKey { tenant, chain: name, slot };
            while let Some(found) = self.read_job(&key).await? {
                let Stored { value: job, rev } = found;
                if is_first && !torn.contains(&job.id) {
                    // It has taken the place of a block that was torn off.
                    break;
                }
                if torn.insert(job.id.clone()) {
                    places.push(job.id.clone());
                }
                if let JobState::Cancelled { .. } = job.state {
                    break;
                }
                let reason = "its chain was reverted".to_owned();
                let state = JobState::Cancelled { reason, at: self.clock.wall() };
                match update(&*self.store, &key.to_string(), Job { state, ..job }, rev).await {
                    Ok(_) => {
                        count += 1;
                        break;
                    }
                    Err(WriteError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(count)
    }

    /// Reports whether a block is published, and was not torn off.
    pub(crate) async fn is_published(&self, job: &Job) -> Result<bool, SubmissionError> {
        let chain = self.chain(&job.tenant, &job.chain).await?;
        let (Some(genesis), Some(parent)) = (&chain.genesis, &job.parent) else {
            // Without order, whatever is done is published.
            return Ok(matches!(job.state, JobState::Done { .. }));
        };
        let path = self.path(&log_name(&job.tenant, &job.chain), genesis).await?;
        Ok(path.before(parent, &job.id).is_some())
    }

    /// Reports whether a chain has published a block of this name, up to an entry of its log. Returns `None` if the log ends
    /// elsewhere by now.
    pub(crate) async fn has_published(
        &self,
        chain: &Chain,
        id: &Name,
        last: Option<Rev>,
    ) -> Result<Option<bool>, SubmissionError> {
        let Some(genesis) = &chain.genesis else { return Ok(Some(false)) };
        let path = self.path(&log_name(&chain.tenant, &chain.chain), genesis).await?;
        Ok((path.last == last).then(|| path.blocks.iter().any(|block| block.id == *id)))
    }

    /// Reports whether publishers have looked at a cancelled job again since it was cancelled.
    pub(super) async fn are_publishers_stopped(
        &self,
        Stored { value: job, rev }: &Stored<Job>,
    ) -> Result<bool, SubmissionError> {
        let (log, mut after) = (log_name(&job.tenant, &job.chain), rev.number);
        if job.order != Order::Strict {
            return Ok(true);
        }
        loop {
            let entries = self.store.read(&log, after, 256).await?;
            let Some(last) = entries.last() else { return Ok(false) };
            after = last.rev.number;
            for entry in &entries {
                let publication = decode::<Publication>(entry).map_err(ReadError::from)?.value;
                if matches!(publication, Publication::Revert { .. }) {
                    return Ok(true);
                }
            }
        }
    }

    /// Makes publishers that are under way look again at a job that was done and is cancelled: what was published in the meantime is
    /// torn off, unless it is before the chain's floor.
    ///
    /// # Errors
    /// Fails if the block is before the floor, the store does not answer, or it is unknown whether the publishers are stopped, which
    /// [`Self::free_place`] then finds out.
    pub(crate) async fn stop_publishers(&self, job: &Job) -> Result<(), SubmissionError> {
        let chain = self.chain(&job.tenant, &job.chain).await?;
        let (Some(genesis), Some(parent)) = (&chain.genesis, &job.parent) else { return Ok(()) };
        let log = log_name(&job.tenant, &job.chain);
        loop {
            let path = self.path(&log, genesis).await?;
            self.check_final(&chain, &path, job).await?;
            let before = path.before(parent, &job.id).map(|at| &path.blocks[at]);
            let last = before.unwrap_or(path.last_block());
            let entry = Publication::Revert { to: last.id.clone(), block: last.height };
            match self.store.append(&log, encode(&entry, random()), path.last).await {
                Ok(_) => return Ok(()),
                Err(WriteError::Conflict { .. }) => {}
                // Not again here: each attempt could add an entry while the disk does not sync.
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads the published path of a chain, from its genesis to its tail.
    pub(super) async fn path(&self, log: &str, genesis: &Name) -> Result<Path, SubmissionError> {
        let mut path = Path::new(genesis.clone());
        self.read_on(log, &mut path).await?;
        Ok(path)
    }

    /// Adds to a path what was published since it was read.
    pub(crate) async fn read_on(&self, log: &str, path: &mut Path) -> Result<(), SubmissionError> {
        loop {
            let after = path.last.map_or(0, |last| last.number);
            let entries = self.store.read(log, after, 256).await?;
            if entries.is_empty() {
                return Ok(());
            }
            for entry in &entries {
                path.add(decode::<Publication>(entry).map_err(ReadError::from)?.value);
                path.last = Some(entry.rev);
            }
        }
    }

    /// Makes the chain continue after its dead next block without a proof of it.
    ///
    /// # Errors
    /// Unless the job is dead and the next one of its chain.
    pub async fn skip(&self, tenant: &Name, handle: &Handle) -> Result<(), SubmissionError> {
        loop {
            let log = log_name(tenant, &handle.chain);
            let chain = self.chain(tenant, &handle.chain).await?;
            let Some(genesis) = &chain.genesis else {
                return Err(SubmissionError::Bad("a chain without order has no next block".into()));
            };
            let path = self.path(&log, genesis).await?;
            let found = self.job(tenant, handle).await?;
            let Job { block, id, parent, state, .. } = &found.value;
            let next = parent.as_ref() == Some(path.tail())
                && (*block > path.height() || path.tail() == genesis);
            match state {
                JobState::Skipped { .. } => return Ok(()),
                // An earlier attempt to skip it got that far.
                JobState::Dead { .. } | JobState::Live | JobState::Done { .. }
                    if path.skips(id) => {}
                JobState::Dead { .. } if next && !path.blocks.iter().any(|it| it.id == *id) => {
                    let before = parent.clone().unwrap_or_else(|| id.clone());
                    let entry = Publication::Skip { block: *block, id: id.clone(), parent: before };
                    match self.store.append(&log, encode(&entry, random()), path.last).await {
                        Ok(_) => {}
                        Err(WriteError::Conflict { .. }) => continue,
                        Err(WriteError::Unknown { .. }) => {
                            self.clock.sleep(PAUSE).await;
                            continue;
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                _ => {
                    let why = "only the next block of a chain can be skipped, if it is dead and its height and name fit the chain: cancel it instead";
                    return Err(SubmissionError::Taken(why.into()));
                }
            }
            let key = found.value.key().to_string();
            let state = JobState::Skipped { at: self.clock.wall() };
            let skipped = Job { state, ..found.value.clone() };
            match update(&*self.store, &key, skipped, found.rev).await {
                Ok(_) => return Ok(()),
                Err(WriteError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The last block that was accepted after the published ones, with its height; `None` as its height if it is the genesis.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn tip(&self, chain: &Chain) -> Result<Option<(Name, Option<u64>)>, SubmissionError> {
        let Some(genesis) = &chain.genesis else { return Ok(None) };
        let (tenant, name) = (&chain.tenant, &chain.chain);
        let tail = self.last_published(tenant, name).await?;
        let (mut tip, mut height) = match tail {
            Some(tail) if tail.tail() != genesis => (tail.tail().clone(), Some(tail.height())),
            _ => (genesis.clone(), None),
        };
        for _ in 0..MAX_PENDING {
            let key = JobKey { tenant: tenant.clone(), chain: name.clone(), slot: tip.clone() };
            match read::<Job>(&*self.store, &key.to_string()).await? {
                // What is not above the block before it is never published.
                Some(job)
                    if !matches!(job.value.state, JobState::Cancelled { .. })
                        && height.is_none_or(|height| height < job.value.block) =>
                {
                    (tip, height) = (job.value.id, Some(job.value.block));
                }
                _ => break,
            }
        }
        Ok(Some((tip, height)))
    }

    /// The dead jobs of a chain after a height and a name, by height and name, at most `limit`.
    ///
    /// # Errors
    /// If there is no such chain, or the store does not answer.
    pub(crate) async fn dead(
        &self,
        tenant: &Name,
        chain: &Name,
        after: Option<(u64, Name)>,
        limit: usize,
    ) -> Result<Vec<Job>, SubmissionError> {
        self.chain(tenant, chain).await?;
        let mut found = BTreeMap::new();
        for partition in 0..PARTITIONS {
            let listing = self.store.list(&JobKey::prefix(partition, tenant, chain), 0).await?;
            for entry in &listing.entries {
                let job = decode::<Job>(entry).map_err(ReadError::from)?.value;
                let place = (job.block, job.id.clone());
                let is_next = after.as_ref().is_none_or(|after| *after < place);
                if is_next && matches!(job.state, JobState::Dead { .. }) {
                    found.insert(place, job);
                }
            }
            // A chain may have any number of dead jobs, which must not all be kept in memory.
            while found.len() > limit {
                found.pop_last();
            }
        }
        Ok(found.into_values().collect())
    }

    /// The last thing that a chain has published.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn last_published(
        &self,
        tenant: &Name,
        chain: &Name,
    ) -> Result<Option<Publication>, SubmissionError> {
        Ok(self.tail(&log_name(tenant, chain)).await?.map(|tail| tail.value))
    }

    async fn tail(&self, log: &str) -> Result<Option<Stored<Publication>>, SubmissionError> {
        let tail = self.store.tail(log).await?;
        Ok(tail.as_ref().map(decode).transpose().map_err(ReadError::from)?)
    }

    /// Returns what a chain has published after a revision's number, oldest first.
    ///
    /// # Errors
    /// If there is no such chain, or the store does not answer.
    pub async fn published(
        &self,
        tenant: &Name,
        chain: &Name,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(Rev, Publication)>, SubmissionError> {
        self.chain(tenant, chain).await?;
        let entries = self.store.read(&log_name(tenant, chain), after, limit).await?;
        let decoded = entries
            .iter()
            .map(|entry| decode::<Publication>(entry).map(|stored| (stored.rev, stored.value)));
        Ok(decoded.collect::<Result<_, _>>().map_err(ReadError::from)?)
    }
}
