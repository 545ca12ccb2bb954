//! Proofs of epochs as jobs of an orchestrator.

use hekaton_directory_server::{ProveError, Stop};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program that submits.
const PROGRAM: &str = "hekaton-orchestrator";

/// The time between checks whether the program has ended.
const PAUSE: Duration = Duration::from_millis(50);

/// Submits each proof to an orchestrator as the next block of a chain, and waits for it. A submitted job is proven even if this process
/// dies; submitting the same epochs again returns the same job.
#[derive(Debug)]
pub struct Orchestrator {
    service: String,
    token: Option<PathBuf>,
    chain: String,
    backend: String,
}

impl Orchestrator {
    /// Jobs of a chain of an orchestrator.
    ///
    /// # Errors
    /// If the program that submits them is not in `PATH`.
    pub fn new(
        service: &str,
        token: Option<&Path>,
        chain: &str,
        backend: &str,
    ) -> Result<Self, String> {
        let version = Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status();
        version.map_err(|error| format!("needs the program {PROGRAM} in PATH: {error}"))?;
        let (service, token) = (service.to_owned(), token.map(Path::to_owned));
        Ok(Self { service, token, chain: chain.to_owned(), backend: backend.to_owned() })
    }

    fn call(&self, command: &str) -> Command {
        let mut call = Command::new(PROGRAM);
        call.arg(command).arg("--service").arg(&self.service);
        if let Some(token) = &self.token {
            call.arg("--token").arg(token);
        }
        call
    }

    /// Has the epochs of a witness proven. Returns where the proof is. The job continues if this is asked to stop.
    pub(crate) fn prove(
        &self,
        place: &Path,
        witness: &Path,
        (from, to): (u32, u32),
        stop: &Stop,
    ) -> Result<PathBuf, ProveError> {
        let (log, proof) = (place.join("log"), place.join("proof"));
        let mut chain = self.call("chain");
        chain.arg(&self.chain);
        if !run(&mut chain, &log, stop)? {
            // Either these are the first epochs handed over, or the service is not reachable, and this call fails with the reason.
            let mut chain = self.call("chain");
            chain.arg(&self.chain).arg("--genesis").arg(format!("epoch-{from}"));
            if !run(&mut chain, &log, stop)? {
                return Err(ProveError::Failed(format!("{PROGRAM}: {}", last_line(&log))));
            }
        }
        let mut submit = self.call("submit");
        submit.arg(witness).arg("--chain").arg(&self.chain).arg("--backend").arg(&self.backend);
        submit.arg("--block").arg(to.to_string()).arg("--id").arg(format!("epoch-{to}"));
        submit.arg("--parent").arg(format!("epoch-{from}"));
        submit.arg("--wait").arg("--output").arg(&proof);
        if run(&mut submit, &log, stop)? {
            return Ok(proof);
        }
        let first = u64::from(from) + 1;
        Err(ProveError::Failed(format!("the job of epochs {first} to {to}: {}", last_line(&log))))
    }

    /// Takes back what the chain has after an epoch: a proof that does not hold would be found again, and stand in the way.
    pub(crate) fn take_back(&self, from: u32, folder: &Path) {
        let (log, never) = (folder.join("revert.log"), Stop::default());
        let done = [from, 0].into_iter().any(|height| {
            // The first epoch is the chain's genesis, whose height is 0.
            let mut revert = self.call("revert");
            revert.arg(&self.chain).arg(format!("epoch-{from}")).arg(height.to_string());
            matches!(run(&mut revert, &log, &never), Ok(true))
        });
        if !done {
            let why = last_line(&log);
            tracing::error!(chain = self.chain, %why, "a proof that does not hold is not taken back");
        }
    }
}

/// Runs a program, whose output goes to a file. Returns whether it succeeds.
fn run(command: &mut Command, log: &Path, stop: &Stop) -> Result<bool, ProveError> {
    let io = |error: std::io::Error| ProveError::Failed(format!("{PROGRAM}: {error}"));
    let file = File::create(log).map_err(io)?;
    command.stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().map_err(io)?;
    loop {
        if let Some(status) = child.try_wait().map_err(io)? {
            return Ok(status.success());
        }
        if stop.wait(PAUSE) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(ProveError::Stopped);
        }
    }
}

/// The last line of a file.
fn last_line(log: &Path) -> String {
    let said = std::fs::read_to_string(log).unwrap_or_default();
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    last.unwrap_or("it printed nothing").trim().to_owned()
}
