//! The verifier, which can be built without the prover: the transcript, the verifying key, the
//! proof's encoding, and [`verify()`] (spec: verifier#equations).
//!
//! Prover and verifier draw their challenges from the same [`FiatShamir`](transcript::FiatShamir),
//! so neither can draw a challenge before it has absorbed everything that the challenge must bind.

pub mod direct;
pub(crate) mod polynomials;
pub(crate) mod proof;
pub(crate) mod public_values;
pub(crate) mod transcript;
pub(crate) mod verify;
pub(crate) mod verifying_key;

pub use direct::{
    DirectKey, DirectKeyError, DirectProof, verify_direct, verify_direct_with_test_keys,
};
pub use proof::{Proof, ProofError, ProofKind};
pub use public_values::{NamedValue, PublicValuesError, public_names, values_to_json};
pub use verify::{Equation, VerifyError, verify, verify_with_test_keys};
pub use verifying_key::{
    Commitments, FixedElements, KeyType, Trust, VerifyingKey, VerifyingKeyError,
};
