//! Provers that cheat: test doubles that change one thing and continue honestly
//! (spec: adversarial-tests#memory).
//!
//! Every test names the check that it guards, and fails when that check is removed. A *control*
//! removes the check on purpose, so that the forgery passes. Files follow the sections of the list;
//! `bench` has the circuit, the keys and the cheating prover.

pub(crate) mod accelerators;
mod aggregation;
pub(crate) mod bench;
pub(crate) mod binding;
mod buses;
mod completeness;
mod constants;
mod direct;
mod direct_runs;
mod family;
mod leaks;
mod library;
mod memory;
mod mirage;
mod parsing;
mod rewired;
mod setup;
mod sparse;
#[cfg(target_os = "linux")]
mod traces;
mod zero_knowledge;
