//! Provers that cheat (PROTOCOL, section 11): test doubles that change something and go on honestly.
//!
//! Every test says which check it guards, and fails when that check is taken out. Files follow the sections of the
//! list; `bench` has the circuit, the keys and the cheating prover.

mod aggregation;
pub(crate) mod bench;
mod completeness;
mod memory;
mod mirage;
mod parsing;
mod setup;
mod zero_knowledge;
