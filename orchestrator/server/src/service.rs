//! A process as operators start it: a folder, settings, and perhaps an address.

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
use crate::settings::Settings;
use crate::standstill::Watched;
use crate::store::{Durability, OpenError, Reopened, SqliteStore, Store, Timed, Unavailable};
#[cfg(feature = "nats")]
use crate::store::{Known, NatsSettings, NatsStore};
use crate::submissions::Submissions;
use crate::traces::Traces;
use crate::workflows::Workflows;
use futures_util::future::{BoxFuture, ready};
use hekaton_orchestrator_client::{BlobError, Blobs, Name};
use hekaton_service::Limits;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The time that a connection may be open.
const MAX_LIFE: Duration = Duration::from_secs(300);

/// The pause before sessions that could not be opened are tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The interval between searches for folders that are no longer needed.
const TIDY: Duration = Duration::from_secs(600);

/// The number of blobs that may be on their way in.
const MAX_TRANSFERS: usize = 64;

/// The number of connections that may be open.
const MAX_CONNECTIONS: usize = 512;

/// The database of records in a folder.
pub const RECORDS: &str = "orchestrator.db";

/// The blobs in a folder.
pub const BLOBS: &str = "blobs";

/// The database of sessions in a folder.
const SESSIONS: &str = "sessions.db";

/// The place where records are kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In a SQLite database in the folder, for processes of one machine.
    #[default]
    Folder,
    /// In NATS JetStream; the folder is on a file system that all machines share.
    #[cfg(feature = "nats")]
    Nats(NatsSettings),
}

/// The kind of data that a store keeps.
#[derive(Clone, Copy)]
enum Kind {
    Records,
    Sessions,
}

impl Place {
    /// Opens a store. One on a server that is away is waited for while it is used ([`Reopened`]).
    async fn open(&self, data: &Path, kind: Kind) -> Result<Arc<dyn Store>, OpenError> {
        let folder = data.to_owned();
        match (self, kind) {
            (Self::Folder, Kind::Records) => Ok(Arc::new(open_records(data)?)),
            (Self::Folder, Kind::Sessions) => {
                let open = move || -> Result<Arc<dyn Store>, OpenError> {
                    // Not in the database of records: beats need no sync, and must not wait for
                    // those of records, or a slow disk would make living processes look dead.
                    Ok(Arc::new(SqliteStore::open(&folder.join(SESSIONS), Durability::Memory)?))
                };
                let open = Box::new(move || -> BoxFuture<'static, _> { Box::pin(ready(open())) });
                Ok(Arc::new(Reopened::open("the database of sessions", open).await?))
            }
            #[cfg(feature = "nats")]
            (Self::Nats(settings), kind) => {
                let own_settings = settings.clone();
                let open = Box::new(move || -> BoxFuture<'static, _> {
                    Box::pin(open_nats(own_settings.clone(), folder.clone(), kind))
                });
                let name = match kind {
                    Kind::Records => "the stream of records in NATS",
                    Kind::Sessions => "the stream of sessions in NATS",
                };
                Ok(Arc::new(Reopened::open(name, open).await?))
            }
        }
    }
}

/// Opens the records of a folder, which must not be others than before, or sessions, which may be new at any time.
#[cfg(feature = "nats")]
async fn open_nats(
    settings: NatsSettings,
    data: PathBuf,
    kind: Kind,
) -> Result<Arc<dyn Store>, OpenError> {
    let Kind::Records = kind else {
        return Ok(Arc::new(NatsStore::open(&settings, "sessions", true).await?));
    };
    let known = Known::read(&data, &settings.namespace)?;
    let store = NatsStore::open_known(&settings, "records", false, known).await?;
    // After the stream is there: a note of one that was never made would be taken for lost records,
    // and no process would start.
    if known == Known::Nothing {
        Known::write(&data, &settings.namespace, store.incarnation())?;
    }
    Ok(Arc::new(store))
}

/// The options that a process is started with.
#[derive(Debug)]
pub struct Options {
    /// The folder of blobs and run directories, and of records, unless they are elsewhere.
    pub data: PathBuf,
    /// The place where records are kept.
    pub place: Place,
    /// The operator's settings.
    pub settings: Settings,
    /// The listener for requests. Without it, the process only works.
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

/// Asks a process to stop: once gently, twice in a hurry.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Cancelled when nothing more is to be claimed.
    drain: CancellationToken,
    /// Cancelled when a stop was asked for and what runs has the grace to end.
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
}

/// Raises the limit of open files: each running program, connection and blob under way has files, and the usual limit is low.
fn raise_limit_of_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum {
        // A process may always raise its soft limit up to the hard one. If not, the usual limit must do.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// Opens the store of records in a folder.
///
/// # Errors
/// If it cannot be opened.
pub fn open_records(data: &Path) -> Result<SqliteStore, Unavailable> {
    SqliteStore::open(&data.join(RECORDS), Durability::Disk)
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
    // On a thread with a runtime of its own: nothing that this process does, such as a prover that takes all threads, can keep it from
    // being alive.
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
    /// Starts answering requests. Must be called on the runtime.
    fn answer(
        self,
        settings: &Settings,
        (listener, end): (tokio::net::TcpListener, tokio::sync::watch::Receiver<bool>),
        mut events: tokio::sync::mpsc::UnboundedReceiver<Event>,
        (drain, closing): (&CancellationToken, &CancellationToken),
    ) -> tokio::task::JoinHandle<hekaton_service::Open> {
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
        let submissions = Submissions::new(Arc::clone(store), clock.clone(), workflows.clone());
        let api = Api {
            store: self.store,
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
        tokio::spawn(hekaton_service::accept(router(Arc::new(api)), listener, limits, end))
    }
}

/// Runs a process until it is asked to stop and what it runs has ended.
///
/// # Errors
/// If it cannot start.
pub fn run(options: Options, stop: &Stop) -> Result<(), ServiceError> {
    let io = |what: String| move |error| ServiceError::Io { what, error };
    let Options {
        data,
        place,
        settings,
        listener,
        collects,
        grace,
        helper,
        backends: more,
        strategies,
        traces,
    } = options;
    std::fs::create_dir_all(&data).map_err(io(format!("the folder {}", data.display())))?;
    raise_limit_of_files();
    let data = std::path::absolute(&data).map_err(io(format!("the folder {}", data.display())))?;
    let session = SessionId::new();
    let locks = data.join("locks");
    // First of all that others see of this process: without a lock, they would take the session for one that has ended.
    let _lock = host::Lock::take(&locks, &session).map_err(io(format!("{}", locks.display())))?;
    let blobs = Blobs::open(&data.join(BLOBS))?;
    blobs.tidy();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("orchestrator")
        .enable_all()
        .build()
        .map_err(io("the runtime".into()))?;
    let (store, sessions) = runtime.block_on(async {
        let store = place.open(&data, Kind::Records).await?;
        Ok::<_, OpenError>((store, place.open(&data, Kind::Sessions).await?))
    })?;
    let clock = Clock::system();
    let mut backends = settings.backends(&helper);
    backends.extend(more);
    let own: SharedSession = Arc::new(Mutex::new(Session {
        counter: 0,
        host: host::boot().into(),
        pid: std::process::id(),
        collects,
        slots: u32::try_from(settings.slots).expect("settings allow at most 4,096 slots"),
        backends: backends.keys().cloned().collect(),
        quarantined: BTreeMap::new(),
        draining: false,
        running: BTreeMap::new(),
    }));
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
    let metrics = Metrics::with_traces(traces);
    let store: Arc<dyn Store> = Arc::new(Timed { inner: store, metrics: metrics.clone() });
    let spans = metrics.clone();
    let workflows = Workflows::new(blobs.clone());
    let workshop = Workshop {
        backends: backends.clone(),
        blobs: blobs.clone(),
        spool: data.join("spool"),
        clock: clock.clone(),
    };
    let tenants = &settings.tenants;
    let (listen, events) = tokio::sync::mpsc::unbounded_channel();
    let (workshop, gone) = (Arc::new(workshop), host::gone(locks));
    let watched = Watched::default();
    let process = Process {
        store: Arc::clone(&store),
        sessions: Arc::clone(&sessions),
        clock: clock.clone(),
        session: session.clone(),
        own: Arc::clone(&own),
        gone: Arc::clone(&gone),
        runner: Arc::clone(&workshop) as Arc<dyn Runner>,
        backends: backends.into_keys().collect(),
        slots: settings.slots,
        collects,
        weights: tenants.iter().map(|(name, tenant)| (name.clone(), tenant.weight)).collect(),
        tenant_slots: tenants
            .iter()
            .filter_map(|(name, tenant)| Some((name.clone(), tenant.slots?)))
            .collect(),
        workflows: workflows.clone(),
        strategies,
        metrics: metrics.clone(),
        patience: Duration::from_secs(settings.standstill_seconds.into()),
        watched: watched.clone(),
        // Without requests, nothing reads the events, and the channel has no limit.
        listeners: listener.iter().map(|_| listen.clone()).collect(),
    };
    // The receiver ends when the last sender is gone, and this one would keep it waiting.
    drop(listen);
    tracing::info!(%session, store = store.describe(), "started");
    let ended = runtime.block_on(async {
        let closing = CancellationToken::new();
        let (finished, end) = tokio::sync::watch::channel(false);
        let answers = match listener {
            Some(listener) => {
                listener.set_nonblocking(true)?;
                let tcp = tokio::net::TcpListener::from_std(listener)?;
                let parts = Parts {
                    store: Arc::clone(&store),
                    sessions,
                    blobs,
                    workflows,
                    metrics,
                    session,
                    own,
                    clock,
                    watched,
                    gone,
                    pulse,
                };
                Some(parts.answer(&settings, (tcp, end), events, (&stop.drain, &closing)))
            }
            None => None,
        };
        let grace_ends = {
            let stop = stop.clone();
            tokio::spawn(async move {
                stop.asked.cancelled().await;
                tokio::time::sleep(grace).await;
                stop.stop.cancel();
            })
        };
        let (workshop, store) = (Arc::clone(&workshop), Arc::clone(&store));
        tokio::spawn(async move {
            loop {
                workshop.tidy(&*store).await;
                tokio::time::sleep(TIDY).await;
            }
        });
        process.run(stop.drain.clone(), stop.stop.clone()).await;
        // Streams of events never end by themselves, and would keep the server from closing.
        grace_ends.abort();
        closing.cancel();
        finished.send_replace(true);
        if let Some(answers) = answers {
            answers.await.map_err(std::io::Error::other)?.close().await;
        }
        Ok(())
    });
    // The session is written to the end. Others would take over what this process still runs if it fell silent before.
    spans.traces().flush();
    beating.cancel();
    // It ends by its token alone; a panic in it was logged, and the process ends anyway.
    let _ = beats.join();
    // A prover in this process that does not listen must not keep it from ending.
    runtime.shutdown_background();
    ended.map_err(io("the listener".into()))
}
