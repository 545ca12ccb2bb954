//! Checks a history of what was stored: the promises of this crate, as rules about records and logs.
//!
//! The checker shares no assumptions with the components, so it finds their mistakes. Simulations and crash tests run it over their own
//! histories; operators run it over the `audit` table of a database (`hekaton-orchestrator check`).

use crate::bundle::{Bundle, bundle, bundles};
use crate::record::{
    Chain, Job, JobKey, JobState, Limits, Order, Publication, Task, TaskKey, TaskState, chain_key,
    decode, log_name,
};
use crate::store::Entry;
use crate::submissions::Path;
use hekaton_orchestrator_client::{Digest, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A version of a record.
#[derive(Clone, Debug)]
pub struct Version {
    /// The record as it was written.
    pub entry: Entry,
    /// The time of the write, in milliseconds of one clock.
    pub at: u64,
}

/// Everything that was ever written, by revision.
#[derive(Clone, Debug)]
pub struct History {
    /// The time for which a task of an older block may be free while a newer one's is claimed, in milliseconds.
    pub free_millis: u64,
    /// Versions of records.
    pub records: Vec<Version>,
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
        Self { free_millis: 1_000, records: vec![], logs: vec![], liveness: None }
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
        let jobs = self.records.iter().filter_map(|version| {
            let key = version.entry.key.parse().ok()?;
            Some((key, decode::<Job>(&version.entry).ok()?.value))
        });
        jobs.collect()
    }

    /// Returns the last version of each task.
    pub fn tasks(&self) -> BTreeMap<TaskKey, Task> {
        self.versions_of_tasks().map(|(_, key, task)| (key, task)).collect()
    }

    fn versions_of_tasks(&self) -> impl Iterator<Item = (&Version, TaskKey, Task)> {
        self.records.iter().filter_map(|version| {
            let key = version.entry.key.parse().ok()?;
            Some((version, key, decode::<Task>(&version.entry).ok()?.value))
        })
    }

    fn check_jobs(&self, found: &mut Vec<Violation>) {
        let mut known: BTreeMap<String, Job> = BTreeMap::new();
        for Version { entry, .. } in &self.records {
            if !entry.key.starts_with("job/") {
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
        for Version { entry, .. } in &self.records {
            if !entry.key.starts_with("task/") {
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
                // twice.
                None if task.state != TaskState::Ready => {
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
            let Ok(task) = decode::<Task>(&version.entry).map(|task| task.value) else { continue };
            match &task.state {
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
                    let older = free.iter().find(|(key, (other, since))| {
                        let from = (*since).max(other.not_before).max(lifted_at);
                        other.job.tenant == task.job.tenant
                            && other.job.chain == task.job.chain
                            && (other.lane, &other.backend) == (task.lane, &task.backend)
                            && other.block < task.block
                            // What has failed in a process is left to others.
                            && other.reluctance(session) == (0, false)
                            && from.saturating_add(self.free_millis) < version.at
                            && !self.is_claimed_with(version, key)
                    });
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

    fn check_logs(&self, found: &mut Vec<Violation>) {
        let mut logs: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
        for entry in &self.logs {
            logs.entry(&entry.key).or_default().push(entry);
        }
        let chains = self.records.iter().filter_map(|version| {
            let chain = decode::<Chain>(&version.entry).ok()?.value;
            (chain_key(&chain.tenant, &chain.chain) == version.entry.key).then_some(chain)
        });
        let chains: BTreeMap<String, Chain> =
            chains.map(|chain| (log_name(&chain.tenant, &chain.chain), chain)).collect();
        for (name, entries) in logs {
            match chains.get(name) {
                Some(chain) => self.check_log(chain, &entries, found),
                None => found.push(violation(entries[0], "a log without a chain")),
            }
        }
    }

    fn check_log(&self, chain: &Chain, entries: &[&Entry], found: &mut Vec<Violation>) {
        // The current path of the chain, from its genesis.
        let mut path: Vec<(Name, u64)> = Vec::new();
        let mut reverted = 0;
        for entry in entries {
            let publication = match decode::<Publication>(entry) {
                Ok(publication) => publication.value,
                Err(error) => {
                    found.push(violation(entry, error.to_string()));
                    continue;
                }
            };
            let tail = path.last().map(|(id, _)| id).or(chain.genesis.as_ref());
            match &publication {
                Publication::Block { block, id, parent, .. } => {
                    for why in bad_block(chain, &path, (*block, id, parent)) {
                        found.push(violation(entry, why));
                    }
                    if let Some(why) = self.bad_publication(chain, entry, &publication, reverted) {
                        found.push(violation(entry, why));
                    }
                    path.push((id.clone(), *block));
                }
                Publication::Skip { block, id, parent } => {
                    if Some(parent) != tail {
                        let why = format!("block '{id}' is skipped and does not follow the tail");
                        found.push(violation(entry, why));
                    }
                    // A skip is an operator's decision about a dead block. It must not be a way around a live one.
                    if !self.was_dead(chain, parent, id, entry) {
                        let why = format!("block '{id}' is skipped and was not dead");
                        found.push(violation(entry, why));
                    }
                    path.push((id.clone(), *block));
                }
                Publication::Revert { to, block } => {
                    reverted = entry.rev.number;
                    let at = path.iter().position(|(id, _)| id == to);
                    let known = at.map_or(0, |at| path[at].1);
                    if known != *block {
                        let why = format!(
                            "a revert to '{to}' at height {block}, but its height is {known}"
                        );
                        found.push(violation(entry, why));
                    }
                    match at {
                        Some(at) => path.truncate(at + 1),
                        None if Some(to) == chain.genesis.as_ref() => path.clear(),
                        None => {
                            let why = format!("a revert to '{to}', which is not on the chain");
                            found.push(violation(entry, why));
                        }
                    }
                }
            }
        }
    }

    /// Checks that each published bundle is made of consecutive blocks that the other chain had published before.
    fn check_bundles(&self, found: &mut Vec<Violation>) {
        let records = self.records.iter().filter(|version| version.entry.key.starts_with("chain/"));
        let chains =
            records.filter_map(|version| Some(decode::<Chain>(&version.entry).ok()?.value));
        let chains: BTreeMap<(Name, Name), Chain> =
            chains.map(|chain| ((chain.tenant.clone(), chain.chain.clone()), chain)).collect();
        let jobs = self.jobs();
        for chain in chains.values() {
            let Some(spec) = &chain.bundles else { continue };
            let of = chains.get(&(chain.tenant.clone(), spec.of.clone()));
            let (Some(genesis), Some(root)) =
                (&chain.genesis, of.and_then(|of| of.genesis.clone()))
            else {
                continue;
            };
            let log = |name: &Name| {
                let log = log_name(&chain.tenant, name);
                let entries = self.logs.iter().filter(move |entry| entry.key == log);
                entries.filter_map(|entry| Some((entry, decode::<Publication>(entry).ok()?.value)))
            };
            // What may be published, and from which revision on.
            let mut known: BTreeMap<Name, (u64, Vec<Digest>)> = BTreeMap::new();
            let (mut path, mut made) = (Path::new(root), Vec::new());
            for (entry, publication) in log(&spec.of) {
                let torn = matches!(publication, Publication::Revert { .. });
                path.add(publication);
                let size = spec.blocks as usize;
                if torn {
                    made = bundles(genesis, spec.blocks, &path.blocks);
                }
                let proven = path.blocks.iter().filter_map(|b| Some((b, b.outputs.as_deref()?)));
                let group: Vec<_> = proven.skip(made.len() * size).collect();
                if group.len() == size {
                    let parent = made.last().map_or(genesis, |last: &Bundle| &last.id);
                    let next = bundle(parent, &group);
                    known.entry(next.id.clone()).or_insert((entry.rev.number, next.inputs.clone()));
                    made.push(next);
                }
            }
            for (entry, publication) in log(&chain.chain) {
                let Publication::Block { id, job, .. } = publication else { continue };
                let inputs = known.get(&id).filter(|(from, _)| *from < entry.rev.number);
                let Some((_, inputs)) = inputs else {
                    let why = format!(
                        "block '{id}' is not a bundle of blocks that '{}' had published then",
                        spec.of
                    );
                    found.push(violation(entry, why));
                    continue;
                };
                let made = jobs.values().find(|made| made.identity() == job);
                if made.is_some_and(|made| made.inputs.get(&spec.input) != Some(inputs)) {
                    let why = format!(
                        "the job of bundle '{id}' has other inputs than the bundle's blocks"
                    );
                    found.push(violation(entry, why));
                }
            }
        }
    }

    /// Reports whether a block's job was dead before a publication.
    fn was_dead(&self, chain: &Chain, parent: &Name, id: &Name, entry: &Entry) -> bool {
        let (tenant, chain) = (chain.tenant.clone(), chain.chain.clone());
        let key = JobKey { tenant, chain, slot: parent.clone() }.to_string();
        let mut versions = self
            .records
            .iter()
            .map(|version| &version.entry)
            .filter(|e| e.key == key && e.rev.number < entry.rev.number);
        versions.any(|entry| {
            decode::<Job>(entry).is_ok_and(|job| {
                job.value.id == *id && matches!(job.value.state, JobState::Dead { .. })
            })
        })
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

    /// Returns what is wrong with the publication of a block that was not done, or was cancelled before the last revert.
    fn bad_publication(
        &self,
        chain: &Chain,
        entry: &Entry,
        publication: &Publication,
        reverted: u64,
    ) -> Option<String> {
        let Publication::Block { id, parent, job: identity, outputs, generation, .. } = publication
        else {
            return None;
        };
        let slot = match chain.order {
            Order::Strict => parent,
            Order::None => id,
        };
        let (tenant, chain) = (chain.tenant.clone(), chain.chain.clone());
        let key = JobKey { tenant, chain, slot: slot.clone() }.to_string();
        let versions: Vec<(u64, Job)> = self
            .records
            .iter()
            .map(|version| &version.entry)
            .filter(|e| e.key == key && e.rev.number < entry.rev.number)
            .filter_map(|entry| Some((entry.rev.number, decode::<Job>(entry).ok()?.value)))
            .collect();
        let done = versions.iter().rev().find(|(_, job)| {
            matches!(&job.state, JobState::Done { outputs: found, .. } if found == outputs)
                && job.identity() == *identity
                && job.generation == *generation
        });
        let Some((done, _)) = done else { return Some(format!("block '{id}' was not done")) };
        let cancelled = versions.iter().any(|(rev, job)| {
            rev > done && *rev < reverted && !matches!(job.state, JobState::Done { .. })
        });
        cancelled.then(|| format!("block '{id}' was cancelled before the chain was reverted"))
    }
}

/// Returns what is wrong with the place of a published block on the path of its chain.
fn bad_block(
    chain: &Chain,
    path: &[(Name, u64)],
    (block, id, parent): (u64, &Name, &Name),
) -> Vec<String> {
    let mut wrong = Vec::new();
    let last = path.last();
    if chain.order == Order::Strict {
        if Some(parent) != last.map(|(id, _)| id).or(chain.genesis.as_ref()) {
            wrong.push(format!("block '{id}' does not follow the tail"));
        }
        if last.is_some_and(|(_, height)| *height >= block) {
            wrong.push(format!("block '{id}' is not above the tail"));
        }
    }
    if path.iter().any(|(known, _)| known == id) {
        wrong.push(format!("block '{id}' is published twice"));
    }
    wrong
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
