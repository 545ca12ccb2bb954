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
//! [`MemoryChallenges`], [`SlotAccess`], [`PublicWire`] and [`Masking`].

mod memory;

pub use hekaton_arith::Fr;
pub use memory::{Masking, MemoryChallenges, PublicWire, SlotAccess};

#[cfg(feature = "synthesis")]
pub mod canonical;
#[cfg(feature = "synthesis")]
mod check;
#[cfg(feature = "synthesis")]
mod circuit;
#[cfg(feature = "synthesis")]
mod execution;
#[cfg(feature = "synthesis")]
mod ids;
#[cfg(feature = "synthesis")]
mod layout;
#[cfg(feature = "synthesis")]
mod layout_builder;
#[cfg(feature = "synthesis")]
mod layout_error;
#[cfg(feature = "synthesis")]
pub mod named;
#[cfg(feature = "synthesis")]
mod prefix;
#[cfg(feature = "synthesis")]
pub mod prover;
#[cfg(feature = "synthesis")]
mod subcircuit;
#[cfg(feature = "synthesis")]
mod synthesis;
#[cfg(feature = "synthesis")]
mod values;
#[cfg(feature = "synthesis")]
mod variables;
#[cfg(feature = "synthesis")]
mod wiring;

#[cfg(feature = "synthesis")]
pub use {
    check::{CheckError, CheckReport, Violation, check, count_constraints},
    circuit::{Circuit, CircuitError},
    execution::ExecutionError,
    ids::{InstanceId, TypeId, WireId, WireName, Writer},
    layout::Layout,
    layout_builder::LayoutBuilder,
    layout_error::LayoutError,
    subcircuit::Subcircuit,
    synthesis::{StandAlone, SynthesizeError},
    values::{ValuesError, WireValues},
    wiring::StarError,
};
