//! Ready-made partitioned circuits.
//!
//! - [`merkle`]: the SHA-256 Merkle tree of a file; the public value is the root.
//! - [`chain`]: the smallest useful example: a long chain of squarings cut into links.
//! - [`sha256`]: the SHA-256 gadget that `merkle` is built from.

pub mod chain;
pub mod merkle;
pub mod sha256;

pub use chain::Chain;
pub use merkle::Merkle;
