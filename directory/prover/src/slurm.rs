//! Proofs of epochs as SLURM jobs.

use hekaton_directory_server::{ProveError, Stop};
use hekaton_orchestrator_client::slurm::{
    JobState, ProofJob, ask_accounts, ask_queue, job_number, state_in_accounts, state_in_queue,
};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
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
    /// Options of `hekaton prove`.
    pub(crate) options: &'a [String],
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
        let answer = Command::new("sbatch").arg("--version").stdin(Stdio::null()).output();
        let version = answer
            .map_err(|error| format!("no SLURM on this machine: sbatch --version: {error}"))?;
        if !version.status.success() {
            let said = String::from_utf8_lossy(&version.stderr);
            return Err(format!("sbatch --version: {}: {}", version.status, said.trim()));
        }
        std::path::absolute(script).map(|script| Self { script }).map_err(|e| e.to_string())
    }

    /// Waits for the job of a proof, and submits it first unless it was submitted before. The job keeps running when this is
    /// asked to stop.
    pub(crate) fn prove(&self, job: &Job<'_>, stop: &Stop) -> Result<(), ProveError> {
        let file = job.place.join("job");
        let failed = |why: String| ProveError::Failed(why);
        let id = match submitted(&file).map_err(failed)? {
            Some(id) if !matches!(state(id), JobState::Ended(_)) => id,
            _ => {
                let id = self.submit(job).map_err(failed)?;
                hekaton_files::write(&file, id.to_string().as_bytes())
                    .map_err(|e| failed(format!("cannot write {}: {e}", file.display())))?;
                tracing::info!(job = id, log = %job.place.join("log").display(), "submitted to SLURM");
                id
            }
        };
        let mut ended = false;
        let how = loop {
            match state(id) {
                // A job that is requeued looks as if it had ended, for an instant.
                JobState::Ended(how) if ended => break how,
                state => ended = matches!(state, JobState::Ended(_)),
            }
            if stop.wait(PAUSE) {
                return Err(ProveError::Stopped);
            }
        };
        // The next attempt is another job, which resumes.
        std::fs::remove_file(&file)
            .map_err(|e| failed(format!("cannot remove {}: {e}", file.display())))?;
        if job.run.join("proof").is_file() {
            return Ok(());
        }
        let log = job.place.join("log");
        Err(failed(format!("SLURM job {id} ended as {how}; its log is {}", log.display())))
    }

    /// Submits a job and returns its number.
    fn submit(&self, job: &Job<'_>) -> Result<u64, String> {
        let &Job { place, witness: input, keys, run, hekaton, options } = job;
        let (script, log) = (&self.script, &place.join("log"));
        let job = ProofJob { script, name: None, log, input, keys, run, hekaton, options };
        job_number(&job.submit().output()?)
    }
}

/// The number of the job that was submitted before, if there is one.
fn submitted(file: &Path) -> Result<Option<u64>, String> {
    match std::fs::read_to_string(file) {
        // A file that is not a number is of another version of the program: there is no job to wait for.
        Ok(id) => Ok(id.trim().parse().ok()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot read {}: {error}", file.display())),
    }
}

/// Returns the state of a job. If SLURM does not answer, the job is waited for.
fn state(id: u64) -> JobState {
    match state_in_queue(ask_queue(id).output()) {
        Ok(Some(state)) => state,
        Ok(None) => state_in_accounts(&ask_accounts(id).output()),
        Err(why) => {
            tracing::warn!(job = id, %why, "SLURM does not report the state of a job");
            JobState::Waiting
        }
    }
}
