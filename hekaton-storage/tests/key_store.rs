//! Key stores: written, opened, and refused when damaged, foreign, newer or in the way, with an
//! error that names the file, the place, and what to do.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::{
    Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Subcircuit, WireValues,
};
use hekaton_core::keys::inspect_sections;
use hekaton_core::{
    Fr, LocalEngine, ProveOptions, SetupOptions, prove, setup_into, verify_with_test_keys,
};
use hekaton_storage::KeyStore;
use hekaton_testing::{Readers, Root, Squares};
use std::path::{Path, PathBuf};

fn make(dir: &Path, name: &str, readers: usize, seed: u64) -> PathBuf {
    let path = dir.join(name);
    let options = SetupOptions::new("readers").insecure_seed(seed);
    let engine = LocalEngine::new(None).unwrap();
    setup_into(&Readers(readers), &engine, &options, &mut KeyStore::create(&path).unwrap(), |_| {})
        .unwrap();
    path
}

fn refused(path: &Path) -> String {
    KeyStore::open(path).unwrap_err().to_string()
}

#[test]
fn written_keys_prove_and_verify() {
    let dir = tempfile::tempdir().unwrap();
    let path = make(dir.path(), "keys", 3, 1);
    let (manifest, keys) = KeyStore::open(&path).unwrap();
    assert_eq!(
        (manifest.circuit.as_str(), manifest.instances, manifest.types.len()),
        ("readers", 3, 1)
    );
    assert_eq!(manifest.total_constraints(), 3 * keys.types[0].constraints() as u64);
    assert!(manifest.trust.contains("forge"));
    let engine = LocalEngine::new(None).unwrap();
    let run = prove(&Readers(3), &Fr::from(4u64), &keys, &engine, &ProveOptions::new()).unwrap();
    let vk = KeyStore::read_verifying_key(&path.join("verifying.key")).unwrap();
    assert_eq!(verify_with_test_keys(&vk, &[Fr::from(4u64)], run.proof.as_bytes()), Ok(()));
    // the same keys are refused for another layout
    let error =
        prove(&Readers(2), &Fr::from(4u64), &keys, &engine, &ProveOptions::new()).unwrap_err();
    assert!(error.to_string().contains("another layout"), "{error}");
}

#[test]
fn a_directory_in_use_or_in_the_way_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = make(dir.path(), "keys", 1, 1);
    assert!(KeyStore::create(&path).unwrap_err().to_string().contains("already holds keys"));
    let file = dir.path().join("file");
    std::fs::write(&file, "x").unwrap();
    assert!(KeyStore::create(&file).is_err());
    assert!(refused(&file).contains("it is a file"));
    assert!(refused(&dir.path().join("nowhere")).contains("it does not exist"));
    assert!(refused(dir.path()).contains("no manifest.json"));
    // an unfinished setup leaves neither the directory nor temporary files behind
    let unfinished = dir.path().join("unfinished");
    drop(KeyStore::create(&unfinished).unwrap());
    assert!(!unfinished.exists());
    let left: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    // an empty directory is accepted, also through a link
    std::fs::create_dir(&unfinished).unwrap();
    make(dir.path(), "unfinished", 1, 1);
    #[cfg(unix)]
    {
        std::fs::create_dir(dir.path().join("real")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("real"), dir.path().join("link")).unwrap();
        make(dir.path(), "link", 1, 1);
        assert!(KeyStore::open(&dir.path().join("real")).is_ok());
    }
}

/// A flipped bit is noticed and the error names the file, for every byte of the header and table
/// and several bytes of each section.
#[test]
fn flipped_bits_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = make(dir.path(), "keys", 2, 1);
    for file in ["types/reader.pk", "aggregation.key"] {
        let file = path.join(file);
        let good = std::fs::read(&file).unwrap();
        let (_, _, sections) = inspect_sections(&file).unwrap();
        let table = 48 + 80 * sections.len();
        let in_sections = sections.iter().filter(|s| s.bytes > 0).flat_map(|s| {
            [s.offset, s.offset + s.bytes / 2, s.offset + s.bytes - 1].map(|at| at as usize)
        });
        for at in (0..table).chain(in_sections) {
            let mut bad = good.clone();
            bad[at] ^= 4;
            std::fs::write(&file, &bad).unwrap();
            let error = refused(&path);
            assert!(error.contains(&*file.to_string_lossy()), "byte {at}: {error}");
            assert!(
                ["damaged", "not a Hekaton key", "version", "another setup", "another kind"]
                    .iter()
                    .any(|w| error.contains(w))
            );
        }
        for cut in [0, 7, 20, 47, table - 1, table, good.len() - 1] {
            std::fs::write(&file, &good[..cut]).unwrap();
            assert!(refused(&path).contains(&*file.to_string_lossy()), "cut at {cut}");
        }
        std::fs::write(&file, &good).unwrap();
        assert!(KeyStore::open(&path).is_ok());
        std::fs::remove_file(&file).unwrap();
        assert!(refused(&path).contains(&*file.to_string_lossy()));
        std::fs::write(&file, &good).unwrap();
    }
}

#[test]
fn files_of_another_setup_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (make(dir.path(), "a", 2, 1), make(dir.path(), "b", 2, 2));
    for file in ["types/reader.pk", "aggregation.key", "verifying.key"] {
        let good = std::fs::read(a.join(file)).unwrap();
        std::fs::copy(b.join(file), a.join(file)).unwrap();
        let error = refused(&a);
        assert!(error.contains("another setup") && error.contains(file), "{error}");
        std::fs::write(a.join(file), good).unwrap();
    }
    // a proving key where an aggregation key is expected
    std::fs::copy(a.join("types/reader.pk"), a.join("aggregation.key")).unwrap();
    assert!(refused(&a).contains("found proving key, expected aggregation key"));
    // a newer file, an older one, and a file of another kind
    for (file, current) in [("types/reader.pk", 3), ("aggregation.key", 3), ("verifying.key", 2)] {
        let good = std::fs::read(b.join(file)).unwrap();
        assert_eq!(good[8], current, "the version of {file}");
        for version in [0, 1, current + 6] {
            let mut other = good.clone();
            other[8] = version;
            std::fs::write(b.join(file), &other).unwrap();
            let error = refused(&b);
            assert!(error.contains(&format!("format version {version}")), "{error}");
            assert!(error.contains(file) && error.contains("run setup again"), "{error}");
        }
        std::fs::write(b.join(file), &good).unwrap();
    }
    std::fs::write(b.join("aggregation.key"), "hello").unwrap();
    assert!(refused(&b).contains("not a Hekaton key file"));
}

#[test]
fn manifests_are_checked() {
    let dir = tempfile::tempdir().unwrap();
    let path = make(dir.path(), "keys", 2, 1);
    let file = path.join("manifest.json");
    let good = std::fs::read_to_string(&file).unwrap();
    let with = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        std::fs::write(&file, good.replace(from, to)).unwrap();
        refused(&path)
    };
    for version in [1, 7] {
        let error = with("\"format_version\": 2", &format!("\"format_version\": {version}"));
        assert!(error.contains(&format!("format version {version}")), "{error}");
    }
    // A manifest of version 1 lacks the digests, but it is the version that is named.
    let digest = good.lines().find(|line| line.contains("\"r1cs_digest\"")).unwrap();
    let old = good
        .replace("\"format_version\": 2", "\"format_version\": 1")
        .replace(&format!(",\n{digest}"), "");
    std::fs::write(&file, old).unwrap();
    assert!(refused(&path).contains("format version 1"));
    // The digest of a type's constraints is that of the verifying key.
    assert!(
        with("\"r1cs_digest\": \"", "\"r1cs_digest\": \"00").contains("contradict verifying.key")
    );
    let keys = KeyStore::read_verifying_key(&path.join("verifying.key")).unwrap();
    let digest = keys.types[0].r1cs.map(|byte| format!("{byte:02x}")).concat();
    assert!(with(&digest, &"0".repeat(64)).contains("contradict verifying.key"));
    assert!(with("\"name\": \"reader\"", "\"name\": \"../reader\"").contains("cannot name a type"));
    assert!(
        with("\"circuit\": \"readers\"", "\"circuit\": \"others\"")
            .contains("contradict verifying.key")
    );
    assert!(
        with("\"zero_knowledge\": true", "\"zero_knowledge\": false")
            .contains("contradict verifying.key")
    );
    assert!(
        with("\"instances\": 2,\n  \"zero", "\"instances\": 3,\n  \"zero")
            .contains("contradict verifying.key")
    );
    assert!(with("BLS12-381", "secp256k1").contains("contradict verifying.key"));
    assert!(with("TEST KEYS", "a ceremony").contains("contradict verifying.key"));
    assert!(
        with("\"layout_digest\": \"", "\"layout_digest\": \"00")
            .contains("contradict verifying.key")
    );
    assert!(with("\"slots\": 3", "\"slots\": 4").contains("sizes of type 'reader'"));
    assert!(
        with("\"instances\": 2,\n      \"bytes", "\"instances\": 1,\n      \"bytes")
            .contains("has 2 instances")
    );
    std::fs::write(&file, &good[..good.len() / 2]).unwrap();
    assert!(refused(&path).contains("manifest.json is damaged"));
    std::fs::write(&file, &good).unwrap();
    assert!(KeyStore::open(&path).is_ok());
}

/// Squares whose second type cannot be synthesized.
struct Failing(Squares);

impl Circuit for Failing {
    type Input = Fr;
    type Plan = <Squares as Circuit>::Plan;
    type Trace = ();
    type Private = Root;

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Self::Plan, LayoutError> {
        self.0.layout(layout)
    }

    fn execute(
        &self,
        plan: &Self::Plan,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        self.0.execute(plan, input, values)
    }

    fn private_input(
        &self,
        plan: &Self::Plan,
        input: &Fr,
        (): &(),
        i: InstanceId,
    ) -> Result<Root, CircuitError> {
        self.0.private_input(plan, input, &(), i)
    }

    fn synthesize(
        &self,
        plan: &Self::Plan,
        s: &Subcircuit,
        private: Option<&Root>,
    ) -> Result<(), SynthesisError> {
        if s.kind().index() == 1 {
            return Err(SynthesisError::Unsatisfiable);
        }
        self.0.synthesize(plan, s, private)
    }
}

/// The remains of a failed setup in a store do not end up among the keys of the next one.
#[test]
fn a_store_can_be_used_again_after_a_failed_setup() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys");
    let mut store = KeyStore::create(&path).unwrap();
    let options = SetupOptions::new("squares").insecure_seed(1);
    let circuit = Squares::new(&[0, 1, 1, 0, 1]);
    let engine = LocalEngine::new(None).unwrap();
    assert!(setup_into(&Failing(circuit.clone()), &engine, &options, &mut store, |_| {}).is_err());
    setup_into(&circuit, &engine, &options, &mut store, |_| {}).unwrap();
    let (manifest, keys) = KeyStore::open(&path).unwrap();
    assert_eq!((manifest.types.len(), keys.types.len()), (2, 2));
}
