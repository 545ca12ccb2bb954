//! Requests to an orchestrator, and what both sides must agree on.
//!
//! - [`Client`] submits jobs, waits for them, reads what a chain has published, and transfers blobs.
//! - [`body`] has the types of requests and answers.
//! - [`Workflow`] is the file that defines the tasks of a job.
//! - [`Blobs`] is a folder of files by their [`Digest`].
//! - [`slurm`] has SLURM's job states and commands, which all submitters of proofs share.

mod blobs;
pub mod body;
mod client;
mod id;
pub mod slurm;
mod workflow;

pub use blobs::{BlobError, Blobs, Incoming};
pub use body::Order;
pub use client::{Client, ClientError};
pub use id::{BadId, Digest, Name};
pub use workflow::{Collect, Input, MAX_BLOBS, MAX_TASKS, Stage, Workflow, WorkflowError};
