//! Takes the execution witness of an Ethereum block over HTTP, checks it, keeps it and has it proven.
//!
//! A witness is the input of a stateless execution of a block: nodes of the state's tries, codes, headers. Nodes of the execution
//! layer send it in SSZ, in one of two codecs ([`codec::apis773`], [`codec::apis793`]), or as JSON ([`codec::json`]). It can be fetched
//! ([`node::Node`]), copied as it goes past or sent by other programs ([`service`]). Each witness that belongs to its block
//! ([`check`], [`canonical`]) is stored, and becomes a job of an orchestrator ([`store::WitnessStore`], [`submitter::JobSubmitter`]), whose chain follows the branch of
//! the last payload.

mod again;
pub mod block;
mod branch;
pub mod canonical;
pub mod check;
pub mod codec;
mod jobs;
pub mod jwt;
pub mod node;
mod problem;
mod published;
mod received;
pub mod record;
pub mod service;
pub mod stand_in;
pub mod store;
pub mod submitter;
#[cfg(test)]
mod tests;
mod values;

pub use branch::{DEPTH, hash};
pub use hekaton_service::Problem;
pub use jobs::Jobs;
pub use received::Received;
