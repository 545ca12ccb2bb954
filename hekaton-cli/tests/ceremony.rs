//! A ceremony by files, as people run it: coordinator, contributors, auditor, users of the keys.

mod common;

use common::{fails, ok};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::Stdio;

/// Paths in a directory of a test's own.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// Contributes to a ceremony, and adds the contribution.
    fn take_part(&self, ceremony: &str, name: &str, more: &[&str]) {
        let out = self.path("contribution");
        let args = ["ceremony", "contribute", ceremony, "--name", name, "--out", &out];
        ok(&[&args[..], more].concat());
        ok(&["ceremony", "add", ceremony, &out]);
        std::fs::remove_file(&out).unwrap();
        std::fs::remove_file(format!("{out}.receipt")).unwrap();
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// A program that adds up numbers of its private tape.
const PROGRAM: &str = "; TinyRAM V=2.000 W=32 K=16\n_loop: read r1, 1\ncjmp _end\nadd r2, r2, r1\njmp _loop\n\
                       _end: store.w 0x30000000, r2\nanswer r2\n";

/// The whole way: powers and a family by several people, checks, keys, a proof, and what its users see.
#[test]
fn a_ceremony_makes_keys() {
    let place = Place::new();
    let (powers, family) = (place.path("powers"), place.path("family"));
    ok(&["ceremony", "new", "--rows", "2^12", "--subcircuits", "128", "--out", &powers]);
    place.take_part(&powers, "Bob", &["--yes"]);
    place.take_part(&powers, "Alice", &["--only", "phi"]);
    let machine = ["ceremony", "new", "vm", "-p", "isa=tinyram", "-p", "rows=4096"];
    let begin = ["--subcircuits", "128", "--powers", &powers, "--out", &family];
    let begin = [&machine[..], &begin].concat();
    fails(3, "is not finished", &begin);
    let finished = ok(&["ceremony", "finish", &powers]);
    assert!(finished.contains("phi, psi                 Bob, Alice"), "{finished}");
    ok(&begin);

    // Without access to the directory.
    let (state, contribution) = (place.path("state"), place.path("contribution"));
    ok(&["ceremony", "fetch", &family, "--out", &state]);
    let contribute = ["--json", "ceremony", "contribute", &state, "--name", "Bob", "--out"];
    let receipt = json(&ok(&[&contribute[..], &[&contribution]].concat()))["receipt"].clone();
    ok(&["ceremony", "add", &family, &contribution]);
    fails(3, "already in the transcript", &["ceremony", "add", &family, &contribution]);

    // Receipts name what is in the transcript.
    let (receipt, file) = (receipt.as_str().unwrap().to_owned(), place.path("bob.txt"));
    assert_eq!(ok(&["ceremony", "receipt", &family, "--name", "Bob"]).trim(), receipt.trim());
    std::fs::write(&file, &receipt).unwrap();
    let keys = place.path("keys");
    let finish = ["ceremony", "finish", &family, "--powers", &powers, "--keys", &keys];
    interrupted_in_the_trial(&finish);
    assert!(!std::path::Path::new(&family).join("final.json").exists());
    let names = std::fs::read_dir(place.0.path()).unwrap();
    let mut names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.any(|name| name.contains("keys")));
    ok(&finish);
    fails(3, "already holds keys", &finish);
    let verify = ["ceremony", "verify", &family, "--powers", &powers, "--keys", &keys];
    let lines = ok(&[&verify[..], &["--receipt", &file]].concat());
    assert!(lines.contains("every point, and the keys"), "{lines}");
    assert!(lines.contains("all receipts are in it"), "{lines}");
    assert!(lines.contains("in all of these chains:  Bob"), "{lines}");
    let records_only = ["ceremony", "verify", &family, "--records-only", "--receipt", &file];
    ok(&records_only);
    for (from, to) in [("place 0", "place 1"), ("name Bob", "name Eve"), ("record ", "record 00")] {
        std::fs::write(&file, receipt.replace(from, to)).unwrap();
        let code = if to == "record 00" { 3 } else { 1 };
        fails(code, if code == 1 { &to[5..] } else { "cannot be read" }, &records_only);
    }

    // Keys of another setup are refused.
    let other = place.path("other");
    let sizes = ["--rows", "2^12", "--subcircuits", "128", "--keys", &other];
    ok(&[&["vm", "setup", "--isa", "tinyram"], &sizes[..]].concat());
    let with_other = ["ceremony", "verify", &family, "--powers", &powers, "--keys", &other];
    fails(3, "do not come from this ceremony", &with_other);

    // Users of the keys.
    let [program, words, proof] = ["sum.tinyram", "words", "proof"].map(|name| place.path(name));
    std::fs::write(&program, PROGRAM).unwrap();
    std::fs::write(&words, [40, 0, 0, 0, 2, 0, 0, 0]).unwrap();
    let run = ["vm", "prove", &program, "--input", &words, "--keys", &keys, "--proof", &proof];
    ok(&run);
    let verify = ["vm", "verify", &proof, "--program", &program, "--keys", &keys];
    let lines = ok(&[&verify[..], &["--exit-code", "42"]].concat());
    assert!(lines.contains("keys from a ceremony (transcript "), "{lines}");
    assert!(lines.contains("in all of these chains:  Bob"), "{lines}");
    let object = json(&ok(&[&["--json"], &verify[..], &["--exit-code", "42"]].concat()));
    assert_eq!(
        object["ceremony"]["chains"][1]["contributors"],
        serde_json::json!(["Bob", "Alice"])
    );
    let lines = ok(&["inspect", &keys]);
    assert!(lines.contains("in all of these chains:  Bob"), "{lines}");
    assert!(lines.contains("phi, psi                 Bob, Alice"), "{lines}");
    assert!(lines.contains("Only records and single points were compared"), "{lines}");
    let with_powers = ["keys", "verify", &other, "--powers", &powers];
    fails(3, "logs of one are not in the keys", &with_powers);
    // The logs of another ceremony, beside keys that name it or not.
    let logs = place.0.path().join("keys/ceremony/family/1.log");
    let good = std::fs::read(&logs).unwrap();
    std::fs::write(&logs, &good[..44]).unwrap();
    fails(1, "nobody contributed", &["inspect", &keys]);
    std::fs::write(&logs, &good).unwrap();
    // Without the logs, nothing is claimed about contributors.
    std::fs::remove_dir_all(place.0.path().join("keys/ceremony")).unwrap();
    assert!(ok(&["inspect", &keys]).contains("contributors were not checked"));
}

/// Ctrl-C while the keys are tried, which reaches the program and those that it has started.
fn interrupted_in_the_trial(finish: &[&str]) {
    let mut command = common::command(finish);
    command.process_group(0).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("a trial: ")));
    std::thread::sleep(std::time::Duration::from_millis(200));
    let group = format!("-{}", child.id());
    let sent = std::process::Command::new("kill").args(["-INT", "--", &group]).status();
    assert!(sent.unwrap().success());
    let status = child.wait().unwrap();
    let rest: Vec<String> = lines.map(Result::unwrap).collect();
    assert_eq!(status.code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("no keys were written")), "{rest:?}");
}

/// Chains one by one, a beacon, and machine-readable output.
#[test]
fn chains_are_contributed_to_one_by_one() {
    let place = Place::new();
    let powers = place.path("powers");
    let new = ["--json", "ceremony", "new", "--rows", "12", "--subcircuits", "3", "--out", &powers];
    let digest = json(&ok(&new))["ceremony"].as_str().unwrap().to_owned();
    place.take_part(&powers, "Alice", &["--only", "tau", "--expect", &digest]);
    fails(1, "nobody contributed", &["ceremony", "finish", &powers]);
    place.take_part(&powers, "Bob", &["--only", "phi"]);
    ok(&["ceremony", "beacon", &powers, "--value", "00ff", "--exponent", "4"]);
    let status = json(&ok(&["--json", "ceremony", "status", &powers]));
    assert_eq!(status["finished"], false);
    assert_eq!(status["chains"][0]["contributors"], serde_json::json!(["Alice"]));
    assert_eq!(status["chains"][1]["records"][1]["beacon"], true);
    let early = place.path("early");
    ok(&["ceremony", "contribute", &powers, "--name", "Eve", "--out", &early]);
    ok(&["ceremony", "finish", &powers]);
    ok(&["ceremony", "finish", &powers]);
    let verified = json(&ok(&["--json", "ceremony", "verify", &powers]));
    let finished = json(&ok(&["--json", "ceremony", "status", &powers]));
    assert_eq!(verified["transcript"], finished["transcript"]);
    let out = place.path("late");
    let late = ["ceremony", "contribute", &powers, "--name", "Eve", "--out", &out];
    fails(3, "is finished", &late);
    fails(3, "is finished", &["ceremony", "add", &powers, &early]);
}

/// Powers that begin with a file of others.
#[test]
fn powers_begin_with_those_of_others() {
    let place = Place::new();
    let (file, powers) = (place.path("challenge"), place.path("powers"));
    std::fs::copy("../hekaton-ceremony/src/tests/golden/snarkjs.challenge", &file).unwrap();
    let new = ["ceremony", "new", "--subcircuits", "2", "--out", &powers, "--powers-from", &file];
    fails(3, "serve domains of up to 12 rows", &[&new[..], &["--rows", "13"]].concat());
    let zeros = "00".repeat(64);
    fails(3, "--expect requires 00", &[&new[..], &["--rows", "12", "--expect", &zeros]].concat());
    fails(2, "or 128 for a file", &[&new[..], &["--rows", "12", "--expect", "00"]].concat());
    let transcript = "00".repeat(32);
    fails(2, "its BLAKE2b", &[&new[..], &["--rows", "12", "--expect", &transcript]].concat());
    ok(&[&new[..], &["--rows", "12"]].concat());
    fails(1, "nobody contributed", &["ceremony", "verify", &powers]);
    place.take_part(&powers, "Alice", &[]);
    let lines = ok(&["ceremony", "verify", &powers]);
    assert!(lines.contains("tau, alpha, beta         import ebe86a3c.., Alice\n"), "{lines}");
    // Others begin where these end, and need less.
    let more = place.path("more");
    let after = ["ceremony", "new", "--subcircuits", "2", "--out", &more, "--powers-from", &powers];
    fails(3, "is not finished", &[&after[..], &["--rows", "8"]].concat());
    ok(&["ceremony", "finish", &powers]);
    fails(3, "use powers for more", &[&after[..], &["--rows", "13"]].concat());
    let digest = json(&ok(&["--json", "ceremony", "status", &powers]))["transcript"].clone();
    let expect = |hex| [&after[..], &["--rows", "8", "--expect", hex]].concat();
    fails(3, "--expect requires 00", &expect(&transcript));
    fails(2, "its transcript digest", &expect(&zeros));
    ok(&expect(digest.as_str().unwrap()));
    place.take_part(&more, "Bob", &[]);
    let state = place.path("state");
    ok(&["ceremony", "fetch", &more, "--out", &state]);
    for ceremony in [&more, &state] {
        let lines = ok(&["ceremony", "status", ceremony]);
        let chain = "tau, alpha, beta         import ebe86a3c.., Alice, Bob\n";
        assert!(lines.contains(chain), "{lines}");
    }
    ok(&["ceremony", "finish", &more]);
}

/// Wrong files, wrong options and damage, each with an error that says what is wrong.
#[test]
fn mistakes_are_told() {
    let place = Place::new();
    let (powers, out) = (place.path("powers"), place.path("out"));
    ok(&["ceremony", "new", "--rows", "12", "--subcircuits", "64", "--out", &powers]);
    place.take_part(&powers, "Alice", &[]);
    let contribute = |more: &[&'static str]| {
        let args = ["ceremony", "contribute", &powers, "--name", "Eve", "--out", &out];
        args.iter()
            .map(|arg| (*arg).to_owned())
            .chain(more.iter().map(|arg| (*arg).to_owned()))
            .collect()
    };
    let refused = |code: i32, says: &str, args: Vec<String>| {
        fails(code, says, &args.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(!std::path::Path::new(&out).exists());
    };
    refused(2, "no chain 3", contribute(&["--only", "3"]));
    refused(2, "tau, phi", contribute(&["--only", "kappa"]));
    let zeros = "0000000000000000000000000000000000000000000000000000000000000000";
    refused(3, "--expect requires 0000", contribute(&["--expect", zeros]));
    fails(2, "--name", &["ceremony", "contribute", &powers, "--name", "", "--out", &out]);
    fails(2, "--rows and --subcircuits", &["ceremony", "new", "--rows", "12", "--out", &out]);
    fails(
        2,
        "a family needs powers",
        &["ceremony", "new", "merkle", "--up-to", "1K", "--out", &out],
    );
    fails(
        3,
        "is not empty",
        &["ceremony", "new", "--rows", "12", "--subcircuits", "1", "--out", &powers],
    );
    fails(3, "not the transcript", &["ceremony", "status", &place.path("")]);
    fails(3, "wrong magic", &["ceremony", "add", &powers, &format!("{powers}/tau.log")]);
    fails(
        3,
        "neither a transcript's directory nor a state",
        &["ceremony", "status", &format!("{powers}/tau.log")],
    );
    fails(
        3,
        "nobody has contributed under the name",
        &["ceremony", "receipt", &powers, "--name", "Eve"],
    );
    fails(2, "--powers is for families", &["ceremony", "verify", &powers, "--powers", &powers]);
    let receipt = place.path("receipt");
    std::fs::write(&receipt, "hello").unwrap();
    fails(3, "not a receipt", &["ceremony", "verify", &powers, "--receipt", &receipt]);
    // One byte of the section of tau, which is the smaller one: found, and named.
    let sections = std::fs::read_dir(place.0.path().join("powers/sections")).unwrap();
    let tau =
        sections.map(|e| e.unwrap().path()).min_by_key(|p| p.metadata().unwrap().len()).unwrap();
    let mut bytes = std::fs::read(&tau).unwrap();
    bytes[5 * 96 + 95] ^= 1;
    std::fs::write(&tau, &bytes).unwrap();
    fails(1, "point 5 of tau_1", &["ceremony", "verify", &powers]);
    std::fs::write(&tau, &bytes[..1000]).unwrap();
    fails(3, "cut off", &["ceremony", "verify", &powers]);
    std::fs::remove_file(&tau).unwrap();
    fails(3, "No such file", &["ceremony", "verify", &powers]);
}

/// Runs a command that must succeed. Returns the most memory that it had, in bytes.
fn memory_of(args: &[&str]) -> u64 {
    let mut command = common::command(args);
    let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        // The file is gone, or has no such line, once the process has ended. The value never shrinks, so the last one is the most.
        if let Ok(text) = std::fs::read_to_string(&status)
            && let Some(line) = text.lines().find_map(|line| line.strip_prefix("VmHWM:"))
        {
            let kilobytes = line.trim().strip_suffix(" kB").expect("the kernel counts in kB");
            most = kilobytes.parse::<u64>().unwrap() << 10;
        }
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{args:?}");
            return most;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// C62: contributions and checks read the powers, of which a section has 38 MB, in pieces.
#[test]
fn c62_memory_is_bounded() {
    let place = Place::new();
    let (powers, out) = (place.path("powers"), place.path("out"));
    ok(&["ceremony", "new", "--rows", "2^16", "--subcircuits", "2", "--out", &powers]);
    let contribute = ["ceremony", "contribute", &powers, "--name", "Alice", "--out", &out];
    for command in [
        &[&contribute[..], &["--threads", "2"]].concat()[..],
        &["ceremony", "add", &powers, &out, "--threads", "2"],
        &["ceremony", "verify", &powers, "--threads", "2"],
    ] {
        // 90 MB, and more than 128 with a section as a whole.
        let most = memory_of(command);
        assert!(10 << 20 < most && most < 120 << 20, "{command:?}: {most} bytes");
    }
}
