//! Proofs that the trie nodes and codes of an Ethereum block's execution witness hang from its parent's state root.
//!
//! The public inputs are the hash of the parent block, the number N of strings, and W, a chain of Poseidon over the contents of
//! all strings ([`Chain`]). A proof states that there are N strings with this W. Each of them either is the node of the state root
//! in the header with that hash, or has its Keccak-256 digest in another of the strings, in a reference of the right kind. Another
//! circuit may therefore open W, which costs a fortieth of hashing the strings again. **Not proven**: that no string is missing
//! (only those above each string are sure to be present), that no string occurs twice, which account a string belongs to, and
//! that any string is used. A verifier that has all strings is faster if it hashes them itself. Collisions and cycles of Keccak-256
//! are assumed to be infeasible to find (spec: witness#statement).
//!
//! Each subcircuit holds some strings of one of four types; the prover chooses the number of subcircuits of each type, so that
//! one key family serves witnesses of all sizes ([`Counts`]).

mod assignment;
mod blocks;
mod branch;
mod chain;
mod circuit;
mod code;
mod error;
mod forms;
mod header;
mod mixed;
mod named;
mod node;
mod poseidon;
mod sample;
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

pub use assignment::Assignment;
pub use chain::{Chain, StringKind, Tag};
pub use circuit::{Plan, Private, StateWitness};
pub use error::WitnessError;
pub use hekaton_witness_format::EncodedWitness;
pub use named::StateWitnessParameters;
pub use sizes::{Counts, Sizes};
