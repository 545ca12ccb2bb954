//! Claims tasks, has them run, and writes their results.

pub(crate) mod queue;
mod run;
mod runner;
mod trust;

use crate::alive::SharedSession;
use crate::clock::Clock;
use crate::feed::{Event, is_newer};
use crate::metrics::Metrics;
use crate::record::{
    Job, JobKey, JobState, OnDisk, Order, SessionId, Stored, Task, TaskKey, TaskState,
    update_on_disk,
};
use crate::store::{Rev, Store};
use crate::surroundings::{Surroundings, View};
use hekaton_orchestrator_client::Name;
use queue::Queue;
pub(crate) use run::MAX_RUNNING;
use run::{Lease, Returned, TaskRun, Written};
pub use runner::Progress;
pub(crate) use runner::{Attempt, Claimed, Report, Runner};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use trust::{Sign, Trust, is_left};

/// The interval between comparisons of the leases in a session's name with what it runs.
const AUDIT: Duration = Duration::from_secs(1);

/// The number of blocks behind a dead block of a chain that may still be proven.
pub const BLOCKS_BEHIND_DEAD: u64 = 64;

/// The configuration and dependencies of a dispatcher.
pub(crate) struct Dispatcher {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) session: SessionId,
    pub(crate) own: SharedSession,
    pub(crate) runner: Arc<dyn Runner>,
    pub(crate) backends: BTreeSet<Name>,
    pub(crate) slots: usize,
    pub(crate) weights: BTreeMap<Name, u32>,
    /// The number of tasks of a tenant that run at the same time in this process.
    pub(crate) tenant_slots: BTreeMap<Name, usize>,
    pub(crate) metrics: Metrics,
    pub(crate) surroundings: Surroundings,
    /// Stops claims; running tasks continue.
    pub(crate) drain: CancellationToken,
    /// Stops running tasks and returns their leases.
    pub(crate) stop: CancellationToken,
}

type ChainId = (Name, Name);

/// The state of the event loop.
#[derive(Default)]
struct State {
    queue: Queue,
    /// Leases in this session's name, by the store.
    leases: BTreeMap<TaskKey, (Task, Rev)>,
    /// The tasks that are being claimed or run.
    runs: BTreeMap<TaskKey, Run>,
    /// Dead blocks, by chain.
    dead: BTreeMap<ChainId, BTreeMap<JobKey, u64>>,
    /// The dead block that a chain does not get past, for chains with dead blocks.
    barriers: BTreeMap<ChainId, Barrier>,
    /// Chains whose barrier has to be looked for again.
    stale: BTreeSet<ChainId>,
    /// The parents of the first blocks, for chains with strict order.
    genesis: BTreeMap<ChainId, Name>,
    /// The keys of runs by their ids, for when one panics.
    ids: HashMap<tokio::task::Id, TaskKey>,
    /// Revisions of jobs, with the names of blocks of chains with strict order that are not cancelled.
    jobs: BTreeMap<JobKey, (Rev, Option<Name>)>,
    trust: Trust,
}

/// A dead block that follows from what a chain has published.
struct Barrier {
    height: u64,
    /// The last block that is published: whatever follows it is next, and may be run.
    tail: Name,
}

impl State {
    /// Looks for the dead block that a chain does not get past. A dead block that does not descend from the last published block holds up
    /// nothing.
    fn barrier(&self, chain: &ChainId, view: &View) -> Option<Barrier> {
        let dead = self.dead.get(chain)?;
        let tail = view.tails.get(chain).or_else(|| self.genesis.get(chain))?;
        // Rising heights rule out cycles in a chain, but the records known here may be from
        // different moments, so a cycle must end the search, too.
        let (mut slot, mut seen) = (tail, BTreeSet::new());
        while seen.insert(slot) {
            let (tenant, name) = chain.clone();
            let key = JobKey { tenant, chain: name, slot: slot.clone() };
            if let Some(&height) = dead.get(&key) {
                return Some(Barrier { height, tail: tail.clone() });
            }
            slot = self.jobs.get(&key)?.1.as_ref()?;
        }
        None
    }

    fn find_barriers(&mut self, view: &View) {
        for chain in std::mem::take(&mut self.stale) {
            match self.barrier(&chain, view) {
                Some(barrier) => drop(self.barriers.insert(chain, barrier)),
                None => drop(self.barriers.remove(&chain)),
            }
        }
    }

    /// Reports whether a task's block is too far behind a dead one.
    fn is_behind(&self, task: &Task) -> bool {
        let JobKey { tenant, chain, slot } = &task.job;
        self.barriers.get(&(tenant.clone(), chain.clone())).is_some_and(|barrier| {
            task.block > barrier.height.saturating_add(BLOCKS_BEHIND_DEAD) && *slot != barrier.tail
        })
    }
}

struct Run {
    tenant: Name,
    backend: Name,
    lease: Arc<Lease>,
}

impl Run {
    fn of(task: &Task) -> Self {
        let (tenant, backend) = (task.job.tenant.clone(), task.backend.clone());
        Self { tenant, backend, lease: Arc::default() }
    }
}

impl Dispatcher {
    /// Runs until it is stopped and everything that ran has ended.
    pub(crate) async fn run(self: Arc<Self>, mut events: UnboundedReceiver<Event>) {
        let mut state = State { queue: Queue::new(self.weights.clone()), ..State::default() };
        let mut runs = JoinSet::new();
        let mut audit = self.clock.after(AUDIT);
        let mut told = false;
        loop {
            let next_try = self.fill(&mut state, &mut runs);
            let ended = self.stop.is_cancelled() || self.drain.is_cancelled();
            if ended && runs.is_empty() {
                return;
            }
            let wait = next_try.map_or(audit, |at| at.min(audit));
            tokio::select! {
                biased;
                () = self.drain.cancelled(), if !told => {
                    told = true;
                    self.own.lock().unwrap_or_else(PoisonError::into_inner).draining = true;
                }
                Some(returned) = runs.join_next_with_id() => self.returned(&mut state, returned),
                event = events.recv() => match event {
                    Some(event) => {
                        self.apply(&mut state, event);
                        while let Ok(event) = events.try_recv() {
                            self.apply(&mut state, event);
                        }
                    }
                    // The process ends.
                    None => {
                        runs.shutdown().await;
                        return;
                    }
                },
                () = tokio::time::sleep_until(wait) => {}
            }
            if tokio::time::Instant::now() >= audit {
                audit = self.clock.after(AUDIT);
                self.audit(&mut state, &mut runs);
                self.watch(&mut state);
            }
        }
    }

    /// Starts runs while there are slots and tasks. Returns when to look again, if a task must wait.
    fn fill(
        &self,
        state: &mut State,
        runs: &mut JoinSet<Returned>,
    ) -> Option<tokio::time::Instant> {
        if self.drain.is_cancelled() || self.stop.is_cancelled() {
            return None;
        }
        let (now, view) = (self.clock.wall(), self.surroundings.view());
        state.trust.look(&view, &self.session);
        state.find_barriers(&view);
        // Runs count from the claim on, so that claims that are not answered yet take slots, too.
        while state.runs.len() < self.slots {
            let can = |key: &TaskKey, task: &Task| self.can(state, &view, now, key, task);
            let next = state.queue.next(&can, now);
            let Some((key, ready, rev)) = next.task else {
                let wait = next.wait?.saturating_sub(now).max(1);
                return Some(self.clock.after(Duration::from_millis(wait)));
            };
            let task = ready.clone();
            let run = Run::of(&task);
            state.queue.claim(key, &task);
            state.trust.claimed(&task.backend, &self.clock);
            let attempt = TaskRun {
                key,
                store: Arc::clone(&self.store),
                clock: self.clock.clone(),
                session: self.session.clone(),
                runner: Arc::clone(&self.runner),
                surroundings: self.surroundings.clone(),
                lease: Arc::clone(&run.lease),
                stop: self.stop.clone(),
                own: Arc::clone(&self.own),
                metrics: self.metrics.clone(),
            };
            state.runs.insert(key, run);
            state.ids.insert(runs.spawn(attempt.run(task, rev)).id(), key);
        }
        None
    }

    /// Reports whether a task may be claimed now.
    fn can(&self, state: &State, view: &View, now: u64, key: &TaskKey, task: &Task) -> bool {
        let tenant = &task.job.tenant;
        let full = self.tenant_slots.get(tenant).is_some_and(|&slots| {
            state.runs.values().filter(|run| run.tenant == *tenant).count() >= slots
        });
        // A back-end in quarantine is probed with one task at a time.
        let busy = || state.runs.values().any(|run| run.backend == task.backend);
        !state.runs.contains_key(key)
            && self.backends.contains(&task.backend)
            && !full
            && !state.is_behind(task)
            && state.trust.allows(&task.backend, &self.clock, busy())
            && !is_left(task, view, &self.session, now)
    }

    fn apply(&self, state: &mut State, event: Event) {
        match event {
            Event::Reset => {
                // Runs are kept: their processes work regardless, and each result is written under
                // the revision of its own claim.
                state.queue = Queue::new(self.weights.clone());
                state.leases.clear();
                state.dead.clear();
                state.barriers.clear();
                state.jobs.clear();
            }
            Event::Task(key, stored) => self.task(state, key, &stored),
            Event::Job(key, stored) => Self::job(state, key, &stored),
            Event::Chain(stored) => {
                let chain = &stored.value;
                if let Some(genesis) = &chain.genesis {
                    let id = (chain.tenant.clone(), chain.chain.clone());
                    state.genesis.insert(id, genesis.clone());
                }
            }
            Event::Listed(listed) => {
                state.jobs.retain(|key, (rev, _)| !listed.is_removed(key, *rev));
                for blocks in state.dead.values_mut() {
                    blocks.retain(|key, _| state.jobs.contains_key(key));
                }
            }
            Event::Owner(..) | Event::Complete => {}
        }
    }

    fn task(&self, state: &mut State, key: TaskKey, stored: &Stored<Task>) {
        let Stored { value: task, rev } = stored;
        // The record already known from this session's own writes may be newer.
        let known = state.leases.get(&key).map(|(_, rev)| *rev);
        if known.is_some_and(|known| !is_newer(Some(known), *rev)) {
            return;
        }
        state.queue.set(key, task, *rev);
        state.trust.hear(&key, task, &self.session);
        match &task.state {
            TaskState::Leased { session, .. } if *session == self.session => {
                state.leases.insert(key, (task.clone(), *rev));
            }
            _ => {
                state.leases.remove(&key);
            }
        }
        if let Some(run) = state.runs.get(&key) {
            run.lease.seen.fetch_max(rev.number, Ordering::SeqCst);
            run.lease.check();
        }
    }

    fn job(state: &mut State, key: JobKey, stored: &Stored<Job>) {
        let Stored { value: job, rev } = stored;
        if !is_newer(state.jobs.get(&key).map(|(rev, _)| *rev), *rev) {
            return;
        }
        let chain = (key.tenant.clone(), key.chain.clone());
        match job.state {
            // Without order, nothing waits for a dead block.
            JobState::Dead { .. } if job.order == Order::Strict => {
                state.dead.entry(chain.clone()).or_default().insert(key.clone(), job.block);
            }
            _ => {
                if let Some(blocks) = state.dead.get_mut(&chain) {
                    blocks.remove(&key);
                }
            }
        }
        let is_there =
            job.order == Order::Strict && !matches!(job.state, JobState::Cancelled { .. });
        state.jobs.insert(key, (*rev, is_there.then(|| job.id.clone())));
        if state.dead.contains_key(&chain) {
            state.stale.insert(chain);
        }
    }

    /// Starts looking for the last blocks of chains with dead blocks.
    fn watch(&self, state: &mut State) {
        state.stale.extend(state.dead.keys().cloned());
        state.dead.retain(|_, blocks| !blocks.is_empty());
        self.surroundings.watch(state.dead.keys().cloned().collect());
    }

    fn returned(
        &self,
        state: &mut State,
        returned: Result<(tokio::task::Id, Returned), tokio::task::JoinError>,
    ) {
        let Returned { key, backend, result, sign } = match returned {
            Ok((id, returned)) => {
                state.ids.remove(&id);
                returned
            }
            Err(error) => {
                // Its lease is found by the audit.
                tracing::error!(%error, "a run ended without a result");
                if let Some(key) = state.ids.remove(&error.id()) {
                    state.runs.remove(&key);
                }
                return;
            }
        };
        state.runs.remove(&key);
        state.trust.note(key, &backend, sign, (&self.own, &self.clock, &self.metrics));
        match result {
            Written::Task(stored) => self.task(state, key, &stored),
            // The feed will report the other process's claim. If the queue has another revision by now, that one is newer and stays.
            Written::Beaten(rev) => state.queue.forget(&key, rev),
            Written::Nothing => {}
        }
    }

    /// Gives back leases of tasks that this session does not run: their claims took effect after it had stopped waiting for the answer.
    fn audit(&self, state: &mut State, runs: &mut JoinSet<Returned>) {
        let held: Vec<_> = state
            .leases
            .iter()
            .filter(|(key, _)| !state.runs.contains_key(key))
            .map(|(key, (task, rev))| (*key, task.clone(), *rev))
            .collect();
        for (key, task, rev) in held {
            // It takes a slot until it is given back, and is not found by the next audit meanwhile.
            state.runs.insert(key, Run::of(&task));
            let (store, session) = (Arc::clone(&self.store), self.session.clone());
            let now = self.clock.wall();
            let give_back = async move {
                tracing::info!(task = %key, "a lease without a run is given back");
                let why = "its claim was answered too late";
                let mut result = Written::Nothing;
                let backend = task.backend.clone();
                if let Ok(task) = task.give_back(&session, why, now, false)
                    && let Ok(stored) =
                        update_on_disk(&*store, &key.to_string(), task, rev, OnDisk::Soon).await
                {
                    result = Written::Task(Box::new(stored));
                }
                Returned { key, backend, result, sign: Sign::None }
            };
            state.ids.insert(runs.spawn(give_back).id(), key);
        }
    }
}
