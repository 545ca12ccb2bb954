//! Proofs of the epochs of a key directory.
//!
//! A proof shows that epochs lead from the tree of one record to the tree of another. In each epoch, every change inserted
//! a leaf at version 0 or raised the version of a leaf by one, the leaf has the number of that epoch, and nothing else
//! changed. The chain of the records binds every root in between, so a server cannot show one history and prove another.
//!
//! A client that saw a leaf in the first tree and sees the same version in the last one knows that it was there all the
//! time, without the records in between.
//!
//! # The circuit
//!
//! All subcircuits but one are of the type `steps`. They pass a state on: a stack of subtrees, each before and after the
//! epoch, and the epoch that ended last. A step pushes a leaf, goes up next to a subtree that does not change, merges the
//! two sides of a node, or ends an epoch. The prover chooses which, so the layout depends on the number of subcircuits
//! alone. The type `edge` checks that nothing is left.
//!
//! | | constraints of a step | steps of a subcircuit of 2^20 |
//! |---|---|---|
//! | [`Profile::Compress`](hekaton_directory::Profile::Compress) | 53,743 | 19 |
//! | [`Profile::Sha256`](hekaton_directory::Profile::Sha256) | 92,175 | 11 |
//!
//! The witness is made by [`Tree::steps`](hekaton_directory::Tree::steps).

#![cfg_attr(test, allow(clippy::cast_possible_truncation, reason = "small numbers of tests"))]

mod epochs;
mod form;
mod hash;
mod machine;
mod parts;
mod rule;
mod state;
mod step;
#[cfg(test)]
mod tests;
mod tip;
mod witness_error;

pub use epochs::{Epochs, EpochsParameters, Run};
pub use tip::Tip;
pub use witness_error::WitnessError;
