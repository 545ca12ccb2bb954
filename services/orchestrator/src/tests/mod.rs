//! Tests of the components together.

mod memory;
mod plans;
mod queues;
mod simulation;
mod stores;
mod world;
