//! Errors in a witness.

/// The reason for which a witness cannot be proven.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// Bytes that are not a witness in SSZ.
    #[error("it is not an execution witness in SSZ: {0}")]
    Ssz(String),
    /// A witness without the header of the parent.
    #[error("it has no header, and the last one must be the parent's")]
    NoHeader,
    /// A malformed header of the parent.
    #[error("its last header is not one: {0}")]
    Header(&'static str),
    /// A string that is not a node of a state trie.
    #[error("node {index} of {bytes} bytes is not one of a trie of the state: {why}")]
    Node {
        /// The index of the node, counted from 0.
        index: usize,
        /// The length of the node, in bytes.
        bytes: usize,
        /// The reason.
        why: &'static str,
    },
    /// A string to which no reference leads.
    #[error("nothing that hangs from the state root refers to {what} {index}")]
    Unreachable {
        /// `node` or `code`.
        what: &'static str,
        /// The index of the string, counted from 0.
        index: usize,
    },
    /// A witness without the node of the state root.
    #[error("the node of the parent's state root is missing")]
    NoRoot,
    /// A witness that exceeds the room in the circuit.
    #[error("it takes {needed} subcircuits of type '{kind}', and the circuit has {given}")]
    Room {
        /// The type of the subcircuits.
        kind: &'static str,
        /// The number of subcircuits that are needed.
        needed: usize,
        /// The number of subcircuits that the circuit has.
        given: usize,
    },
}
