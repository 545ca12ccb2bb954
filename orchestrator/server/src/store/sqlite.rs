//! A store in a SQLite database: the default, for one machine.
//!
//! Several processes may open the same database. All pending writes of a process are combined into one transaction (group commit), by the
//! caller that comes first or by a thread. Another thread puts commits on disk and answers the writes that wait for it, so commits do not
//! wait for the disk. Watches read the last changes from memory, where whoever writes puts
//! them and, for writes of other processes, a thread that is woken by the file system.

mod disk;
mod file;
mod log;
mod recent;
mod rows;
mod schema;
#[cfg(test)]
mod simulated;
mod wake;
mod writer;

use super::{Entry, Listing, Rev, Store, Unavailable, Watch, WatchError, WriteError, check};
use crate::clock::Clock;
use crate::history::{History, Version};
use async_trait::async_trait;
use bytes::Bytes;
use disk::Disk;
use file::DatabaseFile;
use log::Log;
use rows::{entries, entry, signed};
use rusqlite::{Connection, OptionalExtension, params};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use tokio::sync::oneshot;
use writer::{Request, Write, Writer, Writes};

pub use file::Durability;
#[cfg(test)]
pub(crate) use schema::LEFT_OUT;

/// The number of changes that a watch reports at once.
const MAX_CHANGES: i64 = 1_000;

/// The number of revisions whose history is removed in one transaction.
const PRUNED_AT_ONCE: u64 = 1_000;

/// A SQLite database.
#[derive(Debug)]
pub struct SqliteStore {
    file: DatabaseFile,
    incarnation: u64,
    writes: Writes,
    reads: mpsc::Sender<Read>,
    /// A connection for reads of single records, which take less time than a thread takes to be woken.
    points: Mutex<Connection>,
    recent: Arc<recent::Recent>,
    /// `None` if what was written last may be lost in a crash of the machine.
    disk: Option<Disk>,
}

/// A query, which sends its own answer.
type Read = Box<dyn FnOnce(&Connection) + Send>;

impl SqliteStore {
    /// Opens a database, or makes one.
    ///
    /// # Errors
    /// If the file cannot be opened or is not such a database.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, Unavailable> {
        let failed = |error: rusqlite::Error| Unavailable {
            why: format!("the database {}: {error}", path.display()),
        };
        let connection = schema::open(path).map_err(failed)?;
        let disk = Self::disk(path, durability)?;
        Self::start(path, connection, disk)
    }

    /// Starts the threads of a database that is open.
    fn start(path: &Path, connection: Connection, disk: Option<Disk>) -> Result<Self, Unavailable> {
        let failed = |error: rusqlite::Error| Unavailable {
            why: format!("the database {}: {error}", path.display()),
        };
        let incarnation = schema::incarnation(&connection).map_err(failed)?;
        let file = DatabaseFile::of(path).map_err(|error| Unavailable {
            why: format!("the database {}: {error}", path.display()),
        })?;
        let reader = schema::connect(path).map_err(failed)?;
        // Each thread has a connection of its own: one connection would make reads wait for a commit, which waits for the disk.
        let points = schema::connect(path).map_err(failed)?;
        let follower = schema::connect(path).map_err(failed)?;
        // Before the list of recent changes begins: a change between both is found twice, and not missed.
        let upto = schema::counter(&points).map_err(failed)?;
        let recent = Arc::new(recent::Recent::new(incarnation, upto));
        let wake = wake::Wake::new(path, follower, Arc::downgrade(&recent));
        // What was committed before it was followed.
        recent.catch_up(&points);
        let (reads, queries) = mpsc::channel::<Read>();
        let (ours, at) = (Arc::clone(&recent), file.clone());
        let writer = Writer::new(connection, at, disk.clone(), (ours, wake));
        let no_thread = |error: std::io::Error| Unavailable {
            why: format!("a thread for {}: {error}", path.display()),
        };
        let writes = Writes::start(writer).map_err(no_thread)?;
        let read = move || {
            for query in queries {
                query(&reader);
            }
        };
        std::thread::Builder::new().name("sqlite-reader".into()).spawn(read).map_err(no_thread)?;
        let points = Mutex::new(points);
        Ok(Self { file, incarnation, writes, reads, points, recent, disk })
    }

    /// Starts the thread that syncs a database whose writes must be kept.
    fn disk(path: &Path, durability: Durability) -> Result<Option<Disk>, Unavailable> {
        if durability == Durability::Memory {
            return Ok(None);
        }
        let failed =
            |why: String| Unavailable { why: format!("the database {}: {why}", path.display()) };
        let connection = schema::connect(path).map_err(|error| failed(error.to_string()))?;
        let log = Log::open(path, connection).map_err(|error| {
            failed(format!("its write-ahead log: {error}; keep the folder on a local file system"))
        })?;
        Disk::start(log).map(Some).map_err(failed)
    }

    /// Returns the store's incarnation.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Everything that was ever written, from the table `audit` and the logs. It is on disk.
    ///
    /// # Errors
    /// Fails if it cannot be read, or the disk does not sync.
    pub async fn history(&self) -> Result<History, Unavailable> {
        let incarnation = self.incarnation;
        let read = self.query(move |connection| {
            // Records and logs of one moment, or a publication could be there without the end of its job.
            let transaction = connection.unchecked_transaction()?;
            let mut query =
                transaction.prepare("SELECT key, value, rev, at FROM audit ORDER BY rev")?;
            let rows = query.query_map([], |row| {
                let at: i64 = row.get(3)?;
                Ok(Version { entry: entry(row, incarnation)?, at: at.unsigned_abs() })
            })?;
            let records = rows.collect::<rusqlite::Result<_>>()?;
            let mut query = transaction.prepare("SELECT name, entry, rev FROM log ORDER BY rev")?;
            let logs = query
                .query_map([], |row| entry(row, incarnation))?
                .collect::<rusqlite::Result<_>>()?;
            let pruned = schema::pruned(&transaction)?;
            let last = Rev { incarnation, number: schema::counter(&transaction)? };
            Ok((History { records, logs, pruned, ..History::default() }, last))
        });
        let (history, last) = read.await?;
        self.on_disk(last).await?;
        Ok(history)
    }

    async fn write(&self, write: Write, synced: bool) -> Result<Rev, WriteError> {
        let value = match &write {
            Write::Create { value, .. } | Write::Update { value, .. } => value,
            Write::Append { entry, .. } => entry,
            Write::Remove { .. } | Write::Prune { .. } | Write::Probe => &Bytes::new(),
        };
        check(write.key(), value)?;
        let key = write.key().to_owned();
        let (answer, answered) = oneshot::channel();
        self.writes.make(Request { write, synced, answer });
        let why = "its writer ended".to_owned();
        // The writer may have committed before it ended, so the outcome is unknown.
        answered.await.unwrap_or(Err(WriteError::Unknown { key, why }))
    }

    fn point<T>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Unavailable> {
        let connection = self.points.lock().unwrap_or_else(PoisonError::into_inner);
        query(&connection).map_err(|error| Unavailable {
            why: format!("the database {}: {error}", self.file.path.display()),
        })
    }

    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        ask(&self.reads, &self.file.path, query).await
    }
}

async fn ask<T: Send + 'static>(
    reads: &mpsc::Sender<Read>,
    path: &Path,
    query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
) -> Result<T, Unavailable> {
    let (answer, answered) = oneshot::channel();
    let run = Box::new(move |connection: &Connection| {
        let _ = answer.send(query(connection));
    });
    let failed =
        |why: String| Unavailable { why: format!("the database {}: {why}", path.display()) };
    reads.send(run).map_err(|_| failed("it is closed".into()))?;
    let result = answered.await.map_err(|_| failed("its reader ended".into()))?;
    result.map_err(|error| failed(error.to_string()))
}

#[async_trait]
impl Store for SqliteStore {
    async fn create(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.write(Write::Create { key: key.into(), value }, true).await
    }

    async fn update(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.write(Write::Update { key: key.into(), value, expected }, true).await
    }

    async fn create_soon(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.write(Write::Create { key: key.into(), value }, false).await
    }

    async fn update_soon(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.write(Write::Update { key: key.into(), value, expected }, false).await
    }

    async fn remove(&self, key: &str, expected: Rev) -> Result<Rev, WriteError> {
        self.write(Write::Remove { key: key.into(), expected }, false).await
    }

    async fn written_before(&self, time: u64) -> Result<u64, Unavailable> {
        let now = Clock::system().wall();
        self.query(move |connection| {
            // Entries of logs have no times, so they count as written before only if a record that was written after them was.
            // Versions from a time when the clock was ahead are left out, or they would be in the way until then.
            let mut query = connection.prepare_cached(
                "SELECT max(rev) FROM audit WHERE at <= ?1 AND rev < coalesce(\
                 (SELECT rev FROM audit WHERE at > ?1 AND at <= ?2 ORDER BY rev LIMIT 1), ?3)",
            )?;
            let found: Option<i64> =
                query.query_row(params![signed(time), signed(now), i64::MAX], |row| row.get(0))?;
            // What was pruned was written before an earlier time.
            Ok(found.map_or(0, i64::unsigned_abs).max(schema::pruned(connection)?))
        })
        .await
    }

    async fn prune(&self, upto: u64) -> Result<(), WriteError> {
        let failed = |error: Unavailable| WriteError::Refused {
            key: "audit".into(),
            why: error.to_string(),
        };
        let mut after = self.query(schema::pruned).await.map_err(failed)?;
        while after < upto {
            // Other writes wait for the transaction, so it must be short.
            let next = upto.min(after.saturating_add(PRUNED_AT_ONCE));
            self.write(Write::Prune { after, upto: next }, false).await?;
            after = next;
        }
        Ok(())
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, Unavailable> {
        self.point(|connection| {
            connection
                .prepare_cached("SELECT key, value, rev FROM record WHERE key = ?1")?
                .query_row([key], |row| entry(row, self.incarnation))
                .optional()
        })
    }

    async fn list(&self, prefix: &str, after: u64) -> Result<Listing, Unavailable> {
        let (prefix, incarnation) = (prefix.to_owned(), self.incarnation);
        self.query(move |connection| {
            // One snapshot for both.
            let transaction = connection.unchecked_transaction()?;
            let number = schema::counter(&transaction)?;
            let entries = entries(&transaction, incarnation, &prefix, after, i64::MAX)?;
            Ok(Listing { entries, at: Rev { incarnation, number } })
        })
        .await
    }

    async fn watch(&self, prefix: &str, after: Rev) -> Result<Box<dyn Watch>, Unavailable> {
        Ok(Box::new(Changes {
            path: self.file.path.clone(),
            incarnation: self.incarnation,
            reads: self.reads.clone(),
            recent: Arc::downgrade(&self.recent),
            wake: self.recent.subscribe(),
            prefix: prefix.to_owned(),
            after,
        }))
    }

    async fn append(&self, log: &str, entry: Bytes, last: Option<Rev>) -> Result<Rev, WriteError> {
        self.write(Write::Append { log: log.into(), entry, last }, true).await
    }

    async fn append_soon(
        &self,
        log: &str,
        entry: Bytes,
        last: Option<Rev>,
    ) -> Result<Rev, WriteError> {
        self.write(Write::Append { log: log.into(), entry, last }, false).await
    }

    async fn on_disk(&self, rev: Rev) -> Result<(), Unavailable> {
        let failed = |why: &str| Unavailable {
            why: format!("the database {}: {why}", self.file.path.display()),
        };
        if rev.incarnation != self.incarnation {
            return Err(failed("the write is of another one"));
        }
        let Some(disk) = self.disk.as_ref().filter(|disk| !disk.has(rev.number)) else {
            return Ok(());
        };
        let (answer, answered) = oneshot::channel();
        let send = move |outcome: &Result<(), String>| drop(answer.send(outcome.clone()));
        disk.want(rev.number, false, Box::new(send));
        match answered.await {
            Ok(outcome) => outcome.map_err(|why| failed(&why)),
            Err(_) => Err(failed("its syncing thread ended")),
        }
    }

    async fn tail(&self, log: &str) -> Result<Option<Entry>, Unavailable> {
        self.point(|connection| {
            connection
                .prepare_cached(
                    "SELECT name, entry, rev FROM log WHERE name = ?1 ORDER BY rev DESC LIMIT 1",
                )?
                .query_row([log], |row| entry(row, self.incarnation))
                .optional()
        })
    }

    async fn read(&self, log: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        let (log, incarnation) = (log.to_owned(), self.incarnation);
        let limit = signed(limit as u64);
        self.query(move |connection| {
            let mut query = connection.prepare_cached(
                "SELECT name, entry, rev FROM log WHERE name = ?1 AND rev > ?2 ORDER BY rev LIMIT ?3",
            )?;
            let rows = query.query_map(params![log, signed(after), limit], |row| {
                entry(row, incarnation)
            })?;
            rows.collect()
        })
        .await
    }

    fn describe(&self) -> String {
        // The answer does not contain the path: any client that can connect may ask.
        let name =
            self.file.path.file_name().expect("a path at which a database was opened has a name");
        format!("the SQLite database {}", name.to_string_lossy())
    }

    async fn is_there(&self) -> Result<bool, Unavailable> {
        Ok(self.file.is_there())
    }

    async fn probe(&self) -> Result<(), Unavailable> {
        let written = self.write(Write::Probe, true).await;
        written.map(drop).map_err(|error| Unavailable { why: error.to_string() })
    }
}

/// A watch: looks for what has a higher revision, each time something was written.
struct Changes {
    path: PathBuf,
    incarnation: u64,
    reads: mpsc::Sender<Read>,
    recent: Weak<recent::Recent>,
    wake: tokio::sync::watch::Receiver<u64>,
    prefix: String,
    after: Rev,
}

impl Changes {
    /// The oldest changes that were not reported, from the database, and up to which revision these are all.
    async fn long_ago(&self) -> Result<(Vec<Entry>, u64), Unavailable> {
        let (prefix, after, incarnation) =
            (self.prefix.clone(), self.after.number, self.incarnation);
        ask(&self.reads, &self.path, move |connection| {
            let transaction = connection.unchecked_transaction()?;
            let upto = schema::counter(&transaction)?;
            let changes = entries(&transaction, incarnation, &prefix, after, MAX_CHANGES)?;
            let last = changes.last().map(|last| last.rev.number);
            let all = i64::try_from(changes.len()).is_ok_and(|count| count < MAX_CHANGES);
            Ok((changes, last.filter(|_| !all).unwrap_or(upto)))
        })
        .await
    }
}

#[async_trait]
impl Watch for Changes {
    async fn next(&mut self) -> Result<Vec<Entry>, WatchError> {
        if self.after.incarnation != self.incarnation {
            return Err(WatchError::Gap);
        }
        let closed =
            || WatchError::Unavailable(Unavailable { why: "the database is closed".into() });
        loop {
            // What is written from here on wakes the wait below.
            self.wake.borrow_and_update();
            let recent = self.recent.upgrade().ok_or_else(closed)?;
            let known = recent.since(&self.prefix, self.after.number);
            // Held during the wait below, the reference would keep the changes alive after the
            // store is dropped, and the watch would never end.
            drop(recent);
            let (changes, upto) = match known {
                Some(known) => known,
                None => self.long_ago().await?,
            };
            self.after.number = self.after.number.max(upto);
            if !changes.is_empty() {
                return Ok(changes);
            }
            self.wake.changed().await.map_err(|_| closed())?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::simulated::Simulated;
    use super::*;
    use std::time::{Duration, Instant};

    #[tokio::test]
    async fn writes_that_were_answered_are_on_disk_and_the_others_soon() {
        let folder = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&folder.path().join("db"), Durability::Disk).unwrap();
        let disk = store.disk.clone().unwrap();
        let value = Bytes::from_static(b"x");
        let mut last = None;
        for at in 0..50 {
            store.create_soon(&format!("soon/{at}"), value.clone()).await.unwrap();
            let rev = store.create(&format!("now/{at}"), value.clone()).await.unwrap();
            assert!(disk.has(rev.number));
            let rev = store.update(&format!("now/{at}"), value.clone(), rev).await.unwrap();
            assert!(disk.has(rev.number));
            last = Some(store.append("log", value.clone(), last).await.unwrap());
            assert!(last.is_some_and(|last| disk.has(last.number)));
        }
        let rev = store.create_soon("read", value.clone()).await.unwrap();
        store.on_disk(rev).await.unwrap();
        assert!(disk.has(rev.number));
        let rev = store.append_soon("log", value, last).await.unwrap();
        let start = Instant::now();
        while !disk.has(rev.number) {
            assert!(start.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let other = Rev { incarnation: rev.incarnation + 1, ..rev };
        assert!(store.on_disk(other).await.is_err());
    }

    /// Opens a database whose log is on a simulated disk.
    fn simulated(path: &Path) -> (SqliteStore, Simulated) {
        let connection = schema::open(path).unwrap();
        let disk = Simulated::of(path);
        let log = Log::new(Box::new(disk.clone()), schema::connect(path).unwrap());
        let started = Disk::start(log).unwrap();
        (SqliteStore::start(path, connection, Some(started)).unwrap(), disk)
    }

    #[tokio::test]
    async fn a_sync_that_failed_is_made_again_without_a_request() {
        let folder = tempfile::tempdir().unwrap();
        let (store, disk) = simulated(&folder.path().join("db"));
        disk.fail(true);
        let before = disk.syncs();
        let rev = store.create_soon("a", Bytes::new()).await.unwrap();
        assert!(store.history().await.is_err());
        let (reached, start) = (store.disk.clone().unwrap(), Instant::now());
        // The failing one that nobody waits for.
        while disk.syncs() < before + 4 {
            assert!(start.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        disk.fail(false);
        while !reached.has(rev.number) {
            assert!(start.elapsed() < Duration::from_secs(20));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(store.history().await.unwrap().records.len(), 1);
    }

    #[tokio::test]
    async fn no_more_writes_wait_for_the_disk_than_a_start_leaves_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let (store, disk) = simulated(&path);
        disk.fail(true);
        let connection = schema::connect(&path).unwrap();
        let written = i64::try_from(LEFT_OUT / 2).unwrap();
        connection
            .execute("UPDATE state SET number = ?1 WHERE name = 'counter'", [written])
            .unwrap();
        let rev = store.create_soon("a", Bytes::new()).await.unwrap();
        assert_eq!(rev.number, LEFT_OUT / 2 + 1);
        let why = store.create_soon("b", Bytes::new()).await.unwrap_err().to_string();
        assert!(why.contains("65536 writes are not on disk") && why.contains("broken"), "{why}");
        assert_eq!(store.get("b").await.unwrap(), None);
        disk.fail(false);
        let last = store.create_soon("b", Bytes::new()).await.unwrap();
        assert!(store.disk.as_ref().unwrap().has(rev.number));
        assert_eq!(last.number, rev.number + 1);
    }
}
