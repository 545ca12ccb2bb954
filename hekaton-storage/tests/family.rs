//! Families on disk: what is derived from them, and what is refused (adversarial test 84).

use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{
    FamilyKey, Fr, LocalEngine, ProveOptions, SetupOptions, derive, prove, setup_family,
    verify_with_test_keys,
};
use hekaton_storage::{
    FamilyError, FamilyStore, KeyStore, KeyStoreError, check_family, check_keys,
};
use hekaton_testing::Squares;
use std::convert::Infallible;
use std::path::Path;

fn engine() -> LocalEngine {
    LocalEngine::new(None).unwrap()
}

fn options() -> SetupOptions {
    SetupOptions::new("squares").insecure_seed(1)
}

/// A family of chains with up to 6 subcircuits, on disk.
fn write(path: &Path) -> hekaton_storage::FamilyManifest {
    let circuit = Squares::new(&[0, 1]);
    let prepared = PreparedCircuit::new(&circuit).unwrap();
    let mut store = FamilyStore::create(path).unwrap();
    let keep = |key: ProvingKey| store.proving_key(&key);
    let family = setup_family(&prepared, 6, &engine(), &options(), keep, |_| {}).unwrap();
    store.finish(&family).unwrap()
}

#[test]
fn keys_are_derived_in_memory_and_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family");
    let manifest = write(&path);
    assert_eq!(FamilyStore::manifest(&path).unwrap(), manifest);
    assert_eq!((manifest.max_instances, manifest.types.len()), (6, 2));
    for kinds in [&[0, 1, 1, 0, 1][..], &[1, 0], &[0]] {
        let circuit = Squares::new(kinds);
        let prepared = PreparedCircuit::new(&circuit).unwrap();
        let (of_family, family) = FamilyStore::open(&path).unwrap();
        let family = (&of_family, &family);
        let (manifest, keys) =
            FamilyStore::derive(&path, family, &prepared, "{\"n\":1}", &engine()).unwrap();
        assert_eq!(manifest.types.iter().map(|t| t.instances).sum::<usize>(), kinds.len());
        let input = Fr::from(5u64);
        let run = prove(&circuit, &input, &keys, &engine(), &ProveOptions::new()).unwrap();
        let (_, vk) = derive(family.1, &prepared, "{\"n\":1}", &engine()).unwrap();
        assert_eq!(vk.to_bytes(), keys.verifying.to_bytes());
        let verdict = verify_with_test_keys(&vk, &run.public_values, run.proof.as_bytes());
        assert_eq!(verdict, Ok(()));
        // The same as a key store of their own, which passes every check of one.
        let out = folder.path().join(format!("derived-{}", kinds.len()));
        let mut store = KeyStore::create(&out).unwrap();
        let written =
            FamilyStore::derive_into(&path, family, &prepared, "{\"n\":1}", &engine(), &mut store)
                .unwrap();
        assert!(!out.exists());
        store.publish().unwrap();
        let (on_disk, keys) = KeyStore::open(&out).unwrap();
        assert_eq!((&keys.verifying, written.to_bytes()), (&vk, vk.to_bytes()));
        assert_eq!(on_disk.verifying_key_digest, manifest.verifying_key_digest);
        assert_eq!(on_disk.parameters, serde_json::json!({ "n": 1 }));
        let wiring = prepared.layout().wiring(Masking::Masked);
        check_keys(&keys, Some(&wiring), &engine(), |_| {}).unwrap();
    }
    // It is not the keys of one circuit, and is not overwritten.
    let error = KeyStore::open(&path).map(drop).unwrap_err();
    assert!(matches!(error, KeyStoreError::Family { .. }), "{error}");
    for error in [
        FamilyStore::create(&path).map(drop).unwrap_err(),
        KeyStore::create(&path).map(drop).unwrap_err(),
    ] {
        assert!(error.to_string().contains("already holds keys"), "{error}");
    }
}

#[test]
fn damaged_families_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family");
    write(&path);
    let circuit = Squares::new(&[0, 1]);
    let refusal = || {
        let prepared = PreparedCircuit::new(&circuit).unwrap();
        let (manifest, family) = match FamilyStore::open(&path) {
            Ok(opened) => opened,
            Err(error) => return error.to_string(),
        };
        let opened = (&manifest, &family);
        match FamilyStore::derive(&path, opened, &prepared, "{}", &engine()).map(drop) {
            Err(FamilyError::Store(error)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    // Each claim of the manifest.
    let manifest = path.join("family.json");
    let good = std::fs::read_to_string(&manifest).unwrap();
    let found: serde_json::Value = serde_json::from_str(&good).unwrap();
    let changes = [
        ("format_version", serde_json::json!(2), "format version 2"),
        ("curve", "BN254".into(), "contradict"),
        ("circuit", "other".into(), "contradict"),
        ("parameters", serde_json::json!({ "a": 1 }), "contradict"),
        ("max_instances", 7.into(), "contradict"),
        ("zero_knowledge", false.into(), "contradict"),
        ("family_digest", "00".into(), "contradict"),
        ("family_key_digest", "00".into(), "not a digest"),
        ("types", serde_json::json!([]), "contradict"),
        ("trust", "everybody".into(), "contradict"),
        ("written_by", "\u{1b}[2J".into(), "control characters"),
    ];
    for (name, value, expected) in changes {
        let mut changed = found.clone();
        changed[name] = value;
        std::fs::write(&manifest, changed.to_string()).unwrap();
        let why = refusal();
        assert!(why.contains(expected), "{name}: {why}");
    }
    let mut changed = found.clone();
    changed["types"][0]["name"] = "../squares-0".into();
    std::fs::write(&manifest, changed.to_string()).unwrap();
    assert!(refusal().contains("cannot name a type"));
    let mut changed = found.clone();
    changed["types"][0]["instances"] = 1.into();
    std::fs::write(&manifest, changed.to_string()).unwrap();
    assert!(refusal().contains("has instances"));
    std::fs::write(&manifest, &good[..good.len() / 2]).unwrap();
    assert!(refusal().contains("is damaged"));
    std::fs::write(&manifest, &good).unwrap();
    // One byte in each section, and in a proving key.
    for name in ["family.key", "types/squares-1.pk"] {
        let file = path.join(name);
        let bytes = std::fs::read(&file).unwrap();
        for section in hekaton_core::keys::inspect_sections(&file).unwrap().2 {
            let mut changed = bytes.clone();
            changed[usize::try_from(section.offset).unwrap()] ^= 1;
            std::fs::write(&file, &changed).unwrap();
            let why = refusal();
            assert!(why.contains("does not match the table"), "{name} {}: {why}", section.name);
        }
        std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        assert!(refusal().contains("is damaged"), "{name}");
        std::fs::write(&file, &bytes).unwrap();
    }
    std::fs::remove_file(path.join("types/squares-0.pk")).unwrap();
    assert!(refusal().contains("squares-0.pk"));
}

/// A family file is mapped, so somebody who can write to it can change it after its digest was checked.
/// What was used must have the digest that was checked.
#[test]
#[cfg(unix)]
fn a_family_that_changes_after_it_was_opened_derives_nothing() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("family");
    write(&path);
    let file = path.join("family.key");
    let circuit = Squares::new(&[0, 1]);
    let prepared = PreparedCircuit::new(&circuit).unwrap();
    let (manifest, family) = FamilyStore::open(&path).unwrap();
    let opened = (&manifest, &family);
    let derived = || FamilyStore::derive(&path, opened, &prepared, "{}", &engine()).map(drop);
    let verifying =
        || FamilyStore::derive_verifying(&path, opened, &prepared, "{}", &engine()).map(drop);
    derived().unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let writer = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    for section in hekaton_core::keys::inspect_sections(&file).unwrap().2 {
        // The header was read when the family was opened, and is not read again.
        if section.name == "header" {
            continue;
        }
        // The first element, and the last: of the powers it is one that this circuit does not use.
        for at in [section.offset + 8, section.offset + section.bytes - 96] {
            writer.write_all_at(&[0x55; 8], at).unwrap();
            for result in [derived(), verifying()] {
                let changed = matches!(result, Err(FamilyError::Changed { .. }));
                assert!(changed, "section {}: {result:?}", section.name);
            }
            let before = usize::try_from(at).unwrap();
            writer.write_all_at(&bytes[before..before + 8], at).unwrap();
        }
    }
    derived().unwrap();
}

/// The keys of a family in memory.
fn family() -> (FamilyKey, Vec<ProvingKey>) {
    let circuit = Squares::new(&[0, 1]);
    let prepared = PreparedCircuit::new(&circuit).unwrap();
    let mut types = Vec::new();
    let keep = |key| {
        types.push(key);
        Ok::<_, Infallible>(())
    };
    (setup_family(&prepared, 6, &engine(), &options(), keep, |_| {}).unwrap(), types)
}

/// Adversarial test 84: a changed point of each section of a family. Guards: the relations of
/// `keys verify`.
#[test]
fn a84_changed_points_are_found() {
    let (key, types) = family();
    let report = check_family(&key, &types, &engine(), |_| {}).unwrap();
    assert!(report.points > 100 && report.relations > 25, "{report:?}");
    let says = |(key, types): &(FamilyKey, Vec<ProvingKey>)| {
        check_family(key, types, &engine(), |_| {}).unwrap_err().to_string()
    };
    // IC of the constant 1, of the challenge g, and of a scaled address: variables 0 to 2; those of
    // multiplicities follow after 5 slots.
    for (section, at, expected) in [
        ("phi", 3, "phi^"),
        ("ic", 0, "gamma IC_j"),
        ("ic", 1, "gamma IC_j"),
        ("ic", 2, "gamma IC_j"),
        ("ic", 7, "IC_mu_j"),
    ] {
        let mut keys = family();
        let mut points = keys.0.sections().get::<G1Point>(section).unwrap().to_vec();
        points[at] = points[at].add(&G1Point::generator());
        keys.0.sections_mut().replace(section, points);
        let why = says(&keys);
        assert!(why.contains(expected), "{section}: {why}");
    }
    let mut keys = family();
    let mut points = keys.0.psi().unwrap().to_vec();
    points[5] = points[5].add(&G2Point::generator());
    keys.0.sections_mut().replace("psi", points);
    assert!(says(&keys).contains("psi^"));
    let mut keys = family();
    let gamma = keys.0.gamma().unwrap().add(&G2Point::generator());
    keys.0.sections_mut().replace("gamma", vec![gamma]);
    assert!(says(&keys).contains("gamma IC_j"));
    for (element, expected) in [(0, "delta is that of"), (1, "eta is the same")] {
        let mut keys = family();
        let mut elements = keys.0.elements().unwrap().to_vec();
        elements[1][element] = elements[1][element].add(&G2Point::generator());
        keys.0.sections_mut().replace("elements", elements);
        let why = says(&keys);
        assert!(why.contains(expected), "{why}");
    }
    // One delta for two types, and the proving keys of other types.
    let mut keys = family();
    let mut elements = keys.0.elements().unwrap().to_vec();
    elements[1][0] = elements[0][0];
    keys.0.sections_mut().replace("elements", elements);
    assert!(says(&keys).contains("are distinct"));
    let mut keys = family();
    keys.1.reverse();
    assert!(says(&keys).contains("those of the family's types"));
    // Theta replaced by gamma.
    let mut keys = family();
    let mut elements = keys.0.elements().unwrap().to_vec();
    elements[0][2] = *keys.0.gamma().unwrap();
    keys.0.sections_mut().replace("elements", elements);
    assert!(says(&keys).contains("e(K, Theta)"));
}

/// Adversarial test 80: families that are consistent in themselves, with one thing changed. Guards: the
/// digest that a verifier pins.
#[test]
fn a80_changed_families_have_another_digest() {
    let folder = tempfile::tempdir().unwrap();
    let genuine = write(&folder.path().join("genuine")).family_digest;
    let changed = |name: &str, change: &dyn Fn(&mut FamilyKey)| {
        let (mut key, types) = family();
        change(&mut key);
        let path = folder.path().join(name);
        let mut store = FamilyStore::create(&path).unwrap();
        types.iter().for_each(|key| store.proving_key(key).unwrap());
        let claimed = store.finish(&key).unwrap().family_digest;
        let (_, key) = FamilyStore::open(&path).unwrap();
        assert_eq!(claimed, hex::encode(key.digest().unwrap()), "{name}");
        claimed
    };
    assert_eq!(changed("the same", &|_| {}), genuine);
    let power = changed("phi", &|key| {
        let mut points = key.phi().unwrap().to_vec();
        points[2] = G1Point::sum(&[]);
        key.sections_mut().replace("phi", points);
    });
    assert_ne!(power, genuine);
    // The digest in the manifest of a genuine family does not make another one pass.
    let path = folder.path().join("phi/family.json");
    let text = std::fs::read_to_string(&path).unwrap().replace(&power, &genuine);
    std::fs::write(&path, text).unwrap();
    let error = FamilyStore::open(&folder.path().join("phi")).map(drop).unwrap_err();
    assert!(error.to_string().contains("contradict family.key"), "{error}");
}
