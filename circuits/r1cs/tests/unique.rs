//! Verdicts of `check --unique` on circuits that circom compiled: circomlib's, and kinds of faults (tests/golden/unique/make).

use hekaton_circuit::Fr;
use hekaton_circuit::unique::Verdicts;
use hekaton_r1cs::{CircuitBundle, Monolith, R1csFile, Unique, UniqueError, WitnessFile};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The number of outputs, of those that differ in a second witness, and of other values that do.
const CIRCUITS: &[(&str, [usize; 3])] = &[
    ("bits-254", [254, 0, 0]),
    ("bits-255-strict", [255, 0, 0]),
    ("bits-64", [64, 0, 0]),
    ("bits-negative", [32, 0, 0]),
    ("division", [2, 0, 0]),
    ("edwards-to-montgomery", [2, 0, 0]),
    ("greater-equal", [1, 0, 0]),
    // In the next ones, the inverse of zero is free, and reaches no output.
    ("is-equal", [1, 0, 1]),
    ("is-zero-of-0", [1, 0, 1]),
    ("is-zero-of-5", [1, 0, 0]),
    ("less-than", [1, 0, 0]),
    ("many-and", [1, 0, 0]),
    ("mimc-7", [1, 0, 0]),
    ("multiplexer-2", [2, 0, 0]),
    ("mux-2", [1, 0, 0]),
    ("one-hot", [1, 0, 1]),
    ("poseidon-1", [1, 0, 0]),
    ("small-root", [1, 0, 0]),
    ("sum-of-numbers", [10, 0, 0]),
    ("swap", [2, 0, 0]),
    ("xor", [1, 0, 0]),
    ("fault-assigned-only", [2, 1, 0]),
    ("fault-bit-not-boolean", [8, 8, 0]),
    // The bits of 77 and of 77 plus the modulus differ in 135 places.
    ("fault-bits-255", [255, 135, 0]),
    // All bits 0, and `success` 0.
    ("fault-decoder", [9, 2, 0]),
    ("fault-disabled", [1, 1, 3]),
    ("fault-division", [2, 2, 0]),
    ("fault-division-no-quotient-range", [2, 2, 6]),
    ("fault-division-no-ranges", [2, 2, 65]),
    ("fault-edwards-of-order-two", [2, 1, 0]),
    ("fault-inverse-of-zero", [1, 1, 0]),
    ("fault-inverse-only", [1, 1, 1]),
    ("fault-root", [1, 1, 0]),
    ("fault-selector", [1, 1, 4]),
    ("fault-two-of-one-sum", [2, 2, 0]),
];

fn golden(name: &str, ending: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/unique");
    folder.join(format!("{name}.{ending}"))
}

fn of_file(name: &str) -> Unique {
    Unique::of_monolith(&Monolith::read(&golden(name, "r1cs"), None, |_, _| {}).unwrap()).unwrap()
}

fn values(question: &Unique, witness: &WitnessFile) -> Vec<Fr> {
    question.values(witness).unwrap()
}

fn ask(question: &Unique, name: &str) -> (Verdicts, Option<Vec<u8>>) {
    let witness = WitnessFile::open(&golden(name, "wtns")).unwrap();
    question.verdicts(&values(question, &witness), |wire| wire.to_string()).unwrap()
}

/// Every output is determined or free, and every free one is shown by a second witness with the same inputs.
#[test]
fn every_circuit_has_its_verdict() {
    for (name, expected) in CIRCUITS {
        let question = of_file(name);
        let (verdicts, second) = ask(&question, name);
        let [free, others] = verdicts.free_counts();
        assert_eq!([verdicts.outputs, free, others], *expected, "{name}");
        assert_eq!(verdicts.undecided_counts()[0], 0, "{name}: {:?}", verdicts.undecided);
        assert!(!verdicts.cut_off, "{name}");
        assert_eq!(second.is_some(), free + others > 0, "{name}");
        let Some(second) = second else { continue };
        let other = values(&question, &WitnessFile::from_bytes(second).unwrap());
        // All constraints hold.
        question.verdicts(&other, |_| String::new()).unwrap();
        let first = values(&question, &WitnessFile::open(&golden(name, "wtns")).unwrap());
        let [outputs, public, private] = question.counts().map(|count| count as usize);
        let inputs = 1 + outputs..1 + outputs + public + private;
        assert_eq!(first[inputs.clone()], other[inputs], "{name}");
        assert_eq!(first[1..=outputs] != other[1..=outputs], free > 0, "{name}");
        assert_ne!(first, other, "{name}");
    }
    let folder = golden("x", "r1cs").parent().unwrap().read_dir().unwrap();
    let files = folder
        .filter(|file| file.as_ref().unwrap().path().extension().is_some_and(|it| it == "r1cs"));
    assert_eq!(files.count(), CIRCUITS.len());
}

/// A cut changes no verdict.
#[test]
fn parts_have_the_verdicts_of_the_source() {
    let folder = tempfile::tempdir().unwrap();
    for (name, _) in CIRCUITS {
        let path = folder.path().join(name);
        let monolith = Monolith::read(&golden(name, "r1cs"), None, |_, _| {}).unwrap();
        let most = (monolith.system().rows() as u64 / 3 + 300).max(12);
        let plan = monolith.cut(most, |_| {}).unwrap();
        monolith.write(&plan, &path).unwrap();
        let bundle = CircuitBundle::open(&path).unwrap();
        let question = Unique::of_directory(&bundle).unwrap();
        assert_eq!(question.counts(), of_file(name).counts(), "{name}");
        let [(cut, second), (whole, _)] = [&question, &of_file(name)].map(|it| ask(it, name));
        let names = |verdicts: &Verdicts| -> BTreeSet<(String, bool)> {
            verdicts.free.iter().map(|free| (free.name.clone(), free.is_output)).collect()
        };
        assert_eq!(names(&cut), names(&whole), "{name}");
        assert_eq!((cut.others, &cut.undecided), (whole.others, &whole.undecided), "{name}");
        if let Some(second) = second {
            let source = of_file(name);
            let other = values(&source, &WitnessFile::from_bytes(second).unwrap());
            source.verdicts(&other, |_| String::new()).unwrap();
        }
    }
}

/// Inputs that circom's simplification removed are in its header, and are not wires.
#[test]
fn private_inputs_are_counted_by_their_labels() {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/unused-inputs-O1.r1cs");
    let file = R1csFile::open(&golden).unwrap();
    assert_eq!((file.counts().private_inputs, file.counts().wires), (4, 4));
    assert_eq!(file.private_inputs().unwrap(), Some(2));
    // The index has no constraint, and 4 values have.
    assert_eq!(of_file("fault-selector").counts(), [1, 0, 4]);
}

#[test]
fn wrong_witnesses_are_refused() {
    let question = of_file("is-zero-of-5");
    let other = WitnessFile::open(&golden("bits-64", "wtns")).unwrap();
    assert!(matches!(question.values(&other), Err(UniqueError::File(_))));
    let wrong = WitnessFile::from_bytes(WitnessFile::bytes_of(&[Fr::from(1); 4])).unwrap();
    let found = question.verdicts(&values(&question, &wrong), |_| String::new());
    assert!(matches!(found, Err(UniqueError::False(0))), "{found:?}");
}
