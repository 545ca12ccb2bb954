//! Runs tasks with back-ends: finds their inputs, watches their progress, and verifies and stores their outputs.

use super::{Backend, Outcome, Output, Rejected, Work};
use crate::clock::Clock;
use crate::dispatch::{Attempt, Claimed, Progress, Report, Runner};
use crate::record::{Task, TaskKey, TaskState, read};
use crate::store::Store;
use async_trait::async_trait;
use hekaton_orchestrator_client::{BlobError, Blobs, Incoming, Name};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The file in a task's folder that holds the task's key.
const OWNER: &str = "task";

/// The time for which the folders of tasks that are dead or cancelled are kept, as they may be requeued.
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

/// The time of the last report of a run.
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
        // Tenants read why a task failed, and have no use for where the server keeps its files. Its log has the whole text.
        match self.attempt(claimed, cancel, progress).await {
            Attempt::Failed(why) => Attempt::Failed(self.without_place(why)),
            Attempt::Unfit(why) => Attempt::Unfit(self.without_place(why)),
            Attempt::Wrong(why) => Attempt::Wrong(self.without_place(why)),
            Attempt::Impossible(why) => Attempt::Impossible(self.without_place(why)),
            Attempt::Again(why) => Attempt::Again(self.without_place(why)),
            other => other,
        }
    }

    fn is_remote(&self, task: &Task) -> bool {
        self.backends.get(&task.backend).is_some_and(|backend| backend.is_remote())
    }

    async fn abandon(&self, task: &Task) {
        if let Some(backend) = self.backends.get(&task.backend) {
            backend.abandon(&self.folder(task)).await;
        }
    }

    fn settled(&self, task: &Task) {
        if self.backends.get(&task.backend).is_some_and(|backend| backend.uses_folder()) {
            // Only after the result is written: if the lease had been lost before, the next attempt
            // would have resumed from this folder.
            let _ = std::fs::remove_dir_all(self.folder(task));
        }
    }
}

impl Workshop {
    async fn attempt(
        &self,
        claimed: &Claimed<'_>,
        cancel: &CancellationToken,
        progress: &Progress,
    ) -> Attempt {
        let &Claimed { key, task, epoch } = claimed;
        let Some(backend) = self.backends.get(&task.backend) else {
            return Attempt::Again(format!("this process has no back-end '{}'", task.backend));
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
            // The stall is measured here and not by the back-end, which may be what hangs.
            () = self.stalled(&watched, task) => {
                let why = format!("it made no progress for {} s", task.limits.stall_seconds);
                backend.abandon(&work.folder).await;
                return Attempt::Unfit(why);
            }
        };
        let output = match outcome {
            Outcome::Done(output) => output,
            Outcome::Failed(why) => return Attempt::Failed(why),
            Outcome::Impossible(why) => return Attempt::Impossible(why),
            Outcome::Again(why) => return Attempt::Again(why),
        };
        self.keep(&**backend, &work, output, &progress).await
    }

    /// Verifies an output, and stores it as a blob.
    async fn keep(
        &self,
        backend: &dyn Backend,
        work: &Work<'_>,
        output: Output,
        progress: &Progress,
    ) -> Attempt {
        // Verifies and stores the same copy, which nothing else writes: a back-end that is still running could change its own file in
        // between.
        let copy = match self.copy(output).await {
            Ok(copy) => copy,
            Err(attempt) => return attempt,
        };
        let from = self.clock.wall();
        // Before the output gets its name as a blob: other processes trust the blobs that records name.
        let verified = backend.verify(work, copy.path()).await;
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
            Ok(Err(error)) => not_stored(error),
            Err(error) => not_stored(error),
        }
    }

    /// Copies an output, which is not a blob yet.
    async fn copy(&self, output: Output) -> Result<Incoming, Attempt> {
        let blobs = self.blobs.clone();
        let copy = move || match output {
            Output::File(path) => blobs.copy(&path, MAX_OUTPUT),
            Output::Bytes(bytes) => {
                let mut copy = blobs.begin(MAX_OUTPUT)?;
                copy.write(&bytes)?;
                Ok(copy)
            }
        };
        match tokio::task::spawn_blocking(copy).await {
            Ok(Ok(copy)) => Ok(copy),
            // The next attempt would make the same output.
            Ok(Err(BlobError::TooLarge { limit })) => {
                Err(Attempt::Impossible(format!("its output has more than {limit} bytes")))
            }
            Ok(Err(error)) => Err(not_stored(error)),
            Err(error) => Err(not_stored(error)),
        }
    }

    /// Removes the path of the service's own folder from a text.
    fn without_place(&self, why: String) -> String {
        let Some(place) = self.spool.parent().and_then(std::path::Path::to_str) else { return why };
        if why.contains(place) {
            tracing::warn!(why, "an attempt failed");
        }
        why.replace(&format!("{place}/"), "")
    }

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
                    // The submitter can repair this by sending the blobs again.
                    BlobError::Missing(_) | BlobError::Damaged { .. } => {
                        Attempt::Unfit(error.to_string())
                    }
                    error => Attempt::Again(error.to_string()),
                })?;
            }
            folder.map_or(Ok(()), |folder| {
                let made = std::fs::create_dir_all(&folder);
                // The folder is named by a digest, from which `tidy` could not find the task's
                // record.
                made.and_then(|()| std::fs::write(folder.join(OWNER), key.to_string()))
                    .map_err(|error| Attempt::Again(format!("{}: {error}", folder.display())))
            })
        });
        prepared.await.unwrap_or_else(|error| Err(Attempt::Again(error.to_string())))
    }

    /// Removes the folders of tasks that no process will run again, and ends what they have left running on other machines.
    pub(crate) async fn tidy(&self, store: &dyn Store) {
        let Ok(folders) = std::fs::read_dir(&self.spool) else { return };
        for folder in folders.flatten().map(|folder| folder.path()) {
            let owner = std::fs::read_to_string(folder.join(OWNER)).ok();
            let Some(key) = owner.and_then(|key| key.parse::<TaskKey>().ok()) else { continue };
            let Ok(Some(stored)) = read::<Task>(store, &key.to_string()).await else { continue };
            let task = stored.value;
            // A folder that does not have its task's name was not made here, and other processes tidy up after other back-ends.
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
            // A crash of the machine could take back the end of the task, which would then need its folder.
            if store.on_disk(stored.rev).await.is_err() {
                continue;
            }
            // Not before the job on other machines has ended: the folder has the only note of it.
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

/// Returns the attempt whose output cannot be stored, which is the machine's fault and not the task's.
fn not_stored(error: impl std::fmt::Display) -> Attempt {
    Attempt::Again(format!("its output was not stored: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Time;
    use crate::store::{Durability, SqliteStore};
    use crate::tests::records::{Nothing, task};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock that is set.
    struct Set(Arc<AtomicU64>);

    impl Time for Set {
        fn monotonic(&self) -> Duration {
            Duration::from_millis(self.wall())
        }

        fn wall(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        fn real(&self, span: Duration) -> Duration {
            span
        }
    }

    #[tokio::test]
    async fn folders_stay_as_long_as_a_task_may_need_them() {
        let place = tempfile::tempdir().unwrap();
        let store = SqliteStore::open(&place.path().join("db"), Durability::Memory).unwrap();
        let now = Arc::new(AtomicU64::new(1_000));
        let (key, ready) = task("t", "c", 1, 0);
        let backends: BTreeMap<Name, Arc<dyn Backend>> =
            BTreeMap::from([(ready.backend.clone(), Arc::new(Nothing) as _)]);
        let workshop = Workshop {
            backends,
            blobs: Blobs::open(&place.path().join("blobs")).unwrap(),
            spool: place.path().join("spool"),
            clock: Clock::new(Set(Arc::clone(&now))),
        };
        let folder = workshop.folder(&ready);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(OWNER), key.to_string()).unwrap();
        let mut rev =
            crate::record::create(&store, &key.to_string(), ready.clone()).await.unwrap().rev;
        workshop.tidy(&store).await;
        assert!(folder.exists(), "it waits");
        let cancelled = Task { state: TaskState::Cancelled { at: 1_000 }, ..ready.clone() };
        rev = crate::record::update(&store, &key.to_string(), cancelled, rev).await.unwrap().rev;
        let week = 7 * 24 * 3_600 * 1_000;
        now.store(week, Ordering::Relaxed);
        workshop.tidy(&store).await;
        assert!(folder.exists(), "it may be requeued");
        now.store(week + 1_000, Ordering::Relaxed);
        workshop.tidy(&store).await;
        assert!(!folder.exists());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(OWNER), key.to_string()).unwrap();
        let (session, output) = (crate::record::SessionId::from_number(1), ready.id);
        let done = TaskState::Done { output, session, at: week, millis: 1 };
        let done = Task { state: done, ..ready };
        crate::record::update(&store, &key.to_string(), done, rev).await.unwrap();
        workshop.tidy(&store).await;
        assert!(!folder.exists(), "it is done");
    }

    #[test]
    fn texts_for_tenants_do_not_say_where_files_are() {
        let place = tempfile::tempdir().unwrap();
        let workshop = Workshop {
            backends: BTreeMap::new(),
            blobs: Blobs::open(&place.path().join("blobs")).unwrap(),
            spool: place.path().join("spool"),
            clock: Clock::system(),
        };
        let text = format!("{}/spool/x/out: full; {0}/blobs/ab", place.path().display());
        assert_eq!(workshop.without_place(text), "spool/x/out: full; blobs/ab");
    }
}
