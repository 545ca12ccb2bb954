//! Epochs that are proven and verified.

use super::{change, index, tree_of, witness_of};
use crate::{Epochs, Tip};
use hekaton_circuit::{Fr, PreparedCircuit};
use hekaton_core::{
    LocalEngine, ProveOptions, ProverKeys, SetupOptions, derive, prove, setup_family, verify,
};
use hekaton_directory::{Profile, Record};
use std::convert::Infallible;

/// Epochs of any number of steps are proven with the keys of one family.
#[test]
fn epochs_are_proven_with_derived_keys() {
    let profile = Profile::Compress;
    let tree = tree_of(profile, &[vec![change(index(1, 3), 1)]]);
    let engine = LocalEngine::new(None).unwrap();
    let circuit = |subcircuits| Epochs { profile, steps: 1, subcircuits };
    let template = circuit(1);
    let template = PreparedCircuit::new(&template).unwrap();
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    let options = SetupOptions::new("epochs");
    let family = setup_family(&template, 8, &engine, &options, keep, |_| {}).unwrap();
    let (witness, last) = witness_of(&tree, &[vec![change(index(1, 3), 2)]]);
    let circuit = circuit(witness.steps.len());
    let prepared = PreparedCircuit::new(&circuit).unwrap();
    let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine).unwrap();
    let keys = ProverKeys { verifying, aggregation, types };
    let input = circuit.run(&witness).unwrap();
    let run = prove(&circuit, &input, &keys, &engine, &ProveOptions::new()).unwrap();
    verify(&keys.verifying, &run.public_values, run.proof.as_bytes()).unwrap();
    let chain = profile.combine(&witness.chain, &last.root());
    let from = Tip { epoch: 1, root: tree.root(), chain: witness.chain };
    let to = Tip { epoch: 2, root: last.root(), chain };
    assert_eq!(run.public_values, Tip::public_values(&from, &to));
    // Auditors have them from records.
    let record = |tip: Tip| Record {
        parameters: [0; 32],
        epoch: tip.epoch,
        root: tip.root,
        before: [0; 32],
        chain: tip.chain,
        leaves: 1,
        log_size: 1,
        log_root: [0; 32],
        records: [0; 32],
        closed: 0,
    };
    let values = [from, to].map(|tip| record(tip).public_values().map(Fr::from));
    assert_eq!(run.public_values, values.concat());
    // The proof does not verify with another record.
    for other in [Tip { epoch: 3, ..to }, Tip { root: [1; 32], ..to }, Tip { chain: [1; 32], ..to }]
    {
        let values = Tip::public_values(&from, &other);
        assert!(verify(&keys.verifying, &values, run.proof.as_bytes()).is_err());
    }
}
