//! The syncing thread: it puts the write-ahead log on disk, while others commit what comes next.
//!
//! A commit does not wait for the disk, so whatever follows from a write begins at once. The log is on disk up to some commit and no
//! further, so a crash of the machine loses the last writes, and none from before them. A request for a revision waits for the sync
//! that covers it, and one sync serves all requests that wait.

use super::log::Log;
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
    /// Syncs a log, and starts the thread that does so from then on.
    ///
    /// # Errors
    /// Fails if the log cannot be read or synced, or there is no thread.
    pub(super) fn start(mut log: Log) -> Result<Self, String> {
        let upto = log.counter().map_err(|error| error.to_string())?;
        // The revisions that were left out for those of lost writes must not be lost as well, or epochs would be used again. And what
        // processes read from before their start is then on disk, whatever becomes of it.
        log.sync()?;
        let (wanted, requests) = mpsc::channel();
        let reached = Arc::new(Reached { committed: upto.into(), on_disk: upto.into() });
        let ours = Arc::clone(&reached);
        std::thread::Builder::new()
            .name("sqlite-disk".into())
            .spawn(move || serve(&requests, &ours, || log.sync()))
            .map_err(|error| format!("its syncing thread: {error}"))?;
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

#[cfg(test)]
mod tests {
    use super::super::schema::{self, LEFT_OUT};
    use super::super::simulated::Simulated;
    use super::*;
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
    fn revisions_that_were_left_out_are_on_disk_before_any_is_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("db");
        let connection = schema::open(&path).unwrap();
        // All writes to a new database may have been lost.
        connection.execute("UPDATE state SET number = number + 1 WHERE name = 'boot'", ()).unwrap();
        drop(schema::open(&path).unwrap());
        let disk = Simulated::of(&path);
        let start =
            || Disk::start(Log::new(Box::new(disk.clone()), schema::connect(&path).unwrap()));
        disk.fail(true);
        assert!(start().unwrap_err().contains("a broken disk"));
        disk.fail(false);
        let started = start().unwrap();
        assert!(started.has(LEFT_OUT) && !started.has(LEFT_OUT + 1));
        let (_folder, found) = disk.after_power_cut(&path);
        assert_eq!(schema::counter(&found).unwrap(), LEFT_OUT);
    }
}
