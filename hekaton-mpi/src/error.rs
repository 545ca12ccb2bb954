//! Errors of starting MPI and of distributing files.

use crate::launch::SingletonLaunch;
use std::path::PathBuf;

/// The reason that MPI cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// Not all ranks were started as one job.
    #[error(transparent)]
    Launch(#[from] SingletonLaunch),
    /// MPI cannot be started.
    #[error("cannot start MPI: {0}")]
    Start(&'static str),
    /// A file could not be copied or sent to a node.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// The first rank of some node could not prepare its files; that rank reports the reason.
    #[error("a node could not prepare the keys; its first rank reports why")]
    Leader,
}
