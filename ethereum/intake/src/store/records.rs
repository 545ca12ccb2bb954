//! Records for operators: pages of them, and blocks that are submitted again.

use super::{StoreError, WitnessStore, name, now};
use crate::branch::{Tree, hash};
use crate::record::Record;
use alloy_primitives::B256;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::PoisonError;

/// The largest number of records on a page.
pub const MAX_PAGE: u16 = 1_000;

/// The states by which records are listed. A record may be in several of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum RecordState {
    /// The job still has to be made, or made again.
    Pending,
    /// The record names a job.
    Submitted,
    /// Another branch is followed.
    Aside,
    /// The record gives a reason why there is no job, or why it does not end.
    Refused,
}

impl RecordState {
    /// Returns the name in queries.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Submitted => "submitted",
            Self::Aside => "aside",
            Self::Refused => "refused",
        }
    }

    /// Reports whether a record is in this state.
    pub fn holds(self, record: &Record) -> bool {
        match self {
            Self::Pending => record.pending,
            Self::Submitted => record.job.is_some(),
            Self::Aside => record.aside,
            Self::Refused => record.refused.is_some(),
        }
    }
}

/// A record's place in the order of pages: its height and its block, as `HEIGHT-HASH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    number: u64,
    block: B256,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, name(&self.block))
    }
}

impl std::str::FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let place = text.split_once('-').and_then(|(number, block)| {
            Some(Self { number: number.parse().ok()?, block: hash(block)? })
        });
        place.ok_or("expected the `next` of a page: a height, a hyphen and 64 hexadecimal digits")
    }
}

/// A page of records, the highest blocks first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// The records.
    pub records: Vec<Record>,
    /// The place after which the next page begins; `None` on the last page.
    pub next: Option<String>,
    /// The number of records that were left out because they cannot be read; the log names them.
    pub unreadable: usize,
}

impl WitnessStore {
    /// Returns a page of at most `limit` records, those in a state if one is given, after a place if one is given.
    pub fn page(&self, state: Option<RecordState>, after: Option<&Place>, limit: usize) -> Page {
        let (mut found, mut unreadable) = (Vec::new(), BTreeSet::new());
        let mut places = self.places(&mut unreadable);
        places.retain(|place| after.is_none_or(|after| place < after));
        places.sort_unstable_by_key(|place| std::cmp::Reverse(*place));
        places.dedup();
        let mut next = None;
        // Only as many records are read as the page needs, and one more, to see whether there is a next page.
        for place in places {
            // A record that is missing was removed meanwhile.
            let Some(record) = self.listed(&name(&place.block), &mut unreadable) else { continue };
            if state.is_none_or(|state| state.holds(&record)) {
                if found.len() == limit {
                    next = found.last().map(|(place, _): &(Place, Record)| place.to_string());
                    break;
                }
                found.push((place, record));
            }
        }
        let records = found.into_iter().map(|(_, record)| record).collect();
        Page { records, next, unreadable: unreadable.len() }
    }

    /// Returns the places of all records, in no order.
    fn places(&self, unreadable: &mut BTreeSet<String>) -> Vec<Place> {
        let blocks: Vec<(u64, B256)> = self.tree().blocks().collect();
        // Records that could not be read at the start are not in the tree. They may have been replaced or restored since.
        let ignored = self.ignored.iter().filter_map(|name| {
            let record = self.listed(name, unreadable)?;
            let link = record.link();
            if link.is_none() {
                unreadable.insert(name.clone());
            }
            link.map(|(block, link)| (link.number, block))
        });
        let all = blocks.into_iter().chain(ignored);
        all.map(|(number, block)| Place { number, block }).collect()
    }

    /// Reads a record for a page. One that cannot be read is logged once, not for each page.
    fn listed(&self, name: &str, unreadable: &mut BTreeSet<String>) -> Option<Record> {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        match self.record(name) {
            Ok(record) => {
                logged.remove(name);
                record
            }
            Err(error) => {
                if logged.insert(name.to_owned()) {
                    tracing::error!(%error, "a record cannot be listed: send its block again");
                }
                unreadable.insert(name.to_owned());
                None
            }
        }
    }

    /// Treats a block as if it had arrived again: its branch is followed, and its job is made if it is missing. Returns its record;
    /// `None` if there is none.
    ///
    /// # Errors
    /// If the record cannot be read or written.
    pub fn resubmit(&self, block: &str) -> Result<Option<Record>, StoreError> {
        let mut tree = self.tree();
        let Some(known) = self.record(block)? else { return Ok(None) };
        Ok(Some(self.put(&mut tree, known.again(now()))?))
    }

    /// Writes the record of the last payload.
    pub(super) fn put(&self, tree: &mut Tree, record: Record) -> Result<Record, StoreError> {
        let record = Record { order: tree.next(), ..record };
        self.write(&record)?;
        // Only once the record exists: thus `prune` either lists it or finds it noted.
        if let Some(fresh) = &mut *self.fresh.lock().unwrap_or_else(PoisonError::into_inner) {
            fresh.extend(record.blobs());
        }
        if let Some((block, link)) = record.link() {
            tree.insert(block, link);
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::canonical::Options;
    use crate::record::Source;
    use crate::stand_in::Block;
    use std::fs::{read, read_to_string, write};

    /// A record that cannot be read is counted on each page and logged once, whether that is noticed at the start or later. Once it
    /// is restored, it is listed.
    #[test]
    fn unreadable_records_are_logged_once() {
        let folder = tempfile::tempdir().unwrap();
        let open = || WitnessStore::open(folder.path(), Options::default()).unwrap();
        let store = open();
        for block in Block::chain(1, 2, 2, 2_000) {
            let envelope = &block.parameters.envelope;
            store.accept(Source::Push, envelope, None, &block.witness(), &[]).unwrap();
        }
        let all = store.page(None, None, 5);
        assert_eq!((all.records.len(), all.unreadable), (2, 0));
        let [first, second] = [1, 0].map(|at| store.path(&all.records[at].block));
        let texts = [&first, &second].map(|path| read(path).unwrap());
        drop(store);
        write(&first, "{").unwrap();
        let log = folder.path().join("log");
        let writer = std::fs::File::create(&log).unwrap();
        let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(writer).finish();
        tracing::subscriber::with_default(subscriber, || {
            let store = open();
            assert_eq!(store.page(None, None, 5).unreadable, 1);
            write(&second, "{").unwrap();
            for _ in 0..3 {
                let page = store.page(None, None, 5);
                assert_eq!((page.records.len(), page.unreadable), (0, 2));
            }
            let log = read_to_string(&log).unwrap();
            assert_eq!(log.matches("a record is ignored").count(), 1, "{log}");
            assert_eq!(log.matches("a record cannot be listed").count(), 1, "{log}");
            [&first, &second].into_iter().zip(&texts).for_each(|(path, text)| {
                write(path, text).unwrap();
            });
            assert_eq!(store.page(None, None, 5), all);
        });
    }
}
