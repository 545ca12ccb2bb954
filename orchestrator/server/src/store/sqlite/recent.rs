//! The last changes of records, which watches read instead of the database.
//!
//! Whoever writes adds its own commits. A commit of another process shows in the counter, and the missing changes are then read
//! from the database, so the sequence is complete and in the order of revisions.

use super::rows::entries;
use super::schema;
use crate::store::Entry;
use rusqlite::Connection;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The number of changes that are kept.
// A watch that is further behind reads the database instead, so a limit costs time and loses no
// change.
const MAX_CHANGES: usize = 4_096;

/// The number of bytes of values that are kept.
const MAX_BYTES: usize = 16 << 20;

/// The last changes.
#[derive(Debug)]
pub(super) struct Recent {
    incarnation: u64,
    kept: Mutex<Kept>,
    /// Rises with each addition.
    times: tokio::sync::watch::Sender<u64>,
}

/// All changes after one revision, up to another one. A record that was written several times may appear only in its last version.
#[derive(Debug)]
struct Kept {
    changes: VecDeque<Entry>,
    bytes: usize,
    after: u64,
    upto: u64,
}

impl Recent {
    /// Starts without changes, at a revision of the database.
    pub(super) fn new(incarnation: u64, upto: u64) -> Self {
        let kept = Kept { changes: VecDeque::new(), bytes: 0, after: upto, upto };
        let times = tokio::sync::watch::Sender::new(0);
        Self { incarnation, kept: Mutex::new(kept), times }
    }

    /// Returns the store's incarnation.
    pub(super) fn incarnation(&self) -> u64 {
        self.incarnation
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the revision up to which changes are known.
    pub(super) fn upto(&self) -> u64 {
        self.kept().upto
    }

    /// Wakes whenever changes are added.
    pub(super) fn subscribe(&self) -> tokio::sync::watch::Receiver<u64> {
        self.times.subscribe()
    }

    /// Adds all changes after one revision up to another one. Returns whether that revision was the last one.
    fn add(&self, from: u64, changes: Vec<Entry>, upto: u64) -> bool {
        let mut kept = self.kept();
        // Changes with a gap before them, or with an overlap, would be reported incompletely or out
        // of order, and watches promise that neither happens.
        if kept.upto != from {
            return false;
        }
        kept.upto = upto;
        kept.bytes += changes.iter().map(|change| change.value.len()).sum::<usize>();
        kept.changes.extend(changes);
        while kept.changes.len() > MAX_CHANGES || kept.bytes > MAX_BYTES {
            let Some(oldest) = kept.changes.pop_front() else { break };
            kept.bytes -= oldest.value.len();
            // The start moves with what is dropped, so that a watch from before it is sent to the
            // database and not given a list with a gap.
            kept.after = oldest.rev.number;
        }
        drop(kept);
        self.times.send_modify(|times| *times = times.wrapping_add(1));
        true
    }

    /// Adds what was committed after one revision up to another one.
    pub(super) fn committed(
        &self,
        connection: &Connection,
        from: u64,
        changes: Vec<Entry>,
        upto: u64,
    ) {
        // Another process has committed in between. Its changes and these are read together, in
        // order.
        if !self.add(from, changes, upto) && self.upto() < upto {
            self.catch_up(connection);
        }
    }

    /// Adds what other processes have committed.
    pub(super) fn catch_up(&self, connection: &Connection) {
        loop {
            let from = self.upto();
            let read = || {
                // One snapshot for both.
                let transaction = connection.unchecked_transaction()?;
                let upto = schema::counter(&transaction)?;
                let changes = match upto > from {
                    true => entries(&transaction, self.incarnation, "", from, i64::MAX)?,
                    false => vec![],
                };
                Ok::<_, rusqlite::Error>((changes, upto))
            };
            match read() {
                Ok((_, upto)) if upto <= from => return,
                Ok((changes, upto)) => {
                    if self.add(from, changes, upto) {
                        return;
                    }
                    // Another thread was faster.
                }
                Err(error) => {
                    // The next commit shows the same gap.
                    tracing::warn!(%error, "changes are reported later");
                    return;
                }
            }
        }
    }

    /// The changes under a prefix after a revision, and up to which revision these are all; none if they are too long ago.
    pub(super) fn since(&self, prefix: &str, after: u64) -> Option<(Vec<Entry>, u64)> {
        let whole = !(prefix.is_empty() || prefix.ends_with('/'));
        let kept = self.kept();
        if after < kept.after {
            return None;
        }
        let first = kept.changes.partition_point(|change| change.rev.number <= after);
        let found = kept.changes.range(first..).filter(|change| match whole {
            true => change.key == prefix,
            false => change.key.starts_with(prefix),
        });
        Some((found.cloned().collect(), kept.upto))
    }
}
