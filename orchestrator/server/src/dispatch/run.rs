//! One claim, the run of its task, and the write of its result.

use super::trust::{Sign, is_untried_elsewhere};
use crate::alive::SharedSession;
use crate::clock::Clock;
use crate::dispatch::{Attempt, Claimed, Progress, Report, Runner};
use crate::metrics::Metrics;
use crate::record::{OnDisk, SessionId, Stored, Task, TaskKey, TaskState, read, update_on_disk};
use crate::store::{Rev, Store, WriteError};
use crate::surroundings::Surroundings;
use hekaton_orchestrator_client::Name;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The maximum number of running tasks listed in a session.
pub(crate) const MAX_RUNNING: usize = 256;

/// The time to wait before a result is written again.
const PAUSE: Duration = Duration::from_millis(200);

/// Results of shorter first attempts need not be on disk at once: what a crash of the machine loses is run again.
const WORTH_A_SYNC: Duration = Duration::from_secs(1);

/// State of a claim shared by the event loop and its run.
#[derive(Default)]
pub(super) struct Lease {
    /// The claim's number, once it is known.
    pub(super) epoch: AtomicU64,
    /// The highest revision of the record that was reported.
    pub(super) seen: AtomicU64,
    pub(super) lost: CancellationToken,
}

impl Lease {
    /// Notices that another process has ended the lease. To be called after either number has changed.
    pub(super) fn check(&self) {
        let epoch = self.epoch.load(Ordering::SeqCst);
        if epoch != 0 && self.seen.load(Ordering::SeqCst) > epoch {
            self.lost.cancel();
        }
    }
}

/// The result of a run.
pub(super) struct Returned {
    pub(super) key: TaskKey,
    pub(super) backend: Name,
    pub(super) result: Written,
    /// The sign that the attempt gives about the back-end.
    pub(super) sign: Sign,
}

/// The last write of a run.
pub(super) enum Written {
    /// The task as it is now stored.
    Task(Box<Stored<Task>>),
    /// Nothing: this run was not the one to claim the task at this revision.
    Beaten(Rev),
    /// Nothing.
    Nothing,
}

/// A claim, its run and its result.
pub(super) struct TaskRun {
    pub(super) key: TaskKey,
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Clock,
    pub(super) session: SessionId,
    pub(super) runner: Arc<dyn Runner>,
    pub(super) surroundings: Surroundings,
    pub(super) lease: Arc<Lease>,
    pub(super) stop: CancellationToken,
    pub(super) own: SharedSession,
    pub(super) metrics: Metrics,
}

/// Reports progress into the session's record.
#[derive(Debug)]
struct InSession {
    own: SharedSession,
    task: Task,
    metrics: Metrics,
}

impl Report for InSession {
    fn report(&self, part: f32) {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = own.running.get_mut(&self.task.id) {
            *running = part;
        }
    }

    fn phase(&self, name: &str, from: u64, to: u64) {
        self.metrics.task_span(name, &self.task, from, to, None, vec![]);
    }
}

impl TaskRun {
    pub(super) async fn run(self, task: Task, rev: Rev) -> Returned {
        let (key, backend) = (self.key, task.backend.clone());
        let without = |backend, result| Returned { key, backend, result, sign: Sign::None };
        let Ok(claimed) = task.claim(&self.session, self.clock.wall()) else {
            return without(backend, Written::Nothing);
        };
        let name = key.to_string();
        let on_disk = match self.runner.is_remote(&task) {
            // What is started elsewhere must not be forgotten, and no later claim may have its number.
            true => OnDisk::Now,
            // A crash of the machine ends the lease anyway.
            false => OnDisk::Soon,
        };
        let claim = match update_on_disk(&*self.store, &name, claimed, rev, on_disk).await {
            Ok(claim) => claim,
            Err(WriteError::Conflict { .. }) => return without(backend, Written::Beaten(rev)),
            Err(error) => {
                tracing::warn!(task = %key, %error, "not claimed");
                self.clock.sleep(PAUSE).await;
                return without(backend, Written::Nothing);
            }
        };
        self.lease.epoch.store(claim.rev.number, Ordering::SeqCst);
        // It may have been reported before its number was known here.
        self.lease.check();
        self.metrics.claimed(&claim.value, self.clock.wall());
        let started = self.clock.monotonic();
        let attempt = self.attempt(&claim).await;
        let took = self.clock.monotonic().saturating_sub(started);
        if attempt.is_none() {
            self.abandon(&claim.value).await;
        }
        let sign = match &attempt {
            Some(Attempt::Done(_)) => Sign::Good,
            Some(Attempt::Wrong(why)) => Sign::Wrong(why.clone()),
            Some(Attempt::Failed(why) | Attempt::Again(why)) => Sign::Bad(why.clone()),
            // Submitters choose inputs and limits, and must not be able to put back-ends in quarantine with them.
            Some(Attempt::Unfit(_) | Attempt::Impossible(_) | Attempt::Stopped) | None => {
                Sign::None
            }
        };
        let mut result = Written::Nothing;
        if let Some(attempt) = attempt
            && let Some(stored) = self.write(&claim, &attempt, took).await
        {
            result = Written::Task(Box::new(stored));
        }
        Returned { key, backend, result, sign }
    }

    /// Runs the task until it is done, lost or stopped. Returns `None` if the lease is lost.
    async fn attempt(&self, claim: &Stored<Task>) -> Option<Attempt> {
        let task = &claim.value;
        let claimed = Claimed { key: self.key, task, epoch: claim.rev.number };
        let running = |part: Option<f32>| {
            let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
            match part {
                // A session's record has a limited size, and only people read this list.
                Some(_) if own.running.len() >= MAX_RUNNING => None,
                Some(part) => own.running.insert(task.id, part),
                None => own.running.remove(&task.id),
            };
        };
        running(Some(0.0));
        let cancel = CancellationToken::new();
        let progress = Progress(Arc::new(InSession {
            own: Arc::clone(&self.own),
            task: task.clone(),
            metrics: self.metrics.clone(),
        }));
        let limit = Duration::from_secs(task.limits.seconds.into());
        let late = format!("it took more than {} s", task.limits.seconds);
        let (attempt, is_late) = {
            let run = self.runner.run(&claimed, &cancel, &progress);
            tokio::pin!(run);
            let ended = tokio::select! {
                biased;
                // Before the outcome: without the lease, it could not be written anyway.
                () = self.lease.lost.cancelled() => (None, false),
                attempt = &mut run => (Some(attempt), false),
                () = self.stop.cancelled() => (Some(Attempt::Stopped), false),
                () = self.clock.sleep(limit) => (Some(Attempt::Unfit(late)), true),
            };
            // At the end of this block the run is dropped, and with it its processes, before the lease is given up.
            cancel.cancel();
            ended
        };
        running(None);
        // A job on other machines survives the end of the run here, and would hold the run
        // directory when the next attempt begins.
        if is_late {
            self.runner.abandon(task).await;
        }
        attempt
    }

    /// Ends what runs on other machines if the task is no longer wanted. Called when a lease is lost.
    async fn abandon(&self, task: &Task) {
        let found = read::<Task>(&*self.store, &self.key.to_string()).await;
        if found.is_ok_and(|found| found.is_some_and(|found| found.value.state.is_final())) {
            self.runner.abandon(task).await;
        }
    }

    /// Writes the result of a lease. The work may have taken hours, so this does not give up before the lease is settled.
    async fn write(
        &self,
        claim: &Stored<Task>,
        attempt: &Attempt,
        took: Duration,
    ) -> Option<Stored<Task>> {
        let (task, session, now) = (&claim.value, &self.session, self.clock.wall());
        let elsewhere = is_untried_elsewhere(task, &self.surroundings.view(), session);
        let settled = match attempt {
            Attempt::Done(output) => task.finish(session, *output, now),
            Attempt::Failed(why) | Attempt::Unfit(why) | Attempt::Wrong(why) => {
                task.fail(session, why, now, elsewhere)
            }
            Attempt::Impossible(why) => task.bury(session, why, now, elsewhere),
            Attempt::Again(why) => task.give_back(session, why, now, true),
            Attempt::Stopped => task.give_back(session, "its worker was stopped", now, false),
        };
        let next = settled.ok()?;
        let since = match &task.state {
            TaskState::Leased { since, .. } => *since,
            _ => now,
        };
        self.metrics.ended(&next, attempt_word(attempt), (since, now));
        let on_disk = match attempt {
            // A short attempt may have resumed from the work of earlier ones.
            Attempt::Done(_) if took >= WORTH_A_SYNC || task.tries() > 0 => OnDisk::Now,
            _ => OnDisk::Soon,
        };
        if let Attempt::Failed(why)
        | Attempt::Unfit(why)
        | Attempt::Wrong(why)
        | Attempt::Impossible(why) = attempt
        {
            tracing::warn!(task = %self.key, block = task.block, %why, "an attempt failed");
        }
        loop {
            match self.put(&next, claim.rev, on_disk).await {
                Ok(stored) => {
                    if let Attempt::Done(_) = attempt {
                        self.runner.settled(task);
                    }
                    return Some(stored);
                }
                // The lease was lost.
                Err(WriteError::Conflict { .. }) => return None,
                Err(error) => tracing::warn!(task = %self.key, %error, "a result is written again"),
            }
            self.clock.sleep(PAUSE).await;
            if self.lease.lost.is_cancelled() {
                return None;
            }
        }
    }

    /// Writes what follows a claim, or finds that an earlier attempt to write it took effect.
    async fn put(
        &self,
        next: &Task,
        claim: Rev,
        on_disk: OnDisk,
    ) -> Result<Stored<Task>, WriteError> {
        let key = self.key.to_string();
        let written = update_on_disk(&*self.store, &key, next.clone(), claim, on_disk).await;
        let Err(WriteError::Conflict { .. }) = written else { return written };
        let found = read::<Task>(&*self.store, &key).await.ok().flatten();
        let Some(found) = found.filter(|found| found.value == *next) else { return written };
        // That it can be read does not say that it would survive a crash.
        if on_disk == OnDisk::Now
            && let Err(error) = self.store.on_disk(found.rev).await
        {
            return Err(WriteError::Unknown { key, why: error.why });
        }
        Ok(found)
    }
}

fn attempt_word(attempt: &Attempt) -> &'static str {
    match attempt {
        Attempt::Done(_) => "done",
        Attempt::Failed(_) | Attempt::Unfit(_) => "failed",
        Attempt::Wrong(_) => "wrong",
        Attempt::Impossible(_) => "impossible",
        Attempt::Again(_) => "again",
        Attempt::Stopped => "stopped",
    }
}
