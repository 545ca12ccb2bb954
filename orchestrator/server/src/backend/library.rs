//! Provers that are Rust code in this process.

use super::{Backend, Outcome, Output, Rejected, Work};
use crate::dispatch::Progress;
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
        // A caller that drops the future no longer wants the output, so the prover is cancelled.
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
        let path = output.to_owned();
        let run = tokio::task::spawn_blocking(move || {
            let unverified = |error: std::io::Error| Rejected::Unverified(error.to_string());
            let inputs = read(&inputs).map_err(unverified)?;
            let output = std::fs::read(path).map_err(unverified)?;
            prover.verify(&inputs, &output).map_err(Rejected::Wrong)
        });
        run.await.unwrap_or_else(|error| Err(Rejected::Unverified(error.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Blobs;
    use crate::backend::Workshop;
    use crate::clock::Clock;
    use crate::dispatch::{Attempt, Claimed, Report, Runner};
    use crate::tests::records::task;
    use std::collections::BTreeMap;

    /// Doubles its input, unless the input says otherwise.
    struct Doubler;

    impl Prover for Doubler {
        fn prove(
            &self,
            inputs: &[Vec<u8>],
            cancel: &CancellationToken,
            progress: &Progress,
        ) -> Result<Vec<u8>, Failure> {
            progress.report(0.5);
            match &inputs[0][..] {
                b"fail" => Err(Failure::Failed("no luck".into())),
                b"no witness" => Err(Failure::Impossible("no witness".into())),
                b"panic" => panic!("a bug"),
                b"wrong" => Ok(b"something else".to_vec()),
                b"wait" => {
                    while !cancel.is_cancelled() {
                        std::thread::sleep(std::time::Duration::from_millis(1));
                    }
                    Err(Failure::Cancelled)
                }
                input => Ok([input, input].concat()),
            }
        }

        fn verify(&self, inputs: &[Vec<u8>], output: &[u8]) -> Result<(), String> {
            match output == [&inputs[0][..], &inputs[0][..]].concat() {
                true => Ok(()),
                false => Err("it is not twice the input".into()),
            }
        }
    }

    #[derive(Debug)]
    struct Nowhere;

    impl Report for Nowhere {
        fn report(&self, part: f32) {
            assert!((0.0..=1.0).contains(&part));
        }
    }

    #[tokio::test]
    async fn a_prover_in_rust_is_run_and_what_it_makes_verified() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(folder.path()).unwrap();
        let (key, work) = task("t", "c", 1, 0);
        let backend: Arc<dyn Backend> = Arc::new(Library::new(Doubler));
        let workshop = Workshop {
            backends: BTreeMap::from([(work.backend.clone(), backend)]),
            blobs: blobs.clone(),
            spool: folder.path().join("spool"),
            clock: Clock::system(),
        };
        let run = async |input: &[u8], cancel: CancellationToken| {
            let mut task = work.clone();
            task.inputs = vec![blobs.put(input).unwrap()];
            task.limits.stall_seconds = 60;
            let claimed = Claimed { key, task: &task, epoch: 1 };
            workshop.run(&claimed, &cancel, &Progress(Arc::new(Nowhere))).await
        };
        let never = CancellationToken::new;
        let Attempt::Done(output) = run(b"ab", never()).await else { panic!() };
        assert_eq!(blobs.get(&output, 9).unwrap(), b"abab");
        assert_eq!(run(b"fail", never()).await, Attempt::Failed("no luck".into()));
        assert_eq!(run(b"no witness", never()).await, Attempt::Impossible("no witness".into()));
        assert!(
            matches!(run(b"panic", never()).await, Attempt::Failed(why) if why.contains("panicked"))
        );
        assert!(
            matches!(run(b"wrong", never()).await, Attempt::Wrong(why) if why.contains("twice"))
        );
        let cancel = never();
        cancel.cancel();
        assert!(matches!(run(b"wait", cancel).await, Attempt::Again(_)));
        // It needs no folder.
        assert!(!folder.path().join("spool").exists());
    }
}
