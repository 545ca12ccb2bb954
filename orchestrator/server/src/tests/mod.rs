//! Tests of the components together.

mod arrivals;
mod bundling;
mod chains;
mod crashes;
mod exhaustive;
mod feeds;
pub(crate) mod memory;
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
