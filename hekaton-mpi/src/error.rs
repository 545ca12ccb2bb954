//! Why MPI can't be used.

use crate::launch::SingletonLaunch;
use std::path::PathBuf;

/// Why MPI can't be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MpiError {
    /// Not all ranks were started as one job.
    #[error(transparent)]
    Launch(#[from] SingletonLaunch),
    /// MPI does not start.
    #[error("MPI does not start: {0}")]
    Start(&'static str),
    /// Files could not be given to all nodes.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The first rank of some node could not prepare its files; it says why itself.
    #[error("a node could not prepare the keys; its first rank says why")]
    Leader,
}
