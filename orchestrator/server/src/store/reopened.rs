//! A store that the process using it opens again whenever it is gone.
//!
//! A server that is unavailable when a process starts, or that has lost what it kept in memory, delays the work of the process but does not
//! end it: until the store is there, reads and writes fail as they do while a connection is broken, which all components expect.

use super::{Entry, Listing, OpenError, Rev, Store, Unavailable, Watch, WriteError};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// The interval between looks for the store while nothing fails.
const LOOK: Duration = Duration::from_secs(5);

/// The first pause before the store is looked for after a failed operation or opening. It doubles each time, up to `MAX_PAUSE`.
const PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// Opens a store.
type Open = Box<dyn Fn() -> BoxFuture<'static, Result<Arc<dyn Store>, OpenError>> + Send + Sync>;

/// Another store, as long as it is there.
pub(crate) struct Reopened(Arc<Shared>);

struct Shared {
    /// The name by which the store is called while it is not there.
    name: String,
    open: Open,
    current: RwLock<Result<Arc<dyn Store>, Unavailable>>,
    /// An operation has failed.
    failed: Notify,
}

impl fmt::Debug for Reopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reopened").field(&self.describe()).finish()
    }
}

impl Shared {
    fn set(&self, current: Result<Arc<dyn Store>, Unavailable>) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = current;
    }

    fn current(&self) -> Result<Arc<dyn Store>, Unavailable> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Reopened {
    /// Opens a store, now or, if it does not answer, as soon as it does. Must be called on a runtime, which keeps looking for it.
    ///
    /// # Errors
    /// If opening it fails for a reason that waiting does not remove.
    pub(crate) async fn open(name: &str, open: Open) -> Result<Self, OpenError> {
        let current = match open().await {
            Ok(store) => Ok(store),
            Err(OpenError::Unavailable(error)) => {
                tracing::warn!(store = name, %error, "waiting for the store");
                Err(error)
            }
            Err(refused) => return Err(refused),
        };
        let (current, failed) = (RwLock::new(current), Notify::new());
        let shared = Arc::new(Shared { name: name.to_owned(), open, current, failed });
        tokio::spawn(keep(Arc::downgrade(&shared)));
        Ok(Self(shared))
    }

    fn store(&self) -> Result<Arc<dyn Store>, Unavailable> {
        self.0.current()
    }

    fn to_write(&self, key: &str) -> Result<Arc<dyn Store>, WriteError> {
        // There is no store that the write could reach late, so the caller need not find out
        // whether it took effect, as after `Unknown`.
        self.store().map_err(|error| WriteError::Refused { key: key.to_owned(), why: error.why })
    }

    /// Starts a look for the store after an operation that failed.
    fn noted<T, E>(&self, done: Result<T, E>, is_failure: impl Fn(&E) -> bool) -> Result<T, E> {
        if done.as_ref().is_err_and(is_failure) {
            self.0.failed.notify_one();
        }
        done
    }

    fn read<T>(&self, done: Result<T, Unavailable>) -> Result<T, Unavailable> {
        // Any failed read may mean that the store is gone; a look at it costs little.
        self.noted(done, |_| true)
    }

    fn written(&self, done: Result<Rev, WriteError>) -> Result<Rev, WriteError> {
        // A conflict is an answer: the store is there.
        self.noted(done, |error| !matches!(error, WriteError::Conflict { .. }))
    }
}

/// Looks for the store until nobody uses it any longer, and opens it where it is gone.
async fn keep(shared: Weak<Shared>) {
    let mut pause = PAUSE;
    loop {
        // A strong reference would keep the store open only to look for it.
        let Some(shared) = shared.upgrade() else { return };
        let found = match shared.current() {
            Ok(store) => store.is_there().await,
            Err(_) => Ok(false),
        };
        match found {
            Ok(true) => pause = PAUSE,
            // A connection that is broken mends itself.
            Err(error) => tracing::debug!(store = shared.name, %error, "the store does not answer"),
            Ok(false) => match (shared.open)().await {
                Ok(store) => {
                    tracing::info!(store = store.describe(), "the store is open");
                    shared.set(Ok(store));
                    pause = PAUSE;
                }
                Err(OpenError::Unavailable(error)) => {
                    tracing::warn!(store = shared.name, %error, "waiting for the store");
                    shared.set(Err(error));
                }
                Err(OpenError::Refused { why }) => {
                    tracing::error!(store = shared.name, why, "the store cannot be used");
                    // Does not end the process: an operator may repair the store, and running tasks continue in the meantime.
                    shared.set(Err(Unavailable { why }));
                }
            },
        }
        let is_open = shared.current().is_ok();
        let next = if is_open { LOOK } else { pause };
        tokio::select! {
            () = tokio::time::sleep(next) => {}
            // With a pause, or a store in which every operation fails would be asked without end.
            () = shared.failed.notified(), if is_open => tokio::time::sleep(pause).await,
        }
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

#[async_trait]
impl Store for Reopened {
    async fn create(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.written(self.to_write(key)?.create(key, value).await)
    }

    async fn update(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.written(self.to_write(key)?.update(key, value, expected).await)
    }

    async fn create_soon(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.written(self.to_write(key)?.create_soon(key, value).await)
    }

    async fn update_soon(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.written(self.to_write(key)?.update_soon(key, value, expected).await)
    }

    async fn remove(&self, key: &str, expected: Rev) -> Result<Rev, WriteError> {
        self.written(self.to_write(key)?.remove(key, expected).await)
    }

    async fn written_before(&self, time: u64) -> Result<u64, Unavailable> {
        self.read(self.store()?.written_before(time).await)
    }

    async fn prune(&self, upto: u64) -> Result<(), WriteError> {
        self.to_write("audit")?.prune(upto).await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, Unavailable> {
        self.read(self.store()?.get(key).await)
    }

    async fn list(&self, prefix: &str, after: u64) -> Result<Listing, Unavailable> {
        self.read(self.store()?.list(prefix, after).await)
    }

    async fn watch(&self, prefix: &str, after: Rev) -> Result<Box<dyn Watch>, Unavailable> {
        self.read(self.store()?.watch(prefix, after).await)
    }

    async fn append(&self, log: &str, entry: Bytes, last: Option<Rev>) -> Result<Rev, WriteError> {
        self.written(self.to_write(log)?.append(log, entry, last).await)
    }

    async fn append_soon(
        &self,
        log: &str,
        entry: Bytes,
        last: Option<Rev>,
    ) -> Result<Rev, WriteError> {
        self.written(self.to_write(log)?.append_soon(log, entry, last).await)
    }

    async fn on_disk(&self, rev: Rev) -> Result<(), Unavailable> {
        self.read(self.store()?.on_disk(rev).await)
    }

    async fn tail(&self, log: &str) -> Result<Option<Entry>, Unavailable> {
        self.read(self.store()?.tail(log).await)
    }

    async fn read(&self, log: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        self.read(self.store()?.read(log, after, limit).await)
    }

    fn describe(&self) -> String {
        match self.store() {
            Ok(store) => store.describe(),
            Err(_) => format!("{}, which is not there", self.0.name),
        }
    }

    async fn is_there(&self) -> Result<bool, Unavailable> {
        self.store()?.is_there().await
    }

    async fn probe(&self) -> Result<(), Unavailable> {
        self.read(self.store()?.probe().await)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Durability, SqliteStore};
    use std::path::{Path, PathBuf};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A store in a file, which is away at first.
    struct Away {
        path: PathBuf,
        is_away: AtomicBool,
        is_refused: AtomicBool,
    }

    impl Away {
        fn new(folder: &Path) -> Arc<Self> {
            let path = folder.join("store.db");
            Arc::new(Self { path, is_away: AtomicBool::new(true), is_refused: false.into() })
        }

        async fn open(self: &Arc<Self>) -> Result<Reopened, OpenError> {
            let this = Arc::clone(self);
            let open = move || -> Result<Arc<dyn Store>, OpenError> {
                if this.is_refused.load(Ordering::Relaxed) {
                    return Err(OpenError::Refused { why: "refused".into() });
                }
                if this.is_away.load(Ordering::Relaxed) {
                    return Err(Unavailable { why: "away".into() }.into());
                }
                Ok(Arc::new(SqliteStore::open(&this.path, Durability::Memory)?))
            };
            let open =
                Box::new(move || -> BoxFuture<'static, _> { Box::pin(std::future::ready(open())) });
            Reopened::open("a store", open).await
        }
    }

    async fn until(mut is_so: impl AsyncFnMut() -> bool) {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn what_is_away_is_waited_for_and_what_is_gone_is_made_again() {
        let folder = tempfile::tempdir().unwrap();
        let away = Away::new(folder.path());
        let store = away.open().await.unwrap();
        let value = Bytes::from_static(b"x");
        assert_eq!(store.get("a").await.unwrap_err().why, "away");
        assert!(store.probe().await.is_err());
        let refused = store.create("a", value.clone()).await;
        assert!(matches!(refused, Err(WriteError::Refused { .. })), "{refused:?}");
        away.is_away.store(false, Ordering::Relaxed);
        until(async || store.get("a").await.is_ok()).await;
        let first = store.create("a", value.clone()).await.unwrap();
        store.probe().await.unwrap();
        for name in ["store.db", "store.db-wal", "store.db-shm"] {
            std::fs::remove_file(folder.path().join(name)).unwrap();
        }
        // The failed write starts a look for it, not only the passage of time.
        until(async || store.create("a", value.clone()).await.is_ok()).await;
        let second = store.get("a").await.unwrap().unwrap().rev;
        assert_ne!(second.incarnation, first.incarnation);
    }

    #[tokio::test]
    async fn what_is_refused_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let away = Away::new(folder.path());
        away.is_refused.store(true, Ordering::Relaxed);
        assert!(matches!(away.open().await, Err(OpenError::Refused { .. })));
    }
}
