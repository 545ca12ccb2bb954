//! Checks a history of what was stored: the promises of this crate, as rules about records and logs.
//!
//! The checker shares no assumptions with the components, so it finds their mistakes. Simulations and crash tests run it over their own
//! histories; operators run it over the `audit` table of a database (`hekaton-orchestrator check`).

mod logs;

use crate::record::{Job, JobKey, JobState, Limits, SessionId, Task, TaskKey, TaskState, decode};
use crate::store::Entry;
use hekaton_orchestrator_client::{Digest, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A version of a record. A removal has an empty value.
#[derive(Clone, Debug)]
pub struct Version {
    /// The record as it was written.
    pub entry: Entry,
    /// The time of the write, in milliseconds of one clock.
    pub at: u64,
}

impl Version {
    /// Reports whether the record was removed.
    pub(crate) fn is_removal(&self) -> bool {
        self.entry.value.is_empty()
    }
}

/// Everything that was ever written, by revision.
#[derive(Clone, Debug)]
pub struct History {
    /// The time for which a task of an older block may be free while a newer one's is claimed, in milliseconds.
    pub free_millis: u64,
    /// Versions of records.
    pub records: Vec<Version>,
    /// The revision up to which versions may be missing, except for those that are current or were until later.
    pub pruned: u64,
    /// Entries of logs; their keys are the logs' names.
    pub logs: Vec<Entry>,
    /// The parameters of the liveness rule, if it is checked.
    pub liveness: Option<Liveness>,
}

/// The parameters of the liveness rule: an accepted block is published, or the reason why not is known. Nothing stands still
/// without a known cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Liveness {
    /// The time at which the history ends, in milliseconds of its clock.
    pub now: u64,
    /// The time for which nothing may happen.
    pub patience: Duration,
}

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("revision {rev} of '{key}': {why}")]
pub struct Violation {
    /// The revision that breaks it.
    pub rev: u64,
    /// The record or log.
    pub key: String,
    /// The promise, and how it is broken.
    pub why: String,
}

impl Default for History {
    fn default() -> Self {
        Self { free_millis: 1_000, records: vec![], pruned: 0, logs: vec![], liveness: None }
    }
}

/// The time within which the claims that a process makes at the same time may be written, in milliseconds.
const SAME_TIME: u64 = 2_000;

impl History {
    /// All broken promises, in the order of revisions.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut last = 0;
        for version in &self.records {
            let entry = &version.entry;
            if entry.rev.number <= last {
                found.push(violation(entry, "revisions do not rise"));
            }
            last = entry.rev.number;
        }
        self.check_jobs(&mut found);
        self.check_tasks(&mut found);
        self.check_outputs(&mut found);
        self.check_claims(&mut found);
        self.check_logs(&mut found);
        self.check_bundles(&mut found);
        self.check_liveness(&mut found);
        // Checks go through the history one after the other; the first broken promise is often the cause of the others.
        found.sort_by(|a, b| (a.rev, &a.key, &a.why).cmp(&(b.rev, &b.key, &b.why)));
        found
    }

    /// Checks that no block stands still.
    fn check_liveness(&self, found: &mut Vec<Violation>) {
        let Some(Liveness { now, patience }) = self.liveness else { return };
        for one in self.standstills(now, patience) {
            let (tenant, chain) = (&one.tenant, &one.chain);
            let mut jobs = self.records.iter().rev().filter(|version| {
                let job = decode::<Job>(&version.entry).map(|job| job.value);
                version.entry.key.starts_with("job/")
                    && job.is_ok_and(|job| {
                        (&job.tenant, &job.chain, &job.id) == (tenant, chain, &one.id)
                    })
            });
            let Some(job) = jobs.next() else { continue };
            found.push(violation(&job.entry, format!("it stands still: {one}")));
        }
    }

    /// Returns the last version of each job.
    pub fn jobs(&self) -> BTreeMap<JobKey, Job> {
        let mut jobs = BTreeMap::new();
        for version in &self.records {
            let Ok(key) = version.entry.key.parse::<JobKey>() else { continue };
            if version.is_removal() {
                jobs.remove(&key);
            } else if let Ok(job) = decode::<Job>(&version.entry) {
                jobs.insert(key, job.value);
            }
        }
        jobs
    }

    /// Returns the last version of each task.
    pub fn tasks(&self) -> BTreeMap<TaskKey, Task> {
        let mut tasks = BTreeMap::new();
        for version in &self.records {
            let Ok(key) = version.entry.key.parse::<TaskKey>() else { continue };
            if version.is_removal() {
                tasks.remove(&key);
            } else if let Ok(task) = decode::<Task>(&version.entry) {
                tasks.insert(key, task.value);
            }
        }
        tasks
    }

    fn check_jobs(&self, found: &mut Vec<Violation>) {
        let mut known: BTreeMap<String, Job> = BTreeMap::new();
        for version in &self.records {
            let entry = &version.entry;
            if !entry.key.starts_with("job/") {
                continue;
            }
            if version.is_removal() {
                let removed = known.remove(&entry.key);
                let why = removed.and_then(|job| self.bad_removal(&job, entry));
                found.extend(why.map(|why| violation(entry, why)));
                continue;
            }
            let job = match decode::<Job>(entry) {
                Ok(job) => job.value,
                Err(error) => {
                    found.push(violation(entry, error.to_string()));
                    continue;
                }
            };
            if job.key().to_string() != entry.key {
                found.push(violation(entry, "the job does not match its key"));
            }
            if let Some(before) = known.get(&entry.key)
                && let Some(why) = bad_job(before, &job)
            {
                found.push(violation(entry, why));
            }
            known.insert(entry.key.clone(), job);
        }
    }

    fn check_tasks(&self, found: &mut Vec<Violation>) {
        let mut known: BTreeMap<TaskKey, Task> = BTreeMap::new();
        for version in &self.records {
            let entry = &version.entry;
            if !entry.key.starts_with("task/") {
                continue;
            }
            if let Ok(key) = entry.key.parse::<TaskKey>()
                && version.is_removal()
            {
                if known.remove(&key).is_some_and(|task| !task.state.is_final()) {
                    found.push(violation(entry, "a task is removed that is not final"));
                }
                continue;
            }
            let (key, task) = match (entry.key.parse::<TaskKey>(), decode::<Task>(entry)) {
                (Ok(key), Ok(task)) => (key, task.value),
                (Err(error), _) => {
                    found.push(violation(entry, error.to_string()));
                    continue;
                }
                (_, Err(error)) => {
                    found.push(violation(entry, error.to_string()));
                    continue;
                }
            };
            match known.get(&key) {
                // A task that begins with a lease or an output would have skipped the claim, which is what keeps it from running
                // twice. Its first version may have been pruned.
                None if task.state != TaskState::Ready && self.pruned == 0 => {
                    found.push(violation(entry, "a task is created in a state other than ready"));
                }
                None => {}
                Some(before) => {
                    if let Some(why) = bad_task(before, &task) {
                        found.push(violation(entry, why));
                    }
                }
            }
            known.insert(key, task);
        }
    }

    /// Checks that no task is claimed while one of an older block of the same lane and chain is free for the same back-end.
    fn check_claims(&self, found: &mut Vec<Violation>) {
        // Free tasks, and since when.
        let mut free: BTreeMap<TaskKey, (Task, u64)> = BTreeMap::new();
        // The times since which blocks of a chain are not held up by a dead one.
        let mut lifted: BTreeMap<(Name, Name), u64> = BTreeMap::new();
        let mut dead: BTreeSet<JobKey> = BTreeSet::new();
        for version in &self.records {
            if let Ok(key) = version.entry.key.parse::<JobKey>()
                && let Ok(job) = decode::<Job>(&version.entry)
            {
                if let JobState::Dead { .. } = job.value.state {
                    dead.insert(key);
                // The tasks behind the dead block become free at this moment and not when they were made.
                } else if dead.remove(&key) {
                    lifted.insert((key.tenant, key.chain), version.at);
                }
                continue;
            }
            let Ok(key) = version.entry.key.parse::<TaskKey>() else { continue };
            let Ok(task) = decode::<Task>(&version.entry).map(|task| task.value) else {
                // It was removed.
                free.remove(&key);
                continue;
            };
            match &task.state {
                // It may have been held up by a dead block whose history is missing.
                TaskState::Ready if version.entry.rev.number <= self.pruned => {}
                TaskState::Ready => {
                    free.insert(key, (task, version.at));
                }
                TaskState::Leased { since, session } => {
                    free.remove(&key);
                    if !task.is_due(*since) {
                        let why = "it is claimed before its time";
                        found.push(violation(&version.entry, why));
                    }
                    let chain = (task.job.tenant.clone(), task.job.chain.clone());
                    let lifted_at = lifted.get(&chain).copied().unwrap_or(0);
                    let older = self.older(&free, (version, &task, session), lifted_at);
                    if let Some((other, (waiting, since))) = older {
                        let why = format!(
                            "a task of block {} is claimed while '{other}' of block {} was free for {} ms",
                            task.block,
                            waiting.block,
                            version.at.saturating_sub((*since).max(waiting.not_before)),
                        );
                        found.push(violation(&version.entry, why));
                    }
                }
                _ => {
                    free.remove(&key);
                }
            }
        }
    }

    /// Returns a free task that should have been claimed before another one, if there is one.
    fn older<'a>(
        &self,
        free: &'a BTreeMap<TaskKey, (Task, u64)>,
        (version, task, session): (&Version, &Task, &SessionId),
        lifted_at: u64,
    ) -> Option<(&'a TaskKey, &'a (Task, u64))> {
        free.iter().find(|(key, (other, since))| {
            let from = (*since).max(other.not_before).max(lifted_at);
            other.job.tenant == task.job.tenant
                && other.job.chain == task.job.chain
                && (other.lane, &other.backend) == (task.lane, &task.backend)
                && other.block < task.block
                // What has failed in a process is left to others.
                && other.reluctance(session) == (0, false)
                && from.saturating_add(self.free_millis) < version.at
                && !self.is_claimed_with(version, key)
        })
    }

    /// Reports whether the session that wrote a claim claims another task at the same time: writes of one process may overtake
    /// each other.
    fn is_claimed_with(&self, claim: &Version, other: &TaskKey) -> bool {
        let session = |version: &Version| match decode::<Task>(&version.entry).ok()?.value.state {
            TaskState::Leased { session, .. } => Some(session),
            _ => None,
        };
        let other_key = other.to_string();
        let is_later = |version: &&Version| version.entry.rev.number > claim.entry.rev.number;
        // A process claims for all its slots at once, and its writes may be stored in any order.
        let same_time = |version: &&Version| version.at <= claim.at.saturating_add(SAME_TIME);
        let later = self.records.iter().filter(is_later).take_while(same_time);
        let mut claims = later.filter(|version| version.entry.key == other_key);
        claims.any(|version| session(version) == session(claim))
    }

    /// Checks the outputs of jobs that are done: each is the output of a task of the job that was done before.
    fn check_outputs(&self, found: &mut Vec<Violation>) {
        let mut made: BTreeMap<Digest, BTreeSet<Digest>> = BTreeMap::new();
        for version in &self.records {
            if let (Ok(key), Ok(task)) =
                (version.entry.key.parse::<TaskKey>(), decode::<Task>(&version.entry))
                && let TaskState::Done { output, .. } = task.value.state
            {
                made.entry(key.job).or_default().insert(output);
            }
            if !version.entry.key.starts_with("job/") {
                continue;
            }
            let Ok(job) = decode::<Job>(&version.entry) else { continue };
            let JobState::Done { outputs, .. } = &job.value.state else { continue };
            let made_by_job = made.get(&job.value.identity());
            if made_by_job.is_none() && self.pruned > 0 {
                // Tasks are removed before their job.
                continue;
            }
            if let Some(other) =
                outputs.iter().find(|it| !made_by_job.is_some_and(|made| made.contains(it)))
            {
                let why =
                    format!("it is done with output {other}, which none of its tasks has made");
                found.push(violation(&version.entry, why));
            }
            if outputs.is_empty() && made_by_job.is_some() {
                found.push(violation(&version.entry, "it is done without outputs"));
            }
        }
    }
}

fn violation(entry: &Entry, why: impl Into<String>) -> Violation {
    Violation { rev: entry.rev.number, key: entry.key.clone(), why: why.into() }
}

/// Returns what is wrong with a job's new version, if anything.
fn bad_job(before: &Job, after: &Job) -> Option<String> {
    let same = before.identity() == after.identity() && before.generation == after.generation;
    let next = after.generation == before.generation + 1;
    let allowed = match (&before.state, &after.state) {
        // A live job is skipped if it was requeued after the entry of the log was written.
        (JobState::Live, state) => same && *state != JobState::Live,
        (JobState::Dead { .. } | JobState::Cancelled { .. }, JobState::Live) => next,
        (JobState::Dead { .. }, JobState::Cancelled { .. } | JobState::Skipped { .. }) => same,
        // A chain that is reverted, or a height that is too low.
        (
            JobState::Done { .. },
            JobState::Cancelled { .. } | JobState::Dead { .. } | JobState::Skipped { .. },
        ) => same,
        (JobState::Skipped { .. }, JobState::Cancelled { .. }) => same,
        _ => false,
    };
    (!allowed).then(|| format!("from {:?} to {:?}", before.state, after.state))
}

/// Returns what is wrong with a task's new version, if anything.
fn bad_task(before: &Task, after: &Task) -> Option<String> {
    let fixed = |task: &Task| (task.id, task.job.clone(), task.block, task.inputs.clone());
    if fixed(before) != fixed(after) {
        return Some("the task was replaced by a different one".into());
    }
    let (word, next) = (before.state.word(), after.state.word());
    let counts = after.tries() - before.tries().min(after.tries());
    let most = after.limits.attempts.saturating_mul(Limits::PATIENCE);
    if after.attempts > most || after.returns > Limits::RETURNS || after.deaths > Limits::DEATHS {
        return Some("it was tried more often than its limits allow".into());
    }
    let kept = before.generation == after.generation
        && before.attempts <= after.attempts
        && before.deaths <= after.deaths
        && before.refused.is_subset(&after.refused)
        && before.returns <= after.returns;
    let allowed = match (&before.state, &after.state) {
        (TaskState::Ready, TaskState::Leased { .. }) => kept && counts == 0,
        (TaskState::Ready | TaskState::Leased { .. }, TaskState::Cancelled { .. }) => {
            kept && counts == 0
        }
        (TaskState::Leased { session: holder, .. }, TaskState::Done { session, .. }) => {
            kept && counts == 0 && holder == session
        }
        (TaskState::Leased { .. }, TaskState::Ready) => kept && counts == 1,
        (TaskState::Leased { .. }, TaskState::Dead { .. }) => kept && counts <= 1,
        (TaskState::Dead { .. } | TaskState::Cancelled { .. }, TaskState::Ready) => {
            after.generation > before.generation
        }
        _ => false,
    };
    (!allowed).then(|| format!("from {word} to {next}, which is not a transition"))
}
