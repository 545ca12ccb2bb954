//! Commands for dead jobs: one of them, or all of a chain.

use crate::arguments::OfJobs;
use crate::named::handle;
use crate::output::{client, show};
use hekaton_orchestrator::Client;
use hekaton_orchestrator::http::JobStatus;
use hekaton_service::program::{Failure, exit, note};

/// Why a command line without a job has a chain.
const EITHER: &str = "the command line names a job or a chain";

/// Makes a job or all dead jobs of a chain live again. A job that is refused does not keep the others from it.
pub(crate) fn requeue(of: &OfJobs, json: bool) -> Result<u8, Failure> {
    let client = client(&of.to)?;
    if let Some(job) = &of.job {
        show(json, &client.requeue(&handle(&client, job)?)?)?;
        return Ok(0);
    }
    let chain = of.chain.as_deref().expect(EITHER);
    let mut code = 0;
    let dead = client.dead(chain)?;
    if dead.is_empty() {
        note(format_args!("chain '{chain}' has no dead jobs"));
    }
    for JobStatus { job, .. } in dead {
        match client.requeue(&job) {
            Ok(status) => show(json, &status)?,
            Err(error) => {
                note(format_args!("{job}: {error}"));
                code = exit::REFUSED;
            }
        }
    }
    Ok(code)
}

/// Skips a job, or the next blocks of a chain as long as they are dead.
pub(crate) fn skip(of: &OfJobs, json: bool) -> Result<u8, Failure> {
    let client = client(&of.to)?;
    if let Some(job) = &of.job {
        let job = handle(&client, job)?;
        client.skip(&job)?;
        show(json, &client.job(&job, 0)?)?;
        return Ok(0);
    }
    let chain = of.chain.as_deref().expect(EITHER);
    let mut dead = client.dead(chain)?;
    if next(&client, chain, &dead)?.is_none() {
        note(format_args!("the next block of chain '{chain}' is not dead"));
    }
    while let Some(at) = next(&client, chain, &dead)? {
        let JobStatus { job, .. } = dead.remove(at);
        if let Err(error) = client.skip(&job) {
            note(format_args!("{job}: {error}"));
            // The chain has not moved, so there is no next block to skip.
            return Ok(exit::REFUSED);
        }
        show(json, &client.job(&job, 0)?)?;
    }
    Ok(0)
}

/// The dead job that follows the last published block of a chain.
fn next(client: &Client, chain: &str, dead: &[JobStatus]) -> Result<Option<usize>, Failure> {
    let tail = client.chain(chain)?.tail;
    // A handle is the chain, the block before, and a digest.
    Ok(dead.iter().position(|job| job.job.split('.').nth(1) == tail.as_deref()))
}
