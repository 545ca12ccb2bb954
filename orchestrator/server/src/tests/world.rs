//! Processes in a simulated world: time is virtual, everything random comes from one seed.

use super::memory::{Bug, Core, Frozen, MemoryStore};
use crate::alive::{LivenessProbe, Pulse, SharedSession, beat};
use crate::clock::{Clock, Time};
use crate::collect::Strategies;
use crate::dispatch::{Attempt, Claimed, Progress, Runner};
use crate::metrics::Metrics;
use crate::process::Process;
use crate::record::{Session, SessionId, Task, decode};
use crate::retention::Retention;
use crate::standstill::{PATIENCE, Watched};
use crate::store::{Settled, Store};
use crate::submissions::Submissions;
use crate::workflows::Workflows;
use async_trait::async_trait;
use hekaton_orchestrator_client::{Digest, Name, Workflow};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The origin of all simulated times, in milliseconds.
pub(super) const EPOCH: u64 = 1_800_000_000_000;

pub(super) fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A clock that runs fast or slow, and is set wrong.
struct Drifting {
    start: Instant,
    rate: f64,
    offset: u64,
}

impl Time for Drifting {
    fn monotonic(&self) -> Duration {
        self.start.elapsed().mul_f64(self.rate) + Duration::from_secs(1_000)
    }

    fn wall(&self) -> u64 {
        let since = self.start.elapsed().mul_f64(self.rate);
        EPOCH + self.offset + u64::try_from(since.as_millis()).unwrap()
    }

    fn real(&self, span: Duration) -> Duration {
        span.div_f64(self.rate)
    }
}

/// The behavior of provers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Provers {
    pub(super) least_millis: u64,
    pub(super) most_millis: u64,
    /// In thousandths.
    pub(super) failures: u32,
    pub(super) wrong: u32,
    pub(super) impossible: u32,
    pub(super) again: u32,
    /// They run on other machines.
    pub(super) is_remote: bool,
    /// The time for which all of this holds.
    pub(super) bad_for: Duration,
}

impl Provers {
    pub(super) const GOOD: Self = Self {
        least_millis: 1,
        most_millis: 2_000,
        failures: 0,
        wrong: 0,
        impossible: 0,
        again: 0,
        is_remote: false,
        bad_for: Duration::MAX,
    };
}

/// A runner that sleeps, and returns the digest of the task that was asked for.
pub(super) struct Sleeper {
    random: Mutex<ChaCha8Rng>,
    start: Instant,
    provers: Provers,
    /// The number of times that each task was run to its end.
    pub(super) runs: Arc<Mutex<BTreeMap<Digest, u32>>>,
    /// The tasks whose files were removed, since their results are kept.
    settled: Arc<Mutex<BTreeSet<Digest>>>,
}

/// Returns the output that a task must have.
pub(super) fn output(task: &Task) -> Digest {
    Digest::of(output_text(task).as_bytes())
}

/// The bytes of that output, of which no prover makes a file.
pub(super) fn output_text(task: &Task) -> String {
    format!("{} {}", task.id, task.backend)
}

#[async_trait]
impl Runner for Sleeper {
    async fn run(
        &self,
        Claimed { task, .. }: &Claimed<'_>,
        _: &CancellationToken,
        progress: &Progress,
    ) -> Attempt {
        let (millis, luck, fate) = {
            let mut random = self.random.lock().unwrap();
            let millis = random.gen_range(self.provers.least_millis..=self.provers.most_millis);
            // Whether a task is impossible depends on the task alone.
            let fate = u32::from(task.id.as_bytes()[0]) * 1_000 / 256;
            (millis, random.gen_range(0..1_000), fate)
        };
        tokio::time::sleep(Duration::from_millis(millis / 2)).await;
        progress.report(0.5);
        tokio::time::sleep(Duration::from_millis(millis / 2)).await;
        let good = self.start.elapsed() >= self.provers.bad_for;
        let provers = if good { Provers::GOOD } else { self.provers };
        if fate < provers.impossible {
            return Attempt::Impossible("not a witness".into());
        }
        if luck < provers.again {
            return Attempt::Again("the disk is full".into());
        }
        if luck < provers.wrong {
            return Attempt::Wrong("the proof does not verify".into());
        }
        if luck < provers.wrong + provers.failures {
            return Attempt::Failed("exit code 4".into());
        }
        *self.runs.lock().unwrap().entry(task.id).or_default() += 1;
        Attempt::Done(output(task))
    }

    fn is_remote(&self, _: &Task) -> bool {
        self.provers.is_remote
    }

    fn settled(&self, task: &Task) {
        self.settled.lock().unwrap().insert(task.id);
    }
}

/// A process that can be killed and frozen.
pub(super) struct Node {
    frozen: Frozen,
    tasks: Vec<tokio::task::AbortHandle>,
    drain: CancellationToken,
    stop: CancellationToken,
    ended: Arc<Notify>,
}

impl Node {
    pub(super) fn freeze(&self, frozen: bool) {
        self.frozen.set(frozen);
    }

    /// Asks the process to claim no more tasks, waits a while, asks it to end at once, and waits for that.
    pub(super) async fn shut_down(self, grace: Duration) {
        self.drain.cancel();
        let ended = self.ended.notified();
        if tokio::time::timeout(grace, ended).await.is_err() {
            self.stop.cancel();
            self.ended.notified().await;
        }
    }
}

impl Drop for Node {
    /// Kills the process: nothing of it runs from here on, but what it has sent may still arrive.
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}

/// The shape of a process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) slots: usize,
    pub(super) collects: bool,
    pub(super) backends: &'static [&'static str],
    /// The rate of its clock.
    pub(super) rate: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Self { slots: 2, collects: true, backends: &["prove", "join"], rate: 1.0 }
    }
}

pub(super) struct World {
    pub(super) core: Arc<Core>,
    sessions: Arc<Core>,
    /// Stores of records and of sessions to use instead of those in memory.
    pub(super) real: Option<[Arc<dyn Store>; 2]>,
    start: Instant,
    pub(super) random: ChaCha8Rng,
    pub(super) workflows: Workflows,
    pub(super) provers: Provers,
    pub(super) runs: Arc<Mutex<BTreeMap<Digest, u32>>>,
    pub(super) settled: Arc<Mutex<BTreeSet<Digest>>>,
    pub(super) weights: BTreeMap<Name, u32>,
    pub(super) patience: Duration,
    /// The time for which processes that collect keep what has ended, the interval of their sweeps, and the blocks that stay.
    pub(super) keep: Option<(Duration, Duration, usize)>,
    /// The standstills that the last process that looked has found.
    pub(super) watched: Watched,
    /// Clients read what is not on disk, which they must not.
    pub(super) is_hasty: bool,
    /// Answers that clients got: jobs and entries of logs, with their revisions and contents.
    pub(super) told: BTreeSet<(String, u64, String)>,
}

impl World {
    pub(super) fn new(seed: u64, bug: Bug) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let core = Core::new(ChaCha8Rng::seed_from_u64(random.r#gen()), bug);
        let sessions = Core::new(ChaCha8Rng::seed_from_u64(random.r#gen()), Bug::None);
        Self {
            core,
            sessions,
            real: None,
            start: Instant::now(),
            random,
            workflows: Workflows::default(),
            provers: Provers::GOOD,
            runs: Arc::default(),
            settled: Arc::default(),
            weights: BTreeMap::new(),
            patience: PATIENCE,
            keep: None,
            watched: Watched::default(),
            is_hasty: false,
            told: BTreeSet::new(),
        }
    }

    pub(super) fn workflow(&self, text: &str) -> Digest {
        self.workflows.put(Workflow::parse(text).unwrap()).unwrap()
    }

    /// Returns the sessions that processes have written.
    pub(super) async fn sessions(&self) -> Vec<Session> {
        let sessions = Arc::clone(&self.sessions);
        let store = MemoryStore { core: sessions, frozen: Frozen::default() };
        let listed = store.list("session/", 0).await.unwrap();
        listed.entries.iter().map(|entry| decode(entry).unwrap().value).collect()
    }

    fn seed(&mut self) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(self.random.r#gen())
    }

    pub(super) fn clock(&mut self, rate: f64) -> Clock {
        let offset = self.random.gen_range(0..500);
        Clock::new(Drifting { start: self.start, rate, offset })
    }

    /// Returns the intake that clients use.
    pub(super) fn submissions(&mut self) -> Submissions {
        let store: Arc<dyn Store> = match self.is_hasty {
            true => self.store(),
            false => Arc::new(Settled(self.store())),
        };
        Submissions::new(store, self.clock(1.0), self.workflows.clone())
    }

    /// Returns the store without any process in between.
    pub(super) fn store(&self) -> Arc<dyn Store> {
        if let Some([records, _]) = &self.real {
            return Arc::clone(records);
        }
        Arc::new(MemoryStore { core: Arc::clone(&self.core), frozen: Frozen::default() })
    }

    /// Starts a process.
    pub(super) fn start(&mut self, shape: Shape) -> Node {
        let frozen = Frozen::default();
        let store = |core: &Arc<Core>| -> Arc<dyn Store> {
            match &self.real {
                Some([records, _]) if Arc::ptr_eq(core, &self.core) => Arc::clone(records),
                Some([_, sessions]) => Arc::clone(sessions),
                None => Arc::new(MemoryStore { core: Arc::clone(core), frozen: frozen.clone() }),
            }
        };
        let (records, sessions, beats) =
            (store(&self.core), store(&self.sessions), store(&self.sessions));
        let session = SessionId::from_number(self.random.r#gen());
        let own: SharedSession = Arc::new(Mutex::new(Session {
            counter: 0,
            host: "simulated".into(),
            pid: 1,
            collects: shape.collects,
            slots: u32::try_from(shape.slots).unwrap(),
            backends: shape.backends.iter().map(|text| name(text)).collect(),
            quarantined: BTreeMap::new(),
            draining: false,
            running: BTreeMap::new(),
        }));
        let gone: LivenessProbe = Arc::new(|_, _| false);
        let clock = self.clock(shape.rate);
        let runner = Sleeper {
            random: Mutex::new(self.seed()),
            start: Instant::now(),
            provers: self.provers,
            runs: Arc::clone(&self.runs),
            settled: Arc::clone(&self.settled),
        };
        let retention = self.keep.filter(|_| shape.collects).map(|(keep, interval, last)| {
            let (store, clock) = (Arc::clone(&records), clock.clone());
            let submissions = Submissions::new(store, clock.clone(), self.workflows.clone());
            let (store, sessions) = (Arc::clone(&records), Arc::clone(&sessions));
            Retention { store, sessions, submissions, clock, keep, interval, last, files: None }
        });
        let process = Process {
            store: records,
            sessions,
            clock: clock.clone(),
            session: session.clone(),
            own: Arc::clone(&own),
            gone,
            runner: Arc::new(runner),
            backends: shape.backends.iter().map(|text| name(text)).collect(),
            slots: shape.slots,
            collects: shape.collects,
            weights: self.weights.clone(),
            tenant_slots: BTreeMap::new(),
            workflows: self.workflows.clone(),
            strategies: Strategies::default(),
            metrics: Metrics::new(),
            patience: self.patience,
            watched: self.watched.clone(),
            listeners: vec![],
        };
        let (drain, stop) = (CancellationToken::new(), CancellationToken::new());
        let ended = Arc::new(Notify::new());
        let ending = Arc::clone(&ended);
        let (draining, stopping) = (drain.clone(), stop.clone());
        // In a set of its own, so that all of it ends together.
        let run = tokio::spawn(async move {
            process.run(draining, stopping).await;
            ending.notify_one();
        });
        let pulse = Pulse::new();
        let beating = tokio::spawn(beat(beats, clock, session.clone(), own, pulse, drain.clone()));
        let mut tasks = vec![run.abort_handle(), beating.abort_handle()];
        tasks.extend(retention.map(|retention| tokio::spawn(retention.run()).abort_handle()));
        Node { frozen, tasks, drain, stop, ended }
    }
}
