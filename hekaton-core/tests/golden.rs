//! Golden files: a proof and its verifying key of the current format version must keep verifying,
//! byte for byte, and a verifying key of version 1 is refused by name.
//!
//! A change of the protocol or of an encoding breaks this test. The version must then change, and
//! new files are added next to the old ones: `HEKATON_WRITE_GOLDEN=1 cargo test -p hekaton-core
//! --test golden`.

use hekaton_core::circuit::PreparedCircuit;
use hekaton_core::{
    Fr, LocalEngine, ProveOptions, ProverKeys, Randomness, SetupOptions, VerifyingKey,
    VerifyingKeyError, derive, prove, setup, setup_family, verify_with_test_keys,
};
use hekaton_testing::Squarings;
use std::convert::Infallible;
use std::path::PathBuf;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The current version: proof and key from fixed seeds.
#[test]
fn version_2() {
    let public = [3u64, 81].map(Fr::from);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&Squarings, &engine, &SetupOptions::new("golden").insecure_seed(1)).unwrap();
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let run = prove(&Squarings, &Fr::from(3u64), &keys, &engine, &options).unwrap();
    assert_eq!(run.public_values, public);

    let (key_file, proof_file) = (golden("v2.key"), golden("v2.proof"));
    if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
        std::fs::write(&key_file, keys.verifying.to_bytes()).unwrap();
        std::fs::write(&proof_file, run.proof.as_bytes()).unwrap();
    }
    // Old proofs must verify today.
    let old_key = VerifyingKey::from_bytes(&std::fs::read(&key_file).unwrap()).unwrap();
    let old_proof = std::fs::read(&proof_file).unwrap();
    assert_eq!(verify_with_test_keys(&old_key, &public, &old_proof), Ok(()));
    let wrong = [public[0], Fr::from(82u64)];
    assert!(verify_with_test_keys(&old_key, &wrong, &old_proof).is_err());
    // Today's keys and proof from the same seeds must have the same bytes.
    assert_eq!(keys.verifying, old_key);
    assert_eq!(run.proof.as_bytes(), old_proof);
}

/// Keys that are derived from a family: the same from fixed seeds.
#[test]
fn version_3() {
    let public = [3u64, 81].map(Fr::from);
    let engine = LocalEngine::new(None).unwrap();
    let prepared = PreparedCircuit::new(&Squarings).unwrap();
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    let options = SetupOptions::new("golden").insecure_seed(1);
    let family = setup_family(&prepared, 9, &engine, &options, keep, |_| {}).unwrap();
    let (aggregation, verifying) = derive(&family, &prepared, "{}", &engine).unwrap();
    let keys = ProverKeys { verifying, aggregation, types };
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let run = prove(&Squarings, &Fr::from(3u64), &keys, &engine, &options).unwrap();
    assert_eq!(run.public_values, public);

    let (key_file, proof_file) = (golden("v3.key"), golden("v3.proof"));
    if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
        std::fs::write(&key_file, keys.verifying.to_bytes()).unwrap();
        std::fs::write(&proof_file, run.proof.as_bytes()).unwrap();
    }
    assert_eq!(keys.verifying.to_bytes(), std::fs::read(&key_file).unwrap());
    let old_proof = std::fs::read(&proof_file).unwrap();
    assert_eq!(verify_with_test_keys(&keys.verifying, &public, &old_proof), Ok(()));
    assert_eq!(run.proof.as_bytes(), old_proof);
    // The key of a setup with the same seed, and the digest of the family.
    let made = VerifyingKey::from_bytes(&std::fs::read(golden("v2.key")).unwrap()).unwrap();
    let mut derived = keys.verifying;
    assert!(derived.family.take().is_some());
    assert_eq!(derived, made);
}

/// Proofs of earlier programs verify under their keys: of those whose rows had the inverse on the
/// side of B, and of those that also derived masks in another way.
#[test]
fn earlier_proofs_verify() {
    let public = [3u64, 81].map(Fr::from);
    let key = std::fs::read(golden("v2-earlier-rows.key")).unwrap();
    let key = VerifyingKey::from_bytes(&key).unwrap();
    for name in ["v2-earlier-rows.proof", "v2-earlier-masks.proof"] {
        let proof = std::fs::read(golden(name)).unwrap();
        assert_eq!(verify_with_test_keys(&key, &public, &proof), Ok(()), "{name}");
        let wrong = [public[0], Fr::from(82u64)];
        assert!(verify_with_test_keys(&key, &wrong, &proof).is_err(), "{name}");
    }
}

/// Keys of version 1 are not bound to their circuit's code: they are refused, with the version in
/// the message rather than as damage.
#[test]
fn version_1_is_refused() {
    let error = VerifyingKey::from_bytes(&std::fs::read(golden("v1.key")).unwrap()).unwrap_err();
    assert_eq!(error, VerifyingKeyError::Version { found: 1 });
    assert!(error.to_string().contains("format version 1"), "{error}");
}
