//! Stores witnesses that have arrived: each is checked, and gets a record. Jobs are made of the records
//! ([`JobSubmitter`](crate::submitter::JobSubmitter)).

mod records;

use crate::branch::Tree;
use crate::canonical::{Admitted, Options, admit};
use crate::check::{CheckError, check_block, check_keys};
use crate::codec::{Answer, Status};
use crate::record::{Origin, Record, VERSION};
use crate::values::hex;
use hekaton_orchestrator_client::{BlobError, Blobs, Digest};
use hekaton_witness_format::ssz::SszError;
use hekaton_witness_format::{Envelope, ExecutionWitness};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use records::{MAX_PAGE, Page, Place, RecordState};

/// The number of bytes that are written to see whether there is space: the size of a record.
const PROBE: usize = 4_096;

/// The reason why a witness is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A witness that is not in SSZ.
    #[error(transparent)]
    Ssz(#[from] SszError),
    /// A witness that does not belong to the block.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// A block that the node found invalid, or did not execute.
    #[error("the node answers {status}{}", .why.as_ref().map_or_else(String::new, |why| format!(": {why}")))]
    Status {
        /// The status that the node reports.
        status: &'static str,
        /// The node's reason.
        why: Option<String>,
    },
    /// An answer without a witness.
    #[error("the node answers VALID, but sends no witness")]
    NoWitness,
    /// A witness that cannot be stored.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A folder that another process uses.
    #[error(
        "{0}: another process uses it; send the block to that one (POST /v1/fetch, POST /v1/witness)"
    )]
    Held(String),
    /// A folder of an orchestrator, whose blobs would be removed along with old records.
    #[error("{0} is an orchestrator's folder: choose another one")]
    Foreign(String),
    /// A full disk.
    #[error("no space left for records in {0}")]
    Full(String),
    /// A record that cannot be read or written.
    #[error("{path}: {why}")]
    Record {
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
}

/// Counters for metrics.
#[derive(Debug, Default)]
pub struct Counts {
    /// Witnesses that were accepted.
    pub accepted: AtomicU64,
    /// Witnesses that were refused.
    pub refused: AtomicU64,
    /// Jobs that were made.
    pub jobs: AtomicU64,
    /// The number of times that the chain was reverted to follow another branch.
    pub reverts: AtomicU64,
    /// The number of bytes of accepted witnesses.
    pub bytes: AtomicU64,
    /// Records that were removed because of their age.
    pub removed: AtomicU64,
}

/// A folder of witnesses and their records, which checks what it stores.
#[derive(Debug)]
pub struct WitnessStore {
    folder: PathBuf,
    pub(crate) blobs: Blobs,
    options: Options,
    /// The blocks that may still matter. The lock is held while records are changed.
    tree: Mutex<Tree>,
    /// Held while the blobs of a record exist and the record does not.
    storing: RwLock<()>,
    /// The names of records that could not be read at the start, and so are not in the tree.
    ignored: Vec<String>,
    /// The names of unreadable records that the log has named.
    logged: Mutex<HashSet<String>>,
    /// The blobs that new records name while old records are removed.
    fresh: Mutex<Option<HashSet<String>>>,
    /// Locked for as long as the process lives.
    _lock: std::fs::File,
    /// Counters since the process started.
    pub counts: Counts,
}

impl WitnessStore {
    /// Opens a folder, and makes it if it does not exist. Only one process may use it.
    ///
    /// # Errors
    /// If it cannot be made, or another process uses it.
    pub fn open(folder: &Path, options: Options) -> Result<Self, StoreError> {
        let blocks = folder.join("blocks");
        std::fs::create_dir_all(&blocks).map_err(|error| failed(&blocks, error))?;
        refuse_foreign(folder)?;
        let path = folder.join("lock");
        // Locked, not only created: the lock of a process that was killed ends with it.
        let lock = std::fs::File::create(&path).map_err(|error| failed(&path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(StoreError::Held(folder.display().to_string()));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(&path, error)),
        }
        let blobs = Blobs::open(&folder.join("blobs"))?;
        blobs.tidy();
        // Leftovers of a killed process take space, but do no other harm.
        if let Err(error) = hekaton_files::remove_leftovers(&blocks) {
            tracing::warn!(%error, folder = %blocks.display(), "cannot remove the leftover files of an earlier process");
        }
        let mut store = Self {
            folder: folder.to_owned(),
            blobs,
            options,
            tree: Mutex::default(),
            storing: RwLock::default(),
            ignored: Vec::new(),
            logged: Mutex::default(),
            fresh: Mutex::default(),
            _lock: lock,
            counts: Counts::default(),
        };
        let (tree, ignored) = store.known()?;
        store.logged = Mutex::new(ignored.iter().cloned().collect());
        (store.tree, store.ignored) = (Mutex::new(tree), ignored);
        Ok(store)
    }

    /// Returns the blocks that may still matter, for as long as the lock is held.
    pub(crate) fn tree(&self) -> MutexGuard<'_, Tree> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of blocks that wait for a job.
    pub fn waiting(&self) -> usize {
        self.tree().count_pending()
    }

    /// Returns the store that bodies are written to on their way in.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Checks and stores the witness in a node's answer in one of the codecs.
    ///
    /// # Errors
    /// The reason why it is not accepted.
    pub fn answer(
        &self,
        origin: impl Into<Origin>,
        envelope: &Envelope,
        blob_hashes: Option<&[[u8; 32]]>,
        answer: &Answer<'_>,
    ) -> Result<Record, StoreError> {
        if answer.status != Status::Valid {
            let why = answer.validation_error.map(str::to_owned);
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return Err(StoreError::Status { status: answer.status.name(), why });
        }
        let witness = answer.witness.ok_or(StoreError::NoWitness)?;
        self.accept(origin, envelope, blob_hashes, &witness, answer.public_keys)
    }

    /// Checks and stores a witness.
    ///
    /// # Errors
    /// The reason why it is not accepted.
    pub fn accept(
        &self,
        from: impl Into<Origin>,
        envelope: &Envelope,
        blob_hashes: Option<&[[u8; 32]]>,
        witness: &ExecutionWitness<'_>,
        public_keys: &[u8],
    ) -> Result<Record, StoreError> {
        let (origin, payload): (Origin, _) = (from.into(), &envelope.payload);
        let options = Options { lenient: self.options.lenient || origin.json };
        let check = || -> Result<Admitted, CheckError> {
            check_block(envelope, blob_hashes)?;
            if !public_keys.is_empty() {
                check_keys(envelope, public_keys)?;
            }
            admit(witness, payload.parent_hash, payload.block_number, options)
        };
        let admitted = check().inspect_err(|_| {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        })?;
        // `remove` waits until the record is there: between the two, nothing names these blobs.
        let _storing = self.storing.read().unwrap_or_else(PoisonError::into_inner);
        let left_out = admitted.left_out;
        let new = self.store_blobs(origin, envelope, witness, admitted, public_keys)?;
        let record = self.enter(new)?;
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(record.bytes, Ordering::Relaxed);
        tracing::info!(
            block = record.block,
            number = record.number,
            nodes = record.nodes,
            "accepted"
        );
        if !left_out.is_nothing() {
            tracing::info!(block = record.block, %left_out, "left out of its witness");
        }
        Ok(record)
    }

    /// Stores the blobs of a witness that was checked. Returns a record that names them, which is not written yet.
    fn store_blobs(
        &self,
        origin: Origin,
        envelope: &Envelope,
        witness: &ExecutionWitness<'_>,
        Admitted { summary, changed, left_out }: Admitted,
        public_keys: &[u8],
    ) -> Result<Record, StoreError> {
        let payload = &envelope.payload;
        let parts = match &changed {
            Some(bytes) => vec![bytes.into()],
            None => witness.parts().to_vec(),
        };
        // Blobs are on disk before the record that names them, so that after a crash no record
        // names one that is missing.
        let mut stored = self.blobs.begin(parts.iter().map(|part| part.len() as u64).sum())?;
        for part in parts {
            stored.write(&part)?;
        }
        let bytes = stored.length();
        Ok(Record {
            version: VERSION,
            source: origin.source,
            block: name(&payload.block_hash),
            number: payload.block_number,
            parent: name(&payload.parent_hash),
            witness: stored.finish()?.to_string(),
            envelope: self.blobs.put(&envelope.encode())?.to_string(),
            bytes,
            headers: summary.headers,
            nodes: summary.nodes,
            codes: summary.codes,
            accepted: now(),
            order: 0,
            pending: true,
            aside: false,
            job: None,
            trace: origin.trace,
            public_keys: match public_keys {
                [] => None,
                keys => Some(self.blobs.put(keys)?.to_string()),
            },
            others: BTreeSet::new(),
            left_out,
            refused: None,
        })
    }

    /// Writes the record of a block that has arrived, merged with the block's earlier record.
    fn enter(&self, new: Record) -> Result<Record, StoreError> {
        // Held until the record is written: two payloads must not get the same order, nor one record overwrite the other.
        let mut tree = self.tree();
        // A record that cannot be read is made again by sending its block, as the error of `remove` advises.
        let known = self.record(&new.block).unwrap_or_else(|error| {
            tracing::error!(%error, "a record is replaced");
            None
        });
        let merged = match known {
            // Of several witnesses, the one that is being proven counts, else the larger one: no check shows whether a witness suffices.
            Some(known)
                if known.job.is_some() || known.nodes + known.codes >= new.nodes + new.codes =>
            {
                known.again(new.accepted).beside(new.witness)
            }
            Some(known) => Record { others: known.others, ..new }.beside(known.witness),
            None => new,
        };
        self.put(&mut tree, merged)
    }

    fn path(&self, block: &str) -> PathBuf {
        self.folder.join("blocks").join(format!("{block}.json"))
    }

    /// Returns the record of a block.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn record(&self, block: &str) -> Result<Option<Record>, StoreError> {
        let path = self.path(block);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| failed(&path, error))?,
        };
        let record: Record = serde_json::from_slice(&text).map_err(|error| bad(&path, error))?;
        if record.version != VERSION {
            return Err(bad(&path, format!("version {}, expected {VERSION}", record.version)));
        }
        // Blobs are sent and removed by these names, so a record with a wrong one must not be used.
        for blob in record.blobs() {
            blob.parse::<Digest>().map_err(|error| bad(&path, error))?;
        }
        Ok(Some(record))
    }

    /// Writes a record, which is on disk as a whole when this returns.
    fn write(&self, record: &Record) -> Result<(), StoreError> {
        let path = self.path(&record.block);
        let text = serde_json::to_vec_pretty(record);
        let written = text.map_err(Into::into).and_then(|text| hekaton_files::write(&path, &text));
        written.map_err(|error| failed(&path, error))
    }

    /// Replaces a record by the result of `change`, unless it was replaced meanwhile. Returns its final state.
    pub(crate) fn change(
        &self,
        known: &Record,
        change: impl FnOnce(Record) -> Record,
    ) -> Result<Record, StoreError> {
        let mut tree = self.tree();
        let Some(now) = self.record(&known.block)? else { return Ok(known.clone()) };
        // The block has come again: what was found out about the older payload no longer applies.
        if (now.order, &now.witness) != (known.order, &known.witness) {
            return Ok(now);
        }
        let next = change(now.clone());
        if next != now {
            self.write(&next)?;
        }
        if let Some((block, link)) = next.link() {
            tree.insert(block, link);
        }
        Ok(next)
    }

    /// Writes and removes a file in the same way as a record, to see whether there is space.
    ///
    /// # Errors
    /// If nothing can be stored.
    pub fn probe(&self) -> Result<(), StoreError> {
        let path = self.folder.join("blocks").join("probe");
        let write = || -> std::io::Result<()> {
            let mut file = std::fs::File::create(&path)?;
            file.write_all(&[0; PROBE])?;
            // Some file systems reserve space only when they write, and so report a full disk only
            // here.
            file.sync_all()
        };
        let written = write().map_err(|error| failed(&path, error));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound && written.is_ok() => {
                Err(failed(&path, error))
            }
            _ => written,
        }
    }

    /// Returns the names of all records.
    fn names(&self) -> Result<Vec<String>, StoreError> {
        let path = self.folder.join("blocks");
        let files = std::fs::read_dir(&path)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| failed(&path, error))?;
        // Records have names of digits and `.json`; other files are not records.
        let names = files.into_iter().filter_map(|file| file.file_name().into_string().ok());
        Ok(names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect())
    }

    /// Returns all blocks that may still matter, and the names of the records that are ignored.
    fn known(&self) -> Result<(Tree, Vec<String>), StoreError> {
        let (mut tree, mut ignored) = (Tree::default(), Vec::new());
        for name in self.names()? {
            match self.record(&name) {
                Ok(Some(record)) => match record.link() {
                    Some((block, link)) => tree.insert(block, link),
                    None => {
                        tracing::error!(name, "a record is ignored: its hashes are malformed");
                        ignored.push(name);
                    }
                },
                Ok(None) => {}
                // One damaged record must not keep the service from starting. If its block is sent
                // again, the record is replaced.
                Err(error) => {
                    tracing::error!(%error, "a record is ignored");
                    ignored.push(name);
                }
            }
        }
        Ok((tree, ignored))
    }

    /// Removes the records that were last accepted at least `age` ago and that `is_over` releases, and the blobs that they alone name.
    /// Returns the number of records that were removed.
    ///
    /// # Errors
    /// If a record cannot be read: it may name any blob, so nothing is removed.
    pub(crate) fn prune(
        &self,
        age: Duration,
        is_over: impl Fn(&Record) -> bool,
    ) -> Result<usize, StoreError> {
        refuse_foreign(&self.folder)?;
        let before = now().saturating_sub(milliseconds(age));
        let note = |fresh| *self.fresh.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        // Witnesses are accepted meanwhile, and the blobs that their records name are noted.
        note(Some(HashSet::new()));
        let removed = self.remove(|record| record.accepted <= before && is_over(record));
        note(None);
        removed
    }

    /// Removes all records for which `is_old` holds.
    fn remove(&self, is_old: impl Fn(&Record) -> bool) -> Result<usize, StoreError> {
        let (mut old, mut unreadable) = (Vec::new(), None);
        // How many records name each blob. Old ones count until they are removed: they may be submitted again before their turn.
        let mut named: HashMap<String, usize> = HashMap::new();
        for name in self.names()? {
            match self.record(&name) {
                Ok(Some(record)) => {
                    record.blobs().for_each(|blob| *named.entry(blob).or_default() += 1);
                    if is_old(&record) {
                        old.push(name);
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "a record cannot be read, so no old records are removed: send its block again");
                    unreadable = Some(error);
                }
            }
        }
        if let Some(error) = unreadable {
            return Err(error);
        }
        let mut removed = 0;
        for name in old {
            // While a witness is stored, no record names its blobs yet, and they would be removed
            // here.
            let _storing = self.storing.write().unwrap_or_else(PoisonError::into_inner);
            let mut tree = self.tree();
            // The block may have come again.
            let Some(record) = self.record(&name)?.filter(&is_old) else { continue };
            let path = self.path(&name);
            // The record is removed before its blobs: after a crash in between, blobs without a
            // record only take space, but a record without its blobs would name a lost witness.
            std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            if let Some((block, _)) = record.link() {
                tree.remove(&block, record.number);
            }
            let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
            for blob in record.blobs() {
                let others = named.get(&blob).map_or(0, |count| count.saturating_sub(1));
                let is_fresh = fresh.as_ref().is_some_and(|fresh| fresh.contains(&blob));
                named.insert(blob.clone(), others);
                if others == 0 && !is_fresh {
                    self.blobs
                        .remove(&blob.parse().expect("records with other names are not read"))?;
                }
            }
            removed += 1;
            self.counts.removed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(removed)
    }
}

/// Refuses a folder that an orchestrator uses.
fn refuse_foreign(folder: &Path) -> Result<(), StoreError> {
    match folder.join("locks").is_dir() {
        true => Err(StoreError::Foreign(folder.display().to_string())),
        false => Ok(()),
    }
}

/// Returns the time in milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // A clock before 1970 makes records look old, and they are not removed for that: `prune` subtracts from the same clock.
    since.map_or(0, milliseconds)
}

/// Returns a duration in milliseconds; the longest ones, of 500 million years, are cut.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis().min(u128::from(u64::MAX))).expect("it was just limited")
}

fn failed(path: &Path, error: std::io::Error) -> StoreError {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            StoreError::Full(path.parent().unwrap_or(path).display().to_string())
        }
        _ => bad(path, error),
    }
}

fn bad(path: &Path, why: impl ToString) -> StoreError {
    StoreError::Record { path: path.display().to_string(), why: why.to_string() }
}

/// Returns a hash as records and jobs name it: without `0x`.
fn name(hash: &[u8; 32]) -> String {
    hex(hash).split_off(2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Source;
    use crate::stand_in::{Block, ForkName};

    #[test]
    fn records_with_wrong_names_of_blobs_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = WitnessStore::open(folder.path(), Options::default()).unwrap();
        let block = Block::new(1, 2, 2_000);
        let envelope = &block.parameters.envelope;
        let record = store.accept(Source::Push, envelope, None, &block.witness(), &[]).unwrap();
        assert_eq!(store.record(&record.block).unwrap(), Some(record.clone()));
        let damaged = Record { witness: record.witness[1..].to_owned(), ..record };
        std::fs::write(store.path(&damaged.block), serde_json::to_vec(&damaged).unwrap()).unwrap();
        let error = store.record(&damaged.block).unwrap_err().to_string();
        assert!(error.contains("64 lowercase hexadecimal digits"), "{error}");
    }

    /// A record that is no longer old when its turn comes, because it was submitted again, keeps the blobs that it shares with a
    /// record that was removed.
    #[test]
    fn blobs_of_records_that_stay_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let store = WitnessStore::open(folder.path(), Options::default()).unwrap();
        for fork in [ForkName::Amsterdam, ForkName::Prague] {
            let block = Block::new(1, 2, 2_000).in_fork(fork);
            let envelope = &block.parameters.envelope;
            store.accept(Source::Push, envelope, None, &block.witness(), &[]).unwrap();
        }
        // Two envelopes and the witness that both have.
        assert_eq!(store.blobs().all().unwrap().len(), 3);
        let asked = AtomicU64::new(0);
        // Each record is asked for when it is listed, and again when its turn comes.
        let stays = |_: &Record| asked.fetch_add(1, Ordering::Relaxed) < 3;
        assert_eq!(store.prune(Duration::ZERO, stays).unwrap(), 1);
        let left = store.page(None, None, 5).records;
        let mut named: Vec<String> = left.iter().flat_map(Record::blobs).collect();
        let mut kept: Vec<String> =
            store.blobs().all().unwrap().iter().map(ToString::to_string).collect();
        named.sort_unstable();
        kept.sort_unstable();
        assert_eq!((left.len(), &kept), (1, &named));
        assert_eq!(store.prune(Duration::ZERO, |_| true).unwrap(), 1);
        assert_eq!(store.blobs().all().unwrap(), []);
    }
}
