//! The lease on a run directory: at most one process works in it.
//!
//! `lease.json` names its holder: host, machine, process, a random token, and a heartbeat that the holder counts up in
//! place. Nothing here reads a wall clock. Whether a holder lives is told by its process, on the same machine, or by
//! watching the heartbeat for the whole deadline, from another one. Who takes a lease over renames a new file into the
//! place of the old one; the old holder still writes its heartbeat into the old file, where it harms nobody, and sees
//! before its next record that the name is not its own any more.

use crate::error::RunError;
use hekaton_core::system::host;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const VERSION: u32 = 1;
/// How often a contender looks.
const POLL: Duration = Duration::from_millis(100);
/// How often a look at the lease is tried when it fails.
const ATTEMPTS: u32 = 50;
/// The longest file that is read as a lease.
const LIMIT: u64 = 4096;

/// Who holds a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LeaseHolder {
    format_version: u32,
    /// Name of the machine.
    host: String,
    /// Identity of the running machine or container.
    machine: String,
    /// Process identifier.
    pid: u32,
    /// When the process started, in the machine's own count; identifiers are used again.
    process_start: u64,
    /// Random, of this lease alone.
    token: String,
    /// Seconds without a heartbeat after which the holder counts as dead.
    deadline_seconds: u64,
    /// Counts up; 20 digits, so that it is written in place.
    heartbeat: String,
}

impl std::fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

/// Two processes with the same one see each other's process identifiers.
fn machine() -> Option<String> {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// When a live process started; `None` when there is none (a zombie is none).
fn process_start(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // the name may hold anything but ends with the last parenthesis
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    fields.get(19)?.parse().ok()
}

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

/// Files that are synced, and the first error of it: the system tells an error once, so it is kept. Two locks: who asks
/// for the error does not wait for a slow disk.
#[derive(Debug, Default)]
struct Synced {
    files: Mutex<Vec<File>>,
    error: Mutex<Option<(std::io::ErrorKind, String)>>,
}

/// A lease that this process holds; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    path: PathBuf,
    token: String,
    lost: Arc<AtomicBool>,
    /// what the heart makes safe against a power failure with each beat
    synced: Arc<Synced>,
    stop: Option<mpsc::Sender<()>>,
    heart: Option<std::thread::JoinHandle<()>>,
}

impl Lease {
    /// Takes the lease on a directory, or says who holds it. `notices` gets what was taken over.
    pub(crate) fn acquire(
        directory: &Path,
        deadline: Duration,
        notices: &mut Vec<String>,
    ) -> Result<Self, RunError> {
        let path = directory.join("lease.json");
        let io = |source| RunError::Io { path: path.clone(), source };
        let mut token = [0u8; 16];
        getrandom::fill(&mut token).map_err(|e| io(std::io::Error::other(e)))?;
        let holder = LeaseHolder {
            format_version: VERSION,
            host: host(),
            machine: machine().unwrap_or_default(),
            pid: std::process::id(),
            process_start: process_start(std::process::id()).unwrap_or_default(),
            token: hex::encode(token),
            deadline_seconds: deadline.as_secs().max(1),
            heartbeat: beat(0),
        };
        loop {
            let Some(found) = read(&path).map_err(io)? else {
                match place(&path, &holder, false) {
                    Ok(file) => return Self::hold(path, holder, file),
                    // somebody was quicker
                    Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => continue,
                    Err(e) => return Err(io(e)),
                }
            };
            let other: Option<LeaseHolder> = serde_json::from_slice(&found).ok();
            if !is_stale(&path, &found, other.as_ref(), deadline)? {
                continue;
            }
            // Of several contenders one takes over: the others find its lease under the lock.
            let lock = File::create(directory.join("lease.lock")).map_err(io)?;
            // A file system without locks leaves the last one to rename: the others see that before they write.
            let _ = lock.lock();
            if found == read(&path).map_err(io)?.unwrap_or_default() {
                let whose = other.map_or_else(
                    || "an unreadable lease".to_owned(),
                    |o| format!("the lease of {o}, which is gone,"),
                );
                let file = place(&path, &holder, true).map_err(io)?;
                notices.push(format!("{whose} is taken over"));
                return Self::hold(path, holder, file);
            }
        }
    }

    fn hold(path: PathBuf, holder: LeaseHolder, file: File) -> Result<Self, RunError> {
        let (stop, stopped) = mpsc::channel();
        let lost = Arc::new(AtomicBool::new(false));
        let period = Duration::from_secs(holder.deadline_seconds) / 6;
        let token = holder.token.clone();
        let synced: Arc<Synced> = Arc::default();
        let heart = {
            let (lost, path, synced) = (lost.clone(), path.clone(), synced.clone());
            std::thread::Builder::new().name("lease".into()).spawn(move || {
                let (mut file, mut holder, mut count) = (file, holder, 0);
                while stopped.recv_timeout(period) == Err(mpsc::RecvTimeoutError::Timeout) {
                    // an error says nothing about whose it is
                    if is_mine(&path, &holder.token).is_ok_and(|mine| !mine) {
                        lost.store(true, Ordering::SeqCst);
                        return;
                    }
                    count += 1;
                    holder.heartbeat = beat(count);
                    // In place, in our own file: a full disk does not stop it, and it can't touch another's lease.
                    let _ = file
                        .seek(SeekFrom::Start(0))
                        .and_then(|_| file.write_all(&encode(&holder)));
                    // else a file server may not hear of it for longer than the deadline
                    let _ = file.sync_data();
                    // after the beat: a slow disk must not look like a dead holder
                    let failed = synced
                        .files
                        .lock()
                        .ok()
                        .and_then(|files| files.iter().find_map(|file| file.sync_data().err()));
                    if let (Some(e), Ok(mut error)) = (failed, synced.error.lock()) {
                        error.get_or_insert((e.kind(), e.to_string()));
                    }
                }
            })
        };
        let heart = heart.map_err(|source| RunError::Io { path: path.clone(), source })?;
        Ok(Self { path, token, lost, synced, stop: Some(stop), heart: Some(heart) })
    }

    /// From now on a file outlives a power failure but for what was written since the last beat.
    pub(crate) fn keep_synced(&self, file: File) {
        if let Ok(mut files) = self.synced.files.lock() {
            files.push(file);
        }
    }

    /// Fails when what was written did not reach the disk.
    pub(crate) fn check_synced(&self) -> Result<(), RunError> {
        match self.synced.error.lock().ok().and_then(|error| error.clone()) {
            None => Ok(()),
            Some((kind, message)) => Err(RunError::Io {
                path: self.path.clone(),
                source: std::io::Error::new(kind, message),
            }),
        }
    }

    /// Fails when another process took the lease over, or when it can't be told for a while.
    pub(crate) fn check(&self) -> Result<(), RunError> {
        if !self.lost.load(Ordering::SeqCst) {
            for attempt in 1.. {
                match is_mine(&self.path, &self.token) {
                    Ok(true) => return Ok(()),
                    Ok(false) => break,
                    // a file server that hiccups has not given the lease away
                    Err(_) if attempt < ATTEMPTS => std::thread::sleep(POLL),
                    Err(source) => return Err(RunError::Io { path: self.path.clone(), source }),
                }
            }
        }
        self.lost.store(true, Ordering::SeqCst);
        let holder = read(&self.path)
            .ok()
            .flatten()
            .and_then(|bytes| serde_json::from_slice::<LeaseHolder>(&bytes).ok());
        let holder = holder.map_or_else(|| "another process".to_owned(), |h| h.to_string());
        Err(RunError::Lost { path: self.path.clone(), holder })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(heart) = self.heart.take() {
            let _ = heart.join();
        }
        // nobody takes it over between the look and the removal
        let lock = self
            .path
            .parent()
            .and_then(|directory| File::create(directory.join("lease.lock")).ok());
        let _ = lock.as_ref().map(File::lock);
        if is_mine(&self.path, &self.token).unwrap_or(false) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn beat(count: u64) -> String {
    format!("{count:020}")
}

fn encode(holder: &LeaseHolder) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(holder).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

/// Puts a lease in its place: over another one, or only where none is.
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

fn is_mine(path: &Path, token: &str) -> std::io::Result<bool> {
    // A new open, not the file we have: that is what asks a file server what the name stands for now.
    let content = read(path)?.unwrap_or_default();
    Ok(content.windows(token.len()).any(|w| w == token.as_bytes()))
}

/// Whether a found lease has no live holder; `false` when it changed or went away meanwhile.
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
    // said at once: this takes a while
    tracing::warn!(
        "the run is held by {who}: watching its heartbeat for up to {} s",
        wait.as_secs()
    );
    let since = Instant::now();
    while since.elapsed() < wait {
        std::thread::sleep(POLL);
        let now = read(path)
            .map_err(|source| RunError::Io { path: path.to_owned(), source })?
            .unwrap_or_default();
        if now == found {
            continue;
        }
        return match serde_json::from_slice::<LeaseHolder>(&now) {
            // it beats
            Ok(holder) if other.is_some_and(|o| o.token == holder.token) => Err(held(&holder)),
            _ => Ok(false),
        };
    }
    Ok(true)
}
