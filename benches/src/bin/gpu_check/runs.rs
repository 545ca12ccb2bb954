//! Whole proofs with a GPU.

use crate::say;
use ark_ff::{Field, UniformRand};
use ark_r1cs_std::GR1CSVar;
use ark_r1cs_std::alloc::AllocVar;
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::fp::FpVar;
use ark_r1cs_std::prelude::Boolean;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireId,
    WireValues,
};
use hekaton_core::protocol::accelerator::Accelerator;
use hekaton_core::{LocalEngine, SetupOptions, setup};
use hekaton_gpu::check::prove_with;
use hekaton_gpu::{Device, Gpu};
use hekaton_testing::{Digits, Histogram, Squarings};
use serde_json::json;
use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

/// Proofs of the CPU, which the tests of `hekaton-core` compare, too.
const GOLDEN: [&[u8]; 2] = [
    include_bytes!("../../../../hekaton-core/tests/golden/v2.proof"),
    include_bytes!("../../../../hekaton-core/tests/golden/v4.proof"),
];

/// The subcircuits of the long run, and the rows of each: the memory check adds some hundreds, below 2^17.
const PARTS: usize = 1000;
const ROWS: usize = (1 << 17) - 1000;

fn gpu(
    device: &Arc<dyn Device>,
    number: usize,
) -> Result<Vec<Box<dyn Accelerator>>, hekaton_gpu::Error> {
    Ok(vec![Box::new(Gpu::new(Arc::clone(device), number, None)?)])
}

/// Proofs with the GPU have the bytes of those of the CPU.
pub(crate) fn golden(device: &Arc<dyn Device>, number: usize) -> Result<(), Box<dyn Error>> {
    check(device, number, &Squarings, &Fr::from(3u64), GOLDEN[0])?;
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    check(device, number, &histogram, &input, GOLDEN[1])
}

fn check<C: Circuit>(
    device: &Arc<dyn Device>,
    number: usize,
    circuit: &C,
    input: &C::Input,
    golden: &[u8],
) -> Result<(), Box<dyn Error>> {
    let engine = LocalEngine::new(None)?;
    let keys = setup(circuit, &engine, &SetupOptions::new("golden").insecure_seed(1))?;
    let proven = prove_with(circuit, input, &keys, &engine, gpu(device, number)?)?;
    if !proven.notices.is_empty() || proven.answers() == 0 {
        return Err(format!("the GPU was not used: {:?}", proven.notices).into());
    }
    if proven.run.proof.as_bytes() != golden {
        return Err("a proof with the GPU has other bytes than the CPU's".into());
    }
    Ok(())
}

/// A chain of subcircuits of two kinds in turn: one with full-size values, and one with mostly bits.
struct Alternating {
    parts: usize,
    rows: usize,
}

impl Circuit for Alternating {
    type Input = Fr;
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
        let kinds = ["full-size", "bits"].map(|name| layout.subcircuit_type(name, 2));
        let mut wires = vec![layout.public_input("x", 0)];
        wires.extend((1..self.parts).map(|i| layout.wire("x", i as u64)));
        wires.push(layout.public_output("x", self.parts as u64));
        for (pair, kind) in wires.windows(2).zip(kinds.into_iter().cycle()) {
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
        for (i, wire) in (0u64..).zip(wires) {
            values.set(*wire, *input + Fr::from(i));
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
        let system = x.cs();
        let mut square = x.clone();
        for row in 0..self.rows {
            // A bit in 19 of 20 rows of the second kind, as in a circuit of SHA-256.
            if subcircuit.kind().index() == 1 && row % 20 != 0 {
                let _ = Boolean::new_witness(system.clone(), || Ok(row % 3 == 0))?;
            } else {
                square = &square * &square;
            }
        }
        let one = FpVar::Constant(Fr::ONE);
        (x + one).enforce_equal(subcircuit.slot(1)?)
    }
}

/// Makes a proof of many subcircuits of two kinds, aggregation included.
pub(crate) fn end_to_end(device: &Arc<dyn Device>, number: usize) -> Result<(), Box<dyn Error>> {
    let (circuit, engine) = (Alternating { parts: PARTS, rows: ROWS }, LocalEngine::new(None)?);
    let start = Instant::now();
    let keys = setup(&circuit, &engine, &SetupOptions::new("gpu-check").insecure_seed(1))?;
    let setup = start.elapsed().as_secs_f64();
    let input = Fr::rand(&mut rand::thread_rng());
    let start = Instant::now();
    let proven = prove_with(&circuit, &input, &keys, &engine, gpu(device, number)?)?;
    let seconds = start.elapsed().as_secs_f64();
    if !proven.notices.is_empty() {
        return Err(format!("the GPU was not used all along: {:?}", proven.notices).into());
    }
    let constraints = keys.types.iter().map(|key| key.constraints()).sum::<usize>() * PARTS / 2;
    let by_device: Vec<_> =
        (proven.devices.iter()).map(serde_json::to_value).collect::<Result<_, _>>()?;
    let phases: Vec<_> =
        proven.phases.iter().map(|(phase, seconds)| json!([phase.name(), seconds])).collect();
    say(&json!({
        "measure": "a whole proof of two kinds of subcircuits in turn", "subcircuits": PARTS, "constraints": constraints,
        "seconds_of_setup": setup, "seconds": seconds, "million_constraints_per_second": constraints as f64 / seconds / 1e6,
        "phases": phases, "device": by_device,
    }));
    Ok(())
}
