//! The run directory: what an interrupted run needs to go on (docs/formats.md, "Run directory").
//!
//! It keeps the run's identity (`run.json`: digests of verifying key, layout and input), its secret seed (`seed`, mode
//! 0600, removed with the last step), append-only logs of commitments and proofs, and the proof. Every answer is a
//! function of key, input and seed, so what is in the logs need not be done again, and what is done twice is the same.
//! One process at a time works in it: it holds the lease.

mod lease;
pub(crate) mod log;

pub(crate) use lease::host;

use crate::aggregation::Proof;
use crate::engine::Pool;
use crate::keys::{persist, write_file};
use crate::messages::Answer;
use crate::randomness::Randomness;
use crate::verifying_key::VerifyingKey;
use lease::Lease;
use log::{Binding, Found, Log};
use serde::{Deserialize, Serialize};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use zeroize::Zeroizing;

const VERSION: u32 = 1;
const SEED_MAGIC: &[u8; 8] = b"HEKATNSD";
/// The largest `run.json` that is read.
const LIMIT: u64 = 1 << 20;
/// Files of a run, in a directory where none has begun.
const OURS: [&str; 5] = ["seed", "lease.json", "lease.lock", "events.jsonl", "report.json"];

/// What is wrong with a run directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A directory with other things in it.
    #[error("{path} is no run directory and not empty (it has '{found}'): give a new or empty one")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },
    /// Something else than a directory.
    #[error("{path} is a file: a run directory is wanted")]
    File {
        /// The path.
        path: PathBuf,
    },
    /// A run began there already.
    #[error("{path} already holds a run: go on with it by --resume, or give another directory")]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The run in the directory is another one.
    #[error("the run in {path} is another one: {}; give what it was begun with, or another directory", .differences.join("; "))]
    Different {
        /// The directory.
        path: PathBuf,
        /// What differs, one sentence each.
        differences: Vec<String>,
    },
    /// Another version.
    #[error(
        "{path} has format version {found}, this program reads version {expected}: go on with the program that began the run"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        expected: u32,
    },
    /// A file that can't be mended.
    #[error("{path} is damaged ({why}): begin a new run in another directory")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// An intact log of other work.
    #[error(
        "{path} belongs to another execution: the circuit does not execute this input as it did when the run began, or another version of it does; begin a new run in another directory"
    )]
    OtherLog {
        /// The file.
        path: PathBuf,
    },
    /// Another process works in the directory.
    #[error("{path}: the run is held by {holder}, which is alive: wait for it, or stop it")]
    Held {
        /// The lease.
        path: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// Another process took the lease over.
    #[error("{path}: the run was taken over by {holder}; this process stops and writes nothing more")]
    Lost {
        /// The lease.
        path: PathBuf,
        /// Who holds it now.
        holder: String,
    },
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RunError + '_ {
    move |source| RunError::Io { path: path.to_owned(), source }
}

/// What a run is of. Two runs with the same identity have the same proof but for their seeds.
#[derive(Clone, PartialEq, Eq)]
pub struct RunIdentity {
    public: PublicIdentity,
    input: [u8; 32],
}

impl std::fmt::Debug for RunIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // whoever has the input's digest can confirm a guess of the input
        f.debug_struct("RunIdentity").field("public", &self.public).finish_non_exhaustive()
    }
}

/// What everybody may know of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PublicIdentity {
    circuit: String,
    parameters: String,
    subcircuits: u64,
    verifying_key_digest: String,
    layout_digest: String,
}

impl RunIdentity {
    /// The identity of a run under a key. `input` is a digest of **everything** that the run's witness depends on, for
    /// example BLAKE3 of the input file: going on with another input under the same seed would not be zero-knowledge.
    pub fn new(key: &VerifyingKey, input: [u8; 32]) -> Self {
        let public = PublicIdentity {
            circuit: key.circuit.clone(),
            parameters: key.parameters.clone(),
            subcircuits: key.instances,
            verifying_key_digest: hex::encode(key.digest()),
            layout_digest: hex::encode(key.layout),
        };
        Self { public, input }
    }

    /// The input's digest as `run.json` has it: nobody can confirm a guess of the input without the seed.
    fn hidden_input(&self, seed: &[u8; 32]) -> String {
        let key = blake3::derive_key("hekaton-v1 run input", seed);
        hex::encode(blake3::keyed_hash(&key, &self.input).as_bytes())
    }
}

impl PublicIdentity {
    fn is_for(&self, key: &VerifyingKey) -> bool {
        self.verifying_key_digest == hex::encode(key.digest())
    }

    /// What differs, as sentences.
    fn differences(&self, now: &Self) -> Vec<String> {
        let fields = [
            ("circuit", &self.circuit, &now.circuit),
            ("parameters", &self.parameters, &now.parameters),
            ("layout", &self.layout_digest, &now.layout_digest),
            ("verifying key", &self.verifying_key_digest, &now.verifying_key_digest),
        ];
        let differ = fields.into_iter().filter(|(_, then, now)| then != now);
        // the begin of a digest is enough to tell two apart
        let short = |text: &str| match text.len() {
            64 => format!("{}..", &text[..12]),
            _ => text.to_owned(),
        };
        let mut out: Vec<String> =
            differ.map(|(what, then, now)| format!("its {what}: {} then, {} now", short(then), short(now))).collect();
        if self.subcircuits != now.subcircuits {
            out.push(format!("it has {} subcircuits, now there are {}", self.subcircuits, now.subcircuits));
        }
        out
    }
}

/// `run.json`.
#[derive(Serialize, Deserialize)]
pub(crate) struct RunFile {
    format_version: u32,
    #[serde(flatten)]
    identity: PublicIdentity,
    /// keyed with the seed
    input_digest: String,
    seed_digest: String,
    insecure_seed: bool,
    written_by: String,
}

/// How a run directory is opened.
#[derive(Clone, Debug)]
#[must_use]
pub struct RunDirectoryOptions {
    deadline: Duration,
    insecure_seed: Option<u64>,
}

impl Default for RunDirectoryOptions {
    fn default() -> Self {
        Self { deadline: Duration::from_secs(30), insecure_seed: None }
    }
}

impl RunDirectoryOptions {
    /// A lease of 30 seconds and a fresh seed.
    pub fn new() -> Self {
        Self::default()
    }

    /// After how long without a heartbeat a holder on another machine counts as dead; whole seconds, 1 to 600.
    /// Default: 30 s.
    pub fn lease_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline.clamp(Duration::from_secs(1), Duration::from_secs(600));
        self
    }

    /// **For tests only: proofs made with it are NOT zero-knowledge.** The seed of a run that begins.
    pub fn insecure_seed(mut self, seed: u64) -> Self {
        self.insecure_seed = Some(seed);
        self
    }

    /// Begins a run in a new or empty directory.
    ///
    /// # Errors
    /// When a run began there, another process holds it, or it can't be written.
    pub fn begin(&self, path: &Path, identity: &RunIdentity) -> Result<RunDirectory, RunError> {
        self.open(path, identity, false)
    }

    /// Goes on with the run in a directory, or begins it if none began there yet.
    ///
    /// # Errors
    /// When the run is another one, another process holds it, or it can't be read or written.
    pub fn resume(&self, path: &Path, identity: &RunIdentity) -> Result<RunDirectory, RunError> {
        self.open(path, identity, true)
    }

    fn open(&self, path: &Path, identity: &RunIdentity, resume: bool) -> Result<RunDirectory, RunError> {
        let file = path.join("run.json");
        if path.exists() && !path.is_dir() {
            return Err(RunError::File { path: path.to_owned() });
        }
        // Refused before anything is written into a directory that is not ours.
        let mut found = read_run(&file)?;
        if found.is_some() && !resume {
            return Err(RunError::Exists { path: path.to_owned() });
        }
        if found.is_none() {
            check_empty(path)?;
            create_private(path).map_err(io(path))?;
        }
        let mut notices = Vec::new();
        let lease = Lease::acquire(path, self.deadline, &mut notices)?;
        // Whoever held the lease before may have begun the run meanwhile.
        if found.is_none() {
            found = read_run(&file)?;
            if found.is_some() && !resume {
                return Err(RunError::Exists { path: path.to_owned() });
            }
        }
        let (file, randomness) = match found {
            Some(found) => {
                let mut differences = found.identity.differences(&identity.public);
                if found.insecure_seed != self.insecure_seed.is_some() {
                    let (then, now) =
                        if found.insecure_seed { ("a test's", "is not") } else { ("random", "is a test's") };
                    differences.push(format!("its seed is {then}, the one asked for {now}"));
                }
                let randomness = if differences.is_empty() { read_seed(path, &found, &mut notices)? } else { None };
                // Of a finished run the seed is gone: then its proof holds for these public values or it does not.
                if randomness.as_ref().is_some_and(|r| identity.hidden_input(r.seed()) != found.input_digest) {
                    differences.push("its input is another one".to_owned());
                }
                if !differences.is_empty() {
                    return Err(RunError::Different { path: path.to_owned(), differences });
                }
                return RunDirectory::new(path, found, randomness, lease, notices, true);
            }
            None => {
                if resume {
                    notices.push(format!("no run began in {} yet: it begins now", path.display()));
                }
                let fresh = || Randomness::fresh().map_err(|e| io(path)(std::io::Error::other(e)));
                let randomness =
                    self.insecure_seed.map_or_else(fresh, |s| Ok(Randomness::seeded_not_zero_knowledge(s)))?;
                (file, randomness)
            }
        };
        let run = RunFile {
            format_version: VERSION,
            identity: identity.public.clone(),
            input_digest: identity.hidden_input(randomness.seed()),
            seed_digest: seed_digest(randomness.seed()),
            insecure_seed: randomness.is_seeded(),
            written_by: concat!("hekaton ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        write_seed(&path.join("seed"), randomness.seed()).map_err(io(&path.join("seed")))?;
        let text = serde_json::to_string_pretty(&run).map_err(|e| io(&file)(e.into()))?;
        // With this name the run has begun.
        write_file(&file, (text + "\n").as_bytes()).map_err(io(&file))?;
        sync_directory(path);
        RunDirectory::new(path, run, Some(randomness), lease, notices, false)
    }
}

/// An open run directory. The lease is held until it is dropped.
#[derive(Debug)]
pub struct RunDirectory {
    path: PathBuf,
    identity: PublicIdentity,
    randomness: Option<Randomness>,
    insecure_seed: bool,
    lease: Lease,
    resumed: bool,
    notices: Mutex<Vec<String>>,
}

impl RunDirectory {
    fn new(
        path: &Path,
        run: RunFile,
        randomness: Option<Randomness>,
        lease: Lease,
        notices: Vec<String>,
        resumed: bool,
    ) -> Result<Self, RunError> {
        Ok(Self {
            path: path.to_owned(),
            identity: run.identity,
            randomness,
            insecure_seed: run.insecure_seed,
            lease,
            resumed,
            notices: Mutex::new(notices),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the events of its processes are kept, one process after the other; written by whoever records them.
    pub fn events_path(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// Where the proof of a finished run is.
    pub fn proof_path(&self) -> PathBuf {
        self.path.join("proof")
    }

    /// Whether an earlier process began the run.
    pub fn is_resumed(&self) -> bool {
        self.resumed
    }

    /// Whether the run's seed is the one of a test.
    pub fn has_insecure_seed(&self) -> bool {
        self.insecure_seed
    }

    /// Fails when another process has taken the run over. Every write below checks it.
    ///
    /// # Errors
    /// Who has it now.
    pub fn check_lease(&self) -> Result<(), RunError> {
        self.lease.check()
    }

    pub(crate) fn is_for(&self, key: &VerifyingKey) -> bool {
        self.identity.is_for(key)
    }

    /// What a user should know about the opening, once.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The run's secret randomness.
    pub(crate) fn randomness(&self) -> Result<Randomness, RunError> {
        self.randomness.clone().ok_or_else(|| RunError::Damaged {
            path: self.path.join("seed"),
            why: "the run was finished, its seed is gone, and its proof is not what it was".into(),
        })
    }

    /// The log of a round's answers and what it holds. `context` is what the answers depend on beside the run's identity.
    /// Answers for another context are left out with a notice if `others_allowed`, else an error.
    pub(crate) fn log<A: Answer>(
        &self,
        round: &'static str,
        attempt: u32,
        context: &[u8],
        others_allowed: bool,
        pool: &impl Pool,
    ) -> Result<(RoundLog<'_>, Found<A>), RunError> {
        self.lease.check()?;
        // All of it comes from the seed: nobody can make records, and nobody can confirm a guess of the context.
        let derive = |label: &'static str| -> Result<[u8; 32], RunError> {
            let mut hasher = blake3::Hasher::new_derive_key(label);
            hasher
                .update(self.randomness()?.seed())
                .update(&(round.len() as u64).to_le_bytes())
                .update(round.as_bytes());
            Ok(*hasher.update(&attempt.to_le_bytes()).update(context).finalize().as_bytes())
        };
        let (public, secret) = (derive("hekaton-v1 run log: header")?, derive("hekaton-v1 run log: records")?);
        let name = if attempt == 1 { round.to_owned() } else { format!("{round}-{attempt}") };
        let binding = Binding { public, secret, others_allowed };
        let (log, found) = Log::open(&self.path, &name, binding, self.identity.subcircuits as usize, pool)?;
        Ok((RoundLog { log, lease: &self.lease }, found))
    }

    /// The bytes of a finished run's proof.
    pub(crate) fn proof(&self) -> Option<Vec<u8>> {
        use std::io::Read;
        let file = std::fs::File::open(self.proof_path()).ok()?;
        let mut bytes = Vec::new();
        file.take(LIMIT).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Keeps the proof and removes the seed, which nobody needs any more.
    pub(crate) fn finish(&self, proof: &Proof) -> Result<(), RunError> {
        self.lease.check()?;
        let path = self.proof_path();
        write_file(&path, proof.as_bytes()).map_err(io(&path))?;
        sync_directory(&self.path);
        self.remove_seed()
    }

    /// The last step of a run; an earlier process may have been killed before it.
    pub(crate) fn remove_seed(&self) -> Result<(), RunError> {
        self.lease.check()?;
        let seed = self.path.join("seed");
        match std::fs::remove_file(&seed) {
            Ok(()) => {
                sync_directory(&self.path);
                Ok(())
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io(&seed)(e)),
        }
    }
}

/// The log of one round, written under the lease.
pub(crate) struct RoundLog<'a> {
    log: Log,
    lease: &'a Lease,
}

impl RoundLog<'_> {
    pub(crate) fn append<A: Answer>(&self, answer: &A) -> Result<(), RunError> {
        self.lease.check()?;
        if let Some(file) = self.log.append(answer)? {
            self.lease.keep_synced(file);
        }
        Ok(())
    }

    /// Takes back the answers of some instances.
    pub(crate) fn strike<A: Answer>(&self, instances: &[usize]) -> Result<(), RunError> {
        self.lease.check()?;
        instances.iter().try_for_each(|instance| self.log.strike::<A>(*instance))?;
        self.sync()
    }

    pub(crate) fn sync(&self) -> Result<(), RunError> {
        self.log.sync()
    }
}

/// A directory that only its owner may look into; one that exists stays as it is.
fn create_private(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

fn read_at_most(path: &Path) -> Result<Option<Vec<u8>>, RunError> {
    use std::io::Read;
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound) => return Ok(None),
        Err(e) => return Err(io(path)(e)),
    };
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(io(path))?;
    if bytes.len() as u64 > LIMIT {
        return Err(RunError::Damaged { path: path.to_owned(), why: format!("more than {LIMIT} bytes") });
    }
    Ok(Some(bytes))
}

fn read_run(path: &Path) -> Result<Option<RunFile>, RunError> {
    let Some(bytes) = read_at_most(path)? else { return Ok(None) };
    parse_run(&bytes, path).map(Some)
}

pub(crate) fn parse_run(bytes: &[u8], path: &Path) -> Result<RunFile, RunError> {
    #[derive(Deserialize)]
    struct OnlyVersion {
        format_version: u32,
    }
    let damaged = |e: serde_json::Error| RunError::Damaged { path: path.to_owned(), why: e.to_string() };
    let OnlyVersion { format_version: found } = serde_json::from_slice(bytes).map_err(damaged)?;
    if found != VERSION {
        return Err(RunError::Version { path: path.to_owned(), found, expected: VERSION });
    }
    serde_json::from_slice(bytes).map_err(damaged)
}

/// A directory in which a run may begin holds nothing but what a run that never got its name left.
fn check_empty(path: &Path) -> Result<(), RunError> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(io(path)(e)),
    };
    for entry in entries {
        let name = entry.map_err(io(path))?.file_name().to_string_lossy().into_owned();
        if !OURS.contains(&name.as_str()) && !name.starts_with(".tmp") {
            return Err(RunError::NotEmpty { path: path.to_owned(), found: name });
        }
    }
    Ok(())
}

fn seed_digest(seed: &[u8; 32]) -> String {
    hex::encode(blake3::derive_key("hekaton-v1 run seed", seed))
}

fn write_seed(path: &Path, seed: &[u8; 32]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    // temporary files are made with mode 0600, and it stays
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(SEED_MAGIC)?;
    file.write_all(&VERSION.to_le_bytes())?;
    file.write_all(seed)?;
    persist(file, path, 0o600)
}

/// The seed; `None` when the run is finished.
fn read_seed(path: &Path, run: &RunFile, notices: &mut Vec<String>) -> Result<Option<Randomness>, RunError> {
    let file = path.join("seed");
    let damaged = |why: &str| RunError::Damaged { path: file.clone(), why: why.to_owned() };
    let Some(bytes) = read_at_most(&file)?.map(Zeroizing::new) else {
        return if path.join("proof").exists() { Ok(None) } else { Err(damaged("the seed is missing")) };
    };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&file).map_err(io(&file))?.permissions().mode();
        if mode & 0o077 != 0 {
            notices.push(format!(
                "{} is readable for others (mode {:o}): whoever read it can undo the proof's zero knowledge",
                file.display(),
                mode & 0o777
            ));
        }
    }
    let head = [&SEED_MAGIC[..], &VERSION.to_le_bytes()].concat();
    let seed: Option<[u8; 32]> = bytes.strip_prefix(&head[..]).and_then(|seed| seed.try_into().ok());
    let seed = Zeroizing::new(seed.ok_or_else(|| damaged("it is no seed of this version"))?);
    if seed_digest(&seed) != run.seed_digest {
        return Err(damaged("it is not the seed that the run was begun with"));
    }
    Ok(Some(Randomness::from_seed(&seed, run.insecure_seed)))
}

/// Makes renames in a directory outlive a power failure, where the file system can.
fn sync_directory(path: &Path) {
    let _ = std::fs::File::open(path).and_then(|directory| directory.sync_all());
}
