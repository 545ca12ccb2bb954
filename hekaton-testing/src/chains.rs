//! Chains of subcircuits with two slots each.

use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, Layout, LayoutError, Subcircuit, WireValues,
};

/// Three subcircuits of two types: x -> x^2 -> x^4 -> a copy of x^4.
#[derive(Clone, Copy, Debug)]
pub struct Squarings;

impl Circuit for Squarings {
    type Input = Fr;
    type Trace = ();
    type Private = ();

    fn layout(&self) -> Result<Layout, LayoutError> {
        let mut layout = Layout::builder();
        let (square, copy) =
            (layout.subcircuit_type("square", 2), layout.subcircuit_type("copy", 2));
        let x = layout.public_input("x", 0);
        let inner = [layout.wire("x", 1), layout.wire("x", 2)];
        let y = layout.public_output("y", 0);
        for (kind, from, to) in
            [(square, x, inner[0]), (square, inner[0], inner[1]), (copy, inner[1], y)]
        {
            let instance = layout.instance(kind);
            layout.read(instance, 0, from);
            layout.write(instance, 1, to);
        }
        layout.build()
    }

    fn execute(&self, input: &Fr, values: &mut WireValues) -> Result<(), CircuitError> {
        let layout = self.layout()?;
        let mut x = *input;
        for instance in layout.instance_ids() {
            let wires: Vec<_> = layout.wires_of(instance).flatten().collect();
            values.set(wires[0], x);
            if layout.type_name(layout.type_of(instance)) == "square" {
                x *= x;
            }
            values.set(wires[1], x);
        }
        Ok(())
    }

    fn private_input(&self, _: &Fr, (): &(), _: InstanceId) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(&self, subcircuit: &Subcircuit, _: Option<&()>) -> Result<(), SynthesisError> {
        let input = subcircuit.slot(0)?;
        if subcircuit.kind().index() == 0 {
            (input * input).enforce_equal(subcircuit.slot(1)?)
        } else {
            input.enforce_equal(subcircuit.slot(1)?)
        }
    }
}

/// The chain x, 2x, 4x, ..; the execution can be made to start from another value.
#[derive(Clone, Copy, Debug)]
pub struct Doublings {
    /// The number of subcircuits.
    pub links: usize,
    /// What the execution adds to the input: a circuit with another value here has the same keys
    /// but executes differently.
    pub extra: u64,
}

impl Circuit for Doublings {
    type Input = Fr;
    type Trace = ();
    type Private = ();

    fn layout(&self) -> Result<Layout, LayoutError> {
        let mut layout = Layout::builder();
        let kind = layout.subcircuit_type("double", 2);
        let mut wires = vec![layout.public_input("x", 0)];
        wires.extend((1..self.links).map(|i| layout.wire("x", i as u64)));
        wires.push(layout.public_output("x", self.links as u64));
        for pair in wires.windows(2) {
            let instance = layout.instance(kind);
            layout.read(instance, 0, pair[0]);
            layout.write(instance, 1, pair[1]);
        }
        layout.build()
    }

    fn execute(&self, input: &Fr, values: &mut WireValues) -> Result<(), CircuitError> {
        let layout = self.layout()?;
        let mut x = *input + Fr::from(self.extra);
        for instance in layout.instance_ids() {
            let wires: Vec<_> = layout.wires_of(instance).flatten().collect();
            values.set(wires[0], x);
            x += x;
            values.set(wires[1], x);
        }
        Ok(())
    }

    fn private_input(&self, _: &Fr, (): &(), _: InstanceId) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(&self, subcircuit: &Subcircuit, _: Option<&()>) -> Result<(), SynthesisError> {
        let x = subcircuit.slot(0)?;
        (x + x).enforce_equal(subcircuit.slot(1)?)
    }
}
