//! Toy circuits and programs for the tests of the Hekaton crates, and a way to start our own. This crate is not published.

mod buses;
mod chains;
mod disk;
mod fan;
mod library;
mod programs;
mod squares;
mod tool;

pub use buses::{Shop, ShopPlan, Shopping};
pub use chains::{Doublings, Squarings};
pub use disk::{OnDisk, SmallDisk};
pub use fan::{FanOut, FanOutPlan, Readers};
pub use library::{BASE, Digits, Histogram, HistogramPlan};
pub use programs::{SUM, Segment, elf, elf_of, noise, squares};
pub use squares::{Root, Squares};
pub use tool::Tool;
