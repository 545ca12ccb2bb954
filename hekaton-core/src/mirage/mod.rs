//! Mirage for one subcircuit: Groth16 with a commitment to some of its wires (PROTOCOL, section 2).
//!
//! Two changes to the paper's prover: the query of B in G1 is gone (one additive and one multiplicative randomiser
//! instead of two additive ones), and the quotient is taken on a coset where the vanishing polynomial is -2, so four
//! Fourier transforms are enough.

mod asserts;
mod key;
mod matrix;
mod prover;
mod setup;
mod verifier;

pub use asserts::TypeError;
pub use key::ProvingKey;
pub use prover::{MirageProof, Unsatisfied};
pub use verifier::{MirageVerifier, Statement};

#[cfg(test)]
pub(crate) use asserts::{Partition, check_rank};
pub(crate) use asserts::{check_secrets, check_type};
pub(crate) use matrix::{CoefficientTable, Matrix, OwnedMatrix};
pub(crate) use prover::{Blinding, ProverError, commit, prove};
pub(crate) use setup::{Bases, SharedSecrets, TypeSecrets, setup_type};
