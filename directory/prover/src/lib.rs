//! Proves the epochs of a verifiable key directory: on this machine, in SLURM jobs, or by an orchestrator.
//!
//! | | |
//! |---|---|
//! | [`EpochKeys`] | a family of keys; verifies proofs of epochs |
//! | [`EpochProver`] | makes the proofs, one run of `hekaton prove` for each; a [`Prover`](hekaton_directory_server::Prover) |
//! | [`Site`], [`Slurm`], [`Orchestrator`] | where that runs |
//!
//! `hekaton_directory_server::prove_all` proves what has no proof; `Service::run` of `hekaton-directory-http` proves while it serves.

mod keys;
mod orchestrator;
mod prover;
mod slurm;

pub use keys::{CIRCUIT, EpochKeys, KeysError, Unverified};
pub use orchestrator::Orchestrator;
pub use prover::{EpochProver, ProverOptions, Site};
pub use slurm::Slurm;
