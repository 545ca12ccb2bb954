//! Reasons why a witness cannot be proven.

use hekaton_directory::DecodeError;

/// The reason why a witness cannot be proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// The bytes are not a witness.
    #[error("cannot read the witness: {0}")]
    Decode(DecodeError),
    /// It is of a tree with another hash function.
    #[error(
        "the witness is of a directory with profile '{found}', but the circuit is for '{expected}'"
    )]
    Profile {
        /// The profile of the witness.
        found: &'static str,
        /// The profile of the circuit.
        expected: &'static str,
    },
    /// It does not fit.
    #[error(
        "the witness has {steps} steps, but the circuit has room for {room}: use keys or parameters with more subcircuits"
    )]
    Room {
        /// The number of steps.
        steps: usize,
        /// The number of steps of the circuit.
        room: usize,
    },
    /// A step is not one of an honest prover.
    #[error("step {number} of the witness cannot be proven: {why}")]
    Step {
        /// The step, from 0.
        number: usize,
        /// A description of what is wrong.
        why: String,
    },
    /// It ends in the middle of an epoch, or is empty.
    #[error("the witness does not end with the end of an epoch")]
    Unfinished,
}

impl From<DecodeError> for WitnessError {
    fn from(error: DecodeError) -> Self {
        Self::Decode(error)
    }
}
