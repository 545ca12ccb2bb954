//! The end of the pipeline: commits that are on the disk become visible, in their order, whatever the order
//! in which they were written.

use super::compute::Computed;
use super::error::Error;
use super::head::Head;
use super::head_file::Keep;
use super::store::{Rows, Table};
use super::time::fail_point;
use hekaton_directory::{Digest, Record, SignedRecord, Tree};
use std::collections::BTreeMap;

/// The state that is visible, and the commits that wait for others before them.
pub(crate) struct Sequencer {
    head: Head,
    /// The chain of records up to the head.
    chain: Digest,
    keep: Box<dyn Keep>,
    waiting: BTreeMap<u64, Done>,
    /// The rows that are still to be written for commits up to the head.
    settled: Rows,
}

impl std::fmt::Debug for Sequencer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sequencer").field("head", &self.head).finish_non_exhaustive()
    }
}

/// A commit that is on the disk.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) number: u64,
    pub(crate) epoch: Option<(SignedRecord, Tree)>,
    pub(crate) before: Digest,
    pub(crate) numbers: Vec<u64>,
}

impl Computed {
    /// The rows, and what is left once they are written.
    pub(crate) fn split(self) -> (Rows, Done) {
        let Self { number, epoch, before, rows, numbers } = self;
        (rows, Done { number, epoch, before, numbers })
    }
}

/// Epochs and updates that have become visible.
#[derive(Debug, Default)]
pub(crate) struct Visible {
    /// Epochs with their trees.
    pub(crate) epochs: Vec<(SignedRecord, Tree)>,
    /// Updates that have an outcome.
    pub(crate) numbers: Vec<u64>,
}

impl Sequencer {
    /// Continues after a head and its record.
    pub(crate) fn new(head: Head, record: &Record, keep: Box<dyn Keep>) -> Self {
        let (waiting, settled) = (BTreeMap::new(), Rows::default());
        Self { head, chain: record.chain, keep, waiting, settled }
    }

    /// The same, with another head.
    #[cfg(test)]
    pub(crate) fn with(&self, keep: Box<dyn Keep>) -> Self {
        let (waiting, settled) = (self.waiting.clone(), self.settled.clone());
        Self { head: self.head, chain: self.chain, keep, waiting, settled }
    }

    /// Returns the commits that wait for others, and the keys of the rows that are to be written.
    #[cfg(test)]
    pub(crate) fn waits(&self) -> (Vec<u64>, Vec<Vec<u8>>) {
        let keys = self.settled.0.iter().map(|row| row.key.clone()).collect();
        (self.waiting.keys().copied().collect(), keys)
    }

    /// The last commit that is on the disk with all before it.
    pub(crate) fn confirmed(&self) -> u64 {
        self.head.commit
    }

    /// The head.
    pub(crate) fn head(&self) -> Head {
        self.head
    }

    /// Checks that a commit may be written now, if commits are written in their order.
    pub(crate) fn check_next(&self, commit: &Computed) -> Result<(), Error> {
        match commit.number == self.head.commit + 1 && commit.before == self.chain {
            true => Ok(()),
            false => Err(Error::Chain(commit.number)),
        }
    }

    /// Takes the rows that are still to be written for commits up to the head. They are written with the next ones.
    pub(crate) fn take_settled(&mut self) -> Rows {
        std::mem::take(&mut self.settled)
    }

    /// Takes a commit that is on the disk. It becomes visible, with those after it that waited for it, once all before it are
    /// and the head is beyond them.
    pub(crate) fn confirm(&mut self, done: Done) -> Result<Visible, Error> {
        self.waiting.insert(done.number, done);
        let (mut head, mut chain, mut ready) = (self.head, self.chain, Vec::new());
        while let Some(done) = self.waiting.remove(&(head.commit + 1)) {
            // A commit that was computed on another state must not get below the head: its record
            // would fork the history.
            if done.before != chain {
                return Err(Error::Chain(done.number));
            }
            head.commit = done.number;
            if let Some((signed, _)) = &done.epoch {
                let record = signed.unverified();
                if record.before != chain || record.epoch.checked_sub(1) != Some(head.epoch) {
                    return Err(Error::Chain(done.number));
                }
                (head.epoch, head.record, chain) = (record.epoch, record.digest(), record.chain);
            }
            ready.push(done);
        }
        let mut visible = Visible::default();
        if ready.is_empty() {
            return Ok(visible);
        }
        fail_point("before-head");
        // Before anything becomes visible: what a client has seen must never be computed a second
        // time.
        self.keep.advance(head)?;
        fail_point("after-head");
        (self.head, self.chain) = (head, chain);
        for done in ready {
            visible.epochs.extend(done.epoch);
            for number in &done.numbers {
                // Not with the commit itself: until the head is past it, a crash undoes the commit,
                // and these updates are needed again.
                self.settled.remove(Table::Intake, number.to_be_bytes());
            }
            visible.numbers.extend(done.numbers);
        }
        Ok(visible)
    }
}
