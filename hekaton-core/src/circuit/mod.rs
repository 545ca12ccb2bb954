//! The circuit API: what an author writes, and nothing more.
//!
//! A partitioned circuit is three things (DESIGN, "The circuit API"; `docs/library.md` builds one step by step):
//!
//! - a [`Layout`]: subcircuit types, their instances, and which shared wire sits in which slot of which instance;
//! - `execute`: all shared-wire values from the input, computed natively, and on demand the private input of one instance;
//! - `synthesize`: the constraints of one type, written with ordinary arkworks gadgets.

pub mod canonical;
mod check;
mod execution;
mod layout;
mod synthesis;
mod values;
pub(crate) mod wiring;

pub use check::{CheckError, CheckReport, Violation, check};
pub use execution::ExecutionError;
pub use layout::{InstanceId, Layout, LayoutBuilder, LayoutError, TypeId, WireId, WireName, Writer};
pub use synthesis::{StandAlone, Subcircuit, SynthesizeError};
pub use values::{ValuesError, WireValues};
pub use wiring::StarError;

pub(crate) use execution::Execution;
pub(crate) use synthesis::{Prefix, R1cs, synthesize_r1cs, synthesize_witness};

use ark_relations::gr1cs::SynthesisError;

/// Any error of an author's own code.
pub type CircuitError = Box<dyn std::error::Error + Send + Sync>;

/// A computation cut into subcircuits.
pub trait Circuit: Sync {
    /// The input of a run, for example the bytes of a file.
    type Input: ?Sized + Sync;
    /// What `execute` leaves for `private_input`: intermediate values, checkpoints, or nothing.
    type Trace: Sync;
    /// What one subcircuit needs to know beside its shared wires. Sent to the worker that proves it, maybe on another
    /// machine, so it has serde's traits. `()` where there is nothing; a field of an arkworks type takes
    /// `#[serde(with = "hekaton_core::circuit::canonical")]`.
    type Private: Send + Sync + serde::Serialize + serde::de::DeserializeOwned;

    /// The layout. Must not depend on any input.
    ///
    /// # Errors
    /// What [`LayoutBuilder::build`] says.
    fn layout(&self) -> Result<Layout, LayoutError>;

    /// Sets the value of every shared wire, public wires included. This is the coordinator's serial part: compute
    /// natively, without constraints.
    ///
    /// # Errors
    /// Whatever is wrong with the input.
    fn execute(&self, input: &Self::Input, values: &mut WireValues) -> Result<Self::Trace, CircuitError>;

    /// The private input of one instance. Called once a round for each instance, in any order and from several threads,
    /// so that never all private inputs are in memory.
    ///
    /// # Errors
    /// Whatever is wrong with the input.
    fn private_input(
        &self,
        input: &Self::Input,
        trace: &Self::Trace,
        instance: InstanceId,
    ) -> Result<Self::Private, CircuitError>;

    /// The constraints of one subcircuit. At setup `private` is `None` and no variable has a value; the constraints
    /// must be the same for all instances of a type.
    ///
    /// # Errors
    /// What the gadgets say.
    fn synthesize(&self, subcircuit: &Subcircuit, private: Option<&Self::Private>) -> Result<(), SynthesisError>;
}

/// The number of constraints of each type, in the order of the layout, those of the memory check included and masks not
/// (two more slots with zero knowledge, so two more constraints). No keys are needed.
///
/// # Errors
/// When the layout is wrong or synthesis fails.
pub fn count_constraints<C: Circuit>(circuit: &C) -> Result<Vec<usize>, CheckError> {
    let layout = circuit.layout().map_err(ExecutionError::from)?;
    let count = |kind: TypeId| synthesize_r1cs(circuit, kind, layout.type_name(kind), layout.slots(kind), 0);
    let counts = layout.type_ids().map(|kind| count(kind).map(|r1cs| r1cs.constraints()));
    counts.collect::<Result<_, _>>().map_err(CheckError::Type)
}
