//! The aggregate proof: one proof for all subcircuits (PROTOCOL, sections 3 to 5; paper, section on aggregation).
//!
//! `prover.rs` stands beside `verifier.rs`; both draw their challenges from the same schedule.

mod polynomials;
mod proof;
mod verifier;

#[cfg(feature = "prover")]
pub(crate) mod block;
#[cfg(feature = "prover")]
pub(crate) mod blocks;
#[cfg(feature = "prover")]
pub(crate) mod prover;

pub use proof::{Proof, ProofError};
pub use verifier::{Equation, VerifyError, verify};

#[cfg(feature = "fuzzing")]
pub(crate) use proof::ranges as proof_fields;
#[cfg(all(test, feature = "prover"))]
pub(crate) use proof::{Field, fields};
#[cfg(feature = "prover")]
pub(crate) use verifier::public_sum;
#[cfg(all(test, feature = "prover"))]
pub(crate) use verifier::{examine, verify_with};
