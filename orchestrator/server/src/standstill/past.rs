//! Standstills at the end of a history.

use super::{Chain, Now, Place, Standstill, Waiting, fate, is_held_by};
use crate::clock::millis;
use crate::history::History;
use crate::order::Tail;
use crate::record::{
    self, Job, JobKey, JobState, Publication, Stored, Task, TaskKey, chain_key, decode, log_name,
};
use hekaton_orchestrator_client::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A job and when it was written.
type Written = (Stored<Job>, u64);

/// The records at the end of a history.
#[derive(Default)]
struct Records {
    jobs: BTreeMap<JobKey, Written>,
    /// The tasks of each job, with the times of their last writes.
    tasks: BTreeMap<JobKey, BTreeMap<TaskKey, (Task, u64)>>,
    chains: Vec<record::Chain>,
    /// The times and generations of the writes in each place of a chain.
    places: BTreeMap<JobKey, Vec<(u64, u32)>>,
    /// The fates of blocks that are no longer in their chain, by chain.
    fates: BTreeMap<(Name, Name), BTreeMap<Name, String>>,
}

impl History {
    /// The blocks that stand still at a time of the history's clock, for longer than the patience. The history does not show which
    /// processes were alive, so a leased task counts as running.
    pub fn standstills(&self, now: u64, patience: Duration) -> Vec<Standstill> {
        let patience = millis(patience);
        let Records { jobs, tasks, chains, places, fates } = self.last_records();
        let none = BTreeMap::new();
        let held = tasks
            .values()
            .flat_map(BTreeMap::values)
            .map(|(task, _)| task)
            .filter(|task| is_held_by(task, None));
        let busy = held.map(|task| &task.job.tenant).collect();
        let offered = BTreeSet::new();
        let at = Now { now, patience, wall: u64::MAX, busy, sessions: None, offered: &offered };
        let mut found = Vec::new();
        for chain in &chains {
            let published = self.published(chain);
            let id = (chain.tenant.clone(), chain.chain.clone());
            let chain_fates = fates.get(&id).unwrap_or(&none);
            let own = jobs.iter().filter(|(key, _)| (&key.tenant, &key.chain) == (&id.0, &id.1));
            let unpublished = own.filter(|(key, (job, _))| match job.value.state {
                JobState::Cancelled { .. } | JobState::Skipped { .. } => false,
                JobState::Done { .. } | JobState::Dead { .. } => {
                    !published.path.contains(&(key.slot.clone(), job.value.id.clone()))
                }
                JobState::Live => true,
            });
            let open = unpublished.map(|(key, (job, written))| {
                let (mut changed, identity) = (*written, job.value.identity());
                let own_tasks = tasks
                    .get(key)
                    .into_iter()
                    .flat_map(BTreeMap::iter)
                    .filter(|(key, _)| key.job == identity)
                    .map(|(_, (task, written))| {
                        changed = changed.max(*written);
                        task
                    });
                let tasks = own_tasks.collect();
                let versions = places.get(key).map_or(&[][..], Vec::as_slice);
                let place = place(versions, published.at, patience);
                (&key.slot, Waiting { job: &job.value, tasks, changed, place })
            });
            let last = published.last.as_ref();
            let tail = chain.genesis.as_ref().map(|genesis| Tail::of(genesis, last));
            let waiting = Chain {
                tenant: &chain.tenant,
                name: &chain.chain,
                order: chain.order,
                tail,
                moved: published.at,
                jobs: open.collect(),
                fates: chain_fates,
            };
            found.extend(waiting.standstills(&at));
        }
        found
    }

    /// Returns the last version of each record, and what was there before it.
    fn last_records(&self) -> Records {
        let Records { mut jobs, mut tasks, mut chains, mut places, mut fates } = Records::default();
        for version in &self.records {
            let entry = &version.entry;
            if version.is_removal() {
                if let Ok(key) = entry.key.parse::<JobKey>() {
                    jobs.remove(&key);
                } else if let Ok(key) = entry.key.parse::<TaskKey>() {
                    tasks.values_mut().for_each(|of_job| drop(of_job.remove(&key)));
                }
                continue;
            }
            if let (Ok(key), Ok(task)) = (entry.key.parse::<TaskKey>(), decode::<Task>(entry)) {
                let of_job: &mut BTreeMap<_, _> = tasks.entry(task.value.job.clone()).or_default();
                of_job.insert(key, (task.value, version.at));
            } else if let (Ok(key), Ok(job)) = (entry.key.parse::<JobKey>(), decode::<Job>(entry)) {
                let id = (key.tenant.clone(), key.chain.clone());
                let of_chain: &mut BTreeMap<_, _> = fates.entry(id).or_default();
                if let Some((before, _)) = jobs.get(&key)
                    && before.value.id != job.value.id
                {
                    let text = format!("was replaced by '{}'", job.value.id);
                    of_chain.entry(before.value.id.clone()).or_insert(text);
                }
                // A block that is submitted again has no fate yet.
                of_chain.remove(&job.value.id);
                of_chain.extend(fate(&key, &job.value));
                places.entry(key.clone()).or_default().push((version.at, job.value.generation));
                jobs.insert(key, (job, version.at));
            } else if entry.key.starts_with("chain/")
                && let Ok(chain) = decode::<record::Chain>(entry)
            {
                chains.push(chain.value);
            }
        }
        Records { jobs, tasks, chains, places, fates }
    }

    /// Returns what a chain has published.
    fn published(&self, chain: &record::Chain) -> Published {
        let key = chain_key(&chain.tenant, &chain.chain);
        let made = self.records.iter().find(|version| version.entry.key == key);
        let mut published =
            Published { at: made.map_or(0, |made| made.at), ..Published::default() };
        let log = log_name(&chain.tenant, &chain.chain);
        let mut number = 0;
        for entry in self.logs.iter().filter(|entry| entry.key == log) {
            let Ok(Stored { value: publication, .. }) = decode::<Publication>(entry) else {
                continue;
            };
            match &publication {
                Publication::Block { id, parent, .. } | Publication::Skip { id, parent, .. } => {
                    published.path.push((parent.clone(), id.clone()));
                }
                Publication::Revert { to, .. } => {
                    let keep = published.path.iter().position(|(_, id)| id == to);
                    published.path.truncate(keep.map_or(0, |keep| keep + 1));
                }
            }
            // A revert publishes nothing.
            if !matches!(publication, Publication::Revert { .. }) {
                number = entry.rev.number;
            }
            published.last = Some(publication);
        }
        // Logs have no times; records that were written before have.
        let before = self.records.iter().take_while(|version| version.entry.rev.number < number);
        published.at = published.at.max(before.last().map_or(0, |version| version.at));
        published
    }
}

/// Returns the events in a place, given when its job was written with which generation, and when the chain published something last.
fn place(versions: &[(u64, u32)], moved: u64, patience: u64) -> Place {
    let mut place: Option<Place> = None;
    let mut is_after = false;
    for &(at, generation) in versions {
        if at > moved && !is_after {
            is_after = true;
            place.iter_mut().for_each(|place| place.moved(moved));
        }
        match &mut place {
            None => place = Some(Place::new(at, generation)),
            Some(place) => place.see(at, generation, patience),
        }
    }
    place.unwrap_or_default()
}

/// The publications of a chain, in a form to look things up.
#[derive(Default)]
struct Published {
    /// Blocks with those before them.
    path: Vec<(Name, Name)>,
    last: Option<Publication>,
    /// The time of the last publication, or of the chain's creation.
    at: u64,
}
