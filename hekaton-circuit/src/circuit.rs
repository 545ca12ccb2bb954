//! The trait that circuit authors implement.

use crate::ids::InstanceId;
use crate::layout::Layout;
use crate::layout_error::LayoutError;
use crate::subcircuit::Subcircuit;
use crate::values::WireValues;
use ark_relations::gr1cs::SynthesisError;

/// Any error from an author's code.
pub type CircuitError = Box<dyn std::error::Error + Send + Sync>;

/// A computation split into subcircuits.
pub trait Circuit: Sync {
    /// The input of a run, for example the bytes of a file.
    type Input: ?Sized + Sync;
    /// What `execute` keeps for `private_input`: intermediate values, checkpoints, or nothing.
    type Trace: Sync;
    /// What one subcircuit needs in addition to its shared wires; `()` for nothing. It is
    /// serialized for the worker that proves the subcircuit, possibly on another machine. Annotate
    /// fields of arkworks types with `#[serde(with = "hekaton_circuit::canonical")]`.
    type Private: Send + Sync + serde::Serialize + serde::de::DeserializeOwned;

    /// Returns the layout, which must not depend on any input.
    ///
    /// # Errors
    /// The errors of [`LayoutBuilder::build`](crate::LayoutBuilder::build).
    fn layout(&self) -> Result<Layout, LayoutError>;

    /// Sets the value of every shared wire, public wires included. The coordinator runs this
    /// serially, so compute natively, without constraints.
    ///
    /// # Errors
    /// If the input is invalid.
    fn execute(
        &self,
        input: &Self::Input,
        values: &mut WireValues,
    ) -> Result<Self::Trace, CircuitError>;

    /// Returns the private input of one instance. Called once per round and instance, in any order
    /// and from several threads, so that the private inputs are never all in memory.
    ///
    /// # Errors
    /// If the input is invalid.
    fn private_input(
        &self,
        input: &Self::Input,
        trace: &Self::Trace,
        instance: InstanceId,
    ) -> Result<Self::Private, CircuitError>;

    /// Adds the constraints of one subcircuit. At setup, `private` is `None` and no variable has a
    /// value. The constraints must be the same for all instances of a type.
    ///
    /// # Errors
    /// If a gadget fails.
    fn synthesize(
        &self,
        subcircuit: &Subcircuit,
        private: Option<&Self::Private>,
    ) -> Result<(), SynthesisError>;
}
