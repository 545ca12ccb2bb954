//! Forms of circom's files: what snarkjs takes over this field is read, or refused for a reason that
//! says what to do.

use super::common::{
    Combination, Files, constraints, container, cubic, cubic_values, header, modulus, number,
    sections, witness,
};
use ark_ff::{Field, Zero};
use hekaton_circuit::Fr;
use hekaton_r1cs::{ImportError, Monolith, R1csFile, Symbols, System, WitnessFile};
use std::path::{Path, PathBuf};

/// The expected outcome of reading a form.
enum Expected {
    /// It is read, with this number of rows.
    Rows(usize),
    /// It is refused, with this in the text.
    Refused(&'static str),
}

use Expected::{Refused, Rows};

/// The file with one section changed.
fn with(kind: u32, content: Vec<u8>) -> Vec<u8> {
    let mut all = sections(4, &cubic());
    all.iter_mut().filter(|(k, _)| *k == kind).for_each(|(_, c)| *c = content.clone());
    container("r1cs", 1, &all)
}

/// The file with more sections.
fn and(more: &[(u32, Vec<u8>)]) -> Vec<u8> {
    container("r1cs", 1, &[sections(4, &cubic()), more.to_vec()].concat())
}

/// A file with these counts and rows, and labels for all wires.
fn of(counts: [u32; 5], rows: &[[Combination; 3]]) -> Vec<u8> {
    let labels = (0..u64::from(counts[0])).flat_map(u64::to_le_bytes).collect();
    container("r1cs", 1, &[(1, header(counts)), (2, constraints(rows)), (3, labels)])
}

/// The file without labels.
fn unlabeled(counts: [u32; 5], rows: &[[Combination; 3]]) -> Vec<u8> {
    container("r1cs", 1, &[(1, header(counts)), (2, constraints(rows))])
}

fn one(wire: u32) -> Combination {
    vec![(wire, Fr::ONE)]
}

/// Another number in place of one of the header: of labels, at byte 52.
fn labels_in_header(count: u64) -> Vec<u8> {
    let mut content = header([4, 1, 1, 0, 2]);
    content[52..60].copy_from_slice(&count.to_le_bytes());
    with(1, content)
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(golden(name)).unwrap()
}

#[allow(clippy::too_many_lines, reason = "a table")]
fn forms() -> Vec<(&'static str, Vec<u8>, Expected)> {
    let good = container("r1cs", 1, &sections(4, &cubic()));
    let mut turned = sections(4, &cubic());
    turned.rotate_left(1);
    let mut reversed = sections(4, &cubic());
    reversed.reverse();
    let [square, rest] = &cubic()[..] else { panic!("two rows") };
    let constant = |value: u64| vec![(0, Fr::from(value))];
    let none = Combination::new();
    let linear = [none.clone(), none.clone(), vec![(1, Fr::ONE), (2, -Fr::ONE)]];
    let scaled = [constant(3), one(2), vec![(1, Fr::ONE)]];
    let zero_term = [vec![(2, Fr::zero()), (3, Fr::ONE)], one(2), one(1)];
    let mut descending = rest.clone();
    descending.iter_mut().for_each(|side| side.reverse());
    let canonical = [one(3), one(2), vec![(0, -Fr::from(5u64)), (1, Fr::ONE)]];
    let mut too_large = with(2, constraints(&cubic()));
    // The first coefficient: after the head, section 1, and the head of section 2.
    let at = 12 + 12 + 64 + 12 + 8;
    too_large[at..at + 32].copy_from_slice(&modulus());
    let version = |version: u32| container("r1cs", version, &sections(4, &cubic()));
    let bn254 = {
        let prime = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001";
        let mut content = header([4, 1, 1, 0, 2]);
        let prime: Vec<u8> = hex::decode(prime).unwrap().into_iter().rev().collect();
        content[4..36].copy_from_slice(&prime);
        with(1, content)
    };
    let labels = |each: usize| (3, vec![0u8; 4 * each]);
    let gate = |uses: u32| {
        let declared = [&1u32.to_le_bytes()[..], b"Gate\0", &0u32.to_le_bytes()].concat();
        let mut used = uses.to_le_bytes().to_vec();
        (0..uses).for_each(|_| used.extend([0; 8]));
        and(&[(4, declared), (5, used)])
    };
    vec![
        // Written by circom 2.2.3 with --prime bls12381.
        ("circom --O0", bytes_of("levels-O0.r1cs"), Rows(9)),
        ("circom --O1", bytes_of("levels-O1.r1cs"), Rows(6)),
        ("circom --O2", bytes_of("levels-O2.r1cs"), Rows(3)),
        ("circom --O1, unused private inputs", bytes_of("unused-inputs-O1.r1cs"), Rows(1)),
        ("circom --O1, one linear row", bytes_of("linear-O1.r1cs"), Rows(1)),
        ("circom --O2, the linear row is gone", bytes_of("linear-O2.r1cs"), Rows(0)),
        ("circom, a custom gate without a use", bytes_of("custom-gate-declared.r1cs"), Rows(1)),
        (
            "circom, a custom gate",
            bytes_of("custom-gate-used.r1cs"),
            Refused("uses custom gates (1"),
        ),
        // Counts of private inputs and labels.
        ("more private inputs than wires", of([4, 1, 1, 9, 2], &cubic()), Rows(2)),
        ("2^32 - 1 private inputs", of([4, 1, 1, u32::MAX, 2], &cubic()), Rows(2)),
        ("no labels in the header", labels_in_header(0), Rows(2)),
        ("2^64 - 1 labels in the header", labels_in_header(u64::MAX), Rows(2)),
        ("no section of labels", unlabeled([4, 1, 1, 0, 2], &cubic()), Rows(2)),
        ("labels of 4 bytes", with(3, labels(4).1), Rows(2)),
        ("an empty section of labels", with(3, Vec::new()), Rows(2)),
        ("labels and a half", with(3, vec![0; 29]), Rows(2)),
        ("more labels than wires", with(3, vec![0; 400]), Rows(2)),
        ("two sections of labels", and(&[labels(8)]), Rows(2)),
        // Sections.
        ("constraints before the header", container("r1cs", 1, &turned), Rows(2)),
        ("sections in descending order", container("r1cs", 1, &reversed), Rows(2)),
        ("an unknown section", and(&[(77, vec![1, 2, 3])]), Rows(2)),
        ("an unknown section twice", and(&[(77, vec![1]), (77, vec![2])]), Rows(2)),
        ("an unknown empty section", and(&[(1 << 31, Vec::new())]), Rows(2)),
        ("empty sections of custom gates", and(&[(4, Vec::new()), (5, Vec::new())]), Rows(2)),
        ("no custom gates", and(&[(4, vec![0; 4]), (5, vec![0; 4])]), Rows(2)),
        ("a custom gate that is declared", gate(0), Rows(2)),
        ("a custom gate that is used", gate(3), Refused("uses custom gates (3 times)")),
        (
            "a damaged list of uses",
            and(&[(5, vec![1; 3])]),
            Refused("the number of uses of custom"),
        ),
        (
            "two headers",
            and(&[(1, header([4, 1, 1, 0, 2]))]),
            Refused("section 1 occurs more than once"),
        ),
        (
            "constraints twice",
            and(&[(2, constraints(&cubic()))]),
            Refused("section 2 occurs more than once"),
        ),
        ("no header", container("r1cs", 1, &sections(4, &cubic())[1..]), Refused("no section 1")),
        (
            "no section of constraints",
            container("r1cs", 1, &[(1, header([4, 1, 1, 0, 2]))]),
            Refused("no section 2"),
        ),
        ("a section beyond the end", good[..good.len() - 1].to_vec(), Refused("it is truncated")),
        ("bytes after the last section", [&good[..], &[7; 9]].concat(), Refused("9 bytes follow")),
        // Circuits.
        ("no public wires", of([4, 0, 0, 1, 1], std::slice::from_ref(square)), Rows(1)),
        ("all wires are public", of([4, 3, 0, 0, 2], &cubic()), Rows(2)),
        ("wires in no constraint", of([9, 1, 1, 0, 2], &cubic()), Rows(2)),
        ("linear rows alone", of([3, 1, 1, 0, 1], std::slice::from_ref(&linear)), Rows(1)),
        ("a constant factor", of([3, 1, 1, 0, 1], std::slice::from_ref(&scaled)), Rows(1)),
        ("a row twice", of([4, 1, 1, 0, 2], &[square.clone(), square.clone()]), Rows(2)),
        ("terms in descending order", of([4, 1, 1, 0, 2], &[square.clone(), descending]), Rows(2)),
        ("canonical terms", of([4, 1, 1, 0, 2], &[square.clone(), canonical]), Rows(2)),
        ("a coefficient of zero", of([4, 1, 1, 0, 1], &[zero_term]), Rows(1)),
        (
            "a row without terms",
            of([4, 1, 1, 0, 2], &[[none.clone(), none.clone(), none.clone()], square.clone()]),
            Rows(1),
        ),
        (
            "a true row of constants",
            of([4, 1, 1, 0, 2], &[[constant(2), constant(3), constant(6)], square.clone()]),
            Rows(1),
        ),
        (
            "a false row of constants",
            of([4, 1, 1, 0, 2], &[square.clone(), [constant(2), constant(3), constant(5)]]),
            Refused("section 2, row 1, byte"),
        ),
        ("no constraints", of([4, 1, 1, 0, 0], &[]), Rows(0)),
        (
            "no constraints and no section",
            container("r1cs", 1, &[(1, header([3, 1, 1, 0, 0]))]),
            Rows(0),
        ),
        ("the constant alone", of([1, 0, 0, 0, 0], &[]), Rows(0)),
        ("not even the constant", of([0, 0, 0, 0, 0], &[]), Refused("is 0, expected 1 or more")),
        // Numbers that are not possible.
        (
            "more public wires than wires",
            of([2, 1, 1, 0, 0], &[]),
            Refused(
                "the number of wires is 2, expected 3 or more: the constant 1, the public outputs",
            ),
        ),
        (
            "2^32 - 1 wires without a byte for them",
            unlabeled([u32::MAX, 1, 1, 0, 2], &cubic()),
            Refused("the number of wires in the header is 4294967295, but the file has bytes for"),
        ),
        (
            "too many public wires",
            unlabeled([u32::MAX, 1 << 31, 1 << 30, 0, 2], &cubic()),
            Refused("the number of public wires is 3221225472; at most 16777216 are supported"),
        ),
        ("more rows than bytes", of([4, 1, 1, 0, 99], &cubic()), Refused("bytes for at most")),
        (
            "a row less than bytes",
            of([4, 1, 1, 0, 1], &cubic()),
            Refused("follow the end of the con"),
        ),
        (
            "a wire that does not exist",
            of([3, 1, 1, 0, 2], &cubic()),
            Refused("section 2, row 0, byte"),
        ),
        (
            "a coefficient above the modulus",
            too_large,
            Refused("a coefficient is not below the mod"),
        ),
        (
            "a longer header",
            with(1, [header([4, 1, 1, 0, 2]), vec![0]].concat()),
            Refused("1 bytes follow the end of the header"),
        ),
        ("version 2", version(2), Refused("format version 2 is not supported, expected version 1")),
        ("BN254", bn254, Refused("compile with `circom --prime bls12381`")),
        ("an empty file", Vec::new(), Refused("not a r1cs file: it does not begin with \"r1cs\"")),
    ]
}

fn read(path: &Path) -> Result<System, hekaton_r1cs::FileError> {
    R1csFile::open(path)?.read(|_| {})
}

/// More than the 31 forms that were asked for, each with what is said.
#[test]
fn forms_of_r1cs() {
    let files = Files::new();
    let forms = forms();
    assert!(forms.len() >= 31, "{}", forms.len());
    for (name, bytes, expected) in forms {
        let path = files.write("circuit.r1cs", &bytes);
        match (read(&path), expected) {
            (Ok(system), Rows(rows)) => assert_eq!(system.rows(), rows, "{name}"),
            (Err(error), Refused(says)) => {
                let error = error.to_string();
                assert!(error.contains(says), "{name}: {error}");
                assert!(error.contains("circuit.r1cs: "), "{name}: {error}");
            }
            (Ok(_), Refused(_)) => panic!("{name}: it was read"),
            (Err(error), Rows(_)) => panic!("{name}: {error}"),
        }
    }
}

/// A circuit without constraints is refused by an import, which says what may have removed them.
#[test]
fn nothing_to_prove_is_said() {
    let found = Monolith::read(&golden("linear-O2.r1cs"), None, |_, _| {}).unwrap_err();
    assert!(matches!(found, ImportError::Empty), "{found}");
    let text = found.to_string();
    assert!(text.contains("there is nothing to prove") && text.contains("--O0"), "{text}");
}

/// The files of one circuit by the three levels of optimization: rows hold for circom's witness and for
/// no other value of a wire, names are those of the level, and a witness of another level is refused.
#[test]
fn levels_of_optimization() {
    let of = |level: &str, kind: &str| golden(&format!("levels-{level}.{kind}"));
    for level in ["O0", "O1", "O2"] {
        let file = R1csFile::open(&of(level, "r1cs")).unwrap();
        let counts = file.counts();
        assert_eq!((counts.outputs, counts.inputs, counts.private_inputs), (2, 1, 4), "{level}");
        let witness = WitnessFile::open(&of(level, "wtns")).unwrap();
        witness.check_wires(counts.wires).unwrap();
        let z = witness.values(0..counts.wires).unwrap();
        let system = file.read(|_| {}).unwrap();
        assert_eq!(system.false_row(&z), None, "{level}");
        // t = (3 + 3) 3, o = [t + k, (5 + 3) 5 t], k
        assert_eq!(z[1..4], [29u64, 720, 11].map(Fr::from), "{level}");
        assert_eq!(system.free_public_wires(), [0u32; 0], "{level}");
        let names = Symbols::read(&of(level, "sym"), counts.wires).unwrap();
        assert_eq!((names.name(1), names.name(3)), (Some("main.o[0]"), Some("main.k")), "{level}");
        for other in ["O0", "O1", "O2"].into_iter().filter(|other| *other != level) {
            let other = WitnessFile::open(&of(other, "wtns")).unwrap();
            let error = other.check_wires(counts.wires).unwrap_err().to_string();
            assert!(error.contains("another compilation"), "{error}");
        }
    }
    let wires = R1csFile::open(&of("O2", "r1cs")).unwrap().counts().wires;
    let error = Symbols::read(&of("O0", "sym"), wires).unwrap_err().to_string();
    assert!(error.contains("another compilation of this one"), "{error}");
}

#[test]
fn forms_of_wtns() {
    let files = Files::new();
    let values = cubic_values(9);
    let header = [&32u32.to_le_bytes()[..], &modulus(), &4u32.to_le_bytes()].concat();
    let body: Vec<u8> = values.iter().flat_map(number).collect();
    let of = |sections: &[(u32, Vec<u8>)]| container("wtns", 2, sections);
    let (first, second) = ((1, header.clone()), (2, body.clone()));
    let mut large = body.clone();
    large[64..96].copy_from_slice(&modulus());
    let mut longer = header.clone();
    longer.push(0);
    let mut other_field = header.clone();
    other_field[4] ^= 1;
    let forms: Vec<(&str, Vec<u8>, Result<(), &str>)> = vec![
        ("as circom writes it", witness(&values), Ok(())),
        ("values before the header", of(&[second.clone(), first.clone()]), Ok(())),
        ("an unknown section", of(&[first.clone(), (9, vec![1]), second.clone()]), Ok(())),
        (
            "unknown ones twice",
            of(&[(9, vec![]), (9, vec![1]), first.clone(), second.clone()]),
            Ok(()),
        ),
        (
            "two headers",
            of(&[first.clone(), first.clone(), second.clone()]),
            Err("section 1 occurs more than once"),
        ),
        ("values twice", of(&[first.clone(), second.clone(), second.clone()]), Err("section 2")),
        ("no values", of(std::slice::from_ref(&first)), Err("section 2 is missing")),
        ("no header", of(std::slice::from_ref(&second)), Err("section 1 is missing")),
        (
            "a value less",
            of(&[first.clone(), (2, body[..96].to_vec())]),
            Err("is 96, expected 128"),
        ),
        (
            "a longer header",
            of(&[(1, longer), second.clone()]),
            Err("follow the end of the header"),
        ),
        ("another field", of(&[(1, other_field), second.clone()]), Err("--prime bls12381")),
        ("a value above the modulus", of(&[first.clone(), (2, large)]), Err("section 2, byte")),
        (
            "version 1",
            container("wtns", 1, &[first.clone(), second.clone()]),
            Err("expected version 2"),
        ),
        ("an r1cs", container("r1cs", 1, &sections(4, &cubic())), Err("not a wtns file")),
        ("bytes after the end", [witness(&values), vec![0; 3]].concat(), Err("3 bytes follow")),
        ("a first value of 2", witness(&[Fr::from(2u64)]), Err("is not 1, the constant")),
    ];
    for (name, bytes, expected) in forms {
        let path = files.write("w.wtns", &bytes);
        let found = WitnessFile::open(&path).and_then(|file| file.values(0..4));
        match (found, expected) {
            (Ok(found), Ok(())) => assert_eq!(found, values, "{name}"),
            (Err(error), Err(says)) => {
                let error = error.to_string();
                assert!(error.contains(says) && error.contains("w.wtns: "), "{name}: {error}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

#[test]
fn forms_of_sym() {
    let files = Files::new();
    type Found<'a> = Result<Option<&'a str>, &'a str>;
    let forms: [(&str, &str, Found<'_>); 13] = [
        ("as circom writes it", "1,1,0,main.y\n2,2,0,main.x\n", Ok(Some("main.y"))),
        ("lines of Windows", "1,1,0,main.y\r\n2,2,0,main.x\r\n", Ok(Some("main.y"))),
        ("no end of the last line", "1,1,0,main.y", Ok(Some("main.y"))),
        ("empty lines", "\n\n1,1,0,main.y\n\n", Ok(Some("main.y"))),
        ("an empty file", "", Ok(None)),
        ("removed signals", "1,-1,0,main.a\n2,1,0,main.y\n", Ok(Some("main.y"))),
        ("several names of a wire", "1,1,0,main.y\n2,1,0,main.z\n", Ok(Some("main.y"))),
        ("no template", "1,1,-1,main.y\n", Ok(Some("main.y"))),
        ("a name with a comma", "1,1,0,a,b\n", Ok(Some("a,b"))),
        ("a bus", "1,1,0,main.b.x[1][2]\n", Ok(Some("main.b.x[1][2]"))),
        ("three fields", "1,1,0\n", Err("line 1: not a line of a .sym file")),
        ("no number", "1,main.y,0,main.y\n", Err("line 1: not a line of a .sym file")),
        ("another circuit", "1,1,0,main.y\n2,4,0,main.x\n", Err("line 2: wire 4; the circuit has")),
    ];
    for (name, text, expected) in forms {
        let path = files.write("c.sym", text.as_bytes());
        match (Symbols::read(&path, 4), expected) {
            (Ok(symbols), Ok(first)) => assert_eq!(symbols.name(1), first, "{name}"),
            (Err(error), Err(says)) => {
                let error = error.to_string();
                assert!(error.contains(says) && error.contains("c.sym: "), "{name}: {error}");
            }
            (found, _) => panic!("{name}: {found:?}"),
        }
    }
}

/// Pipes and directories are named as such, and nobody waits for a writer.
#[test]
fn pipes_are_refused_by_name() {
    let files = Files::new();
    let pipe = files.write("none", b"").with_file_name("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let device = Path::new("/dev/zero");
    for path in [pipe.as_path(), device] {
        for error in [
            R1csFile::open(path).unwrap_err().to_string(),
            WitnessFile::open(path).unwrap_err().to_string(),
            Symbols::read(path, 4).unwrap_err().to_string(),
        ] {
            assert!(
                error.contains("is a pipe or a device") && error.contains("regular"),
                "{error}"
            );
        }
    }
    let error = R1csFile::open(&std::env::temp_dir()).unwrap_err().to_string();
    assert!(error.contains("is a directory, expected a file"), "{error}");
}
