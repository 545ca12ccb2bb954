//! The lease on a run directory: at most one process works in it.
//!
//! `lease.json` names the holder: host, machine, process, a random token, and a heartbeat that the
//! holder counts up in place. Nothing here reads a wall clock. On the same machine, a holder is
//! alive if its process is; from another machine, a contender watches the heartbeat for the whole
//! deadline. To take a lease over, a contender renames a new file over the old one. The former
//! holder still writes its heartbeat into the old file, where it does no harm, and notices before
//! its next record that the name is no longer its own.

use crate::error::RunError;
use hekaton_core::system::host;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::{Duration, Instant};

const VERSION: u32 = 1;
/// The interval at which a contender looks at the lease.
const POLL: Duration = Duration::from_millis(100);
/// The number of attempts to read the lease before an error counts: five seconds, so that
/// a short outage of a file server does not end a run.
const ATTEMPTS: u32 = 50;
/// The maximum number of bytes read from a lease.
const LIMIT: u64 = 4096;

/// The holder of a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseHolder {
    format_version: u32,
    /// The name of the machine.
    host: String,
    /// The identity of the running machine or container.
    machine: String,
    /// The process identifier.
    pid: u32,
    /// The start time of the process in clock ticks since boot: process identifiers are reused.
    process_start: u64,
    /// Random and unique to this lease.
    token: String,
    /// The number of seconds without a heartbeat after which the holder counts as dead.
    deadline_seconds: u64,
    /// A counter with 20 digits, a fixed width so that it can be overwritten in place.
    heartbeat: String,
}

impl std::fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// The identity of this machine or container. Two processes with the same identity see each other's process
/// identifiers.
fn machine() -> Option<String> {
    // Containers on one machine share the boot id, but not the process identifiers.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// The start time of a live process; `None` if there is none. A zombie is not alive.
fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The process name may contain anything, but it ends at the last parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

/// Reads a lease; `None` if there is none.
fn read(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    use std::io::Read;
    match File::open(path) {
        Ok(file) => {
            let mut bytes = Vec::new();
            file.take(LIMIT).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Files to sync, and the first error in doing so, which is kept because the operating system
/// reports an error only once. There are two locks so that asking for the error does not wait for a
/// slow disk.
#[derive(Debug, Default)]
struct Synced {
    files: Mutex<Vec<File>>,
    error: Mutex<Option<(std::io::ErrorKind, String)>>,
}

/// A lease that this process holds and releases on drop.
#[derive(Debug)]
pub(crate) struct Lease {
    path: PathBuf,
    token: String,
    lost: Arc<AtomicBool>,
    /// Files that the heartbeat thread syncs, so that they survive a power failure.
    synced: Arc<Synced>,
    stop: Option<mpsc::Sender<()>>,
    heart: Option<std::thread::JoinHandle<()>>,
}

impl Lease {
    /// Takes the lease on a directory, or returns an error that names the holder. `notices` receives a note
    /// about a lease that was taken over.
    pub(crate) fn acquire(
        directory: &Path,
        deadline: Duration,
        notices: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        let path = directory.join("lease.json");
        let io = |error| RunError::Io { path: path.clone(), error };
        let mut token = [0u8; 16];
        getrandom::fill(&mut token).map_err(|e| io(std::io::Error::other(e)))?;
        // Without /proc both are unknown, and contenders watch the heartbeat. A machine without the start of
        // the process would let a contender on it take the live holder for a dead one.
        let (machine, process_start) =
            machine().zip(process_start(std::process::id())).unwrap_or_else(|| (String::new(), 0));
        let holder = LeaseHolder {
            format_version: VERSION,
            host: host(),
            machine,
            pid: std::process::id(),
            process_start,
            token: hex::encode(token),
            deadline_seconds: deadline.as_secs().max(1),
            heartbeat: beat(0),
        };
        loop {
            let Some(found) = read(&path).map_err(io)? else {
                match place(&path, &holder, false) {
                    Ok(file) => return Self::hold(path, holder, file),
                    // another process was faster
                    Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
                    Err(e) => return Err(io(e)),
                }
            };
            let other: Option<LeaseHolder> = serde_json::from_slice(&found).ok();
            if !is_stale(&path, &found, other.as_ref(), deadline)? {
                continue;
            }
            // Only one of several contenders takes over: the others find its lease under the lock.
            let lock_file = File::create(directory.join("lease.lock")).map_err(io)?;
            // On a file system without locks the last rename wins; the other contenders notice
            // before they write a record.
            let _ = lock_file.lock();
            if read(&path).map_err(io)?.is_some_and(|now| now == found) {
                let whose = other.map_or_else(
                    || "an unreadable lease".to_owned(),
                    |o| format!("the lease of {o}, which no longer runs"),
                );
                let file = place(&path, &holder, true).map_err(io)?;
                notices.push(format!("took over {whose}"));
                return Self::hold(path, holder, file);
            }
        }
    }

    /// Starts the heartbeat.
    fn hold(path: PathBuf, holder: LeaseHolder, file: File) -> Result<Self, RunError> {
        let (stop, stopped) = mpsc::channel();
        let lost = Arc::new(AtomicBool::new(false));
        let period = Duration::from_secs(holder.deadline_seconds) / 6;
        let token = holder.token.clone();
        let synced: Arc<Synced> = Arc::default();
        let spawned = {
            let (lost, path, synced) = (lost.clone(), path.clone(), synced.clone());
            std::thread::Builder::new().name("lease".into()).spawn(move || {
                let (mut file, mut holder, mut count) = (file, holder, 0);
                while stopped.recv_timeout(period) == Err(mpsc::RecvTimeoutError::Timeout) {
                    // An error, as of a file server that restarts, does not mean that the lease was lost.
                    if is_mine(&path, &holder.token).is_ok_and(|mine| !mine) {
                        lost.store(true, Ordering::SeqCst);
                        return;
                    }
                    count += 1;
                    holder.heartbeat = beat(count);
                    // Written in place into our own file: a full disk does not stop it, and it
                    // cannot touch the lease of another process.
                    let _ = file
                        .seek(SeekFrom::Start(0))
                        .and_then(|_| file.write_all(&encode(&holder)));
                    // Otherwise the beat might not reach a file server before the deadline.
                    let _ = file.sync_data();
                    // After the beat, so that a slow disk does not look like a dead holder.
                    let failed = lock(&synced.files).iter().find_map(|file| file.sync_data().err());
                    if let Some(e) = failed {
                        lock(&synced.error).get_or_insert((e.kind(), e.to_string()));
                    }
                }
            })
        };
        let heart = spawned.map_err(|error| RunError::Io { path: path.clone(), error })?;
        Ok(Self { path, token, lost, synced, stop: Some(stop), heart: Some(heart) })
    }

    /// Syncs a file with every beat from now on: a power failure then costs at most what was
    /// written since the last beat.
    pub(crate) fn keep_synced(&self, file: File) {
        lock(&self.synced.files).push(file);
    }

    /// Fails if data could not be written to disk.
    pub(crate) fn check_synced(&self) -> Result<(), RunError> {
        match lock(&self.synced.error).clone() {
            None => Ok(()),
            Some((kind, message)) => Err(RunError::Io {
                path: self.path.clone(),
                error: std::io::Error::new(kind, message),
            }),
        }
    }

    /// Fails if another process took the lease over, or if the lease cannot be read for several
    /// seconds.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        if !self.lost.load(Ordering::SeqCst) {
            for attempt in 1.. {
                match is_mine(&self.path, &self.token) {
                    Ok(true) => return Ok(()),
                    Ok(false) => break,
                    // A transient error of a file server does not mean that the lease was lost.
                    Err(_) if attempt < ATTEMPTS => std::thread::sleep(POLL),
                    Err(error) => return Err(RunError::Io { path: self.path.clone(), error }),
                }
            }
        }
        self.lost.store(true, Ordering::SeqCst);
        // Only for the message: the lease is lost, even if the new one cannot be read.
        let now: Option<LeaseHolder> =
            (read(&self.path).ok().flatten()).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let holder = now.map_or_else(|| "another process".to_owned(), |h| h.to_string());
        Err(RunError::Lost { path: self.path.clone(), holder })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(heart) = self.heart.take() {
            let _ = heart.join();
        }
        // Under the lock, no contender can take the lease over between the check and the removal. Errors
        // are ignored: a lease that stays is taken over as that of a process that has ended.
        let file = self
            .path
            .parent()
            .and_then(|directory| File::create(directory.join("lease.lock")).ok());
        let _ = file.as_ref().map(File::lock);
        if is_mine(&self.path, &self.token).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Locks a value. A panic while it was locked leaves a whole list or error behind, and neither may be lost.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn beat(count: u64) -> String {
    format!("{count:020}")
}

fn encode(holder: &LeaseHolder) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(holder).expect("texts and numbers can be written as JSON");
    bytes.push(b'\n');
    bytes
}

/// Writes a lease: over the existing one if `replace`, otherwise only if there is none.
// Not with `hekaton_files`, since the file stays open for the heartbeat.
fn place(path: &Path, holder: &LeaseHolder, replace: bool) -> std::io::Result<File> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&encode(holder))?;
    file.as_file().sync_all()?;
    if replace {
        file.persist(path).map_err(|e| e.error)
    } else {
        file.persist_noclobber(path).map_err(|e| e.error)
    }
}

/// Reports whether the lease at the path still has our token.
fn is_mine(path: &Path, token: &str) -> std::io::Result<bool> {
    // Opens the path again instead of using our file, so that a file server looks the name up
    // again.
    let has_token = |content: Vec<u8>| content.windows(token.len()).any(|w| w == token.as_bytes());
    Ok(read(path)?.is_some_and(has_token))
}

/// Reports whether a lease has no live holder; `false` if it changed or disappeared in the
/// meantime.
///
/// # Errors
/// If the holder is alive.
fn is_stale(
    path: &Path,
    found: &[u8],
    other: Option<&LeaseHolder>,
    deadline: Duration,
) -> Result<bool, RunError> {
    let held =
        |holder: &LeaseHolder| RunError::Held { path: path.to_owned(), holder: holder.to_string() };
    if let Some(other) = other
        && machine().is_some_and(|m| m == other.machine)
    {
        return match process_start(other.pid) {
            Some(start) if start == other.process_start => Err(held(other)),
            _ => Ok(true),
        };
    }
    let wait = other.map_or(deadline, |o| Duration::from_secs(o.deadline_seconds.clamp(1, 600)));
    let who = other.map_or_else(|| "an unreadable lease".to_owned(), ToString::to_string);
    // Logged up front, because this takes a while.
    tracing::warn!(
        "the run is held by {who}: watching its heartbeat for up to {} s",
        wait.as_secs()
    );
    let since = Instant::now();
    while since.elapsed() < wait {
        std::thread::sleep(POLL);
        let now = read(path).map_err(|error| RunError::Io { path: path.to_owned(), error })?;
        let Some(now) = now else { return Ok(false) };
        if now == found {
            continue;
        }
        return match serde_json::from_slice::<LeaseHolder>(&now) {
            // the heartbeat changed: the holder is alive
            Ok(holder) if other.is_some_and(|o| o.token == holder.token) => Err(held(&holder)),
            _ => Ok(false),
        };
    }
    Ok(true)
}
