//! The run directory, from which an interrupted run can be resumed (docs/formats.md, "Run directory").
//!
//! It keeps the run's identity (`run.json`: digests of the verifying key, layout and input), its
//! secret seed (`seed`, mode 0600, removed by the last step), append-only logs of commitments and
//! proofs, and the proof. Every answer is a function of the key, input and seed, so answers in the
//! logs need not be repeated, and an answer that is repeated is the same
//! (spec: zero-knowledge#randomness, zero-knowledge#resume). Only one process at a time works in
//! the directory: it holds the lease.

use crate::error::{RunError, io};
use crate::files::{LIMIT, RunFile, VERSION, read_run, read_seed, seed_digest, write_seed};
use crate::identity::{PublicIdentity, RunIdentity};
use crate::lease::Lease;
use crate::log::{Binding, Log};
use hekaton_core::protocol::journal::{Accept, Journal, JournalError, LogKey, RoundLog};
use hekaton_core::{Proof, Randomness, VerifyingKey};
use hekaton_files::{sync_folder, write_readable};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

/// Files that a directory may contain before its run has started: those of a start that was
/// interrupted.
const OURS: [&str; 5] = ["seed", "lease.json", "lease.lock", "events.jsonl", "report.json"];

/// Options for opening a run directory.
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
    /// The defaults: a lease deadline of 30 seconds and a fresh seed.
    pub fn new() -> Self {
        Self::default()
    }

    /// The time without a heartbeat after which a holder on another machine counts as dead: whole
    /// seconds from 1 to 600. Default: 30 s.
    pub fn lease_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline.clamp(Duration::from_secs(1), Duration::from_secs(600));
        self
    }

    /// Sets the seed of a new run. **For tests only: proofs made with it are NOT zero-knowledge.**
    pub fn insecure_seed(mut self, seed: u64) -> Self {
        self.insecure_seed = Some(seed);
        self
    }

    /// Starts a run in a new or empty directory.
    ///
    /// # Errors
    /// If a run was already started there, another process holds it, or the directory cannot be
    /// written.
    pub fn begin(&self, path: &Path, identity: &RunIdentity) -> Result<RunDirectory, RunError> {
        self.open(path, identity, false)
    }

    /// Resumes the run in a directory, or starts it if there is none yet.
    ///
    /// # Errors
    /// If the directory holds a different run, another process holds it, or it cannot be read or
    /// written.
    pub fn resume(&self, path: &Path, identity: &RunIdentity) -> Result<RunDirectory, RunError> {
        self.open(path, identity, true)
    }

    fn open(
        &self,
        path: &Path,
        identity: &RunIdentity,
        resume: bool,
    ) -> Result<RunDirectory, RunError> {
        let file = path.join("run.json");
        if path.exists() && !path.is_dir() {
            return Err(RunError::File { path: path.to_owned() });
        }
        // Errors come before anything is written into a directory that is not ours.
        let mut found = read_run(&file)?;
        if found.is_some() && !resume {
            return Err(RunError::Exists { path: path.to_owned() });
        }
        if found.is_none() {
            check_empty(path)?;
            create_private(path).map_err(io(path))?;
        }
        let mut notices: Vec<String> = open_to_others(path).into_iter().collect();
        let lease = Lease::acquire(path, self.deadline, &mut notices)?;
        // The previous holder of the lease may have started the run in the meantime.
        if found.is_none() {
            found = read_run(&file)?;
            if found.is_some() && !resume {
                return Err(RunError::Exists { path: path.to_owned() });
            }
        }
        match found {
            Some(found) => self.reopen(path, identity, found, lease, notices),
            None => {
                if resume {
                    notices.push(format!(
                        "{} does not hold a run yet: starting a new one",
                        path.display()
                    ));
                }
                self.start(path, identity, lease, notices)
            }
        }
    }

    /// Opens the run that a directory already holds, if it is the expected one.
    fn reopen(
        &self,
        path: &Path,
        identity: &RunIdentity,
        found: RunFile,
        lease: Lease,
        mut notices: Vec<String>,
    ) -> Result<RunDirectory, RunError> {
        let mut differences = found.identity.differences(&identity.public);
        if found.insecure_seed != self.insecure_seed.is_some() {
            let (then, now) = if found.insecure_seed {
                ("a test", "a random one")
            } else {
                ("a random", "a test seed")
            };
            differences.push(format!("it was started with {then} seed, this process uses {now}"));
        }
        let randomness =
            if differences.is_empty() { read_seed(path, &found, &mut notices)? } else { None };
        // Resuming with another input under the same seed would not be zero-knowledge
        // (spec: zero-knowledge#resume). A finished run no longer has a seed: `prove` checks whether
        // its proof is valid for these public values instead.
        if randomness
            .as_ref()
            .is_some_and(|r| identity.hidden_input(r.secret_seed()) != found.input_digest)
        {
            differences.push("its input differs".to_owned());
        }
        if !differences.is_empty() {
            return Err(RunError::Different { path: path.to_owned(), differences });
        }
        Ok(RunDirectory::new(path, found, randomness, lease, notices, true))
    }

    /// Starts a run in a directory that holds none.
    fn start(
        &self,
        path: &Path,
        identity: &RunIdentity,
        lease: Lease,
        notices: Vec<String>,
    ) -> Result<RunDirectory, RunError> {
        let file = path.join("run.json");
        let randomness = match self.insecure_seed {
            Some(seed) => Randomness::seeded_not_zero_knowledge(seed),
            None => Randomness::fresh().map_err(|e| io(path)(std::io::Error::other(e)))?,
        };
        let run = RunFile {
            format_version: VERSION,
            identity: identity.public.clone(),
            input_digest: identity.hidden_input(randomness.secret_seed()),
            seed_digest: seed_digest(randomness.secret_seed()),
            insecure_seed: randomness.is_seeded(),
            written_by: concat!("hekaton ", env!("CARGO_PKG_VERSION")).to_owned(),
        };
        // The seed comes first: a `run.json` without its seed could never be resumed.
        write_seed(&path.join("seed"), randomness.secret_seed()).map_err(io(&path.join("seed")))?;
        let text = serde_json::to_string_pretty(&run).map_err(|e| io(&file)(e.into()))?;
        // The run exists from the moment that this file has its name.
        write_readable(&file, (text + "\n").as_bytes()).map_err(io(&file))?;
        Ok(RunDirectory::new(path, run, Some(randomness), lease, notices, false))
    }
}

/// A warning about a directory that other users can enter: its logs can confirm guesses of the
/// witness under keys without masks, and users who can write there can replace the run.
#[cfg(unix)]
fn open_to_others(path: &Path) -> Option<String> {
    use std::os::unix::fs::PermissionsExt;
    let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        format!(
            "{} is open to other users (mode {mode:o}): make it private with chmod 700",
            path.display()
        )
    })
}

#[cfg(not(unix))]
fn open_to_others(_: &Path) -> Option<String> {
    None
}

/// An open run directory. It holds the lease until it is dropped.
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
    ) -> Self {
        Self {
            path: path.to_owned(),
            identity: run.identity,
            randomness,
            insecure_seed: run.insecure_seed,
            lease,
            resumed,
            notices: Mutex::new(notices),
        }
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the file for events, which the processes of the run append to one after the
    /// other. Programs that record events write it; this crate does not.
    pub fn events_path(&self) -> PathBuf {
        self.path.join("events.jsonl")
    }

    /// The path of the proof of a finished run.
    pub fn proof_path(&self) -> PathBuf {
        self.path.join("proof")
    }

    /// Fails if another process has taken the run over. Every write to the directory checks this.
    ///
    /// # Errors
    /// If the lease is lost; the error names the new holder.
    pub fn check_lease(&self) -> Result<(), RunError> {
        self.lease.check()
    }

    /// The keys of a log. They are derived from the seed: without it, no records can be produced, and no
    /// guess of the context, which depends on the witness, can be confirmed.
    fn binding(&self, key: &LogKey<'_>) -> Result<Binding, RunError> {
        let Some(randomness) = &self.randomness else {
            return Err(RunError::Finished { path: self.path.clone() });
        };
        let derive = |label: &'static str| -> [u8; 32] {
            let mut hasher = blake3::Hasher::new_derive_key(label);
            hasher.update(randomness.secret_seed());
            hasher.update(&(key.round.len() as u64).to_le_bytes()).update(key.round.as_bytes());
            *hasher.update(&key.attempt.to_le_bytes()).update(key.context).finalize().as_bytes()
        };
        Ok(Binding {
            public: derive("hekaton-v1 run log: header"),
            secret: derive("hekaton-v1 run log: records"),
        })
    }

    /// Removes the seed, if it is still there.
    fn forget_seed(&self) -> Result<(), RunError> {
        self.lease.check()?;
        let seed = self.path.join("seed");
        match std::fs::remove_file(&seed) {
            Ok(()) => sync_folder(&self.path).map_err(io(&self.path)),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) => Err(io(&seed)(e)),
        }
    }
}

impl Journal for RunDirectory {
    fn is_for(&self, key: &VerifyingKey, direct: Option<[u8; 32]>) -> bool {
        self.identity.is_for(key, direct)
    }

    fn is_resumed(&self) -> bool {
        self.resumed
    }

    fn has_insecure_seed(&self) -> bool {
        self.insecure_seed
    }

    fn has_seed(&self) -> bool {
        self.randomness.is_some()
    }

    fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn randomness(&self) -> Result<Randomness, JournalError> {
        Ok(self.randomness.clone().ok_or_else(|| RunError::Finished { path: self.path.clone() })?)
    }

    fn log<'j>(
        &'j self,
        key: LogKey<'_>,
        accept: &mut Accept<'_>,
    ) -> Result<(Box<dyn RoundLog + 'j>, Vec<String>), JournalError> {
        self.lease.check()?;
        // A log for each attempt: answers under other masks and challenges must never be mixed
        // (spec: zero-knowledge#restart).
        let name = match key.attempt {
            1 => key.round.to_owned(),
            attempt => format!("{}-{attempt}", key.round),
        };
        let (log, notices) =
            Log::open(&self.path, &name, self.binding(&key)?, key.message_length, accept)?;
        Ok((Box::new(LeasedLog { log, lease: &self.lease }), notices))
    }

    fn proof(&self) -> Option<Vec<u8>> {
        use std::io::Read;
        let file = std::fs::File::open(self.proof_path()).ok()?;
        let mut bytes = Vec::new();
        file.take(LIMIT).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    fn finished_otherwise(&self) -> JournalError {
        RunError::Finished { path: self.path.clone() }.into()
    }

    fn finish(&self, proof: &Proof) -> Result<(), JournalError> {
        self.lease.check()?;
        let path = self.proof_path();
        write_readable(&path, proof.as_bytes()).map_err(io(&path))?;
        // Only after the proof is safely on disk: without proof and seed the run would be lost.
        Ok(self.forget_seed()?)
    }

    fn remove_seed(&self) -> Result<(), JournalError> {
        Ok(self.forget_seed()?)
    }
}

/// The log of one round, written under the lease.
struct LeasedLog<'a> {
    log: Log,
    lease: &'a Lease,
}

impl RoundLog for LeasedLog<'_> {
    fn append(&self, message: &[u8]) -> Result<(), JournalError> {
        // A former holder must not write. After a failed sync, earlier records may be lost: stop at
        // once.
        self.lease.check()?;
        self.lease.check_synced()?;
        if let Some(file) = self.log.append(message)? {
            self.lease.keep_synced(file);
        }
        Ok(())
    }

    fn sync(&self) -> Result<(), JournalError> {
        self.log.sync()?;
        Ok(self.lease.check_synced()?)
    }
}

/// Creates a directory that only its owner may read; an existing one stays as it is.
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

/// Fails if a directory contains anything but the files of a start that was interrupted.
fn check_empty(path: &Path) -> Result<(), RunError> {
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(io(path)(e)),
    };
    for entry in entries {
        let name = entry.map_err(io(path))?.file_name().to_string_lossy().into_owned();
        // Those of a write that was interrupted: `.tmp` is a lease's.
        let is_temporary = hekaton_files::is_temporary(&name) || name.starts_with(".tmp");
        if !OURS.contains(&name.as_str()) && !is_temporary {
            return Err(RunError::NotEmpty { path: path.to_owned(), found: name });
        }
    }
    Ok(())
}
