//! Tests of the components together.

mod arrivals;
mod bundling;
mod chains;
mod exhaustive;
mod feeds;
mod memory;
#[cfg(feature = "nats")]
mod nats;
mod plans;
mod queues;
pub(crate) mod records;
mod removed;
mod retention;
mod scenarios;
mod simulation;
mod standstills;
mod stores;
#[cfg(feature = "traces")]
mod traces;
mod workers;
mod world;
