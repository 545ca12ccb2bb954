//! The records of a store as they change, for the components of a process.
//!
//! A watch reports changes at once; a sweep every ten seconds finds what the watch missed, because a watch may die without an error.
//! Neither reports that a job was removed, which matters only to the memory that it takes: once per day, all jobs are listed.

use crate::clock::Clock;
use crate::record::{Chain, Job, JobKey, Owner, Stored, Task, TaskKey, decode};
use crate::store::{Entry, Listing, Rev, Store, Unavailable, Watch, WatchError};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

/// The interval at which the store is asked for what a watch may have missed.
pub(crate) const SWEEP: Duration = Duration::from_secs(10);

/// The interval at which removed jobs are looked for.
const LIST: Duration = Duration::from_secs(24 * 3_600);

/// The first pause before a store that does not answer is asked again. It doubles each time, up to `MAX_PAUSE`.
const PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(5);

/// The prefixes of the keys that are followed.
const PREFIXES: [&str; 4] = ["owner/", "chain/", "job/", "task/"];

/// A change. A record may be reported again; an earlier revision after a later one is to be ignored.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Everything known is forgotten: all records follow.
    Reset,
    /// All records have been reported once.
    Complete,
    Owner(u8, Arc<Stored<Owner>>),
    Chain(Arc<Stored<Chain>>),
    Job(JobKey, Arc<Stored<Job>>),
    /// All jobs that are there.
    Listed(Arc<Listed>),
    Task(TaskKey, Arc<Stored<Task>>),
}

/// The jobs that were there at a revision.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) keys: BTreeSet<JobKey>,
    pub(crate) at: Rev,
}

impl Listed {
    async fn read(store: &dyn Store) -> Result<Arc<Self>, Unavailable> {
        let Listing { entries, at } = store.list("job/", 0).await?;
        let keys = entries.iter().filter_map(|entry| entry.key.parse().ok()).collect();
        Ok(Arc::new(Self { keys, at }))
    }

    /// Reports whether a job that was written at a revision was removed.
    pub(crate) fn is_removed(&self, key: &JobKey, rev: Rev) -> bool {
        rev.incarnation == self.at.incarnation
            && rev.number <= self.at.number
            && !self.keys.contains(key)
    }
}

/// Reports whether a reported revision is news.
pub(crate) fn is_newer(known: Option<Rev>, reported: Rev) -> bool {
    known.is_none_or(|known| {
        known.incarnation != reported.incarnation || known.number < reported.number
    })
}

/// Reports to components until all of them are gone.
pub(crate) async fn feed(
    store: Arc<dyn Store>,
    clock: Clock,
    components: Vec<UnboundedSender<Event>>,
) {
    let mut pause = PAUSE;
    loop {
        match follow(&*store, &clock, &components, &mut pause).await {
            Ok(()) => return,
            Err(WatchError::Gap) => tracing::warn!(store = store.describe(), "listing again"),
            Err(WatchError::Unavailable(error)) => tracing::warn!(%error, "waiting for the store"),
        }
        clock.sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}

fn send(components: &[UnboundedSender<Event>], event: &Event) -> bool {
    // A component that ended has no more use for events; the others still do.
    components.iter().filter(|component| component.send(event.clone()).is_ok()).count() > 0
}

/// Lists all records and follows them.
async fn follow(
    store: &dyn Store,
    clock: &Clock,
    components: &[UnboundedSender<Event>],
    pause: &mut Duration,
) -> Result<(), WatchError> {
    let (mut listings, mut watches, mut seen) = (Vec::new(), Vec::new(), Vec::new());
    for prefix in PREFIXES {
        // The list before the watch, which begins where the list ends: nothing falls in between.
        let listing = store.list(prefix, 0).await?;
        watches.push(store.watch(prefix, listing.at).await?);
        seen.push(listing.at);
        listings.push(listing);
    }
    if !send(components, &Event::Reset) {
        return Ok(());
    }
    for entry in listings.into_iter().flat_map(|listing| listing.entries) {
        report(components, &entry);
    }
    send(components, &Event::Complete);
    *pause = PAUSE;
    let each: [Box<dyn Watch>; 4] = watches.try_into().ok().expect("a watch for each prefix");
    let [mut owners, mut chains, mut jobs, mut tasks] = each;
    let (mut sweep, mut list) = (clock.after(SWEEP), clock.after(LIST));
    loop {
        let (at, changes) = tokio::select! {
            // Owners and chains first: who looks after a job must be known before the job is seen.
            biased;
            changes = owners.next() => (0, changes?),
            changes = chains.next() => (1, changes?),
            changes = jobs.next() => (2, changes?),
            changes = tasks.next() => (3, changes?),
            () = tokio::time::sleep_until(sweep) => {
                sweep = clock.after(SWEEP);
                if !self::sweep(store, components, &mut seen).await? {
                    return Ok(());
                }
                if Instant::now() >= list {
                    list = clock.after(LIST);
                    send(components, &Event::Listed(Listed::read(store).await?));
                }
                continue;
            }
        };
        for entry in &changes {
            if !report(components, entry) {
                return Ok(());
            }
        }
        if let Some(last) = changes.last() {
            // The store was replaced during the watch, so the records listed before are of no use.
            if last.rev.incarnation != seen[at].incarnation {
                return Err(WatchError::Gap);
            }
            seen[at].number = seen[at].number.max(last.rev.number);
        }
    }
}

/// Reports what was written since the last change that a watch reported.
async fn sweep(
    store: &dyn Store,
    components: &[UnboundedSender<Event>],
    seen: &mut [Rev],
) -> Result<bool, WatchError> {
    for (prefix, seen) in PREFIXES.into_iter().zip(seen) {
        let listing = store.list(prefix, seen.number).await?;
        // A counter that went back belongs to another history, whose writes up to the old number would never be listed.
        if listing.at.incarnation != seen.incarnation || listing.at.number < seen.number {
            return Err(WatchError::Gap);
        }
        for entry in &listing.entries {
            if !report(components, entry) {
                return Ok(false);
            }
        }
        *seen = listing.at;
    }
    Ok(true)
}

/// Reports a record. Returns whether any component listens.
fn report(components: &[UnboundedSender<Event>], entry: &Entry) -> bool {
    fn read<T: DeserializeOwned>(entry: &Entry) -> Option<Arc<Stored<T>>> {
        match decode(entry) {
            Ok(stored) => Some(Arc::new(stored)),
            Err(error) => {
                // Written by a later version, or by hand: what cannot be understood is left alone.
                tracing::error!(%error, "a record is ignored");
                None
            }
        }
    }
    fn key<K: FromStr>(entry: &Entry) -> Option<K> {
        let key = entry.key.parse().ok();
        if key.is_none() {
            tracing::error!(key = entry.key, "a record is ignored: its key is malformed");
        }
        key
    }
    let event = match entry.key.split('/').next() {
        Some("owner") => {
            let partition = entry.key.strip_prefix("owner/").and_then(|digits| digits.parse().ok());
            partition.zip(read(entry)).map(|(partition, owner)| Event::Owner(partition, owner))
        }
        Some("chain") => read(entry).map(Event::Chain),
        Some("job") => key(entry).zip(read(entry)).map(|(key, job)| Event::Job(key, job)),
        Some("task") => key(entry).zip(read(entry)).map(|(key, task)| Event::Task(key, task)),
        _ => None,
    };
    event.is_none_or(|event| send(components, &event))
}

/// Asks a store until it answers.
pub(crate) async fn patiently<T, F>(clock: &Clock, mut ask: impl FnMut() -> F) -> T
where
    F: Future<Output = Result<T, Unavailable>>,
{
    let mut pause = PAUSE;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => tracing::warn!(%error, "waiting for the store"),
        }
        clock.sleep(pause).await;
        pause = (pause * 2).min(MAX_PAUSE);
    }
}
