//! Circuits of other tools: the commands from a `.r1cs` to a verified proof, and what they refuse.

mod common;
#[path = "imported/foreign.rs"]
mod foreign;

use ark_ff::Field;
use common::{command, fails, hekaton, ok};
use hekaton_circuit::Fr;
use hekaton_core::VerifyingKey;
use hekaton_r1cs::{R1csFile, SystemBuilder, WitnessFile};
use serde_json::Value;
use std::path::Path;
use std::sync::OnceLock;

/// Squarings with a constant, from wire 2 to the public wire 1, and the files of this circuit.
struct Fixture {
    dir: tempfile::TempDir,
}

/// The number of squarings.
const STEPS: u32 = 40;

impl Fixture {
    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_string_lossy().into_owned()
    }

    /// Writes a changed copy of a file.
    fn changed(&self, name: &str, to: &str, change: impl FnOnce(&mut Vec<u8>)) -> String {
        let mut bytes = std::fs::read(self.path(name)).unwrap();
        change(&mut bytes);
        std::fs::write(self.path(to), bytes).unwrap();
        self.path(to)
    }
}

fn coefficient(value: u64) -> ([u8; 32], Fr) {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    (bytes, Fr::from(value))
}

/// The `.r1cs` and the `.wtns`.
fn files(steps: u32, constant: u64) -> (Vec<u8>, Vec<u8>) {
    let mut system = SystemBuilder::new(steps + 2, 1);
    let wire = |step: u32| if step == steps { 1 } else { 2 + step };
    let mut values = vec![Fr::ONE; steps as usize + 2];
    let mut x = Fr::from(7u64);
    let term = |system: &mut SystemBuilder, wire: u32, k: u64| {
        let (bytes, value) = coefficient(k);
        system.term(wire, &bytes, || value).unwrap();
    };
    for step in 0..steps {
        values[wire(step) as usize] = x;
        for _ in 0..2 {
            term(&mut system, wire(step), 1);
            system.end_combination().unwrap();
        }
        // x^2 + constant = y, as x * x = y - constant: the constant is on the left, times -1.
        term(&mut system, wire(step + 1), 1);
        let minus = -Fr::from(constant);
        let bytes = WitnessFile::bytes_of(&[Fr::ONE, minus]);
        let bytes: [u8; 32] = bytes[bytes.len() - 32..].try_into().unwrap();
        system.term(0, &bytes, || minus).unwrap();
        system.end_combination().unwrap();
        system.end_row(step).unwrap();
        x = x.square() + Fr::from(constant);
    }
    values[1] = x;
    (R1csFile::bytes_of(&system.finish(), 1), WitnessFile::bytes_of(&values))
}

fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let f = Fixture { dir: tempfile::tempdir().unwrap() };
        let (r1cs, wtns) = files(STEPS, 5);
        std::fs::write(f.path("a.r1cs"), r1cs).unwrap();
        std::fs::write(f.path("a.wtns"), wtns).unwrap();
        let names = (0..STEPS).map(|step| format!("{step},{},0,main.x[{step}]\n", 2 + step));
        std::fs::write(f.path("a.sym"), "0,1,0,main.y\n".to_owned() + &names.collect::<String>())
            .unwrap();
        let text = ok(&[
            "import",
            &f.path("a.r1cs"),
            "--sym",
            &f.path("a.sym"),
            "--rows",
            "2^4",
            "--out",
            &f.path("a.hk"),
        ]);
        assert!(text.contains("in 4 parts of 3 types") && text.contains("setup"), "{text}");
        ok(&["setup", &f.path("a.hk"), "--keys", &f.path("keys")]);
        f
    })
}

fn json(args: &[&str]) -> Value {
    let mut args = args.to_vec();
    args.push("--json");
    serde_json::from_str(&ok(&args)).unwrap()
}

#[test]
fn from_r1cs_to_a_verified_proof() {
    let f = fixture();
    let (hk, keys, wtns) = (f.path("a.hk"), f.path("keys"), f.path("a.wtns"));
    let text = ok(&["check", &hk, &wtns]);
    assert!(text.contains("all ") && text.contains("of 4 subcircuits hold"), "{text}");
    let public = ok(&["hash", &wtns, "--keys", &keys]);
    assert_eq!(public, ok(&["hash", &wtns, "--circuit", &hk]));
    // snarkjs' form: an array of decimal strings.
    let list: Vec<String> = serde_json::from_str(&public).unwrap();
    assert!(list.len() == 1 && list[0].bytes().all(|c| c.is_ascii_digit()), "{public}");
    std::fs::write(f.path("public.json"), &public).unwrap();
    let proof = f.path("proof");
    let text = ok(&["prove", &wtns, "--keys", &keys, "--proof", &proof]);
    // The command that is shown can be pasted.
    assert!(text.contains(&format!("--public '{}'", public.trim())), "{text}");
    let (key, at) = (f.path("keys/verifying.key"), "@".to_owned() + &f.path("public.json"));
    let text = ok(&["verify", &proof, "--key", &key, "--public", &at]);
    assert!(text.contains("the proof holds"), "{text}");
    fails(1, "does not hold", &["verify", &proof, "--key", &key, "--public", r#"["3"]"#]);
    fails(2, "--public", &["verify", &proof, "--key", &key, "--public", r#"["3", "4"]"#]);
    let text = ok(&["keys", "verify", &keys, "--r1cs", &f.path("a.r1cs")]);
    assert!(text.contains("the keys have the 40 constraints"), "{text}");
    let text = ok(&["estimate", &hk, "--for", &wtns]);
    assert!(text.contains("subcircuits      4"), "{text}");
    ok(&["estimate", &hk]);
    let text = ok(&["inspect", &hk]);
    assert!(text.contains("imported circuit a.r1cs") && text.contains("4 of 3 types"), "{text}");
}

#[test]
fn what_a_cut_would_cost() {
    let f = fixture();
    let found = json(&["import", &f.path("a.r1cs"), "--rows", "16", "--dry-run"]);
    let cut = &found["cuts"][0];
    assert_eq!((&cut["parts"], &cut["types"], &cut["slots"]), (&4.into(), &3.into(), &7.into()));
    assert_eq!(cut["chosen"], true);
    let whole = json(&["import", &f.path("a.r1cs"), "--dry-run"]);
    assert_eq!(whole["cuts"][0]["parts"], 1);
    assert!(!Path::new(&f.path("nothing")).exists());
}

/// A small circuit is imported as one part without a note and without --force, also if most of its rows
/// are those of public values.
#[test]
fn small_circuits_need_no_force() {
    let f = fixture();
    let mut system = SystemBuilder::new(4, 3);
    for wire in [1, 2, 3] {
        let (bytes, value) = coefficient(1);
        system.term(wire, &bytes, || value).unwrap();
        system.end_combination().unwrap();
    }
    system.end_row(0).unwrap();
    std::fs::write(f.path("product.r1cs"), R1csFile::bytes_of(&system.finish(), 1)).unwrap();
    let found = json(&["import", &f.path("product.r1cs"), "--out", &f.path("product.hk")]);
    assert_eq!(found["summary"]["parts"], 1);
    assert_eq!(found["notes"], serde_json::json!([]));
    // Rows over the same forty wires: a part has little room in addition to these. That is said, and
    // refused where one part is faster.
    let mut system = SystemBuilder::new(341, 1);
    let (bytes, value) = coefficient(1);
    for row in 0..300 {
        for wires in [1..21, 21..41, 41 + row..42 + row] {
            for wire in wires {
                system.term(wire, &bytes, || value).unwrap();
            }
            system.end_combination().unwrap();
        }
        system.end_row(row).unwrap();
    }
    std::fs::write(f.path("dense.r1cs"), R1csFile::bytes_of(&system.finish(), 0)).unwrap();
    let (source, out) = (f.path("dense.r1cs"), f.path("dense.hk"));
    let dense = ["import", &source, "--rows", "64", "--out", &out];
    fails(4, "one part alone", &dense);
    assert!(!Path::new(&out).exists());
    let text = String::from_utf8(hekaton(&[&dense[..], &["--force"]].concat()).stderr).unwrap();
    assert!(text.contains("where the constraints alone would need"), "{text}");
}

/// A resumed run, and a seeded one, are as for other circuits: the same bytes.
#[test]
fn runs_are_resumed() {
    let f = fixture();
    let (keys, wtns, run) = (f.path("keys"), f.path("a.wtns"), f.path("run"));
    let prove = |more: &[&str]| {
        let mut args = vec!["prove", &wtns, "--keys", &keys, "--insecure-seed", "3"];
        args.extend(more);
        ok(&args);
    };
    let direct = f.path("direct");
    prove(&["--proof", &direct, "--threads", "1"]);
    prove(&["--run", &run]);
    prove(&["--run", &run, "--resume"]);
    let same = std::fs::read(direct).unwrap() == std::fs::read(f.path("run/proof")).unwrap();
    assert!(same, "the bytes differ");
}

#[test]
fn wrong_witnesses_are_named() {
    let f = fixture();
    let (hk, keys) = (f.path("a.hk"), f.path("keys"));
    // A value in the middle: wire 20, which is x[18].
    let values = 12 + 12 + 40 + 12;
    let wrong = f.changed("a.wtns", "wrong.wtns", |bytes| bytes[values + 32 * 20] ^= 1);
    fails(1, "constraint 17 of a.r1cs, with main.x[17], main.x[18]", &["check", &hk, &wrong]);
    let (r1cs, sym) = (f.path("a.r1cs"), f.path("a.sym"));
    for (names, options) in
        [("main.x[17], main.x[18]", vec!["--sym", &sym]), ("wire 19, wire 20", vec![])]
    {
        let says = format!("constraint 17 of {r1cs}, with {names}: ");
        fails(1, &says, &[&["check", &r1cs, &wrong][..], &options].concat());
    }
    let missing = f.path("missing.r1cs");
    fails(3, &format!("{missing}: No such file"), &["check", &missing, &wrong, "--sym", &sym]);
    fails(4, "constraint 17 of a.r1cs is not satisfied", &["prove", &wrong, "--keys", &keys]);
    // Other lengths, and no witness at all.
    let short = files(STEPS - 1, 5).1;
    std::fs::write(f.path("short.wtns"), short).unwrap();
    let short = f.path("short.wtns");
    for args in [vec!["check", &hk, &short], vec!["prove", &short, "--keys", &keys]] {
        fails(3, "the number of values is 41, expected 42", &args);
    }
    let truncated = f.changed("a.wtns", "cut.wtns", |bytes| bytes.truncate(500));
    fails(3, "it is truncated", &["prove", &truncated, "--keys", &keys]);
    let first = f.changed("a.wtns", "first.wtns", |bytes| bytes[values] = 2);
    fails(3, "the first value is not 1", &["check", &hk, &first]);
    fails(3, "not a wtns file", &["check", &hk, &f.path("a.r1cs")]);
    fails(3, "not a wtns file", &["hash", &f.path("a.r1cs"), "--keys", &keys]);
    fails(3, "No such file", &["prove", &f.path("missing.wtns"), "--keys", &keys]);
}

#[test]
fn wrong_sources_are_named() {
    let f = fixture();
    let out = f.path("out.hk");
    let import =
        |file: &str| vec!["import".to_owned(), file.to_owned(), "--out".into(), out.clone()];
    let refused = |code: i32, says: &str, file: &str, more: &[&str]| {
        let args = import(file);
        let args: Vec<&str> = args.iter().map(String::as_str).chain(more.iter().copied()).collect();
        fails(code, says, &args);
        assert!(!Path::new(&out).exists());
    };
    let source = f.path("a.r1cs");
    refused(3, "not a r1cs file", &f.path("a.wtns"), &[]);
    refused(3, "No such file", &f.path("missing.r1cs"), &[]);
    let cut = f.changed("a.r1cs", "cut.r1cs", |bytes| bytes.truncate(1000));
    refused(3, "it is truncated", &cut, &[]);
    // The modulus of BN254, in the header of section 1.
    let prime = "30644e72e131a029b85045b68181585d2833e84879b9709143e1f593f0000001";
    let prime: Vec<u8> =
        (0..32).rev().map(|i| u8::from_str_radix(&prime[2 * i..2 * i + 2], 16).unwrap()).collect();
    let other = f.changed("a.r1cs", "bn254.r1cs", |bytes| bytes[28..60].copy_from_slice(&prime));
    refused(3, "of BN254", &other, &[]);
    refused(3, "--prime bls12381", &other, &[]);
    refused(2, "expected a number", &source, &["--rows", "2^99"]);
    refused(3, "not a line of a .sym file", &source, &["--sym", &source]);
    // Nothing is written over what is there.
    fails(3, "exists", &["import", &source, "--out", &f.path("a.hk")]);
    fails(3, "exists", &["import", &source, "--out", &source]);
}

#[test]
fn circuits_and_keys_belong_together() {
    let f = fixture();
    let (keys, wtns) = (f.path("keys"), f.path("a.wtns"));
    fails(3, "is not a circuit directory", &["setup", "./nothing.hk", "--keys", &f.path("k")]);
    fails(3, "it has no circuit.json", &["check", &keys, &wtns]);
    fails(2, "have no parameters", &["check", &f.path("a.hk"), &wtns, "-p", "x=1"]);
    // Another circuit of the same shape, whose constant is another.
    std::fs::write(f.path("b.r1cs"), files(STEPS, 6).0).unwrap();
    let says = "is not constraint 0 of the source";
    fails(3, says, &["keys", "verify", &keys, "--r1cs", &f.path("b.r1cs")]);
    // A directory that was changed, and keys with the circuit of others.
    let copy = |from: &str, to: &str| {
        let status =
            std::process::Command::new("cp").args(["-r", &f.path(from), &f.path(to)]).status();
        assert!(status.unwrap().success());
    };
    copy("a.hk", "changed.hk");
    f.changed("changed.hk/layout", "changed.hk/layout", |bytes| bytes[20] ^= 1);
    fails(3, "its digest is", &["check", &f.path("changed.hk"), &wtns]);
    copy("keys", "mixed");
    ok(&["import", &f.path("b.r1cs"), "--rows", "16", "--out", &f.path("b.hk")]);
    for name in ["circuit.json", "layout", "wires"] {
        let (from, to) =
            (f.path(&format!("b.hk/{name}")), f.path(&format!("mixed/circuit/{name}")));
        std::fs::copy(from, to).unwrap();
    }
    let says = "not the circuit that these keys were made for";
    fails(3, says, &["prove", &wtns, "--keys", &f.path("mixed")]);
    std::fs::remove_dir_all(f.path("mixed/circuit")).unwrap();
    fails(3, "is not a circuit directory", &["prove", &wtns, "--keys", &f.path("mixed")]);
    // A circuit with code has no source.
    let chain = common::Chain::new(2, 2);
    let says = "is for keys of imported circuits";
    fails(2, says, &["keys", "verify", &chain.path("keys"), "--r1cs", &f.path("a.r1cs")]);
}

/// Ctrl-C in the middle leaves nothing under the final name.
#[test]
fn an_interrupted_import_leaves_nothing() {
    let f = fixture();
    std::fs::write(f.path("large.r1cs"), files(200_000, 5).0).unwrap();
    let out = f.path("large.hk");
    let mut child = common::command(&["import", &f.path("large.r1cs"), "--out", &out])
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let killed =
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let status = child.wait().unwrap();
    // On a fast machine it may be done.
    if killed.unwrap().success() && !status.success() {
        assert_eq!(status.code(), Some(130));
        assert!(!Path::new(&out).exists());
    }
    let again = hekaton(&["import", &f.path("large.r1cs"), "--out", &out]);
    assert!(again.status.success() || Path::new(&out).exists());
}

/// The disk is full at some place of an import or a setup: the error names the file, nothing that
/// looks complete is left, and with room the same command succeeds.
#[test]
fn full_disks_leave_nothing() {
    let f = fixture();
    std::fs::write(f.path("middle.r1cs"), files(3_000, 5).0).unwrap();
    let source = f.path("middle.r1cs");
    let mut refused = [0, 0];
    // Files take whole pages.
    for (which, pages) in
        [1, 2, 3, 4, 5, 6, 8, 40].map(|p| (0, p)).into_iter().chain([1, 5, 30].map(|p| (1, p)))
    {
        let command = match which {
            0 => "$HEKATON import $SOURCE --rows 1024 --out $DIR/out",
            _ => "$HEKATON setup $HK --keys $DIR/out",
        };
        let script = format!(
            "mount -o remount,size={}k $DIR; {command} 2>&1; echo code=$?; ls -A $DIR; \
             mount -o remount,size=4m $DIR; {command} --json || exit 98",
            4 * pages
        );
        let (hk, variables) = (f.path("a.hk"), source.clone());
        let (code, out) =
            common::tool().with_tmpfs(&script, &[("SOURCE", &variables), ("HK", &hk)]);
        assert!(!out.contains("panicked"), "{out}");
        if out.contains("code=0") {
            // What is there is not written over.
            assert_eq!(code, Some(98), "{out}");
            continue;
        }
        refused[which] += 1;
        assert!(out.contains("No space left on device"), "{pages} pages: {out}");
        let (_, left) = out.split_once("code=").unwrap_or_else(|| panic!("{out}"));
        assert!(left.starts_with("3\n") || left.starts_with("4\n"), "{out}");
        let left = left.lines().nth(1).unwrap_or_default();
        assert!(left.starts_with('{'), "nothing is left: {out}");
        assert_eq!(code, Some(0), "{pages} pages: {out}");
    }
    assert!(refused[0] >= 3 && refused[1] >= 2, "{refused:?}");
}

/// A killed import leaves no directory with the final name unless it was finished, and the next one
/// succeeds.
#[test]
fn killed_imports_can_be_repeated() {
    let f = fixture();
    std::fs::write(f.path("killed.r1cs"), files(100_000, 5).0).unwrap();
    let source = f.path("killed.r1cs");
    for after in [20, 60, 120, 200] {
        let out = f.path(&format!("killed-{after}.hk"));
        let mut child = common::command(&["import", &source, "--out", &out])
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(after));
        let _ = child.kill();
        let finished = child.wait().unwrap().success();
        match Path::new(&out).exists() {
            true => drop(ok(&["inspect", &out])),
            false => {
                assert!(!finished);
                ok(&["import", &source, "--out", &out]);
            }
        }
    }
}

/// A directory that was changed by hand, with its digests put right: only the source says that it is
/// wrong.
#[test]
fn setup_compares_with_the_source_where_it_is_given() {
    let f = fixture();
    let (hk, source) = (f.path("a.hk"), f.path("a.r1cs"));
    ok(&["setup", &hk, "--r1cs", &source, "--keys", &f.path("compared")]);
    std::fs::write(f.path("c.r1cs"), files(STEPS, 6).0).unwrap();
    let keys = f.path("refused");
    let says = "is not constraint 0 of the source";
    fails(3, says, &["setup", &hk, "--r1cs", &f.path("c.r1cs"), "--keys", &keys]);
    assert!(!Path::new(&keys).exists());
    fails(2, "this one has code", &["setup", "chain", "--r1cs", &source, "--keys", &keys]);
    // The copy in keys has no constraints.
    let copy = f.path("compared/circuit");
    fails(3, "which is only for proving", &["setup", &copy, "--keys", &keys]);
    // A truncated file of wires is found before keys are made.
    let status = std::process::Command::new("cp").args(["-r", &hk, &f.path("cut.hk")]).status();
    assert!(status.unwrap().success());
    f.changed("cut.hk/types/t1.rows", "cut.hk/types/t1.rows", |bytes| bytes.truncate(30));
    fails(3, "t1.rows: its digest is", &["setup", &f.path("cut.hk"), "--keys", &keys]);
    assert!(!Path::new(&keys).exists());
}

/// A ceremony for an imported circuit: its keys are a key store, which says who contributed.
#[test]
fn a_ceremony_makes_the_keys() {
    let f = fixture();
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let (hk, wtns) = (f.path("a.hk"), f.path("a.wtns"));
    let (powers, ceremony, keys) = (path("powers"), path("ceremony"), path("keys"));
    let take_part = |ceremony: &str| {
        let out = path("contribution");
        ok(&["ceremony", "contribute", ceremony, "--name", "Alice", "--out", &out]);
        ok(&["ceremony", "add", ceremony, &out]);
        std::fs::remove_file(out).unwrap();
    };
    ok(&["ceremony", "new", "--rows", "64", "--subcircuits", "4", "--out", &powers]);
    take_part(&powers);
    ok(&["ceremony", "finish", &powers]);
    let new = ["ceremony", "new", &hk, "--powers", &powers, "--out", &ceremony];
    fails(2, "which have one size", &[&new[..], &["--subcircuits", "4"]].concat());
    fails(2, "have no parameters", &[&new[..], &["-p", "x=1"]].concat());
    ok(&[&new[..], &["--r1cs", &f.path("a.r1cs")]].concat());
    take_part(&ceremony);

    // The circuit has no name, so everybody brings its directory.
    let verify = ["ceremony", "verify", &ceremony, "--powers", &powers];
    fails(2, "imported circuit a.r1cs", &verify);
    let (r1cs, _) = files(STEPS, 6);
    std::fs::write(path("other.r1cs"), r1cs).unwrap();
    let other = path("other.hk");
    ok(&["import", &path("other.r1cs"), "--rows", "2^4", "--out", &other]);
    fails(3, "not the circuit", &[&verify[..], &["--circuit", &other]].concat());
    ok(&[&verify[..], &["--circuit", &hk]].concat());

    // A trial with a witness; without one there are no keys.
    let finish = ["ceremony", "finish", &ceremony, "--powers", &powers, "--circuit", &hk];
    let finish = [&finish[..], &["--keys", &keys, "--trial"]].concat();
    let foreign = f.changed("a.wtns", "foreign.wtns", |bytes| {
        let at = bytes.len() - 32;
        bytes[at] ^= 1;
    });
    fails(2, "does not satisfy the circuit", &[&finish[..], &[&foreign]].concat());
    assert!(!Path::new(&keys).exists());
    // A trial that ends for another reason than the keys: they are kept under another name.
    let nowhere = path("nowhere");
    let output =
        command(&[&finish[..], &[&wtns]].concat()).env("TMPDIR", nowhere).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(4), "{told}");
    assert!(told.contains("a temporary directory") && told.contains("is finished"), "{told}");
    assert!(!Path::new(&keys).exists());
    let is_kept = |name: &str| name.starts_with(".keys.") && name.ends_with(".complete");
    let entries = std::fs::read_dir(place.path()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let kept: Vec<String> = names.filter(|name| is_kept(name)).collect();
    assert_eq!(kept.len(), 1, "{kept:?}");
    ok(&["prove", &wtns, "--keys", &path(&kept[0]), "--proof", &path("trial")]);
    assert_eq!(json(&["ceremony", "status", &ceremony])["finished"], true);
    ok(&[&finish[..], &[&wtns]].concat());
    let key_of = |keys: &str| std::fs::read(format!("{keys}/verifying.key")).unwrap();
    assert_eq!(key_of(&path(&kept[0])), key_of(&keys));

    // They are like those of a setup, for provers and verifiers.
    let proof = path("proof");
    ok(&["prove", &wtns, "--keys", &keys, "--proof", &proof]);
    let public = ok(&["hash", &wtns, "--keys", &keys]);
    let key = format!("{keys}/verifying.key");
    let lines = ok(&["verify", &proof, "--key", &key, "--public", &public]);
    assert!(lines.contains("keys from a ceremony (transcript "), "{lines}");
    assert!(lines.contains("in all of these chains:  Alice"), "{lines}");
    let lines = ok(&["inspect", &keys]);
    assert!(lines.contains("in all of these chains:  Alice"), "{lines}");
    let whole = [&verify[..], &["--circuit", &hk, "--keys", &keys]].concat();
    ok(&whole);
    let check = ["keys", "verify", &keys, "--powers", &powers, "--circuit", &hk];
    fails(2, "pass its directory, --circuit DIR", &check[..5]);
    let lines = ok(&[&check[..], &["--r1cs", &f.path("a.r1cs")]].concat());
    assert!(lines.contains("ceremony: correct"), "{lines}");

    // A store of another setup around the family of the ceremony.
    let (honest, source) = (std::fs::read(&key).unwrap(), f.path("a.r1cs"));
    for name in ["manifest.json", "verifying.key", "aggregation.key"] {
        std::fs::copy(f.path(&format!("keys/{name}")), path(&format!("keys/{name}"))).unwrap();
    }
    for entry in std::fs::read_dir(f.path("keys/types")).unwrap() {
        let entry = entry.unwrap();
        let to = place.path().join("keys/types").join(entry.file_name());
        // Not through the link to the family's file.
        std::fs::remove_file(&to).unwrap();
        std::fs::copy(entry.path(), to).unwrap();
    }
    fails(1, "do not follow from the family", &whole);
    assert!(!ok(&["inspect", &keys]).contains("Alice"));
    // Its key may claim to be of the ceremony: anybody can write that into a file.
    let honest_bytes = honest;
    let honest = VerifyingKey::from_bytes(&honest_bytes).unwrap();
    let mut claims = VerifyingKey::from_bytes(&std::fs::read(&key).unwrap()).unwrap();
    (claims.trust, claims.family) = (honest.trust, honest.family);
    std::fs::write(&key, claims.to_bytes()).unwrap();
    let manifest = path("keys/manifest.json");
    let mut object: Value = serde_json::from_slice(&std::fs::read(&manifest).unwrap()).unwrap();
    object["verifying_key_digest"] = hex(&claims.digest()).into();
    object["trust"] = claims.trust.statement().into();
    std::fs::write(&manifest, object.to_string()).unwrap();
    let (honest_proof, proof) = (proof, path("proof-of-others"));
    ok(&["prove", &wtns, "--keys", &keys, "--proof", &proof]);
    let key_of_others = ["verify", &proof, "--key", &key, "--public", &public];
    for args in [&["inspect", &keys][..], &key_of_others] {
        let said = ok(args);
        assert!(!said.contains("Alice"), "{said}");
        assert!(said.contains("NOT THE KEY OF THIS CEREMONY"), "{said}");
        assert_eq!(json(args)["ceremony"]["is_of_ceremony"], false);
    }
    let check = ["keys", "verify", &keys, "--r1cs", &source];
    fails(1, "not the key of its ceremony", &check);
    // A key of another circuit with the family's points, or a family that cannot be read.
    std::fs::write(&key, &honest_bytes).unwrap();
    std::fs::remove_dir_all(path("keys/circuit")).unwrap();
    let said = ok(&["verify", &honest_proof, "--key", &key, "--public", &public]);
    assert!(
        said.contains("contributors could not be checked") && !said.contains("Alice"),
        "{said}"
    );
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
