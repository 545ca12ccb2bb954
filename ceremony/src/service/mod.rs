//! The service of a ceremony: its files, a queue of contributors, uploads and their verdicts (spec: ceremony#service).
//!
//! The service is trusted with admission only. The state of the queue is a file that is replaced at each change. An upload grows until
//! it is complete, and is then checked, even if the service is killed in between.

mod invitations;
mod problem;
mod queue;
mod routes;
mod serve;
#[cfg(test)]
mod tests;
mod uploads;
mod verdicts;

pub(crate) use serve::run;

use crate::body::{ChainBody, SlotBody, StatusBody};
use hekaton_ceremony::{Coordinator, Genesis};
use hekaton_files::{NewFile, SECRET, read_at_most};
use hekaton_service::Problem;
use hekaton_terminal::exit::{self, Failure, OrFail};
use queue::{Admission, Event, Queue, Stage, Time, millis};
use std::collections::{BTreeMap, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

/// The largest file of a queue that is read.
const QUEUE_LIMIT: u64 = 64 << 20;

/// The reason why the queue's lock cannot be poisoned.
const HELD: &str = "no thread panics while it holds the queue";

/// The state that all requests and the thread of verdicts share.
#[derive(Debug)]
pub(crate) struct Service {
    /// The directory of the transcript.
    directory: PathBuf,
    genesis: Genesis,
    /// The digest of the genesis, which everybody asks for.
    digest: String,
    finished: bool,
    admission: Admission,
    deadline: Duration,
    shared: Mutex<Shared>,
    /// Wakes the thread of verdicts.
    work: Condvar,
    /// The tokens of uploads that a request works on: one at a time.
    uploading: Mutex<HashSet<String>>,
}

#[derive(Debug)]
struct Shared {
    queue: Queue,
    chains: Vec<ChainBody>,
    /// The tokens of contributions that the service could not check because of a problem of its own.
    troubled: HashSet<String>,
    /// `true` while the queue cannot be written, which is logged once.
    failing: bool,
    stopping: bool,
}

pub(crate) fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    millis(since.expect("this year is after 1970"))
}

/// The ends of all chains.
fn ends(coordinator: &Coordinator) -> Vec<ChainBody> {
    let transcript = &coordinator.transcript;
    let ends = transcript.logs.iter().map(|log| ChainBody {
        chain: log.chain.to_string(),
        records: log.records.len(),
        head: hex::encode(transcript.head(log.chain)),
    });
    ends.collect()
}

/// The file of the queue.
fn queue_path(directory: &Path) -> PathBuf {
    directory.join("incoming").join("slots.json")
}

fn read_queue(path: &Path) -> Result<Queue, Failure> {
    let bytes = match read_at_most(path, QUEUE_LIMIT) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Queue::new()),
        other => other.or_fail(exit::BAD_FILE)?,
    };
    let bad = |why: &dyn std::fmt::Display| {
        let why = format!(
            "{}: {why}; if you remove this file, contributors have to queue again, and used invitations become valid again",
            path.display()
        );
        Failure::new(exit::BAD_FILE, why)
    };
    let queue: Queue = serde_json::from_slice(&bytes).map_err(|e| bad(&e))?;
    match queue.version() == Queue::VERSION {
        true => Ok(queue),
        false => {
            Err(bad(&format!("a queue of another version: this program reads {}", Queue::VERSION)))
        }
    }
}

/// Writes the queue, readable by its owner only, since it contains tokens.
fn write_queue(path: &Path, queue: &Queue) -> std::io::Result<()> {
    let bytes = serde_json::to_vec_pretty(queue).expect("a queue has texts and numbers");
    let mut file = NewFile::with_mode(path, SECRET)?;
    file.write_all(&bytes)?;
    file.replace(path)
}

impl Service {
    /// The service of a directory that this process has locked.
    fn new(
        coordinator: &Coordinator,
        admission: Admission,
        deadline: Duration,
    ) -> Result<Self, Failure> {
        let directory = coordinator.transcript.path.clone();
        let incoming = directory.join("incoming");
        let in_incoming = |e: std::io::Error| format!("{}: {e}", incoming.display());
        std::fs::create_dir_all(&incoming).map_err(in_incoming).or_fail(exit::BAD_FILE)?;
        let mut queue = read_queue(&queue_path(&directory))?;
        queue.resume(now(), deadline);
        if coordinator.is_finished() {
            queue.close();
        }
        let shared = Shared {
            queue,
            chains: ends(coordinator),
            troubled: HashSet::new(),
            failing: false,
            stopping: false,
        };
        let service = Self {
            directory,
            digest: hex::encode(coordinator.transcript.genesis.digest()),
            genesis: coordinator.transcript.genesis.clone(),
            finished: coordinator.is_finished(),
            admission,
            deadline,
            shared: Mutex::new(shared),
            work: Condvar::new(),
            uploading: Mutex::default(),
        };
        service.remove_uploads(&service.lock()).map_err(in_incoming).or_fail(exit::BAD_FILE)?;
        Ok(service)
    }

    /// Removes uploads whose slot has ended, or whose deadline has passed.
    fn remove_uploads(&self, shared: &Shared) -> std::io::Result<()> {
        let incoming = self.directory.join("incoming");
        let now = now();
        for entry in std::fs::read_dir(incoming)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let wanted = match shared.queue.find(&name).map(|slot| &slot.stage) {
                Some(Stage::Active { until, .. }) => *until > now,
                Some(Stage::Complete) => true,
                _ => false,
            };
            if queue::is_token(&name) && !wanted || hekaton_files::is_temporary(&name) {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().expect(HELD)
    }

    /// The file of an upload.
    fn upload(&self, token: &str) -> PathBuf {
        self.directory.join("incoming").join(token)
    }

    /// Changes the queue, on disk first, so that no answer has to be taken back.
    fn change<T>(
        &self,
        shared: &mut Shared,
        change: impl FnOnce(&mut Queue) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let mut queue = shared.queue.clone();
        let changed = change(&mut queue)?;
        let events = queue.advance(now(), self.deadline);
        if queue != shared.queue {
            if let Err(error) = write_queue(&queue_path(&self.directory), &queue) {
                if !shared.failing {
                    tracing::error!(%error, "the queue cannot be written");
                }
                shared.failing = true;
                let why = "the service cannot write its queue; its log has the reason";
                return Err(Problem::new(problem::UNAVAILABLE, why));
            }
            shared.failing = false;
            shared.queue = queue;
        }
        for event in events {
            match event {
                Event::Turn { name } => tracing::info!(name, "it is a contributor's turn"),
                Event::Expired { name } => {
                    tracing::info!(name, "the deadline of a contributor has passed")
                }
                Event::Left { name } => tracing::info!(name, "a contributor has left the queue"),
            }
        }
        self.work.notify_all();
        Ok(changed)
    }

    /// Ends what has expired, and removes its upload.
    fn tick(&self) {
        let mut shared = self.lock();
        // First, since uploads may fill the disk, so that the queue cannot be written. Removals that fail are repeated later.
        let _ = self.remove_uploads(&shared);
        // The log has the reason, and the next tick tries again.
        let _ = self.change(&mut shared, |_| Ok(()));
    }

    /// The answer for a slot.
    fn body(&self, shared: &Shared, token: &str) -> Result<SlotBody, Problem> {
        let slot = shared.queue.find(token).ok_or_else(|| {
            Problem::new(
                problem::NOT_FOUND,
                "there is no slot with this token, or it no longer exists",
            )
        })?;
        let heads: BTreeMap<String, String> = (shared.chains.iter())
            .filter(|end| slot.chains.contains(&end.chain))
            .map(|end| (end.chain.clone(), end.head.clone()))
            .collect();
        let received = match std::fs::metadata(self.upload(token)) {
            Ok(file) => file.len(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => 0,
            Err(e) => return Err(Problem::hidden(problem::UNAVAILABLE, e)),
        };
        let body = shared.queue.body(slot, now(), heads, received);
        Ok(match body {
            SlotBody::Verifying { ask_again, .. } if shared.troubled.contains(token) => {
                let trouble = "the service cannot check it now, and will try again";
                SlotBody::Verifying { ask_again, trouble: Some(trouble.to_owned()) }
            }
            other => other,
        })
    }

    fn status(&self) -> StatusBody {
        let shared = self.lock();
        let stages = || shared.queue.slots.iter().map(|slot| &slot.stage);
        StatusBody {
            ceremony: self.digest.clone(),
            title: self.genesis.title(),
            finished: self.finished,
            invited: self.admission != Admission::Open,
            chains: shared.chains.clone(),
            waiting: stages().filter(|stage| **stage == Stage::Waiting).count(),
            active: stages()
                .filter(|stage| matches!(stage, Stage::Active { .. } | Stage::Complete))
                .count(),
            deadline: self.deadline.as_secs(),
        }
    }

    /// Wakes the thread of verdicts, which ends.
    fn stop(&self) {
        // Even if a thread panicked while it held the lock: the others must end.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).stopping = true;
        self.work.notify_all();
    }
}

type Handle = Arc<Service>;
