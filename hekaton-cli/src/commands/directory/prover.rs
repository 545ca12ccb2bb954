//! Proofs of epochs: made by `prove` in a process of its own, by a SLURM job or by an orchestrator, and verified here.

use super::folder::{CIRCUIT, check_trust, most_subcircuits, profile_of, steps_of};
use super::orchestrator::Orchestrator;
use super::slurm::{Job, Slurm};
use crate::app::App;
use crate::exit::{self, Failure, OrFail};
use crate::family::{FamilyCircuit, OpenedFamily};
use crate::options::Proving;
use hekaton_circuit::named::ParameterMap;
use hekaton_core::{Fr, LocalEngine, Proof, VerifyingKey};
use hekaton_directory::{EpochProof, Parameters, Witness};
use hekaton_directory_http::{ProveError, Prover, Stop};
use hekaton_storage::KeyStore;
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The number of derived verifying keys that are kept: directories have few sizes of proofs.
const KEPT: usize = 64;

/// The number of derived key stores that are kept.
const KEPT_STORES: usize = 4;

/// The reason why a proof was not verified.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unverified {
    /// It does not hold.
    #[error("{0}")]
    Rejected(String),
    /// It could not be checked.
    #[error("its key cannot be derived: {0}")]
    NoKey(String),
}

/// The keys of the epochs' proofs, to verify with.
pub(super) struct EpochKeys<'p> {
    program: &'p App,
    family: OpenedFamily,
    digest: [u8; 32],
    steps: usize,
    accept_test_keys: bool,
    derived: Mutex<HashMap<u32, Arc<VerifyingKey>>>,
}

impl<'p> EpochKeys<'p> {
    pub(super) fn open(
        path: &Path,
        program: &'p App,
        accept_test_keys: bool,
    ) -> Result<Self, Failure> {
        let family = OpenedFamily::open(path)?;
        profile_of(&family)?;
        check_trust(&family, accept_test_keys)?;
        let digest = family.digest()?;
        let steps = steps_of(&family)?;
        if program.get(CIRCUIT).is_none() {
            let why = format!("this program has no circuit '{CIRCUIT}'");
            return Err(Failure::new(exit::USAGE, why));
        }
        Ok(Self { program, family, digest, steps, accept_test_keys, derived: Mutex::default() })
    }

    /// Refuses keys that are not those of a directory.
    pub(super) fn check_parameters(&self, parameters: &Parameters) -> Result<(), Failure> {
        if self.digest == parameters.proofs {
            return Ok(());
        }
        let (found, expected) = (hex::encode(self.digest), hex::encode(parameters.proofs));
        let path = self.family.path.display();
        let why =
            format!("{path}: these keys have digest {found}, those of the directory {expected}");
        Err(Failure::new(exit::REFUSED, why))
    }

    /// The most subcircuits with steps.
    fn most(&self) -> usize {
        most_subcircuits(&self.family)
    }

    /// The number of subcircuits for some steps.
    fn subcircuits(&self, steps: usize) -> usize {
        steps.div_ceil(self.steps).max(1)
    }

    fn circuit(&self, subcircuits: u32) -> Result<FamilyCircuit<'_>, Failure> {
        let given: ParameterMap =
            [("subcircuits".to_owned(), subcircuits.into())].into_iter().collect();
        self.family.circuit(self.program, &given, None)
    }

    /// The key store for proofs with this number of subcircuits, in a folder with others.
    fn store(&self, subcircuits: u32, folder: &Path) -> Result<PathBuf, Failure> {
        const NAME: &str = "keys-";
        let path = folder.join(format!("{NAME}{subcircuits}"));
        if path.is_dir() {
            return Ok(path);
        }
        let engine = LocalEngine::new(None).or_fail(exit::FAILED)?;
        let store = KeyStore::create(&path).or_fail(exit::FAILED)?;
        self.circuit(subcircuits)?.derive_into(&engine, store)?;
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut stores: Vec<_> = entries
            .filter(|entry| entry.file_name().to_string_lossy().starts_with(NAME))
            .filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path())))
            .filter(|(_, other)| *other != path)
            .collect();
        stores.sort();
        let old = stores.len().saturating_sub(KEPT_STORES - 1);
        for (_, path) in stores.into_iter().take(old) {
            let _ = std::fs::remove_dir_all(path);
        }
        Ok(path)
    }

    /// The verifying key of proofs with this number of subcircuits.
    fn key(&self, subcircuits: u32) -> Result<Arc<VerifyingKey>, Failure> {
        let lock = || self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = lock().get(&subcircuits) {
            return Ok(Arc::clone(key));
        }
        let engine = LocalEngine::new(None).or_fail(exit::FAILED)?;
        let key = Arc::new(self.circuit(subcircuits)?.derive_verifying_key(&engine)?);
        let mut derived = lock();
        if derived.len() >= KEPT {
            derived.clear();
        }
        derived.insert(subcircuits, Arc::clone(&key));
        Ok(key)
    }

    /// Verifies a proof, and returns how long that took without deriving the key.
    pub(super) fn verify(
        &self,
        proof: &EpochProof,
        values: [u128; 10],
    ) -> Result<Duration, Unverified> {
        let rejected = |why: String| Err(Unverified::Rejected(why));
        let subcircuits = proof.subcircuits;
        // Before the key is derived, which takes longer than anybody should make a verifier work for nothing.
        if subcircuits == 0 || subcircuits as usize > self.most() {
            let most = self.most();
            return rejected(format!(
                "it has {subcircuits} subcircuits, and there are keys for 1 to {most}"
            ));
        }
        let instances = subcircuits as usize + 1;
        let rounds = instances.next_power_of_two().ilog2() as usize;
        let (found, expected) = (proof.proof.len(), Proof::encoded_len(rounds));
        if found != expected {
            return rejected(format!("it has {found} bytes, expected {expected}"));
        }
        let key = self.key(subcircuits).map_err(|failure| Unverified::NoKey(failure.message))?;
        let start = Instant::now();
        let values = values.map(Fr::from);
        crate::commands::verify::verdict(&key, &values, &proof.proof, self.accept_test_keys)
            .map_err(|error| Unverified::Rejected(error.to_string()))?;
        Ok(start.elapsed())
    }
}

/// Proves epochs with `prove`, each time in a process, or a SLURM job, and a run directory of its own: a prover that dies takes
/// nothing with it, and what was begun is continued.
pub(super) struct EpochProver<'p> {
    keys: EpochKeys<'p>,
    /// This program.
    executable: PathBuf,
    /// Options of `prove`.
    options: Vec<String>,
    folder: PathBuf,
    slurm: Option<Slurm>,
    orchestrator: Option<Orchestrator>,
    /// The run that could not be resumed the last time.
    stuck: Mutex<Option<PathBuf>>,
}

impl<'p> EpochProver<'p> {
    pub(super) fn new(
        keys: EpochKeys<'p>,
        folder: PathBuf,
        proving: &Proving,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))
            .or_fail(exit::FAILED)?;
        let executable = std::env::current_exe().or_fail(exit::FAILED)?;
        let mut options = Vec::new();
        if let Some(limit) = proving.memory_limit {
            options.extend(["--memory-limit".to_owned(), limit.to_string()]);
        }
        if let Some(threads) = proving.threads.threads {
            options.extend(["--threads".to_owned(), threads.to_string()]);
        }
        let slurm = proving.slurm.as_deref().map(Slurm::new).transpose()?;
        let orchestrator = Orchestrator::new(&proving.orchestrator)?;
        let folder = std::path::absolute(&folder).or_fail(exit::FAILED)?;
        let stuck = Mutex::default();
        Ok(Self { keys, executable, options, folder, slurm, orchestrator, stuck })
    }

    /// Returns the folder in which the proof of some epochs is made.
    fn place(&self, from: u32, to: u32) -> PathBuf {
        self.folder.join(format!("{from}-{to}"))
    }

    /// Removes the folders of proofs that begin before epoch `proven`: they are attached, or no longer needed.
    pub(super) fn clean(&self, proven: u32) {
        for (from, _, path) in self.places() {
            if from < proven {
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }

    fn places(&self) -> Vec<(u32, u32, PathBuf)> {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let places = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let (from, to) = name.split_once('-')?;
            Some((from.parse().ok()?, to.parse().ok()?, entry.path()))
        });
        places.collect()
    }

    fn start(&self, place: &Path) -> std::io::Result<Child> {
        let log = File::create(place.join("log"))?;
        let mut command = Command::new(&self.executable);
        command.arg("prove").arg(place.join("witness"));
        command.arg("--keys").arg(&self.keys.family.path);
        command.arg("--run").arg(place.join("run")).arg("--resume");
        command.arg("--proof").arg(place.join("proof")).args(&self.options);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        // A Ctrl-C at the terminal is for this process, which asks the prover to stop.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn()
    }

    /// Proves in a process on this machine. Returns where the proof is.
    fn prove_here(
        &self,
        place: &Path,
        (from, to): (u32, u32),
        stop: &Stop,
    ) -> Result<PathBuf, ProveError> {
        let failed = |what: &str, e: &dyn std::fmt::Display| failed(place, what, e);
        let run = place.join("run");
        let is_resumed = run.exists();
        let mut child = self.start(place).map_err(|e| failed("start a prover", &e))?;
        let status = wait(&mut child, stop).map_err(|e| failed("wait for the prover", &e))?;
        if status.success() {
            return Ok(place.join("proof"));
        }
        if stop.is_asked() {
            return Err(ProveError::Stopped);
        }
        let log = std::fs::read_to_string(place.join("log")).unwrap_or_default();
        if is_resumed {
            self.note_stuck(&run, &log);
        }
        let why =
            log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        let first = u64::from(from) + 1;
        let why = format!("the prover of epochs {first} to {to} ended with {status}: {why}");
        Err(ProveError::Failed(why))
    }

    /// A run that refuses to be resumed twice, since it is damaged or of another version of the program, is set aside: without
    /// that, no later epoch would ever be proven.
    fn note_stuck(&self, run: &Path, log: &str) {
        if !cannot_be_resumed(log) {
            return;
        }
        let mut stuck = self.stuck.lock().unwrap_or_else(PoisonError::into_inner);
        if stuck.as_deref() != Some(run) {
            *stuck = Some(run.to_owned());
            return;
        }
        *stuck = None;
        let aside = run.with_file_name("run-refused");
        let _ = std::fs::remove_dir_all(&aside);
        match std::fs::rename(run, &aside) {
            Ok(()) => {
                let aside = aside.display();
                tracing::error!(%aside, "a run that cannot be resumed is set aside, and begins again");
            }
            Err(error) => {
                tracing::error!(%error, "a run that cannot be resumed cannot be set aside")
            }
        }
    }
}

/// Reports whether a prover says that its run can never be resumed; not one that is only held by another process, for example.
fn cannot_be_resumed(log: &str) -> bool {
    let final_words = [
        "start a new run in another directory",
        "holds a different run",
        "resume with the program that started the run",
    ];
    final_words.iter().any(|words| log.contains(words))
}

fn failed(place: &Path, what: &str, e: &dyn std::fmt::Display) -> ProveError {
    ProveError::Failed(format!("{}: cannot {what}: {e}", place.display()))
}

/// Waits for a prover; if the service stops, asks it to stop, too, once.
fn wait(child: &mut Child, stop: &Stop) -> std::io::Result<ExitStatus> {
    let mut is_asked = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if stop.is_urgent() {
            child.kill()?;
        } else if stop.is_asked() && !is_asked {
            is_asked = true;
            terminate(child);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Asks a process to stop: what it has done so far is kept.
fn terminate(child: &Child) {
    let pid = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        // A process that has ended by now does not need the signal.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

impl Prover for EpochProver<'_> {
    fn room(&self) -> usize {
        self.keys.most().saturating_mul(self.keys.steps)
    }

    fn begun(&self, from: u32) -> Option<u32> {
        let places = self
            .places()
            .into_iter()
            .filter(|(begun, _, path)| *begun == from && path.join("witness").exists());
        places.map(|(_, to, _)| to).max()
    }

    fn prove(&self, witness: &Witness, to: u32, stop: &Stop) -> Result<EpochProof, ProveError> {
        let from = witness.epoch;
        let place = self.place(from, to);
        let failed = |what: &str, e: &dyn std::fmt::Display| failed(&place, what, e);
        std::fs::create_dir_all(&place).map_err(|e| failed("make it", &e))?;
        let (file, run) = (place.join("witness"), place.join("run"));
        let bytes = witness.encode();
        // An interrupted run resumes only with the same witness.
        if std::fs::read(&file).ok().as_ref() != Some(&bytes) {
            let _ = std::fs::remove_dir_all(&run);
            crate::terminal::output::write(&file, &bytes)
                .map_err(|e| failed("write", &e.message))?;
        }
        let subcircuits = u32::try_from(self.keys.subcircuits(witness.steps.len()))
            .map_err(|e| ProveError::Failed(e.to_string()))?;
        let proof = match (&self.slurm, &self.orchestrator) {
            (None, None) => self.prove_here(&place, (from, to), stop)?,
            (None, Some(orchestrator)) => orchestrator.prove(&place, &file, (from, to), stop)?,
            (Some(slurm), _) => {
                let made = run.join("proof");
                if !made.is_file() {
                    let keys = self.keys.store(subcircuits, &self.folder);
                    let keys = keys.map_err(|failure| ProveError::Failed(failure.message))?;
                    let (executable, options) = (&self.executable, &self.options);
                    let job = Job {
                        place: &place,
                        witness: &file,
                        keys: &keys,
                        run: &run,
                        executable,
                        options,
                    };
                    let proven = slurm.prove(&job, stop);
                    if let Err(ProveError::Failed(_)) = &proven {
                        let log = std::fs::read_to_string(place.join("log")).unwrap_or_default();
                        self.note_stuck(&run, &log);
                        // The keys may be at fault: they are derived again.
                        let _ = std::fs::remove_dir_all(&keys);
                    }
                    proven?;
                }
                made
            }
        };
        let proof = exit::read_at_most(&proof, exit::PROOF_LIMIT);
        let proof = proof.map_err(|failure| ProveError::Failed(failure.message))?;
        Ok(EpochProof { from, to, subcircuits, proof })
    }

    fn verify(
        &self,
        proof: &EpochProof,
        values: [u128; 10],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let verified = self.keys.verify(proof, values).map(drop);
        if let Err(Unverified::Rejected(_)) = verified {
            if let Some(orchestrator) = &self.orchestrator {
                orchestrator.take_back(proof.from, &self.folder);
            }
            // The run would return the same proof again.
            self.attached(proof.from, proof.to);
        }
        Ok(verified?)
    }

    fn attached(&self, from: u32, to: u32) {
        let _ = std::fs::remove_dir_all(self.place(from, to));
    }
}

#[cfg(test)]
mod tests {
    use super::cannot_be_resumed;
    use hekaton_storage::RunError;
    use std::path::PathBuf;

    #[test]
    fn what_provers_say_of_their_runs() {
        let path = PathBuf::from("run");
        for error in [
            RunError::Different { path: path.clone(), differences: vec!["x".into()] },
            RunError::Finished { path: path.clone() },
            RunError::Version { path: path.clone(), found: 1, expected: 2 },
            RunError::Damaged { path: path.clone(), why: "x".into() },
            RunError::OtherLog { path: path.clone() },
        ] {
            assert!(cannot_be_resumed(&format!("a line\nerror: {error}\n")), "{error}");
        }
        let holder = "process 7 on node1".into();
        for error in [RunError::Held { path: path.clone(), holder }, RunError::Exists { path }] {
            assert!(!cannot_be_resumed(&error.to_string()), "{error}");
        }
        assert!(!cannot_be_resumed("cannot read input: No such file"));
    }
}
