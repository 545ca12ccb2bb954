//! The answers of a directory for an epoch.

use super::compute::load;
use super::damaged::Damaged;
use super::error::Error;
use super::log_tiles::LogReader;
use super::rows::{self, Format, LogKind, Value};
use super::store::{Handle, Store, Table};
use hekaton_directory::{
    Current, Digest, Entry, History, Index, Leaf, Path, Reader, Record, SignedRecord, Step, Tree,
    UpdateError,
};
use std::sync::Arc;

/// A directory as it was after an epoch. It keeps answering while later epochs are closed: until the server stops, or the
/// epoch is pruned.
#[derive(Clone, Debug)]
pub struct View {
    pub(crate) store: Arc<Handle>,
    pub(crate) signed: SignedRecord,
    pub(crate) record: Record,
    pub(crate) tree: Tree,
    pub(crate) levels: usize,
    /// The last commit that was visible with it.
    pub(crate) commit: u64,
}

/// The answer of a directory for a label in an epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The proof that the label has a leaf, or none.
    pub path: Path,
    /// The value, unless it has none or is erased.
    pub current: Option<Current>,
}

impl View {
    /// The signed record of the epoch.
    pub fn signed(&self) -> &SignedRecord {
        &self.signed
    }

    /// The record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// The leaf of an index.
    pub(crate) fn leaf(&self, index: &Index) -> Result<Option<Leaf>, Error> {
        Ok(self.path(index)?.1)
    }

    fn path(&self, index: &Index) -> Result<(Path, Option<Leaf>), Error> {
        let loaded = load(&*self.store, &self.tree, &[*index], self.levels);
        // The epoch may have been pruned since this view was taken, which is not damage.
        let tree = loaded.map_err(|error| self.pruned().unwrap_or(error))?;
        let path = tree.path(index).map_err(UpdateError::from)?;
        Ok((path, tree.leaf(index).map_err(UpdateError::from)?))
    }

    /// Returns the reason why a part of the tree may be missing.
    fn pruned(&self) -> Option<Error> {
        let epoch = self.record.epoch;
        let format: Format = rows::get(&*self.store, Table::Format, &rows::FORMAT).ok()?;
        (epoch < format.pruned).then_some(Error::Pruned { epoch, first: format.pruned })
    }

    /// Returns the value of a label, or that it has none, with the proof.
    ///
    /// # Errors
    /// If the label is too long, or the database cannot be read.
    pub fn look_up(&self, label: &[u8]) -> Result<Answer, Error> {
        let index = Index::of(label)?;
        let (path, leaf) = self.path(&index)?;
        let Some(leaf) = leaf else { return Ok(Answer { path, current: None }) };
        let value = self.value(&leaf, leaf.version)?;
        let current = match value.entry {
            Entry::Value(opening) => Some(Current { before: value.before, opening }),
            Entry::Erased(_) => None,
        };
        Ok(Answer { path, current })
    }

    /// All values that a label has had, with the proof of its leaf: at most this many bytes of values.
    ///
    /// # Errors
    /// If the label is too long, there are more, or the database cannot be read.
    pub fn history(&self, label: &[u8], most: usize) -> Result<(Path, History), Error> {
        let index = Index::of(label)?;
        let (path, leaf) = self.path(&index)?;
        let mut history = History::default();
        if let Some(leaf) = leaf {
            let mut bytes = 0;
            for version in 0..=leaf.version {
                let entry = self.value(&leaf, version)?.entry;
                if let Entry::Value(opening) = &entry {
                    bytes += opening.value.len();
                }
                if bytes > most {
                    return Err(Error::LongHistory { most });
                }
                history.0.push(entry);
            }
        }
        Ok((path, history))
    }

    fn value(&self, leaf: &Leaf, version: u32) -> Result<Value, Error> {
        rows::get(&*self.store, Table::Value, &rows::value_key(&leaf.index, version))
    }

    /// The proof that the log has an entry, for [`contains`](hekaton_directory::log::contains).
    ///
    /// # Errors
    /// If there is no such entry, or the database cannot be read.
    pub fn log_entry(&self, entry: u64) -> Result<Vec<Digest>, Error> {
        self.log(LogKind::Updates).entry(entry, self.record.log_size)
    }

    /// The proof that the log continues that of an earlier record with this number of entries, for
    /// [`continues`](hekaton_directory::log::continues).
    ///
    /// # Errors
    /// If it has fewer entries, or the database cannot be read.
    pub fn log_continues(&self, old: u64) -> Result<Vec<Digest>, Error> {
        self.log(LogKind::Updates).continues(old, self.record.log_size)
    }

    /// A log of the directory, for this epoch and those before it.
    pub(crate) fn log(&self, kind: LogKind) -> LogReader<'_> {
        LogReader::new(&*self.store, kind, self.record.epoch)
    }
}

/// The leaves that an epoch has written.
pub(crate) fn changes(store: &dyn Store, epoch: u32) -> Result<Vec<Leaf>, Error> {
    if epoch == 0 {
        return Ok(Vec::new());
    }
    let key = epoch.to_be_bytes();
    let damaged = |why: String| Damaged::new(Table::Changes, &key, why);
    let bytes = store.get(Table::Changes, &key)?.ok_or_else(|| damaged("it is missing".into()))?;
    let mut reader = Reader::new(&bytes);
    let mut leaves = Vec::new();
    while !reader.rest().is_empty() {
        leaves.push(Leaf::read(&mut reader).map_err(|error| damaged(error.to_string()))?);
    }
    Ok(leaves)
}

/// Returns the witness for the prover of an epoch, if it was kept.
pub(crate) fn witness(store: &dyn Store, epoch: u32) -> Result<Option<Vec<Step>>, Error> {
    let key = epoch.to_be_bytes();
    let Some(bytes) = store.get(Table::Witness, &key)? else { return Ok(None) };
    let steps = Step::decode_all(&bytes);
    Ok(Some(steps.map_err(|error| Damaged::new(Table::Witness, &key, error.to_string()))?))
}
