//! What is wrong with a witness.

/// Why there is no proof of a witness.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WitnessError {
    /// It is not encoded as one.
    #[error("it is not an execution witness in SSZ: {0}")]
    Ssz(String),
    /// There is no header of the parent.
    #[error("it has no header, and the last one must be the parent's")]
    NoHeader,
    /// The parent's header is not one.
    #[error("its last header is not one: {0}")]
    Header(&'static str),
    /// A node is not one.
    #[error("node {index} of {bytes} bytes is not one of a trie of the state: {why}")]
    Node {
        /// Which one, counted from 0.
        index: usize,
        /// How long it is.
        bytes: usize,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nothing refers to something.
    #[error("nothing that hangs from the state root refers to {what} {index}")]
    Unreachable {
        /// `node` or `code`.
        what: &'static str,
        /// Which one, counted from 0.
        index: usize,
    },
    /// The root of the state is missing.
    #[error("the node of the parent's state root is missing")]
    NoRoot,
    /// There is more than the circuit has room for.
    #[error("it takes {needed} subcircuits of type '{kind}', and the circuit has {given}")]
    Room {
        /// The type.
        kind: &'static str,
        /// How many are needed.
        needed: usize,
        /// How many there are.
        given: usize,
    },
}
