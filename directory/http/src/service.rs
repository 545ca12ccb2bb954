//! The service of a directory.

use crate::held::Answers;
use crate::metrics::Metrics;
use crate::problem::{Refusal, kind};
use crate::writers::Writers;
use hekaton_directory_server::Proving;
use hekaton_directory_server::Server;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// The maximum number of clients that may wait for the outcomes of their updates at once. Each takes a thread, and
/// look-ups need some, too.
pub(crate) const MAX_WAITING: usize = 64;

/// The maximum numbers of histories that are read at once, and that may wait for that.
const MAX_HISTORIES: usize = 2;
const MAX_WAITING_HISTORIES: usize = 32;

/// The bytes of the histories that are on their way: that many readers may be slow, each with a history of usual size.
const MAX_SENT: usize = 64 << 20;

/// The options of a service.
#[derive(Clone, Copy, Debug)]
pub struct ServiceOptions {
    /// Updates are not accepted while more epochs than that are visible and not proven. Without it, any number.
    pub max_unproven: Option<u32>,
    /// The time that clients wait for the outcome of an update if they ask for it, 64 of them at once.
    pub wait: Duration,
    /// The maximum number of connections that are open at once; more wait until one is closed.
    pub max_connections: usize,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        Self { max_unproven: None, wait: Duration::from_secs(60), max_connections: 512 }
    }
}

/// A directory as an HTTP service.
#[derive(Debug)]
pub struct Service {
    pub(crate) server: Arc<Server>,
    pub(crate) options: ServiceOptions,
    /// The clients that may send updates; without them, all may.
    pub(crate) writers: Option<Writers>,
    pub(crate) metrics: Metrics,
    pub(crate) proving: Proving,
    /// Permits for clients that wait.
    pub(crate) waiting: Semaphore,
    /// Permits for reading a history, and for waiting for that.
    pub(crate) histories: Arc<Semaphore>,
    pub(crate) waiting_histories: Semaphore,
    /// The histories that are on their way.
    pub(crate) sent_histories: Arc<Answers>,
}

impl Service {
    /// A service of a directory, to which everybody who reaches it may send updates.
    pub fn new(server: Arc<Server>, options: ServiceOptions) -> Self {
        let (metrics, proving) = (Metrics::new(), Proving::default());
        let waiting = Semaphore::new(MAX_WAITING);
        let histories = Arc::new(Semaphore::new(MAX_HISTORIES));
        let waiting_histories = Semaphore::new(MAX_WAITING_HISTORIES);
        let sent_histories = Answers::new(MAX_SENT);
        Self {
            server,
            options,
            writers: None,
            metrics,
            proving,
            waiting,
            histories,
            waiting_histories,
            sent_histories,
        }
    }

    /// Takes updates from these clients only, if there are any.
    #[must_use]
    pub fn with_writers(self, writers: Option<Writers>) -> Self {
        Self { writers, ..self }
    }

    /// Refuses updates while too many epochs wait for their proofs.
    pub(crate) fn check_unproven(&self) -> Result<(), Refusal> {
        let Some(most) = self.options.max_unproven else { return Ok(()) };
        let last = self.server.view()?.record().epoch;
        // Without a limit, a prover that is slower than the updates would fall behind further and
        // further.
        let waiting = last.saturating_sub(self.server.proven()?);
        match waiting > most {
            true => {
                let why = format!(
                    "{waiting} epochs wait for their proofs, more than {most}: send it again later"
                );
                Err(Refusal::new(kind::UNPROVEN, why))
            }
            false => Ok(()),
        }
    }
}
