//! A store in memory that fails as real ones do: it answers late, loses answers, applies writes after their sender gave up, is away for
//! a while, and has watches that die silently.

use super::world::EPOCH;
use crate::history::{History, Version};
use crate::record::OnDisk;
use crate::store::{Entry, Listing, Rev, Store, Unavailable, Watch, WatchError, WriteError, check};
use async_trait::async_trait;
use bytes::Bytes;
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// A fault of the store that a test turns on to see that the checker finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    None,
    /// Updates ignore the expected revision.
    BlindUpdates,
    /// Appends ignore the expected revision.
    BlindAppends,
    /// Nothing is on disk when it is said to be.
    NeverSynced,
    /// A crash loses some of the writes that are not on disk, and not the last ones.
    Unordered,
    /// Jobs that are done are neither listed nor reported.
    LostEvents,
}

/// The rates at which things go wrong, in thousandths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    pub(super) lost_answers: u32,
    pub(super) late_writes: u32,
    pub(super) failed_reads: u32,
    pub(super) dead_watches: u32,
    pub(super) failed_syncs: u32,
    pub(super) max_delay: Duration,
}

impl Faults {
    pub(crate) const NONE: Self = Self {
        lost_answers: 0,
        late_writes: 0,
        failed_reads: 0,
        dead_watches: 0,
        failed_syncs: 0,
        max_delay: Duration::from_millis(2),
    };

    /// No write gets on disk.
    pub(crate) const BROKEN_DISK: Self = Self { failed_syncs: 1_000, ..Self::NONE };
}

#[derive(Debug)]
pub(crate) struct Core {
    start: Instant,
    bug: Bug,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    bug: Bug,
    counter: u64,
    incarnation: u64,
    records: BTreeMap<String, Entry>,
    logs: BTreeMap<String, Vec<Entry>>,
    history: History,
    random: ChaCha8Rng,
    faults: Faults,
    /// Writes that are not on disk, in their order.
    unsynced: Vec<Unsynced>,
    /// The highest revision that was said to be on disk.
    said: u64,
    /// The keys of writes that were said to be on disk and were lost.
    broken: Vec<String>,
    /// Rises with each crash of the machine, which aborts all operations under way.
    crashes: u64,
    /// The prefixes that were listed.
    listed: Vec<String>,
}

/// A write that is not on disk.
#[derive(Debug)]
struct Unsynced {
    number: u64,
    key: String,
    /// The record before it; `None` if it is an entry of a log.
    before: Option<Option<Entry>>,
}

/// The writes that a crash of the machine loses, of those that are not on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    All,
    /// A random number of the last ones.
    Last,
}

enum Write {
    Create,
    Update(Rev),
    Remove(Rev),
    Append(Option<Rev>),
}

impl Core {
    pub(crate) fn new(random: ChaCha8Rng, bug: Bug) -> Arc<Self> {
        let state = State {
            bug,
            counter: 0,
            incarnation: 1,
            records: BTreeMap::new(),
            logs: BTreeMap::new(),
            history: History::default(),
            random,
            faults: Faults::NONE,
            unsynced: vec![],
            said: 0,
            broken: vec![],
            crashes: 0,
            listed: vec![],
        };
        let (start, state) = (Instant::now(), Mutex::new(state));
        Arc::new(Self { start, bug, state, changed: Notify::new() })
    }

    pub(crate) fn set_faults(&self, faults: Faults) {
        self.state.lock().unwrap().faults = faults;
    }

    pub(super) fn history(&self) -> History {
        self.state.lock().unwrap().history.clone()
    }

    /// Returns the prefixes that were listed since the last call.
    pub(super) fn listed(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().listed)
    }

    /// Returns the number of writes so far.
    pub(super) fn written(&self) -> usize {
        let history = &self.state.lock().unwrap().history;
        history.records.len() + history.logs.len()
    }

    /// Cuts the power of the machine: writes that are not on disk are lost. All processes must have been killed before.
    ///
    /// Returns the number of lost writes.
    pub(crate) fn crash(&self, loss: Loss) -> usize {
        let mut state = self.state.lock().unwrap();
        state.crashes += 1;
        let unsynced = std::mem::take(&mut state.unsynced);
        let Some(first) = unsynced.first().map(|write| write.number) else { return 0 };
        let keep = match loss {
            Loss::All => 0,
            Loss::Last => state.random.gen_range(0..=unsynced.len()),
        };
        let (mut kept, mut count) = (BTreeSet::new(), 0);
        let mut counter = first - 1;
        // The last one first, so that each record ends as it was before all that is lost.
        for (at, write) in unsynced.into_iter().enumerate().rev() {
            let is_kept = match self.bug {
                Bug::Unordered => state.random.r#gen(),
                _ => at < keep,
            };
            if is_kept {
                counter = counter.max(write.number);
                kept.insert(write.key);
            } else {
                count += 1;
                state.undo(write, &kept);
            }
        }
        state.counter = counter;
        count
    }

    /// Returns the keys of writes that were said to be on disk, and that crashes have lost.
    pub(super) fn broken(&self) -> Vec<String> {
        self.state.lock().unwrap().broken.clone()
    }

    /// Puts all writes up to a revision on disk.
    fn sync(&self, upto: u64) {
        let mut state = self.state.lock().unwrap();
        state.said = state.said.max(upto);
        if self.bug != Bug::NeverSynced {
            state.unsynced.retain(|write| write.number > upto);
        }
    }

    fn is_unsynced(&self, rev: Rev) -> bool {
        self.state.lock().unwrap().unsynced.iter().any(|write| write.number <= rev.number)
    }

    fn crashes(&self) -> u64 {
        self.state.lock().unwrap().crashes
    }

    fn faults(&self) -> Faults {
        self.state.lock().unwrap().faults
    }

    fn chance(&self, thousandths: u32) -> bool {
        thousandths > 0 && self.state.lock().unwrap().random.gen_range(0..1_000) < thousandths
    }

    fn delay(&self) -> Duration {
        let mut state = self.state.lock().unwrap();
        let most = u64::try_from(state.faults.max_delay.as_micros()).unwrap();
        Duration::from_micros(state.random.gen_range(0..=most))
    }

    fn apply(&self, key: &str, value: Bytes, write: &Write) -> Result<Rev, WriteError> {
        check(key, &value)?;
        let mut state = self.state.lock().unwrap();
        let conflict = || WriteError::Conflict { key: key.into() };
        let rev = Rev { incarnation: state.incarnation, number: state.counter + 1 };
        let entry = Entry { key: key.into(), value, rev };
        match write {
            Write::Create if state.records.contains_key(key) => return Err(conflict()),
            Write::Update(expected) | Write::Remove(expected) => {
                let found = state.records.get(key).map(|entry| entry.rev);
                if found.is_none() || (found != Some(*expected) && self.bug != Bug::BlindUpdates) {
                    return Err(conflict());
                }
            }
            Write::Append(last) => {
                let tail = state.logs.get(key).and_then(|log| log.last()).map(|entry| entry.rev);
                if tail != *last && self.bug != Bug::BlindAppends {
                    return Err(conflict());
                }
            }
            Write::Create => {}
        }
        state.counter = rev.number;
        let at = u64::try_from(self.start.elapsed().as_millis()).unwrap();
        let mut before = None;
        match write {
            Write::Append(_) => {
                state.history.logs.push(entry.clone());
                state.logs.entry(key.into()).or_default().push(entry);
            }
            _ => {
                if !key.starts_with("session/") {
                    state.history.records.push(Version { entry: entry.clone(), at });
                }
                before = Some(match write {
                    Write::Remove(_) => state.records.remove(key),
                    _ => state.records.insert(key.into(), entry),
                });
            }
        }
        state.unsynced.push(Unsynced { number: rev.number, key: key.into(), before });
        drop(state);
        self.changed.notify_waiters();
        Ok(rev)
    }
}

impl State {
    /// Takes back a write, whose record has other writes after it if its key is among those that are kept.
    fn undo(&mut self, Unsynced { number, key, before }: Unsynced, kept: &BTreeSet<String>) {
        let is_removal = match before {
            Some(before) => {
                let versions = &mut self.history.records;
                let at = versions.iter().rposition(|version| version.entry.rev.number == number);
                let version = at.map(|at| versions.remove(at));
                match before {
                    _ if kept.contains(&key) => {}
                    Some(entry) => drop(self.records.insert(key.clone(), entry)),
                    None => drop(self.records.remove(&key)),
                }
                version.is_some_and(|version| version.is_removal())
            }
            None => {
                self.history.logs.retain(|entry| entry.rev.number != number);
                let log = self.logs.get_mut(&key).expect("it has the entry");
                log.retain(|entry| entry.rev.number != number);
                false
            }
        };
        // What was removed and is there again is removed again.
        if number <= self.said && !is_removal {
            self.broken.push(key);
        }
    }
}

/// The store as one process sees it: it can be cut off, or frozen together with the process.
#[derive(Clone, Debug)]
pub(crate) struct MemoryStore {
    pub(crate) core: Arc<Core>,
    pub(crate) frozen: Frozen,
}

/// While this is set, nothing gets through in either direction. (Tokio's own `watch` wakes in a random order.)
#[derive(Clone, Debug, Default)]
pub(crate) struct Frozen(Arc<(AtomicBool, Notify)>);

impl Frozen {
    pub(super) fn set(&self, frozen: bool) {
        self.0.0.store(frozen, Ordering::Relaxed);
        self.0.1.notify_waiters();
    }

    async fn pass(&self) {
        loop {
            let thawed = self.0.1.notified();
            tokio::pin!(thawed);
            thawed.as_mut().enable();
            if !self.0.0.load(Ordering::Relaxed) {
                return;
            }
            thawed.await;
        }
    }
}

impl MemoryStore {
    async fn pass(&self) {
        self.frozen.pass().await;
        sleep(self.core.delay()).await;
        self.frozen.pass().await;
    }

    async fn write(
        &self,
        key: &str,
        value: Bytes,
        write: Write,
        on_disk: OnDisk,
    ) -> Result<Rev, WriteError> {
        let crashes = self.core.crashes();
        self.pass().await;
        let faults = self.core.faults();
        let unknown = || WriteError::Unknown { key: key.into(), why: "time-out".into() };
        if self.core.chance(faults.late_writes) {
            // The write takes effect later or never, even if its sender is gone by then.
            let (core, key) = (Arc::clone(&self.core), key.to_owned());
            let later = core.delay() * 40;
            if core.chance(700) {
                tokio::spawn(async move {
                    sleep(later).await;
                    if core.crashes() == crashes {
                        let _ = core.apply(&key, value, &write);
                    }
                });
            }
            sleep(Duration::from_millis(500)).await;
            return Err(unknown());
        }
        let outcome = self.core.apply(key, value, &write);
        let mut is_synced = true;
        if let (Ok(rev), OnDisk::Now) = (&outcome, on_disk) {
            is_synced = self.settle(*rev, crashes).await.is_ok();
        }
        self.pass().await;
        if !is_synced || self.core.chance(faults.lost_answers) {
            return Err(unknown());
        }
        outcome
    }

    /// Waits until a write is on disk, unless the machine crashes or the disk fails.
    async fn settle(&self, rev: Rev, crashes: u64) -> Result<(), Unavailable> {
        // Others see the write meanwhile.
        sleep(self.core.delay()).await;
        if self.core.chance(self.core.faults().failed_syncs) {
            return Err(Unavailable { why: "a broken disk".into() });
        }
        if self.core.crashes() == crashes {
            self.core.sync(rev.number);
        }
        Ok(())
    }

    async fn read<T>(&self, read: impl Fn(&State) -> T) -> Result<T, Unavailable> {
        self.pass().await;
        if self.core.chance(self.core.faults().failed_reads) {
            return Err(Unavailable { why: "time-out".into() });
        }
        let read = read(&self.core.state.lock().unwrap());
        self.pass().await;
        Ok(read)
    }
}

fn matching(state: &State, prefix: &str, after: u64) -> Vec<Entry> {
    let records = state.records.values();
    let whole = !(prefix.is_empty() || prefix.ends_with('/'));
    let of = |key: &str| if whole { key == prefix } else { key.starts_with(prefix) };
    let is_lost = |entry: &Entry| {
        let text = String::from_utf8_lossy(&entry.value);
        state.bug == Bug::LostEvents
            && entry.key.starts_with("job/")
            && text.contains(r#""state":"done""#)
    };
    let found = records.filter(|entry| of(&entry.key) && entry.rev.number > after);
    let found = found.filter(|entry| !is_lost(entry));
    let mut found: Vec<Entry> = found.cloned().collect();
    found.sort_by_key(|entry| entry.rev.number);
    found
}

#[async_trait]
impl Store for MemoryStore {
    async fn create(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.write(key, value, Write::Create, OnDisk::Now).await
    }

    async fn update(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.write(key, value, Write::Update(expected), OnDisk::Now).await
    }

    async fn create_soon(&self, key: &str, value: Bytes) -> Result<Rev, WriteError> {
        self.write(key, value, Write::Create, OnDisk::Soon).await
    }

    async fn update_soon(&self, key: &str, value: Bytes, expected: Rev) -> Result<Rev, WriteError> {
        self.write(key, value, Write::Update(expected), OnDisk::Soon).await
    }

    async fn remove(&self, key: &str, expected: Rev) -> Result<Rev, WriteError> {
        self.write(key, Bytes::new(), Write::Remove(expected), OnDisk::Soon).await
    }

    async fn written_before(&self, time: u64) -> Result<u64, Unavailable> {
        self.read(|state| {
            let known = state.history.records.iter();
            let before = known.take_while(|version| EPOCH + version.at < time);
            before.last().map_or(0, |last| last.entry.rev.number)
        })
        .await
    }

    async fn get(&self, key: &str) -> Result<Option<Entry>, Unavailable> {
        self.read(|state| state.records.get(key).cloned()).await
    }

    async fn list(&self, prefix: &str, after: u64) -> Result<Listing, Unavailable> {
        self.core.state.lock().unwrap().listed.push(prefix.to_owned());
        self.read(|state| Listing {
            entries: matching(state, prefix, after),
            at: Rev { incarnation: state.incarnation, number: state.counter },
        })
        .await
    }

    async fn watch(&self, prefix: &str, after: Rev) -> Result<Box<dyn Watch>, Unavailable> {
        let dead = self.core.chance(self.core.faults().dead_watches);
        Ok(Box::new(Changes { store: self.clone(), prefix: prefix.into(), after, dead }))
    }

    async fn append(&self, log: &str, entry: Bytes, last: Option<Rev>) -> Result<Rev, WriteError> {
        self.write(log, entry, Write::Append(last), OnDisk::Now).await
    }

    async fn append_soon(
        &self,
        log: &str,
        entry: Bytes,
        last: Option<Rev>,
    ) -> Result<Rev, WriteError> {
        self.write(log, entry, Write::Append(last), OnDisk::Soon).await
    }

    async fn on_disk(&self, rev: Rev) -> Result<(), Unavailable> {
        let crashes = self.core.crashes();
        self.pass().await;
        match self.core.is_unsynced(rev) {
            true => self.settle(rev, crashes).await,
            false => Ok(()),
        }
    }

    async fn tail(&self, log: &str) -> Result<Option<Entry>, Unavailable> {
        self.read(|state| state.logs.get(log).and_then(|log| log.last()).cloned()).await
    }

    async fn read(&self, log: &str, after: u64, limit: usize) -> Result<Vec<Entry>, Unavailable> {
        self.read(|state| {
            let entries = state.logs.get(log).into_iter().flatten();
            entries.filter(|entry| entry.rev.number > after).take(limit).cloned().collect()
        })
        .await
    }

    fn describe(&self) -> String {
        "a store in memory".into()
    }
}

struct Changes {
    store: MemoryStore,
    prefix: String,
    after: Rev,
    dead: bool,
}

#[async_trait]
impl Watch for Changes {
    async fn next(&mut self) -> Result<Vec<Entry>, WatchError> {
        if self.dead {
            std::future::pending::<()>().await;
        }
        loop {
            self.store.pass().await;
            let core = &self.store.core;
            let changed = core.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let (found, incarnation) = {
                let state = core.state.lock().unwrap();
                (matching(&state, &self.prefix, self.after.number), state.incarnation)
            };
            if incarnation != self.after.incarnation {
                return Err(WatchError::Gap);
            }
            if let Some(last) = found.last() {
                self.after = last.rev;
                return Ok(found);
            }
            changed.await;
        }
    }
}
