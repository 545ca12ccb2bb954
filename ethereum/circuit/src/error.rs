//! Errors in a witness.

use hekaton_witness_format::header::HeaderError;
use hekaton_witness_format::ssz::SszError;
use hekaton_witness_format::walk::WalkError;

/// The reason why a witness cannot be proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// Bytes that are not a witness in SSZ.
    #[error("not an execution witness in SSZ: {0}")]
    Ssz(SszError),
    /// A witness without the header of the parent.
    #[error("no header; the last one must be the parent's")]
    NoHeader,
    /// A malformed header of the parent.
    #[error("the last header: {0}")]
    Header(HeaderError),
    /// A header that does not fit into its subcircuit.
    #[error("the last header has {bytes} bytes, expected {least} to {most}")]
    HeaderLength {
        /// The length of the header, in bytes.
        bytes: usize,
        /// The least length of a header with a Bloom filter.
        least: usize,
        /// The largest length that the circuit has room for.
        most: usize,
    },
    /// A state that does not hang from its root.
    #[error(transparent)]
    State(#[from] WalkError),
    /// A string to which no reference leads.
    #[error(
        "{what} {index} is not reachable from the parent's state root, so it cannot be proven: `hekaton-intake check --output` leaves it out"
    )]
    Unreachable {
        /// `node` or `code`.
        what: &'static str,
        /// The index of the string, counted from 0.
        index: usize,
    },
    /// A witness that exceeds the room in the circuit.
    #[error(
        "the witness takes {needed} subcircuits of type '{kind}', and the circuit has {given}: choose -p {kind}={needed} or more"
    )]
    Room {
        /// The type of the subcircuits.
        kind: &'static str,
        /// The number of subcircuits that are needed.
        needed: usize,
        /// The number of subcircuits that the circuit has.
        given: usize,
    },
}

impl From<SszError> for WitnessError {
    fn from(error: SszError) -> Self {
        Self::Ssz(error)
    }
}

impl From<HeaderError> for WitnessError {
    fn from(error: HeaderError) -> Self {
        Self::Header(error)
    }
}
