//! A circuit of closures, for tests and experiments.

use crate::circuit::Circuit;
use crate::circuit_error::CircuitError;
use crate::execution::values::WireValues;
use crate::layout::builder::LayoutBuilder;
use crate::layout::error::LayoutError;
use crate::layout::ids::{InstanceId, WireId};
use crate::synthesis::subcircuit::Subcircuit;
use ark_relations::gr1cs::SynthesisError;
use serde::Serialize;
use serde::de::DeserializeOwned;

type Layout = dyn Fn(&mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> + Send + Sync;
type Execute = dyn Fn(&[WireId], &mut WireValues) -> Result<(), CircuitError> + Send + Sync;
type PrivateInput<P> = dyn Fn(InstanceId) -> Result<P, CircuitError> + Send + Sync;
type Synthesize<P> = dyn Fn(&Subcircuit, Option<&P>) -> Result<(), SynthesisError> + Send + Sync;

/// A circuit of four closures without an input, for tests and experiments: values are captured by
/// the closures. `P` is the private input of a subcircuit, `()` for none.
///
/// ```
/// use ark_r1cs_std::fields::FieldVar;
/// use hekaton_circuit::{Closures, Fr, check};
///
/// let square = Closures::<()>::new(
///     |layout| {
///         let wires = [layout.public_input("x", 0), layout.public_output("y", 0)];
///         let kind = layout.subcircuit_type("square", 2);
///         let instance = layout.instance(kind);
///         layout.read(instance, 0, wires[0]);
///         layout.write(instance, 1, wires[1]);
///         Ok(wires.to_vec())
///     },
///     |wires, values| {
///         values.set(wires[0], Fr::from(3u64));
///         values.set(wires[1], Fr::from(9u64));
///         Ok(())
///     },
///     |_| Ok(()),
///     |s, _| s.slot(0)?.mul_equals(s.slot(0)?, s.slot(1)?),
/// );
/// assert!(check(&square, &(), |_, _| {})?.violations.is_empty());
/// # Ok::<_, hekaton_circuit::CheckError>(())
/// ```
pub struct Closures<P = ()> {
    layout: Box<Layout>,
    execute: Box<Execute>,
    private_input: Box<PrivateInput<P>>,
    synthesize: Box<Synthesize<P>>,
}

impl<P> std::fmt::Debug for Closures<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Closures").finish_non_exhaustive()
    }
}

impl<P> Closures<P> {
    /// A circuit of these closures, which do what the methods of [`Circuit`] of these names do.
    /// `layout` returns the wires that `execute` gets.
    pub fn new(
        layout: impl Fn(&mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> + Send + Sync + 'static,
        execute: impl Fn(&[WireId], &mut WireValues) -> Result<(), CircuitError> + Send + Sync + 'static,
        private_input: impl Fn(InstanceId) -> Result<P, CircuitError> + Send + Sync + 'static,
        synthesize: impl Fn(&Subcircuit, Option<&P>) -> Result<(), SynthesisError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self {
            layout: Box::new(layout),
            execute: Box::new(execute),
            private_input: Box::new(private_input),
            synthesize: Box::new(synthesize),
        }
    }

    /// The same circuit with another layout.
    #[must_use]
    pub fn layout(
        self,
        layout: impl Fn(&mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> + Send + Sync + 'static,
    ) -> Self {
        Self { layout: Box::new(layout), ..self }
    }

    /// The same circuit with another execution.
    #[must_use]
    pub fn execute(
        self,
        execute: impl Fn(&[WireId], &mut WireValues) -> Result<(), CircuitError> + Send + Sync + 'static,
    ) -> Self {
        Self { execute: Box::new(execute), ..self }
    }

    /// The same circuit with other private inputs.
    #[must_use]
    pub fn private_input(
        self,
        private_input: impl Fn(InstanceId) -> Result<P, CircuitError> + Send + Sync + 'static,
    ) -> Self {
        Self { private_input: Box::new(private_input), ..self }
    }

    /// The same circuit with other constraints.
    #[must_use]
    pub fn synthesize(
        self,
        synthesize: impl Fn(&Subcircuit, Option<&P>) -> Result<(), SynthesisError>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        Self { synthesize: Box::new(synthesize), ..self }
    }
}

impl<P: Serialize + DeserializeOwned + Send + Sync + 'static> Circuit for Closures<P> {
    type Input = ();
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = P;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
        (self.layout)(layout)
    }

    fn execute(
        &self,
        wires: &Vec<WireId>,
        (): &(),
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        (self.execute)(wires, values)
    }

    fn private_input(
        &self,
        _: &Vec<WireId>,
        (): &(),
        (): &(),
        instance: InstanceId,
    ) -> Result<P, CircuitError> {
        (self.private_input)(instance)
    }

    fn synthesize(
        &self,
        _: &Vec<WireId>,
        subcircuit: &Subcircuit,
        private: Option<&P>,
    ) -> Result<(), SynthesisError> {
        (self.synthesize)(subcircuit, private)
    }
}
