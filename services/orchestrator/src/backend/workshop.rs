//! Runs tasks with back-ends: finds their inputs, watches their progress, verifies and stores what they make.

use super::{Backend, Outcome, Output, Rejected, Work};
use crate::blobs::{BlobError, Blobs};
use crate::clock::Clock;
use crate::id::Name;
use crate::record::{Task, TaskKey, TaskState, read};
use crate::runner::{Attempt, Claimed, Progress, Report, Runner};
use crate::store::Store;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The file in a task's folder that holds the task's key.
const OWNER: &str = "task";

/// For how long the folders of tasks that are dead or cancelled are kept, as they may be requeued.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3_600);

/// The largest output, in bytes.
const MAX_OUTPUT: u64 = 1 << 30;

/// Back-ends with their files.
pub(crate) struct Workshop {
    pub(crate) backends: BTreeMap<Name, Arc<dyn Backend>>,
    pub(crate) blobs: Blobs,
    /// A folder for each task, which all machines share.
    pub(crate) spool: PathBuf,
    pub(crate) clock: Clock,
}

/// When a run reported last.
#[derive(Debug)]
struct Watched {
    progress: Progress,
    clock: Clock,
    last: Mutex<Duration>,
}

impl Report for Watched {
    fn report(&self, part: f32) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = self.clock.monotonic();
        self.progress.report(part);
    }

    fn phase(&self, name: &str, from: u64, to: u64) {
        self.progress.phase(name, from, to);
    }
}

#[async_trait]
impl Runner for Workshop {
    async fn run(
        &self,
        claimed: &Claimed<'_>,
        cancel: &CancellationToken,
        progress: &Progress,
    ) -> Attempt {
        let &Claimed { key, task, epoch } = claimed;
        let Some(backend) = self.backends.get(&task.backend) else {
            return Attempt::Again(format!("there is no back-end '{}' here", task.backend));
        };
        let folder = self.folder(task);
        if let Err(why) = self.prepare(key, task, backend.uses_folder().then_some(&folder)).await {
            return why;
        }
        let inputs = task.inputs.iter().map(|input| self.blobs.path(input)).collect();
        let work = Work { task, epoch, inputs, folder };
        let watched = Arc::new(Watched {
            progress: progress.clone(),
            clock: self.clock.clone(),
            last: Mutex::new(self.clock.monotonic()),
        });
        let progress = Progress(Arc::clone(&watched) as Arc<dyn Report>);
        let outcome = tokio::select! {
            biased;
            outcome = backend.run(&work, cancel, &progress) => outcome,
            () = self.stalled(&watched, task) => {
                let why = format!("it made no progress for {} s", task.limits.stall_seconds);
                backend.abandon(&work.folder).await;
                return Attempt::Failed(why);
            }
        };
        let output = match outcome {
            Outcome::Done(output) => output,
            Outcome::Failed(why) => return Attempt::Failed(why),
            Outcome::Impossible(why) => return Attempt::Impossible(why),
            Outcome::Again(why) => return Attempt::Again(why),
        };
        // What is verified is a copy that nobody else writes, and what is stored is the same copy.
        let not_stored = |why: String| Attempt::Again(format!("its output was not stored: {why}"));
        let copied = {
            let blobs = self.blobs.clone();
            let copy = move || match output {
                Output::File(path) => blobs.copy(&path, MAX_OUTPUT),
                Output::Bytes(bytes) => {
                    let mut copy = blobs.begin(MAX_OUTPUT)?;
                    copy.write(&bytes)?;
                    Ok(copy)
                }
            };
            tokio::task::spawn_blocking(copy).await
        };
        let copy = match copied {
            Ok(Ok(copy)) => copy,
            Ok(Err(BlobError::TooLarge { limit })) => {
                return Attempt::Impossible(format!("its output has more than {limit} bytes"));
            }
            Ok(Err(error)) => return not_stored(error.to_string()),
            Err(error) => return not_stored(error.to_string()),
        };
        let from = self.clock.wall();
        let verified = backend.verify(&work, copy.path()).await;
        progress.phase("verify", from, self.clock.wall());
        match verified {
            Ok(()) => {}
            Err(Rejected::Wrong(why)) => return Attempt::Wrong(why),
            Err(Rejected::Unverified(why)) => {
                return Attempt::Failed(format!("its output could not be verified: {why}"));
            }
        }
        match tokio::task::spawn_blocking(move || copy.finish()).await {
            Ok(Ok(digest)) => Attempt::Done(digest),
            Ok(Err(error)) => not_stored(error.to_string()),
            Err(error) => not_stored(error.to_string()),
        }
    }

    async fn abandon(&self, task: &Task) {
        if let Some(backend) = self.backends.get(&task.backend) {
            backend.abandon(&self.folder(task)).await;
        }
    }

    fn settled(&self, task: &Task) {
        if self.backends.get(&task.backend).is_some_and(|backend| backend.uses_folder()) {
            let _ = std::fs::remove_dir_all(self.folder(task));
        }
    }
}

impl Workshop {
    fn folder(&self, task: &Task) -> PathBuf {
        self.spool.join(task.id.to_string())
    }

    /// Checks the inputs and makes the folder, if one is used.
    async fn prepare(
        &self,
        key: TaskKey,
        task: &Task,
        folder: Option<&PathBuf>,
    ) -> Result<(), Attempt> {
        let (blobs, inputs, folder) = (self.blobs.clone(), task.inputs.clone(), folder.cloned());
        let prepared = tokio::task::spawn_blocking(move || {
            for input in &inputs {
                blobs.verify(input).map_err(|error| match error {
                    // Submitted again, they are there again.
                    BlobError::Missing(_) | BlobError::Damaged { .. } => {
                        Attempt::Failed(error.to_string())
                    }
                    error => Attempt::Again(error.to_string()),
                })?;
            }
            folder.map_or(Ok(()), |folder| {
                let made = std::fs::create_dir_all(&folder);
                made.and_then(|()| std::fs::write(folder.join(OWNER), key.to_string()))
                    .map_err(|error| Attempt::Again(format!("{}: {error}", folder.display())))
            })
        });
        prepared.await.unwrap_or_else(|error| Err(Attempt::Again(error.to_string())))
    }

    /// Removes the folders of tasks that nobody will run again, and ends what they have left running on other machines.
    pub(crate) async fn tidy(&self, store: &dyn Store) {
        let Ok(folders) = std::fs::read_dir(&self.spool) else { return };
        for folder in folders.flatten().map(|folder| folder.path()) {
            let owner = std::fs::read_to_string(folder.join(OWNER)).ok();
            let Some(key) = owner.and_then(|key| key.parse::<TaskKey>().ok()) else { continue };
            let Ok(Some(task)) = read::<Task>(store, &key.to_string()).await else { continue };
            let task = task.value;
            // A folder with the name of another task was not made here, and other back-ends are for other processes.
            let backend = self.backends.get(&task.backend);
            let Some(backend) = backend.filter(|_| folder == self.folder(&task)) else { continue };
            let keep = match task.state {
                TaskState::Ready | TaskState::Leased { .. } => continue,
                TaskState::Done { .. } => false,
                TaskState::Dead { at, .. } | TaskState::Cancelled { at } => {
                    let age = Duration::from_millis(self.clock.wall().saturating_sub(at));
                    age < KEPT
                }
            };
            if backend.abandon(&folder).await && !keep {
                let _ = std::fs::remove_dir_all(&folder);
            }
        }
    }

    /// Waits until a run has made no progress for too long.
    async fn stalled(&self, watched: &Watched, task: &Task) {
        let limit = Duration::from_secs(task.limits.stall_seconds.into());
        loop {
            let last = *watched.last.lock().unwrap_or_else(PoisonError::into_inner);
            let quiet = self.clock.monotonic().saturating_sub(last);
            let Some(left) = limit.checked_sub(quiet).filter(|left| !left.is_zero()) else {
                return;
            };
            self.clock.sleep(left).await;
        }
    }
}
