//! Circuits that only the experiments of the paper need, in addition to those of `hekaton`.
//!
//! - [`FullEpoch`]: one epoch of a key directory as in the paper, with two paths of 128 levels per change (figure 9).
//! - [`Ram`]: cycles of TinyRAM, with the machine's memory argument or with Merkle paths (figure 10).
//!
//! The program `hekaton-paper` is `hekaton` with these circuits registered; `experiment` runs it.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "small numbers of tests"))]

mod full_epoch;
mod ram;

pub use full_epoch::{FullEpoch, FullEpochError, FullRun};
pub use ram::{Ram, RamParameters, RamPlan, RamPrivate, RamTrace};
