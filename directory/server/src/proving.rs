//! Proving epochs, one proof after another, while a directory is served or at once.

use crate::stop::Stop;
use crate::{Error, Server};
use hekaton_directory::{EpochProof, Witness};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The interval at which the last epoch is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// The time that the prover rests after a failure: at first, and at most.
const MIN_REST: Duration = Duration::from_secs(1);
const MAX_REST: Duration = Duration::from_secs(300);

/// A prover, which makes the proofs of epochs and verifies them.
pub trait Prover: Send + Sync {
    /// The most steps that a proof has room for.
    fn room(&self) -> usize;

    /// The last epoch of a proof that was begun earlier and not finished, of those that begin after this epoch.
    fn begun(&self, from: u32) -> Option<u32> {
        let _ = from;
        None
    }

    /// Proves epochs, from that of the witness to another one. It is called again after a failure or a restart.
    ///
    /// # Errors
    /// If it was stopped, or failed.
    fn prove(&self, witness: &Witness, to: u32, stop: &Stop) -> Result<EpochProof, ProveError>;

    /// Verifies a proof with the public values of the records at its ends.
    ///
    /// # Errors
    /// Why it does not hold.
    fn verify(
        &self,
        proof: &EpochProof,
        values: [u128; 10],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

    /// Called once the proof of these epochs is attached: what was kept to resume it is no longer needed.
    fn attached(&self, from: u32, to: u32) {
        let _ = (from, to);
    }
}

/// The reason why there is no proof.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProveError {
    /// The service stops.
    #[error("the service stops")]
    Stopped,
    /// It failed.
    #[error("{0}")]
    Failed(String),
}

/// The loop that proves the epochs of a service, with its statistics.
#[derive(Debug, Default)]
pub struct Proving(Mutex<ProvingStats>);

/// The work that the prover of a service has done.
#[derive(Clone, Debug, Default)]
pub struct ProvingStats {
    /// Proofs that were attached.
    pub proofs: u64,
    /// Attempts that failed.
    pub failures: u64,
    /// The time that the last proof took.
    pub seconds: f64,
    /// `true` if there is a prover.
    pub proves: bool,
    /// The reason why the last attempt failed, if it did.
    pub error: Option<String>,
}

impl Proving {
    /// The statistics so far.
    pub fn stats(&self) -> ProvingStats {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, what: impl FnOnce(&mut ProvingStats)) {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Reports whether there is a prover.
    pub fn proves(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).proves
    }

    /// Proves epochs in their order, until it is stopped.
    pub fn run(&self, server: &Server, prover: &dyn Prover, stop: &Stop) {
        self.note(|done| done.proves = true);
        let mut rest = MIN_REST;
        while !stop.is_asked() {
            let since = Instant::now();
            let pause = match next(server, prover, stop) {
                Ok(None) => PAUSE,
                Ok(Some((from, to))) => {
                    let seconds = since.elapsed().as_secs_f64();
                    tracing::info!(from, to, seconds, "epochs are proven");
                    self.note(|done| {
                        let proofs = done.proofs + 1;
                        *done = ProvingStats { proofs, seconds, error: None, ..*done };
                    });
                    rest = MIN_REST;
                    continue;
                }
                Err(ProveError::Stopped) => return,
                Err(ProveError::Failed(why)) => {
                    tracing::error!(%why, "epochs are not proven");
                    self.note(|done| {
                        done.failures += 1;
                        done.error = Some(why);
                    });
                    let now = rest;
                    // A proof that fails every time must not occupy the machine without a break.
                    rest = (2 * rest).min(MAX_REST);
                    now
                }
            };
            stop.wait(pause);
        }
    }
}

/// Proves all epochs that have no proof, and reports the epochs of each proof once it is attached.
///
/// # Errors
/// If it was stopped, or the first proof that failed.
pub fn prove_all(
    server: &Server,
    prover: &dyn Prover,
    stop: &Stop,
    mut attached: impl FnMut(u32, u32),
) -> Result<(), ProveError> {
    while !stop.is_asked() {
        match next(server, prover, stop)? {
            Some((from, to)) => attached(from, to),
            None => return Ok(()),
        }
    }
    Err(ProveError::Stopped)
}

/// Makes and attaches the next proof, if there are epochs without one.
fn next(
    server: &Server,
    prover: &dyn Prover,
    stop: &Stop,
) -> Result<Option<(u32, u32)>, ProveError> {
    let work = || -> Result<Option<(u32, Witness)>, Error> {
        let from = server.proven()?;
        let last = server.view()?.record().epoch;
        // A proof that was begun is continued, even if more epochs would fit by now: its work would
        // be lost.
        match prover.begun(from).filter(|to| (from + 1..=last).contains(to)) {
            Some(to) => Ok(Some((to, server.witness(from, to)?))),
            None => server.unproven(prover.room()),
        }
    };
    let (to, witness) = match work() {
        Ok(None) => return Ok(None),
        Ok(Some(work)) => work,
        // It opens its database again, or has stopped; the next look will tell.
        Err(Error::Recovering(_)) => return Ok(None),
        Err(Error::Stopped(_)) => return Err(ProveError::Stopped),
        Err(error) => return Err(ProveError::Failed(error.to_string())),
    };
    let from = witness.epoch;
    let proof = prover.prove(&witness, to, stop)?;
    if (proof.from, proof.to) != (from, to) {
        let why =
            format!("the proof is of epochs {} to {}, not {from} to {to}", proof.from, proof.to);
        return Err(ProveError::Failed(why));
    }
    let attached = server.attach(&proof, |proof, values| prover.verify(proof, values));
    attached.map_err(|error| ProveError::Failed(error.to_string()))?;
    // Only here: until the proof is on the disk, a restart continues the prover's run.
    prover.attached(from, to);
    Ok(Some((from, to)))
}
