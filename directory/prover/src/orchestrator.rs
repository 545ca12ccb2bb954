//! Proofs of epochs as jobs of an orchestrator.

use hekaton_directory_server::{ProveError, Stop};
use hekaton_orchestrator_client::body::{ChainBody, JobBody, JobStatus, RevertBody};
use hekaton_orchestrator_client::{Client, ClientError, Digest, Order};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The time that a request waits for the end of a job, in seconds: a stop is noticed after that.
const LOOK: u32 = 1;

/// The first and the last pause before a request is repeated, in which a service may be started again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LAST_PAUSE: Duration = Duration::from_secs(30);

/// Submits each proof to an orchestrator as the next block of a chain, and waits for it. A submitted job is proven even if this process
/// dies; submitting the same epochs again returns the same job.
#[derive(Debug)]
pub struct Orchestrator {
    client: Client,
    chain: String,
    backend: String,
}

impl Orchestrator {
    /// Jobs of a chain, made by a back-end that has the same keys. The chain is made when it is first needed; its blocks are
    /// `epoch-N`.
    pub fn new(client: Client, chain: &str, backend: &str) -> Self {
        Self { client, chain: chain.to_owned(), backend: backend.to_owned() }
    }

    /// Has the epochs of a witness proven. Returns the file of the proof. The job continues if this is asked to stop.
    pub(crate) fn prove(
        &self,
        place: &Path,
        witness: &Path,
        (from, to): (u32, u32),
        stop: &Stop,
    ) -> Result<PathBuf, ProveError> {
        self.make_chain(from, stop)?;
        let input = insist(stop, || self.client.put_file(witness))?.to_string();
        let job = JobBody {
            chain: self.chain.clone(),
            block: to.into(),
            // The names come from the epochs alone, so the same request finds its job again after a
            // restart.
            id: Some(block(to)),
            parent: Some(block(from)),
            backend: Some(self.backend.clone()),
            inputs: BTreeMap::from([("input".to_owned(), vec![input])]),
            ..JobBody::default()
        };
        let mut status = insist(stop, || self.client.submit(&job))?;
        while status.state == "live" {
            if stop.is_asked() {
                return Err(ProveError::Stopped);
            }
            status = insist(stop, || self.client.job(&status.job, LOOK))?;
        }
        let first = u64::from(from) + 1;
        let digest = output(&status).map_err(|why| {
            ProveError::Failed(format!("the job of epochs {first} to {to}: {why}"))
        })?;
        let proof = place.join("proof");
        insist(stop, || self.client.get_blob(&digest, &proof))?;
        Ok(proof)
    }

    /// Makes the chain whose genesis is the epoch before the first one that is handed over, unless it exists.
    fn make_chain(&self, from: u32, stop: &Stop) -> Result<(), ProveError> {
        let body = || ChainBody { order: Order::Strict, genesis: Some(block(from)), bundles: None };
        insist(stop, || match self.client.chain(&self.chain) {
            Err(ClientError::Problem { problem, .. }) if problem.status == 404 => {
                self.client.make_chain(&self.chain, &body()).map(drop)
            }
            found => found.map(drop),
        })
    }

    /// Removes what follows an epoch from the chain: otherwise, a proof that does not hold would be returned again, and block the
    /// epochs after it.
    pub(crate) fn take_back(&self, from: u32) {
        // Also while the service stops: the next start would otherwise get the same proof again.
        let never = Stop::default();
        // An epoch is at its own height, except for the genesis, whose height is 0.
        let reverted = [from.into(), 0].map(|height| {
            let body = RevertBody { to: block(from), block: height };
            insist(&never, || self.client.revert(&self.chain, &body))
        });
        if let [Err(why), Err(_)] = reverted {
            tracing::error!(chain = self.chain, %why, "a proof that does not hold stays on the orchestrator's chain");
        }
    }
}

/// The name of an epoch as a block.
fn block(epoch: u32) -> String {
    format!("epoch-{epoch}")
}

/// The proof of a job that has ended.
fn output(status: &JobStatus) -> Result<Digest, String> {
    match (status.state.as_str(), &status.outputs[..]) {
        ("done", [proof]) => proof.parse().map_err(|_| format!("'{proof}' is not a digest")),
        ("done", outputs) => Err(format!("it has {} outputs, expected 1", outputs.len())),
        (state, _) => Err(match &status.reason {
            Some(reason) => format!("it is {state}: {reason}"),
            None => format!("it is {state}"),
        }),
    }
}

/// Repeats a request for a minute where that may help.
fn insist<T>(stop: &Stop, ask: impl Fn() -> Result<T, ClientError>) -> Result<T, ProveError> {
    let mut pause = FIRST_PAUSE;
    loop {
        match ask() {
            Ok(answer) => return Ok(answer),
            Err(error) if error.may_be_repeated() && pause < LAST_PAUSE => {
                tracing::warn!(%error, "asking the orchestrator again");
                if stop.wait(pause) {
                    return Err(ProveError::Stopped);
                }
                pause *= 2;
            }
            Err(error) => return Err(ProveError::Failed(error.to_string())),
        }
    }
}
