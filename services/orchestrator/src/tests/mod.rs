//! Tests of the components together.

mod memory;
#[cfg(feature = "nats")]
mod nats;
mod plans;
mod queues;
mod simulation;
mod stores;
mod world;
