//! The service over HTTP: what clients send and get, and who they are.

pub use hekaton_service::Problem;

pub(crate) mod board;
mod body;
mod description;
mod offers;
mod problem;
mod ready;
mod routes;
mod tenants;

pub(crate) use board::Board;
pub use hekaton_orchestrator_client::body::{
    BlobBody, BundlesBody, ChainBody, ChainState, DeadBody, HealthBody, JobBody, JobStatus,
    JobView, JobsBody, ProofBody, ProofsBody, ReorgBody, RevertBody, StandstillBody, WorkerView,
    WorkflowBody,
};
pub(crate) use offers::Offers;
pub(crate) use ready::Readiness;
pub use routes::open_api;
pub(crate) use routes::{Api, router};
pub(crate) use tenants::Tenants;
