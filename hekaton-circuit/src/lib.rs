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

// The ground: all that verifiers use. Everything else needs `synthesis`, so that a verifier in a browser
// is built without arkworks' gadgets and without serde.
mod interface;
mod text;

pub use hekaton_arith::Fr;
pub use interface::{
    ConstantWire, Masking, MemoryChallenges, Preprocessed, PublicWire, SlotAccess,
};
pub use text::{is_public_name, is_type_name, parse_value, show};

#[cfg(feature = "synthesis")]
mod buses;
#[cfg(feature = "synthesis")]
pub mod canonical;
#[cfg(feature = "synthesis")]
mod check;
#[cfg(feature = "synthesis")]
mod circuit;
#[cfg(feature = "synthesis")]
mod circuit_error;
#[cfg(feature = "synthesis")]
mod closures;
#[cfg(feature = "synthesis")]
mod execution;
#[cfg(feature = "synthesis")]
mod layout;
#[cfg(feature = "synthesis")]
mod memory;
#[cfg(feature = "synthesis")]
pub mod named;
#[cfg(feature = "synthesis")]
pub mod parts;
#[cfg(feature = "synthesis")]
pub mod prelude;
#[cfg(feature = "synthesis")]
pub mod prover;
#[cfg(feature = "synthesis")]
mod synthesis;
#[cfg(feature = "synthesis")]
pub mod unique;

/// The arkworks crates that gadgets come from, in the versions that this crate works with.
#[cfg(feature = "synthesis")]
pub mod ark {
    pub use ark_r1cs_std as r1cs_std;
    pub use ark_relations as relations;
}

#[cfg(feature = "synthesis")]
pub use {
    buses::Bus,
    buses::bit::Bit,
    buses::ledger::BusValue,
    buses::library::look_up::LookUp,
    buses::library::memory::Ram,
    buses::library::ram::RamAccess,
    buses::library::table::Table,
    buses::look_ups::{Counts, LookUps},
    check::balance::Unbalanced,
    check::error::{CheckError, NotDeterministic},
    check::fit::fit,
    check::notices::Notice,
    check::unique::InstanceVerdicts,
    check::violation::Violation,
    check::{CheckOptions, CheckReport, TypeSize, check, check_with, count, count_prepared},
    circuit::Circuit,
    circuit_error::CircuitError,
    closures::Closures,
    execution::panics::CircuitPanic,
    execution::prepared::PreparedCircuit,
    execution::values::{ValuesError, WireValues},
    execution::{Execution, ExecutionError, PrivateInput},
    layout::Layout,
    layout::builder::LayoutBuilder,
    layout::error::LayoutError,
    layout::ids::{BusId, InstanceId, RamId, TableId, TypeId, WireId, WireName, Writer},
    memory::wiring::StarError,
    synthesis::r1cs::{R1cs, R1csDifference},
    synthesis::stored::{StoredRow, StoredRows},
    synthesis::subcircuit::Subcircuit,
    synthesis::{StandAlone, SynthesizeError},
};
