//! A store in a SQLite database: the default, for one machine.
//!
//! Several processes may open the same database. All writes go through one thread per process, which puts what has piled up into
//! one transaction (group commit) and answers after it is on disk. Watches read the last changes from memory, where the writing
//! thread puts them and, for writes of other processes, a thread that is woken by the file system.

mod recent;
mod schema;
mod wake;

use super::{Entry, Listing, Rev, Store, Unavailable, Watch, WatchError, WriteError, check};
use crate::clock::Clock;
use crate::history::{History, Version};
use async_trait::async_trait;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak, mpsc};
use std::time::Duration;
use tokio::sync::oneshot;

/// The number of writes that one transaction takes.
// All of them are answered after the same commit, so without a limit the first write of a busy time
// would wait for the last one.
const MAX_GROUP: usize = 256;

/// The longest time for which a write that need not be synced is not on disk.
const UNSYNCED: Duration = Duration::from_millis(100);

/// The time to wait while there is nothing to do.
const LONG: Duration = Duration::from_secs(3_600);

/// The number of changes that a watch reports at once.
const MAX_CHANGES: i64 = 1_000;

/// The writes that a store keeps over a crash of the machine. A killed process loses nothing in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Every answered write, and a copy of each version of each record (`audit`).
    Disk,
    /// Nothing that was written shortly before. For sessions, which are written again within a second.
    Memory,
}

/// A SQLite database.
#[derive(Debug)]
pub struct SqliteStore {
    place: Place,
    incarnation: u64,
    writes: mpsc::Sender<Request>,
    reads: mpsc::Sender<Read>,
    /// A connection for reads of single records, which take less time than a thread takes to be woken.
    points: Mutex<Connection>,
    recent: Arc<recent::Recent>,
}

/// A file that must stay where it is: what is written to one that was removed is lost with the process.
#[derive(Clone, Debug)]
struct Place {
    path: PathBuf,
    /// The device and the number of the file on it.
    file: (u64, u64),
}

impl Place {
    fn of(path: &Path) -> std::io::Result<Self> {
        let found = std::fs::metadata(path)?;
        Ok(Self { path: path.to_owned(), file: (found.dev(), found.ino()) })
    }

    fn is_there(&self) -> bool {
        // The path alone is not enough: a database that was removed and made again has the same
        // path, while this process still has the removed one open.
        std::fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == self.file)
    }
}

/// A write and where its answer goes.
struct Request {
    write: Write,
    /// `true` if it must be on disk when it is answered.
    synced: bool,
    answer: oneshot::Sender<Result<Rev, WriteError>>,
}

enum Write {
    Create {
        key: String,
        value: Bytes,
    },
    Update {
        key: String,
        value: Bytes,
        expected: Rev,
    },
    Append {
        log: String,
        entry: Bytes,
        last: Option<Rev>,
    },
    /// Changes nothing, and is on disk as the others are.
    Probe,
}

impl Write {
    fn key(&self) -> &str {
        match self {
            Self::Create { key, .. } | Self::Update { key, .. } => key,
            Self::Append { log, .. } => log,
            Self::Probe => "probe",
        }
    }
}

impl Write {
    /// The record as it was written at a revision.
    fn change(&self, rev: Rev) -> Option<Entry> {
        match self {
            Self::Create { key, value } | Self::Update { key, value, .. } => {
                Some(Entry { key: key.clone(), value: value.clone(), rev })
            }
            Self::Append { .. } | Self::Probe => None,
        }
    }
}

/// A query, which answers by itself.
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
        let writer = schema::open(path, durability).map_err(failed)?;
        let incarnation = schema::incarnation(&writer).map_err(failed)?;
        let place = Place::of(path).map_err(|error| Unavailable {
            why: format!("the database {}: {error}", path.display()),
        })?;
        let reader = schema::connect(path, durability).map_err(failed)?;
        // Each thread has a connection of its own: one connection would make reads wait for a commit, which waits for the disk.
        let points = schema::connect(path, durability).map_err(failed)?;
        let follower = schema::connect(path, durability).map_err(failed)?;
        // Before the list of recent changes begins: a change between both is found twice, and not missed.
        let upto = schema::counter(&points).map_err(failed)?;
        let recent = Arc::new(recent::Recent::new(incarnation, upto));
        let wake = wake::Wake::new(path, follower, Arc::downgrade(&recent));
        // What was committed before it was followed.
        recent.catch_up(&points);
        let (writes, requests) = mpsc::channel();
        let (reads, queries) = mpsc::channel::<Read>();
        let (ours, at) = (Arc::clone(&recent), place.clone());
        let start = |name: &str, run: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.into()).spawn(run).map_err(|error| Unavailable {
                why: format!("a thread for {}: {error}", path.display()),
            })
        };
        start(
            "sqlite-writer",
            Box::new(move || write_all(writer, (&at, durability), &requests, &ours, &wake)),
        )?;
        start(
            "sqlite-reader",
            Box::new(move || {
                for query in queries {
                    query(&reader);
                }
            }),
        )?;
        let points = Mutex::new(points);
        Ok(Self { place, incarnation, writes, reads, points, recent })
    }

    /// Returns the store's incarnation.
    pub fn incarnation(&self) -> u64 {
        self.incarnation
    }

    /// Everything that was ever written, from the table `audit` and the logs.
    ///
    /// # Errors
    /// If it cannot be read.
    pub async fn history(&self) -> Result<History, Unavailable> {
        let incarnation = self.incarnation;
        self.query(move |connection| {
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
            Ok(History { records, logs, ..History::default() })
        })
        .await
    }

    async fn write(&self, write: Write, synced: bool) -> Result<Rev, WriteError> {
        let value = match &write {
            Write::Create { value, .. } | Write::Update { value, .. } => value,
            Write::Append { entry, .. } => entry,
            Write::Probe => &Bytes::new(),
        };
        check(write.key(), value)?;
        let key = write.key().to_owned();
        let (answer, answered) = oneshot::channel();
        if self.writes.send(Request { write, synced, answer }).is_err() {
            return Err(WriteError::Refused { key, why: "the store is closed".into() });
        }
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
            why: format!("the database {}: {error}", self.place.path.display()),
        })
    }

    async fn query<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Unavailable> {
        ask(&self.reads, &self.place.path, query).await
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

/// Takes writes in groups until the store is dropped.
fn write_all(
    mut connection: Connection,
    (place, durability): (&Place, Durability),
    requests: &mpsc::Receiver<Request>,
    recent: &recent::Recent,
    wake: &wake::Wake,
) {
    let mut synced = true;
    loop {
        // What was written without a sync is on disk soon, also if nothing else is written.
        let wait = if synced { LONG } else { UNSYNCED };
        let first = match requests.recv_timeout(wait) {
            Ok(first) => first,
            Err(mpsc::RecvTimeoutError::Timeout) if !synced => {
                match sync(&mut connection) {
                    Ok(()) => synced = true,
                    Err(error) => tracing::error!(%error, "the store cannot sync"),
                }
                continue;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => continue,
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
        };
        let mut group = vec![first];
        // Only what is there already: waiting for more would delay the first write, and others
        // gather anyway while the disk syncs.
        while group.len() < MAX_GROUP
            && let Ok(next) = requests.try_recv()
        {
            group.push(next);
        }
        // The file may be removed at any time. Without this look, writes to it would be answered and lost with the process.
        let incarnation = recent.incarnation();
        let outcome = match place.is_there() {
            true => commit(&mut connection, incarnation, durability, &mut synced, &group),
            false => Err(Failure::Before("its file was removed or replaced".into())),
        };
        match outcome {
            Ok(Committed { from, upto, answers }) => {
                if upto > from {
                    let written = group.iter().zip(&answers).filter_map(|(request, answer)| {
                        request.write.change(*answer.as_ref().ok()?)
                    });
                    recent.committed(&connection, from, written.collect(), upto);
                    wake.changed();
                }
                for (request, answer) in group.into_iter().zip(answers) {
                    // A caller that gave up waiting finds out from the record.
                    let _ = request.answer.send(answer);
                }
            }
            Err(failure) => {
                tracing::error!(why = failure.why(), "the store cannot write");
                for request in group {
                    let key = request.write.key().to_owned();
                    let _ = request.answer.send(Err(failure.of(key)));
                }
            }
        }
    }
}

/// Makes a commit that changes nothing, and is on disk with all that were made before.
fn sync(connection: &mut Connection) -> rusqlite::Result<()> {
    // A commit without a change writes nothing and so syncs nothing: the counter is written as it is.
    schema::set_synced(connection, true)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let counter = schema::counter(&transaction)?;
    schema::set_counter(&transaction, counter)?;
    transaction.commit()
}

/// Why a group was not written.
enum Failure {
    /// There was no space. Nothing has happened: frames of the log count only once the last one of their commit is complete.
    Full,
    /// Nothing has happened.
    Before(String),
    /// The commit itself failed: after a failed sync it is unknown what a crash would leave.
    During(String),
}

impl Failure {
    fn new(error: &rusqlite::Error, otherwise: impl FnOnce(String) -> Self) -> Self {
        match error.sqlite_error_code() {
            // Also in a commit: the log counts only up to its last complete commit, so nothing of this one takes effect.
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full,
            _ => otherwise(error.to_string()),
        }
    }

    fn why(&self) -> &str {
        match self {
            Self::Full => "no space left",
            Self::Before(why) | Self::During(why) => why,
        }
    }

    fn of(&self, key: String) -> WriteError {
        match self {
            Self::Full => WriteError::Full { key },
            Self::Before(why) => WriteError::Refused { key, why: why.clone() },
            Self::During(why) => WriteError::Unknown { key, why: why.clone() },
        }
    }
}

/// The result of a transaction: its writes have the revisions after `from` up to `upto`.
struct Committed {
    from: u64,
    upto: u64,
    answers: Vec<Result<Rev, WriteError>>,
}

/// One transaction for a group. A write that conflicts leaves the others alone.
fn commit(
    connection: &mut Connection,
    incarnation: u64,
    durability: Durability,
    synced: &mut bool,
    group: &[Request],
) -> Result<Committed, Failure> {
    let before = |error: rusqlite::Error| Failure::new(&error, Failure::Before);
    // The write-ahead log is synced as a whole, so what is written without a sync is on disk with the next one.
    let wanted = group.iter().any(|request| request.synced);
    if durability == Durability::Disk && wanted != *synced {
        schema::set_synced(connection, wanted).map_err(before)?;
        *synced = wanted;
    }
    // Immediate: a transaction that begins as a reader and becomes a writer can fail with SQLITE_BUSY in the middle.
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(before)?;
    let from = schema::counter(&transaction).map_err(before)?;
    let mut counter = from;
    let mut answers = Vec::with_capacity(group.len());
    let now = Clock::system().wall();
    let mut is_probed = false;
    for request in group {
        let next = Rev { incarnation, number: counter + 1 };
        let answer =
            apply(&transaction, &request.write, next, (durability, now)).map_err(before)?;
        match request.write {
            Write::Probe => is_probed = true,
            _ if answer.is_ok() => counter = next.number,
            _ => {}
        }
        answers.push(answer);
    }
    // A group whose writes all conflict has changed nothing, so it need not wait for the disk. A
    // probe must, because the disk is what it asks about.
    if counter > from || is_probed {
        schema::set_counter(&transaction, counter).map_err(before)?;
        transaction.commit().map_err(|error| Failure::new(&error, Failure::During))?;
    }
    Ok(Committed { from, upto: counter, answers })
}

fn apply(
    transaction: &Transaction<'_>,
    write: &Write,
    next: Rev,
    (durability, now): (Durability, u64),
) -> rusqlite::Result<Result<Rev, WriteError>> {
    let number = signed(next.number);
    let written = match write {
        Write::Create { key, value } => transaction
            // A key that is there is no error of the transaction, which has the writes of others in it.
            .prepare_cached("INSERT OR IGNORE INTO record (key, rev, value) VALUES (?1, ?2, ?3)")?
            .execute(params![key, number, &value[..]])?,
        Write::Update { key, value, expected } if expected.incarnation == next.incarnation => {
            transaction
                .prepare_cached(
                    "UPDATE record SET rev = ?2, value = ?3 WHERE key = ?1 AND rev = ?4",
                )?
                .execute(params![key, number, &value[..], signed(expected.number)])?
        }
        Write::Append { log, entry, last } => {
            let tail: Option<i64> = transaction
                .prepare_cached("SELECT max(rev) FROM log WHERE name = ?1")?
                .query_row([log], |row| row.get(0))?;
            let expected = match last {
                // No entry has this number, so the append conflicts: the caller has read another database.
                Some(last) if last.incarnation != next.incarnation => Some(-1),
                last => last.map(|rev| signed(rev.number)),
            };
            match tail == expected {
                true => transaction
                    .prepare_cached("INSERT INTO log (name, rev, entry) VALUES (?1, ?2, ?3)")?
                    .execute(params![log, number, &entry[..]])?,
                false => 0,
            }
        }
        // The revision is of another database.
        Write::Update { .. } => 0,
        Write::Probe => return Ok(Ok(next)),
    };
    if written == 0 {
        return Ok(Err(WriteError::Conflict { key: write.key().to_owned() }));
    }
    if durability == Durability::Disk
        && let Write::Create { key, value } | Write::Update { key, value, .. } = write
    {
        transaction
            .prepare_cached("INSERT INTO audit (rev, at, key, value) VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![number, signed(now), key, &value[..]])?;
    }
    Ok(Ok(next))
}

/// Returns a number as SQLite has them, with a sign. Counters do not reach the end, and a client that asks for what follows a larger
/// revision gets nothing, as there is none.
fn signed(number: u64) -> i64 {
    number.min(i64::MAX.cast_unsigned()).cast_signed()
}

/// The end of the range of keys with a prefix. No byte of a key is above `~`, and no key continues after one that is whole.
fn end(prefix: &str) -> String {
    match prefix.is_empty() || prefix.ends_with('/') {
        true => format!("{prefix}\u{7f}"),
        false => format!("{prefix}\0"),
    }
}

fn entries(
    connection: &Connection,
    incarnation: u64,
    prefix: &str,
    after: u64,
    limit: i64,
) -> rusqlite::Result<Vec<Entry>> {
    // What is new is found by revision: `+` keeps the database from going through all keys of the prefix. All there is, by key.
    let sql = match after {
        0 => {
            "SELECT key, value, rev FROM record WHERE rev > ?1 AND key >= ?2 AND key < ?3 ORDER BY rev LIMIT ?4"
        }
        _ => {
            "SELECT key, value, rev FROM record WHERE rev > ?1 AND +key >= ?2 AND +key < ?3 ORDER BY rev LIMIT ?4"
        }
    };
    let mut query = connection.prepare_cached(sql)?;
    let rows = query.query_map(params![signed(after), prefix, end(prefix), limit], |row| {
        entry(row, incarnation)
    })?;
    rows.collect()
}

fn entry(row: &rusqlite::Row<'_>, incarnation: u64) -> rusqlite::Result<Entry> {
    let (value, rev): (Vec<u8>, i64) = (row.get(1)?, row.get(2)?);
    let rev = Rev { incarnation, number: rev.unsigned_abs() };
    Ok(Entry { key: row.get(0)?, value: value.into(), rev })
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
            path: self.place.path.clone(),
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
            self.place.path.file_name().expect("a path at which a database was opened has a name");
        format!("the SQLite database {}", name.to_string_lossy())
    }

    async fn is_there(&self) -> Result<bool, Unavailable> {
        Ok(self.place.is_there())
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
