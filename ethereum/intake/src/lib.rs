//! Takes the execution witness of an Ethereum block over HTTP, checks it, keeps it and has it proven.
//!
//! A witness is the input of a stateless execution of a block: nodes of the state's tries, codes, headers. Nodes of the execution
//! layer send it in SSZ, in one of two codecs ([`codec::a`], [`codec::b`]), or as JSON ([`codec::json`]). It can be fetched
//! ([`node::Node`]), copied as it goes past or sent by other programs ([`service`]). Each witness that belongs to its block
//! ([`check`], [`canonical`]) is stored, and becomes a job of an orchestrator ([`desk::Desk`]), whose chain follows the branch of
//! the last payload.

mod again;
mod branch;
pub mod canonical;
pub mod check;
pub mod codec;
pub mod desk;
mod follow;
mod jobs;
pub mod jwt;
pub mod node;
mod payload;
mod problem;
mod published;
mod push;
mod received;
pub mod record;
pub mod service;
mod ssz;
pub mod stand_in;
#[cfg(test)]
mod tests;
pub mod trie;
mod values;

pub use branch::{DEPTH, hash};
pub use hekaton_service::Problem;
pub use payload::Payload;
pub use push::Push;
pub use received::Received;
pub use ssz::{Items, SszError};
