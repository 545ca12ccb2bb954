//! Proofs that the trie nodes and codes of an Ethereum block's execution witness hang from its parent's state root.
//!
//! Public are the hash of the parent block, the number N of strings, and W, a chain of Poseidon over the contents of all of them
//! ([`Chain`]). A proof says: there are N strings with this W, and each of them is the node of the state root in the header with that
//! hash, or named by its Keccak-256 digest, at a reference of the right kind, in another of them. So another circuit may open W, which
//! costs a fortieth of hashing the strings again. **Not proven** are that none is missing (what is above each string is there), that none
//! is there twice, which account a string belongs to, and that anything is used. A verifier who has all strings is quicker hashing
//! them. It is assumed that nobody finds collisions or cycles of Keccak-256 (spec: witness#statement).
//!
//! The subcircuits hold some strings each, in four types; how many there are of each is up to the prover, so that one key family
//! serves witnesses of all sizes ([`Counts`]).

mod assignment;
mod blocks;
mod branch;
mod chain;
mod circuit;
mod code;
mod error;
mod forms;
mod header;
mod input;
mod mixed;
mod named;
mod node;
mod short;
mod sizes;
#[cfg(test)]
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "small numbers of tests"
)]
mod tests;
mod trie;

pub use assignment::Assignment;
pub use chain::{Chain, StringKind};
pub use circuit::{Plan, Private, StateWitness};
pub use error::WitnessError;
pub use input::Witness;
pub use named::StateWitnessParameters;
pub use sizes::{Counts, Sizes};
pub use trie::Tag;
