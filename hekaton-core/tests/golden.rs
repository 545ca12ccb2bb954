//! Golden files: a proof and its verifying key of the current format version must keep verifying,
//! byte for byte, and a verifying key of version 1 is refused by name.
//!
//! A change of the protocol or of an encoding breaks this test. The version must then change, and
//! new files are added next to the old ones: `HEKATON_WRITE_GOLDEN=1 cargo test -p hekaton-core
//! --test golden`.

use hekaton_core::circuit::PreparedCircuit;
use hekaton_core::{
    Fr, LocalEngine, ProveOptions, ProvenRun, ProverKeys, Randomness, SetupOptions, VerifyingKey,
    VerifyingKeyError, derive, prove, setup, setup_family, verify_with_test_keys,
};
use hekaton_testing::{Digits, Histogram, Squarings};
use std::convert::Infallible;
use std::path::PathBuf;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Reads the golden files of a version. Today's keys and proof from the same seeds must have the same
/// bytes; old proofs must verify today, which the caller checks.
fn same_bytes(version: &str, keys: &ProverKeys, run: &ProvenRun) -> (VerifyingKey, Vec<u8>) {
    let [key, proof] = ["key", "proof"].map(|what| golden(&format!("{version}.{what}")));
    if std::env::var_os("HEKATON_WRITE_GOLDEN").is_some() {
        std::fs::write(&key, keys.verifying.to_bytes()).unwrap();
        std::fs::write(&proof, run.proof.as_bytes()).unwrap();
    }
    let (key, proof) = (std::fs::read(&key).unwrap(), std::fs::read(&proof).unwrap());
    // Not assert_eq, which would print them.
    assert!(keys.verifying.to_bytes() == key, "{version}.key");
    assert!(run.proof.as_bytes() == proof, "{version}.proof");
    (VerifyingKey::from_bytes(&key).unwrap(), proof)
}

/// Circuits without buses: proof and key from fixed seeds.
#[test]
fn version_2() {
    let public = [3u64, 81].map(Fr::from);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&Squarings, &engine, &SetupOptions::new("golden").insecure_seed(1)).unwrap();
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let run = prove(&Squarings, &Fr::from(3u64), &keys, &engine, &options).unwrap();
    assert_eq!(run.public_values, public);

    let (key, proof) = same_bytes("v2", &keys, &run);
    assert_eq!(verify_with_test_keys(&key, &public, &proof), Ok(()));
    let wrong = [public[0], Fr::from(82u64)];
    assert!(verify_with_test_keys(&key, &wrong, &proof).is_err());
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

    let (key, proof) = same_bytes("v3", &keys, &run);
    assert_eq!(verify_with_test_keys(&key, &public, &proof), Ok(()));
    // The key of a setup with the same seed, and the digest of the family.
    let made = VerifyingKey::from_bytes(&std::fs::read(golden("v2.key")).unwrap()).unwrap();
    let mut derived = key;
    assert!(derived.family.take().is_some());
    assert_eq!(derived, made);
}

/// Circuits with buses: a memory, a table, and ranges.
#[test]
fn version_4() {
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    // What the sum of squares starts from, the sum, the digit, its count, and what is left of it.
    let public = [0u64, 133, 1, 2, 0].map(Fr::from);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&histogram, &engine, &SetupOptions::new("golden").insecure_seed(1)).unwrap();
    let options = ProveOptions::new().randomness(Randomness::seeded_not_zero_knowledge(1));
    let run = prove(&histogram, &input, &keys, &engine, &options).unwrap();
    assert_eq!(run.public_values, public);

    let wrong = public.map(|x| if x == Fr::from(2u64) { Fr::from(3u64) } else { x });
    // Of the time when the rows of this table were pairs of the layout.
    let read = |name| std::fs::read(golden(name)).unwrap();
    let of_pairs =
        (VerifyingKey::from_bytes(&read("v4-pairs.key")).unwrap(), read("v4-pairs.proof"));
    for (key, proof) in [same_bytes("v4", &keys, &run), of_pairs] {
        assert_eq!(verify_with_test_keys(&key, &public, &proof), Ok(()));
        assert!(verify_with_test_keys(&key, &wrong, &proof).is_err());
    }
}

/// Proofs of version 1, whose elements of the target group were longer, are refused by name.
#[test]
fn proofs_of_version_1_are_refused() {
    let public = [3u64, 81].map(Fr::from);
    let key = VerifyingKey::from_bytes(&std::fs::read(golden("v2.key")).unwrap()).unwrap();
    let proof = std::fs::read(golden("format-1.proof")).unwrap();
    let error = verify_with_test_keys(&key, &public, &proof).unwrap_err();
    assert!(error.to_string().contains("the proof has format version 1"), "{error}");
}

/// Keys of version 1 are not bound to their circuit's code: they are refused, with the version in
/// the message rather than as damage.
#[test]
fn version_1_is_refused() {
    let error = VerifyingKey::from_bytes(&std::fs::read(golden("v1.key")).unwrap()).unwrap_err();
    assert_eq!(error, VerifyingKeyError::Version { found: 1 });
    assert!(error.to_string().contains("format version 1"), "{error}");
}
