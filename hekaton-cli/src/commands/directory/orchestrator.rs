//! Proofs of epochs as jobs of an orchestrator.

use crate::exit::{self, Failure};
use crate::options::ToOrchestrator;
use hekaton_directory_http::{ProveError, Stop};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The program that submits.
const PROGRAM: &str = "hekaton-orchestrator";

/// How often it is looked whether the program has ended.
const PAUSE: Duration = Duration::from_millis(50);

/// Hands each proof to an orchestrator, as the next block of a chain, and waits for it. What was submitted is proven there whatever
/// happens to this process; the same epochs submitted again are the same job.
pub(super) struct Orchestrator {
    service: String,
    token: Option<PathBuf>,
    chain: String,
    backend: String,
}

impl Orchestrator {
    pub(super) fn new(options: &ToOrchestrator) -> Result<Option<Self>, Failure> {
        let ToOrchestrator {
            orchestrator,
            orchestrator_token: token,
            orchestrator_chain: chain,
            orchestrator_backend: backend,
        } = options;
        let Some(service) = orchestrator.clone() else { return Ok(None) };
        let version = Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status();
        if let Err(error) = version {
            let why = format!("--orchestrator needs the program {PROGRAM} in PATH: {error}");
            return Err(Failure::new(exit::USAGE, why));
        }
        let token = match token {
            Some(path) if !path.is_file() => {
                let why = format!("--orchestrator-token {}: there is no such file", path.display());
                return Err(Failure::new(exit::USAGE, why));
            }
            token => token.clone(),
        };
        let (chain, backend) = (chain.clone(), backend.clone());
        Ok(Some(Self { service, token, chain, backend }))
    }

    fn call(&self, command: &str) -> Command {
        let mut call = Command::new(PROGRAM);
        call.arg(command).arg("--service").arg(&self.service);
        if let Some(token) = &self.token {
            call.arg("--token").arg(token);
        }
        call
    }

    /// Has the epochs of a witness proven. Returns where the proof is. The job keeps running when this is asked to stop.
    pub(super) fn prove(
        &self,
        place: &Path,
        witness: &Path,
        (from, to): (u32, u32),
        stop: &Stop,
    ) -> Result<PathBuf, ProveError> {
        let (log, proof) = (place.join("log"), place.join("proof"));
        let io = |error: std::io::Error| ProveError::Failed(format!("{PROGRAM}: {error}"));
        let mut chain = self.call("chain");
        let known = chain.arg(&self.chain).output().map_err(io)?;
        if !known.status.success() {
            // The first epochs that are handed over, or nobody answers: then this fails, too, and says why.
            let mut chain = self.call("chain");
            let chain = chain.arg(&self.chain).arg("--genesis").arg(format!("epoch-{from}"));
            let made = chain.output().map_err(io)?;
            if !made.status.success() {
                let why = String::from_utf8_lossy(&made.stderr);
                return Err(ProveError::Failed(format!("{PROGRAM}: {}", why.trim())));
            }
        }
        let file = File::create(&log).map_err(io)?;
        let mut submit = self.call("submit");
        submit.arg(witness).arg("--chain").arg(&self.chain).arg("--backend").arg(&self.backend);
        submit.arg("--block").arg(to.to_string()).arg("--id").arg(format!("epoch-{to}"));
        submit.arg("--parent").arg(format!("epoch-{from}"));
        submit.arg("--wait").arg("--output").arg(&proof);
        submit.stdin(Stdio::null()).stdout(file.try_clone().map_err(io)?).stderr(file);
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut submit, 0);
        let mut child = submit.spawn().map_err(io)?;
        let status = loop {
            if let Some(status) = child.try_wait().map_err(io)? {
                break status;
            }
            if stop.wait(PAUSE) {
                let _ = child.kill();
                let _ = child.wait();
                return Err(ProveError::Stopped);
            }
        };
        if status.success() {
            return Ok(proof);
        }
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.unwrap_or("it says nothing").trim();
        let first = u64::from(from) + 1;
        Err(ProveError::Failed(format!("the job of epochs {first} to {to}: {last}")))
    }
}
