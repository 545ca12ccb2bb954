//! Partitioned circuits: what an author writes to have Hekaton prove a computation.
//!
//! A circuit implements three methods of [`Circuit`]:
//!
//! - [`layout`](Circuit::layout) describes the subcircuit types, their instances, and which shared
//!   wire occupies which slot of which instance ([`Layout`]);
//! - [`execute`](Circuit::execute) computes the values of all shared wires natively from the input,
//!   and [`private_input`](Circuit::private_input) the private input of one instance on demand;
//! - [`synthesize`](Circuit::synthesize) lays down the constraints of one type with ordinary
//!   arkworks gadgets.
//!
//! [`check`](check()) runs all subcircuits without proving and names the constraints that fail. The
//! module [`prover`] is for proof systems: the variables of a subcircuit's R1CS, its matrices and
//! its witness.
//!
//! Without the default feature `synthesis`, the crate contains only what a verifier needs:
//! [`MemoryChallenges`], [`SlotAccess`], [`PublicWire`], [`ConstantWire`] and [`Masking`].

// For the paths that the derive macro writes.
#[cfg(all(test, feature = "synthesis"))]
extern crate self as hekaton_circuit;

mod memory;
mod text;

pub use hekaton_arith::Fr;
pub use memory::{ConstantWire, Masking, MemoryChallenges, Preprocessed, PublicWire, SlotAccess};
pub use text::{is_public_name, is_type_name, parse_value, show};

#[cfg(feature = "synthesis")]
mod balance;
#[cfg(feature = "synthesis")]
mod bit;
#[cfg(feature = "synthesis")]
mod buses;
#[cfg(feature = "synthesis")]
pub mod canonical;
#[cfg(feature = "synthesis")]
mod check;
#[cfg(feature = "synthesis")]
mod check_error;
#[cfg(feature = "synthesis")]
mod checked_instance;
#[cfg(feature = "synthesis")]
mod circuit;
#[cfg(feature = "synthesis")]
mod circuit_error;
#[cfg(feature = "synthesis")]
mod closures;
#[cfg(feature = "synthesis")]
mod counting;
#[cfg(feature = "synthesis")]
mod execution;
#[cfg(feature = "synthesis")]
mod fit;
#[cfg(feature = "synthesis")]
mod ids;
#[cfg(feature = "synthesis")]
mod inlining;
#[cfg(feature = "synthesis")]
mod labels;
#[cfg(feature = "synthesis")]
mod layout;
#[cfg(feature = "synthesis")]
mod layout_builder;
#[cfg(feature = "synthesis")]
mod layout_error;
#[cfg(feature = "synthesis")]
mod ledger;
#[cfg(feature = "synthesis")]
mod library;
#[cfg(feature = "synthesis")]
mod look_ups;
#[cfg(feature = "synthesis")]
mod matrix;
#[cfg(feature = "synthesis")]
mod mutation;
#[cfg(feature = "synthesis")]
pub mod named;
#[cfg(feature = "synthesis")]
mod notices;
#[cfg(feature = "synthesis")]
mod pages;
#[cfg(feature = "synthesis")]
mod panics;
#[cfg(feature = "synthesis")]
pub mod parts;
#[cfg(feature = "synthesis")]
mod places;
#[cfg(feature = "synthesis")]
mod prefix;
#[cfg(feature = "synthesis")]
mod prepared;
#[cfg(feature = "synthesis")]
pub mod prover;
#[cfg(feature = "synthesis")]
mod r1cs;
#[cfg(feature = "synthesis")]
mod stored;
#[cfg(feature = "synthesis")]
mod stored_synthesis;
#[cfg(feature = "synthesis")]
mod subcircuit;
#[cfg(feature = "synthesis")]
mod synthesis;
#[cfg(feature = "synthesis")]
mod synthesized;
#[cfg(feature = "synthesis")]
mod tables;
#[cfg(feature = "synthesis")]
mod values;
#[cfg(feature = "synthesis")]
mod variables;
#[cfg(feature = "synthesis")]
mod violation;
#[cfg(feature = "synthesis")]
mod wiring;

/// The arkworks crates that gadgets come from, in the versions that this crate works with.
#[cfg(feature = "synthesis")]
pub mod ark {
    pub use ark_r1cs_std as r1cs_std;
    pub use ark_relations as relations;
}

#[cfg(feature = "synthesis")]
pub use {
    balance::Unbalanced,
    bit::Bit,
    buses::Bus,
    check::{CheckOptions, CheckReport, TypeSize, check, check_with, count, count_prepared},
    check_error::CheckError,
    circuit::Circuit,
    circuit_error::CircuitError,
    closures::Closures,
    execution::{Execution, ExecutionError, PrivateInput},
    fit::fit,
    ids::{BusId, InstanceId, RamId, TableId, TypeId, WireId, WireName, Writer},
    layout::Layout,
    layout_builder::LayoutBuilder,
    layout_error::LayoutError,
    ledger::BusValue,
    library::look_up::LookUp,
    library::memory::Ram,
    library::ram::RamAccess,
    library::table::Table,
    look_ups::{Counts, LookUps},
    mutation::Unnoticed,
    notices::Notice,
    panics::CircuitPanic,
    prepared::PreparedCircuit,
    r1cs::{R1cs, R1csDifference},
    stored::{StoredRow, StoredRows},
    subcircuit::Subcircuit,
    synthesis::{StandAlone, SynthesizeError},
    values::{ValuesError, WireValues},
    violation::Violation,
    wiring::StarError,
};
