//! A process as operators start it: a folder, settings, and perhaps an address.

mod place;

pub use place::{Place, RECORDS, open_records};

use crate::alive::{LivenessProbe, Pulse, SharedSession, beat};
use crate::backend::{Backend, Helper, Workshop};
use crate::clock::Clock;
use crate::collect::Strategies;
use crate::dispatch::Runner;
use crate::feed::Event;
use crate::host;
use crate::http::{Api, Board, Offers, Readiness, Tenants, router};
use crate::metrics::Metrics;
use crate::process::Process;
use crate::record::{Session, SessionId};
use crate::retention::{self, Files, Retention};
use crate::settings::Settings;
use crate::standstill::Watched;
use crate::store::{OpenError, Settled, Store, Timed};
use crate::submissions::Submissions;
use crate::traces::Traces;
use crate::workflows::Workflows;
use hekaton_orchestrator_client::{BlobError, Blobs, Name};
use hekaton_service::Limits;
use place::Kind;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use tokio_util::sync::CancellationToken;

/// The time that a connection may be open.
const MAX_LIFE: Duration = Duration::from_secs(300);

/// The pause before sessions that could not be opened are tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The interval between searches for folders that are no longer needed.
const TIDY: Duration = Duration::from_secs(600);

/// The number of blobs that may be received at the same time.
const MAX_TRANSFERS: usize = 64;

/// The number of connections that may be open.
const MAX_CONNECTIONS: usize = 512;

/// The folders of tasks in a folder.
const SPOOL: &str = "spool";

/// The blobs in a folder.
pub const BLOBS: &str = "blobs";

/// The options that a process is started with.
#[derive(Debug)]
pub struct Options {
    /// The folder of blobs and run directories, and of records, unless they are elsewhere.
    pub data: PathBuf,
    /// The place where records are kept.
    pub place: Place,
    /// The operator's settings.
    pub settings: Settings,
    /// The listener for requests. Without it, the process answers no requests.
    pub listener: Option<TcpListener>,
    /// `true` if it makes tasks and publishes, in addition to running tasks.
    pub collects: bool,
    /// The time that running tasks may take when it is asked to stop.
    pub grace: Duration,
    /// The helper that starts programs.
    pub helper: Helper,
    /// Provers in this process, in addition to those of the settings.
    pub backends: BTreeMap<Name, Arc<dyn Backend>>,
    /// Custom strategies.
    pub strategies: Strategies,
    /// The destination of spans.
    pub traces: Traces,
}

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A file or thread cannot be made.
    #[error("{what}: {error}")]
    Io {
        /// The file or the part of the process that failed.
        what: String,
        /// The operating system's error.
        error: std::io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] OpenError),
    /// The blobs cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

/// Asks a process to stop: the first request leaves running tasks time to end, the second one does not.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancelled when nothing more is to be claimed.
    drain: CancellationToken,
    /// Cancelled when a stop was asked for: running tasks then have [`Options::grace`] to end.
    asked: CancellationToken,
    /// Cancelled when the process is to end now.
    stop: CancellationToken,
}

impl Stop {
    /// Asks the process to stop. The first time, nothing more is claimed, and tasks that run have [`Options::grace`] to end; the
    /// second time, they end at once. The next process that claims them resumes from what they keep in their folders.
    pub fn ask(&self) {
        match self.asked.is_cancelled() {
            true => self.stop.cancel(),
            false => {
                self.asked.cancel();
                self.drain.cancel();
            }
        }
    }

    /// Reports whether a stop was asked for.
    pub fn is_asked(&self) -> bool {
        self.asked.is_cancelled()
    }

    /// Starts a task that waits for a stop to be asked for, and ends the process after the grace period.
    fn end_after(&self, grace: Duration) -> tokio::task::JoinHandle<()> {
        let stop = self.clone();
        tokio::spawn(async move {
            stop.asked.cancelled().await;
            tokio::time::sleep(grace).await;
            stop.stop.cancel();
        })
    }
}

/// Raises the limit on open files: each running program, connection and blob transfer has open files, and the usual limit is low.
fn raise_limit_of_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // A process may always raise its soft limit up to the hard one. If that fails, the usual limit has to suffice.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Writes the session of a process.
struct Heart {
    place: Place,
    data: PathBuf,
    clock: Clock,
    session: SessionId,
    own: SharedSession,
    pulse: Pulse,
    drain: CancellationToken,
    ended: CancellationToken,
}

impl Heart {
    /// Starts writing the session, until it is cancelled.
    // On a thread with a runtime of its own: nothing that this process does, such as a prover that takes all threads, can keep the session
    // from being written.
    fn start(self) -> Result<std::thread::JoinHandle<()>, ServiceError> {
        let Self { place, data, clock, session, own, pulse, drain, ended } = self;
        let io = |what: &str| {
            let what = what.to_owned();
            move |error| ServiceError::Io { what, error }
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(io("the runtime of the session"))?;
        let run = move || {
            runtime.block_on(async {
                let beat = async {
                    // A store of its own: the one that the components use may be busy with their reads and writes.
                    let sessions = loop {
                        match place.open(&data, Kind::Sessions).await {
                            Ok(sessions) => break sessions,
                            Err(error) => tracing::error!(%error, "the session is not written"),
                        }
                        clock.sleep(PAUSE).await;
                    };
                    beat(sessions, clock.clone(), session, own, pulse, drain).await;
                };
                tokio::select! {
                    () = beat => {}
                    () = ended.cancelled() => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("session".into());
        thread.spawn(run).map_err(io("the thread of the session"))
    }
}

/// The folder of a process, which holds its lock there for as long as this lives.
struct Folder {
    data: PathBuf,
    locks: PathBuf,
    session: SessionId,
    blobs: Blobs,
    _lock: host::Lock,
}

impl Folder {
    /// Makes the folder if it does not exist, and enters a new session in it.
    fn enter(data: &Path) -> Result<Self, ServiceError> {
        let at = |path: &Path| {
            let what = format!("the folder {}", path.display());
            move |error| ServiceError::Io { what, error }
        };
        std::fs::create_dir_all(data).map_err(at(data))?;
        raise_limit_of_files();
        let data = std::path::absolute(data).map_err(at(data))?;
        let session = SessionId::new();
        let locks = data.join("locks");
        // The lock comes before anything that other processes see of this one: without it, they would take the session for one that has
        // ended.
        let lock = host::Lock::take(&locks, &session)
            .map_err(|error| ServiceError::Io { what: locks.display().to_string(), error })?;
        let blobs = Blobs::open(&data.join(BLOBS))?;
        // Also without `keep_days`, which an operator may have taken away.
        retention::restore(&blobs, &data.join(BLOBS))?;
        blobs.tidy();
        Ok(Self { data, locks, session, blobs, _lock: lock })
    }
}

/// The parts of a process that requests use.
struct Parts {
    store: Arc<dyn Store>,
    sessions: Arc<dyn Store>,
    blobs: Blobs,
    workflows: Workflows,
    metrics: Metrics,
    session: SessionId,
    own: SharedSession,
    clock: Clock,
    watched: Watched,
    gone: LivenessProbe,
    pulse: Pulse,
}

impl Parts {
    /// Returns the process that works with these parts and reports what happens to the listener, if there is one.
    fn process(
        &self,
        settings: &Settings,
        (workshop, collects, strategies): (&Arc<Workshop>, bool, Strategies),
        listener: Option<UnboundedSender<Event>>,
    ) -> Process {
        let tenants = &settings.tenants;
        Process {
            store: Arc::clone(&self.store),
            sessions: Arc::clone(&self.sessions),
            clock: self.clock.clone(),
            session: self.session.clone(),
            own: Arc::clone(&self.own),
            gone: Arc::clone(&self.gone),
            runner: Arc::clone(workshop) as Arc<dyn Runner>,
            backends: workshop.backends.keys().cloned().collect(),
            slots: settings.slots,
            collects,
            weights: tenants.iter().map(|(name, tenant)| (name.clone(), tenant.weight)).collect(),
            tenant_slots: tenants
                .iter()
                .filter_map(|(name, tenant)| Some((name.clone(), tenant.slots?)))
                .collect(),
            workflows: self.workflows.clone(),
            strategies,
            metrics: self.metrics.clone(),
            patience: Duration::from_secs(settings.standstill_seconds.into()),
            watched: self.watched.clone(),
            listeners: listener.into_iter().collect(),
        }
    }

    /// Starts answering requests. Must be called on the runtime.
    fn answer(
        self,
        settings: &Settings,
        listener: TcpListener,
        mut events: UnboundedReceiver<Event>,
        drain: &CancellationToken,
    ) -> std::io::Result<Answers> {
        listener.set_nonblocking(true)?;
        let tcp = tokio::net::TcpListener::from_std(listener)?;
        let (finished, end) = tokio::sync::watch::channel(false);
        let closing = CancellationToken::new();
        let tenants = Tenants::new(settings);
        let offers = Offers::default();
        let board = Arc::new(Board::new(offers.clone()));
        let (counted, shown) = (Arc::clone(&tenants), Arc::clone(&board));
        // One task for both, so that limits and pages show the same jobs.
        tokio::spawn(async move {
            while let Some(event) = events.recv().await {
                counted.apply(&event);
                shown.apply(&event);
            }
        });
        let Self { store, sessions, session, clock, workflows, .. } = &self;
        let follow = offers.clone().follow(
            Arc::clone(sessions),
            clock.clone(),
            session.clone(),
            Arc::clone(&self.gone),
        );
        tokio::spawn(follow);
        let settled: Arc<dyn Store> = Arc::new(Settled(Arc::clone(store)));
        let submissions = Submissions::new(Arc::clone(&settled), clock.clone(), workflows.clone())
            .keeping(settings.keep_days);
        let api = Api {
            store: settled,
            submissions,
            blobs: self.blobs,
            workflows: self.workflows,
            metrics: self.metrics,
            tenants,
            session: self.session,
            own: self.own,
            drain: drain.clone(),
            transfers: tokio::sync::Semaphore::new(MAX_TRANSFERS),
            sessions: self.sessions,
            clock: self.clock,
            board,
            watched: self.watched,
            offers,
            readiness: Readiness::new(self.pulse),
            closing: closing.clone(),
        };
        let limits = Limits::new(MAX_CONNECTIONS, MAX_LIFE);
        let accepting = hekaton_service::accept(router(Arc::new(api)), tcp, limits, end);
        Ok(Answers { closing, finished, server: tokio::spawn(accepting) })
    }
}

/// The server of a process that answers requests.
struct Answers {
    closing: CancellationToken,
    finished: tokio::sync::watch::Sender<bool>,
    server: tokio::task::JoinHandle<hekaton_service::Open>,
}

impl Answers {
    /// Stops taking requests, and waits for the answers that are under way.
    async fn close(self) -> std::io::Result<()> {
        // Streams of events never end by themselves, and would keep the server from closing.
        self.closing.cancel();
        self.finished.send_replace(true);
        self.server.await.map_err(std::io::Error::other)?.close().await;
        Ok(())
    }
}

/// Returns the session that a process writes when it starts.
fn own_session(
    settings: &Settings,
    collects: bool,
    backends: &BTreeMap<Name, Arc<dyn Backend>>,
) -> SharedSession {
    Arc::new(Mutex::new(Session {
        counter: 0,
        host: host::boot().into(),
        pid: std::process::id(),
        collects,
        slots: u32::try_from(settings.slots).expect("settings allow at most 4,096 slots"),
        backends: backends.keys().cloned().collect(),
        quarantined: BTreeMap::new(),
        draining: false,
        running: BTreeMap::new(),
    }))
}

/// Starts the runtime of everything but the session.
fn start_runtime() -> Result<tokio::runtime::Runtime, ServiceError> {
    tokio::runtime::Builder::new_multi_thread()
        .thread_name("orchestrator")
        .enable_all()
        .build()
        .map_err(|error| ServiceError::Io { what: "the runtime".into(), error })
}

/// Starts removing folders that are no longer needed. Must be called on the runtime.
fn start_tidying(workshop: Arc<Workshop>, store: Arc<dyn Store>) {
    tokio::spawn(async move {
        loop {
            workshop.tidy(&*store).await;
            tokio::time::sleep(TIDY).await;
        }
    });
}

/// Starts removing what ended a number of days ago, if anything is to be removed. Must be called on the runtime.
fn start_sweeping(parts: &Parts, days: Option<u32>, data: &Path) {
    let Some(days) = days else { return };
    let clock = parts.clock.clone();
    let (store, workflows) = (Arc::clone(&parts.store), parts.workflows.clone());
    let retention = Retention {
        submissions: Submissions::new(store, clock.clone(), workflows),
        store: Arc::clone(&parts.store),
        sessions: Arc::clone(&parts.sessions),
        clock,
        keep: Duration::from_secs(u64::from(days) * 24 * 3_600),
        interval: retention::SWEEP,
        last: retention::KEPT,
        files: Some(Files {
            blobs: parts.blobs.clone(),
            folder: data.join(BLOBS),
            spool: data.join(SPOOL),
        }),
    };
    tokio::spawn(retention.run());
}

/// Runs a process until it is asked to stop and what it runs has ended.
///
/// # Errors
/// If a file or thread of the process cannot be made, or its store or blobs cannot be opened.
// One function, because it defines the order in which the parts of a process start and end; each part has its own function.
pub fn run(options: Options, stop: &Stop) -> Result<(), ServiceError> {
    let Options { place, settings, listener, collects, grace, strategies, .. } = options;
    // Holds the lock to the end: other processes take the session for one that has ended when its lock is free.
    let folder = Folder::enter(&options.data)?;
    let Folder { data, session, blobs, .. } = &folder;
    let runtime = start_runtime()?;
    let (store, sessions) = runtime.block_on(async {
        let store = place.open(data, Kind::Records).await?;
        Ok::<_, OpenError>((store, place.open(data, Kind::Sessions).await?))
    })?;
    let clock = Clock::system();
    let mut backends = settings.backends(&options.helper);
    backends.extend(options.backends);
    let own = own_session(&settings, collects, &backends);
    let (beating, pulse) = (CancellationToken::new(), Pulse::new());
    let heart = Heart {
        place,
        data: data.clone(),
        clock: clock.clone(),
        session: session.clone(),
        own: Arc::clone(&own),
        pulse: pulse.clone(),
        drain: stop.drain.clone(),
        ended: beating.clone(),
    };
    let beats = heart.start()?;
    let metrics = Metrics::with_traces(options.traces);
    let spans = metrics.clone();
    let spool = data.join(SPOOL);
    let workshop =
        Arc::new(Workshop { backends, blobs: blobs.clone(), spool, clock: clock.clone() });
    let store: Arc<dyn Store> = Arc::new(Timed { inner: store, metrics: metrics.clone() });
    let parts = Parts {
        store: Arc::clone(&store),
        sessions,
        blobs: blobs.clone(),
        workflows: Workflows::new(blobs.clone()),
        metrics,
        session: session.clone(),
        own,
        clock,
        watched: Watched::default(),
        gone: host::gone(folder.locks.clone()),
        pulse,
    };
    // The process has the only sender: the receiver ends when the last one is gone. Without requests, nothing reads the events, and the
    // channel has no limit.
    let (sender, events) = tokio::sync::mpsc::unbounded_channel();
    let sender = listener.is_some().then_some(sender);
    let process = parts.process(&settings, (&workshop, collects, strategies), sender);
    tracing::info!(%session, store = store.describe(), "started");
    let ended = runtime.block_on(async {
        start_sweeping(&parts, settings.keep_days.filter(|_| collects), data);
        let answers = match listener {
            Some(listener) => Some(parts.answer(&settings, listener, events, &stop.drain)?),
            None => None,
        };
        let grace_ends = stop.end_after(grace);
        start_tidying(workshop, store);
        process.run(stop.drain.clone(), stop.stop.clone()).await;
        grace_ends.abort();
        match answers {
            Some(answers) => answers.close().await,
            None => Ok(()),
        }
    });
    // The session is written to the end. Others would take over what this process still runs if it fell silent before.
    spans.traces().flush();
    beating.cancel();
    // It ends by its token alone; a panic in it was logged, and the process ends anyway.
    let _ = beats.join();
    // A prover in this process that does not listen must not keep it from ending.
    runtime.shutdown_background();
    ended.map_err(|error| ServiceError::Io { what: "the listener".into(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The process that was removing a blob died, and the next one does not have `keep_days`.
    #[test]
    fn blobs_that_were_being_removed_are_back_at_the_start() {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().join(BLOBS);
        let blobs = Blobs::open(&folder).unwrap();
        let digest = blobs.put(b"named").unwrap();
        std::fs::create_dir(folder.join("removing")).unwrap();
        let renamed = folder.join("removing").join(digest.to_string());
        std::fs::rename(blobs.path(&digest), renamed).unwrap();
        drop(Folder::enter(data.path()).unwrap());
        assert!(blobs.has(&digest));
    }
}
