//! Keeps track of unpublished blocks, from the changes that the store reports, and reports those that stand still.

use super::{Chain, Now, Place, Standstill, Waiting, fate, is_held_by};
use crate::clock::{Clock, millis};
use crate::feed::{Event, is_newer};
use crate::metrics::Metrics;
use crate::order::Tail;
use crate::record::{
    Job, JobKey, JobState, Publication, ReadError, Stored, Task, TaskKey, chain_key, decode,
    log_name, read,
};
use crate::store::{Rev, Store};
use crate::surroundings::Surroundings;
use hekaton_orchestrator_client::Name;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

/// The longest time between two looks.
const LOOK: Duration = Duration::from_secs(15);

/// The number of entries of a log that are read at once.
const PAGE: usize = 256;

/// The number of published blocks of a chain that are remembered, for when they are torn off.
const MAX_PATH: usize = 4_096;

/// The number of standstills that are written to the log each time.
const MAX_SAID: usize = 20;

type ChainId = (Name, Name);

/// The blocks that stood still at the last look, shared with those that show them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched(Arc<Mutex<Arc<Vec<Standstill>>>>);

impl Watched {
    /// Returns the blocks that stood still at the last look.
    pub(crate) fn standstills(&self) -> Arc<Vec<Standstill>> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, found: Vec<Standstill>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(found);
    }
}

/// The configuration and dependencies of a watch.
pub(crate) struct Watch {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) surroundings: Surroundings,
    pub(crate) metrics: Metrics,
    pub(crate) patience: Duration,
    pub(crate) watched: Watched,
    /// Back-ends that this process is to have.
    pub(crate) backends: BTreeSet<Name>,
    pub(crate) stop: CancellationToken,
}

#[derive(Default)]
struct State {
    complete: bool,
    revs: BTreeMap<JobKey, Rev>,
    chains: BTreeMap<ChainId, Known>,
    tasks: BTreeMap<JobKey, BTreeMap<TaskKey, Arc<Stored<Task>>>>,
    /// Back-ends that some process has, or had.
    offered: BTreeSet<Name>,
}

/// The state of a chain, as far as it is known.
#[derive(Default)]
struct Known {
    /// Jobs that are not cancelled and not known to be published.
    jobs: BTreeMap<JobKey, Open>,
    /// The events in places of blocks that are not published.
    places: BTreeMap<JobKey, Place>,
    /// The fates of blocks that are no longer there.
    fates: BTreeMap<Name, String>,
    record: Option<crate::record::Chain>,
    /// The log is read after this entry; from its end on, if there is none.
    after: Option<u64>,
    /// The last entry that was read.
    last: Option<(u64, Publication)>,
    /// The last blocks that are published, each with its place.
    path: VecDeque<(Name, Name)>,
    /// Places of blocks that were torn off, with the entry that did it.
    torn: BTreeMap<JobKey, u64>,
    /// The time at which a block was last published or skipped, or the log was first looked at.
    moved: u64,
    /// The last cancellation that is not yet followed by an entry that tears the chain off: the log is read until there is one.
    cancelled: Option<u64>,
}

struct Open {
    job: Arc<Stored<Job>>,
    changed: u64,
}

impl Watch {
    /// Runs until it is stopped.
    pub(crate) async fn run(self, mut events: UnboundedReceiver<Event>) {
        let mut state = State { offered: self.backends.clone(), ..State::default() };
        let pause = (self.patience / 4).min(LOOK);
        let mut look = self.clock.after(pause);
        loop {
            tokio::select! {
                biased;
                () = self.stop.cancelled() => return,
                event = events.recv() => {
                    let Some(event) = event else { return };
                    self.apply(&mut state, event);
                    while let Ok(event) = events.try_recv() {
                        self.apply(&mut state, event);
                    }
                }
                () = tokio::time::sleep_until(look) => {}
            }
            if tokio::time::Instant::now() >= look {
                if state.complete {
                    self.look(&mut state).await;
                }
                look = self.clock.after(pause);
            }
        }
    }

    fn now(&self) -> u64 {
        millis(self.clock.monotonic())
    }

    fn patience(&self) -> u64 {
        millis(self.patience)
    }

    fn apply(&self, state: &mut State, event: Event) {
        match event {
            Event::Reset => {
                let offered = std::mem::take(&mut state.offered);
                *state = State { offered, ..State::default() };
            }
            Event::Complete => state.complete = true,
            Event::Job(key, job) => self.job(state, key, job),
            Event::Task(key, task) => self.task(state, key, task),
            Event::Listed(listed) => {
                let State { revs, chains, .. } = state;
                revs.retain(|key, rev| !listed.is_removed(key, *rev));
                for known in chains.values_mut() {
                    known.jobs.retain(|key, _| revs.contains_key(key));
                    known.places.retain(|key, _| revs.contains_key(key));
                    known.torn.retain(|key, _| revs.contains_key(key));
                }
            }
            _ => {}
        }
    }

    fn job(&self, state: &mut State, key: JobKey, job: Arc<Stored<Job>>) {
        if !is_newer(state.revs.get(&key).copied(), job.rev) {
            return;
        }
        state.revs.insert(key.clone(), job.rev);
        let now = self.now();
        let known = state
            .chains
            .entry((key.tenant.clone(), key.chain.clone()))
            .or_insert_with(|| Known { moved: now, ..Known::default() });
        let generation = job.value.generation;
        let place = known.places.entry(key.clone()).or_insert_with(|| Place::new(now, generation));
        place.see(now, generation, self.patience());
        if let Some(before) = known.jobs.remove(&key)
            && before.job.value.id != job.value.id
        {
            let fate = format!("was replaced by '{}'", job.value.id);
            known.fates.insert(before.job.value.id.clone(), fate);
        }
        if !job.value.is_live() {
            state.tasks.remove(&key);
        }
        if let Some((id, fate)) = fate(&key, &job.value) {
            known.fates.insert(id, fate);
            // What hangs from it may be torn off without being cancelled.
            known.cancelled = known.cancelled.max(Some(job.rev.number));
            return;
        }
        known.fates.remove(&job.value.id);
        if let JobState::Skipped { .. } = job.value.state {
            // It is in the log already.
            return;
        }
        if let JobState::Done { .. } = job.value.state {
            // Its publication may have been read before this.
            known.after = known.after.map(|after| after.min(job.rev.number));
            known.after.get_or_insert(job.rev.number);
        }
        known.jobs.insert(key, Open { job, changed: now });
    }

    fn task(&self, state: &mut State, key: TaskKey, task: Arc<Stored<Task>>) {
        let job = task.value.job.clone();
        let known = state.chains.get_mut(&(job.tenant.clone(), job.chain.clone()));
        let open = known.and_then(|known| known.jobs.get_mut(&job));
        match open {
            Some(open) if open.job.value.is_live() => open.changed = self.now(),
            // The task is of a job that has ended.
            _ if state.revs.contains_key(&job) => return,
            _ => {}
        }
        let tasks = state.tasks.entry(job).or_default();
        if is_newer(tasks.get(&key).map(|known| known.rev), task.rev) {
            tasks.insert(key, task);
        }
    }

    /// Finds the blocks that stand still, and logs new ones.
    async fn look(&self, state: &mut State) {
        let mut unread: BTreeSet<ChainId> = BTreeSet::new();
        for (id, known) in &mut state.chains {
            if known.jobs.is_empty() && known.cancelled.is_none() {
                continue;
            }
            if let Err(error) = self.read_on(id, known).await {
                tracing::warn!(chain = %id.1, %error, "it is not known whether the chain stands still");
                unread.insert(id.clone());
            }
        }
        let view = self.surroundings.view();
        let had = view.sessions.values().flat_map(|session| &session.backends);
        state.offered.extend(had.cloned());
        let tasks = state.tasks.values().flat_map(BTreeMap::values).map(|task| &task.value);
        let held = tasks.filter(|task| is_held_by(task, Some(&view.sessions)));
        let at = Now {
            busy: held.map(|task| &task.job.tenant).collect(),
            now: self.now(),
            patience: self.patience(),
            wall: self.clock.wall(),
            sessions: Some(&view.sessions),
            offered: &state.offered,
        };
        let mut found = Vec::new();
        // Earlier reports about a chain that cannot be read now stay, and the other chains are still looked at.
        for one in self.watched.standstills().iter() {
            if unread.contains(&(one.tenant.clone(), one.chain.clone())) {
                found.push(one.clone());
            }
        }
        for (id, known) in &state.chains {
            if unread.contains(id) {
                continue;
            }
            let (tenant, name) = id;
            let Some(record) = &known.record else { continue };
            let last = known.last.as_ref().map(|(_, last)| last);
            let tail = record.genesis.as_ref().map(|genesis| Tail::of(genesis, last));
            let jobs = known.jobs.iter().map(|(key, open)| {
                let job = &open.job.value;
                let all = state.tasks.get(key).into_iter().flat_map(BTreeMap::iter);
                let identity = job.identity();
                // Tasks of a block that another one has replaced are not the job's own.
                let tasks = all
                    .filter(|(key, _)| key.job == identity)
                    .map(|(_, task)| &task.value)
                    .collect();
                // A job that was torn off, and not written since, has had no events.
                let place = known.places.get(key).copied().unwrap_or_default();
                (&key.slot, Waiting { job, tasks, changed: open.changed, place })
            });
            let (order, moved, fates) = (record.order, known.moved, &known.fates);
            let chain = Chain { tenant, name, order, tail, moved, jobs: jobs.collect(), fates };
            found.extend(chain.standstills(&at));
        }
        self.say(&found);
        self.watched.set(found);
    }

    fn say(&self, found: &[Standstill]) {
        let key = |one: &Standstill| (one.tenant.clone(), one.chain.clone(), one.id.clone());
        let before = self.watched.standstills();
        let known: BTreeMap<_, _> = before.iter().map(|one| (key(one), &one.cause)).collect();
        let new = found.iter().filter(|one| known.get(&key(one)) != Some(&&one.cause));
        for one in new.take(MAX_SAID) {
            tracing::error!(tenant = %one.tenant, "stands still: {one}");
        }
        let halted: BTreeSet<_> =
            found.iter().filter(|one| one.halts).map(|one| (&one.tenant, &one.chain)).collect();
        self.metrics.standing_still(found.len(), halted.len());
    }

    /// Reads what a chain has published, and forgets the jobs.
    async fn read_on(&self, (tenant, name): &ChainId, known: &mut Known) -> Result<(), ReadError> {
        if known.record.is_none() {
            let record = read(&*self.store, &chain_key(tenant, name)).await?;
            known.record = record.map(|record| record.value);
        }
        let log = log_name(tenant, name);
        let now = self.now();
        let Some(mut after) = known.after else {
            let Some(tail) = self.store.tail(&log).await? else { return Ok(()) };
            known.note(tail.rev.number, decode::<Publication>(&tail)?.value, now);
            known.after = Some(tail.rev.number);
            return Ok(());
        };
        loop {
            let entries = self.store.read(&log, after, PAGE).await?;
            let Some(last) = entries.last() else { break };
            after = last.rev.number;
            for entry in &entries {
                let publication = decode::<Publication>(entry)?.value;
                let number = entry.rev.number;
                if let Publication::Revert { to, .. } = &publication {
                    self.tear_off((tenant, name), known, number, to).await?;
                    known.cancelled = known.cancelled.filter(|cancelled| *cancelled > number);
                } else {
                    known.forget((tenant, name), number, &publication);
                }
                known.note(number, publication, now);
            }
        }
        known.after = Some(after);
        Ok(())
    }

    /// Finds the jobs of blocks that were torn off, and the descendants of the block that is now the last one, even through cancelled
    /// blocks: they are no longer published, or not yet. Jobs that were published since are forgotten when the entries that follow are
    /// read.
    async fn tear_off(
        &self,
        (tenant, chain): (&Name, &Name),
        known: &mut Known,
        number: u64,
        to: &Name,
    ) -> Result<(), ReadError> {
        let key = |slot| JobKey { tenant: tenant.clone(), chain: chain.clone(), slot };
        // An entry may be read again.
        if known.last.as_ref().is_none_or(|(last, _)| *last < number) {
            while known.path.back().is_some_and(|(_, id)| id != to)
                && let Some((place, _)) = known.path.pop_back()
            {
                known.torn.insert(key(place), number);
            }
        }
        let torn = known.torn.iter().filter(|(_, by)| **by == number);
        let mut places: Vec<Name> = torn.map(|(key, _)| key.slot.clone()).collect();
        places.push(to.clone());
        let mut seen = BTreeSet::new();
        while let Some(place) = places.pop() {
            if !seen.insert(place.clone()) {
                continue;
            }
            let key = key(place);
            let Some(job) = read::<Job>(&*self.store, &key.to_string()).await? else { continue };
            places.push(job.value.id.clone());
            let is_open =
                !matches!(job.value.state, JobState::Cancelled { .. } | JobState::Skipped { .. });
            if is_open {
                let changed = self.now();
                known.jobs.entry(key).or_insert_with(|| Open { job: Arc::new(job), changed });
            } else {
                known.torn.remove(&key);
            }
        }
        Ok(())
    }
}

impl Known {
    /// Takes note of an entry of the log.
    fn note(&mut self, number: u64, publication: Publication, now: u64) {
        if self.last.as_ref().is_none_or(|(last, _)| *last < number) {
            // A revert publishes nothing.
            if let Publication::Block { id, parent, .. } | Publication::Skip { id, parent, .. } =
                &publication
            {
                self.path.push_back((parent.clone(), id.clone()));
                if self.path.len() > MAX_PATH {
                    self.path.pop_front();
                }
                self.moved = now;
                let Self { jobs, places, .. } = self;
                places.retain(|key, _| jobs.contains_key(key));
                places.values_mut().for_each(|place| place.moved(now));
            }
            self.last = Some((number, publication));
        }
    }

    /// Forgets the job of a block that is published.
    fn forget(&mut self, (tenant, chain): (&Name, &Name), number: u64, publication: &Publication) {
        let (id, slots) = match publication {
            // Without order, the place of a block is its own name.
            Publication::Block { id, parent, .. } | Publication::Skip { id, parent, .. } => {
                (id, [parent, id])
            }
            // What is torn off is not published.
            Publication::Revert { .. } => return,
        };
        for slot in slots {
            let (tenant, chain) = (tenant.clone(), chain.clone());
            let key = JobKey { tenant, chain, slot: slot.clone() };
            let is_it = self.jobs.get(&key).is_some_and(|open| {
                let Stored { value: job, rev } = &*open.job;
                let same = match publication {
                    Publication::Block { generation, .. } => job.generation == *generation,
                    _ => true,
                };
                job.id == *id && same && !job.is_live() && rev.number < number
            });
            // An entry that is read again may be one that was torn off.
            if is_it && self.torn.get(&key).is_none_or(|by| *by < number) {
                self.torn.remove(&key);
                self.jobs.remove(&key);
            }
        }
    }
}
