//! Ready-made partitioned circuits.
//!
//! - [`merkle`]: the SHA-256 Merkle tree of a file, with the root as public value.
//! - [`chain`]: the smallest useful example, a long chain of squarings split into links.
//! - [`sha256`]: the SHA-256 gadget that `merkle` is built from.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "small numbers of tests"))]

pub mod chain;
pub mod merkle;
pub mod sha256;

pub use chain::Chain;
pub use merkle::Merkle;
