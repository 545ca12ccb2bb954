//! Direct proofs: the proofs of all subcircuits with their commitments, checked by one product of
//! pairings and no aggregation (spec: direct#checks). A contract on the EVM verifies the same statement from
//! the same bytes, expanded.

pub mod encoding;
pub(crate) mod key;
pub(crate) mod proof;
pub(crate) mod transcript;
pub(crate) mod verify;

pub use key::{DirectInstance, DirectKey, DirectKeyError, DirectType};
pub use proof::DirectProof;
pub use verify::{verify_direct, verify_direct_with_test_keys};

/// The application's part of the statement of a direct proof; zero where it has none
/// (spec: direct#transcript).
pub type Context = [u8; 32];
