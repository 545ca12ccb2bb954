//! State that the threads of a server share.

use super::error::{Error, SubmitError};
use super::folder::Directory;
use super::options::{Mode, Options};
use super::pending::Pending;
use super::rows::Submitted;
use super::stats::Stats;
use super::update::{Accepted, Receipt};
use super::view::View;
use ed25519_dalek::SigningKey;
use hekaton_directory::Digest;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};

/// The prefix, before the server's key, of the bytes whose digest is the secret for the digests of updates.
const SUBMITTED: &[u8] = b"hekaton directory submitted";

/// The state that all threads share.
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    pub(crate) changed: Condvar,
    pub(crate) view: RwLock<Option<Arc<View>>>,
    pub(crate) mode: AtomicU8,
    pub(crate) options: Options,
    pub(crate) stats: Mutex<Stats>,
    /// The secret with which the digests of updates that may be sent again are made.
    pub(crate) secret: Digest,
    /// Held by whatever goes through the whole database, or changes rows of earlier epochs.
    pub(crate) maintenance: Mutex<()>,
    pub(crate) pool: rayon::ThreadPool,
    /// The folder of a directory that is only read, which stays locked.
    pub(crate) reads: Mutex<Option<Directory>>,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// The part of a server's state that changes.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// Updates that are not on the disk.
    pub(crate) incoming: Vec<Incoming>,
    /// The approximate memory that these take, in bytes.
    pub(crate) incoming_bytes: usize,
    /// Updates that are, and that no commit has.
    pub(crate) pending: Pending,
    /// The numbers of updates on the disk without an outcome that anybody may see.
    pub(crate) open: BTreeSet<u64>,
    /// Updates with smaller numbers do not wait for others.
    pub(crate) urgent: u64,
    /// The number of the next update.
    pub(crate) next: u64,
    /// The last commit that is on the disk with all before it.
    pub(crate) confirmed: u64,
    /// The last epoch up to which there are proofs on the disk.
    pub(crate) proven: u32,
    /// Nothing more comes from intake.
    pub(crate) closed: bool,
    /// The reason why the threads end, if not because of a drain.
    pub(crate) failed: Option<Error>,
}

/// The phase of a server.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    /// It takes updates.
    #[default]
    Running,
    /// Its database failed; it is being opened again.
    Recovering(String),
    /// It ends once all accepted updates have an outcome, or, if not, once those that are being written have.
    Draining { all: bool },
    /// It has ended, because of an error or not.
    Stopped(Option<Arc<Error>>),
}

/// An update that waits for the disk, and who waits for its number.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) update: Accepted,
    pub(crate) submitted: Option<(Vec<u8>, Submitted)>,
    pub(crate) reply: SyncSender<Result<Receipt, SubmitError>>,
}

impl Shared {
    pub(crate) fn new(options: Options, key: &SigningKey) -> Result<Self, Error> {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(options.threads)
            .thread_name(|at| format!("directory-{at}"))
            .build()
            .map_err(|error| Error::Threads(error.to_string()))?;
        Ok(Self {
            state: Mutex::default(),
            changed: Condvar::new(),
            view: RwLock::new(None),
            mode: AtomicU8::new(options.mode.number()),
            // Derived from the key instead of stored: it is the same after a restart, and whoever
            // has a copy of the database cannot test guesses of values against the digests.
            secret: Sha256::new()
                .chain_update(SUBMITTED)
                .chain_update(key.as_bytes())
                .finalize()
                .into(),
            maintenance: Mutex::default(),
            options,
            stats: Mutex::default(),
            pool,
            reads: Mutex::new(None),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A thread that panics ends its session, and what it left behind is recovered from the
        // database. So a poisoned lock needs no handling of its own.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn wait<'s>(&self, state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn mode(&self) -> Mode {
        // Relaxed is enough: a commit in the previous mode is as good, since all modes sign the
        // same records.
        Mode::of(self.mode.load(Ordering::Relaxed))
    }

    /// The mode of the next commit: `auto` is one of the others.
    pub(crate) fn mode_now(&self) -> Mode {
        match self.mode() {
            Mode::Auto => self.stats.lock().unwrap_or_else(PoisonError::into_inner).best(),
            mode => mode,
        }
    }

    /// Ends all threads of the session.
    pub(crate) fn fail(&self, error: Error) {
        let mut state = self.lock();
        // The first failure is the cause; those after it usually follow from it.
        if state.failed.is_none() {
            state.failed = Some(error);
        }
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn note(&self, what: impl FnOnce(&mut Stats)) {
        what(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
