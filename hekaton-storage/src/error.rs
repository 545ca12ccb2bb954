//! Errors of run directories.

use hekaton_core::protocol::journal::{JournalError, JournalErrorKind};
use std::path::{Path, PathBuf};

/// The reason that a run directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The directory holds other files.
    #[error(
        "{path} is neither empty nor a run directory (it contains '{found}'): use a new or empty \
         directory"
    )]
    NotEmpty {
        /// The directory.
        path: PathBuf,
        /// The name of one of them.
        found: String,
    },
    /// The path is not a directory.
    #[error("{path} is a file, not a run directory")]
    File {
        /// The path.
        path: PathBuf,
    },
    /// A run was already started in the directory.
    #[error("{path} already holds a run")]
    Exists {
        /// The directory.
        path: PathBuf,
    },
    /// The directory holds a run with other keys or another input.
    #[error(
        "{path} holds a different run: {}; resume it with the keys and the input with which it was \
         started, or use another directory", .differences.join("; ")
    )]
    Different {
        /// The directory.
        path: PathBuf,
        /// The differences, one clause each.
        differences: Vec<String>,
    },
    /// The run is finished, and its proof is not valid for this input.
    #[error(
        "the run in {path} is finished, and its proof does not hold for these public values: the \
         input differs or the proof is damaged; start a new run in another directory"
    )]
    Finished {
        /// The directory.
        path: PathBuf,
    },
    /// A file has another format version.
    #[error(
        "{path} has format version {found}, but this program reads version {expected}: resume with \
         the program that started the run"
    )]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The version that this program reads.
        expected: u32,
    },
    /// A file is damaged beyond repair.
    #[error("{path} is damaged ({why}): start a new run in another directory")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage that was found.
        why: String,
    },
    /// An intact log belongs to another execution.
    #[error(
        "{path} belongs to another execution: the circuit or its version no longer executes this \
         input as it did when the run started; start a new run in another directory"
    )]
    OtherLog {
        /// The file.
        path: PathBuf,
    },
    /// Another process is working in the directory.
    #[error("{path}: the run is held by {holder}, which is alive: wait for it, or stop it")]
    Held {
        /// The lease.
        path: PathBuf,
        /// The holder.
        holder: String,
    },
    /// Another process took the lease over.
    #[error(
        "{path}: the run was taken over by {holder}; this process stops and writes nothing more"
    )]
    Lost {
        /// The lease.
        path: PathBuf,
        /// The holder now.
        holder: String,
    },
}

/// Adds the path to an I/O error.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> RunError + '_ {
    move |error| RunError::Io { path: path.to_owned(), error }
}

impl From<RunError> for JournalError {
    fn from(error: RunError) -> Self {
        // The command line chooses exit codes by these: a run that is held can be tried again later.
        let kind = match &error {
            RunError::Io { .. } => JournalErrorKind::Io,
            RunError::OtherLog { .. } => JournalErrorKind::OtherExecution,
            RunError::Held { .. } | RunError::Lost { .. } => JournalErrorKind::Held,
            _ => JournalErrorKind::Unusable,
        };
        Self::new(kind, error)
    }
}
