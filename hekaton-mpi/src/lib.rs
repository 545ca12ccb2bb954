//! MPI as the network between ranks (MPI standard 4.0, chapters 3 point-to-point, 7 groups and
//! communicators, 11 process initialization).
//!
//! `Mpi::run` calls a rank's code with its `Endpoint` on a thread of its own, and moves messages on the
//! thread that started MPI. That needs threading level
//! *funneled*, which every MPI supports. Messages may be of any length: they are split, because MPI
//! counts in C ints. The thread sleeps when there is nothing to move, so it takes no core from the
//! provers.
//!
//! A rank without a sign of life for a while is lost. Every rank sends signs of life whatever its
//! provers do, because this thread does nothing else. Errors are results; nothing here panics
//! because of another rank's behavior.
//!
//! The bindings are the feature `mpi`, which needs an MPI installation and libclang to build.
//! Without it there is only [`launch`], which detects how this process was started from its environment.

pub mod launch;

#[cfg(feature = "mpi")]
mod error;
#[cfg(feature = "mpi")]
mod files;
#[cfg(feature = "mpi")]
mod process;
#[cfg(feature = "mpi")]
mod transport;

#[cfg(feature = "mpi")]
pub use {
    error::MpiError,
    process::Mpi,
    transport::{Abort, Watch},
};
