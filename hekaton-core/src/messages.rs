//! What goes between coordinator and workers: plain values, so that any engine can carry them.
//!
//! A job is a value that any worker can do at any time, more than once, with the same result.

use crate::mirage::MirageProof;
use crate::transcript::MemoryChallenges;
use hekaton_arith::{Fr, G1Point};

/// A subcircuit to be proven: everything that is its own.
#[derive(Clone, Debug)]
pub struct Job<P> {
    /// Index of the instance.
    pub instance: usize,
    /// Index of its type.
    pub kind: usize,
    /// The values of its shared wires by slot, masks included.
    pub values: Vec<Fr>,
    /// The addresses and multiplicities of its slots.
    pub slots: Vec<(u64, i64)>,
    /// Its private input; the commit round does without.
    pub private: Option<P>,
}

/// A worker's answer in the commit round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Commitment {
    /// Index of the instance.
    pub instance: usize,
    /// D.
    pub d: G1Point,
}

/// What the coordinator sends into the prove round, the same for all subcircuits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProveRound {
    /// The challenges of the memory check.
    pub memory: MemoryChallenges,
}

/// A worker's answer in the prove round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProofResponse {
    /// Index of the instance.
    pub instance: usize,
    /// The proof.
    pub proof: MirageProof,
}
