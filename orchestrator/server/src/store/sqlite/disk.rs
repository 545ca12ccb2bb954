//! The syncing thread: it puts the write-ahead log on disk, while the writing thread commits what comes next.
//!
//! A commit does not wait for the disk, so whatever follows from a write begins at once. The log is on disk up to some commit and no
//! further, so a crash of the machine loses the last writes, and none from before them. A request for a revision waits for the sync
//! that covers it, and one sync serves all requests that wait.

use rusqlite::Connection;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};

/// Receives the outcome: the revision is on disk, or the reason why it may not be.
type Answer = Box<dyn FnOnce(&Result<(), String>) + Send>;

/// A request for a sync.
struct Wanted {
    /// The revision that must be on disk. It is committed.
    upto: u64,
    /// `true` if the disk must be asked even if the revision is there.
    is_forced: bool,
    answer: Answer,
}

/// The revisions that are committed and on disk.
#[derive(Debug, Default)]
struct Reached {
    committed: AtomicU64,
    on_disk: AtomicU64,
}

/// The way to the syncing thread of a database.
#[derive(Clone, Debug)]
pub(super) struct Disk {
    wanted: mpsc::Sender<Wanted>,
    reached: Arc<Reached>,
}

impl Disk {
    /// Starts the syncing thread of a database with open connections.
    ///
    /// # Errors
    /// Fails if the log cannot be opened, or there is no thread.
    pub(super) fn start(database: &Path, connection: Connection) -> std::io::Result<Self> {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        // Open connections keep SQLite from removing this file and making another one of the same name.
        let log = File::options().write(true).open(PathBuf::from(path))?;
        // A sync of the log does not cover its name, and it may be new.
        hekaton_files::sync_folder_of(database)?;
        let (wanted, requests) = mpsc::channel();
        let reached = Arc::new(Reached::default());
        let mut log =
            Log { sync: Box::new(move || log.sync_data()), connection, is_doubtful: false };
        let ours = Arc::clone(&reached);
        std::thread::Builder::new()
            .name("sqlite-disk".into())
            .spawn(move || serve(&requests, &ours, || log.sync()))?;
        Ok(Self { wanted, reached })
    }

    /// Takes note of a commit of this process.
    pub(super) fn committed(&self, upto: u64) {
        self.reached.committed.fetch_max(upto, Ordering::SeqCst);
    }

    /// Reports whether a revision is on disk.
    pub(super) fn has(&self, number: u64) -> bool {
        self.reached.on_disk.load(Ordering::SeqCst) >= number
    }

    /// Has a committed revision put on disk, unless it is there and the sync is not forced, and answers then.
    pub(super) fn want(&self, upto: u64, is_forced: bool, answer: Answer) {
        if let Err(mpsc::SendError(wanted)) = self.wanted.send(Wanted { upto, is_forced, answer }) {
            (wanted.answer)(&Err("its syncing thread ended".into()));
        }
    }
}

/// Answers requests until the store is dropped.
fn serve(
    requests: &mpsc::Receiver<Wanted>,
    reached: &Reached,
    mut sync: impl FnMut() -> Result<(), String>,
) {
    while let Ok(first) = requests.recv() {
        let all: Vec<Wanted> = std::iter::once(first).chain(requests.try_iter()).collect();
        let asked = all.iter().map(|wanted| wanted.upto).max().unwrap_or(0);
        let is_forced = all.iter().any(|wanted| wanted.is_forced);
        let outcome = match asked <= reached.on_disk.load(Ordering::SeqCst) && !is_forced {
            true => Ok(()),
            false => {
                // Before the sync, which covers what was committed by then.
                let upto = asked.max(reached.committed.load(Ordering::SeqCst));
                let synced = sync();
                if synced.is_ok() {
                    reached.on_disk.fetch_max(upto, Ordering::SeqCst);
                }
                synced
            }
        };
        for wanted in all {
            (wanted.answer)(&outcome);
        }
    }
}

/// The write-ahead log.
struct Log {
    sync: Box<dyn FnMut() -> std::io::Result<()> + Send>,
    connection: Connection,
    /// A sync has failed, and the log may have a hole on disk.
    is_doubtful: bool,
}

impl Log {
    fn sync(&mut self) -> Result<(), String> {
        if !self.is_doubtful {
            let Err(error) = (self.sync)() else { return Ok(()) };
            tracing::error!(%error, "the store cannot sync its log");
            self.is_doubtful = true;
        }
        // The next sync could succeed without what this one did not write, and what follows the hole would be lost with it. So the
        // content of the log is put in the database, and the log is emptied.
        let emptied = self
            .connection
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        match emptied {
            Ok(0) => {
                self.is_doubtful = false;
                Ok(())
            }
            Ok(_) => Err("its log cannot be synced, nor emptied while it is read".into()),
            Err(error) => Err(format!("its log cannot be synced, nor emptied: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::sqlite::schema;
    use std::sync::atomic::AtomicBool;

    fn ask(disk: &Disk, upto: u64, is_forced: bool) -> Result<(), String> {
        let (answer, answered) = mpsc::channel();
        let send = move |outcome: &Result<(), String>| answer.send(outcome.clone()).unwrap();
        disk.want(upto, is_forced, Box::new(send));
        answered.recv().unwrap()
    }

    /// A disk whose syncs are counted, and fail at will.
    fn counted(is_failing: &Arc<AtomicBool>) -> (Disk, Arc<AtomicU64>) {
        let (wanted, requests) = mpsc::channel();
        let reached = Arc::new(Reached::default());
        let (syncs, ours) = (Arc::new(AtomicU64::new(0)), Arc::clone(&reached));
        let (counted, is_failing) = (Arc::clone(&syncs), Arc::clone(is_failing));
        let sync = move || {
            counted.fetch_add(1, Ordering::SeqCst);
            match is_failing.load(Ordering::SeqCst) {
                true => Err("no".into()),
                false => Ok(()),
            }
        };
        std::thread::spawn(move || serve(&requests, &ours, sync));
        (Disk { wanted, reached }, syncs)
    }

    #[test]
    fn a_sync_covers_what_was_committed_before_and_nothing_that_failed() {
        let is_failing = Arc::new(AtomicBool::new(false));
        let (disk, syncs) = counted(&is_failing);
        let count = || syncs.load(Ordering::SeqCst);
        disk.committed(5);
        assert!(!disk.has(1));
        ask(&disk, 3, false).unwrap();
        assert!(disk.has(5) && !disk.has(6));
        ask(&disk, 5, false).unwrap();
        assert_eq!(count(), 1, "it was on disk");
        ask(&disk, 5, true).unwrap();
        assert_eq!(count(), 2, "a forced sync is made all the same");
        disk.committed(7);
        is_failing.store(true, Ordering::SeqCst);
        assert_eq!(ask(&disk, 6, false), Err("no".into()));
        assert!(!disk.has(6));
        is_failing.store(false, Ordering::SeqCst);
        // As of another process, whose commits are not noted here.
        ask(&disk, 9, false).unwrap();
        assert!(disk.has(9) && !disk.has(10));
    }

    #[test]
    fn a_log_that_was_not_synced_is_emptied_before_it_counts_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let connection = schema::open(&path).unwrap();
        let length = || std::fs::metadata(folder.path().join("db-wal")).unwrap().len();
        assert!(length() > 0);
        let mut left = 1;
        let sync = move || {
            left -= 1;
            if left < 0 { Ok(()) } else { Err(std::io::Error::other("a broken disk")) }
        };
        let other = schema::connect(&path).unwrap();
        let mut log = Log { sync: Box::new(sync), connection: other, is_doubtful: false };
        // A reader keeps it from being emptied.
        let reader = schema::connect(&path).unwrap();
        log.connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        let transaction = reader.unchecked_transaction().unwrap();
        schema::counter(&transaction).unwrap();
        assert!(log.sync().unwrap_err().contains("nor emptied"));
        assert!(log.sync().unwrap_err().contains("nor emptied"), "a later sync proves nothing");
        drop(transaction);
        log.sync().unwrap();
        assert_eq!(length(), 0);
        assert_eq!(schema::counter(&connection).unwrap(), 0);
        log.sync().unwrap();
    }
}
