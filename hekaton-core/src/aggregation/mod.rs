//! The aggregate proof: one proof for all subcircuits, by inner pairing products (TIPP/MIPP; spec:
//! aggregation#commitments, verifier#equations).
//!
//! [`blocks`] defines who holds the vectors, [`block`] the computations on a part of them, and
//! `prover` turns all parts into one proof. The verifier is in [`crate::verifier`]; both draw their
//! challenges from the same transcript.

pub mod block;
pub mod blocks;
pub(crate) mod prover;

pub use blocks::AggregateError;
