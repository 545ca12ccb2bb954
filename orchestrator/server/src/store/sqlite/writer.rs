//! Writes: all that wait are combined into one transaction, which is put on disk for those that wait for that.
//!
//! A caller makes its write itself if none is being made, with whatever else waits: to wake a thread, and to be woken by it, takes longer
//! than a write. What would keep the caller from other work is left to a thread: writes that come while one is made, those that have to wait
//! for another process or for the disk, and the removal of history.

use super::disk::Disk;
use super::file::DatabaseFile;
use super::recent::Recent;
use super::rows::signed;
use super::schema;
use super::wake::Wake;
use crate::clock::Clock;
use crate::store::{Entry, Rev, WriteError};
use bytes::Bytes;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// The number of writes that one transaction takes.
// All of them are answered after the same commit, so without a limit the first write of a busy time
// would wait for the last one.
const MAX_GROUP: usize = 256;

/// The longest time for which a write that need not be synced is not on disk.
const UNSYNCED: Duration = Duration::from_millis(100);

/// The time after which a sync is asked for again if the disk does not have what it was to cover.
const AGAIN: Duration = Duration::from_secs(1);

/// The number of revisions that may not be on disk, so that a start leaves out all that a crash can have lost. Only half of those, since
/// each process may be committing a group when the limit is reached.
const MAX_UNSYNCED: u64 = schema::LEFT_OUT / 2;

/// The time to wait while there is nothing to do.
const LONG: Duration = Duration::from_secs(3_600);

/// A write and where its answer goes.
pub(super) struct Request {
    pub(super) write: Write,
    /// `true` if it must be on disk when it is answered.
    pub(super) synced: bool,
    pub(super) answer: oneshot::Sender<Result<Rev, WriteError>>,
}

pub(super) enum Write {
    Create {
        key: String,
        value: Bytes,
    },
    Update {
        key: String,
        value: Bytes,
        expected: Rev,
    },
    Remove {
        key: String,
        expected: Rev,
    },
    Append {
        log: String,
        entry: Bytes,
        last: Option<Rev>,
    },
    /// Removes versions of records after a revision up to another one, except for those that are current.
    Prune {
        after: u64,
        upto: u64,
    },
    /// Changes nothing, and is on disk as the others are.
    Probe,
}

impl Write {
    pub(super) fn key(&self) -> &str {
        match self {
            Self::Create { key, .. } | Self::Update { key, .. } | Self::Remove { key, .. } => key,
            Self::Append { log, .. } => log,
            Self::Prune { .. } => "audit",
            Self::Probe => "probe",
        }
    }

    /// The record as it was written at a revision.
    fn change(&self, rev: Rev) -> Option<Entry> {
        match self {
            Self::Create { key, value } | Self::Update { key, value, .. } => {
                Some(Entry { key: key.clone(), value: value.clone(), rev })
            }
            Self::Remove { .. } | Self::Append { .. } | Self::Prune { .. } | Self::Probe => None,
        }
    }
}

/// The writes of a process to its database.
pub(super) struct Writes {
    shared: Arc<Shared>,
    /// Wakes the thread, which ends with the last sender.
    wake: mpsc::Sender<()>,
}

/// The writes that wait, in their order, and who makes them.
struct Shared {
    waiting: Mutex<VecDeque<Request>>,
    writer: Mutex<Writer>,
}

impl Shared {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Request>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the writes that are made next, as long as they are of a kind.
    fn take(&self, is_taken: impl Fn(&Write) -> bool) -> Vec<Request> {
        let mut waiting = self.waiting();
        let count = waiting.iter().take(MAX_GROUP).take_while(|next| is_taken(&next.write)).count();
        waiting.drain(..count).collect()
    }

    /// Puts writes back that were taken last.
    fn put_back(&self, group: Vec<Request>) {
        let mut waiting = self.waiting();
        group.into_iter().rev().for_each(|request| waiting.push_front(request));
    }
}

impl std::fmt::Debug for Writes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writes").finish_non_exhaustive()
    }
}

impl Writes {
    /// Starts the thread, which runs until this is dropped, and makes what waits then.
    pub(super) fn start(writer: Writer) -> std::io::Result<Self> {
        let writer = Mutex::new(writer);
        let shared = Arc::new(Shared { waiting: Mutex::default(), writer });
        let (wake, woken) = mpsc::channel();
        let ours = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("sqlite-writer".into())
            .spawn(move || run(&ours, &woken))?;
        Ok(Self { shared, wake })
    }

    /// Makes a write, or has it made. It is answered when it is done.
    pub(super) fn make(&self, request: Request) {
        self.shared.waiting().push_back(request);
        let writer = match self.shared.writer.try_lock() {
            Ok(writer) => Some(writer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            // Whoever writes now may have taken this write already, or takes it next.
            Err(TryLockError::WouldBlock) => None,
        };
        let is_due = writer.is_some_and(|mut writer| writer.write_at_once(&self.shared));
        // After the lock is released: a write that came before finds nobody else who looks.
        if (is_due || !self.shared.waiting().is_empty()) && self.wake.send(()).is_err() {
            // The thread has panicked, and nobody else would answer.
            self.shared.waiting().clear();
        }
    }
}

/// Makes the writes that callers do not make themselves, and has all put on disk in time.
fn run(shared: &Shared, woken: &mpsc::Receiver<()>) {
    let mut wait = LONG;
    loop {
        let is_over = woken.recv_timeout(wait) == Err(mpsc::RecvTimeoutError::Disconnected);
        woken.try_iter().for_each(drop);
        let mut writer = shared.writer.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            // Only what is there already: waiting for more would delay the first write, and others gather anyway while this one is made.
            let group = shared.take(|_| true);
            if group.is_empty() {
                break;
            }
            if let Err(group) = writer.write(group, true) {
                shared.put_back(group);
            }
        }
        wait = writer.sync_due();
        if is_over {
            return;
        }
    }
}

/// The connection of a process that writes to its database.
pub(super) struct Writer {
    connection: Connection,
    file: DatabaseFile,
    disk: Option<Disk>,
    recent: Arc<Recent>,
    wake: Wake,
    /// The time at which the commits of this process must be put on disk, and the last of them.
    due: Option<(Instant, u64)>,
}

impl Writer {
    pub(super) fn new(
        connection: Connection,
        file: DatabaseFile,
        disk: Option<Disk>,
        (recent, wake): (Arc<Recent>, Wake),
    ) -> Self {
        Self { connection, file, disk, recent, wake, due: None }
    }

    /// Makes writes that wait, if that takes no longer than a commit. Returns whether the thread has to look when they are due.
    fn write_at_once(&mut self, shared: &Shared) -> bool {
        if self.is_behind() {
            return false;
        }
        let group = shared.take(|write| !matches!(write, Write::Prune { .. }));
        let had_due = self.due.is_some();
        if !group.is_empty()
            && let Err(group) = self.write(group, false)
        {
            shared.put_back(group);
        }
        self.due.is_some() && !had_due
    }

    /// Has commits put on disk if it is time. Returns how long to wait until the next look.
    fn sync_due(&mut self) -> Duration {
        self.due = self.due.and_then(|(at, upto)| self.sync_at(at, upto));
        self.due.map_or(LONG, |(at, _)| at.saturating_duration_since(Instant::now()))
    }

    /// Has commits put on disk at a time. Returns when to look again, unless they are there.
    fn sync_at(&self, at: Instant, upto: u64) -> Option<(Instant, u64)> {
        let disk = self.disk.as_ref().filter(|disk| !disk.has(upto))?;
        let now = Instant::now();
        if now < at {
            return Some((at, upto));
        }
        // Nobody waits for it, and the thread logs a failure.
        disk.want(upto, false, Box::new(|_| {}));
        Some((now + AGAIN, upto))
    }

    /// Reports whether too many writes are not on disk.
    fn is_behind(&self) -> bool {
        // Other processes do the same, so what they have committed since need not be counted.
        let least = self.recent.upto().saturating_sub(MAX_UNSYNCED);
        self.disk.as_ref().is_some_and(|disk| !disk.has(least))
    }

    /// Waits for the disk if it is too far behind.
    fn keep_up(&self) -> Result<(), Failure> {
        let Some(disk) = self.disk.as_ref().filter(|_| self.is_behind()) else { return Ok(()) };
        let upto = self.recent.upto();
        let (answer, answered) = mpsc::channel();
        let send = move |outcome: &Result<(), String>| drop(answer.send(outcome.clone()));
        disk.want(upto, false, Box::new(send));
        let synced = answered.recv().unwrap_or_else(|error| Err(error.to_string()));
        synced.map_err(|why| {
            Failure::Before(format!("more than {MAX_UNSYNCED} writes are not on disk: {why}"))
        })
    }

    /// Writes a group and has it answered. Returns it if another process is writing and this one does not wait.
    fn write(&mut self, group: Vec<Request>, is_patient: bool) -> Result<(), Vec<Request>> {
        // The file may be removed at any time. Without this look, writes to it would be answered and lost with the process.
        let outcome = match self.file.is_there() {
            true => self.keep_up().and_then(|()| self.commit(&group, is_patient)),
            false => Err(Failure::Before("its file was removed or replaced".into())),
        };
        match outcome {
            Ok(Committed { from, upto, answers }) => {
                if upto > from {
                    let written = group.iter().zip(&answers).filter_map(|(request, answer)| {
                        request.write.change(*answer.as_ref().ok()?)
                    });
                    self.recent.committed(&self.connection, from, written.collect(), upto);
                    self.wake.changed();
                    if self.disk.is_some() {
                        let at = Instant::now() + UNSYNCED;
                        self.due =
                            Some((self.due.map_or(at, |(earlier, _)| at.min(earlier)), upto));
                    }
                }
                self.answer(group, answers, upto);
                Ok(())
            }
            Err(Failure::Busy) => Err(group),
            Err(failure) => {
                tracing::error!(why = failure.why(), "the store cannot write");
                for request in group {
                    let key = request.write.key().to_owned();
                    let _ = request.answer.send(Err(failure.of(key)));
                }
                Ok(())
            }
        }
    }

    /// One transaction for a group, which waits for that of another process or not.
    fn commit(&mut self, group: &[Request], is_patient: bool) -> Result<Committed, Failure> {
        let patience = if is_patient { schema::PATIENCE } else { Duration::ZERO };
        self.connection
            .busy_timeout(patience)
            .map_err(|error| Failure::new(&error, Failure::Before))?;
        let incarnation = self.recent.incarnation();
        match commit(&mut self.connection, incarnation, self.disk.is_some(), group) {
            Err(Failure::Busy) if is_patient => {
                Err(Failure::Before("another process does not end its transaction".into()))
            }
            committed => committed,
        }
    }

    /// Answers a group that was committed up to a revision: writes that must be on disk, once they are.
    fn answer(&self, group: Vec<Request>, answers: Vec<Result<Rev, WriteError>>, upto: u64) {
        // Clients wait for entries of logs, and learn of them once these are on disk.
        let is_awaited = group.iter().any(|request| matches!(request.write, Write::Append { .. }));
        let mut later = Vec::new();
        let mut is_forced = false;
        for (request, answer) in group.into_iter().zip(answers) {
            if request.synced && answer.is_ok() && self.disk.is_some() {
                is_forced |= matches!(request.write, Write::Probe);
                later.push((request, answer));
            } else {
                // A caller that gave up waiting finds out from the record.
                let _ = request.answer.send(answer);
            }
        }
        let Some(disk) = &self.disk else { return };
        disk.committed(upto);
        if later.is_empty() {
            if is_awaited {
                disk.want(upto, false, Box::new(|_| {}));
            }
            return;
        }
        let send = move |outcome: &Result<(), String>| {
            for (request, answer) in later {
                let unknown = |why: &String| WriteError::Unknown {
                    key: request.write.key().to_owned(),
                    why: why.clone(),
                };
                let _ = request.answer.send(match outcome {
                    Ok(()) => answer,
                    Err(why) => Err(unknown(why)),
                });
            }
        };
        disk.want(upto, is_forced, Box::new(send));
    }
}

/// Why a group was not written.
enum Failure {
    /// Another process is writing. Nothing has happened.
    Busy,
    /// There was no space. Nothing has happened: frames of the log count only once the last one of their commit is complete.
    Full,
    /// Nothing has happened.
    Before(String),
    /// The commit itself failed: it is unknown what a crash would leave.
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
            Self::Busy => "another process is writing",
            Self::Full => "no space left",
            Self::Before(why) | Self::During(why) => why,
        }
    }

    fn of(&self, key: String) -> WriteError {
        match self {
            Self::Full => WriteError::Full { key },
            Self::Busy => WriteError::Refused { key, why: self.why().to_owned() },
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
    is_kept: bool,
    group: &[Request],
) -> Result<Committed, Failure> {
    let before = |error: rusqlite::Error| Failure::new(&error, Failure::Before);
    // Immediate: a transaction that begins as a reader and becomes a writer can fail with SQLITE_BUSY in the middle.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let transaction = transaction.map_err(|error| match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy) => Failure::Busy,
        _ => before(error),
    })?;
    let from = schema::counter(&transaction).map_err(before)?;
    let mut counter = from;
    let mut answers = Vec::with_capacity(group.len());
    let now = Clock::system().wall();
    // A probe and the removal of history change no record, and must be committed all the same.
    let mut is_forced = false;
    for request in group {
        let next = Rev { incarnation, number: counter + 1 };
        let answer =
            apply(&transaction, &request.write, next, is_kept.then_some(now)).map_err(before)?;
        match request.write {
            Write::Probe | Write::Prune { .. } => is_forced = true,
            _ if answer.is_ok() => counter = next.number,
            _ => {}
        }
        answers.push(answer);
    }
    // A group whose writes all conflict has changed nothing, so it need not wait for the disk. A
    // probe must, because the disk is what it asks about.
    if counter > from || is_forced {
        schema::set_counter(&transaction, counter).map_err(before)?;
        transaction.commit().map_err(|error| Failure::new(&error, Failure::During))?;
    }
    Ok(Committed { from, upto: counter, answers })
}

fn apply(
    transaction: &Transaction<'_>,
    write: &Write,
    next: Rev,
    now: Option<u64>,
) -> rusqlite::Result<Result<Rev, WriteError>> {
    let number = signed(next.number);
    let written = match write {
        Write::Prune { after, upto } => {
            prune(transaction, *after, *upto)?;
            return Ok(Ok(next));
        }
        Write::Remove { key, expected } if expected.incarnation == next.incarnation => {
            schema::set_removed(transaction)?;
            transaction
                .prepare_cached("DELETE FROM record WHERE key = ?1 AND rev = ?2")?
                .execute(params![key, signed(expected.number)])?
        }
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
        Write::Update { .. } | Write::Remove { .. } => 0,
        Write::Probe => return Ok(Ok(next)),
    };
    if written == 0 {
        return Ok(Err(WriteError::Conflict { key: write.key().to_owned() }));
    }
    if let Some(now) = now {
        record(transaction, write, next.number, now)?;
    }
    Ok(Ok(next))
}

/// Adds a write to the history. A removal has an empty value, which no record has.
fn record(
    transaction: &Transaction<'_>,
    write: &Write,
    number: u64,
    now: u64,
) -> rusqlite::Result<()> {
    let (key, value, expected) = match write {
        Write::Create { key, value } => (key, &value[..], None),
        Write::Update { key, value, expected } => (key, &value[..], Some(expected)),
        Write::Remove { key, expected } => (key, &[][..], Some(expected)),
        Write::Append { .. } | Write::Prune { .. } | Write::Probe => return Ok(()),
    };
    transaction
        .prepare_cached("INSERT INTO audit (rev, at, key, value) VALUES (?1, ?2, ?3, ?4)")?
        .execute(params![signed(number), signed(now), key, value])?;
    // A version was kept beyond its time as long as it was the current one.
    if let Some(expected) = expected
        && expected.number <= schema::pruned(transaction)?
    {
        transaction
            .prepare_cached("DELETE FROM audit WHERE rev = ?1")?
            .execute([signed(expected.number)])?;
    }
    Ok(())
}

/// Removes the versions of records in a range of revisions, except for those that are current.
fn prune(transaction: &Transaction<'_>, after: u64, upto: u64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "DELETE FROM audit WHERE rev > ?1 AND rev <= ?2 AND NOT EXISTS \
             (SELECT 1 FROM record WHERE record.rev = audit.rev)",
        )?
        .execute(params![signed(after), signed(upto)])?;
    schema::set_pruned(transaction, upto)
}
