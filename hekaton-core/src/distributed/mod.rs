//! Distributed proving: the same coordinator and workers as on one machine, with messages between
//! them.
//!
//! Rank 0 has the [`Coordinator`](crate::protocol::coordinator::Coordinator) and runs
//! [`prove`](crate::prove()) over a [`RankEngine`]; every other rank runs [`serve`], and so does
//! rank 0 if it also proves. Both access the network through an [`Endpoint`]: the crate
//! `hekaton-mpi` creates one for MPI, and [`Endpoint::network`] creates a network of threads.
//!
//! Guarantees: the proof depends neither on the number of ranks nor on which rank did what
//! (spec: distributed#independence). Every message is checked before use: length, digest,
//! encodings, and curve and subgroup of every point that a rank sends (spec: distributed#messages).
//! Errors name the rank. A lost rank ends the run with [`RankError::Lost`]; answers received before
//! are in the run directory (spec: distributed#lost).
//!
//! The secrets of subcircuits and private inputs are sent to the workers unencrypted: the network
//! must be trusted (spec: distributed#trust).

mod blocks;
pub mod costs;
mod encoding;
mod endpoint;
mod engine;
mod frame;
mod groups;
mod hello;
mod job_queue;
mod jobs;
mod leaders;
mod message;
mod ranks;
mod round;
mod scheduling;
mod serve;
mod slices;

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
#[cfg(test)]
mod tests;

pub use crate::rank_error::RankError;
pub use blocks::RankBlocks;
pub use endpoint::Endpoint;
pub use engine::{RankEngine, RootRole};
pub use hello::Hello;
pub use scheduling::Scheduling;
pub use serve::{Serve, serve};
pub use slices::Executes;

/// The items that a transport needs: the length of a message, and the type of arriving messages.
pub mod wire {
    pub use super::endpoint::Incoming;
    pub use super::frame::{HEADER, VERSION, message_length};
}
