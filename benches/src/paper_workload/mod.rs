//! The amounts of work of the paper's protocol, done with the kernels of this project. It proves
//! nothing: there is no verifier, no keys belong to the constraints, and no proof is kept.
//!
//! | module | what it does |
//! |---|---|
//! | [`r1cs`] | the constraints of the paper's memory check: 13 rows per occurrence, Merkle paths |
//! | [`worker`] | commit and prove: MSMs and Fourier transforms over that R1CS, counted |
//! | [`ours`] | the real worker of this project on a subcircuit with the same rows and slots |
//! | [`coordinator`] | sorting, running products, Merkle tree and messages between the rounds |
//! | [`aggregation`] | Miller loops and elements of the target group |

pub mod aggregation;
pub mod coordinator;
pub mod ours;
pub mod r1cs;
pub mod worker;

/// Stands in every line of output.
pub const NOTE: &str = "workload of the paper's protocol, proves nothing";

/// Any error of this benchmark.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
