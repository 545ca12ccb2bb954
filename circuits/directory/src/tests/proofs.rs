//! Epochs that are proven and verified.

use super::{change, index, tree_of, witness_of};
use crate::{Epochs, Tip};
use hekaton_core::{LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};
use hekaton_directory::Profile;

#[test]
fn an_epoch_is_proven() {
    let tree = tree_of(Profile::Compress, &[vec![change(index(1, 3), 1)]]);
    let (witness, last) = witness_of(&tree, &[vec![change(index(1, 3), 2)]]);
    let circuit = Epochs { profile: Profile::Compress, steps: 1, subcircuits: 2 };
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit, &engine, &SetupOptions::new("epochs")).unwrap();
    let input = circuit.run(&witness).unwrap();
    let run = prove(&circuit, &input, &keys, &engine, &ProveOptions::new()).unwrap();
    verify(&keys.verifying, &run.public_values, run.proof.as_bytes()).unwrap();
    let chain = Profile::Compress.combine(&witness.chain, &last.root());
    let from = Tip { epoch: 1, root: tree.root(), chain: witness.chain };
    let to = Tip { epoch: 2, root: last.root(), chain };
    assert_eq!(run.public_values, Tip::public_values(&from, &to));
    // Of no other record.
    for other in [Tip { epoch: 3, ..to }, Tip { root: [1; 32], ..to }, Tip { chain: [1; 32], ..to }]
    {
        let values = Tip::public_values(&from, &other);
        assert!(verify(&keys.verifying, &values, run.proof.as_bytes()).is_err());
    }
}
