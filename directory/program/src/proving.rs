//! The prover of epochs, from the options of a command.

use crate::options::Proving;
use hekaton_directory_prover::{EpochKeys, EpochProver, Orchestrator, ProverOptions, Site, Slurm};
use hekaton_orchestrator_client::Client;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::installation;
use std::path::{Path, PathBuf};

/// The program that makes proofs.
const PROVER: &str = "hekaton";

/// A prover that keeps its runs in a folder.
pub(crate) fn prover(
    keys: EpochKeys,
    folder: &Path,
    proving: &Proving,
) -> Result<EpochProver, Failure> {
    let site = site(proving)?;
    let hekaton = match &site {
        // Not started here: the back-ends of the orchestrator have their own program.
        Site::Orchestrator(_) => PathBuf::from(PROVER),
        _ => installation::find(PROVER, "hekaton-cli", "epochs are proven by")?,
    };
    let (threads, memory_limit) = (proving.threads.threads, proving.memory_limit);
    EpochProver::new(keys, folder, site, ProverOptions { hekaton, threads, memory_limit })
        .map_err(|e| format!("cannot use {}: {e}", folder.display()))
        .or_fail(exit::FAILED)
}

fn site(proving: &Proving) -> Result<Site, Failure> {
    if let Some(script) = &proving.slurm {
        let slurm = Slurm::new(script).map_err(|why| format!("--slurm: {why}"));
        return slurm.map(Site::Slurm).or_fail(exit::USAGE);
    }
    let options = &proving.orchestrator;
    let Some(service) = &options.orchestrator else { return Ok(Site::Here) };
    let token = options.orchestrator_token.as_deref().map(read_token).transpose()?;
    let (chain, backend) = (&options.orchestrator_chain, &options.orchestrator_backend);
    Ok(Site::Orchestrator(Orchestrator::new(Client::new(service, token), chain, backend)))
}

/// Reads a file that has a token alone.
pub(crate) fn read_token(path: &Path) -> Result<String, Failure> {
    let bytes = exit::read_limited(path, 1 << 12, ": not a token")?;
    let token = bytes.trim_ascii();
    // What no header can carry would look like a connection that fails.
    match std::str::from_utf8(token) {
        Ok(text) if !token.is_empty() && token.iter().all(u8::is_ascii_graphic) => {
            Ok(text.to_owned())
        }
        _ => {
            let why = "expected one token alone, of visible ASCII characters without spaces";
            Err(Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display())))
        }
    }
}
