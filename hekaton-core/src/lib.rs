//! Hekaton: a zero-knowledge prover for computations that are too large for one machine.
//!
//! A computation is written as a [partitioned circuit](circuit::Circuit): a few *types* of subcircuits, each one R1CS,
//! and any number of *instances* of them that share wires through a checked global memory. Every instance is proven by
//! itself with Mirage (Groth16 with a commitment), in two rounds; the proofs are aggregated into one proof of
//! logarithmic size. `docs/protocol.md` has the equations, `docs/soundness.md` the argument, `docs/library.md` shows
//! how to write a circuit.
//!
//! | module | what lives there |
//! |---|---|
//! | [`circuit`] | the circuit API, layouts and their checks, the development mode |
//! | [`mirage`] | setup, proving and verification of one subcircuit |
//! | [`aggregation`] | the aggregate proof: prover and verifier |
//! | [`coordinator`], [`worker`], [`messages`], [`engine`] | the two rounds as types of their states, and who runs them |
//! | [`keys`] | key files and the key directory |
//! | [`estimate`], [`budget`] | what a run will take, and staying within a limit of memory |
//! | [`run`], [`events`] | run directories, from which an interrupted run goes on; what happens in a run, as values |
//!
//! Without the default feature `prover` only the verifier is built: [`VerifyingKey::from_bytes`] and [`verify`].

pub mod aggregation;
#[cfg(any(doc, all(doctest, feature = "prover")))]
pub mod docs;
mod encoding;
mod transcript;
mod verifying_key;

pub use aggregation::{Proof, VerifyError, verify};
pub use encoding::DecodeError;
pub use hekaton_arith::{Backend, BackendError, Fr};
pub use transcript::MemoryChallenges;
pub use verifying_key::{PublicWire, Trust, VerifyingKey, VerifyingKeyError};

#[cfg(feature = "prover")]
pub mod budget;
#[cfg(feature = "prover")]
pub mod circuit;
#[cfg(feature = "prover")]
pub mod coordinator;
#[cfg(feature = "prover")]
pub mod engine;
#[cfg(feature = "prover")]
pub mod estimate;
#[cfg(feature = "prover")]
pub mod events;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "prover")]
pub mod keys;
#[cfg(feature = "prover")]
pub mod messages;
#[cfg(feature = "prover")]
pub mod mirage;
#[cfg(feature = "prover")]
mod options;
#[cfg(feature = "prover")]
mod prove;
#[cfg(feature = "prover")]
mod randomness;
#[cfg(feature = "prover")]
pub mod ranks;
#[cfg(feature = "prover")]
pub mod run;
#[cfg(feature = "prover")]
mod setup;
#[cfg(feature = "prover")]
pub mod worker;

#[cfg(feature = "prover")]
pub use engine::LocalEngine;
#[cfg(feature = "prover")]
pub use keys::{KeyDirectory, MemoryKeys, ProverKeys};
#[cfg(feature = "prover")]
pub use options::{Cancellation, ProveOptions};
#[cfg(feature = "prover")]
pub use prove::{ProveError, Run, prove};
#[cfg(feature = "prover")]
pub use randomness::Randomness;
#[cfg(feature = "prover")]
pub use run::{RunDirectory, RunDirectoryOptions, RunIdentity};
#[cfg(feature = "prover")]
pub use setup::{SetupError, SetupOptions, setup};

#[cfg(all(test, feature = "prover"))]
mod adversarial;
