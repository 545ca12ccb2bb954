//! The protocol: coordinator and worker as one type per state, their messages, and the engines that
//! run the rounds (spec: distributed#rounds, distributed#states).
//!
//! This module is for engines, tools and benchmarks. A program that proves and verifies needs only
//! the items that the crate root re-exports.

pub mod accelerator;
pub mod answer;
mod attempt;
pub mod coordinator;
mod coordinator_error;
mod counting;
mod direct;
pub mod engine;
mod error;
pub(crate) mod executed;
mod family;
#[cfg(any(test, feature = "testing"))]
pub mod forgery;
pub mod journal;
mod key_sink;
pub mod messages;
mod options;
mod prove;
pub(crate) mod session;
mod setup;
pub mod worker;

pub use crate::mirage::WitnessCheck;
pub use direct::DirectRun;
pub use error::ProveError;
pub use family::{DeriveError, derive, follows_from, setup_family};
#[cfg(any(test, feature = "testing"))]
pub use family::{Trapdoors, setup_family_from};
pub use key_sink::KeySink;
pub use options::{Cancellation, ProveOptions};
pub use prove::{ProvenRun, prove, prove_prepared};
pub use setup::{SetupError, SetupOptions, setup, setup_into, setup_prepared};

#[cfg(test)]
pub(crate) use setup::{Secrets, setup_wiring};
#[cfg(test)]
pub(crate) use {family::derive_wiring, prove::prove_with};
