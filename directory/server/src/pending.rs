//! Accepted updates that wait for a commit.

use super::update::Accepted;
use hekaton_directory::Index;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

/// The approximate memory of an update in addition to its label and its value, in bytes.
const ITEM: usize = 256;

/// Returns the approximate memory of an update, in bytes.
pub(crate) fn size(update: &Accepted) -> usize {
    ITEM + update.label.len() + update.opening.value.len()
}

/// Updates in the order in which they were accepted.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// The updates with the time since which they wait; without one, they have waited long enough.
    queue: VecDeque<(Accepted, Option<Instant>)>,
    /// The number of updates of each label.
    labels: HashMap<Index, usize>,
    /// The approximate memory that the updates take, in bytes.
    bytes: usize,
}

impl Pending {
    pub(crate) fn push(&mut self, update: Accepted) {
        self.count(&update);
        self.queue.push_back((update, Some(Instant::now())));
    }

    fn count(&mut self, update: &Accepted) {
        *self.labels.entry(update.index).or_default() += 1;
        self.bytes += size(update);
    }

    /// Puts updates that were taken back to their places, in the order of their numbers. They do not wait for others again.
    pub(crate) fn put_back(&mut self, updates: Vec<Accepted>) {
        let mut at = 0;
        for update in updates {
            self.count(&update);
            // Later updates of the same label may be in the queue and must stay behind this one.
            at += self
                .queue
                .range(at..)
                .take_while(|(other, _)| other.number < update.number)
                .count();
            self.queue.insert(at, (update, None));
        }
    }

    /// Returns the number of updates of a label.
    pub(crate) fn of_label(&self, index: &Index) -> usize {
        self.labels.get(index).copied().unwrap_or(0)
    }

    /// Returns the approximate memory of all updates, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of updates that could be in one commit.
    pub(crate) fn labels(&self) -> usize {
        self.labels.len()
    }

    /// The number of the first one, and since when it waits, if it is not due anyway.
    pub(crate) fn first(&self) -> Option<(u64, Option<Instant>)> {
        self.queue.front().map(|(update, since)| (update.number, *since))
    }

    /// Takes up to `limit` updates from the front of the queue, one per label. Further updates of the same label stay queued
    /// in order. The batch depends only on the order of the queue, not on its length.
    pub(crate) fn take(&mut self, limit: usize) -> Vec<Accepted> {
        let (mut taken, mut labels, mut later) = (Vec::new(), HashSet::new(), Vec::new());
        while taken.len() < limit {
            let Some((update, since)) = self.queue.pop_front() else { break };
            match labels.insert(update.index) {
                true => taken.push(update),
                false => later.push((update, since)),
            }
        }
        // In their old order: updates of one label have to be applied as they were accepted.
        for waiting in later.into_iter().rev() {
            self.queue.push_front(waiting);
        }
        for update in &taken {
            self.bytes -= size(update);
            if let Some(count) = self.labels.get_mut(&update.index) {
                *count -= 1;
                if *count == 0 {
                    self.labels.remove(&update.index);
                }
            }
        }
        taken
    }
}
