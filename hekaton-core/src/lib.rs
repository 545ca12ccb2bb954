//! Hekaton: a zero-knowledge prover for computations that are too large for one machine.
//!
//! A computation is written as a [partitioned circuit](circuit::Circuit): a few *types* of
//! subcircuits, each one R1CS, and any number of *instances* of them that share wires through a
//! checked memory (a LogUp argument with static addresses). Every instance is proven separately
//! with Mirage (Groth16 with a commitment) in two rounds, and the proofs are aggregated by TIPP and
//! MIPP (inner pairing products) into one proof of logarithmic size.
//!
//! Three ways in:
//!
//! - **Prove:** [`setup`], [`prove`] on a [`LocalEngine`] or on a
//!   [`RankEngine`](distributed::RankEngine).
//! - **Verify:** [`VerifyingKey::from_bytes`] and [`verify()`]. Without the default feature `prover`,
//!   nothing else is built.
//! - **Write a circuit:** the crate [`circuit`], the only one that a circuit depends on.
//!   `docs/guide/library.md` in the repository builds one step by step.
//!
//! ```
//! use ark_r1cs_std::eq::EqGadget;
//! use ark_relations::gr1cs::SynthesisError;
//! use hekaton_core::circuit::{
//!     Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireId, WireValues,
//! };
//! use hekaton_core::{Fr, LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};
//!
//! /// y = x^4, in two subcircuits that square the value they read.
//! struct FourthPower;
//!
//! impl Circuit for FourthPower {
//!     type Input = Fr;
//!     type Plan = [WireId; 3];
//!     type Trace = ();
//!     type Private = ();
//!
//!     fn layout(&self, layout: &mut LayoutBuilder) -> Result<[WireId; 3], LayoutError> {
//!         let square = layout.subcircuit_type("square", 2);
//!         let (x, y) = (layout.public_input("x", 0), layout.public_output("y", 0));
//!         let wires = [x, layout.wire("x^2", 0), y];
//!         for pair in wires.windows(2) {
//!             let instance = layout.instance(square);
//!             layout.read(instance, 0, pair[0]);
//!             layout.write(instance, 1, pair[1]);
//!         }
//!         Ok(wires)
//!     }
//!
//!     fn execute(
//!         &self,
//!         wires: &[WireId; 3],
//!         x: &Fr,
//!         values: &mut WireValues,
//!     ) -> Result<(), CircuitError> {
//!         let mut x = *x;
//!         for wire in wires {
//!             values.set(*wire, x);
//!             x *= x;
//!         }
//!         Ok(())
//!     }
//!
//!     fn private_input(
//!         &self,
//!         _: &[WireId; 3],
//!         _: &Fr,
//!         _: &(),
//!         _: InstanceId,
//!     ) -> Result<(), CircuitError> {
//!         Ok(())
//!     }
//!
//!     fn synthesize(
//!         &self,
//!         _: &[WireId; 3],
//!         subcircuit: &Subcircuit,
//!         _: Option<&()>,
//!     ) -> Result<(), SynthesisError> {
//!         let x = subcircuit.slot(0)?;
//!         (x * x).enforce_equal(subcircuit.slot(1)?)
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Once: anyone who runs the setup could forge proofs under its keys.
//!
//! // The prover: one single-threaded prover per core of this machine.
//! let engine = LocalEngine::new(None)?;
//! let keys = setup(&FourthPower, &engine, &SetupOptions::new("fourth power"))?;
//! let run = prove(&FourthPower, &Fr::from(3u64), &keys, &engine, &ProveOptions::new())?;
//!
//! // The verifier: the verifying key, the public values and the proof.
//! verify(&keys.verifying, &[Fr::from(3u64), Fr::from(81u64)], run.proof.as_bytes())?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | contents |
//! |---|---|
//! | [`circuit`] | the circuit API: layouts, synthesis, the development check |
//! | [`verifier`] | transcript, verifying key, proof, verification |
//! | [`mirage`], [`aggregation`], [`keys`] | the proof system and its keys |
//! | [`protocol`] | coordinator, worker and their messages; engines |
//! | [`distributed`] | the same protocol over ranks |
//! | [`events`], [`system`] | what happens in a run, as values; the machine |
//!
//! Key stores and run directories on disk are in `hekaton-storage`, estimates and memory budgets in
//! `hekaton-plan`. The specification is `docs/spec/` in the repository, with the security argument
//! in `docs/spec/soundness.md`.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "tests use small numbers"))]

#[cfg(all(feature = "prover", not(target_pointer_width = "64")))]
compile_error!(
    "the prover needs 64-bit addresses; with default-features = false the verifier is left"
);

pub mod encoding;
pub mod verifier;

pub use encoding::DecodeError;
pub use hekaton_arith::{Backend, BackendError, Fr};
pub use hekaton_circuit as circuit;
pub use verifier::{
    DirectKey, DirectKeyError, DirectProof, Equation, KeyType, NamedValue, Proof, ProofError,
    ProofKind, PublicValuesError, Trust, VerifyError, VerifyingKey, VerifyingKeyError, verify,
    verify_direct, verify_direct_with_test_keys, verify_with_test_keys,
};

#[cfg(feature = "prover")]
pub mod aggregation;
#[cfg(feature = "prover")]
pub mod distributed;
#[cfg(feature = "prover")]
pub mod events;
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
    keys::{FamilyKey, ProverKeys},
    pool::LocalEngine,
    protocol::{
        Cancellation, DeriveError, DirectRun, KeySink, ProveError, ProveOptions, ProvenRun,
        SetupError, SetupOptions, WitnessCheck, derive, prove, prove_prepared, setup, setup_family,
        setup_into, setup_prepared,
    },
    randomness::Randomness,
};

#[cfg(all(test, feature = "prover"))]
mod tests;
