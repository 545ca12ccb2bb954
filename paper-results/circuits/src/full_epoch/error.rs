//! Reasons why a witness cannot be proven.

use hekaton_directory::DecodeError;

/// The reason why a witness cannot be proven with [`FullEpoch`](super::FullEpoch).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FullEpochError {
    /// The bytes are not a witness.
    #[error("cannot read the witness: {0}")]
    Decode(DecodeError),
    /// It is of a tree with another profile.
    #[error(
        "the witness is of a directory with profile '{found}', but the circuit is for '{expected}'"
    )]
    Profile {
        /// The profile of the witness.
        found: &'static str,
        /// The profile of the circuit.
        expected: &'static str,
    },
    /// The circuit is for another number of changes.
    #[error(
        "the witness has {found} changes, but the circuit is for {expected}: use keys or parameters with changes={found}"
    )]
    Changes {
        /// The number of changes.
        found: usize,
        /// The number of changes that the circuit has.
        expected: usize,
    },
    /// A step is not one of an honest prover.
    #[error("step {number} of the witness cannot be proven: {why}")]
    Step {
        /// The step, from 0.
        number: usize,
        /// A description of what is wrong.
        why: String,
    },
    /// It does not end with the end of the epoch, or is empty.
    #[error("the witness does not end with the end of an epoch")]
    Unfinished,
}

impl From<DecodeError> for FullEpochError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
