//! Golden files: a proof and its verifying key of each format version must keep verifying, byte for
//! byte.
//!
//! A change of the protocol or of an encoding breaks this test. The version must then change, and
//! new files are added next to the old ones: `HEKATON_WRITE_GOLDEN=1 cargo test -p hekaton-core
//! --test golden`.

use hekaton_core::{
    Fr, LocalEngine, ProveOptions, Randomness, SetupOptions, VerifyingKey, prove, setup, verify,
};
use hekaton_testing::Squarings;
use std::path::PathBuf;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

#[test]
fn version_1() {
    let public = [3u64, 81].map(Fr::from);
    let keys = setup(&Squarings, &SetupOptions::new("golden").insecure_seed(1)).unwrap();
    let engine = LocalEngine::new(None).unwrap();
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let run = prove(&Squarings, &Fr::from(3u64), &keys, &engine, &options).unwrap();
    assert_eq!(run.public_values, public);

    let (key_file, proof_file) = (golden("v1.key"), golden("v1-blinding-2.proof"));
    if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
        std::fs::write(&key_file, keys.verifying.to_bytes()).unwrap();
        std::fs::write(&proof_file, run.proof.as_bytes()).unwrap();
    }
    // Old proofs must verify today; the first one predates blinding that depends on the whole
    // assignment.
    let old_key = VerifyingKey::from_bytes(&std::fs::read(&key_file).unwrap()).unwrap();
    for file in [golden("v1.proof"), proof_file.clone()] {
        let old_proof = std::fs::read(&file).unwrap();
        assert_eq!(verify(&old_key, &public, &old_proof), Ok(()));
        assert!(verify(&old_key, &[public[0], Fr::from(82u64)], &old_proof).is_err());
    }
    // Today's keys and proof from the same seeds must have the same bytes.
    assert_eq!(keys.verifying, old_key);
    assert_eq!(run.proof.as_bytes(), std::fs::read(&proof_file).unwrap());
}
