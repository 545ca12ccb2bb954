//! Mirage for one subcircuit: Groth16 with a commitment to some of its wires (spec: mirage#setup,
//! mirage#prove, mirage#verify).
//!
//! Two changes to the paper's prover: there is no query of B in G1 (one additive and one
//! multiplicative randomizer instead of two additive ones), and the quotient is taken on a coset
//! where the vanishing polynomial is -2, so four Fourier transforms are enough.

mod key;
mod prover;
mod queries;
mod setup;
mod verifier;

pub use hekaton_circuit::prover::{TypeError, check_type_with};
pub use key::{Elements, ProvingKey, SparseQuery};
pub use prover::{MirageProof, Sums, Unsatisfied, WitnessCheck};
pub use queries::Queries;
pub use setup::wipe_stacks;
pub use verifier::{MirageInstance, MirageVerifier};

pub(crate) use key::BusCounts;
#[cfg(test)]
pub(crate) use prover::prove;
pub(crate) use prover::{Blinding, ProverError, commit, finish, sum_of_committed, sums};
pub(crate) use setup::{Bases, SharedSecrets, TypeSecrets, check_secrets, setup_type};
