//! Distributed proving: the same coordinator and the same workers as on one machine, with messages between them.
//!
//! Rank 0 has the [`Coordinator`](crate::protocol::Coordinator) and runs [`prove`](crate::prove()) over a
//! [`RankEngine`]; every other rank, and rank 0 too where it also proves, runs [`serve`]. Both see the network through an
//! [`Endpoint`]: MPI gives one (crate `hekaton-mpi`), and [`Endpoint::network`] makes one of threads.
//!
//! What it guarantees: the proof does not depend on the number of ranks or on who did what. Every message is checked
//! before use (length, digest, encodings, curve and subgroup of every point that a rank sends), and an error names the
//! rank. A rank that is lost ends the run with [`RankError::Lost`]; what was answered before is in the run directory.
//!
//! The run's secret seed and private inputs travel to the workers as they are: the network must be one that is trusted.

mod blocks;
mod endpoint;
mod engine;
mod frame;
mod hello;
mod message;
mod ranks;
mod scheduling;
mod serve;

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

pub use crate::rank_error::RankError;
pub use endpoint::Endpoint;
pub use engine::RankEngine;
pub use hello::Hello;
pub use scheduling::Scheduling;
pub use serve::{Serve, serve};

/// What a transport needs: how long a message is, and what comes in.
pub mod wire {
    pub use super::endpoint::Incoming;
    pub use super::frame::{HEADER, VERSION, message_length};
}
