//! A circuit of any number of subcircuits and shared wires with few other costs, to measure the cost of
//! both.

use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_arith::Fr;
use hekaton_circuit::{
    Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireId, WireValues,
};

/// A chain of subcircuits, each of which squares `width` values and passes them on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ladder {
    pub(super) subcircuits: usize,
    pub(super) width: usize,
    /// Bytes of private input, which no constraint uses.
    pub(super) private_bytes: usize,
}

impl Ladder {
    /// Wires of all subcircuits together.
    pub(super) fn occurrences(&self) -> f64 {
        2.0 * self.subcircuits as f64 * self.width as f64
    }
}

impl Circuit for Ladder {
    type Input = Fr;
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = Vec<u8>;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
        let kind = layout.subcircuit_type("square", 2 * self.width);
        let mut wires = Vec::with_capacity((self.subcircuits + 1) * self.width);
        for j in 0..self.width {
            wires.push(layout.public_input("x", j as u64));
        }
        for i in 1..self.subcircuits * self.width {
            if i >= self.width {
                wires.push(layout.wire("y", i as u64));
            }
        }
        for j in 0..self.width {
            wires.push(layout.public_output("z", j as u64));
        }
        for i in 0..self.subcircuits {
            let instance = layout.instance(kind);
            for j in 0..self.width {
                layout.read(instance, j, wires[i * self.width + j]);
                layout.write(instance, self.width + j, wires[(i + 1) * self.width + j]);
            }
        }
        Ok(wires)
    }

    fn execute(
        &self,
        wires: &Vec<WireId>,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        let mut level: Vec<Fr> = (0..self.width).map(|j| *input + Fr::from(j as u64)).collect();
        for step in wires.chunks(self.width) {
            for (wire, value) in step.iter().zip(&mut level) {
                values.set(*wire, *value);
                *value *= *value;
            }
        }
        Ok(())
    }

    fn private_input(
        &self,
        _: &Vec<WireId>,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<Vec<u8>, CircuitError> {
        // Encoding and hashing cost the same for any bytes.
        Ok(vec![0; self.private_bytes])
    }

    fn synthesize(
        &self,
        _: &Vec<WireId>,
        subcircuit: &Subcircuit,
        _: Option<&Vec<u8>>,
    ) -> Result<(), SynthesisError> {
        for j in 0..self.width {
            let x = subcircuit.slot(j)?;
            (x * x).enforce_equal(subcircuit.slot(self.width + j)?)?;
        }
        Ok(())
    }
}
