//! MPI as the network between ranks (MPI standard 4.0, chapters 3 point-to-point, 7 groups and communicators, 11 process
//! initialisation).
//!
//! `Mpi::run` gives a rank its [`Endpoint`](hekaton_core::distributed::Endpoint) on a thread of its own, and moves messages on the thread that started MPI:
//! threading level *funneled*, all that any MPI has. Messages may be of any length: they are split, because MPI counts in C
//! ints. Who has nothing to move sleeps, so a rank that shares its cores burns none.
//!
//! A rank that says nothing for a while is lost: every rank gives signs of life, whatever its provers do, because this
//! thread does nothing else. Errors are results; nothing here panics because of what another rank did.
//!
//! The bindings are the feature `mpi`, which needs an MPI installation and libclang to build. Without it there is only
//! [`launch`]: how this process was started, as far as its environment tells.

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
