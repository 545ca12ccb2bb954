//! Runs tasks with back-ends: finds their inputs, watches their progress, verifies and stores what they make.

use super::{Backend, Outcome, Rejected, Work};
use crate::blobs::Blobs;
use crate::clock::Clock;
use crate::dispatcher::{Attempt, Progress, Report, Runner};
use crate::id::Name;
use crate::record::Task;
use async_trait::async_trait;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

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
}

#[async_trait]
impl Runner for Workshop {
    async fn run(&self, task: &Task, cancel: &CancellationToken, progress: &Progress) -> Attempt {
        let Some(backend) = self.backends.get(&task.backend) else {
            return Attempt::Again(format!("there is no back-end '{}' here", task.backend));
        };
        if let Some(missing) = task.inputs.iter().find(|input| !self.blobs.has(input)) {
            return Attempt::Failed(format!("there is no blob {missing}"));
        }
        let folder = self.spool.join(task.id.to_string());
        if let Err(error) = std::fs::create_dir_all(&folder) {
            return Attempt::Failed(format!("{}: {error}", folder.display()));
        }
        let inputs = task.inputs.iter().map(|input| self.blobs.path(input)).collect();
        let work = Work { task, inputs, folder };
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
                return Attempt::Failed(why);
            }
        };
        let output = match outcome {
            Outcome::Done(output) => output,
            Outcome::Failed(why) => return Attempt::Failed(why),
            Outcome::Impossible(why) => return Attempt::Impossible(why),
            Outcome::Again(why) => return Attempt::Again(why),
        };
        match backend.verify(&work, &output).await {
            Ok(()) => {}
            Err(Rejected::Wrong(why)) => return Attempt::Wrong(why),
            Err(Rejected::Unverified(why)) => {
                return Attempt::Failed(format!("its output could not be verified: {why}"));
            }
        }
        let blobs = self.blobs.clone();
        let stored = tokio::task::spawn_blocking(move || blobs.put_file(&output, MAX_OUTPUT)).await;
        let stored = match stored {
            Ok(Ok(digest)) => digest,
            Ok(Err(error)) => {
                return Attempt::Failed(format!("its output was not stored: {error}"));
            }
            Err(error) => return Attempt::Failed(format!("its output was not stored: {error}")),
        };
        let _ = std::fs::remove_dir_all(&work.folder);
        Attempt::Done(stored)
    }
}

impl Workshop {
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
