//! What happens to a witness that has arrived: it is checked, stored, and a job is made of it.

use crate::check::{CheckError, Options, Summary, check_block, check_keys, check_witness};
use crate::codec::b::Envelope;
use crate::codec::{Answer, Status, Witness, a, b};
use crate::record::{Origin, Record, VERSION};
use crate::ssz::SszError;
use crate::values::hex;
use hekaton_orchestrator::http::{ChainBody, JobBody};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{BlobError, Blobs, Client, ClientError, Digest};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often what is old is removed.
const PRUNE: Duration = Duration::from_secs(3_600);

/// Why a witness is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum DeskError {
    /// It is not in SSZ.
    #[error(transparent)]
    Ssz(#[from] SszError),
    /// It does not belong to the block.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The node says that the block is not right, or has not executed it.
    #[error("the node says {status}{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
    Status {
        /// What the node says.
        status: &'static str,
        /// Its reason.
        why: Option<String>,
    },
    /// The node has no witness.
    #[error("the node says that the block is right and sends no witness")]
    NoWitness,
    /// It cannot be stored.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// Another process has the folder.
    #[error(
        "{0}: another process uses it; send the block to that one (POST /v1/fetch, POST /v1/witness)"
    )]
    Held(String),
    /// An orchestrator has the folder, whose blobs would be removed with blocks.
    #[error("{0} is an orchestrator's folder: name another one")]
    Foreign(String),
    /// A record cannot be read or written.
    #[error("{path}: {why}")]
    Record {
        /// The file.
        path: String,
        /// What happened.
        why: String,
    },
}

/// Where jobs go.
#[derive(Debug)]
pub struct Jobs {
    /// The orchestrator.
    pub client: Client,
    /// The chain. A new one has strict order.
    pub chain: String,
    /// The block before the first one of a new chain: without it, the parent of the lowest block that is there.
    pub genesis: Option<String>,
    /// What proves.
    pub backend: String,
}

/// Counts, for metrics.
#[derive(Debug, Default)]
pub struct Counts {
    /// Witnesses that were accepted.
    pub accepted: AtomicU64,
    /// Witnesses that were refused.
    pub refused: AtomicU64,
    /// Jobs that were made.
    pub jobs: AtomicU64,
    /// Bytes of accepted witnesses.
    pub bytes: AtomicU64,
    /// Records that were removed because of their age.
    pub removed: AtomicU64,
}

/// Checks, stores and submits.
#[derive(Debug)]
pub struct Desk {
    folder: PathBuf,
    blobs: Blobs,
    options: Options,
    jobs: Option<Jobs>,
    /// Pending blocks, by height. Whoever changes records holds the lock.
    open: Mutex<BTreeSet<(u64, String)>>,
    /// Held while the blobs of a record are there, and the record is not.
    storing: RwLock<()>,
    /// While old records are removed, the blobs that new ones name.
    fresh: Mutex<Option<HashSet<String>>>,
    /// Locked for as long as the process lives.
    _lock: std::fs::File,
    /// What it has done.
    pub counts: Counts,
}

impl Desk {
    /// Uses a folder, and makes it if it does not exist. Only one process may.
    ///
    /// # Errors
    /// If it cannot be made, or another process uses it.
    pub fn open(folder: &Path, options: Options, jobs: Option<Jobs>) -> Result<Self, DeskError> {
        let blocks = folder.join("blocks");
        std::fs::create_dir_all(&blocks).map_err(|error| failed(&blocks, error))?;
        refuse_foreign(folder)?;
        let path = folder.join("lock");
        let lock = std::fs::File::create(&path).map_err(|error| failed(&path, error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(std::fs::TryLockError::WouldBlock) => {
                return Err(DeskError::Held(folder.display().to_string()));
            }
            Err(std::fs::TryLockError::Error(error)) => return Err(failed(&path, error)),
        }
        let blobs = Blobs::open(&folder.join("blobs"))?;
        blobs.tidy();
        let (counts, folder) = (Counts::default(), folder.to_owned());
        let (open, storing, fresh) = Default::default();
        let desk = Self { folder, blobs, options, jobs, open, storing, fresh, _lock: lock, counts };
        *desk.locked() = desk.pending()?;
        Ok(desk)
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, BTreeSet<(u64, String)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where bodies are written on their way in.
    pub fn blobs(&self) -> &Blobs {
        &self.blobs
    }

    /// Takes the answer of a node in one of the codecs.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn answer(
        &self,
        origin: impl Into<Origin>,
        envelope: &Envelope,
        blob_hashes: Option<&[[u8; 32]]>,
        answer: &Answer<'_>,
    ) -> Result<Record, DeskError> {
        if answer.status != Status::Valid {
            let why = answer.validation_error.map(str::to_owned);
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
            return Err(DeskError::Status { status: answer.status.name(), why });
        }
        let witness = answer.witness.ok_or(DeskError::NoWitness)?;
        self.accept(origin, envelope, blob_hashes, &witness, answer.public_keys)
    }

    /// Checks and stores a witness.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn accept(
        &self,
        origin: impl Into<Origin>,
        envelope: &Envelope,
        blob_hashes: Option<&[[u8; 32]]>,
        witness: &Witness<'_>,
        public_keys: &[u8],
    ) -> Result<Record, DeskError> {
        let check = || -> Result<Summary, CheckError> {
            check_block(envelope, blob_hashes)?;
            if !public_keys.is_empty() {
                check_keys(envelope, public_keys)?;
            }
            let payload = &envelope.payload;
            check_witness(witness, payload.parent_hash, payload.block_number, self.options)
        };
        let summary = check().inspect_err(|_| {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        })?;
        let _storing = self.storing.read().unwrap_or_else(PoisonError::into_inner);
        let mut stored = self.blobs.begin(witness.encoded_len() as u64)?;
        for part in witness.parts() {
            stored.write(&part)?;
        }
        let bytes = stored.length();
        let payload = &envelope.payload;
        let Origin { source, trace } = origin.into();
        let record = Record {
            version: VERSION,
            source,
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
            pending: true,
            job: None,
            trace,
            public_keys: match public_keys {
                [] => None,
                keys => Some(self.blobs.put(keys)?.to_string()),
            },
            others: BTreeSet::new(),
            refused: None,
        };
        let mut open = self.locked();
        let known = self.record(&record.block).unwrap_or_else(|error| {
            tracing::error!(%error, "a record is replaced");
            None
        });
        let record = match known {
            // Of several witnesses, the one that is being proven counts, else the larger one: nobody has checked that it suffices.
            Some(known)
                if known.job.is_some()
                    || known.nodes + known.codes >= record.nodes + record.codes =>
            {
                // The block may be back after a re-org. Submitting the same job again is harmless.
                let accepted = record.accepted;
                Record { pending: true, refused: None, accepted, ..known }.beside(record.witness)
            }
            Some(known) => Record { others: known.others, ..record }.beside(known.witness),
            None => record,
        };
        self.write(&record)?;
        // Only once the record is there: so `prune` either lists it or finds it noted.
        if let Some(fresh) = &mut *self.fresh.lock().unwrap_or_else(PoisonError::into_inner) {
            fresh.extend(record.blobs());
        }
        open.insert((record.number, record.block.clone()));
        drop(open);
        self.counts.accepted.fetch_add(1, Ordering::Relaxed);
        self.counts.bytes.fetch_add(record.bytes, Ordering::Relaxed);
        tracing::info!(
            block = record.block,
            number = record.number,
            nodes = record.nodes,
            "accepted"
        );
        Ok(record)
    }

    fn path(&self, block: &str) -> PathBuf {
        self.folder.join("blocks").join(format!("{block}.json"))
    }

    /// What is known of a block.
    ///
    /// # Errors
    /// If its record cannot be read.
    pub fn record(&self, block: &str) -> Result<Option<Record>, DeskError> {
        let path = self.path(block);
        let text = match std::fs::read(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| failed(&path, error))?,
        };
        let record: Record = serde_json::from_slice(&text).map_err(|error| failed(&path, error))?;
        match record.version {
            VERSION => Ok(Some(record)),
            other => Err(failed(&path, format!("it has version {other}, not {VERSION}"))),
        }
    }

    /// Writes a record: on disk, whole, when this returns.
    fn write(&self, record: &Record) -> Result<(), DeskError> {
        let path = self.path(&record.block);
        let part = path.with_extension("part");
        let text = serde_json::to_vec_pretty(record).unwrap_or_default();
        let write = || -> std::io::Result<()> {
            let mut file = std::fs::File::create(&part)?;
            file.write_all(&text)?;
            file.sync_all()?;
            std::fs::rename(&part, &path)?;
            std::fs::File::open(self.folder.join("blocks"))?.sync_all()
        };
        write().map_err(|error| failed(&path, error))
    }

    /// The names of all records.
    fn names(&self) -> Result<Vec<String>, DeskError> {
        let path = self.folder.join("blocks");
        let files = std::fs::read_dir(&path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let files = files.map_err(|error| failed(&path, error))?;
        let names = files.into_iter().filter_map(|file| file.file_name().into_string().ok());
        Ok(names.filter_map(|name| Some(name.strip_suffix(".json")?.to_owned())).collect())
    }

    /// All blocks of which jobs are to be made.
    fn pending(&self) -> Result<BTreeSet<(u64, String)>, DeskError> {
        let mut open = BTreeSet::new();
        for name in self.names()? {
            match self.record(&name) {
                Ok(Some(record)) if record.pending => {
                    open.insert((record.number, record.block));
                }
                Ok(_) => {}
                Err(error) => tracing::error!(%error, "a record is left alone"),
            }
        }
        Ok(open)
    }

    /// Whether a record may be removed: nobody waits for its job, or the orchestrator does not want it.
    fn is_over(&self, record: &Record) -> bool {
        self.jobs.is_none() || !record.pending || record.refused.is_some()
    }

    /// Removes the records that were last accepted at least so long ago, and the blobs that they alone name. Those of which a job is still
    /// to be made stay, unless the orchestrator has refused it; so call it when [`submit`](Self::submit) has reached the orchestrator.
    /// Returns how many records were removed.
    ///
    /// # Errors
    /// If a record cannot be read: it may name any blob, so nothing is removed.
    pub fn prune(&self, age: Duration) -> Result<usize, DeskError> {
        refuse_foreign(&self.folder)?;
        let before = now().saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let note = |fresh| *self.fresh.lock().unwrap_or_else(PoisonError::into_inner) = fresh;
        // Witnesses are accepted meanwhile, and what their records name is noted.
        note(Some(HashSet::new()));
        let removed = self.remove(before);
        note(None);
        removed
    }

    /// Removes what was accepted before a time.
    fn remove(&self, before: u64) -> Result<usize, DeskError> {
        let is_old = |record: &Record| self.is_over(record) && record.accepted <= before;
        let (mut old, mut named, mut unreadable) = (Vec::new(), HashSet::new(), None);
        for name in self.names()? {
            match self.record(&name) {
                Ok(Some(record)) if is_old(&record) => old.push(name),
                Ok(Some(record)) => named.extend(record.blobs()),
                Ok(None) => {}
                Err(error) => {
                    tracing::error!(%error, "a record cannot be read: send its block again");
                    unreadable = Some(error);
                }
            }
        }
        if let Some(error) = unreadable {
            return Err(error);
        }
        let mut removed = 0;
        for name in old {
            let _storing = self.storing.write().unwrap_or_else(PoisonError::into_inner);
            let mut open = self.locked();
            // It may have come again.
            let Some(record) = self.record(&name)?.filter(is_old) else { continue };
            let path = self.path(&name);
            std::fs::remove_file(&path).map_err(|error| failed(&path, error))?;
            open.remove(&(record.number, name));
            let fresh = self.fresh.lock().unwrap_or_else(PoisonError::into_inner);
            for blob in record.blobs() {
                let is_named = named.contains(&blob)
                    || fresh.as_ref().is_some_and(|fresh| fresh.contains(&blob));
                if let (false, Ok(digest)) = (is_named, blob.parse()) {
                    self.blobs.remove(&digest)?;
                }
            }
            removed += 1;
            self.counts.removed.fetch_add(1, Ordering::Relaxed);
        }
        Ok(removed)
    }

    /// Makes a job of each pending block. Jobs have fixed names, so what was submitted before an answer was lost is found.
    ///
    /// # Errors
    /// If the orchestrator does not answer; what is left is submitted the next time.
    pub fn submit(&self) -> Result<usize, ClientError> {
        let Some(jobs) = &self.jobs else { return Ok(0) };
        let mut made = 0;
        let open: Vec<(u64, String)> = self.locked().iter().cloned().collect();
        for (number, block) in open {
            let Ok(Some(record)) = self.record(&block) else { continue };
            let outcome = self.submit_one(jobs, &record);
            let mut open = self.locked();
            // It may have been replaced meanwhile.
            let Ok(Some(now)) = self.record(&block) else { continue };
            if now.witness != record.witness {
                continue;
            }
            let (job, refused, pending) = match &outcome {
                Ok(job) => (Some(job.clone()), None, false),
                // About this job alone: it is not sent again before the block is.
                Err(ClientError::Problem { problem, .. })
                    if [400, 413, 422].contains(&problem.status) =>
                {
                    (now.job.clone(), Some(problem.to_string()), false)
                }
                // Another branch, a full queue, a wrong token: somebody may change that.
                Err(error) => (now.job.clone(), Some(error.to_string()), true),
            };
            let next = Record { job, refused, pending, ..now.clone() };
            if next != now
                && let Err(error) = self.write(&next)
            {
                tracing::error!(%error, "what became of a job is not noted");
                continue;
            }
            if !next.pending {
                open.remove(&(number, block));
            }
            drop(open);
            match outcome {
                Ok(_) => {
                    made += 1;
                    self.counts.jobs.fetch_add(1, Ordering::Relaxed);
                }
                Err(error @ ClientError::Failed { .. }) => return Err(error),
                Err(error) => tracing::warn!(block = record.block, %error, "there is no job"),
            }
        }
        Ok(made)
    }

    fn submit_one(&self, jobs: &Jobs, record: &Record) -> Result<String, ClientError> {
        let chain = match jobs.client.chain(&jobs.chain) {
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {
                let genesis = jobs.genesis.clone().unwrap_or_else(|| {
                    tracing::warn!(block = record.block, "the chain begins with this block");
                    record.parent.clone()
                });
                let body =
                    ChainBody { order: Order::Strict, genesis: Some(genesis), bundles: None };
                match jobs.client.make_chain(&jobs.chain, &body) {
                    // Somebody else was faster.
                    Err(ClientError::Problem { problem, .. }) if problem.status == 409 => {
                        jobs.client.chain(&jobs.chain)?
                    }
                    made => made?,
                }
            }
            found => found?,
        };
        let digest: Digest = record.witness.parse().unwrap_or_else(|_| Digest::of(b""));
        if !jobs.client.has_blob(&digest)? {
            jobs.client.put_file(&self.blobs.path(&digest))?;
        }
        let job = JobBody {
            chain: jobs.chain.clone(),
            block: record.number,
            id: Some(record.block.clone()),
            parent: (chain.order == Order::Strict).then(|| record.parent.clone()),
            backend: Some(jobs.backend.clone()),
            inputs: BTreeMap::from([("input".into(), vec![record.witness.clone()])]),
            ..JobBody::default()
        };
        let client = match &record.trace {
            Some(trace) => jobs.client.traced(trace),
            None => jobs.client.clone(),
        };
        Ok(client.submit(&job)?.job)
    }

    /// Makes jobs whenever `wake` says so, and every ten seconds, until the other side of it is gone. With an age, prunes
    /// ([`prune`](Self::prune)) every hour, the first time after one, when the clock is likely to be right.
    pub fn keep_submitting(&self, wake: &std::sync::mpsc::Receiver<()>, keep: Option<Duration>) {
        let mut pruned = Instant::now();
        loop {
            match (self.submit(), keep) {
                (Err(error), _) => tracing::warn!(%error, "jobs are submitted later"),
                (Ok(_), Some(age)) if pruned.elapsed() >= PRUNE => {
                    pruned = Instant::now();
                    match self.prune(age) {
                        Ok(removed) => tracing::info!(removed, "old blocks were removed"),
                        Err(error) => tracing::error!(%error, "old blocks were not removed"),
                    }
                }
                (Ok(_), _) => {}
            }
            match wake.recv_timeout(Duration::from_secs(10)) {
                Ok(()) => while wake.try_recv().is_ok() {},
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Refuses a folder that an orchestrator uses.
fn refuse_foreign(folder: &Path) -> Result<(), DeskError> {
    match folder.join("locks").is_dir() {
        true => Err(DeskError::Foreign(folder.display().to_string())),
        false => Ok(()),
    }
}

/// Milliseconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

fn failed(path: &Path, why: impl ToString) -> DeskError {
    DeskError::Record { path: path.display().to_string(), why: why.to_string() }
}

/// A hash as records and jobs name it: without `0x`.
fn name(hash: &[u8; 32]) -> String {
    hex(hash).split_off(2)
}

/// Reads an answer in the codec of a path.
///
/// # Errors
/// Where it is not one.
pub fn decode_answer<'a>(path: &str, bytes: &'a [u8]) -> Result<Answer<'a>, SszError> {
    match path {
        a::PATH => a::decode(bytes),
        _ => b::decode(bytes),
    }
}
