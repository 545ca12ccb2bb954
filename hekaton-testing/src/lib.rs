//! Small circuits for the tests of the Hekaton crates. Not published.

mod chains;
mod fan;
mod squares;

pub use chains::{Doublings, Squarings};
pub use fan::{FanOut, Readers};
pub use squares::{Root, Squares};
