//! Accepts execution witnesses of Ethereum blocks over HTTP, checks and stores them, and submits them for proving.
//!
//! A witness is the input of a stateless execution of a block: nodes of the state's tries, codes, headers. Nodes of the execution
//! layer send it in SSZ, in one of two codecs ([`codec::apis773`], [`codec::apis793`]), or in JSON-RPC, as JSON or RLP
//! ([`codec::json`], [`codec::rlp`]). The service fetches witnesses from a node ([`node::Node`]), copies those that pass through it
//! as a proxy, and accepts those that other programs send ([`service`]). Each witness that belongs to its block ([`check`],
//! [`canonical`]) is stored ([`store::WitnessStore`]) and becomes a job of an orchestrator ([`submitter::JobSubmitter`]), whose chain
//! follows the branch of the last payload.

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
