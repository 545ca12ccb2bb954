//! Programs of the machine, from the command line: complete runs, wrong turns, and runs that are killed.

mod common;
#[path = "programs/guide.rs"]
mod guide;
#[path = "programs/messages.rs"]
mod messages;
#[path = "programs/rust.rs"]
mod rust;

use common::{command, fails, hekaton, ok};
use hekaton_testing::{SUM, elf};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Files in a directory of their own.
struct Files(tempfile::TempDir);

impl Files {
    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, bytes: &[u8]) -> String {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// Keys for short runs, a program, and its input.
fn files() -> &'static Files {
    static FILES: OnceLock<Files> = OnceLock::new();
    FILES.get_or_init(|| {
        let files = Files(tempfile::tempdir().unwrap());
        files.write("sum", &elf(&SUM));
        files.write("public", &[3]);
        files.write("private", &[1, 2, 250]);
        let keys = files.path("keys");
        ok(&["vm", "setup", "--rows", "2^12", "--subcircuits", "128", "--keys", &keys]);
        files
    })
}

/// `vm prove` of the sum, with more arguments.
fn prove(private: &str, proof: &str, more: &[&str]) -> Vec<String> {
    let f = files();
    let paths = ["sum", "keys", "public"].map(|name| f.path(name));
    let [program, keys, public] = &paths;
    let fixed =
        ["vm", "prove", program, "--keys", keys, "--public-input", public, "--threads", "2"];
    let own = ["--input", private, "--proof", proof];
    fixed.iter().chain(&own).chain(more).map(|arg| (*arg).to_owned()).collect()
}

fn strs(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// `vm verify` of a proof that the sum exits with 759, with more arguments.
fn verify<'a>(proof: &'a str, paths: &'a [String; 3], more: &[&'a str]) -> Vec<&'a str> {
    let [program, keys, public] = paths;
    let fixed = ["vm", "verify", proof, "--program", program, "--keys", keys];
    let own = ["--public-input", public, "--exit-code", "759"];
    fixed.iter().chain(&own).chain(more).copied().collect()
}

fn paths() -> [String; 3] {
    ["sum", "keys", "public"].map(|name| files().path(name))
}

/// The proof that others are compared with.
fn proof() -> &'static str {
    static PROOF: OnceLock<String> = OnceLock::new();
    PROOF.get_or_init(|| {
        let (private, proof) = (files().path("private"), files().path("sum.proof"));
        ok(&strs(&prove(&private, &proof, &["--insecure-seed", "5"])));
        proof
    })
}

#[test]
fn a_run_is_proven_and_verified_elsewhere() {
    let f = files();
    // Without a proof first.
    let output = f.path("output");
    let [program, keys, public] = paths();
    let run = ok(&[
        "vm",
        "run",
        &program,
        "--input",
        &f.path("private"),
        "--public-input",
        &public,
        "--keys",
        &keys,
        "--output",
        &output,
        "--json",
    ]);
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(
        (&run["program_exit_code"], &run["output"][0]),
        (&Value::from(759), &Value::from(253))
    );
    assert_eq!(run["operations"]["lbu"], 3);
    assert_eq!(std::fs::read(&output).unwrap()[..2], [253, 0]);
    // A verifier has the program, the proof, and what is public of the keys.
    let elsewhere = tempfile::tempdir().unwrap();
    let there = |name: &str| elsewhere.path().join(name).to_string_lossy().into_owned();
    std::fs::create_dir(there("keys")).unwrap();
    let copies = [
        (proof().to_owned(), "proof"),
        (program, "sum"),
        (public, "public"),
        (format!("{keys}/family.json"), "keys/family.json"),
        (format!("{keys}/family.key"), "keys/family.key"),
    ];
    for (from, to) in copies {
        std::fs::copy(from, there(to)).unwrap();
    }
    let own = ["sum", "keys", "public"].map(there);
    let said = ok(&verify(&there("proof"), &own, &["--output", &output]));
    assert!(
        said.contains("the proof holds") && said.contains("exit code 759, output 0xfd"),
        "{said}"
    );
    // The digest of the keys is what to compare.
    let manifest = std::fs::read_to_string(there("keys/family.json")).unwrap();
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let digest = manifest["family_digest"].as_str().unwrap();
    ok(&verify(&there("proof"), &own, &["--key-digest", digest]));
    let other = "0".repeat(64);
    fails(
        1,
        "but --key-digest requires",
        &verify(&there("proof"), &own, &["--key-digest", &other]),
    );
    for (file, kind) in [("proof", "proof of a run"), ("sum", "program")] {
        let said: Value =
            serde_json::from_str(&ok(&["vm", "inspect", &there(file), "--json"])).unwrap();
        assert_eq!(said["kind"], kind);
    }
    // The keys are those of this program's machine.
    assert!(
        ok(&["keys", "verify", &keys]).contains("constraints are those of this program's circuit")
    );
}

#[test]
fn other_statements_are_refused() {
    let (f, own) = (files(), paths());
    let with = |at: usize, path: String| {
        let mut paths = own.clone();
        paths[at] = path;
        paths
    };
    let mut other = SUM;
    // mul a0, a0, t2, which no run of this program notices before the exit code.
    other[13] = 0x0275_0533;
    let program = with(0, f.write("other", &elf(&other)));
    fails(1, "it is about the program with digest", &verify(proof(), &program, &[]));
    let public = with(2, f.write("other-public", &[4]));
    fails(1, "does not hold", &verify(proof(), &public, &[]));
    let public = with(2, f.write("long-public", &[3; 5]));
    fails(1, "a public input of 1 words, expected 2", &verify(proof(), &public, &[]));
    let wants_zero = &verify(proof(), &own, &[])[..9];
    fails(1, "exits with code 759, expected 0", wants_zero);
    let output = f.write("other-output", &[1]);
    fails(
        1,
        "another output than expected: exit code 759",
        &verify(proof(), &own, &["--output", &output]),
    );
    // What the proof says is part of what is verified, also what nobody asks for.
    let good = std::fs::read(proof()).unwrap();
    let place = good.windows(2).position(|bytes| bytes == [0xfd, 0x01]).unwrap();
    let mut changed = good.clone();
    changed[place..place + 2].copy_from_slice(&[0xfe, 0x01]);
    let changed = f.write("changed.proof", &changed);
    fails(1, "does not hold", &verify(&changed, &own, &[]));
}

#[test]
fn files_that_are_something_else_are_named() {
    let (f, own) = (files(), paths());
    let good = std::fs::read(proof()).unwrap();
    let bad: [(&str, Vec<u8>, &str); 5] = [
        ("empty.proof", Vec::new(), "does not begin with HEKATNVM"),
        ("short.proof", good[..20].to_vec(), "it ends in its header"),
        ("cut.proof", good[..good.len() - 1].to_vec(), "it is cut off, or"),
        ("long.proof", [&good[..], b"x"].concat(), "something follows it, or"),
        ("later.proof", [&good[..8], &[9, 0], &good[10..]].concat(), "version 9"),
    ];
    for (name, bytes, says) in bad {
        let path = f.write(name, &bytes);
        fails(3, says, &verify(&path, &own, &[]));
    }
    // A family of another circuit, and no family.
    let merkle = f.path("merkle.keys");
    ok(&["setup", "merkle", "--up-to", "1K", "--keys", &merkle]);
    let [program, keys, _] = &own;
    let private = f.path("private");
    for (keys, says) in
        [(&*merkle, "its keys are for circuit 'merkle'"), (&*private, "not a key family")]
    {
        fails(3, says, &["vm", "prove", program, "--keys", keys]);
    }
    fails(3, "not an ELF file", &["vm", "run", &private]);
    fails(3, "No such file", &["vm", "run", &f.path("nothing")]);
    fails(2, "`hekaton vm`", &["prove", program, "--keys", keys]);
    // Where the proof or the output goes, nothing else is.
    fails(3, "--proof", &strs(&prove(&private, &private, &[])));
    fails(3, "--output", &["vm", "run", program, "--input", &private, "--output", &private]);
}

#[test]
fn runs_that_cannot_be_proven_say_why() {
    let (f, [program, keys, public]) = (files(), paths());
    // Without the public word, what is taken for the number of bytes is too large.
    let trap = ["vm", "run", &program, "--input", &f.path("private")];
    fails(
        4,
        "trap at pc 0x10018 in cycle 7: access at 0x20000008, where there is no memory",
        &trap,
    );
    fails(
        4,
        "has not ended after 10 cycles",
        &[&trap[..], &["--public-input", &public, "--max-cycles", "10"]].concat(),
    );
    // What goes into logs does not show what may be secret.
    let logged =
        hekaton(&["vm", "prove", &program, "--input", &f.path("private"), "--keys", &keys]);
    let logged = String::from_utf8_lossy(&logged.stderr);
    assert!(logged.contains("shows the registers") && !logged.contains("x7="), "{logged}");
    // lui t0, 16; addi t0, t0, -1; bnez t0, -4; li a7, 93; ecall
    let long = [0x0001_02b7, 0xfff2_8293, 0xfe02_9ee3, 0x05d0_0893, 0x0000_0073];
    let long = f.write("long", &elf(&long));
    let proof = f.path("unfit.proof");
    let says = "makes keys that do";
    fails(2, says, &["vm", "prove", &long, "--keys", &keys, "--proof", &proof]);
    assert!(!PathBuf::from(proof).exists());
}

/// Proofs of one shape differ in nothing but the proof.
#[test]
fn a_shape_hides_what_was_executed() {
    let (f, [program, keys, public]) = (files(), paths());
    // Of 3 and of 500 bytes with one sum.
    let inputs = [vec![100, 150, 3], [vec![0; 497], vec![100, 150, 3]].concat()];
    let inputs = [0, 1].map(|i| f.write(&format!("secret-{i}"), &inputs[i]));
    let counts = |private: &str| {
        let input = ["--public-input", &public, "--input", private, "--keys", &keys];
        let run = ok(&[&["vm", "run", &program, "--json"], &input[..]].concat());
        serde_json::from_str::<Value>(&run).unwrap()["counts"].clone()
    };
    let [short, long] = [0, 1].map(|i| counts(&inputs[i]));
    assert_ne!(short, long);
    let shape = f.write("shape", long.to_string().as_bytes());
    let [short, long] = [0, 1].map(|i| {
        let proof = f.path(&format!("shape-{i}.proof"));
        ok(&strs(&prove(&inputs[i], &proof, &["--shape", &shape])));
        let bytes = std::fs::read(&proof).unwrap();
        let length = u32::from_le_bytes(bytes[10..14].try_into().unwrap()) as usize;
        let (claim, proof) = bytes.split_at(14 + length);
        (claim.to_vec(), proof.to_vec())
    });
    assert_eq!((&short.0, short.1.len()), (&long.0, long.1.len()));
    assert_ne!(short.1, long.1);
    let (private, proof) = (f.path("private"), f.path("none.proof"));
    let wrong = [
        (r#"{"divide": 2}"#, "unknown kind 'divide'"),
        (r#"{"div": 2}"#, "missing the number for kind"),
    ];
    for (shape, says) in wrong {
        let shape = f.write("wrong-shape", shape.as_bytes());
        fails(3, says, &strs(&prove(&private, &proof, &["--shape", &shape])));
    }
    let small = f.write("small-shape", counts(&inputs[0]).to_string().as_bytes());
    let says = "the run needs 5 subcircuits of kind 'addi', but the shape has 1";
    fails(4, says, &strs(&prove(&inputs[1], &proof, &["--shape", &small])));
}

/// Killed in each phase and resumed, a run ends with the proof that an undisturbed one has.
#[test]
fn killed_in_each_phase() {
    let f = files();
    let expected = std::fs::read(proof()).unwrap();
    let private = f.path("private");
    for phase in ["execute", "commit", "prove", "aggregate"] {
        let (run, proof) = (f.path(&format!("run-{phase}")), f.path(&format!("{phase}.proof")));
        let more = ["--run", &run, "--resume", "--insecure-seed", "5"];
        let args = prove(&private, &proof, &more);
        let mut child =
            command(&strs(&args)).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let event = format!("\"phase_start\",\"phase\":\"{phase}\"");
        let events = format!("{run}/events.jsonl");
        let since = Instant::now();
        while !std::fs::read_to_string(&events).unwrap_or_default().contains(&event) {
            assert!(since.elapsed() < Duration::from_secs(60), "{phase} does not begin");
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!PathBuf::from(&proof).exists(), "{phase}");
        let output = hekaton(&strs(&args));
        assert!(output.status.success(), "{phase}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(std::fs::read(&proof).unwrap() == expected, "{phase}");
    }
}

/// A program for TinyRAM, from keys to a verified proof, and what the keys of the other instruction set say.
#[test]
fn tinyram_takes_the_same_way() {
    let f = files();
    let text = "; TinyRAM V=2.000 W=32 K=16\n_loop: read r1, 1\ncjmp _end\nadd r2, r2, r1\njmp _loop\n\
                _end: store.w 0x30000000, r2\nload.w r3, 0x20000000\nanswer r3\n";
    let program = f.write("sum.tinyram", text.as_bytes());
    let (public, words) = (f.path("public"), f.write("words", &[40, 0, 0, 0, 2]));
    let (keys, proof) = (f.path("tiny.keys"), f.path("tiny.proof"));
    let own = ["--rows", "2^12", "--subcircuits", "128", "--keys", &keys];
    ok(&[&["vm", "setup", "--isa", "tinyram"], &own[..]].concat());
    let run = ["vm", "run", &program, "--public-input", &public, "--input", &words];
    let more = ["--keys", &keys, "--json", "--estimate"];
    let found: Value = serde_json::from_str(&ok(&[&run[..], &more[..]].concat())).unwrap();
    let estimate = &found["estimate"];
    assert_eq!(estimate["subcircuits"], found["subcircuits"]);
    assert!(estimate["seconds"].as_f64().unwrap() > 0.0, "{estimate}");
    assert_eq!((&found["program_exit_code"], &found["output"][0]), (&3.into(), &42.into()));
    assert_eq!((&found["operations"]["read"], &found["cycles"]), (&3.into(), &13.into()));
    let prove = ["vm", "prove", &program, "--public-input", &public, "--input", &words];
    ok(&[&prove[..], &["--keys", &keys, "--proof", &proof]].concat());
    let verify = ["vm", "verify", &proof, "--program", &program, "--public-input", &public];
    let said = ok(&[&verify[..], &["--keys", &keys, "--exit-code", "3"]].concat());
    assert!(said.contains("result: exit code 3, output 0x2a"), "{said}");
    assert!(ok(&["vm", "inspect", &program]).contains("program for tinyram"));
    assert!(ok(&["vm", "inspect", &proof]).contains("\"read\":1"));
    // Another program, and keys of the other instruction set.
    let other = f.write("other.tinyram", text.replace("add", "sub").as_bytes());
    let says = "it is about the program with digest";
    fails(1, says, &["vm", "verify", &proof, "--program", &other, "--keys", &keys]);
    let expected = "its keys are for programs for rv32im, and this one is for tinyram; `hekaton vm \
                    setup --isa tinyram` makes keys for it";
    fails(4, expected, &[&run[..], &["--keys", &f.path("keys")]].concat());
    let wrong = f.write("wrong.tinyram", b"; TinyRAM V=2.000 W=32 K=16\nhalt\n");
    fails(3, "wrong.tinyram: line 2: 'halt' is not an instruction", &["vm", "run", &wrong]);
}
