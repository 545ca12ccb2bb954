//! Proofs of epochs as SLURM jobs.

use crate::prover::write;
use hekaton_directory_server::{ProveError, Stop};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// The time between queries about a job to SLURM.
const PAUSE: Duration = Duration::from_secs(1);

/// Submits a batch script for each proof and waits for the job. Jobs outlive this process; the next one finds them by their
/// numbers.
#[derive(Debug)]
pub struct Slurm {
    script: PathBuf,
}

/// The statement that a job proves, and the files that it proves with.
pub(crate) struct Job<'a> {
    /// The folder of its number and its log.
    pub(crate) place: &'a Path,
    pub(crate) witness: &'a Path,
    pub(crate) keys: &'a Path,
    pub(crate) run: &'a Path,
    /// The program, which all machines must have at this path.
    pub(crate) hekaton: &'a Path,
    /// Options of `prove`.
    pub(crate) options: &'a [String],
}

/// The state of a job in SLURM.
#[derive(Debug, PartialEq, Eq)]
enum State {
    /// It waits or runs; or SLURM does not answer now.
    Active,
    /// It has ended like this.
    Ended(String),
}

impl Slurm {
    /// Jobs of a batch script, such as `slurm/prove.sbatch`.
    ///
    /// # Errors
    /// If there is no such script, or no SLURM on this machine.
    pub fn new(script: &Path) -> Result<Self, String> {
        if !script.is_file() {
            return Err(format!("{}: there is no such batch script", script.display()));
        }
        if let Err(why) = output_of(Command::new("sbatch").arg("--version")) {
            return Err(format!("SLURM is not on this machine: sbatch --version: {why}"));
        }
        std::path::absolute(script).map(|script| Self { script }).map_err(|e| e.to_string())
    }

    /// Waits for the job of a proof, and submits it first unless it was submitted before. The job keeps running when this is
    /// asked to stop.
    pub(crate) fn prove(&self, job: &Job<'_>, stop: &Stop) -> Result<(), ProveError> {
        let file = job.place.join("job");
        let submitted = std::fs::read_to_string(&file).ok();
        let submitted = submitted.map(|id| id.trim().to_owned()).filter(|id| is_number(id));
        let id = match submitted {
            Some(id) if state(&id) == State::Active => id,
            _ => {
                let id = self.submit(job).map_err(ProveError::Failed)?;
                let written = write(&file, id.as_bytes());
                written.map_err(|e| ProveError::Failed(format!("{}: {e}", file.display())))?;
                tracing::info!(job = %id, log = %job.place.join("log").display(), "submitted to SLURM");
                id
            }
        };
        let mut ended = false;
        let how = loop {
            match state(&id) {
                // A job that is requeued looks as if it had ended, for an instant.
                State::Ended(how) if ended => break how,
                state => ended = state != State::Active,
            }
            if stop.wait(PAUSE) {
                return Err(ProveError::Stopped);
            }
        };
        // The next attempt is another job, which resumes.
        let _ = std::fs::remove_file(&file);
        if job.run.join("proof").is_file() {
            return Ok(());
        }
        let log = job.place.join("log");
        Err(ProveError::Failed(format!(
            "SLURM job {id} ended as {how}; its log is {}",
            log.display()
        )))
    }

    /// The number of a new job.
    fn submit(&self, job: &Job<'_>) -> Result<String, String> {
        let mut command = Command::new("sbatch");
        command.arg("--parsable").arg("--output").arg(job.place.join("log")).arg("--export=ALL");
        command.env("FILE", job.witness).env("KEYS", job.keys).env("RUN", job.run);
        command.env("HEKATON", job.hekaton).env("OPTIONS", job.options.join(" "));
        // What else the script takes from the environment is not this proof's.
        command.env_remove("PROGRAM").env_remove("PROOF");
        command.arg(&self.script);
        let output = output_of(&mut command).map_err(|why| format!("sbatch: {why}"))?;
        // NUMBER or NUMBER;CLUSTER
        let id = output.trim().split(';').next().unwrap_or_default().to_owned();
        match is_number(&id) {
            true => Ok(id),
            false => Err(format!("sbatch printed no number of a job: {}", output.trim())),
        }
    }
}

fn is_number(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the state of a job. One that SLURM no longer knows has ended.
fn state(id: &str) -> State {
    let mut command = Command::new("squeue");
    command.args(["--noheader", "--states=all", "--format=%T", &format!("--jobs={id}")]);
    let said = output_of(&mut command);
    let word = match &said {
        Ok(output) => output.split_whitespace().next().unwrap_or("unknown"),
        Err(why) if why.contains("Invalid job id") => "unknown",
        Err(why) => {
            tracing::warn!(job = id, %why, "SLURM does not say how the job is");
            return State::Active;
        }
    };
    const ENDED: [&str; 12] = [
        "COMPLETED",
        "FAILED",
        "CANCELLED",
        "TIMEOUT",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "BOOT_FAIL",
        "DEADLINE",
        "LAUNCH_FAILED",
        "RECONFIG_FAIL",
        "REVOKED",
        "unknown",
    ];
    match ENDED.contains(&word) {
        true => State::Ended(word.to_owned()),
        false => State::Active,
    }
}

/// Returns what a command prints, or its error message if it fails.
fn output_of(command: &mut Command) -> Result<String, String> {
    let Output { status, stdout, stderr } =
        command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    match status.success() {
        true => Ok(String::from_utf8_lossy(&stdout).into_owned()),
        false => Err(format!("{status}: {}", String::from_utf8_lossy(&stderr).trim())),
    }
}
