//! Finds the job that a command names, and what a chain has published for a block.

use hekaton_orchestrator::Client;
use hekaton_orchestrator::http::{JobStatus, ProofBody};
use hekaton_orchestrator::record::Handle;
use hekaton_service::program::{Failure, exit, failure};

/// The most handles that an error names.
const NAMED: usize = 4;

/// A block by its height, as in `main/17`.
fn place(given: &str) -> Option<(&str, u64)> {
    let (chain, height) = given.split_once('/')?;
    Some((chain, height.parse().ok()?))
}

/// The handle of a job that is named by it, by the beginning of it or of the block's name, or by `CHAIN/HEIGHT`. Only open jobs, the
/// last ones that have ended, and dead ones of that chain are found without their handle.
pub(crate) fn handle(client: &Client, given: &str) -> Result<String, Failure> {
    if given.parse::<Handle>().is_ok() {
        return Ok(given.to_owned());
    }
    let mut jobs: Vec<JobStatus> = client.jobs()?.jobs.into_iter().map(|view| view.job).collect();
    if let Some((chain, _)) = place(given) {
        jobs.extend(client.dead(chain)?);
    }
    let is_meant = |job: &JobStatus| match place(given) {
        Some((chain, height)) => job.chain == chain && job.block == height,
        None => job.job.starts_with(given) || job.id.starts_with(given),
    };
    let mut handles: Vec<String> =
        jobs.into_iter().filter(is_meant).map(|job| job.job).collect();
    handles.sort_unstable();
    handles.dedup();
    match handles.len() {
        1 => Ok(handles.remove(0)),
        0 => {
            let why = format!(
                "no open job, and none of the last that have ended, is named {given}: name it by the handle that \
                 `submit` printed, or as CHAIN/HEIGHT"
            );
            Err(failure(exit::FAILED, why))
        }
        count => {
            handles.truncate(NAMED);
            let why = format!("{given} names {count} jobs: name one of {}", handles.join(", "));
            Err(failure(exit::USAGE, why))
        }
    }
}

/// The outputs of the block that a chain has published at a height, if `given` is a chain and a height.
pub(crate) fn published(client: &Client, given: &str) -> Result<Option<Vec<String>>, Failure> {
    let Some((chain, height)) = place(given) else { return Ok(None) };
    let (mut from, mut found) = (0, Vec::new());
    loop {
        let page = client.proofs(chain, from)?;
        // A page may be shorter than the limit without being the last one.
        if page.proofs.is_empty() {
            break;
        }
        for ProofBody { entry, block, outputs, .. } in page.proofs {
            match &*entry {
                "revert" if block < height => found.clear(),
                "block" if block == height => found.push(outputs),
                _ => {}
            }
        }
        from = page.next;
    }
    match found.len() {
        0 | 1 => Ok(found.pop()),
        count => {
            let why = format!("{chain} has published {count} blocks of height {height}: name one by its handle");
            Err(failure(exit::USAGE, why))
        }
    }
}
