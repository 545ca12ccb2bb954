//! Records for operators: pages of them, and blocks that are submitted again.

use super::{StoreError, WitnessStore, now};
use crate::branch::{Tree, hash};
use crate::record::Record;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    number: u64,
    block: String,
}

impl Place {
    fn of(record: &Record) -> Self {
        Self { number: record.number, block: record.block.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.block)
    }
}

impl std::str::FromStr for Place {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let place = text.split_once('-').and_then(|(number, block)| {
            hash(block)?;
            Some(Self { number: number.parse().ok()?, block: block.to_owned() })
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
    /// The number of records that cannot be read; the log names them.
    pub unreadable: usize,
}

impl WitnessStore {
    /// Returns a page of at most `limit` records, those in a state if one is given, after a place if one is given.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn page(
        &self,
        state: Option<RecordState>,
        after: Option<&Place>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (mut found, mut unreadable) = (BTreeMap::new(), 0);
        for name in self.names()? {
            let record = match self.record(&name) {
                Ok(Some(record)) => record,
                // It was removed meanwhile.
                Ok(None) => continue,
                Err(error) => {
                    tracing::error!(%error, "a record cannot be listed: send its block again");
                    unreadable += 1;
                    continue;
                }
            };
            let place = Place::of(&record);
            if state.is_none_or(|state| state.holds(&record))
                && after.is_none_or(|after| place < *after)
            {
                found.insert(place, record);
                // One more than the page has, to see whether there is a next one. A folder may have more records than memory should.
                if found.len() > limit + 1 {
                    found.pop_first();
                }
            }
        }
        let has_next = found.len() > limit;
        if has_next {
            found.pop_first();
        }
        let next = found.first_key_value().filter(|_| has_next).map(|(place, _)| place.to_string());
        Ok(Page { records: found.into_values().rev().collect(), next, unreadable })
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
