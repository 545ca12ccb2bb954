//! The liveness rule: within a bound, what was accepted is published, or the reason why not is reported.
//!
//! A block stands still if nothing has happened to it for longer than the patience, nothing runs for it, and it is not published. This
//! module finds such blocks and their causes: a function of records, without side effects, so that the service, its page and metrics,
//! `check` and the simulations all apply the same definition.

mod past;
mod watch;

pub(crate) use watch::{Watch, Watched};

use crate::dispatch::{BLOCKS_BEHIND_DEAD, MAX_RUNNING};
use crate::order::Tail;
use crate::record::{Job, JobKey, JobState, Order, Session, SessionId, Task, TaskState};
use hekaton_orchestrator_client::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

/// The time for which nothing may happen, unless the settings say something else.
pub const PATIENCE: Duration = Duration::from_secs(600);

/// The number of resubmissions in a place after which the resubmissions themselves are the standstill.
const MAX_RESTARTS: u32 = 5;

/// A block that was accepted and is not published, and will not be without help.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standstill {
    /// The tenant that it belongs to.
    pub tenant: Name,
    /// Its chain.
    pub chain: Name,
    /// Its height.
    pub block: u64,
    /// Its name.
    pub id: Name,
    /// The cause of the standstill.
    pub cause: Cause,
    /// The time for which nothing has happened to it, in milliseconds.
    pub millis: u64,
    /// `true` if its chain publishes nothing and nothing runs for it.
    pub halts: bool,
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { chain, block, id, cause, millis, .. } = self;
        write!(f, "chain '{chain}': block {block} '{id}' {cause} (for {} s)", millis / 1_000)
    }
}

/// Why a block stands still.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The block before it is not there.
    NoParent {
        /// The block before it.
        parent: Name,
        /// The fate of that block, where something is known of it.
        fate: Option<String>,
    },
    /// The block and its parent are each other's ancestors.
    Circle {
        /// The block before it.
        parent: Name,
    },
    /// It is dead, and its chain waits for an operator.
    Dead {
        /// The reason why it is dead.
        reason: String,
    },
    /// It is too far behind a dead block of its chain to be run.
    BehindDead {
        /// The dead block's height.
        dead: u64,
    },
    /// It, or others in its place, were ended and submitted again and again.
    Restarted {
        /// The number of times that this happened.
        times: u32,
    },
    /// It has tasks for back-ends that no live process has.
    NoBackend {
        /// Their names.
        backends: BTreeSet<Name>,
        /// `true` if a process has, or had, one of them: then it is not the workflow that is wrong.
        was_there: bool,
    },
    /// It has tasks that may be claimed, and live processes that could.
    Unclaimed {
        /// The back-ends of these tasks.
        backends: BTreeSet<Name>,
        /// The reason that a process gives for their quarantine, if no process trusts them.
        quarantine: Option<String>,
    },
    /// It has a task that is leased to a process that is gone.
    Abandoned,
    /// It has no tasks.
    NoTasks,
    /// All its tasks have ended.
    NotEnded,
    /// It is done and its turn has come.
    NotPublished,
}

impl Cause {
    /// Reports whether the submitter of the block has to act, not the operator.
    pub fn is_submitters(&self) -> bool {
        match self {
            Self::NoParent { .. }
            | Self::Circle { .. }
            | Self::Dead { .. }
            | Self::BehindDead { .. }
            | Self::Restarted { .. } => true,
            Self::NoBackend { was_there, .. } => !was_there,
            Self::Unclaimed { .. }
            | Self::Abandoned
            | Self::NoTasks
            | Self::NotEnded
            | Self::NotPublished => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |names: &BTreeSet<Name>| {
            names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ")
        };
        match self {
            Self::NoParent { parent, fate: None } => write!(
                f,
                "waits for its parent '{parent}', which was never submitted: submit it, or cancel this block"
            ),
            Self::NoParent { parent, fate: Some(fate) } => write!(
                f,
                "waits for its parent '{parent}', which {fate}: submit it again, or cancel this block"
            ),
            Self::Circle { parent } => write!(
                f,
                "waits for its parent '{parent}', which waits for this one: cancel one of them"
            ),
            Self::Dead { reason } => {
                write!(f, "is dead: {reason}: requeue, skip or cancel it, or revert the chain")
            }
            Self::BehindDead { dead } => write!(
                f,
                "is more than {BLOCKS_BEHIND_DEAD} blocks above block {dead}, which is dead: requeue, skip or cancel that block, or revert the chain"
            ),
            Self::Restarted { times } => write!(
                f,
                "was ended and submitted again, or replaced, {times} times since the chain last published something: find out which client reverts the chain, cancels or resubmits blocks"
            ),
            Self::NoBackend { backends, was_there: false } => {
                write!(f, "needs back-ends that no live process has: {}", list(backends))
            }
            Self::NoBackend { backends, was_there: true } => {
                write!(f, "needs back-ends that no live process has any longer: {}", list(backends))
            }
            Self::Unclaimed { backends, quarantine: None } => {
                write!(f, "has tasks that no process claims, for the back-ends {}", list(backends))
            }
            Self::Unclaimed { backends, quarantine: Some(why) } => write!(
                f,
                "has tasks that no process claims: the back-ends {} are in quarantine: {why}",
                list(backends)
            ),
            Self::Abandoned => f.write_str("has a task that is leased to a process that is gone"),
            Self::NoTasks => f.write_str(
                "has no tasks: no process collects, or its workflow cannot be read (see the log)",
            ),
            Self::NotEnded => f.write_str("was not ended, although all its tasks have ended"),
            Self::NotPublished => {
                f.write_str("is done and its turn has come, but it is not published")
            }
        }
    }
}

/// A chain with what it has not published.
#[derive(Debug)]
pub(crate) struct Chain<'a> {
    pub(crate) tenant: &'a Name,
    pub(crate) name: &'a Name,
    pub(crate) order: Order,
    pub(crate) tail: Option<Tail<'a>>,
    /// The time at which a block was last published or skipped, or the chain was first looked at.
    pub(crate) moved: u64,
    /// Jobs that are not cancelled and not published, by their place.
    pub(crate) jobs: BTreeMap<&'a Name, Waiting<'a>>,
    /// The fates of blocks that are no longer there.
    pub(crate) fates: &'a BTreeMap<Name, String>,
}

/// A job that is not published.
#[derive(Debug)]
pub(crate) struct Waiting<'a> {
    pub(crate) job: &'a Job,
    pub(crate) tasks: Vec<&'a Task>,
    /// The time at which it, or a task of it, last changed.
    pub(crate) changed: u64,
    /// The events in its place.
    pub(crate) place: Place,
}

/// The events in a place of a chain since the chain published something, whichever blocks were there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// The time at which a job was first there.
    since: u64,
    /// The time at which the job was last written.
    written: u64,
    /// The generation that it has now, and the one that was there first.
    generation: u32,
    first: u32,
}

impl Place {
    pub(crate) fn new(now: u64, generation: u32) -> Self {
        Self { since: now, written: now, generation, first: generation }
    }

    /// Takes note of a version of a job. If nothing was written for as long as the patience, the events start over.
    pub(crate) fn see(&mut self, now: u64, generation: u32, patience: u64) {
        match now.saturating_sub(self.written) < patience {
            true => (self.written, self.generation) = (now, generation),
            false => *self = Self::new(now, generation),
        }
    }

    /// Takes note that the chain has published something.
    pub(crate) fn moved(&mut self, now: u64) {
        (self.since, self.first) = (now, self.generation);
    }

    fn restarts(&self) -> u32 {
        self.generation.saturating_sub(self.first)
    }

    /// Reports whether jobs have come and gone here for longer than the patience. A job that is left to run that long does not count.
    fn is_tossed(&self, at: &Now<'_>) -> bool {
        self.restarts() >= MAX_RESTARTS
            && at.now.saturating_sub(self.since) >= at.patience
            && at.now.saturating_sub(self.written) < at.patience
    }
}

/// The time, and the processes that are there.
#[derive(Debug)]
pub(crate) struct Now<'a> {
    /// Milliseconds of the clock that changes were noted by.
    pub(crate) now: u64,
    pub(crate) patience: u64,
    /// Milliseconds since 1970, by which tasks say when they may be claimed.
    pub(crate) wall: u64,
    /// Tenants for whom something runs: their other tasks may wait for that, by their limits.
    pub(crate) busy: BTreeSet<&'a Name>,
    /// Processes that are alive, where that is known.
    pub(crate) sessions: Option<&'a BTreeMap<SessionId, Session>>,
    /// Back-ends that some process has, or had.
    pub(crate) offered: &'a BTreeSet<Name>,
}

impl Chain<'_> {
    /// The blocks of the chain that stand still.
    pub(crate) fn standstills(&self, at: &Now<'_>) -> Vec<Standstill> {
        let causes = match (self.order, self.tail) {
            (Order::Strict, Some(tail)) => self.causes(tail, at),
            _ => self.unordered(at),
        };
        let is_running = self.jobs.values().any(|waiting| {
            waiting.job.is_live() && waiting.tasks.iter().any(|task| is_held(task, at))
        });
        let moved = at.now.saturating_sub(self.moved);
        let mut found = Vec::new();
        for (waiting, cause, is_next) in causes {
            // Each restart is an event, so the last one says nothing about a block that is restarted again and again.
            let since = match is_next && waiting.place.is_tossed(at) {
                true => waiting.place.since,
                false => waiting.changed,
            };
            let millis = at.now.saturating_sub(since);
            // The next block of a chain that has just moved has had no time of its own yet.
            if millis < at.patience || (is_next && moved < at.patience) {
                continue;
            }
            found.push(Standstill {
                tenant: self.tenant.clone(),
                chain: self.name.clone(),
                block: waiting.job.block,
                id: waiting.job.id.clone(),
                cause,
                millis,
                halts: !is_running && moved >= at.patience,
            });
        }
        found.sort_by(|one, other| (one.block, &one.id).cmp(&(other.block, &other.id)));
        found
    }

    fn unordered(&self, at: &Now<'_>) -> Vec<(&Waiting<'_>, Cause, bool)> {
        let waiting = self.jobs.values();
        let found = waiting.filter_map(|waiting| match waiting.job.state {
            JobState::Live => Some((waiting, live(waiting, at)?, false)),
            JobState::Done { .. } => Some((waiting, Cause::NotPublished, false)),
            _ => None,
        });
        found.collect()
    }

    /// Returns the cause for each waiting job, and whether it is the next block of the chain.
    fn causes(&self, tail: Tail<'_>, at: &Now<'_>) -> Vec<(&Waiting<'_>, Cause, bool)> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        if let Some(next) = self.jobs.get(tail.name) {
            let cause = match &next.job.state {
                JobState::Live | JobState::Done { .. } if next.place.is_tossed(at) => {
                    Some(Cause::Restarted { times: next.place.restarts() })
                }
                JobState::Live => live(next, at),
                JobState::Done { .. } => Some(Cause::NotPublished),
                JobState::Dead { reason, .. } => Some(Cause::Dead { reason: reason.clone() }),
                JobState::Skipped { .. } | JobState::Cancelled { .. } => None,
            };
            found.extend(cause.map(|cause| (next, cause, true)));
        }
        self.walk(tail.name, &mut seen);
        // Descendants of blocks that are not there.
        let ids: BTreeSet<&Name> = self.jobs.values().map(|waiting| &waiting.job.id).collect();
        for (place, waiting) in &self.jobs {
            if *place != tail.name && !ids.contains(place) {
                let (parent, fate) = ((*place).clone(), self.fates.get(*place).cloned());
                found.push((waiting, Cause::NoParent { parent, fate }, false));
                self.walk(place, &mut seen);
            }
        }
        // The remaining blocks form cycles.
        for (place, waiting) in &self.jobs {
            if !seen.contains(*place) {
                found.push((waiting, Cause::Circle { parent: (*place).clone() }, false));
                self.walk(place, &mut seen);
            }
        }
        // Others that cannot be run, whatever is before them.
        let dead = self.dead(tail.name);
        for (place, waiting) in &self.jobs {
            if *place == tail.name || !waiting.job.is_live() {
                continue;
            }
            let behind =
                dead.filter(|dead| waiting.job.block > dead.saturating_add(BLOCKS_BEHIND_DEAD));
            found.extend(live(waiting, at).map(|cause| match behind {
                Some(dead) => (waiting, Cause::BehindDead { dead }, false),
                None => (waiting, cause, false),
            }));
        }
        found
    }

    /// The height of the first dead block that descends from a place: the chain does not get past it.
    fn dead(&self, place: &Name) -> Option<u64> {
        let (mut place, mut seen) = (place, BTreeSet::new());
        // Blocks that are accepted and not published may form a cycle.
        while let Some(waiting) = self.jobs.get(place).filter(|_| seen.insert(place)) {
            if let JobState::Dead { .. } = waiting.job.state {
                return Some(waiting.job.block);
            }
            place = &waiting.job.id;
        }
        None
    }

    /// Marks the descendants of a place.
    fn walk<'b>(&'b self, mut place: &'b Name, seen: &mut BTreeSet<&'b Name>) {
        while let Some(waiting) = self.jobs.get(place) {
            if !seen.insert(place) {
                return;
            }
            place = &waiting.job.id;
        }
    }
}

/// Reports whether a task is run by a process that is alive, as far as that is known.
fn is_held(task: &Task, at: &Now<'_>) -> bool {
    is_held_by(task, at.sessions)
}

fn is_held_by(task: &Task, sessions: Option<&BTreeMap<SessionId, Session>>) -> bool {
    match &task.state {
        TaskState::Leased { session, .. } => {
            sessions.is_none_or(|sessions| sessions.contains_key(session))
        }
        _ => false,
    }
}

/// Returns what a live job waits for; `None` if a process works on it or has more urgent tasks.
fn live(waiting: &Waiting<'_>, at: &Now<'_>) -> Option<Cause> {
    let tasks = &waiting.tasks;
    if tasks.is_empty() {
        return Some(Cause::NoTasks);
    }
    let ready = || tasks.iter().filter(|task| task.state == TaskState::Ready);
    if tasks.iter().any(|task| is_held(task, at)) {
        return None;
    }
    if tasks.iter().any(|task| matches!(task.state, TaskState::Leased { .. })) {
        return Some(Cause::Abandoned);
    }
    if ready().any(|task| task.not_before > at.wall) {
        return None;
    }
    let backends: BTreeSet<Name> = ready().map(|task| task.backend.clone()).collect();
    if backends.is_empty() {
        return Some(Cause::NotEnded);
    }
    let is_busy = at.busy.contains(&waiting.job.tenant);
    let Some(sessions) = at.sessions else {
        return (!is_busy).then_some(Cause::Unclaimed { backends, quarantine: None });
    };
    let having = |backend: &Name| {
        let backend = backend.clone();
        sessions.values().filter(move |session| !session.draining && session.has(&backend))
    };
    let missing: BTreeSet<Name> =
        backends.iter().filter(|backend| having(backend).next().is_none()).cloned().collect();
    let blame = |backends: &BTreeSet<Name>| {
        let mut living = sessions.values();
        living
            .find_map(|session| backends.iter().find_map(|it| session.quarantined.get(it)))
            .cloned()
    };
    if missing.len() == backends.len() {
        return Some(match blame(&missing) {
            // Their outputs were wrong, so that no process has them any longer.
            Some(why) => Cause::Unclaimed { backends: missing, quarantine: Some(why) },
            None => {
                let was_there = missing.iter().any(|it| at.offered.contains(it));
                Cause::NoBackend { backends: missing, was_there }
            }
        });
    }
    if is_busy {
        return None;
    }
    let is_idle =
        |session: &Session| session.running.len() < MAX_RUNNING.min(session.slots as usize);
    let idle = |backend: &&Name| having(backend).any(is_idle);
    let unclaimed: BTreeSet<Name> = backends.iter().filter(idle).cloned().collect();
    if unclaimed.is_empty() {
        // All are busy with others.
        return None;
    }
    let trusted = unclaimed.iter().any(|it| having(it).any(|session| session.trusts(it)));
    let quarantine = blame(&unclaimed).filter(|_| !trusted);
    Some(Cause::Unclaimed { backends: unclaimed, quarantine })
}

/// Returns the name and the fate of a block whose job was cancelled.
pub(crate) fn fate(key: &JobKey, job: &Job) -> Option<(Name, String)> {
    let JobState::Cancelled { reason, .. } = &job.state else { return None };
    let after = &key.slot;
    Some((job.id.clone(), format!("was cancelled after '{after}' ({reason})")))
}
