//! The order in which tasks are claimed.
//!
//! The next task is the least by (lane, minus one for each minute of waiting; the tenant's share; the chain's share; block; later stages
//! first; more attempts first; age). Heights are compared within a chain only, so a chain at height 5 does not starve one of the same
//! tenant at height 20 million. Shares are virtual times of a fair queue: each claim costs its tenant 1 / weight, and a tenant that was
//! idle starts at the time of the least served one, so a tenant with many tasks takes no more than its share from others.

use crate::record::{JobKey, Task, TaskKey, TaskState};
use crate::store::Rev;
use hekaton_orchestrator_client::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The time after which a task is one lane more urgent, in milliseconds.
// After little more than four hours, even lane 255 is as urgent as lane 0, so no task starves.
const MILLIS_PER_LANE: u64 = 60_000;

/// A chain of a tenant.
type ChainId = (Name, Name);

/// A task's place among those of its chain and lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    block: u64,
    later: std::cmp::Reverse<u16>,
    tried: std::cmp::Reverse<u32>,
    created: u64,
    key: TaskKey,
}

impl Place {
    fn of(key: TaskKey, task: &Task) -> Self {
        let (later, tried) = (std::cmp::Reverse(task.depth), std::cmp::Reverse(task.attempts));
        Self { block: task.block, later, tried, created: task.created, key }
    }
}

/// The tasks that are ready.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    tasks: BTreeMap<TaskKey, (Task, Rev)>,
    places: BTreeMap<(ChainId, u8), BTreeSet<Place>>,
    tenants: Shares<Name>,
    /// A clock of its own for each tenant.
    chains: BTreeMap<Name, Shares<ChainId>>,
    weights: BTreeMap<Name, u32>,
    /// Tasks whose claim was charged for.
    charged: BTreeSet<TaskKey>,
}

/// Virtual times.
#[derive(Debug)]
struct Shares<K> {
    times: BTreeMap<K, f64>,
    /// The time of the last one that was served. It never goes back.
    now: f64,
}

impl<K> Default for Shares<K> {
    fn default() -> Self {
        Self { times: BTreeMap::new(), now: 0.0 }
    }
}

impl<K: Ord + Clone> Shares<K> {
    fn of(&self, who: &K) -> f64 {
        self.times.get(who).copied().unwrap_or(self.now)
    }

    /// Starts serving one that had nothing waiting: a share that was not used is not saved up.
    fn enter(&mut self, who: &K) {
        let now = self.now;
        let time = self.times.entry(who.clone()).or_insert(now);
        *time = time.max(now);
    }

    /// Serves one, at the time that it had.
    fn charge(&mut self, who: &K, cost: f64) {
        let time = self.times.entry(who.clone()).or_insert(self.now);
        self.now = self.now.max(*time);
        *time += cost;
    }
}

/// Decides which tasks a claimer can run.
pub(crate) trait Claimer {
    /// Reports whether it may run a task now.
    fn can(&self, key: &TaskKey, task: &Task) -> bool;
}

impl<F: Fn(&TaskKey, &Task) -> bool> Claimer for F {
    fn can(&self, key: &TaskKey, task: &Task) -> bool {
        self(key, task)
    }
}

impl Queue {
    /// A queue in which tenants have weights other than 1.
    pub(crate) fn new(weights: BTreeMap<Name, u32>) -> Self {
        Self { weights, ..Self::default() }
    }

    /// Takes note of a task's new state: it waits, or no longer does.
    pub(crate) fn set(&mut self, key: TaskKey, task: &Task, rev: Rev) {
        if self.tasks.get(&key).is_some_and(|(_, known)| {
            known.incarnation == rev.incarnation && known.number > rev.number
        }) {
            return;
        }
        let (was_ready, charged) = (self.remove(&key), self.charged.remove(&key));
        match task.state {
            TaskState::Ready => self.insert(key, task, rev),
            // All processes see all claims, so they have nearly the same shares.
            TaskState::Leased { .. } if was_ready && !charged => self.charge(task),
            _ => {}
        }
    }

    fn insert(&mut self, key: TaskKey, task: &Task, rev: Rev) {
        let tenant = &task.job.tenant;
        let chain = (tenant.clone(), task.job.chain.clone());
        if !self.places.keys().any(|((known, _), _)| known == tenant) {
            self.tenants.enter(tenant);
        }
        if !self.places.keys().any(|(known, _)| *known == chain) {
            self.chains.entry(tenant.clone()).or_default().enter(&chain);
        }
        self.places.entry((chain, task.lane)).or_default().insert(Place::of(key, task));
        self.tasks.insert(key, (task.clone(), rev));
    }

    /// Forgets a task. Returns whether it waited.
    pub(crate) fn remove(&mut self, key: &TaskKey) -> bool {
        let Some((task, _)) = self.tasks.remove(key) else { return false };
        let queue = ((task.job.tenant.clone(), task.job.chain.clone()), task.lane);
        if let Some(places) = self.places.get_mut(&queue) {
            places.remove(&Place::of(*key, &task));
            if places.is_empty() {
                self.places.remove(&queue);
            }
        }
        true
    }

    /// Forgets a task if it still waits at a revision.
    pub(crate) fn forget(&mut self, key: &TaskKey, rev: Rev) {
        if self.tasks.get(key).is_some_and(|(_, known)| *known == rev) {
            self.remove(key);
        }
    }

    /// Charges for a claim of this process before the store reports it, so that the next claim goes to another tenant or chain.
    pub(crate) fn claim(&mut self, key: TaskKey, task: &Task) {
        self.charge(task);
        self.charged.insert(key);
    }

    fn charge(&mut self, task: &Task) {
        let JobKey { tenant, chain, .. } = &task.job;
        let weight = self.weights.get(tenant).copied().unwrap_or(1).max(1);
        self.tenants.charge(tenant, 1.0 / f64::from(weight));
        let chain = (tenant.clone(), chain.clone());
        self.chains.entry(tenant.clone()).or_default().charge(&chain, 1.0);
    }

    /// The next task for a claimer, and when the first one that must still wait may be claimed.
    pub(crate) fn next(&self, claimer: &impl Claimer, now: u64) -> Next<'_> {
        let mut best: Option<((u64, f64, f64), &Place)> = None;
        let mut wait: Option<u64> = None;
        for ((chain, lane), places) in &self.places {
            let candidate = places.iter().find(|place| {
                let Some((task, _)) = self.tasks.get(&place.key) else { return false };
                if !task.is_due(now) {
                    wait = Some(wait.map_or(task.not_before, |least| least.min(task.not_before)));
                    return false;
                }
                claimer.can(&place.key, task)
            });
            let Some(place) = candidate else { continue };
            let waited = now.saturating_sub(place.created) / MILLIS_PER_LANE;
            // No lane is above the first one: there, the shares decide.
            let lane = u64::from(*lane).saturating_sub(waited);
            let own = self.chains.get(&chain.0).map_or(0.0, |chains| chains.of(chain));
            let rank = (lane, self.tenants.of(&chain.0), own);
            // Within one chain, if two lanes are equally urgent by now, the older block goes first.
            if best.is_none_or(|(least, other)| (rank, place) < (least, other)) {
                best = Some((rank, place));
            }
        }
        let task = best.and_then(|(_, place)| {
            self.tasks.get(&place.key).map(|(task, rev)| (place.key, task, *rev))
        });
        Next { task, wait }
    }
}

/// The next task to claim, and the time of the first one that must still wait.
#[derive(Debug)]
pub(crate) struct Next<'a> {
    pub(crate) task: Option<(TaskKey, &'a Task, Rev)>,
    /// The time at which it may be claimed, in milliseconds since 1970.
    pub(crate) wait: Option<u64>,
}
