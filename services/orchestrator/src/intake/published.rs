//! What a chain has published, and how operators change it: re-orgs and skips.

use super::{Intake, IntakeError};
use crate::id::{Digest, Name, random};
use crate::record::{
    Chain, Handle, Job, JobKey, JobState, Publication, ReadError, Stored, decode, encode, log_name,
    read, update,
};
use crate::store::{Rev, WriteError};
use std::time::Duration;

/// How many blocks behind the published ones are looked at.
const MAX_PENDING: usize = 10_000;

/// How long to wait after an answer of the store was lost.
const PAUSE: Duration = Duration::from_millis(200);

/// A block that a chain has published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathBlock {
    pub(crate) id: Name,
    pub(crate) height: u64,
    /// None where it was skipped.
    pub(crate) outputs: Option<Vec<Digest>>,
    /// Which entry of the log it is, counted from 1: the same entry has the same blocks before it.
    pub(crate) entry: u64,
}

/// What a chain has published: the genesis, and what follows it without what was torn off.
#[derive(Debug)]
pub(crate) struct Path {
    /// Never empty.
    pub(crate) blocks: Vec<PathBlock>,
    /// How many entries of the log were read.
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

    fn has(&self, wanted: &Name, height: u64) -> bool {
        self.blocks.iter().any(|block| block.id == *wanted && block.height == height)
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

    /// Whether a block of this height that is not on the path never will be.
    fn is_beyond(&self, height: u64) -> bool {
        // The genesis has no height of its own: the first block may have 0.
        self.blocks.len() > 1 && self.height() >= height
    }

    fn height(&self) -> u64 {
        self.last_block().height
    }
}

impl Intake {
    /// Tears the chain off after a block: cancels the jobs above it, then appends to the log, always, so that no publisher that is
    /// under way gets past. It has happened when this returns.
    ///
    /// # Errors
    /// If the chain has no order, or the block was not published and is not above what is.
    pub async fn revert(
        &self,
        tenant: &Name,
        chain: &Name,
        to: &Name,
        block: u64,
    ) -> Result<(), IntakeError> {
        let (chain, log) = (self.chain(tenant, chain).await?, log_name(tenant, chain));
        let Some(genesis) = &chain.genesis else {
            return Err(IntakeError::Bad("a chain without order cannot be reverted".into()));
        };
        if to == genesis && block != 0 {
            return Err(IntakeError::Bad("the height of the genesis is 0".into()));
        }
        let not_there = || {
            let why = format!("block {block} '{to}' is not one that the chain has published");
            IntakeError::Bad(why)
        };
        let path = self.path(&log, genesis).await?;
        if path.is_beyond(block) && !path.has(to, block) {
            return Err(not_there());
        }
        let above = |job: &Job| to == genesis || job.block > block;
        self.cancel_above(&chain, &above).await?;
        loop {
            // Asked again each time, since blocks may have been published meanwhile.
            let path = self.path(&log, genesis).await?;
            let entry = match path.has(to, block) {
                true => Publication::Revert { to: to.clone(), block },
                false if path.is_beyond(block) => return Err(not_there()),
                // Nothing above the block is out yet: the entry only stops publishers that are under way.
                false => Publication::Revert { to: path.tail().clone(), block: path.height() },
            };
            match self.store.append(&log, encode(&entry, random()), path.last).await {
                Ok(_) => {}
                Err(WriteError::Conflict { .. }) => continue,
                Err(error) => return Err(error.into()),
            }
            // A client that sent a job of the old branch again may have revived it before the entry was there, and it may be
            // published after it. What is there now is cancelled, too, and the chain torn off again.
            if self.cancel_above(&chain, &above).await? == 0 {
                return Ok(());
            }
        }
    }

    /// What a chain has published, from its genesis to its tail.
    async fn path(&self, log: &str, genesis: &Name) -> Result<Path, IntakeError> {
        let mut path = Path::new(genesis.clone());
        self.read_on(log, &mut path).await?;
        Ok(path)
    }

    /// Adds to a path what was published since it was read.
    pub(crate) async fn read_on(&self, log: &str, path: &mut Path) -> Result<(), IntakeError> {
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

    /// Has the chain go on after its dead next block without a proof of it.
    ///
    /// # Errors
    /// Unless the job is dead and the next one of its chain.
    pub async fn skip(&self, tenant: &Name, handle: &Handle) -> Result<(), IntakeError> {
        loop {
            let log = log_name(tenant, &handle.chain);
            let chain = self.chain(tenant, &handle.chain).await?;
            let Some(genesis) = &chain.genesis else {
                return Err(IntakeError::Bad("a chain without order has no next block".into()));
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
                JobState::Dead { .. } if next => {
                    let parent = parent.clone().unwrap_or_else(|| id.clone());
                    let entry = Publication::Skip { block: *block, id: id.clone(), parent };
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
                    let why =
                        "only the next block of a chain can be skipped, and only if it is dead";
                    return Err(IntakeError::Taken(why.into()));
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

    /// The last block that was accepted after what is published, with its height; none where it is the genesis.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn tip(&self, chain: &Chain) -> Result<Option<(Name, Option<u64>)>, IntakeError> {
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
                Some(job) if !matches!(job.value.state, JobState::Cancelled { .. }) => {
                    (tip, height) = (job.value.id, Some(job.value.block));
                }
                _ => break,
            }
        }
        Ok(Some((tip, height)))
    }

    /// The last thing that a chain has published.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn last_published(
        &self,
        tenant: &Name,
        chain: &Name,
    ) -> Result<Option<Publication>, IntakeError> {
        Ok(self.tail(&log_name(tenant, chain)).await?.map(|tail| tail.value))
    }

    async fn tail(&self, log: &str) -> Result<Option<Stored<Publication>>, IntakeError> {
        let tail = self.store.tail(log).await?;
        Ok(tail.as_ref().map(decode).transpose().map_err(ReadError::from)?)
    }

    /// Cancels the jobs of a chain that are above a block. Returns how many.
    async fn cancel_above(
        &self,
        chain: &Chain,
        above: &impl Fn(&Job) -> bool,
    ) -> Result<usize, IntakeError> {
        let listing = self.store.list("job/", 0).await?;
        let mut count = 0;
        for entry in &listing.entries {
            let Ok(mut found) = decode::<Job>(entry) else { continue };
            loop {
                let Stored { value: job, rev } = &found;
                let ours = job.tenant == chain.tenant && job.chain == chain.chain && above(job);
                if !ours || matches!(job.state, JobState::Cancelled { .. }) {
                    break;
                }
                let reason = "its chain was reverted".to_owned();
                let state = JobState::Cancelled { reason, at: self.clock.wall() };
                let cancelled = Job { state, ..job.clone() };
                match update(&*self.store, &entry.key, cancelled, *rev).await {
                    Ok(_) => {
                        count += 1;
                        break;
                    }
                    Err(WriteError::Conflict { .. }) => {}
                    Err(error) => return Err(error.into()),
                }
                match read::<Job>(&*self.store, &entry.key).await? {
                    Some(again) => found = again,
                    None => break,
                }
            }
        }
        Ok(count)
    }

    /// What a chain has published after a revision's number, oldest first.
    ///
    /// # Errors
    /// If there is no such chain, or the store does not answer.
    pub async fn published(
        &self,
        tenant: &Name,
        chain: &Name,
        after: u64,
        limit: usize,
    ) -> Result<Vec<(Rev, Publication)>, IntakeError> {
        self.chain(tenant, chain).await?;
        let entries = self.store.read(&log_name(tenant, chain), after, limit).await?;
        let decoded = entries
            .iter()
            .map(|entry| decode::<Publication>(entry).map(|stored| (stored.rev, stored.value)));
        Ok(decoded.collect::<Result<_, _>>().map_err(ReadError::from)?)
    }
}
