//! Circuits in which one wire has many readers.

use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireId,
    WireValues,
};

/// A public input with this number of readers.
#[derive(Clone, Copy, Debug)]
pub struct Readers(pub usize);

impl Circuit for Readers {
    type Input = Fr;
    type Plan = WireId;
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<WireId, LayoutError> {
        let kind = layout.subcircuit_type("reader", 1);
        let wire = layout.public_input("x", 0);
        for _ in 0..self.0 {
            let instance = layout.instance(kind);
            layout.read(instance, 0, wire);
        }
        Ok(wire)
    }

    fn execute(
        &self,
        wire: &WireId,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        values.set(*wire, *input);
        Ok(())
    }

    fn private_input(
        &self,
        _: &WireId,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &WireId,
        subcircuit: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
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

/// The wires of [`FanOut`], and its slots without wires.
#[derive(Clone, Debug)]
pub struct FanOutPlan {
    wires: [WireId; 2],
    unused: Vec<(InstanceId, usize)>,
}

impl Circuit for FanOut {
    type Input = Fr;
    type Plan = FanOutPlan;
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<FanOutPlan, LayoutError> {
        let writer = layout.subcircuit_type("writer", 2);
        let reader = layout.subcircuit_type("reader", self.slots);
        if self.slots == 1 {
            // Constraints compare neighbors, and this slot has none.
            layout.unconstrained(reader, 0);
        }
        let public = layout.public_output("copy", 0);
        let wire = layout.wire("wire", 0);
        let instance = layout.instance(writer);
        layout.write(instance, 0, wire);
        layout.write(instance, 1, public);
        let mut unused = Vec::new();
        for chunk in 0..self.readers.div_ceil(self.slots) {
            let instance = layout.instance(reader);
            let used = self.slots.min(self.readers - chunk * self.slots);
            (0..used).for_each(|slot| layout.read(instance, slot, wire));
            for slot in used..self.slots {
                layout.unused(instance, slot);
                unused.push((instance, slot));
            }
        }
        Ok(FanOutPlan { wires: [wire, public], unused })
    }

    fn execute(
        &self,
        plan: &FanOutPlan,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        plan.wires.iter().for_each(|wire| values.set(*wire, *input));
        for (instance, slot) in &plan.unused {
            values.set_unused(*instance, *slot, *input);
        }
        Ok(())
    }

    fn private_input(
        &self,
        _: &FanOutPlan,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &FanOutPlan,
        subcircuit: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
        for pair in subcircuit.slots().windows(2) {
            pair[0].enforce_equal(&pair[1])?;
        }
        Ok(())
    }
}
