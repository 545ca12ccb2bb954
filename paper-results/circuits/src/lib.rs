//! Circuits that only the experiments of the paper and comparisons with other provers need, in addition to those of `hekaton`.
//!
//! - [`FullEpoch`]: one epoch of a key directory as in the paper, with two paths of 128 levels per change (figure 9).
//! - [`Pedersen`]: a chain of Pedersen hashes, with which Cirrus compares itself.
//! - [`Ram`]: cycles of TinyRAM, with the machine's memory argument or with Merkle paths (figure 10).
//!
//! The program `hekaton-paper` is `hekaton` with these circuits registered; `experiment` runs it.

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "small numbers of tests"))]

mod full_epoch;
mod pedersen;
mod ram;

pub use full_epoch::{FullEpoch, FullEpochError, FullRun};
pub use pedersen::Pedersen;
pub use ram::{Ram, RamParameters, RamPlan, RamPrivate, RamTrace};
