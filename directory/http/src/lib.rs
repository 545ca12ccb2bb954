//! The HTTP service of a verifiable key directory, and its client.
//!
//! | | |
//! |---|---|
//! | [`body`] | what requests and answers have in them, as JSON |
//! | [`KeyBody::verify`](body::KeyBody::verify), [`HistoryBody::verify`](body::HistoryBody::verify) | what a client believes of an answer |
//! | [`ParametersFile`] | what clients hold, as a file |
#![cfg_attr(feature = "client", doc = "| [`Client`] | requests to a service |")]
#![cfg_attr(feature = "server", doc = "| [`Service`] | the service |")]
//!
//! An update is *accepted* once it is on the server's disk, *visible* once the record of its epoch is signed, and *proven*
//! once a proof of its epoch is attached. These states are never mixed.

#[cfg(feature = "server")]
pub mod answer;
mod base64;
pub mod body;
#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod held;
#[cfg(feature = "server")]
mod metrics;
mod parameters;
#[cfg(feature = "server")]
mod problem;
#[cfg(feature = "server")]
mod routes;
#[cfg(feature = "server")]
mod schema;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "server")]
mod service;
mod verify;
#[cfg(feature = "server")]
mod writers;

pub use base64::Base64;
#[cfg(feature = "client")]
pub use client::{Client, ClientError};
pub use hekaton_service::Problem;
pub use parameters::{ParametersError, ParametersFile};
#[cfg(feature = "server")]
pub use problem::Refusal;
#[cfg(feature = "server")]
pub use routes::open_api;
#[cfg(feature = "server")]
pub use service::{Service, ServiceOptions};
pub use verify::{AnswerError, Found, FoundHistory, follow};
#[cfg(feature = "server")]
pub use writers::Writers;

#[cfg(all(test, feature = "client", feature = "server"))]
mod tests;
