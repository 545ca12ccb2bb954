//! Proofs of epochs: each is made by `hekaton prove` in a process of its own, by a SLURM job or by an orchestrator, and is verified
//! here.

use crate::keys::{EpochKeys, Unverified};
use crate::orchestrator::Orchestrator;
use crate::slurm::{Job, Slurm};
use hekaton_core::Proof;
use hekaton_directory::{EpochProof, Witness};
use hekaton_directory_server::{ProveError, Prover, Stop};
use std::fs::File;
use std::io::Read;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The site at which proofs are made.
#[derive(Debug)]
pub enum Site {
    /// In processes on this machine.
    Here,
    /// In jobs of SLURM.
    Slurm(Slurm),
    /// By the back-ends of an orchestrator.
    Orchestrator(Orchestrator),
}

/// The program that proves, and what it may use.
#[derive(Clone, Debug)]
pub struct ProverOptions {
    /// The program `hekaton`; under SLURM, all machines must have it at this path.
    pub hekaton: PathBuf,
    /// The number of threads [default: the cores that the process may use].
    pub threads: Option<NonZeroUsize>,
    /// The maximum memory of a proof, in bytes.
    pub memory_limit: Option<u64>,
}

/// Proves epochs with `hekaton prove`, each time in a process or a job, and a run directory, of its own: a prover that dies takes
/// nothing with it, and an interrupted run is resumed.
#[derive(Debug)]
pub struct EpochProver {
    keys: EpochKeys,
    hekaton: PathBuf,
    /// Options of `hekaton prove`.
    options: Vec<String>,
    folder: PathBuf,
    site: Site,
    /// The run that could not be resumed the last time.
    stuck: Mutex<Option<PathBuf>>,
}

impl EpochProver {
    /// A prover that keeps its runs in a folder, which is created.
    ///
    /// # Errors
    /// If the folder cannot be created.
    pub fn new(
        keys: EpochKeys,
        folder: &Path,
        site: Site,
        options: ProverOptions,
    ) -> std::io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let ProverOptions { hekaton, threads, memory_limit } = options;
        let limit = memory_limit.map(|bytes| ["--memory-limit".to_owned(), bytes.to_string()]);
        let thread_count = threads.map(|threads| ["--threads".to_owned(), threads.to_string()]);
        let options = limit.into_iter().chain(thread_count).flatten().collect();
        let folder = std::path::absolute(folder)?;
        Ok(Self { keys, hekaton, options, folder, site, stuck: Mutex::default() })
    }

    /// Returns the folder in which the proof of some epochs is made.
    fn place(&self, from: u32, to: u32) -> PathBuf {
        self.folder.join(format!("{from}-{to}"))
    }

    /// Removes the folders of proofs that begin before epoch `proven`: they are attached, or no longer needed.
    pub fn clean(&self, proven: u32) {
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
        let mut command = Command::new(&self.hekaton);
        command.arg("prove").arg(place.join("witness"));
        command.arg("--keys").arg(self.keys.path());
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
        // It ended because it was asked to, which is not a failure of the run.
        if stop.is_asked() {
            return Err(ProveError::Stopped);
        }
        let log = log_of(place);
        // A run that has just begun cannot refuse to be resumed.
        if is_resumed {
            self.note_stuck(&run, &log);
        }
        let why =
            log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it says nothing");
        let first = u64::from(from) + 1;
        let why = format!("the prover of epochs {first} to {to} ended with {status}: {why}");
        Err(ProveError::Failed(why))
    }

    /// Proves in a SLURM job, with a key store that all machines can read. Returns where the proof is.
    fn prove_by_slurm(
        &self,
        slurm: &Slurm,
        place: &Path,
        subcircuits: u32,
        stop: &Stop,
    ) -> Result<PathBuf, ProveError> {
        let (witness, run) = (place.join("witness"), place.join("run"));
        let made = run.join("proof");
        // The job may have ended while this service was not running.
        if made.is_file() {
            return Ok(made);
        }
        let derived = self.keys.store(subcircuits, &self.folder);
        let keys = derived.map_err(|error| ProveError::Failed(error.to_string()))?;
        let (hekaton, options) = (&self.hekaton, &self.options);
        let job = Job { place, witness: &witness, keys: &keys, run: &run, hekaton, options };
        let proven = slurm.prove(&job, stop);
        if let Err(ProveError::Failed(_)) = &proven {
            self.note_stuck(&run, &log_of(place));
            // The keys may be at fault: they are derived again.
            let _ = std::fs::remove_dir_all(&keys);
        }
        proven.map(|()| made)
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
                tracing::error!(aside = %aside.display(), "a run that cannot be resumed is set aside, and begins again");
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

/// The text that a prover has printed; a log that cannot be read is reported in its place.
fn log_of(place: &Path) -> String {
    let log = place.join("log");
    std::fs::read(&log).map_or_else(
        |error| format!("cannot read {}: {error}", log.display()),
        |bytes| String::from_utf8_lossy(&bytes).into_owned(),
    )
}

/// Reads a proof. Longer files are not proofs, and are not read to their ends.
fn read_proof(path: &Path) -> std::io::Result<Vec<u8>> {
    // That is the length for 2^32 instances, more than any family has: a wrong file must not fill
    // the memory.
    let longest = Proof::encoded_len(32) as u64;
    let mut bytes = Vec::new();
    File::open(path)?.take(longest + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 <= longest {
        true => Ok(bytes),
        false => {
            let why = format!("{}: not a proof: more than {longest} bytes", path.display());
            Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why))
        }
    }
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

impl Prover for EpochProver {
    fn room(&self) -> usize {
        self.keys.room()
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
            // Before the witness is replaced: a crash in between must not leave the old run with
            // the new witness.
            let _ = std::fs::remove_dir_all(&run);
            hekaton_files::write(&file, &bytes).map_err(|e| failed("write the witness", &e))?;
        }
        let subcircuits = u32::try_from(self.keys.subcircuits(witness.steps.len()))
            .map_err(|e| ProveError::Failed(e.to_string()))?;
        let proof = match &self.site {
            Site::Here => self.prove_here(&place, (from, to), stop)?,
            Site::Orchestrator(orchestrator) => {
                orchestrator.prove(&place, &file, (from, to), stop)?
            }
            Site::Slurm(slurm) => self.prove_by_slurm(slurm, &place, subcircuits, stop)?,
        };
        let proof = read_proof(&proof).map_err(|why| ProveError::Failed(why.to_string()))?;
        Ok(EpochProof { from, to, subcircuits, proof })
    }

    fn verify(
        &self,
        proof: &EpochProof,
        values: [u128; 10],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let verified = self.keys.verify(proof, values).map(drop);
        // Only if it was checked: a key that cannot be derived says nothing about the proof.
        if let Err(Unverified::Rejected(_)) = verified {
            if let Site::Orchestrator(orchestrator) = &self.site {
                orchestrator.take_back(proof.from);
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
