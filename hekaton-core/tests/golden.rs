//! Golden files: a proof and its verifying key of each format version must keep verifying, byte for byte.
//!
//! A change of the protocol or of an encoding breaks this test; then the version must change and new files are added
//! beside the old ones: `HEKATON_WRITE_GOLDEN=1 cargo test -p hekaton-core --test golden`.

use ark_r1cs_std::eq::EqGadget;
use ark_relations::gr1cs::SynthesisError;
use hekaton_core::circuit::{Circuit, CircuitError, InstanceId, Layout, LayoutError, Subcircuit, WireValues};
use hekaton_core::{
    Fr, LocalEngine, MemoryKeys, ProveOptions, Randomness, SetupOptions, VerifyingKey, prove, setup, verify,
};
use std::path::PathBuf;

/// Three subcircuits of two types: x -> x^2 -> x^4 -> copy of it.
struct Squarings;

impl Circuit for Squarings {
    type Input = Fr;
    type Trace = ();
    type Private = ();

    fn layout(&self) -> Result<Layout, LayoutError> {
        let mut layout = Layout::builder();
        let (square, copy) = (layout.subcircuit_type("square", 2), layout.subcircuit_type("copy", 2));
        let x = layout.public_input("x", 0);
        let inner = [layout.wire("x", 1), layout.wire("x", 2)];
        let y = layout.public_output("y", 0);
        for (kind, from, to) in [(square, x, inner[0]), (square, inner[0], inner[1]), (copy, inner[1], y)] {
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

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn version_1() {
    let public = [3u64, 81].map(Fr::from);
    let mut keys = MemoryKeys::default();
    let vk = setup(&Squarings, &SetupOptions::new("golden", "{}").insecure_seed(1), &mut keys, |_| {}).unwrap();
    let keys = keys.into_keys().unwrap();
    let engine = LocalEngine::new(None).unwrap();
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let run = prove(&Squarings, &Fr::from(3u64), &keys, &engine, &options).unwrap();
    assert_eq!(run.public_values, public);

    let (key_file, proof_file) = (golden("v1.key"), golden("v1-blinding-2.proof"));
    if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
        std::fs::write(&key_file, vk.to_bytes()).unwrap();
        std::fs::write(&proof_file, run.proof.as_bytes()).unwrap();
    }
    // what was written then must verify now; the first one was made before the blinding depended on the whole assignment
    let old_key = VerifyingKey::from_bytes(&std::fs::read(&key_file).unwrap()).unwrap();
    for file in [golden("v1.proof"), proof_file.clone()] {
        let old_proof = std::fs::read(&file).unwrap();
        assert_eq!(verify(&old_key, &public, &old_proof), Ok(()));
        assert!(verify(&old_key, &[public[0], Fr::from(82u64)], &old_proof).is_err());
    }
    // .. and what is made now from the same seeds must be the same bytes
    assert_eq!(vk, old_key);
    assert_eq!(run.proof.as_bytes(), std::fs::read(&proof_file).unwrap());
}
