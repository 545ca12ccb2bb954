//! Makes the tasks of jobs, and ends jobs.
//!
//! The 64 partitions are divided among the collectors. The division only saves work: tasks have fixed places, so two owners of a partition
//! create the same tasks, and each task once.

mod plan;
mod removed;

use crate::alive::{LOOK, LivenessProbe, Observer, SharedSession};
use crate::clock::Clock;
use crate::feed::{Event, is_newer};
use crate::id::PARTITIONS;
use crate::metrics::Metrics;
use crate::record::{
    Job, JobKey, JobState, OnDisk, Owner, SessionId, Stored, Task, TaskKey, TaskState,
    create_on_disk, encode, owner_key, read, update_on_disk,
};
use crate::store::{MAX_VALUE, Store, WriteError};
use crate::workflows::Workflows;
use futures_util::future::join_all;
use hekaton_orchestrator_client::{Name, Workflow};
pub use plan::{Groups, Situation, Sources, Step, Strategies, Strategy};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

// Tasks and the end of a job follow from the job, so none of these writes waits for the disk. Clients learn of an end once it is on disk
// (`store::Settled`).

/// The number of writes that are under way at the same time.
const WRITES: usize = 256;

/// The time to wait before repeating a write that the store refused, or may not have done.
const PAUSE: Duration = Duration::from_millis(500);

/// The time to wait for the blob of a workflow.
const WORKFLOW_PAUSE: Duration = Duration::from_secs(5);

/// The configuration and dependencies of a collector.
pub(crate) struct Collector {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) sessions: Arc<dyn Store>,
    pub(crate) clock: Clock,
    pub(crate) session: SessionId,
    pub(crate) own: SharedSession,
    pub(crate) gone: LivenessProbe,
    pub(crate) workflows: Workflows,
    pub(crate) strategies: Strategies,
    pub(crate) metrics: Metrics,
    /// The channel for the partitions that it owns: a partition's owner also publishes.
    pub(crate) owned: UnboundedSender<BTreeSet<u8>>,
    pub(crate) stop: CancellationToken,
}

/// The state of the event loop.
#[derive(Default)]
struct State {
    complete: bool,
    jobs: BTreeMap<JobKey, Arc<Stored<Job>>>,
    tasks: BTreeMap<JobKey, BTreeMap<TaskKey, Arc<Stored<Task>>>>,
    owners: BTreeMap<u8, Stored<Owner>>,
    owned: BTreeSet<u8>,
    /// Jobs to plan for, and when.
    due: BTreeMap<JobKey, Instant>,
    /// The time at which an output was last added to a job.
    added: BTreeMap<JobKey, Duration>,
    observer: Observer,
    /// Jobs whose outputs were missing once.
    doubted: BTreeSet<JobKey>,
    /// Leases of other sessions.
    leases: BTreeMap<TaskKey, (SessionId, JobKey)>,
}

impl Collector {
    /// Runs until it is stopped. Then its partitions are free.
    pub(crate) async fn run(self, mut events: UnboundedReceiver<Event>) {
        let mut state = State::default();
        let mut look = Instant::now();
        loop {
            self.plan(&mut state).await;
            let due = state
                .due
                .iter()
                .filter(|(key, _)| state.owned.contains(&key.partition()))
                .map(|(_, at)| *at)
                .min()
                .map_or(look, |due| due.min(look));
            tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                event = events.recv() => {
                    let Some(event) = event else { return };
                    let before = state.complete;
                    self.apply(&mut state, event);
                    while let Ok(event) = events.try_recv() {
                        self.apply(&mut state, event);
                    }
                    if state.complete && !before {
                        // The tasks and partitions of a dead process are taken over at once.
                        look = Instant::now();
                    }
                }
                () = tokio::time::sleep_until(due) => {}
            }
            if Instant::now() >= look {
                look = self.clock.after(LOOK);
                self.observe(&mut state).await;
            }
        }
        // Given back at once, or chains would stand still until the session counts as dead.
        for partition in std::mem::take(&mut state.owned) {
            self.own(&mut state, partition, None).await;
        }
    }

    fn apply(&self, state: &mut State, event: Event) {
        match event {
            Event::Reset => {
                let observer = std::mem::take(&mut state.observer);
                // The observer is kept: the sessions that it has seen are in another store.
                *state = State { observer, ..State::default() };
                let _ = self.owned.send(BTreeSet::new());
            }
            Event::Complete => state.complete = true,
            Event::Owner(partition, stored) => {
                let known = state.owners.get(&partition).map(|known| known.rev);
                if is_newer(known, stored.rev) {
                    self.owner(state, partition, (*stored).clone());
                }
            }
            // Publishers use what a chain is made of; collectors do not.
            Event::Chain(_) => {}
            // Jobs that have ended are forgotten anyway, and live ones are not removed.
            Event::Listed(_) => {}
            Event::Job(key, stored) => self.job(state, key, stored),
            Event::Task(key, stored) => self.task(state, key, stored),
        }
    }

    fn job(&self, state: &mut State, key: JobKey, stored: Arc<Stored<Job>>) {
        let known = state.jobs.get(&key).map(|known| known.rev);
        if is_newer(known, stored.rev) {
            state.due.insert(key.clone(), Instant::now());
            state.jobs.insert(key.clone(), stored);
            state.forget_removed(&key);
        }
    }

    fn task(&self, state: &mut State, key: TaskKey, stored: Arc<Stored<Task>>) {
        let job = stored.value.job.clone();
        let tasks = state.tasks.entry(job.clone()).or_default();
        if !is_newer(tasks.get(&key).map(|known| known.rev), stored.rev) {
            return;
        }
        match &stored.value.state {
            TaskState::Leased { session, .. } => {
                if state.jobs.get(&job).is_none_or(|known| !known.value.is_live()) {
                    // It was claimed while its job ended.
                    state.due.insert(job.clone(), Instant::now());
                }
                if *session != self.session {
                    state.leases.insert(key, (session.clone(), job.clone()));
                }
            }
            other => {
                state.leases.remove(&key);
                if let TaskState::Done { .. } = other {
                    state.added.insert(job.clone(), self.clock.monotonic());
                }
                state.due.insert(job, Instant::now());
            }
        }
        tasks.insert(key, stored);
    }

    /// Plans for the jobs that are due, and makes the writes that the plans ask for.
    async fn plan(&self, state: &mut State) {
        if !state.complete {
            return;
        }
        loop {
            let now = Instant::now();
            let due: Vec<JobKey> = state
                .due
                .iter()
                .filter(|(key, at)| **at <= now && state.owned.contains(&key.partition()))
                .map(|(key, _)| key.clone())
                .take(WRITES)
                .collect();
            if due.is_empty() {
                return;
            }
            let mut steps = Vec::new();
            for key in due {
                state.due.remove(&key);
                if !state.jobs.contains_key(&key) {
                    // The job had ended before a late write created one of its tasks.
                    match read::<Job>(&*self.store, &key.to_string()).await {
                        Ok(Some(job)) => {
                            state.jobs.insert(key.clone(), Arc::new(job));
                            state.forget_removed(&key);
                        }
                        Ok(None) => {}
                        Err(error) => {
                            tracing::warn!(%error, "a job will be planned later");
                            state.due.insert(key, self.clock.after(PAUSE));
                            continue;
                        }
                    }
                }
                self.steps(state, &key, &mut steps);
            }
            let mut left = steps.into_iter().peekable();
            while left.peek().is_some() {
                let group: Vec<_> = left.by_ref().take(WRITES).collect();
                let writes = group.into_iter().map(|(key, step)| self.write(state, key, step));
                let written = join_all(writes.collect::<Vec<_>>()).await;
                for written in written {
                    self.written(state, written);
                }
            }
        }
    }

    /// Adds the steps of a job.
    fn steps(&self, state: &mut State, key: &JobKey, steps: &mut Vec<(JobKey, Step)>) {
        let Some(job) = state.jobs.get(key) else {
            return Self::cancel_strays(state, key, steps);
        };
        let identity = job.value.identity();
        let all = state.tasks.entry(key.clone()).or_default();
        let newest = all.values().map(|task| task.value.generation).max().unwrap_or(0);
        let mut tasks = BTreeMap::new();
        for (key_of_task, task) in &*all {
            if key_of_task.job == identity {
                tasks.insert(*key_of_task, task.value.clone());
            } else if newest <= job.value.generation && !task.value.state.is_final() {
                // The task is of a block that another one has replaced.
                steps.push((key.clone(), Step::Cancel(*key_of_task)));
            }
        }
        // What is known of the job is older than its tasks.
        if newest > job.value.generation {
            return;
        }
        let workflow = match self.workflows.get(&job.value.workflow) {
            Ok(workflow) => workflow,
            Err(why) => {
                // A client or an operator may put the blob back.
                tracing::error!(job = %key, %why, "its workflow cannot be read");
                state.due.insert(key.clone(), self.clock.after(WORKFLOW_PAUSE));
                return;
            }
        };
        let now = self.clock.monotonic();
        let quiet = now.saturating_sub(*state.added.entry(key.clone()).or_insert(now));
        let situation = Situation {
            job: &job.value,
            workflow: &workflow,
            tasks: &tasks,
            strategies: &self.strategies,
            now: self.clock.wall(),
            quiet,
        };
        let (planned, is_live) = (situation.plan(), job.value.is_live());
        if self.is_doubtful(state, key, &planned) {
            return;
        }
        steps.extend(planned.into_iter().map(|step| (key.clone(), step)));
        if is_live {
            if let Some(after) = next_partial(&workflow, quiet) {
                let again = self.clock.after(after.saturating_sub(quiet));
                state.due.entry(key.clone()).or_insert(again);
            }
            return;
        }
        let open = has_open_tasks(&state.tasks, key);
        if !open && steps.iter().all(|(planned, _)| planned != key) {
            // Nothing more happens to it. A later generation finds its tasks when it makes them.
            state.jobs.remove(key);
            state.tasks.remove(key);
            state.added.remove(key);
            state.doubted.remove(key);
        }
    }

    /// One write of a plan.
    fn write(
        &self,
        state: &State,
        key: JobKey,
        step: Step,
    ) -> impl Future<Output = Outcome> + use<> {
        let store = Arc::clone(&self.store);
        let now = self.clock.wall();
        let job = state.jobs.get(&key).cloned();
        let known =
            |task: &TaskKey| state.tasks.get(&key).and_then(|tasks| tasks.get(task)).cloned();
        let known = match &step {
            Step::Cancel(task) | Step::Revive(task) => known(task),
            Step::Create(..) | Step::End(_) => None,
        };
        async move {
            let end = key.clone();
            let written = Self::step(&*store, key, step, job, known, now).await;
            Outcome { key: end, written }
        }
    }

    async fn step(
        store: &dyn Store,
        key: JobKey,
        step: Step,
        job: Option<Arc<Stored<Job>>>,
        known: Option<Arc<Stored<Task>>>,
        now: u64,
    ) -> Result<Option<Change>, WriteError> {
        let generation = job.as_ref().map_or(0, |job| job.value.generation);
        match step {
            Step::Create(task, value) => {
                let name = task.to_string();
                let made = match create_on_disk(store, &name, *value, OnDisk::Soon).await {
                    // The task is of an earlier generation, or another owner made it.
                    Err(WriteError::Conflict { .. }) => match read(store, &name).await {
                        Ok(Some(found)) => Some(found),
                        // There may be no event, so it is planned again.
                        _ => return Err(WriteError::Conflict { key: name }),
                    },
                    made => Some(made?),
                };
                Ok(made.map(|stored| Change::Task(task, stored)))
            }
            Step::Cancel(task) | Step::Revive(task) => {
                let next = known.and_then(|known| {
                    let next = match step {
                        Step::Revive(_) => known.value.revive(generation, now),
                        _ => known.value.cancel(now),
                    };
                    Some((next.ok()?, known.rev))
                });
                match next {
                    Some((next, rev)) => removed::rewrite(store, task, next, rev).await.map(Some),
                    None => Ok(None),
                }
            }
            Step::End(end) => match job {
                Some(job) => {
                    let mut ended = Job { state: end, ..job.value.clone() };
                    if encode(&ended, u64::MAX).len() > MAX_VALUE {
                        // Only a custom strategy can produce this many.
                        let reason = "its outputs are too many for its record".to_owned();
                        ended.state = JobState::Dead { reason, at: now };
                    }
                    let name = key.to_string();
                    let written = update_on_disk(store, &name, ended, job.rev, OnDisk::Soon).await;
                    written.map(|stored| Some(Change::Job(key.clone(), stored)))
                }
                None => Ok(None),
            },
        }
    }

    fn written(&self, state: &mut State, Outcome { key, written }: Outcome) {
        match written {
            Ok(Some(Change::Task(task, stored))) => self.task(state, task, Arc::new(stored)),
            Ok(Some(Change::Job(key, stored))) => {
                self.metrics.job_ended(&stored.value, self.clock.wall());
                self.job(state, key, Arc::new(stored));
            }
            Ok(Some(Change::Reread(task, found))) => {
                match found {
                    Some(stored) => self.task(state, task, Arc::new(stored)),
                    None => state.forget_task(&key, &task),
                }
                state.due.entry(key).or_insert_with(|| self.clock.after(PAUSE));
            }
            Ok(None) => {}
            // The write of another process is reported by the feed, and perhaps does not change what is due.
            Err(WriteError::Conflict { .. }) => {
                state.due.entry(key).or_insert_with(|| self.clock.after(PAUSE));
            }
            Err(error) => {
                tracing::warn!(%error, "a job will be planned again");
                state.due.insert(key, self.clock.after(PAUSE));
            }
        }
    }

    /// Reads the sessions, takes leases from dead ones, and divides the partitions.
    async fn observe(&self, state: &mut State) {
        // Holders of leases and owners of partitions are judged even if they have no session
        // record: a session that was lost with a server's memory must not keep them forever.
        let holders: BTreeSet<SessionId> =
            state.leases.values().map(|(id, _)| id.clone()).collect();
        let owners = state.owners.values().filter_map(|owner| owner.value.session.clone());
        let wanted: Vec<SessionId> = holders.iter().cloned().chain(owners).collect();
        match self.sessions.list("session/", 0).await {
            Ok(listing) => {
                let now = self.clock.monotonic();
                state.observer.read(now, &listing, &wanted, &self.session);
            }
            Err(error) => {
                tracing::warn!(%error, "sessions cannot be read");
                return;
            }
        }
        for id in holders {
            if id != self.session && state.observer.is_dead(&id, &self.gone) {
                self.expire(state, &id).await;
            }
        }
        if state.complete {
            self.divide(state).await;
            self.measure(state);
        }
    }

    /// Measures the queue for alarms.
    fn measure(&self, state: &State) {
        let now = self.clock.wall();
        let running = state.observer.living(&self.gone).filter(|(_, session)| !session.draining);
        let backends: BTreeSet<&Name> = running.flat_map(|(_, session)| session.able()).collect();
        let (mut ready, mut leased, mut head, mut unrunnable) = (0, 0, 0, 0);
        let mut missing = BTreeSet::new();
        for task in state.tasks.values().flat_map(BTreeMap::values).map(|task| &task.value) {
            match task.state {
                TaskState::Ready => {
                    ready += 1;
                    head = head.max(now.saturating_sub(task.created));
                    if !backends.contains(&task.backend) {
                        unrunnable += 1;
                        missing.insert(task.backend.as_str());
                    }
                }
                TaskState::Leased { .. } => leased += 1,
                _ => {}
            }
        }
        if unrunnable > 0 {
            let backends = missing.into_iter().collect::<Vec<_>>().join(", ");
            tracing::warn!(tasks = unrunnable, backends, "no live process has these back-ends");
        }
        self.metrics.queue(ready, leased, head as f64 / 1e3, unrunnable);
    }

    /// Takes the leases of a dead session.
    async fn expire(&self, state: &mut State, id: &SessionId) {
        let leases = state.leases.iter().filter(|(_, (session, _))| session == id);
        let leases: Vec<(TaskKey, JobKey)> =
            leases.map(|(key, (_, job))| (*key, job.clone())).collect();
        tracing::warn!(session = %id, leases = leases.len(), "a session is dead");
        for (key, job) in leases {
            let Some(known) = state.tasks.get(&job).and_then(|tasks| tasks.get(&key)) else {
                continue;
            };
            let Ok(next) = known.value.expire(self.clock.wall()) else { continue };
            let name = key.to_string();
            match update_on_disk(&*self.store, &name, next, known.rev, OnDisk::Soon).await {
                Ok(stored) => {
                    // Every collector tries, and one of them takes it.
                    self.metrics.expired();
                    self.task(state, key, Arc::new(stored));
                }
                // The session's own last write, or another observer's.
                Err(WriteError::Conflict { .. }) => {}
                // The lease is still in the list: the next look, in a second, tries again.
                Err(error) => tracing::warn!(%error, "a lease was not taken"),
            }
        }
    }

    /// Takes partitions without an owner, up to this collector's share; gives back what is above it.
    async fn divide(&self, state: &mut State) {
        let collectors = state
            .observer
            .living(&self.gone)
            .filter(|(id, session)| session.collects && !session.draining && **id != self.session);
        let others = collectors.count();
        let draining = self.own.lock().unwrap_or_else(PoisonError::into_inner).draining;
        // Tasks that run here until the end of a drain need a collector.
        let share = match draining && others > 0 {
            true => 0,
            // Rounded up, or some partitions would have no owner. What is above the shares of
            // others is given back as they join.
            false => usize::from(PARTITIONS).div_ceil(1 + others),
        };
        while state.owned.len() > share {
            let Some(partition) = state.owned.last().copied() else { break };
            self.own(state, partition, None).await;
            if state.owned.contains(&partition) {
                // It is not known to be given back: the next look tries again.
                break;
            }
        }
        let free = (0..PARTITIONS).filter(|partition| {
            match state.owners.get(partition).map(|owner| owner.value.session.as_ref()) {
                None | Some(None) => true,
                Some(Some(owner)) => {
                    *owner != self.session && state.observer.is_dead(owner, &self.gone)
                }
            }
        });
        let room = share.saturating_sub(state.owned.len());
        let taken: Vec<u8> = free.take(room).collect();
        for partition in taken {
            self.own(state, partition, Some(self.session.clone())).await;
        }
    }

    /// Writes who owns a partition.
    async fn own(&self, state: &mut State, partition: u8, session: Option<SessionId>) {
        // Not synced: a crash of the machine ends all sessions on it, so the recorded owner is
        // replaced in any case. With NATS, the server decides.
        let (key, owner) = (owner_key(partition), Owner { session });
        let written = match state.owners.get(&partition) {
            Some(known) => update_on_disk(&*self.store, &key, owner, known.rev, OnDisk::Soon).await,
            None => create_on_disk(&*self.store, &key, owner, OnDisk::Soon).await,
        };
        match written {
            Ok(stored) => self.owner(state, partition, stored),
            Err(WriteError::Conflict { .. }) => {}
            Err(error) => tracing::warn!(partition, %error, "its owner was not written"),
        }
    }

    fn owner(&self, state: &mut State, partition: u8, stored: Stored<Owner>) {
        let ours = stored.value.session.as_ref() == Some(&self.session);
        state.owners.insert(partition, stored);
        let changed = match ours {
            true => state.owned.insert(partition),
            false => state.owned.remove(&partition),
        };
        if changed {
            // Jobs that became due while another process looked after them are still due.
            let keys: Vec<JobKey> = state
                .jobs
                .keys()
                .filter(|key| ours && key.partition() == partition)
                .cloned()
                .collect();
            for key in keys {
                state.due.entry(key).or_insert_with(Instant::now);
            }
            let _ = self.owned.send(state.owned.clone());
        }
    }
}

/// Returns the time after which the next partial barrier of a workflow becomes full by waiting, if there is one.
fn next_partial(workflow: &Workflow, quiet: Duration) -> Option<Duration> {
    let partial = workflow.stages.iter().filter_map(|stage| stage.partial_after_millis);
    let after = partial.map(|millis| Duration::from_millis(millis.into()));
    after.filter(|after| *after > quiet).min()
}

/// Reports whether a job has tasks that are not final.
fn has_open_tasks(
    tasks: &BTreeMap<JobKey, BTreeMap<TaskKey, Arc<Stored<Task>>>>,
    job: &JobKey,
) -> bool {
    let mut own = tasks.get(job).into_iter().flat_map(BTreeMap::values);
    own.any(|task| !task.value.state.is_final())
}

struct Outcome {
    key: JobKey,
    written: Result<Option<Change>, WriteError>,
}

enum Change {
    Task(TaskKey, Stored<Task>),
    /// The task in a place, if there is one, after the write of a task conflicted.
    Reread(TaskKey, Option<Stored<Task>>),
    Job(JobKey, Stored<Job>),
}
