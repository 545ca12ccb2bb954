//! Chains of subcircuits with two slots each.

use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireId,
    WireValues,
};

/// Three subcircuits of two types: x -> x^2 -> x^4 -> a copy of x^4.
#[derive(Clone, Copy, Debug)]
pub struct Squarings;

impl Circuit for Squarings {
    type Input = Fr;
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
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
        Ok(vec![x, inner[0], inner[1], y])
    }

    fn execute(
        &self,
        wires: &Vec<WireId>,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let (x2, x4) = (*input * input, *input * input * input * input);
        wires.iter().zip([*input, x2, x4, x4]).for_each(|(wire, x)| values.set(*wire, x));
        Ok(())
    }

    fn private_input(
        &self,
        _: &Vec<WireId>,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &Vec<WireId>,
        subcircuit: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
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
    /// The number that the execution adds to the input: a circuit with another value here has the
    /// same keys but executes differently.
    pub extra: u64,
}

impl Circuit for Doublings {
    type Input = Fr;
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
        let kind = layout.subcircuit_type("double", 2);
        let mut wires = vec![layout.public_input("x", 0)];
        wires.extend((1..self.links).map(|i| layout.wire("x", i as u64)));
        wires.push(layout.public_output("x", self.links as u64));
        for pair in wires.windows(2) {
            let instance = layout.instance(kind);
            layout.read(instance, 0, pair[0]);
            layout.write(instance, 1, pair[1]);
        }
        Ok(wires)
    }

    fn execute(
        &self,
        wires: &Vec<WireId>,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let mut x = *input + Fr::from(self.extra);
        for wire in wires {
            values.set(*wire, x);
            x += x;
        }
        Ok(())
    }

    fn private_input(
        &self,
        _: &Vec<WireId>,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &Vec<WireId>,
        subcircuit: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
        let x = subcircuit.slot(0)?;
        (x + x).enforce_equal(subcircuit.slot(1)?)
    }
}
