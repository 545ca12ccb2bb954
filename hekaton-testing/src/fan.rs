//! Circuits in which one wire has many readers.

use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, Layout, LayoutError, Subcircuit, WireValues,
};

/// A public input that as many subcircuits read as the field says.
#[derive(Clone, Copy, Debug)]
pub struct Readers(pub usize);

impl Circuit for Readers {
    type Input = Fr;
    type Trace = ();
    type Private = ();
    fn layout(&self) -> Result<Layout, LayoutError> {
        let mut layout = Layout::builder();
        let kind = layout.subcircuit_type("reader", 1);
        let wire = layout.public_input("x", 0);
        for _ in 0..self.0 {
            let instance = layout.instance(kind);
            layout.read(instance, 0, wire);
        }
        layout.build()
    }
    fn execute(&self, input: &Fr, values: &mut WireValues) -> Result<(), CircuitError> {
        let layout = self.layout()?;
        let wire = layout.public_wires().next().ok_or("no wire")?;
        values.set(wire, *input);
        Ok(())
    }
    fn private_input(&self, _: &Fr, (): &(), _: InstanceId) -> Result<(), CircuitError> {
        Ok(())
    }
    fn synthesize(&self, subcircuit: &Subcircuit, _: Option<&()>) -> Result<(), SynthesisError> {
        let x = subcircuit.slot(0)?;
        let _ = x * x;
        Ok(())
    }
}

/// One wire with one writer and `readers` readers, spread over subcircuits of `slots` slots.
#[derive(Clone, Copy, Debug)]
pub struct FanOut {
    /// The number of readers.
    pub readers: usize,
    /// The number of slots per reading subcircuit; slots that are left over are unused.
    pub slots: usize,
}

impl Circuit for FanOut {
    type Input = Fr;
    type Trace = ();
    type Private = ();

    fn layout(&self) -> Result<Layout, LayoutError> {
        let mut layout = Layout::builder();
        let writer = layout.subcircuit_type("writer", 2);
        let reader = layout.subcircuit_type("reader", self.slots);
        let public = layout.public_output("copy", 0);
        let wire = layout.wire("wire", 0);
        let instance = layout.instance(writer);
        layout.write(instance, 0, wire);
        layout.write(instance, 1, public);
        for chunk in 0..self.readers.div_ceil(self.slots) {
            let instance = layout.instance(reader);
            let used = self.slots.min(self.readers - chunk * self.slots);
            (0..used).for_each(|slot| layout.read(instance, slot, wire));
            (used..self.slots).for_each(|slot| layout.unused(instance, slot));
        }
        layout.build()
    }

    fn execute(&self, input: &Fr, values: &mut WireValues) -> Result<(), CircuitError> {
        let layout = self.layout()?;
        let wires: Vec<_> = layout.wires_of(InstanceId::from_index(0)).flatten().collect();
        wires.into_iter().for_each(|w| values.set(w, *input));
        for instance in layout.instance_ids().skip(1) {
            for (slot, wire) in layout.wires_of(instance).enumerate() {
                if wire.is_none() {
                    values.set_unused(instance, slot, *input);
                }
            }
        }
        Ok(())
    }

    fn private_input(&self, _: &Fr, (): &(), _: InstanceId) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(&self, subcircuit: &Subcircuit, _: Option<&()>) -> Result<(), SynthesisError> {
        for pair in subcircuit.slots().windows(2) {
            pair[0].enforce_equal(&pair[1])?;
        }
        Ok(())
    }
}
