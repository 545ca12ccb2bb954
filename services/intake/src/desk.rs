//! What happens to a witness that has arrived: it is checked, stored, and a job is made of it.

use crate::check::{CheckError, Options, Summary, check_block, check_keys, check_witness};
use crate::codec::b::Envelope;
use crate::codec::{Answer, Status, Witness, a, b};
use crate::ssz::SszError;
use crate::values::hex;
use hekaton_orchestrator::http::{ChainBody, JobBody};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{BlobError, Blobs, Client, ClientError, Digest};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The version of records.
const VERSION: u32 = 1;

/// How a witness came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// It was asked for.
    Fetch,
    /// It went past, from a node to its caller.
    Proxy,
    /// Somebody sent it.
    Push,
}

/// What is known of a block: `blocks/HASH.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// 1.
    pub version: u32,
    /// How it came.
    pub source: Source,
    /// The hash of the block, as 64 hexadecimal digits.
    pub block: String,
    /// Its height.
    pub number: u64,
    /// The hash of the block before it.
    pub parent: String,
    /// The blob of the witness, in SSZ.
    pub witness: String,
    /// The blob of the block: an `ExecutionPayloadEnvelope`.
    pub envelope: String,
    /// How many bytes the witness has.
    pub bytes: u64,
    /// Headers, nodes, codes.
    pub headers: usize,
    /// Nodes of tries.
    pub nodes: usize,
    /// Codes of contracts.
    pub codes: usize,
    /// When it was accepted, in milliseconds since 1970.
    pub accepted: u64,
    /// The job that proves it, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// Why there is no job, where there will be none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

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
}

/// Checks, stores and submits.
#[derive(Debug)]
pub struct Desk {
    folder: PathBuf,
    blobs: Blobs,
    options: Options,
    jobs: Option<Jobs>,
    /// What it has done.
    pub counts: Counts,
}

impl Desk {
    /// Uses a folder, and makes it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn open(folder: &Path, options: Options, jobs: Option<Jobs>) -> Result<Self, DeskError> {
        let blocks = folder.join("blocks");
        std::fs::create_dir_all(&blocks).map_err(|error| failed(&blocks, error))?;
        let blobs = Blobs::open(&folder.join("blobs"))?;
        blobs.tidy();
        let counts = Counts::default();
        Ok(Self { folder: folder.to_owned(), blobs, options, jobs, counts })
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
        source: Source,
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
        self.accept(source, envelope, blob_hashes, &witness, answer.public_keys)
    }

    /// Checks and stores a witness.
    ///
    /// # Errors
    /// Why it is not accepted.
    pub fn accept(
        &self,
        source: Source,
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
            check_witness(witness, envelope.payload.parent_hash, self.options)
        };
        let summary = check().inspect_err(|_| {
            self.counts.refused.fetch_add(1, Ordering::Relaxed);
        })?;
        let mut stored = self.blobs.begin(witness.encoded_len() as u64)?;
        for part in witness.parts() {
            stored.write(&part)?;
        }
        let bytes = stored.length();
        let payload = &envelope.payload;
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
            accepted: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            job: None,
            refused: None,
        };
        // What was accepted before keeps its job.
        let record = match self.record(&record.block)? {
            Some(known) if known.witness == record.witness => known,
            _ => {
                self.write(&record)?;
                record
            }
        };
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
            std::fs::write(&part, text)?;
            std::fs::File::open(&part)?.sync_all()?;
            std::fs::rename(&part, &path)?;
            std::fs::File::open(self.folder.join("blocks"))?.sync_all()
        };
        write().map_err(|error| failed(&path, error))
    }

    /// All blocks without a job, by height.
    fn open_records(&self) -> Vec<Record> {
        let files = std::fs::read_dir(self.folder.join("blocks")).into_iter().flatten().flatten();
        let records = files.filter_map(|file| {
            let name = file.file_name().into_string().ok()?;
            let block = name.strip_suffix(".json")?;
            match self.record(block) {
                Ok(record) => record,
                Err(error) => {
                    tracing::error!(%error, "a record is left alone");
                    None
                }
            }
        });
        let mut open: Vec<Record> =
            records.filter(|record| record.job.is_none() && record.refused.is_none()).collect();
        open.sort_by_key(|record| record.number);
        open
    }

    /// Makes a job of each block that has none. Jobs have fixed names, so what was submitted before an answer was lost is found.
    ///
    /// # Errors
    /// If the orchestrator does not answer; what is left is submitted the next time.
    pub fn submit(&self) -> Result<usize, ClientError> {
        let Some(jobs) = &self.jobs else { return Ok(0) };
        let mut made = 0;
        for mut record in self.open_records() {
            match self.submit_one(jobs, &record) {
                Ok(job) => {
                    made += 1;
                    self.counts.jobs.fetch_add(1, Ordering::Relaxed);
                    record.job = Some(job);
                }
                Err(error) if error.may_be_repeated() => return Err(error),
                Err(error) => {
                    tracing::error!(block = record.block, %error, "there will be no job");
                    record.refused = Some(error.to_string());
                }
            }
            if let Err(error) = self.write(&record) {
                tracing::error!(%error, "a job is not noted");
            }
        }
        Ok(made)
    }

    fn submit_one(&self, jobs: &Jobs, record: &Record) -> Result<String, ClientError> {
        let file = |digest: &str| {
            let digest: Digest = digest.parse().unwrap_or_else(|_| Digest::of(b""));
            jobs.client.put_file(&self.blobs.path(&digest))
        };
        let blob = file(&record.witness)?.to_string();
        let chain = match jobs.client.chain(&jobs.chain) {
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {
                let genesis = jobs.genesis.clone().or_else(|| Some(record.parent.clone()));
                let body = ChainBody { order: Order::Strict, genesis, bundles: None };
                jobs.client.make_chain(&jobs.chain, &body)?
            }
            found => found?,
        };
        let job = JobBody {
            chain: jobs.chain.clone(),
            block: record.number,
            id: Some(record.block.clone()),
            parent: (chain.order == Order::Strict).then(|| record.parent.clone()),
            backend: Some(jobs.backend.clone()),
            inputs: BTreeMap::from([("input".into(), vec![blob])]),
            ..JobBody::default()
        };
        Ok(jobs.client.submit(&job)?.job)
    }

    /// Makes jobs whenever `wake` says so, and every ten seconds, until the other side of it is gone.
    pub fn keep_submitting(&self, wake: &std::sync::mpsc::Receiver<()>) {
        loop {
            if let Err(error) = self.submit() {
                tracing::warn!(%error, "jobs are submitted later");
            }
            match wake.recv_timeout(Duration::from_secs(10)) {
                Ok(()) | Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return,
            }
        }
    }
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
