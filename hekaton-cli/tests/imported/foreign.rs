//! The messages and exit codes for circuits, witnesses and public values from other tools.

use super::common::{command, fails, hekaton, ok};
use super::{Fixture, coefficient, fixture, json};
use ark_ff::Field;
use hekaton_circuit::Fr;
use hekaton_r1cs::{R1csFile, SystemBuilder, WitnessFile};
use serde_json::Value;
use std::io::Write;
use std::process::{Command, Stdio};

/// Files that circom wrote.
fn golden(name: &str) -> String {
    format!("{}/../circuits/r1cs/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn folder() -> Fixture {
    Fixture { dir: tempfile::tempdir().unwrap() }
}

/// Makes and verifies a proof from two files.
fn whole_way(r1cs: &str, wtns: &str) {
    let f = folder();
    let (hk, keys, proof) = (f.path("c.hk"), f.path("keys"), f.path("proof"));
    let (public, key) = (f.path("public.json"), f.path("keys/verifying.key"));
    ok(&["import", r1cs, "--out", &hk, "--force"]);
    ok(&["check", &hk, wtns]);
    ok(&["setup", &hk, "--keys", &keys, "--r1cs", r1cs]);
    ok(&["prove", wtns, "--keys", &keys, "--proof", &proof, "--public", &public]);
    let text = ok(&["verify", &proof, "--key", &key, "--public", &format!("@{public}")]);
    assert!(text.contains("the proof holds"), "{text}");
}

/// circom's three levels of optimization, private inputs that simplification removed, and a circuit
/// whose only constraint is linear.
#[test]
fn files_of_circom_are_proven() {
    for name in ["levels-O0", "levels-O1", "levels-O2", "unused-inputs-O1"] {
        whole_way(&golden(&format!("{name}.r1cs")), &golden(&format!("{name}.wtns")));
    }
    let f = folder();
    let values = [1u64, 12, 5, 7].map(Fr::from);
    std::fs::write(f.path("linear.wtns"), WitnessFile::bytes_of(&values)).unwrap();
    whole_way(&golden("linear-O1.r1cs"), &f.path("linear.wtns"));
    let nothing = golden("linear-O2.r1cs");
    fails(3, "there is nothing to prove", &["import", &nothing, "--out", &f.path("n.hk")]);
    // A witness of another level has another number of values.
    ok(&["import", &golden("levels-O2.r1cs"), "--out", &f.path("o2.hk"), "--force"]);
    let says = "another compilation of this one";
    fails(3, says, &["check", &f.path("o2.hk"), &golden("levels-O0.wtns")]);
}

/// An output that nothing ties is named at import, check and setup, and no check claims that it was
/// noticed.
#[test]
fn outputs_that_nothing_ties_are_named() {
    let f = folder();
    let (r1cs, sym) = (golden("free-output.r1cs"), golden("free-output.sym"));
    let (wtns, hk) = (golden("free-output.wtns"), f.path("x.hk"));
    let says = "1 of 2 public values is in no constraint, so that a prover may claim any value there: \
                main.outs[0] (output)";
    let import = hekaton(&["import", &r1cs, "--sym", &sym, "--out", &hk, "--force"]);
    assert!(import.status.success());
    assert!(String::from_utf8_lossy(&import.stderr).contains(says), "{import:?}");
    let text = ok(&["check", &hk, &wtns]);
    assert!(text.contains(&format!("notice: {says}")), "{text}");
    assert!(text.contains("main.outs[1] = "), "{text}");
    let found = json(&["check", &hk, &wtns]);
    assert!(found["notices"][0].as_str().unwrap().contains("main.outs[0]"), "{found}");
    let setup = hekaton(&["setup", &hk, "--keys", &f.path("keys")]);
    assert!(String::from_utf8_lossy(&setup.stderr).contains(says), "{setup:?}");
    // A circuit whose public values are all tied has no such notice.
    let f = fixture();
    let text = ok(&["check", &f.path("a.hk"), &f.path("a.wtns")]);
    assert!(!text.contains("in no constraint"), "{text}");
}

/// A second witness is written, and proven: the proof is right, and the circuit is wrong.
#[test]
fn second_witnesses_are_proven() {
    let f = folder();
    for fault in ["decoder", "root", "selector", "division", "two-of-one-sum"] {
        let [r1cs, wtns] =
            ["r1cs", "wtns"].map(|ending| golden(&format!("unique/fault-{fault}.{ending}")));
        let path = |ending: &str| f.path(&format!("{fault}.{ending}"));
        let (hk, keys, second, proof) = (path("hk"), path("keys"), path("wtns"), path("proof"));
        ok(&["import", &r1cs, "--out", &hk, "--force"]);
        for circuit in [&r1cs, &hk] {
            let found = hekaton(&["check", circuit, &wtns, "--unique", "--second", &second]);
            assert_eq!(found.status.code(), Some(1), "{fault}: {found:?}");
            let text = String::from_utf8_lossy(&found.stderr);
            assert!(text.contains("does not follow from the inputs"), "{fault}: {text}");
            assert!(text.contains("A prover may claim either value"), "{fault}: {text}");
            assert!(text.contains("\nunique: given "), "{fault}: {text}");
        }
        ok(&["setup", &hk, "--keys", &keys]);
        let public = |wtns: &str| ok(&["hash", wtns, "--keys", &keys]);
        assert_ne!(public(&wtns), public(&second), "{fault}");
        ok(&["prove", &second, "--keys", &keys, "--proof", &proof]);
        let key = format!("{keys}/verifying.key");
        ok(&["verify", &proof, "--key", &key, "--public", public(&second).trim()]);
    }
}

#[test]
fn verdicts_are_reported() {
    let f = folder();
    let (r1cs, wtns) = (golden("unique/division.r1cs"), golden("unique/division.wtns"));
    let text = ok(&["check", &r1cs, &wtns, "--unique", "--strict"]);
    assert!(text.contains("all 199 constraints hold"), "{text}");
    let given = "unique: given 0 public inputs and 2 private inputs, 2 of 2 outputs";
    assert!(text.contains(given) && text.contains("for this input only"), "{text}");
    let zero = [golden("unique/is-zero-of-0.r1cs"), golden("unique/is-zero-of-0.wtns")];
    let text = ok(&["check", &zero[0], &zero[1], "--unique"]);
    assert!(text.contains("free values that change no output: wire 3 (0 or 1)"), "{text}");
    let other = f.path("other.wtns");
    let written = ok(&["check", &zero[0], &zero[1], "--unique", "--second", &other]);
    assert!(
        written.contains("1 of 1 outputs") && std::path::Path::new(&other).exists(),
        "{written}"
    );
    let found = json(&["check", &zero[0], &zero[1], "--unique"]);
    assert_eq!(found["unique"][0]["free"][0]["output"], false, "{found}");
    assert_eq!(found["unique"][0]["outputs"], 1, "{found}");
    // Wrong uses.
    for (code, says, arguments) in [
        (2, "--sym is for a .r1cs file", vec!["check", "chain", &wtns, "--sym", "x.sym"]),
        (2, "--unique", vec!["check", &r1cs, &wtns, "--second", &other]),
        (3, "that is the input", vec!["check", &r1cs, &wtns, "--unique", "--second", &wtns]),
        (3, "values", vec!["check", &r1cs, &zero[1], "--unique"]),
    ] {
        let failed = hekaton(&arguments);
        assert_eq!(failed.status.code(), Some(code), "{arguments:?}: {failed:?}");
        let text = String::from_utf8_lossy(&failed.stderr);
        assert!(text.contains(says), "{arguments:?}: {text}");
    }
}

/// Squares x_i of public wires: as many as `count`, with names.
fn many(f: &Fixture, count: u32) {
    let mut system = SystemBuilder::new(2 * count + 1, count);
    let mut values = vec![Fr::ONE; 2 * count as usize + 1];
    let (one, value) = coefficient(1);
    for i in 1..=count {
        for wire in [count + i, count + i, i] {
            system.term(wire, &one, || value).unwrap();
            system.end_combination().unwrap();
        }
        system.end_row(i - 1).unwrap();
        let x = Fr::from(u64::from(i) + (1 << 40));
        (values[i as usize], values[(count + i) as usize]) = (x.square(), x);
    }
    std::fs::write(f.path("m.r1cs"), R1csFile::bytes_of(&system.finish(), count)).unwrap();
    std::fs::write(f.path("m.wtns"), WitnessFile::bytes_of(&values)).unwrap();
    let names: String = (0..count).map(|i| format!("{i},{},0,main.y[{i}]\n", i + 1)).collect();
    std::fs::write(f.path("m.sym"), names).unwrap();
}

/// The command after "verify it with", run by a shell.
fn run_shown(text: &str) -> std::process::Output {
    let (_, shown) = text.split_once("verify it with\n").unwrap_or_else(|| panic!("{text}"));
    let line = shown.trim().lines().next().unwrap();
    let script = format!("hekaton() {{ \"$HEKATON\" \"$@\"; }}; {line}");
    let mut bash = Command::new("bash");
    bash.args(["-c", &script]).env("HEKATON", env!("CARGO_BIN_EXE_hekaton"));
    bash.output().unwrap()
}

/// Thousands of public values: a terminal has the first few by name, a file has all, and commands are
/// short.
#[test]
fn many_public_values_go_to_a_file() {
    let f = folder();
    many(&f, 20_000);
    let (hk, keys, wtns, proof) =
        (f.path("m.hk"), f.path("keys"), f.path("m.wtns"), f.path("proof"));
    let few = |text: &str| {
        assert!(text.len() < 6_000, "{} bytes: {}..", text.len(), &text[..2_000]);
        assert!(text.contains("main.y[0] = 1208925819616828197961729, main.y[1] = "), "{text}");
        assert!(text.contains("and 19,996 more"), "{text}");
    };
    ok(&["import", &f.path("m.r1cs"), "--sym", &f.path("m.sym"), "--out", &hk, "--force"]);
    few(&ok(&["check", &hk, &wtns]));
    ok(&["setup", &hk, "--keys", &keys]);
    let text = ok(&["prove", &wtns, "--keys", &keys, "--proof", &proof]);
    few(&text);
    let verified = run_shown(&text);
    assert!(verified.status.success(), "{verified:?}");
    few(&String::from_utf8_lossy(&verified.stdout));
    // The file has what `hash` prints.
    let file = f.path("proof.public.json");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), ok(&["hash", &wtns, "--keys", &keys]));
    // The same by name, and with a wrong value.
    let by_name = json(&["hash", &wtns, "--keys", &keys])["public_values"].clone();
    assert_eq!(by_name["main.y[0]"], "1208925819616828197961729");
    let key = f.path("keys/verifying.key");
    let verify = |values: &Value| {
        std::fs::write(f.path("named.json"), values.to_string()).unwrap();
        let at = format!("@{}", f.path("named.json"));
        hekaton(&["verify", &proof, "--key", &key, "--public", &at]).status.code()
    };
    assert_eq!(verify(&by_name), Some(0));
    let mut wrong = by_name.clone();
    wrong["main.y[7]"] = "3".into();
    assert_eq!(verify(&wrong), Some(1));
    let mut unknown = by_name.clone();
    unknown["main.z"] = "3".into();
    assert_eq!(verify(&unknown), Some(2));
    // Without the folder next to it, a key has no names of signals.
    std::fs::copy(&key, f.path("alone.key")).unwrap();
    let at = format!("@{file}");
    let text = ok(&["verify", &proof, "--key", &f.path("alone.key"), "--public", &at]);
    assert!(text.contains("public[0] = 1208925819616828197961729") && text.len() < 6_000, "{text}");
    // Names of another circuit are not those of this key.
    std::fs::write(f.path("keys/circuit/circuit.json"), "{\"public_names\": [\"x\"]}").unwrap();
    let text = ok(&["verify", &proof, "--key", &key, "--public", &at]);
    assert!(text.contains("public[0] = "), "{text}");
}

#[test]
fn public_values_are_written_where_asked() {
    let f = fixture();
    let (keys, wtns) = (f.path("keys"), f.path("a.wtns"));
    let (proof, public) = (f.path("asked.proof"), f.path("asked.json"));
    let text = ok(&["prove", &wtns, "--keys", &keys, "--proof", &proof, "--public", &public]);
    assert!(text.contains("main.y = "), "{text}");
    assert_eq!(std::fs::read_to_string(&public).unwrap(), ok(&["hash", &wtns, "--keys", &keys]));
    assert!(run_shown(&text).status.success(), "{text}");
    let prove = |public: &str, says: &str| {
        fails(3, says, &["prove", &wtns, "--keys", &keys, "--proof", &proof, "--public", public]);
    };
    prove(&wtns, "that is the input");
    prove(&proof, "where the proof or the events go");
    prove(&f.path("none/public.json"), "does not exist");
    // Few values are in the command, and no file is made.
    let proof = f.path("few.proof");
    ok(&["prove", &wtns, "--keys", &keys, "--proof", &proof]);
    assert!(!std::path::Path::new(&f.path("few.proof.public.json")).exists());
    let key = f.path("keys/verifying.key");
    let says = "to read the values from that file, write @";
    fails(2, says, &["verify", &proof, "--key", &key, "--public", &public]);
}

/// Commands that are shown can be pasted, whatever is in the paths.
#[test]
fn paths_in_commands_are_quoted() {
    let f = fixture();
    let dir = f.path("it's a $HOME; `x`");
    std::fs::create_dir(&dir).unwrap();
    let (keys, proof) = (format!("{dir}/my keys"), format!("{dir}/-a \"proof\""));
    let imported =
        ok(&["import", &f.path("a.r1cs"), "--rows", "16", "--out", &format!("{dir}/c.hk")]);
    assert!(imported.contains(r"it'\''s a $HOME; `x`/c.hk' --r1cs "), "{imported}");
    ok(&["setup", &format!("{dir}/c.hk"), "--keys", &keys]);
    let text = ok(&["prove", &f.path("a.wtns"), "--keys", &keys, "--proof", &proof]);
    let verified = run_shown(&text);
    assert!(verified.status.success(), "{text}\n{verified:?}");
}

/// Public values have one text each: decimal without leading zeros, or hexadecimal with 0x.
#[test]
fn public_values_are_canonical() {
    let f = fixture();
    let (keys, proof) = (f.path("keys"), f.path("canonical.proof"));
    ok(&["prove", &f.path("a.wtns"), "--keys", &keys, "--proof", &proof]);
    let list: Vec<String> =
        serde_json::from_str(&ok(&["hash", &f.path("a.wtns"), "--keys", &keys])).unwrap();
    let key = f.path("keys/verifying.key");
    let verify = |public: &str| hekaton(&["verify", &proof, "--key", &key, "--public", public]);
    assert_eq!(verify(&format!("[\"{}\"]", list[0])).status.code(), Some(0));
    for wrong in
        [format!("0{}", list[0]), "00".into(), "01".into(), "+1".into(), " 1".into(), "".into()]
    {
        let output = verify(&format!("[\"{wrong}\"]"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{wrong}: {text}");
        assert!(text.contains("public[0]") || text.contains("main.y"), "{wrong}: {text}");
    }
    let text = String::from_utf8_lossy(&verify("[\"01\"]").stderr).into_owned();
    assert!(text.contains("'01': write decimal numbers without leading zeros"), "{text}");
    // Hexadecimal is documented, and another value is another value.
    assert_eq!(verify("[\"0x1\"]").status.code(), Some(1));
}

#[test]
fn other_sources_are_named_without_blame() {
    let f = fixture();
    let hk = f.path("a.hk");
    let setup = |source: &str, says: &str| {
        let args = ["setup", &hk, "--keys", &f.path("other.keys"), "--r1cs", source];
        fails(3, says, &args);
        let err = String::from_utf8_lossy(&hekaton(&args).stderr).into_owned();
        assert!(!err.contains("partitioner") && err.contains("that was imported"), "{err}");
    };
    setup(
        &golden("unused-inputs-O1.r1cs"),
        "the circuit has 4 wires, but the partition is of one with",
    );
    // As many public wires, one an output and one an input.
    let bytes = std::fs::read(f.path("a.r1cs")).unwrap();
    let counts = 12 + 12 + 36 + 4;
    let mut turned = bytes.clone();
    turned[counts..counts + 8].copy_from_slice(&[0, 0, 0, 0, 1, 0, 0, 0]);
    std::fs::write(f.path("turned.r1cs"), turned).unwrap();
    setup(
        &f.path("turned.r1cs"),
        "the circuit has 0 public outputs, but the partition is of one with 1",
    );
    // The same constraints in another file.
    let mut labels = bytes.clone();
    *labels.last_mut().unwrap() ^= 1;
    std::fs::write(f.path("labels.r1cs"), labels).unwrap();
    setup(&f.path("labels.r1cs"), "was imported from another file");
}

/// Damaged files have exit code 3, with their names.
#[test]
fn damaged_files_are_named() {
    let f = fixture();
    let (wtns, keys) = (f.path("a.wtns"), f.path("keys"));
    let copy = |to: &str| {
        let status = Command::new("cp").args(["-r", &f.path("a.hk"), &f.path(to)]).status();
        assert!(status.unwrap().success());
        f.path(to)
    };
    let rows = copy("rows.hk");
    f.changed("rows.hk/types/t1.rows", "rows.hk/types/t1.rows", |bytes| bytes[30] ^= 1);
    let names = copy("names.hk");
    f.changed("names.hk/symbols", "names.hk/symbols", |bytes| bytes[8] ^= 1);
    let gone = copy("gone.hk");
    std::fs::remove_file(format!("{gone}/symbols")).unwrap();
    for (hk, says) in [(&rows, "t1.rows"), (&names, "names.hk/symbols"), (&gone, "gone.hk/symbols")]
    {
        fails(3, says, &["check", hk, &wtns]);
        fails(3, says, &["setup", hk, "--keys", &f.path("damaged.keys")]);
    }
    // A value that is not below the modulus: 32 bytes of 255 for wire 20.
    let values = 12 + 12 + 40 + 12;
    let large =
        f.changed("a.wtns", "large.wtns", |bytes| bytes[values + 640..values + 672].fill(255));
    let says = "large.wtns: section 2, byte 716: the value of wire 20 is not below the modulus";
    fails(3, says, &["check", &f.path("a.hk"), &large]);
    fails(3, says, &["prove", &large, "--keys", &keys, "--proof", &f.path("large.proof")]);
    fails(3, says, &["hash", &large, "--keys", &keys]);
}

/// The number of a constraint is that of the source, and no other one is shown.
#[test]
fn constraints_have_the_numbers_of_the_source() {
    let f = fixture();
    let values = 12 + 12 + 40 + 12;
    let wrong = f.changed("a.wtns", "numbers.wtns", |bytes| bytes[values + 32 * 20] ^= 1);
    let proof = f.path("numbers.proof");
    for args in [
        vec!["check", &f.path("a.hk"), &wrong],
        vec!["prove", &wrong, "--keys", &f.path("keys"), "--proof", &proof],
    ] {
        let output = hekaton(&args);
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        let found: Vec<&str> = err.split("constraint ").skip(1).collect();
        let numbers: Vec<&str> =
            found.iter().filter_map(|text| text.split_once(' ').map(|(n, _)| n)).collect();
        let numbers: Vec<&&str> =
            numbers.iter().filter(|n| n.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert_eq!(numbers, [&"17"], "{err}");
    }
}

/// Sources and names from a pipe are refused by name; a witness from a pipe is read, and errors in it
/// have the name that was given.
#[test]
fn pipes() {
    let f = fixture();
    let pipe = f.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let out = f.path("pipe.hk");
    let says = "pipe: is a pipe or a device";
    fails(3, says, &["import", &pipe, "--out", &out]);
    fails(3, says, &["import", &f.path("a.r1cs"), "--sym", &pipe, "--out", &out]);
    fails(3, says, &["setup", &f.path("a.hk"), "--keys", &f.path("pipe.keys"), "--r1cs", &pipe]);
    fails(3, says, &["keys", "verify", &f.path("keys"), "--r1cs", &pipe]);
    let piped = |bytes: &[u8]| {
        let mut child = command(&["check", &f.path("a.hk"), "/dev/stdin"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(bytes).unwrap();
        child.wait_with_output().unwrap()
    };
    let bytes = std::fs::read(f.path("a.wtns")).unwrap();
    assert!(piped(&bytes).status.success());
    let cut = piped(&bytes[..500]);
    let err = String::from_utf8_lossy(&cut.stderr).into_owned();
    assert_eq!(cut.status.code(), Some(3), "{err}");
    assert!(err.contains("/dev/stdin: ") && err.contains("it is truncated"), "{err}");
}

/// Keys say which file was imported, and no JSON of digests.
#[test]
fn keys_are_described_by_their_source() {
    let f = fixture();
    let (keys, proof) = (f.path("keys"), f.path("described.proof"));
    let proven = ok(&["prove", &f.path("a.wtns"), "--keys", &keys, "--proof", &proof]);
    let verified = run_shown(&proven);
    let verified = String::from_utf8_lossy(&verified.stdout).into_owned();
    let listed = ok(&["keys", "list", &keys]);
    let inspected = ok(&["inspect", &keys]);
    let key = ok(&["inspect", &f.path("keys/verifying.key")]);
    for text in [&proven, &verified, &listed, &inspected, &key] {
        assert!(text.contains("imported circuit a.r1cs (source "), "{text}");
        assert!(!text.contains("{\"directory\""), "{text}");
    }
}
