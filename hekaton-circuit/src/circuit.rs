//! The trait that circuit authors implement.

use crate::circuit_error::CircuitError;
use crate::execution::values::WireValues;
use crate::layout::builder::LayoutBuilder;
use crate::layout::error::LayoutError;
use crate::layout::ids::InstanceId;
use crate::synthesis::stored::StoredRows;
use crate::synthesis::subcircuit::Subcircuit;
use ark_relations::gr1cs::SynthesisError;
use std::ops::Range;

/// A computation split into subcircuits: the lower of two interfaces, with slots as numbers. Most
/// authors use [`WiredCircuit`](crate::parts::WiredCircuit), which implements this one.
pub trait Circuit: Sync {
    /// The input of a run, for example the bytes of a file.
    type Input: ?Sized + Sync;
    /// The data that [`layout`](Self::layout) keeps for the other functions, for example the ids of
    /// its wires; `()` for nothing. It is computed once per setup, run or check.
    type Plan: Send + Sync;
    /// The data that `execute` keeps for `private_input`: intermediate values, checkpoints, or
    /// nothing.
    type Trace: Send + Sync;
    /// The input that one subcircuit needs in addition to its shared wires; `()` for nothing. It is
    /// serialized for the worker that proves the subcircuit, possibly on another machine, and in
    /// circuits with buses also for a digest: one value must have one serialization, so no `HashMap`.
    /// Annotate fields of arkworks types with `#[serde(with = "hekaton_circuit::canonical")]`.
    type Private: Send + Sync + serde::Serialize + serde::de::DeserializeOwned + 'static;

    /// `true` if [`execute_range`](Self::execute_range) does less than [`execute`](Self::execute),
    /// so that many ranks gain when each of them executes its own part.
    const EXECUTES_RANGES: bool = false;

    /// Describes the subcircuits and their shared wires, which must not depend on any input. The
    /// caller checks the layout afterwards.
    ///
    /// # Errors
    /// If there is no layout for the circuit's parameters; a text converts to the error.
    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Self::Plan, LayoutError>;

    /// Sets the value of every shared wire, public wires included, except constants. The
    /// coordinator runs this serially, so compute natively, without constraints.
    ///
    /// # Errors
    /// If the input is invalid.
    fn execute(
        &self,
        plan: &Self::Plan,
        input: &Self::Input,
        values: &mut WireValues,
    ) -> Result<Self::Trace, CircuitError>;

    /// Executes only what a range of instances needs: sets at least the values of the wires in
    /// their slots, and returns a trace from which their private inputs follow. The values must be
    /// those of [`execute`](Self::execute). The default executes everything; an implementation of
    /// its own should set [`EXECUTES_RANGES`](Self::EXECUTES_RANGES).
    ///
    /// # Errors
    /// If the input is invalid.
    fn execute_range(
        &self,
        plan: &Self::Plan,
        input: &Self::Input,
        instances: Range<usize>,
        values: &mut WireValues,
    ) -> Result<Self::Trace, CircuitError> {
        let _ = instances;
        self.execute(plan, input, values)
    }

    /// Returns the private input of one instance. Called once per round and instance, in any order
    /// and from several threads, so that the private inputs are never all in memory.
    ///
    /// # Errors
    /// If the input is invalid.
    fn private_input(
        &self,
        plan: &Self::Plan,
        input: &Self::Input,
        trace: &Self::Trace,
        instance: InstanceId,
    ) -> Result<Self::Private, CircuitError>;

    /// Adds the constraints of one subcircuit. At setup, `private` is `None` and no variable has a
    /// value. The constraints must be the same for all instances of a type: only the values of
    /// variables may depend on `private` and on other values.
    ///
    /// # Errors
    /// If a gadget fails.
    fn synthesize(
        &self,
        plan: &Self::Plan,
        subcircuit: &Subcircuit,
        private: Option<&Self::Private>,
    ) -> Result<(), SynthesisError>;

    /// The constraints and values of a circuit that stores them, in place of
    /// [`synthesize`](Self::synthesize), which is then for other provers only. The default is none.
    fn stored(&self) -> Option<&dyn StoredRows<Self::Private>> {
        None
    }
}
