//! Distributed proving: the same coordinator and the same workers as on one machine, with messages between them.
//!
//! Rank 0 has the [`Coordinator`](crate::coordinator::Coordinator) and runs [`prove`](crate::prove()) over a
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
mod launch;
mod schedule;
mod serve;
mod wire;

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

pub use endpoint::{Endpoint, Incoming};
pub use engine::RankEngine;
pub use frame::{HEADER, VERSION, message_length};
pub use hello::Hello;
pub use launch::{Launch, Strangers, default_provers};
pub use schedule::Schedule;
pub use serve::{Serve, serve};

/// Why the ranks can't go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankError {
    /// A rank is gone or silent. What was answered before is kept in the run directory.
    #[error("rank {rank} is lost: {why}")]
    Lost {
        /// The rank.
        rank: usize,
        /// What makes it seem so.
        why: String,
    },
    /// A rank can't do a job.
    #[error("rank {rank} on {host}: {message}")]
    Failed {
        /// The rank.
        rank: usize,
        /// Its machine.
        host: String,
        /// What it said.
        message: String,
    },
    /// A rank sent something wrong.
    #[error("rank {rank} sent a wrong message: {why}; its machine is broken, or it runs another program")]
    Message {
        /// The rank.
        rank: usize,
        /// What is wrong with it.
        why: String,
    },
    /// Ranks do not fit together.
    #[error("the ranks do not fit together: {}", .differences.join("; "))]
    Handshake {
        /// Which rank differs in what.
        differences: Vec<String>,
    },
}
