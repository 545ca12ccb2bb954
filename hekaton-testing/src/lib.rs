//! Toy circuits for the tests of the Hekaton crates. This crate is not published.

mod chains;
mod fan;
mod squares;

pub use chains::{Doublings, Squarings};
pub use fan::{FanOut, FanOutPlan, Readers};
pub use squares::{Root, Squares};
