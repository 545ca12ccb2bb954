//! Tests of the components together.

mod exhaustive;
mod memory;
#[cfg(feature = "nats")]
mod nats;
mod plans;
mod queues;
pub(crate) mod records;
mod scenarios;
mod simulation;
mod stores;
#[cfg(feature = "traces")]
mod traces;
mod world;
