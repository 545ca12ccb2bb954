//! The trait that an author implements.

use crate::layout::{InstanceId, Layout, LayoutError};
use crate::subcircuit::Subcircuit;
use crate::values::WireValues;
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
    /// `#[serde(with = "hekaton_circuit::canonical")]`.
    type Private: Send + Sync + serde::Serialize + serde::de::DeserializeOwned;

    /// The layout. Must not depend on any input.
    ///
    /// # Errors
    /// What [`LayoutBuilder::build`](crate::LayoutBuilder::build) says.
    fn layout(&self) -> Result<Layout, LayoutError>;

    /// Sets the value of every shared wire, public wires included. This is the coordinator's serial part: compute
    /// natively, without constraints.
    ///
    /// # Errors
    /// Whatever is wrong with the input.
    fn execute(
        &self,
        input: &Self::Input,
        values: &mut WireValues,
    ) -> Result<Self::Trace, CircuitError>;

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
    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&Self::Private>,
    ) -> Result<(), SynthesisError>;
}
