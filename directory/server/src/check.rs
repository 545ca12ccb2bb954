//! Checking a whole database.

use super::compute::{load, steps_of};
use super::damaged::Damaged;
use super::error::Error;
use super::log_tiles::tile;
use super::proofs;
use super::rows::{self, Format, LAST, LogKind, LogPlace, Value, Written};
use super::store::{Store, StoreError, Table};
use super::update::{Accepted, Outcome};
use super::view::{View, changes, witness};
use hekaton_directory::{
    Change, Checked, Commitment, Digest, Entry, Index, Leaf, Parameters, Place, Record,
    SignedRecord, Tree, log, log::Frontier,
};

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

/// The contents of a database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The last epoch; all records up to it are checked.
    pub epochs: u32,
    /// Leaves, with all their values.
    pub leaves: u64,
    /// Entries of the log.
    pub entries: u64,
    /// Rows of tiles of the tree, and of all epochs that are not pruned.
    pub tiles: u64,
    /// The last epoch up to which there are proofs, which are not verified.
    pub proven: u32,
}

/// Checks everything against the record of the last epoch: records, their tree and signatures, the log and what epochs have changed,
/// the tree and all values, that commits have written what they say and tiles are of commits, that proofs leave no epoch
/// out, and that accepted updates can be read. Epochs that are closed
/// meanwhile are left alone.
pub(crate) fn check(view: &View, parameters: &Parameters) -> Result<Report, Error> {
    let store: &dyn Store = &*view.store;
    let last = view.record;
    let format: Format = rows::get(store, Table::Format, &rows::FORMAT)?;
    let database = Database { view, store, parameters };
    let (leaves, logs) = database.check_epochs()?;
    // All that epochs have written of trees.
    for epoch in format.pruned..=last.epoch {
        database.check_tree(epoch, epoch > format.pruned)?;
    }
    let count = database.check_last_tree(&leaves)?;
    let proven = proofs::check(store, last.epoch)?;
    for key in keys(store, Table::Intake)? {
        let number = rows::number(Table::Intake, &key)?;
        // One that was there a moment ago may have its outcome now.
        if let Some(bytes) = store.get(Table::Intake, &key)? {
            Accepted::decode(number, &bytes)?;
        }
    }
    let tiles = check_rows(store, &format, (last.epoch, view.commit), &logs, proven)?;
    Ok(Report { epochs: last.epoch, leaves: count, entries: last.log_size, tiles, proven })
}

/// A database and what it is checked against.
struct Database<'d> {
    view: &'d View,
    store: &'d dyn Store,
    parameters: &'d Parameters,
}

impl Database<'_> {
    /// Checks all records, both logs, and the leaves that epochs have written, which are entries of one. Returns the last leaf of each
    /// index, and the logs.
    fn check_epochs(&self) -> Result<(HashMap<Index, Leaf>, Logs), Error> {
        let (store, last) = (self.store, self.view.record);
        let mut leaves: HashMap<Index, Leaf> = HashMap::new();
        let (mut frontier, mut earlier) = (Frontier::default(), Frontier::default());
        let (mut digests, mut records): (Vec<Digest>, Vec<Digest>) = (Vec::new(), Vec::new());
        let mut before: Option<Checked> = None;
        for epoch in 0..=last.epoch {
            let checked = self.check_record(epoch, before.as_ref())?;
            let record = *checked.record();
            before = Some(checked);
            if earlier.root() != record.records {
                let why = "its tree of records is not that of the records before it";
                return Err(Damaged::new(Table::Epoch, &epoch.to_be_bytes(), why).into());
            }
            // The last one is in no tree yet.
            if epoch < last.epoch {
                earlier.append(&[record.entry()]);
                records.push(record.entry());
            }
            let new = changes(store, epoch)?;
            for leaf in &new {
                check_leaf(store, epoch, leaf, leaves.get(&leaf.index))?;
                leaves.insert(leaf.index, *leaf);
            }
            let entries: Vec<Digest> = new.iter().map(|leaf| log::entry(&leaf.encode())).collect();
            frontier.append(&entries);
            digests.extend(entries);
            if (frontier.size(), frontier.root()) != (record.log_size, record.log_root) {
                let why = "the log of the record is not that of what the epochs have changed";
                return Err(Damaged::new(Table::Changes, &epoch.to_be_bytes(), why).into());
            }
        }
        if before.is_none_or(|checked| *checked.record() != last) {
            let why = "it is not the record that was signed last";
            return Err(Damaged::new(Table::Epoch, &last.epoch.to_be_bytes(), why).into());
        }
        let logs = Logs {
            updates: Log::new(LogKind::Updates, digests),
            records: Log::new(LogKind::Records, records),
        };
        logs.updates.check_all(store, (last.epoch, last.log_size))?;
        logs.records.check_all(store, (last.epoch, last.epoch.into()))?;
        Ok((leaves, logs))
    }

    /// Checks the signature of a record, and that it continues the one before.
    fn check_record(&self, epoch: u32, before: Option<&Checked>) -> Result<Checked, Error> {
        let at = epoch.to_be_bytes();
        let damaged = |why: String| Damaged::new(Table::Epoch, &at, why);
        let record: Record = rows::get(self.store, Table::Epoch, &at)?;
        let signature = rows::get(self.store, Table::Signature, &at)?;
        let verified = SignedRecord::of(record, signature).verify(self.parameters);
        let checked = verified.map_err(|error| damaged(error.to_string()))?;
        if let Some(before) = before {
            checked.check_after(before).map_err(|error| damaged(error.to_string()))?;
        }
        Ok(checked)
    }

    /// Returns the tree of an epoch with what is on the ways to these indices, which are sorted.
    fn load_tree(&self, epoch: u32, indices: &[Index]) -> Result<Tree, Error> {
        let record: Record = rows::get(self.store, Table::Epoch, &epoch.to_be_bytes())?;
        let tree = Tree::away(self.parameters.profile, epoch, record.leaves, record.root);
        load(self.store, &tree, indices, self.view.levels)
    }

    /// Checks what an epoch has written of its tree, and its witness, if the tree of the epoch before is not pruned.
    fn check_tree(&self, epoch: u32, has_before: bool) -> Result<(), Error> {
        let leaves = changes(self.store, epoch)?;
        let mut indices: Vec<Index> = leaves.iter().map(|leaf| leaf.index).collect();
        indices.push(Index([0; 16]));
        indices.sort_unstable();
        self.load_tree(epoch, &indices)?;
        if has_before && let Some(found) = witness(self.store, epoch)? {
            let before = self.load_tree(epoch - 1, &indices)?;
            let change = |leaf: &Leaf| Change { index: leaf.index, commitment: leaf.commitment };
            let changes: Vec<Change> = leaves.iter().map(change).collect();
            let (_, steps) = steps_of(self.store, &before, &changes, self.view.levels)?;
            if steps != found {
                let why = "it is not that of what the epoch has changed";
                return Err(Damaged::new(Table::Witness, &epoch.to_be_bytes(), why).into());
            }
        }
        Ok(())
    }

    /// Checks that the last tree has these leaves, and no others. Returns their number.
    fn check_last_tree(&self, leaves: &HashMap<Index, Leaf>) -> Result<u64, Error> {
        let last = self.view.record;
        let tree = Tree::away(self.parameters.profile, last.epoch, last.leaves, last.root);
        let mut count = 0;
        let mut indices: Vec<Index> = leaves.keys().copied().collect();
        indices.sort_unstable();
        for some in indices.chunks(1 << 12) {
            let loaded = load(self.store, &tree, some, self.view.levels)?;
            for index in some {
                let found = loaded.leaf(index).map_err(hekaton_directory::UpdateError::from)?;
                if found != leaves.get(index).copied() {
                    let why = "the tree has not the leaf that the epochs have written";
                    return Err(Damaged::new(Table::Node, &index.0, why).into());
                }
                count += 1;
            }
        }
        if count != last.leaves {
            let why = format!("{count} leaves, and the record says {}", last.leaves);
            return Err(Damaged::new(Table::Epoch, &last.epoch.to_be_bytes(), why).into());
        }
        Ok(count)
    }
}

/// Checks a leaf that an epoch has written over another one, and its value.
fn check_leaf(
    store: &dyn Store,
    epoch: u32,
    leaf: &Leaf,
    before: Option<&Leaf>,
) -> Result<(), Error> {
    let version = before.map_or(Some(0), |old| old.version.checked_add(1));
    if Some(leaf.version) != version || leaf.epoch.checked_add(1) != Some(epoch) {
        let why = format!("a leaf of version {} that was not next", leaf.version);
        return Err(Damaged::new(Table::Changes, &epoch.to_be_bytes(), why).into());
    }
    check_value(store, leaf, before)
}

fn check_value(store: &dyn Store, leaf: &Leaf, before: Option<&Leaf>) -> Result<(), Error> {
    let key = rows::value_key(&leaf.index, leaf.version);
    let damaged = |why: &str| -> Error { Damaged::new(Table::Value, &key, why).into() };
    let value: Value = rows::get(store, Table::Value, &key)?;
    let digest = match &value.entry {
        Entry::Erased(digest) => *digest,
        Entry::Value(opening) => {
            opening.digest(&value.label).map_err(|error| damaged(&error.to_string()))?
        }
    };
    let index = Index::of(&value.label).map_err(|error| damaged(&error.to_string()))?;
    let is_right = index == leaf.index
        && value.before == before.map_or(Commitment::NONE, |leaf| leaf.commitment)
        && value.before.then(&digest) == leaf.commitment;
    if is_right { Ok(()) } else { Err(damaged("it is not what its leaf commits to")) }
}

/// The logs of a directory.
struct Logs {
    updates: Log,
    records: Log,
}

impl Logs {
    /// Checks a stored tile as of the epoch of a record.
    fn check(&self, store: &dyn Store, place: LogPlace, record: &Record) -> Result<(), Error> {
        let (log, size) = match place.level().0 {
            LogKind::Updates => (&self.updates, record.log_size),
            LogKind::Records => (&self.records, record.epoch.into()),
        };
        log.check(store, place, (record.epoch, size))
    }
}

/// A log: the roots of complete subtrees of its tiles' levels.
struct Log {
    kind: LogKind,
    levels: Vec<Vec<Digest>>,
}

impl Log {
    fn new(kind: LogKind, mut digests: Vec<Digest>) -> Self {
        let mut levels = Vec::new();
        while !digests.is_empty() {
            let above =
                digests.as_chunks::<256>().0.iter().map(|tile| log::root_of(tile)).collect();
            levels.push(std::mem::replace(&mut digests, above));
        }
        Self { kind, levels }
    }

    /// The tile's contents when the log has `size` entries.
    fn tile(&self, place: LogPlace, size: u64) -> &[Digest] {
        let (_, level) = place.level();
        let digests = self.levels.get(usize::from(level)).map_or(&[][..], |level| level);
        let there = size.checked_shr(8 * u32::from(level)).unwrap_or(0);
        let at = |number: u64| usize::try_from(number.min(there)).unwrap_or(usize::MAX);
        let first = place.number.saturating_mul(256);
        digests.get(at(first)..at(first.saturating_add(256))).unwrap_or_default()
    }

    /// Checks all stored tiles as of an epoch, when the log had `size` entries.
    fn check_all(&self, store: &dyn Store, at: (u32, u64)) -> Result<(), Error> {
        let levels = (0..).zip(&self.levels).filter(|(level, _)| self.kind.has_tiles(*level));
        for (level, digests) in levels {
            for number in 0..digests.len().div_ceil(256) as u64 {
                self.check(store, self.kind.place(level, number), at)?;
            }
        }
        Ok(())
    }

    /// Checks a stored tile as of an epoch, when the log had `size` entries.
    fn check(
        &self,
        store: &dyn Store,
        place: LogPlace,
        (epoch, size): (u32, u64),
    ) -> Result<(), Error> {
        match tile(store, place, epoch)? == self.tile(place, size) {
            true => Ok(()),
            false => {
                let key = rows::at_epoch(&place.encode(), epoch);
                Err(Damaged::new(Table::Log, &key, "it is not what the epochs have written").into())
            }
        }
    }
}

/// Every tile is of a commit, and of each commit that is not pruned, all rows are there.
/// Returns the number of tiles of the tree.
fn check_rows(
    store: &dyn Store,
    format: &Format,
    (last, commit): (u32, u64),
    logs: &Logs,
    proven: u32,
) -> Result<u64, Error> {
    let mut tiles = BTreeSet::new();
    let foreign = |table, key: &[u8]| Damaged::new(table, key, "it is of no commit");
    for (table, length) in [(Table::Node, Place::LENGTH), (Table::Log, LogPlace::LENGTH)] {
        for key in keys(store, table)? {
            match rows::epoch_of(&key) {
                Some(epoch) if key.len() == length + 4 => {
                    if epoch <= last {
                        tiles.insert((table, key));
                    }
                }
                _ => return Err(foreign(table, &key).into()),
            }
        }
    }
    let mut seen = BTreeSet::new();
    for key in keys(store, Table::Commit)? {
        if rows::number(Table::Commit, &key)? > commit {
            break;
        }
        let written: Written = rows::get(store, Table::Commit, &key)?;
        let (epoch, is_pruned) = (written.epoch, written.epoch < format.pruned);
        check_outcomes(store, &key, &written)?;
        if witness(store, epoch)?.is_some() != (written.has_witness && epoch > proven) {
            let why = "it is missing, or of no commit";
            return Err(Damaged::new(Table::Witness, &epoch.to_be_bytes(), why).into());
        }
        if !is_pruned {
            let record: Record = rows::get(store, Table::Epoch, &epoch.to_be_bytes())?;
            for place in &written.log {
                logs.check(store, *place, &record)?;
            }
        }
        let nodes = written.places.iter().map(|place| (Table::Node, place.encode().to_vec()));
        let logs = written.log.iter().map(|place| (Table::Log, place.encode().to_vec()));
        for (table, place) in nodes.chain(logs) {
            let key = rows::at_epoch(&place, epoch);
            if !is_pruned && !tiles.contains(&(table, key.clone())) {
                return Err(Damaged::new(table, &key, "it is missing").into());
            }
            seen.insert((table, key));
        }
    }
    // The commits of pruned epochs are gone; only tiles that later epochs still have are left of them.
    for (table, key) in &tiles {
        let epoch = rows::epoch_of(key).unwrap_or_default();
        if epoch > format.pruned && !seen.contains(&(*table, key.clone())) {
            return Err(foreign(*table, key).into());
        }
    }
    Ok(tiles.iter().filter(|(table, _)| *table == Table::Node).count() as u64)
}

/// A commit says which values it has written, and its updates have outcomes.
fn check_outcomes(store: &dyn Store, key: &[u8], written: &Written) -> Result<(), Error> {
    let changes = changes(store, written.epoch)?;
    let mut values = changes.iter().map(|leaf| rows::value_key(&leaf.index, leaf.version));
    let mut versions = changes.iter().map(|leaf| leaf.version);
    let mut is_right = values.by_ref().eq(written.values.iter().copied());
    for number in &written.numbers {
        let outcome = rows::get(store, Table::Outcome, &number.to_be_bytes())?;
        is_right &= match outcome {
            Outcome::Committed { epoch, version } => {
                epoch == written.epoch && versions.next() == Some(version)
            }
            Outcome::Refused(_) => true,
        };
    }
    match is_right && versions.next().is_none() {
        true => Ok(()),
        false => {
            let why = "it is not what its epoch has changed";
            Err(Damaged::new(Table::Commit, key, why).into())
        }
    }
}

fn keys(store: &dyn Store, table: Table) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut keys = Vec::new();
    store.scan(table, &[], &LAST, &mut |key, _| {
        keys.push(key.to_vec());
        ControlFlow::Continue(())
    })?;
    Ok(keys)
}
