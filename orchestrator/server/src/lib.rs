//! Orchestrates provers: a stream of proving tasks that survives any single failure and is published in block order.
//!
//! A *job* is a block of a *chain*. A [`Workflow`] defines its *tasks*; a back-end runs each of them. The holder of a task has claimed it
//! by a conditional write, whose revision is its epoch: once the lease is taken away, the holder can write nothing, so a process that was
//! wrongly taken for dead does no harm. The state is in the records alone ([`record`]), in a [`store::Store`]: every process can be killed
//! at any time, and any other one continues.
//!
//! - [`service::run`] is a process: it takes jobs over HTTP, makes their tasks, runs them and publishes.
//! - [`Client`] sends requests to such a process.
//! - [`Backend`] runs a task: `hekaton prove`, any other program, or a [`Prover`] in Rust.
//! - [`history::History`] checks the promises against everything that was stored.

mod alive;
pub mod backend;
mod bundle;
mod clock;
mod collect;
mod dispatch;
mod feed;
pub mod history;
mod host;
pub mod http;
mod id;
mod metrics;
mod order;
mod process;
mod publish;
pub mod record;
mod retention;
pub mod service;
pub mod settings;
pub mod standstill;
pub mod store;
mod submissions;
mod surroundings;
#[cfg(test)]
mod tests;
mod traces;
mod workflows;

pub use backend::{Backend, Library, Prover};
pub use clock::{Clock, Time};
pub use collect::{Groups, Situation, Sources, Step, Strategies, Strategy};
pub use dispatch::{BLOCKS_BEHIND_DEAD, Progress};
pub use hekaton_orchestrator_client::{
    BadId, BlobError, Blobs, Client, ClientError, Collect, Digest, Incoming, Input, MAX_BLOBS,
    MAX_TASKS, Name, Stage, Workflow, WorkflowError,
};
pub use id::PARTITIONS;
pub use metrics::Metrics;
pub use submissions::{Accepted, Reversal, Submission, SubmissionError, Submissions};
pub use traces::Traces;
