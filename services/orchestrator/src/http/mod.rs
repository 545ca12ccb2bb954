//! The service over HTTP: what clients send and get, and who they are.

pub(crate) mod board;
pub(crate) mod body;
mod problem;
mod routes;
mod tenants;

pub(crate) use board::Board;
pub use body::{
    BlobBody, BundlesBody, ChainBody, ChainState, HealthBody, JobBody, JobStatus, JobView,
    JobsBody, ProofBody, ProofsBody, ReorgBody, RevertBody, WorkerView, WorkflowBody,
};
pub use problem::Problem;
pub use routes::open_api;
pub(crate) use routes::{Api, router};
pub(crate) use tenants::Tenants;
