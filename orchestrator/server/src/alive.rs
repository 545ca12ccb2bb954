//! Liveness of processes: each process writes its session every second, and watches the sessions of others.
//!
//! A session may be taken for dead after five answered reads in a row, at least a second apart by the observer's own clock, that are all
//! equal. After a pause of its own, the observer starts over, because it cannot tell whether it or the other process was asleep. A wrong
//! judgment costs work, never correctness, since a process that lost a lease can no longer write the task.

use crate::clock::Clock;
use crate::record::{Session, SessionId, Stored, create, decode, session_key, update};
use crate::store::{Listing, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// The interval between writes of a session.
const BEAT: Duration = Duration::from_secs(1);

/// The interval between reads of other sessions: a little longer than that between writes, so that rounding does not make reads too
/// close to count.
pub(crate) const LOOK: Duration = Duration::from_millis(1_100);

/// The number of equal reads after which a session is dead.
// At intervals of `LOOK`, five reads take 4.4 s and the last beat is up to 1 s older, which is what
// the guide calls five seconds of silence.
const READS: u32 = 5;

/// The number of equal reads of its own session after which an observer starts over.
// Less than `READS`, so that an observer whose own beats are not stored starts over before it can
// take others for dead.
const STILL: u32 = 2;

/// The length of a pause after which the observer starts over.
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// A function that reports whether a session on this machine has ended, as far as that can be determined immediately.
pub(crate) type LivenessProbe = Arc<dyn Fn(&SessionId, &Session) -> bool + Send + Sync>;

/// A session's own state, which its components change.
pub(crate) type SharedSession = Arc<Mutex<Session>>;

/// The time at which a session was last written, shared with those that ask for it.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Arc<Mutex<Instant>>);

impl Pulse {
    /// Returns the pulse of a process that starts now.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }

    fn written(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the time since the last write, if it is long enough for others to take this process for dead.
    pub(crate) fn is_late(&self) -> Option<Duration> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(last.elapsed()).filter(|elapsed| *elapsed > READS * BEAT)
    }
}

/// Writes a session until the future is dropped, and immediately when the process begins to drain, so that others take over what it
/// gives back without waiting for its death.
pub(crate) async fn beat(
    store: Arc<dyn Store>,
    clock: Clock,
    id: SessionId,
    own: SharedSession,
    pulse: Pulse,
    drain: CancellationToken,
) {
    let key = session_key(&id);
    let mut last: Option<Stored<Session>> = None;
    let mut told = false;
    loop {
        let next = {
            let mut session = own.lock().unwrap_or_else(PoisonError::into_inner);
            // Also after a failed write: it may have taken effect, and the next one must differ from it.
            session.counter += 1;
            session.draining |= drain.is_cancelled();
            session.clone()
        };
        // The session is created anew where the store has lost it, as one in memory does when its server restarts.
        let written = match &last {
            Some(stored) => update(&*store, &key, next, stored.rev).await,
            None => create(&*store, &key, next).await,
        };
        last = match written {
            Ok(stored) => {
                pulse.written();
                Some(stored)
            }
            Err(error) => {
                // Either an earlier write of this process took effect late, or the store was recreated: read the current record.
                tracing::warn!(%error, "the session was not written");
                match store.get(&key).await {
                    Ok(entry) => entry.as_ref().and_then(|entry| decode(entry).ok()),
                    Err(_) => last,
                }
            }
        };
        tokio::select! {
            () = clock.sleep(BEAT) => {}
            () = drain.cancelled(), if !told => told = true,
        }
    }
}

/// An observer's record of the sessions that it has read.
#[derive(Debug, Default)]
pub(crate) struct Observer {
    readings: BTreeMap<SessionId, Reading>,
    sessions: BTreeMap<SessionId, Session>,
    last: Option<Duration>,
    incarnation: Option<u64>,
}

#[derive(Debug)]
struct Reading {
    counter: Option<u64>,
    equal: u32,
}

impl Observer {
    /// Takes note of an answered read of all sessions. `wanted` are the sessions that hold leases or partitions: they count as read even if
    /// they have no record.
    pub(crate) fn read(
        &mut self,
        now: Duration,
        listing: &Listing,
        wanted: &[SessionId],
        own: &SessionId,
    ) {
        let pause = self.last.map(|last| now.saturating_sub(last));
        // Reads closer together than beats are equal for a session that is alive.
        if pause.is_some_and(|pause| pause < BEAT) {
            return;
        }
        // Counters of another store say nothing about those of this one.
        let other = self.incarnation.is_some_and(|known| known != listing.at.incarnation);
        if other || pause.is_some_and(|pause| pause > MAX_PAUSE) {
            self.readings.clear();
        }
        (self.last, self.incarnation) = (Some(now), Some(listing.at.incarnation));
        self.sessions = listing
            .entries
            .iter()
            .filter_map(|entry| {
                let id = entry.key.strip_prefix("session/")?.parse().ok()?;
                Some((id, decode::<Session>(entry).ok()?.value))
            })
            .collect();
        let ids: BTreeSet<_> = self.sessions.keys().chain(wanted).cloned().collect();
        self.readings.retain(|id, _| ids.contains(id));
        for id in ids {
            let counter = self.sessions.get(&id).map(|session| session.counter);
            match self.readings.get_mut(&id) {
                Some(reading) if reading.counter == counter => reading.equal += 1,
                _ => drop(self.readings.insert(id, Reading { counter, equal: 1 })),
            }
        }
        // The observer's own session is alive. If its counter does not rise, the store accepts no writes, which does not make any session
        // dead.
        if self.readings.get(own).is_some_and(|reading| reading.equal > STILL) {
            self.readings.clear();
        }
    }

    /// Reports whether a session may be taken for dead.
    pub(crate) fn is_dead(&self, id: &SessionId, gone: &LivenessProbe) -> bool {
        self.readings.get(id).is_some_and(|reading| reading.equal >= READS)
            || self.sessions.get(id).is_some_and(|session| gone(id, session))
    }

    /// The sessions that are not dead.
    pub(crate) fn living<'a>(
        &'a self,
        gone: &'a LivenessProbe,
    ) -> impl Iterator<Item = (&'a SessionId, &'a Session)> {
        self.sessions.iter().filter(move |(id, _)| !self.is_dead(id, gone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::encode;
    use crate::store::{Entry, Rev};

    fn id() -> SessionId {
        SessionId::from_number(7)
    }

    fn listing(incarnation: u64, counter: Option<u64>) -> Listing {
        let rev = Rev { incarnation, number: 1 };
        let entries = counter.map(|counter| {
            let session = Session {
                counter,
                host: "h".into(),
                pid: 1,
                collects: true,
                slots: 1,
                backends: vec![],
                quarantined: BTreeMap::new(),
                draining: false,
                running: BTreeMap::new(),
            };
            Entry { key: session_key(&id()), value: encode(&session, 0), rev }
        });
        Listing { entries: entries.into_iter().collect(), at: rev }
    }

    /// Reads at times in milliseconds; returns whether the session is dead after the last one.
    fn dead(reads: &[(u64, u64, Option<u64>)]) -> bool {
        let gone: LivenessProbe = Arc::new(|_, _| false);
        let mut observer = Observer::default();
        for &(at, incarnation, counter) in reads {
            let read = listing(incarnation, counter);
            observer.read(Duration::from_millis(at), &read, &[id()], &SessionId::from_number(8));
        }
        observer.is_dead(&id(), &gone)
    }

    #[test]
    fn five_equal_reads_in_a_row_make_a_session_dead() {
        let at = |second: u64| second * 1_000;
        let equal = |reads: std::ops::Range<u64>| reads.map(move |s| (at(s), 1, Some(3)));
        assert!(!dead(&equal(0..4).collect::<Vec<_>>()));
        assert!(dead(&equal(0..5).collect::<Vec<_>>()));
        // one that is not there at all
        assert!(dead(&(0..5).map(|s| (at(s), 1, None)).collect::<Vec<_>>()));
        // a store that nobody can write
        let gone: LivenessProbe = Arc::new(|_, _| false);
        let mut observer = Observer::default();
        for second in 0..20 {
            observer.read(Duration::from_secs(second), &listing(1, Some(3)), &[], &id());
        }
        assert!(!observer.is_dead(&id(), &gone));
        // a beat in between
        let mut reads: Vec<_> = equal(0..5).collect();
        reads[2].2 = Some(2);
        assert!(!dead(&reads));
        // reads that follow each other too fast do not count
        assert!(!dead(&(0..9).map(|tenth| (tenth * 100, 1, Some(3))).collect::<Vec<_>>()));
        // the observer slept
        let mut reads: Vec<_> = equal(0..3).collect();
        reads.extend(equal(10..12));
        assert!(!dead(&reads));
        // the sessions are in another store
        let mut reads: Vec<_> = equal(0..5).collect();
        reads[4].1 = 2;
        assert!(!dead(&reads));
    }
}
