//! Accepted updates that wait for a commit.

use super::update::Accepted;
use crate::key::Index;
use std::collections::{HashMap, HashSet, VecDeque};
use std::time::Instant;

/// Updates in the order in which they were accepted.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    queue: VecDeque<(Accepted, Instant)>,
    /// How many there are of each label.
    labels: HashMap<Index, usize>,
}

impl Pending {
    pub(crate) fn push(&mut self, update: Accepted) {
        *self.labels.entry(update.index).or_default() += 1;
        self.queue.push_back((update, Instant::now()));
    }

    /// Puts updates that were taken back to the front.
    pub(crate) fn put_back(&mut self, updates: Vec<Accepted>) {
        for update in updates.into_iter().rev() {
            *self.labels.entry(update.index).or_default() += 1;
            self.queue.push_front((update, Instant::now()));
        }
    }

    /// How many could be in one commit.
    pub(crate) fn labels(&self) -> usize {
        self.labels.len()
    }

    /// The number of the first one, and since when it waits.
    pub(crate) fn first(&self) -> Option<(u64, Instant)> {
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
        for waiting in later.into_iter().rev() {
            self.queue.push_front(waiting);
        }
        for update in &taken {
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
