//! Back-ends: the programs and libraries that run tasks.

mod command;
mod hekaton;
mod library;
mod process;
mod slurm;
mod workshop;

pub use command::{Command, Exits};
pub use hekaton::Hekaton;
pub use library::{Failure, Library, Prover};
pub use process::Helper;
pub use slurm::Slurm;
pub(crate) use workshop::Workshop;

use crate::dispatch::Progress;
use crate::record::Task;
use async_trait::async_trait;
use std::path::{Path, PathBuf};
use tokio_util::sync::CancellationToken;

/// A task with its files.
#[derive(Debug)]
pub struct Work<'a> {
    /// The task.
    pub task: &'a Task,
    /// The revision of the claim: no other attempt has the same.
    pub epoch: u64,
    /// Its inputs. They must not be changed.
    pub inputs: Vec<PathBuf>,
    /// The task's own folder, which outlives the attempt: files kept there are available to the next attempt, on any machine that shares
    /// the spool.
    pub folder: PathBuf,
}

/// The end of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// This is the output.
    Done(Output),
    /// It failed; another attempt may do better.
    Failed(String),
    /// No attempt can succeed.
    Impossible(String),
    /// It was abandoned through no fault of the task.
    Again(String),
}

/// The output of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A file, which stays where it is until the task is settled.
    File(PathBuf),
    /// Bytes in memory.
    Bytes(Vec<u8>),
}

/// Runs tasks of one kind.
#[async_trait]
pub trait Backend: std::fmt::Debug + Send + Sync + 'static {
    /// Reports whether attempts use [`Work::folder`]. Otherwise, it is not made.
    fn uses_folder(&self) -> bool {
        true
    }

    /// Reports whether attempts run on other machines, where they survive a crash of this one.
    fn is_remote(&self) -> bool {
        false
    }

    /// Makes one attempt. When the future is dropped, all processes of the attempt must be gone.
    async fn run(
        &self,
        work: &Work<'_>,
        cancel: &CancellationToken,
        progress: &Progress,
    ) -> Outcome;

    /// Ends whatever attempts of a task have left running on other machines, given the task's folder. Called when the task is no longer
    /// wanted, or the attempt took too long.
    ///
    /// Returns whether nothing is left. Otherwise, it is tried again later.
    async fn abandon(&self, _: &Path) -> bool {
        true
    }

    /// Verifies the output of an attempt. No output counts before it is verified.
    ///
    /// # Errors
    /// Why the output is wrong, or cannot be verified.
    async fn verify(&self, work: &Work<'_>, output: &Path) -> Result<(), Rejected>;
}

/// Why an output does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// It is wrong: the back-end is at fault.
    #[error("the output is wrong: {0}")]
    Wrong(String),
    /// It could not be verified.
    #[error("the output could not be verified: {0}")]
    Unverified(String),
}
