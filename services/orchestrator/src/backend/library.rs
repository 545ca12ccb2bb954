//! Provers that are Rust code in this process.

use super::{Backend, Outcome, Output, Rejected, Work};
use crate::dispatcher::Progress;
use async_trait::async_trait;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Proves in this process. It runs on a thread of its own, so it may take its time.
pub trait Prover: Send + Sync + 'static {
    /// Makes the output for some inputs.
    ///
    /// # Errors
    /// Why there is none, and whether another attempt may do better.
    fn prove(
        &self,
        inputs: &[Vec<u8>],
        cancel: &CancellationToken,
        progress: &Progress,
    ) -> Result<Vec<u8>, Failure>;

    /// Verifies an output.
    ///
    /// # Errors
    /// Why it is wrong.
    fn verify(&self, inputs: &[Vec<u8>], output: &[u8]) -> Result<(), String>;
}

/// Why a prover has no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Another attempt may do better.
    Failed(String),
    /// No attempt can succeed.
    Impossible(String),
    /// It was cancelled.
    Cancelled,
}

/// A back-end for a prover.
#[derive(Clone)]
pub struct Library(Arc<dyn Prover>);

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Library")
    }
}

impl Library {
    /// Runs tasks with a prover.
    pub fn new(prover: impl Prover) -> Self {
        Self(Arc::new(prover))
    }
}

fn read(paths: &[impl AsRef<Path>]) -> std::io::Result<Vec<Vec<u8>>> {
    paths.iter().map(std::fs::read).collect()
}

#[async_trait]
impl Backend for Library {
    fn uses_folder(&self) -> bool {
        false
    }

    async fn run(
        &self,
        work: &Work<'_>,
        cancel: &CancellationToken,
        progress: &Progress,
    ) -> Outcome {
        let (prover, cancel, progress) = (Arc::clone(&self.0), cancel.clone(), progress.clone());
        let inputs = work.inputs.clone();
        // Whoever drops this waits for nothing, so the prover is told.
        let guard = cancel.clone().drop_guard();
        let run = tokio::task::spawn_blocking(move || {
            let inputs = match read(&inputs) {
                Ok(inputs) => inputs,
                Err(error) => return Outcome::Failed(format!("its inputs: {error}")),
            };
            match prover.prove(&inputs, &cancel, &progress) {
                Ok(bytes) => Outcome::Done(Output::Bytes(bytes)),
                Err(Failure::Failed(why)) => Outcome::Failed(why),
                Err(Failure::Impossible(why)) => Outcome::Impossible(why),
                Err(Failure::Cancelled) => Outcome::Again("it was cancelled".into()),
            }
        });
        let ended = run.await;
        drop(guard);
        ended.unwrap_or_else(|error| Outcome::Failed(format!("the prover panicked: {error}")))
    }

    async fn verify(&self, work: &Work<'_>, output: &Path) -> Result<(), Rejected> {
        let (prover, inputs) = (Arc::clone(&self.0), work.inputs.clone());
        let output = output.to_owned();
        let run = tokio::task::spawn_blocking(move || {
            let unverified = |error: std::io::Error| Rejected::Unverified(error.to_string());
            let inputs = read(&inputs).map_err(unverified)?;
            let output = std::fs::read(output).map_err(unverified)?;
            prover.verify(&inputs, &output).map_err(Rejected::Wrong)
        });
        run.await.unwrap_or_else(|error| Err(Rejected::Unverified(error.to_string())))
    }
}
