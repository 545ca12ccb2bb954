//! What can be wrong with a run directory.

use hekaton_core::protocol::journal::{JournalError, JournalErrorKind};
use std::path::{Path, PathBuf};

/// What is wrong with a run directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file can't be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A directory with other things in it.
    #[error("{path} is no run directory and not empty (it has '{found}'): give a new or empty one")]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// One of the things in it.
        found: String,
    },
    /// Something else than a directory.
    #[error("{path} is a file: a run directory is wanted")]
    File {
        /// The path.
        path: PathBuf,
    },
    /// A run began there already.
    #[error("{path} already holds a run: resume it, or use another directory")]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The run in the directory is another one.
    #[error("the run in {path} is another one: {}; give what it was begun with, or another directory", .differences.join("; "))]
    Different {
        /// The directory.
        path: PathBuf,
        /// What differs, one sentence each.
        differences: Vec<String>,
    },
    /// Finished, with another result.
    #[error(
        "the run in {path} is finished, and its proof does not hold for these public values: the input is another one, or the proof was damaged; begin a new run in another directory"
    )]
    Finished {
        /// The directory.
        path: PathBuf,
    },
    /// Another version.
    #[error(
        "{path} has format version {found}, this program reads version {expected}: go on with the program that began the run"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The version of this program.
        expected: u32,
    },
    /// A file that can't be mended.
    #[error("{path} is damaged ({why}): begin a new run in another directory")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// An intact log of other work.
    #[error(
        "{path} belongs to another execution: the circuit does not execute this input as it did when the run began, or another version of it does; begin a new run in another directory"
    )]
    OtherLog {
        /// The file.
        path: PathBuf,
    },
    /// Another process works in the directory.
    #[error("{path}: the run is held by {holder}, which is alive: wait for it, or stop it")]
    Held {
        /// The lease.
        path: PathBuf,
        /// Who holds it.
        holder: String,
    },
    /// Another process took the lease over.
    #[error(
        "{path}: the run was taken over by {holder}; this process stops and writes nothing more"
    )]
    Lost {
        /// The lease.
        path: PathBuf,
        /// Who holds it now.
        holder: String,
    },
}

/// An I/O error of a file or directory.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RunError + '_ {
    move |source| RunError::Io { path: path.to_owned(), source }
}

impl From<RunError> for JournalError {
    fn from(error: RunError) -> Self {
        let kind = match &error {
            RunError::Io { .. } => JournalErrorKind::Io,
            RunError::OtherLog { .. } => JournalErrorKind::OtherExecution,
            RunError::Held { .. } | RunError::Lost { .. } => JournalErrorKind::Held,
            _ => JournalErrorKind::Unusable,
        };
        Self::new(kind, error)
    }
}
