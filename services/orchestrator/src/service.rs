//! A process as operators start it: a folder, settings, and perhaps an address.

use crate::alive::{Own, beat};
use crate::backend::{Backend, Helper, Workshop};
use crate::blobs::{BlobError, Blobs};
use crate::clock::Clock;
use crate::feed::feed;
use crate::host;
use crate::http::{Api, Tenants, router};
use crate::id::Name;
use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::plan::Strategies;
use crate::process::Process;
use crate::record::{Session, SessionId};
use crate::settings::Settings;
use crate::store::{Durability, SqliteStore, Store, Unavailable};
use crate::workflows::Workflows;
use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long a connection may be open.
const MAX_LIFE: Duration = Duration::from_secs(300);

/// How many connections may be open.
const MAX_CONNECTIONS: usize = 512;

/// The files of a folder.
const RECORDS: &str = "orchestrator.db";
const SESSIONS: &str = "sessions.db";

/// What a process is started with.
#[derive(Debug)]
pub struct Options {
    /// The folder of records, blobs and run directories.
    pub data: PathBuf,
    /// What the operator decided.
    pub settings: Settings,
    /// Where requests are answered. Without it, the process only works.
    pub listener: Option<TcpListener>,
    /// Whether it makes tasks and publishes, besides running tasks.
    pub collects: bool,
    /// How long running tasks may take when it is asked to stop.
    pub grace: Duration,
    /// What starts programs.
    pub helper: Helper,
    /// Provers in this process, besides those of the settings.
    pub backends: BTreeMap<Name, Arc<dyn Backend>>,
    /// Strategies of one's own.
    pub strategies: Strategies,
}

/// Why a process does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// A file or thread cannot be made.
    #[error("{what}: {error}")]
    Io {
        /// What could not be done.
        what: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The database cannot be used.
    #[error(transparent)]
    Store(#[from] Unavailable),
    /// The blobs cannot be used.
    #[error(transparent)]
    Blobs(#[from] BlobError),
}

/// Asks a process to stop: once gently, twice in a hurry.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    drain: CancellationToken,
    stop: CancellationToken,
}

impl Stop {
    /// The first time, nothing is claimed anymore, and tasks that run have [`Options::grace`] to end; the second time, they end at
    /// once. What they keep in their folders, whoever claims them next resumes.
    pub fn ask(&self) {
        match self.drain.is_cancelled() {
            true => self.stop.cancel(),
            false => self.drain.cancel(),
        }
    }

    /// Whether it was asked for.
    pub fn is_asked(&self) -> bool {
        self.drain.is_cancelled()
    }
}

/// Opens the store of records in a folder.
///
/// # Errors
/// If it cannot be opened.
pub fn open_records(data: &Path) -> Result<SqliteStore, Unavailable> {
    SqliteStore::open(&data.join(RECORDS), Durability::Disk)
}

/// Runs a process until it is asked to stop and what it runs has ended.
///
/// # Errors
/// If it cannot start.
pub fn run(options: Options, stop: &Stop) -> Result<(), ServiceError> {
    let io = |what: String| move |error| ServiceError::Io { what, error };
    let Options { data, settings, listener, collects, grace, helper, backends: more, strategies } =
        options;
    let settings = &settings;
    std::fs::create_dir_all(&data).map_err(io(format!("the folder {}", data.display())))?;
    let data = std::path::absolute(&data).map_err(io(format!("the folder {}", data.display())))?;
    let session = SessionId::new();
    let locks = data.join("locks");
    let _lock = host::Lock::take(&locks, &session).map_err(io(format!("{}", locks.display())))?;
    let blobs = Blobs::open(&data.join("blobs"))?;
    blobs.tidy();
    let store: Arc<dyn Store> = Arc::new(open_records(&data)?);
    let open_sessions = || SqliteStore::open(&data.join(SESSIONS), Durability::Memory);
    let sessions: Arc<dyn Store> = Arc::new(open_sessions()?);
    let clock = Clock::system();
    let mut backends = settings.backends(&helper);
    backends.extend(more);
    let own: Own = Arc::new(Mutex::new(Session {
        counter: 0,
        host: host::boot().into(),
        pid: std::process::id(),
        collects,
        slots: u32::try_from(settings.slots).unwrap_or(u32::MAX),
        backends: backends.keys().cloned().collect(),
        draining: false,
        running: BTreeMap::new(),
    }));
    // On a thread with a runtime of its own: nothing that this process does can keep it from being alive.
    let beating = CancellationToken::new();
    let heart = {
        let (session, own, clock) = (session.clone(), Arc::clone(&own), clock.clone());
        let (store, stop): (Arc<dyn Store>, _) = (Arc::new(open_sessions()?), beating.clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let runtime = runtime.map_err(io("the runtime of the session".into()))?;
        let beat = move || {
            runtime.block_on(async {
                tokio::select! {
                    () = beat(store, clock, session, own) => {}
                    () = stop.cancelled() => {}
                }
            });
        };
        let thread = std::thread::Builder::new().name("session".into());
        thread.spawn(beat).map_err(io("the thread of the session".into()))?
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("orchestrator")
        .enable_all()
        .build()
        .map_err(io("the runtime".into()))?;
    let metrics = Metrics::new();
    let workflows = Workflows::new(blobs.clone());
    let workshop = Workshop {
        backends: backends.clone(),
        blobs: blobs.clone(),
        spool: data.join("spool"),
        clock: clock.clone(),
    };
    let tenants = &settings.tenants;
    let process = Process {
        store: Arc::clone(&store),
        sessions,
        clock: clock.clone(),
        session: session.clone(),
        own: Arc::clone(&own),
        gone: host::gone(locks),
        runner: Arc::new(workshop),
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
    };
    tracing::info!(%session, store = store.describe(), "started");
    let ended = runtime.block_on(async {
        let (finished, end) = tokio::sync::watch::channel(false);
        let answers = match listener {
            Some(listener) => {
                listener.set_nonblocking(true)?;
                let listener = tokio::net::TcpListener::from_std(listener)?;
                let tenants = Tenants::new(settings);
                let (send, mut events) = tokio::sync::mpsc::unbounded_channel();
                tokio::spawn(feed(Arc::clone(&store), clock.clone(), vec![send]));
                let watched = Arc::clone(&tenants);
                tokio::spawn(async move {
                    while let Some(event) = events.recv().await {
                        watched.apply(&event);
                    }
                });
                let intake = Intake::new(Arc::clone(&store), clock.clone(), workflows);
                let api = Api {
                    store: Arc::clone(&store),
                    intake,
                    blobs,
                    metrics,
                    tenants,
                    session,
                    own: Arc::clone(&own),
                    drain: stop.drain.clone(),
                };
                let router = router(Arc::new(api));
                let answers =
                    hekaton_http::accept(router, listener, MAX_CONNECTIONS, MAX_LIFE, end);
                Some(tokio::spawn(answers))
            }
            None => None,
        };
        let grace_ends = {
            let stop = stop.clone();
            tokio::spawn(async move {
                stop.drain.cancelled().await;
                tokio::time::sleep(grace).await;
                stop.stop.cancel();
            })
        };
        process.run(stop.drain.clone(), stop.stop.clone()).await;
        grace_ends.abort();
        finished.send_replace(true);
        if let Some(answers) = answers {
            answers.await.map_err(std::io::Error::other)?.close().await;
        }
        Ok(())
    });
    beating.cancel();
    let _ = heart.join();
    ended.map_err(io("the listener".into()))
}
