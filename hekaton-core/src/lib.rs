//! Hekaton: a zero-knowledge prover for computations that are too large for one machine.
//!
//! A computation is written as a [partitioned circuit](circuit::Circuit): a few *types* of subcircuits, each one R1CS,
//! and any number of *instances* of them that share wires through a checked memory (a LogUp argument with static
//! addresses). Every instance is proven by itself with Mirage (Groth16 with a commitment), in two rounds; the proofs are
//! aggregated by TIPP and MIPP into one proof of logarithmic size.
//!
//! Three ways in:
//!
//! - **Prove:** [`setup`], [`prove`] on a [`LocalEngine`] or on a [`RankEngine`](distributed::RankEngine).
//! - **Verify:** [`VerifyingKey::from_bytes`] and [`verify`]. Without the default feature `prover` this is all that is
//!   built.
//! - **Write a circuit:** the crate [`circuit`], which is all that the circuit needs.
//!
//! @@EXAMPLE@@
//!
//! | module | what lives there |
//! |---|---|
//! | [`circuit`] | the circuit API: layouts, synthesis, the development check |
//! | [`verifier`] | transcript, verifying key, proof, verification |
//! | [`mirage`], [`aggregation`], [`keys`] | the proof system and its keys |
//! | [`protocol`] | coordinator, worker and their messages; engines |
//! | [`distributed`] | the same over ranks |
//! | [`events`], [`system`], [`files`] | what happens in a run, as values; the machine; files that appear whole or not at all |
//!
//! Key stores and run directories on disk are in `hekaton-storage`, estimates and memory budgets in `hekaton-plan`. The
//! specification is `docs/spec/` in the repository.

mod encoding;
pub mod verifier;

pub use encoding::DecodeError;
pub use hekaton_arith::{Backend, BackendError, Fr};
pub use hekaton_circuit as circuit;
pub use verifier::{
    Equation, Proof, ProofError, Trust, VerifyError, VerifyingKey, VerifyingKeyError, verify,
};

#[cfg(feature = "prover")]
pub mod aggregation;
#[cfg(feature = "prover")]
pub mod distributed;
#[cfg(feature = "prover")]
pub mod events;
#[cfg(feature = "prover")]
pub mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
#[cfg(feature = "prover")]
pub mod keys;
#[cfg(feature = "prover")]
pub mod mirage;
#[cfg(feature = "prover")]
mod pool;
#[cfg(feature = "prover")]
pub mod protocol;
#[cfg(feature = "prover")]
mod randomness;
#[cfg(feature = "prover")]
mod rank_error;
#[cfg(feature = "prover")]
pub mod system;

#[cfg(feature = "prover")]
pub use {
    keys::ProverKeys,
    pool::{LocalEngine, Pool},
    protocol::{
        Cancellation, KeySink, ProveError, ProveOptions, ProvenRun, SetupError, SetupOptions,
        WitnessCheck, prove, setup, setup_into,
    },
    randomness::Randomness,
};

#[cfg(all(test, feature = "prover"))]
mod tests;
