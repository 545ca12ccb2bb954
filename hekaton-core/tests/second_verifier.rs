//! `docs/spec/verifier.py` and `direct.py`, which were written from the specification alone, and the verifier of this crate have the same
//! verdicts, and derive the same keys from families.

use hekaton_arith::{G2Point, Group};
use hekaton_core::circuit::{Circuit, Masking, PreparedCircuit, prover::Wiring};
use hekaton_core::{
    DirectKey, Fr, LocalEngine, SetupOptions, VerifyingKey, derive, setup_family,
    verify_direct_with_test_keys, verify_with_test_keys,
};
use hekaton_testing::{Histogram, Squarings};
use std::convert::Infallible;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A statement and bytes that may prove it.
struct Claim {
    key: PathBuf,
    public: Vec<u64>,
    proof: Vec<u8>,
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// The golden proofs, with their keys and public values.
fn proofs() -> Vec<Claim> {
    let (squarings, histogram) = (vec![3, 81], vec![0, 133, 1, 2, 0]);
    let claim = |key, name, public: &Vec<u64>| Claim {
        key: golden(key),
        public: public.clone(),
        proof: fs::read(golden(name)).unwrap(),
    };
    vec![
        claim("v2.key", "v2.proof", &squarings),
        claim("v3.key", "v3.proof", &squarings),
        claim("v4.key", "v4.proof", &histogram),
        claim("v4-pairs.key", "v4-pairs.proof", &histogram),
    ]
}

fn python(script: &str) -> Command {
    let mut command = Command::new("python3");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/spec");
    command.arg("-c").arg(script).env("PYTHONPATH", folder).env("PYTHONDONTWRITEBYTECODE", "1");
    command
}

/// Which claims each verifier accepts: this crate's, and that in Python.
fn verdicts(claims: &[Claim]) -> [Vec<bool>; 2] {
    let script = "
import functools, json, multiprocessing, sys, verifier

@functools.cache
def key(path):
    return verifier.Key.read(open(path, 'rb').read())

def verdict(line):
    path, public, proof = json.loads(line)
    try:
        verifier.verify(key(path), public, bytes(proof), test_keys=True)
        return 'accepted'
    except verifier.Refused:
        return 'refused'

with multiprocessing.get_context('fork').Pool() as processes:
    print(*processes.imap(verdict, sys.stdin, chunksize=8), sep='\\n')
";
    let mut child =
        python(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("needs python3");
    let mut input = child.stdin.take().unwrap();
    let lines: String =
        claims.iter().map(|c| format!("[{:?}, {:?}, {:?}]\n", c.key, c.public, c.proof)).collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let ours = claims.iter().map(|claim| {
        let key = VerifyingKey::from_bytes(&fs::read(&claim.key).unwrap());
        let public: Vec<_> = claim.public.iter().map(|&x| Fr::from(x)).collect();
        key.is_ok_and(|key| verify_with_test_keys(&key, &public, &claim.proof).is_ok())
    });
    let ours = ours.collect();
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(output.status.success(), "verifier.py failed");
    let verdict = |line| match line {
        "accepted" => true,
        "refused" => false,
        line => panic!("neither accepted nor refused: {line}"),
    };
    [ours, String::from_utf8(output.stdout).unwrap().lines().map(verdict).collect()]
}

#[test]
fn golden_proofs() {
    let mut claims = proofs();
    let right = claims.len();
    for mut claim in proofs() {
        claim.public[1] += 1;
        claims.push(claim);
    }
    // A key and a proof of versions that are no longer read.
    claims.push(Claim { key: golden("v1.key"), ..proofs().remove(0) });
    let proof = fs::read(golden("format-1.proof")).unwrap();
    claims.push(Claim { proof, ..proofs().remove(0) });
    let expected: Vec<_> = (0..claims.len()).map(|i| i < right).collect();
    assert_eq!(verdicts(&claims), [expected.clone(), expected]);
}

/// Names that no type or public wire may have, in keys that are right otherwise.
#[test]
fn names_in_keys() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(golden("v2.key")).unwrap();
    let key = VerifyingKey::from_bytes(&bytes).unwrap();
    let with_name = |old: &str, new: u8| {
        let mut bytes = bytes.clone();
        let text = [&u32::try_from(old.len()).unwrap().to_le_bytes(), old.as_bytes()].concat();
        let at = bytes.windows(text.len()).position(|part| part == text).unwrap();
        bytes[at + 4] = new;
        let end = bytes.len() - 32;
        let checksum = blake3::hash(&bytes[..end]);
        bytes[end..].copy_from_slice(checksum.as_bytes());
        let path = folder.path().join(format!("{old}-{new}.key"));
        fs::write(&path, &bytes).unwrap();
        (path, VerifyingKey::from_bytes(&bytes))
    };
    let (kind, wire) = (&key.types[0].name, &key.public[0].name);
    let mut claims = Vec::new();
    for (name, new) in [(kind, b'A'), (kind, b'/'), (kind, b' '), (wire, b'['), (wire, b']')] {
        let (path, read) = with_name(name, new);
        assert!(read.is_err(), "{name} {new}");
        claims.push(Claim { key: path, ..proofs().remove(0) });
    }
    assert_eq!(verdicts(&claims), [vec![false; 5], vec![false; 5]]);
    // Control: another good name is read, by both.
    let (path, read) = with_name(kind, b'z');
    read.unwrap();
    let output = python("import sys, verifier; verifier.Key.read(open(sys.argv[1], 'rb').read())")
        .arg(path)
        .status()
        .expect("needs python3");
    assert!(output.success());
}

/// Texts that are public values, and others.
#[test]
fn public_values_as_json() {
    let key = VerifyingKey::from_bytes(&fs::read(golden("v2.key")).unwrap()).unwrap();
    let names = key.public_names();
    let [a, b] = [&names[0], &names[1]];
    let r = "52435875175126190479447740508185965837690552500527637822603658699938581184513";
    let long = format!("[3, \"0x{}51\"]", "0".repeat(78));
    let texts = [
        "[3, 81]".to_owned(),
        " [ \"3\" , \"0x51\" ] ".to_owned(),
        "[3, 18446744073709551615]".to_owned(),
        format!("{{\"{a}\": 3, \"{b}\": \"0xaB\"}}"),
        format!("{{\"{b}\": 81, \"{a}\": \"0\"}}"),
        long.clone(),
        // and what is none
        long.replace("0x", "0x0"),
        String::new(),
        "\"38\"".to_owned(),
        "38".to_owned(),
        "null".to_owned(),
        "[3]".to_owned(),
        "[3, 81, 1]".to_owned(),
        "[3, -0]".to_owned(),
        "[3, -1]".to_owned(),
        "[3, 81.0]".to_owned(),
        "[3, 1e2]".to_owned(),
        "[3, NaN]".to_owned(),
        "[3, true]".to_owned(),
        "[3, [81]]".to_owned(),
        "[3, \"081\"]".to_owned(),
        "[3, \"0X51\"]".to_owned(),
        "[3, \"0x\"]".to_owned(),
        "[3, \"\"]".to_owned(),
        "[3, \" 81\"]".to_owned(),
        "[3, \"8_1\"]".to_owned(),
        "[3, 18446744073709551616]".to_owned(),
        format!("[3, \"{r}\"]"),
        "\u{feff}[3, 81]".to_owned(),
        "[3, 81] x".to_owned(),
        format!("{{\"{a}\": 3}}"),
        format!("{{\"{a}\": 3, \"{b}\": 81, \"c\": 1}}"),
        format!("{{\"{a}\": 3, \"{b}\": 81, \"{a}\": 3}}"),
    ];
    let script = "
import sys, verifier
key = verifier.Key.read(open(sys.argv[1], 'rb').read())
for text in sys.argv[2:]:
    try:
        print(*key.values(text))
    except ValueError:
        print('refused')
";
    let output = python(script).arg(golden("v2.key")).args(&texts).output().expect("needs python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ours = texts.iter().map(|text| match key.values_from_json(text) {
        Ok(values) => values.iter().map(Fr::to_string).collect::<Vec<_>>().join(" "),
        Err(_) => "refused".to_owned(),
    });
    let ours: Vec<_> = ours.collect();
    let python: Vec<_> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert_eq!(ours, python);
    assert_eq!(ours.iter().position(|line| line == "refused"), Some(6));
    assert!(ours[6..].iter().all(|line| line == "refused"), "{ours:?}");
}

/// Bytes that differ in one place, elements that stand elsewhere or have another sign, other lengths, other public values.
fn mutations(number: usize) -> Vec<Claim> {
    let proofs = proofs();
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |bound: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state % u64::try_from(bound).unwrap()).unwrap()
    };
    let mutation = |i: usize| {
        let Claim { key, public, proof } = &proofs[i % proofs.len()];
        let (key, mut public, mut proof) = (key.clone(), public.clone(), proof.clone());
        let elements = elements(proof.len());
        let (start, size) = elements[below(elements.len())];
        match (i / proofs.len()) % 16 {
            // Another element of the same group.
            0 => {
                let same: Vec<_> =
                    elements.iter().filter(|e| e.1 == size && e.0 != start).collect();
                let &&(from, _) = &same[below(same.len())];
                proof.copy_within(from..from + size, start);
            }
            // The neutral element.
            1 => {
                proof[start..start + size].fill(0);
                proof[start] = if size == GT { 0x80 } else { 0xc0 };
            }
            // The other sign of a point.
            2 => {
                let points: Vec<_> = elements.iter().filter(|e| e.1 != GT).collect();
                proof[points[below(points.len())].0] ^= 0x20;
            }
            3 => {
                let place = below(public.len());
                public[place] += 1 + u64::try_from(below(1000)).unwrap();
            }
            4 => match below(2) {
                0 => proof.truncate(below(proof.len())),
                _ => proof.extend((0..=below(300)).map(|_| 0)),
            },
            // A bit of the header, of an element's first byte, or of any byte.
            5 => proof[below(42)] ^= 1 << below(8),
            6 | 7 => proof[start] ^= 1 << below(8),
            _ => proof[start + below(size)] ^= 1 << below(8),
        }
        Claim { key, public, proof }
    };
    (0..number).map(mutation).collect()
}

const GT: usize = 192;

/// The first bytes and the sizes of the elements of a proof (formats: Proof).
fn elements(length: usize) -> Vec<(usize, usize)> {
    let (g1, g2) = (48, 96);
    let rounds = (length - 42 - 10 * GT - 4 * g1 - 4 * g2) / (6 * GT);
    let sizes = [GT; 4].into_iter().chain([g2]).chain(vec![GT; 6 + 6 * rounds]);
    let sizes = sizes.chain([g1, g2, g2, g1, g1, g2, g1]);
    let mut end = 42;
    let elements = sizes.map(|size| {
        end += size;
        (end - size, size)
    });
    let elements: Vec<_> = elements.collect();
    assert_eq!(end, length);
    elements
}

fn agree(number: usize) {
    let claims = mutations(number);
    let original = proofs();
    let [ours, python] = verdicts(&claims);
    assert_eq!((ours.len(), python.len()), (number, number));
    for (i, (claim, (ours, python))) in claims.iter().zip(ours.into_iter().zip(python)).enumerate()
    {
        // A mutation may put an element where an equal one was.
        let unchanged = original
            .iter()
            .any(|o| (&o.key, &o.public, &o.proof) == (&claim.key, &claim.public, &claim.proof));
        assert_eq!((ours, python), (unchanged, unchanged), "mutation {i}");
    }
}

#[test]
fn mutated_proofs() {
    agree(48);
}

/// Takes about an hour of CPU time.
#[test]
#[ignore = "long"]
fn ten_thousand_mutated_proofs() {
    agree(10_000);
}

/// The layout as `verifier.py` reads it.
fn layout(wiring: &Wiring) -> String {
    let list = |items: Vec<String>| format!("[{}]", items.join(","));
    let types = wiring.types.iter().map(|t| {
        let (name, slots, parameters, pairs) = (&t.name, t.slots, t.parameters, t.pairs);
        format!(r#"{{"name":{name:?},"slots":{slots},"parameters":{parameters},"pairs":{pairs}}}"#)
    });
    let mut slots = wiring.slots.iter().map(|s| format!("[{},{}]", s.address, s.multiplicity));
    let mut parameters = wiring.parameters.iter().map(|x| format!("\"{x}\""));
    let mut pairs = wiring.pairs.iter().map(|[key, value]| format!(r#"["{key}","{value}"]"#));
    let [mut all_slots, mut all_parameters, mut all_pairs] = [const { Vec::new() }; 3];
    for &kind in &wiring.type_of {
        let kind = &wiring.types[usize::try_from(kind).unwrap()];
        all_slots.push(list(slots.by_ref().take(kind.slots).collect()));
        all_parameters.push(list(parameters.by_ref().take(kind.parameters).collect()));
        all_pairs.push(list(pairs.by_ref().take(kind.pairs).collect()));
    }
    let public = wiring.public.iter().map(|w| {
        let (address, multiplicity, name, index) = (w.address, w.multiplicity, &w.name, w.index);
        format!(
            r#"{{"address":{address},"multiplicity":{multiplicity},"name":{name:?},"index":{index}}}"#
        )
    });
    let constants = wiring.constants.iter().map(|w| {
        let (address, multiplicity, value) = (w.address, w.multiplicity, w.value);
        format!(r#"{{"address":{address},"multiplicity":{multiplicity},"value":"{value}"}}"#)
    });
    format!(
        r#"{{"types":{},"type_of":{:?},"slots":{},"public":{},"constants":{},"buses":{:?},"parameters":{},"pairs":{}}}"#,
        list(types.collect()),
        wiring.type_of,
        list(all_slots),
        list(public.collect()),
        list(constants.collect()),
        wiring.buses,
        list(all_parameters),
        list(all_pairs)
    )
}

/// Derives a key here and in Python.
fn derived<C: Circuit>(circuit: &C, zero_knowledge: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    let prepared = PreparedCircuit::new(circuit).unwrap();
    let engine = LocalEngine::new(None).unwrap();
    let options = SetupOptions::new("family").insecure_seed(1).zero_knowledge(zero_knowledge);
    let skip = |_| Ok::<_, Infallible>(());
    let family = setup_family(&prepared, 20, &engine, &options, skip, |_| {}).unwrap();
    let (_, key) = derive(&family, &prepared, "{}", &engine).unwrap();
    family.sections().write(&path("family.key")).unwrap();
    fs::write(path("layout"), layout(&prepared.layout().wiring(Masking::new(zero_knowledge))))
        .unwrap();
    let script = "
import json, sys, verifier
family, layout = (open(name, 'rb').read() for name in sys.argv[1:])
sys.stdout.buffer.write(verifier.derive(family, json.loads(layout), '{}'))
";
    let output = python(script).arg(path("family.key")).arg(path("layout")).output();
    let output = output.expect("needs python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout == key.to_bytes(), "another key");
}

#[test]
fn derived_keys() {
    for zero_knowledge in [true, false] {
        derived(&Squarings, zero_knowledge);
        derived(&Histogram { rows: 1 << 14, ..Histogram::new(2, 3) }, zero_knowledge);
    }
}

#[test]
fn command_line() {
    let folder = tempfile::tempdir().unwrap();
    let public = folder.path().join("public.json");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/spec/verifier.py");
    let verify = |key: &Path, options: &[&str]| {
        let mut command = Command::new("python3");
        command.arg(&script).arg("verify").arg(key).arg(golden("v2.proof")).arg(&public);
        command.args(options).output().expect("needs python3")
    };
    let run = |values: &str, options: &[&str]| {
        fs::write(&public, values).unwrap();
        let output = verify(&golden("v2.key"), options);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run("[3, \"0x51\"]", &["--test-keys"]), (Some(0), String::new()));
    let (code, says) = run("[3, 81]", &[]);
    assert_eq!(code, Some(1));
    assert!(says.contains("the key is a test key"), "{says}");
    let (code, says) = run("[3, 82]", &["--test-keys"]);
    assert_eq!(code, Some(1));
    assert!(says.contains("the merged equation does not hold"), "{says}");
    assert_eq!(run("[3, 81]", &["--other"]).0, Some(2));
    let missing = verify(Path::new("missing.key"), &[]);
    assert_eq!(missing.status.code(), Some(3));
    let says = String::from_utf8(missing.stderr).unwrap();
    assert!(says.contains("missing.key"), "{says}");
}

/// Direct proofs in `docs/spec/direct.py`: the test vectors, all values on the way, forgeries, and changed proofs.
#[test]
fn direct_proofs() {
    let script = "
import json, sys, direct, verifier
key = direct.DirectKey.read(open(sys.argv[1], 'rb').read())
for line in sys.stdin:
    public, context, proof = json.loads(line)
    arguments = key, public, bytes.fromhex(context), bytes.fromhex(proof)
    try:
        direct.verify(*arguments, test_keys=True)
        print('accepted')
    except verifier.Refused:
        print('refused')
    if len(sys.argv) == 3:
        values = direct.challenges(*arguments)
        values['words'] = direct.keccak256(direct.words(key, arguments[3])).hex()
        values['key_digest'] = key.digest.hex()
        for name, value in json.load(open(sys.argv[2])).items():
            if name in values:
                assert str(values[name]) == value, name
";
    // Lines with public values, a context and a proof; the verdict of each verifier.
    let verdicts =
        |key: &Path, vector: Option<&Path>, claims: &[(Vec<String>, String, Vec<u8>)]| {
            let lines = claims.iter().map(|(public, context, proof)| {
                format!("[[{}], {context:?}, {:?}]\n", public.join(", "), hex::encode(proof))
            });
            let lines: String = lines.collect();
            let mut child = python(script)
                .arg(key)
                .args(vector)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("needs python3");
            child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(output.status.success(), "direct.py failed with {}", key.display());
            let key = DirectKey::from_bytes(&fs::read(key).unwrap()).unwrap();
            let ours = claims.iter().map(|(public, context, proof)| {
                let public: Vec<Fr> = public.iter().map(|x| x.parse().unwrap()).collect();
                let context = hex::decode(context).unwrap().try_into().unwrap();
                verify_direct_with_test_keys(&key, &public, &context, proof).is_ok()
            });
            let text = String::from_utf8(output.stdout).unwrap();
            let theirs: Vec<bool> = text.lines().map(|line| line == "accepted").collect();
            [ours.collect(), theirs]
        };
    let claim = |vector: &Path, proof: Vec<u8>| {
        let json: serde_json::Value = serde_json::from_slice(&fs::read(vector).unwrap()).unwrap();
        let texts = json["public_values"].as_array().unwrap().iter();
        let public = texts.map(|x| x.as_str().unwrap().to_owned()).collect();
        (public, json["context"].as_str().unwrap().to_owned(), proof)
    };
    for name in ["direct-1", "direct-2", "direct-5", "direct-buses"] {
        let [key, proof, vector] =
            ["key", "proof", "json"].map(|what| golden(&format!("{name}.{what}")));
        let claim = claim(&vector, fs::read(proof).unwrap());
        assert_eq!(verdicts(&key, Some(&vector), &[claim]), [[true], [true]], "{name}");
    }
    // Changed proofs: each part of the file, its length, the statement.
    let (key, vector) = (golden("direct-1.key"), golden("direct-1.json"));
    let proof = fs::read(golden("direct-1.proof")).unwrap();
    let mut claims = vec![claim(&vector, proof.clone())];
    for at in [8, 42, 90, 138, 234, proof.len() - 1] {
        let mut changed = proof.clone();
        changed[at] ^= 1;
        claims.push(claim(&vector, changed));
    }
    claims.push(claim(&vector, proof[..proof.len() - 1].to_vec()));
    let mut other = claim(&vector, proof.clone());
    other.0.swap(0, 1);
    claims.push(other);
    let mut other = claim(&vector, proof);
    other.1 = "00".repeat(32);
    claims.push(other);
    let expected: Vec<bool> = (0..claims.len()).map(|i| i == 0).collect();
    assert_eq!(verdicts(&key, None, &claims), [expected.clone(), expected]);
    // A key with a delta that has no secret.
    let mut bytes = fs::read(golden("direct-1.key")).unwrap();
    let key = DirectKey::from_bytes(&bytes).unwrap();
    let delta = key.types()[0].elements[0].to_compressed();
    let at = bytes.windows(96).position(|part| part == delta).unwrap();
    bytes[at..at + 96].copy_from_slice(&G2Point::generator().to_compressed());
    let end = bytes.len() - 32;
    let checksum = blake3::hash(&bytes[..end]);
    bytes[end..].copy_from_slice(checksum.as_bytes());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("generator.key");
    fs::write(&path, &bytes).unwrap();
    assert!(DirectKey::from_bytes(&bytes).unwrap_err().to_string().contains("delta or eta is 1"));
    let read = python("import sys, direct; direct.DirectKey.read(open(sys.argv[1], 'rb').read())")
        .arg(&path)
        .output()
        .expect("needs python3");
    assert!(String::from_utf8_lossy(&read.stderr).contains("a delta or eta is the generator"));
    // The forgeries, under keys of their own.
    for name in ["c", "key"] {
        let path = golden(&format!("forgeries/{name}.json"));
        let json: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        let bytes = |what: &str| hex::decode(json[what].as_str().unwrap()).unwrap();
        let key = folder.path().join(name);
        fs::write(&key, bytes("key")).unwrap();
        assert_eq!(
            verdicts(&key, None, &[claim(&path, bytes("proof"))]),
            [[false], [false]],
            "{name}"
        );
    }
}
