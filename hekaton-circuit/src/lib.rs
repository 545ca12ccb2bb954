//! Partitioned circuits: what an author writes to have a computation proven by Hekaton, and nothing more.
//!
//! A circuit is three things, the methods of [`Circuit`]:
//!
//! - a [`Layout`]: subcircuit types, their instances, and which shared wire sits in which slot of which instance;
//! - [`execute`](Circuit::execute): all shared-wire values from the input, computed natively, and on demand the private
//!   input of one instance;
//! - [`synthesize`](Circuit::synthesize): the constraints of one type, written with ordinary arkworks gadgets.
//!
//! [`check`] runs all subcircuits without proving and names the constraint that fails. [`prover`] is for proof systems:
//! the variables of a subcircuit's R1CS, its matrices and its witness.
//!
//! Without the default feature `synthesis` only [`MemoryChallenges`], [`SlotAccess`], [`PublicWire`] and [`Masking`] are
//! built, which is what a verifier needs.

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
mod layout;
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
    layout::{InstanceId, Layout, LayoutBuilder, LayoutError, TypeId, WireId, WireName, Writer},
    subcircuit::Subcircuit,
    synthesis::{StandAlone, SynthesizeError},
    values::{ValuesError, WireValues},
    wiring::StarError,
};
