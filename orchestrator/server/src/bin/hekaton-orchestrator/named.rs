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

/// The handle of a job that is named by it, by the beginning of it or of the block's name, by `CHAIN/HEIGHT`, or by a chain and the
/// beginning of the name. Only open jobs, the last ones that have ended, and dead ones of that chain are found without their handle.
pub(crate) fn handle(client: &Client, given: &str) -> Result<String, Failure> {
    if given.parse::<Handle>().is_ok() {
        return Ok(given.to_owned());
    }
    let in_chain = given.split_once('/');
    // A shell's variable may be empty, and every name begins with nothing.
    if given.is_empty() || in_chain.is_some_and(|(_, name)| name.is_empty()) {
        return Err(failure(exit::USAGE, format!("'{given}' does not name a job")));
    }
    let mut jobs: Vec<JobStatus> = client.jobs()?.jobs.into_iter().map(|view| view.job).collect();
    if let Some((chain, _)) = in_chain {
        jobs.extend(client.dead(chain)?);
    }
    let is_a_name = jobs.iter().any(|job| job.id == given);
    let is_meant = |job: &JobStatus| match (place(given), in_chain) {
        (Some((chain, height)), _) => job.chain == chain && job.block == height,
        (None, Some((chain, name))) => job.chain == chain && job.id.starts_with(name),
        (None, None) if is_a_name => job.id == given,
        // The beginning of every handle is that of its chain.
        (None, None) => {
            job.id.starts_with(given) || (given.contains('.') && job.job.starts_with(given))
        }
    };
    let mut handles: Vec<String> =
        jobs.iter().filter(|job| is_meant(job)).map(|job| job.job.clone()).collect();
    handles.sort_unstable();
    handles.dedup();
    match handles.len() {
        1 => Ok(handles.remove(0)),
        0 => {
            let mut why = format!(
                "there is no job '{given}' among the open ones and those that ended recently: use the handle that \
                 `submit` printed"
            );
            if in_chain.is_none() {
                why += ", CHAIN/HEIGHT or CHAIN/NAME";
            }
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
    let (mut from, mut found) = (0, Vec::<(String, Vec<String>)>::new());
    loop {
        let page = client.proofs(chain, from)?;
        // A page may be shorter than the limit without being the last one.
        if page.proofs.is_empty() {
            break;
        }
        for ProofBody { entry, id, block, outputs, .. } in page.proofs {
            match &*entry {
                // The last block that stays may have the height of the first one, as a genesis has.
                "revert" => found.retain(|(stays, _)| block > height || *stays == id),
                "block" if block == height => found.push((id, outputs)),
                _ => {}
            }
        }
        from = page.next;
    }
    match found.len() {
        0 | 1 => Ok(found.pop().map(|(_, outputs)| outputs)),
        count => {
            let why = format!(
                "{chain} has published {count} blocks of height {height}: name one by its handle"
            );
            Err(failure(exit::USAGE, why))
        }
    }
}
