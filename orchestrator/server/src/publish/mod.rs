//! Publishes what is done, in the order of the chain.
//!
//! A publisher reads the tail of the chain's log, then the job that follows it, and then appends, expecting that tail; after anything but
//! success, it starts again with the tail. In this order, a publisher cannot overtake a re-org, which cancels jobs before it appends. The
//! store refuses a stale tail; this module checks that the parent is the tail.
//!
//! None of these writes waits for the disk: a crash of the machine that loses a publication leaves what it followed from, or less, and
//! clients learn of a publication once it is on disk (`store::Settled`).

use crate::bundle::Bundler;
use crate::clock::Clock;
use crate::feed::{Event, patiently};
use crate::metrics::Metrics;
use crate::order::{self, Next, Tail, publication};
use crate::record::{
    BadRecord, Chain, Job, JobKey, JobState, OnDisk, Order, Publication, ReadError, Stored,
    chain_key, create_on_disk, decode, encode, log_name, publication_key, read, update,
    update_on_disk,
};
use crate::store::{Entry, Rev, Store, WriteError};
use crate::submissions::{SubmissionError, Submissions};
use hekaton_orchestrator_client::Name;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The pause before a publication is tried again.
const PAUSE: Duration = Duration::from_millis(500);

/// The number of blocks of a chain that are published at a time.
const MAX_AT_ONCE: usize = 256;

/// The interval at which chains are looked at without an event.
const SWEEP: Duration = Duration::from_secs(10);

/// The configuration and dependencies of a publisher.
pub(crate) struct Publisher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) submissions: Submissions,
    pub(crate) clock: Clock,
    pub(crate) metrics: Metrics,
    pub(crate) stop: CancellationToken,
}

type ChainId = (Name, Name);

/// A chain to look at.
struct Due {
    at: Instant,
    /// Nothing is known to be left.
    idle: bool,
    /// Jobs that are done, where the chain has no order.
    jobs: BTreeSet<JobKey>,
}

impl Default for Due {
    fn default() -> Self {
        Self { at: Instant::now(), idle: false, jobs: BTreeSet::new() }
    }
}

fn is_among(partitions: &BTreeSet<u8>, (tenant, chain): &ChainId) -> bool {
    partitions.contains(&JobKey::chain_partition(tenant, chain))
}

/// Chains of bundles, by the chain that their blocks are made of.
#[derive(Default)]
struct Bundled {
    chains: BTreeMap<ChainId, BTreeSet<ChainId>>,
    /// The last revision that was listed.
    listed: u64,
}

impl Bundled {
    /// Takes note of a chain. Returns which one it is, if it is one of bundles.
    fn note(&mut self, chain: &Chain) -> Option<ChainId> {
        let of = (chain.tenant.clone(), chain.bundles.as_ref()?.of.clone());
        let id = (chain.tenant.clone(), chain.chain.clone());
        self.chains.entry(of).or_default().insert(id.clone());
        Some(id)
    }
}

/// Makes sure that a chain is looked at no later than a given time.
fn look(due: &mut BTreeMap<ChainId, Due>, chain: ChainId, at: Instant) {
    let entry = due.entry(chain).or_insert_with(|| Due { idle: true, ..Due::default() });
    if entry.idle || entry.at > at {
        (entry.at, entry.idle) = (at, false);
    }
}

/// Takes note of a job that is done.
fn note(partitions: &BTreeSet<u8>, due: &mut BTreeMap<ChainId, Due>, key: &JobKey, job: &Job) {
    let chain = (key.tenant.clone(), key.chain.clone());
    if !matches!(job.state, JobState::Done { .. }) || !is_among(partitions, &chain) {
        return;
    }
    let entry = due.entry(chain).or_default();
    (entry.at, entry.idle) = (Instant::now(), false);
    if job.order == Order::None {
        entry.jobs.insert(key.clone());
    }
}

/// The publication of a block whose chain has no order, before and after it is in the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Unordered {
    publication: Publication,
    logged: bool,
}

/// Why a chain was not published.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error("its bundles: {0}")]
    Bundles(SubmissionError),
}

impl From<SubmissionError> for Failure {
    fn from(error: SubmissionError) -> Self {
        Self::Bundles(error)
    }
}

impl From<crate::store::Unavailable> for Failure {
    fn from(error: crate::store::Unavailable) -> Self {
        Self::Read(error.into())
    }
}

impl From<BadRecord> for Failure {
    fn from(error: BadRecord) -> Self {
        Self::Read(error.into())
    }
}

/// The state of the event loop.
struct State {
    /// The partitions whose chains this process publishes.
    partitions: BTreeSet<u8>,
    due: BTreeMap<ChainId, Due>,
    bundled: Bundled,
    bundler: Bundler,
}

impl Publisher {
    /// Runs until it is stopped.
    pub(crate) async fn run(
        self,
        mut events: UnboundedReceiver<Event>,
        mut owned: UnboundedReceiver<BTreeSet<u8>>,
    ) {
        let mut state = State {
            partitions: BTreeSet::new(),
            due: BTreeMap::new(),
            bundled: Bundled::default(),
            bundler: Bundler::new(self.submissions.clone()),
        };
        let mut sweep = self.clock.after(SWEEP);
        loop {
            let due = state.due.values().filter(|due| !due.idle).map(|due| due.at);
            let next = due.min().map_or(sweep, |at| at.min(sweep));
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                partitions = owned.recv() => match partitions {
                    Some(mut partitions) => {
                        // Of several reports, the last one counts.
                        while let Ok(later) = owned.try_recv() {
                            partitions = later;
                        }
                        self.take_over(&mut state, partitions).await;
                    }
                    None => return,
                },
                event = events.recv() => match event {
                    Some(event) => self.see(&mut state, event),
                    None => return,
                },
                () = tokio::time::sleep_until(next) => {}
            }
            let now = Instant::now();
            if now >= sweep {
                // Chains whose events were missed, because a watch may die without an error.
                sweep = self.clock.after(SWEEP);
                self.list_bundled(&mut state).await;
                state.due.values_mut().for_each(|due| due.idle = false);
            }
            self.publish_due(&mut state, now).await;
        }
    }

    /// Looks after other partitions from now on.
    async fn take_over(&self, state: &mut State, partitions: BTreeSet<u8>) {
        if partitions == state.partitions {
            return;
        }
        let is_more = partitions.difference(&state.partitions).next().is_some();
        state.partitions = partitions;
        state.due.retain(|chain, _| is_among(&state.partitions, chain));
        // Another publisher may have changed chains of bundles meanwhile.
        state.bundler.forget();
        if is_more {
            self.list(&state.partitions, &mut state.due).await;
            self.list_bundled(state).await;
        }
    }

    /// Takes note of a change.
    fn see(&self, state: &mut State, event: Event) {
        let State { partitions, due, bundled, bundler } = state;
        match event {
            Event::Job(key, job) => {
                note(partitions, due, &key, &job.value);
                if !job.value.is_live() {
                    // Published, or torn off, a moment later, perhaps by another process.
                    let at = self.clock.after(PAUSE);
                    let of = (key.tenant, key.chain);
                    for chain in bundled.chains.get(&of).into_iter().flatten() {
                        if is_among(partitions, chain) {
                            look(due, chain.clone(), at);
                        }
                    }
                }
            }
            Event::Chain(chain) => {
                // The blocks of a new chain may all be there by now.
                if let Some(chain) = bundled.note(&chain.value)
                    && is_among(partitions, &chain)
                {
                    look(due, chain, Instant::now());
                }
            }
            Event::Reset => {
                bundler.forget();
                *bundled = Bundled::default();
            }
            Event::Complete | Event::Owner(..) | Event::Listed(_) | Event::Task(..) => {}
        }
    }

    /// Publishes the chains that are due.
    async fn publish_due(&self, state: &mut State, now: Instant) {
        let due = state.due.iter().filter(|(_, due)| !due.idle && due.at <= now);
        let ready: Vec<ChainId> = due.map(|(chain, _)| chain.clone()).collect();
        for chain in ready {
            let Some(entry) = state.due.get_mut(&chain) else { continue };
            let jobs = std::mem::take(&mut entry.jobs);
            entry.idle = true;
            match self.publish(&chain, &jobs, &mut state.bundler).await {
                Ok(more) => entry.idle = !more,
                Err(error) => {
                    tracing::warn!(chain = %chain.1, %error, "published later");
                    (entry.idle, entry.at) = (false, self.clock.after(PAUSE));
                    entry.jobs.extend(jobs);
                }
            }
        }
    }

    /// Finds what was done before the partitions were this collector's.
    async fn list(&self, partitions: &BTreeSet<u8>, due: &mut BTreeMap<ChainId, Due>) {
        let listing = patiently(&self.clock, || self.store.list("job/", 0)).await;
        for entry in &listing.entries {
            if let (Ok(key), Ok(job)) = (entry.key.parse::<JobKey>(), decode::<Job>(entry)) {
                note(partitions, due, &key, &job.value);
            }
        }
    }

    /// Finds chains of bundles, which have no jobs before they are looked at.
    async fn list_bundled(&self, State { partitions, due, bundled, .. }: &mut State) {
        match self.store.list("chain/", bundled.listed).await {
            Ok(listing) => {
                for entry in &listing.entries {
                    if let Ok(chain) = decode::<Chain>(entry) {
                        bundled.note(&chain.value);
                    }
                }
                bundled.listed = listing.at.number;
            }
            Err(error) => tracing::warn!(%error, "chains of bundles are looked for later"),
        }
        let now = Instant::now();
        for chain in bundled.chains.values().flatten().filter(|it| is_among(partitions, it)) {
            look(due, chain.clone(), now);
        }
    }

    async fn publish(
        &self,
        (tenant, name): &ChainId,
        jobs: &BTreeSet<JobKey>,
        bundler: &mut Bundler,
    ) -> Result<bool, Failure> {
        let store = &*self.store;
        let Some(chain) = read::<Chain>(store, &chain_key(tenant, name)).await? else {
            tracing::error!(%tenant, chain = %name, "there are jobs of a chain that does not exist");
            return Ok(false);
        };
        // Blocks that are done are published even if the next bundle fails.
        let bundled = match &chain.value.bundles {
            Some(bundles) => bundler.bundle(&chain.value, bundles).await,
            None => Ok(()),
        };
        let published = self.publish_done(&chain.value, jobs).await;
        bundled?;
        published
    }

    /// Publishes the blocks of a chain that are done. Returns whether there may be more to publish.
    async fn publish_done(&self, chain: &Chain, jobs: &BTreeSet<JobKey>) -> Result<bool, Failure> {
        match (chain.order, &chain.genesis) {
            (Order::Strict, Some(genesis)) => self.in_order(chain, genesis).await,
            _ => {
                // One that cannot be published must not hold up the others.
                let mut failure = None;
                for key in jobs {
                    if let Err(error) = self.without_order(chain, key).await {
                        failure = Some(error);
                    }
                }
                failure.map_or(Ok(false), Err)
            }
        }
    }

    /// Appends the blocks that follow the tail, as far as they are done, and at most `MAX_AT_ONCE` at a time, so that other chains have
    /// their turn, too. Returns whether there may be more.
    async fn in_order(&self, chain: &Chain, genesis: &Name) -> Result<bool, Failure> {
        let store = &*self.store;
        let log = log_name(&chain.tenant, &chain.chain);
        let key = |slot: &Name| {
            let (tenant, chain) = (chain.tenant.clone(), chain.chain.clone());
            JobKey { tenant, chain, slot: slot.clone() }.to_string()
        };
        for _ in 0..MAX_AT_ONCE {
            // The tail first, then the job.
            let last = store.tail(&log).await?.as_ref().map(decode::<Publication>).transpose()?;
            let at = last.as_ref().map(|last| last.rev);
            let tail = Tail::of(genesis, last.as_ref().map(|last| &last.value));
            let Some(job) = read::<Job>(store, &key(tail.name)).await? else { return Ok(false) };
            if job.value.parent.as_ref() != Some(tail.name) {
                tracing::error!(job = %job.value.key(), tail = %tail.name, "not published: its record is in another's place");
                return Ok(false);
            }
            let follower = match job.value.state {
                JobState::Done { .. } => read::<Job>(store, &key(&job.value.id)).await?,
                _ => None,
            };
            let follower_job = follower.as_ref().map(|follower| &follower.value);
            let id = &job.value.id;
            let (publication, is_known) = match order::next(tail, Some(&job.value), follower_job) {
                Next::Wait => return Ok(false),
                // After the follower was read: it is removed only after its place was passed.
                Next::Publish(block) => (block, Some(self.submissions.is_passed(chain, id).await?)),
                Next::PublishUnlessKnown(block) => {
                    (block, self.submissions.has_published(chain, id, at).await?)
                }
                Next::Bury(why) => return self.bury(job, why).await,
            };
            match is_known {
                Some(false) => {}
                Some(true) => {
                    let why = "the chain has published a block of this name: cancel it";
                    return self.bury(job, why.into()).await;
                }
                // What follows this job was decided by another tail.
                None => continue,
            }
            match store.append_soon(&log, encode(&publication, crate::id::random()), at).await {
                Ok(rev) => self.published(&job.value, rev),
                // The tail shows whether it was appended.
                Err(WriteError::Conflict { .. }) => {}
                Err(WriteError::Unknown { .. }) => self.clock.sleep(PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(true)
    }

    /// Ends a job that can never be published, with a reason that an operator can act on.
    async fn bury(&self, job: Stored<Job>, reason: String) -> Result<bool, Failure> {
        let Stored { value: job, rev } = job;
        let (key, now) = (job.key(), self.clock.wall());
        tracing::warn!(job = %key, id = %job.id, %reason, "a block is dead");
        let dead = Job { state: JobState::Dead { reason, at: now }, ..job };
        update(&*self.store, &key.to_string(), dead, rev).await?;
        Ok(false)
    }

    /// Publishes a block by creating a record, and copies it into the log.
    async fn without_order(&self, chain: &Chain, key: &JobKey) -> Result<(), Failure> {
        let store = &*self.store;
        let Some(job) = read::<Job>(store, &key.to_string()).await? else { return Ok(()) };
        let Some(publication) = publication(&job.value) else { return Ok(()) };
        let name = publication_key(&chain.tenant, &chain.chain, &job.value.id);
        let made = Unordered { publication, logged: false };
        if let Some(known) = read::<Unordered>(store, &name).await?
            && known.value.logged
        {
            return Ok(());
        }
        // The record comes first: the log can contain the block only after its revision, so nobody
        // has to read the whole log to append the block only once.
        let record = match create_on_disk(store, &name, made, OnDisk::Soon).await {
            Ok(record) => {
                self.published(&job.value, record.rev);
                record
            }
            Err(WriteError::Conflict { .. }) => match read::<Unordered>(store, &name).await? {
                Some(record) => record,
                None => return Ok(()),
            },
            Err(error) => return Err(error.into()),
        };
        if record.value.logged {
            return Ok(());
        }
        let log = log_name(&chain.tenant, &chain.chain);
        loop {
            let tail = store.tail(&log).await?.map(|tail| tail.rev);
            // The process that made the record may have appended the block before it died: the log then has it after the record's revision.
            if !is_logged(store, &log, record.rev, &record.value.publication).await? {
                let entry = encode(&record.value.publication, crate::id::random());
                match store.append_soon(&log, entry, tail).await {
                    Ok(_) => {}
                    Err(WriteError::Conflict { .. }) => continue,
                    Err(WriteError::Unknown { .. }) => {
                        self.clock.sleep(PAUSE).await;
                        continue;
                    }
                    Err(error) => return Err(error.into()),
                }
            }
            let logged = Unordered { logged: true, ..record.value };
            return match update_on_disk(store, &name, logged, record.rev, OnDisk::Soon).await {
                Ok(_) | Err(WriteError::Conflict { .. }) => Ok(()),
                Err(error) => Err(error.into()),
            };
        }
    }

    fn published(&self, job: &Job, rev: Rev) {
        let Job { tenant, chain, block, id, .. } = job;
        tracing::info!(%tenant, %chain, block, %id, rev = rev.number, "published");
        self.metrics.published(job, self.clock.wall());
    }
}

/// Reports whether the publication of a block whose chain has no order, in its record, was copied into the log.
pub(crate) fn is_in_log(record: &Entry) -> Result<bool, BadRecord> {
    Ok(decode::<Unordered>(record)?.value.logged)
}

/// Reports whether a publication is in a log after a revision.
async fn is_logged(
    store: &dyn Store,
    log: &str,
    after: Rev,
    publication: &Publication,
) -> Result<bool, Failure> {
    let mut read = after.number;
    loop {
        let entries = store.read(log, read, 256).await?;
        let Some(last) = entries.last() else { return Ok(false) };
        read = last.rev.number;
        for entry in &entries {
            if decode::<Publication>(entry)?.value == *publication {
                return Ok(true);
            }
        }
    }
}
