//! circom's files: what is read, and what is refused where.

#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

mod common;
#[path = "files/forms.rs"]
mod forms;

use ark_ff::{Field, Zero};
use common::{
    Combination, Files, constraints, container, cubic, cubic_values, header, modulus, number,
    sections, witness,
};
use hekaton_circuit::Fr;
use hekaton_r1cs::{Monolith, Problem, R1csFile, RowError, Symbols, System, Template, WitnessFile};
use proptest::prelude::*;

fn read(files: &Files, bytes: &[u8]) -> Result<System, hekaton_r1cs::FileError> {
    let path = files.write("circuit.r1cs", bytes);
    R1csFile::open(&path)?.read(|_| {})
}

#[test]
fn rows_become_canonical() {
    let files = Files::new();
    let path = files.write("circuit.r1cs", &container("r1cs", 1, &sections(4, &cubic())));
    let file = R1csFile::open(&path).unwrap();
    let counts = file.counts();
    assert_eq!((counts.wires, counts.outputs, counts.inputs, counts.rows), (4, 1, 1, 2));
    assert_eq!((counts.public(), file.labels()), (2, 4));
    let system = file.read(|_| {}).unwrap();
    assert_eq!((system.rows(), system.wires(), system.public()), (2, 4, 2));
    let terms = |row: usize| {
        let of = |t: &hekaton_r1cs::Term| (t.wire, system.coefficients()[t.coefficient as usize]);
        system.row(row).map(|terms| terms.iter().map(of).collect::<Combination>())
    };
    let one = Fr::from(1u64);
    assert_eq!(terms(0), [vec![(2, one)], vec![(2, one)], vec![(3, one)]]);
    assert_eq!(terms(1), [vec![(3, one)], vec![(2, one)], vec![(0, -Fr::from(5u64)), (1, one)]]);
    assert_eq!(system.false_row(&cubic_values(7)), None);
    let mut wrong = cubic_values(7);
    wrong[1] += one;
    let found = system.false_row(&wrong).unwrap();
    assert_eq!((found.number, found.values), (1, [wrong[3], wrong[2], wrong[1] - Fr::from(5u64)]));
    assert_eq!(found.wires, [1, 2, 3], "without the constant");
}

#[test]
fn sections_may_have_any_order_and_others_are_skipped() {
    let files = Files::new();
    let mut all = sections(4, &cubic());
    let expected = read(&files, &container("r1cs", 1, &all)).unwrap();
    all.reverse();
    all.insert(1, (77, vec![1, 2, 3]));
    // No custom gates: an empty section, and a list without entries.
    all.extend([(4, Vec::new()), (5, vec![0; 4])]);
    let found = read(&files, &container("r1cs", 1, &all)).unwrap();
    assert_eq!((found.rows(), found.terms()), (expected.rows(), expected.terms()));
}

/// A constraint without wires says nothing if it is true, and no witness satisfies it if it is not.
#[test]
fn rows_without_wires() {
    let files = Files::new();
    let constant = |value: u64| vec![(0, Fr::from(value))];
    let mut rows = cubic();
    rows.insert(1, [constant(2), constant(3), constant(6)]);
    rows.push([Vec::new(), Vec::new(), Vec::new()]);
    let system = read(&files, &container("r1cs", 1, &sections(4, &rows))).unwrap();
    assert_eq!((system.rows(), system.without_wires()), (2, &[1, 3][..]));
    assert_eq!((system.number(0), system.number(1)), (0, 2));
    // Terms that cancel leave no wire either.
    let minus = -Fr::from(1u64);
    rows[1] = [vec![(2, minus), (2, -minus)], constant(3), constant(1)];
    let error = read(&files, &container("r1cs", 1, &sections(4, &rows))).unwrap_err();
    assert!(matches!(error.problem, Problem::Row(RowError::False)), "{error}");
    assert_eq!((error.place.section, error.place.row), (Some(2), Some(1)));
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let files = Files::new();
    let good = container("r1cs", 1, &sections(4, &cubic()));
    let with = |kind: u32, content: Vec<u8>| {
        let mut all = sections(4, &cubic());
        all.iter_mut().filter(|(k, _)| *k == kind).for_each(|(_, c)| *c = content.clone());
        container("r1cs", 1, &all)
    };
    let of_field = |size: u32, prime: &[u8]| {
        let mut content = header([4, 1, 1, 0, 2]);
        content.splice(..36, size.to_le_bytes().into_iter().chain(prime.iter().copied()));
        with(1, content)
    };
    let prime = |hex: &str| hex::decode(hex).unwrap().into_iter().rev().collect::<Vec<_>>();
    let bn254 = prime("30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001");
    let replaced = |at: usize, bytes: &[u8]| {
        let mut out = good.clone();
        out[at..at + bytes.len()].copy_from_slice(bytes);
        out
    };
    let one = Fr::from(1u64);
    let row = |a: Combination| constraints(&[[a, Vec::new(), Vec::new()], cubic().remove(1)]);
    let not_canonical = {
        let mut content = row(vec![(1, one)]);
        content[8..40].copy_from_slice(&modulus());
        content
    };
    let twice = [sections(4, &cubic()), sections(4, &cubic())].concat();
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (Vec::new(), "does not begin with \"r1cs\""),
        (replaced(0, b"wtns"), "does not begin with \"r1cs\""),
        (replaced(4, &[2]), "byte 8: format version 2 is not supported, expected version 1"),
        (of_field(32, &bn254), "are of BN254, expected BLS12-381"),
        (of_field(32, &[7; 32]), "the field of 0x0707"),
        (of_field(8, &prime("ffffffff00000001")), "are of Goldilocks"),
        (of_field(16, &[9; 16]), "numbers have 16 bytes"),
        (container("r1cs", 1, &twice), "section 1 occurs more than once"),
        (container("r1cs", 1, &sections(4, &cubic())[1..]), "section 1 is missing"),
        (container("r1cs", 1, &sections(4, &cubic())[..1]), "section 2 is missing"),
        ([&good[..], &[0]].concat(), "1 bytes follow the end of the last section"),
        (with(1, header([2, 1, 1, 0, 2])), "the number of wires is 2, expected 3"),
        (with(1, header([4, 1, 1, 0, 3])), "section 2, row 2, byte"),
        (with(1, header([4, 1, 1, 0, 1])), "bytes follow the end of the constraints"),
        (with(1, header([4, 1, 1, 0, u32::MAX])), "the number of constraints in the header is"),
        (with(1, header([u32::MAX, 1 << 31, 1 << 30, 0, 2])), "the number of public wires is"),
        (with(1, [header([4, 1, 1, 0, 2]), vec![0]].concat()), "follow the end of the header"),
        (with(2, row(vec![(4, one)])), "wire 4 does not exist: the circuit has wires 0 to 3"),
        (with(2, not_canonical), "section 2, row 0, byte"),
        (with(2, vec![0xff; 30]), "is 4294967295, but the file has bytes for at most 0"),
        (container("r1cs", 1, &[sections(4, &cubic()), vec![(5, vec![1; 9])]].concat()), "custom"),
    ];
    for (bytes, says) in cases {
        let error = read(&files, &bytes).map(drop).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("circuit.r1cs: "), "{says}: {error}");
    }
    for cut in 0..good.len() {
        assert!(read(&files, &good[..cut]).is_err(), "{cut}");
    }
    let missing = R1csFile::open(std::path::Path::new("/nonexistent/x.r1cs")).unwrap_err();
    assert!(matches!(missing.problem, Problem::Io(_)), "{missing}");
    assert!(R1csFile::open(&std::env::temp_dir()).is_err());
}

#[test]
fn witnesses() {
    let files = Files::new();
    let values = cubic_values(9);
    let path = files.write("w.wtns", &witness(&values));
    let file = WitnessFile::open(&path).unwrap();
    assert_eq!((file.wires(), file.values(1..3).unwrap()), (4, values[1..3].to_vec()));
    assert!(file.check_wires(4).is_ok());
    let error = file.check_wires(7).unwrap_err().to_string();
    assert!(error.contains("the number of values is 4, expected 7"), "{error}");
    // Truncated after it was opened.
    std::fs::write(&path, &witness(&values)[..120]).unwrap();
    assert!(file.values(1..4).unwrap_err().to_string().contains("truncated"));

    let open = |bytes: &[u8]| WitnessFile::open(&files.write("w.wtns", bytes));
    let good = witness(&values);
    for cut in 0..good.len() {
        assert!(open(&good[..cut]).is_err(), "{cut}");
    }
    let mut not_one = values.clone();
    not_one[0] = Fr::zero();
    assert!(matches!(open(&witness(&not_one)).unwrap_err().problem, Problem::NotOne));
    assert!(matches!(open(&witness(&[])).unwrap_err().problem, Problem::NotOne));
    let mut bytes = good.clone();
    let at = bytes.len() - 64;
    bytes[at..at + 32].copy_from_slice(&modulus());
    let error = open(&bytes).unwrap().values(0..4).unwrap_err();
    assert_eq!(error.place.byte, Some(at as u64));
    assert!(error.to_string().contains("the value of wire 2 is not below the modulus"), "{error}");
    assert_eq!(open(&bytes).unwrap().check_values().unwrap_err().place.byte, Some(at as u64));
    open(&good).unwrap().check_values().unwrap();
    let extra = [&number(&values[0])[..], &[1]].concat();
    let header = [&32u32.to_le_bytes()[..], &modulus(), &1u32.to_le_bytes()].concat();
    let error = open(&container("wtns", 2, &[(1, header), (2, extra)])).unwrap_err().to_string();
    assert!(error.contains("in bytes is 33, expected 32"), "{error}");
}

#[test]
fn names_of_wires() {
    let files = Files::new();
    let path =
        files.write("c.sym", b"1,1,0,main.y\n2,2,0,main.x\r\n3,-1,0,main.gone\n4,1,1,main.z\n");
    let symbols = Symbols::read(&path, 4).unwrap();
    assert_eq!((symbols.name(1), symbols.name(2)), (Some("main.y"), Some("main.x")));
    assert_eq!((symbols.name(0), symbols.name(3), symbols.len()), (None, None, 2));
    for (text, says) in [
        (&b"1,1,0,a\n2,4,0,b\n"[..], "line 2: wire 4 does not exist: the circuit has wires 0 to 3"),
        (b"1,1,0\n", "line 1: not a line of a .sym file"),
        (b"1,1,0,\xff\n", "line 1: not a line of a .sym file"),
    ] {
        let error = Symbols::read(&files.write("c.sym", text), 4).unwrap_err().to_string();
        assert!(error.contains(says), "{says}: {error}");
    }
    let long = [&b"1,1,0,"[..], &vec![b'a'; 1 << 17]].concat();
    assert!(Symbols::read(&files.write("c.sym", &long), 4).is_err());
}

/// A random system with a few values of the field, so that terms cancel and rows are empty now and
/// then.
fn any_rows(wires: u32) -> impl Strategy<Value = Vec<[Combination; 3]>> {
    let coefficient = prop_oneof![Just(0i64), Just(1), Just(-1), Just(2), Just(7)];
    let term = (0..wires, coefficient.prop_map(Fr::from));
    let combination = move || prop::collection::vec(term.clone(), 0..6);
    let row = [combination(), combination(), combination()];
    prop::collection::vec(row, 0..12)
}

proptest! {
    /// The rows hold for the same values as those in the file, in any order of terms.
    #[test]
    fn systems_are_those_of_the_file(
        rows in any_rows(6),
        values in prop::collection::vec(0u64..4, 5),
        seed in any::<u64>(),
    ) {
        let files = Files::new();
        let z: Vec<Fr> = [1].into_iter().chain(values).map(Fr::from).collect();
        let value = |c: &Combination| c.iter().map(|(w, k)| z[*w as usize] * k).sum::<Fr>();
        let holds = |row: &[Combination; 3]| value(&row[0]) * value(&row[1]) == value(&row[2]);
        let found = read(&files, &container("r1cs", 1, &sections(6, &rows)));
        let mut turned = rows.clone();
        turned.iter_mut().flatten().for_each(|c| {
            let by = seed as usize % c.len().max(1);
            c.rotate_left(by);
        });
        let again = read(&files, &container("r1cs", 1, &sections(6, &turned)));
        match found {
            Ok(system) => {
                let first = rows.iter().position(|row| !holds(row));
                let found = system.false_row(&z).map(|row| row.number as usize);
                prop_assert_eq!(found, first);
                let again = again.unwrap();
                prop_assert_eq!(again.rows(), system.rows());
                for row in 0..system.rows() {
                    let wires = |s: &System| s.row(row).map(|t| t.iter().map(|t| t.wire).collect::<Vec<_>>());
                    prop_assert_eq!(wires(&again), wires(&system));
                    prop_assert_eq!(
                        again.row(row).map(|c| again.value(c, &z)),
                        system.row(row).map(|c| system.value(c, &z))
                    );
                    prop_assert!(system.row(row).iter().all(|c| c.is_sorted_by(|a, b| a.wire < b.wire)));
                    let zero = |c: &[hekaton_r1cs::Term]| {
                        c.iter().any(|t| system.coefficients()[t.coefficient as usize].is_zero())
                    };
                    prop_assert!(!system.row(row).iter().any(|c| zero(c)));
                }
            }
            Err(error) => {
                // Only a constraint that no witness satisfies is refused.
                prop_assert!(matches!(error.problem, Problem::Row(RowError::False)));
                let row = error.place.row.unwrap() as usize;
                prop_assert!(!holds(&rows[row]));
                prop_assert!(again.is_err());
            }
        }
    }

    /// No bytes lead to a panic, or to a system with other counts than the header's.
    #[test]
    fn damaged_files_are_refused_or_read(at in 0usize..500, bit in 0u8..8) {
        let files = Files::new();
        let mut bytes = container("r1cs", 1, &sections(4, &cubic()));
        let at = at % bytes.len();
        bytes[at] ^= 1 << bit;
        if let Ok(system) = read(&files, &bytes) {
            prop_assert!(system.rows() <= 2);
        }
    }
}

/// Files that another program wrote.
#[test]
fn golden_files() {
    let golden = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let bytes = std::fs::read(golden.join("cubic.r1cs")).unwrap();
    assert_eq!(bytes, container("r1cs", 1, &sections(4, &cubic())));
    let file = R1csFile::open(&golden.join("cubic.r1cs")).unwrap();
    let witness = WitnessFile::open(&golden.join("cubic.wtns")).unwrap();
    let z = witness.values(0..4).unwrap();
    assert_eq!(z, cubic_values(7));
    assert_eq!(z[1], Fr::from(7u64).pow([3]) + Fr::from(5u64));
    assert_eq!(file.read(|_| {}).unwrap().false_row(&z), None);
    let symbols = Symbols::read(&golden.join("cubic.sym"), file.counts().wires).unwrap();
    assert_eq!((symbols.name(3), symbols.len()), (Some("main.square"), 3));
    assert_ne!(file.digest().unwrap(), witness.digest().unwrap());
}

/// Two components of one template inside `main`, each with one of another template: `in` goes in, is
/// squared and doubled by the inner one, and comes out.
#[test]
fn templates_that_repeat() {
    let files = Files::new();
    let mut text = String::from("1,1,3,main.out\n2,2,3,main.in\n3,-1,3,main.gone\n");
    let mut rows: Vec<[Combination; 3]> = Vec::new();
    let one = Fr::from(1u64);
    for (i, input, output, first) in [(0, 2, 3, 4), (1, 3, 1, 7)] {
        let outer = format!("main.step[{i}]");
        text += &format!("4,-1,2,{outer}.in\n5,{output},2,{outer}.out\n6,{first},2,{outer}.t\n");
        let inner = format!("{outer}.twice");
        text += &format!("7,-1,1,{inner}.in\n8,{},1,{inner}.out\n", first + 1);
        let term = |wire: u32| vec![(wire, one)];
        rows.push([term(input), term(input), term(first)]);
        rows.push([term(first), vec![(0, Fr::from(2u64))], term(first + 1)]);
        rows.push([term(first + 1), term(first), vec![(first + 2, one), (output, one)]]);
    }
    let r1cs = files.write("a.r1cs", &container("r1cs", 1, &sections(10, &rows)));
    let sym = files.write("a.sym", text.as_bytes());
    let found = Monolith::read(&r1cs, None, |_, _| {}).unwrap().templates(&sym).unwrap();
    // The largest wires of the third rows have no name, so that these rows are nowhere. The first
    // ones share what comes in and t, the second ones t and what comes out.
    let template = |example: &str, rows, interface| {
        let example = example.to_owned();
        Template { example, components: 2, rows, interface }
    };
    let expected = [template("main.step[0]", 2, 3), template("main.step[0].twice", 1, 2)];
    assert_eq!(found, expected);
    let sym = files.write("b.sym", b"1,10,0,main.a\n");
    let error = Monolith::read(&r1cs, None, |_, _| {}).unwrap().templates(&sym).unwrap_err();
    assert!(error.to_string().contains("wire 10"), "{error}");
}
