//! Ceremonies for a small circuit, as people run them: one that extends the family of another one by a later type, and coordinators that are
//! killed.

use hekaton_testing::Tool;
use std::os::unix::fs::MetadataExt;
use std::process::Stdio;
use std::time::Duration;

fn tool() -> Tool {
    Tool(env!("CARGO_BIN_EXE_later-types").into())
}

#[test]
fn families_are_extended() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let ok = |args: &[&str]| tool().ok(args);
    let fails = |code: i32, says: &str, args: &[&str]| tool().fails(code, says, args);
    let take_part = |ceremony: &str, name: &str| {
        let out = path("contribution");
        ok(&["ceremony", "contribute", ceremony, "--name", name, "--out", &out]);
        ok(&["ceremony", "add", ceremony, &out]);
        std::fs::remove_file(out).unwrap();
    };
    let (powers, squares, mixed) = (path("powers"), path("squares"), path("mixed"));
    let (old, keys) = (path("old.keys"), path("keys"));
    ok(&["ceremony", "new", "--rows", "64", "--subcircuits", "8", "--out", &powers]);
    take_part(&powers, "Alice");
    ok(&["ceremony", "finish", &powers]);
    let sizes = ["--subcircuits", "8", "--powers", &powers];
    ok(&[&["ceremony", "new", "squares", "--out", &squares], &sizes[..]].concat());
    take_part(&squares, "Bob");
    ok(&["ceremony", "finish", &squares, "--powers", &powers, "--keys", &old]);

    let new = [&["ceremony", "new", "mixed", "--out", &mixed], &sizes[..]].concat();
    let extends = ["--extends", old.as_str()];
    let same = [&["ceremony", "new", "squares", "--out", &mixed], &sizes[..], &extends].concat();
    fails(2, "has all types of the circuit", &same);
    fails(3, "the logs of one are not in the keys", &[&new[..], &["--extends", &powers]].concat());
    ok(&[&new[..], &extends].concat());
    take_part(&mixed, "Carol");

    let verify = ["ceremony", "verify", &mixed, "--powers", &powers];
    fails(2, "--extends KEYS", &verify);
    let of_old = ["ceremony", "verify", &squares, "--powers", &powers, "--extends", &old];
    fails(2, "extends no other one", &of_old);
    let finish = ["ceremony", "finish", &mixed, "--powers", &powers, "--keys", &keys];
    fails(2, "--extends KEYS", &finish);
    ok(&[&finish[..], &extends].concat());
    let whole = [&verify[..], &extends, &["--keys", &keys]].concat();
    let lines = ok(&whole);
    assert!(lines.contains("every point, and the keys"), "{lines}");
    let lines = ok(&["keys", "verify", &keys, "--powers", &powers]);
    assert!(lines.contains("ceremony: correct"), "{lines}");
    assert!(!lines.contains("not checked") && !lines.contains("Only records"), "{lines}");
    for line in ["kappa, type 1            Bob", "later type 1             Carol"] {
        assert!(lines.contains(line), "{lines}");
    }
    // One copy of the old type's key.
    let file = |keys: &str| std::fs::metadata(format!("{keys}/types/square.pk")).unwrap().ino();
    assert_eq!(file(&old), file(&keys));

    // Proofs under both, each with its own family.
    let (input, proof) = (path("input"), path("proof"));
    std::fs::write(&input, "123").unwrap();
    for keys in [&old, &keys] {
        ok(&["prove", &input, "--keys", keys, "--proof", &proof]);
        let public = ok(&["hash", &input, "--keys", keys]);
        let verify = ["verify", &proof, "--key", keys, "--for", &input, "--public", &public];
        let lines = ok(&verify);
        assert!(lines.contains("keys from a ceremony"), "{lines}");
    }

    // Without the log of the extended family nobody's name stands behind its points.
    std::fs::remove_dir_all(format!("{keys}/ceremony/extended-1")).unwrap();
    fails(3, "is missing in the keys", &["inspect", &keys]);
    fails(3, "is missing in the keys", &["keys", "verify", &keys, "--powers", &powers]);
}

/// Runs a command that is killed after longer and longer times, until it ends by itself. Returns the number of kills.
fn in_spite_of_kills(args: &[&str]) -> u32 {
    let (mut after, mut kills) = (Duration::from_millis(2), 0);
    loop {
        let mut command = tool().command(args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(after);
        if child.try_wait().unwrap().is_some() {
            let output = child.wait_with_output().unwrap();
            let why = String::from_utf8_lossy(&output.stderr);
            // It was killed after its last step, so that there is nothing left to do.
            let done = why.contains("is not empty")
                || why.contains("already holds keys")
                || why.contains("already in the transcript");
            assert!(output.status.success() || done, "{args:?}: {why}");
            return kills;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        after = after * 5 / 4;
    }
}

/// Each command of a coordinator is killed wherever it is: run again, it does its work, and nothing is left of the attempts.
#[test]
fn killed_coordinators_run_their_command_again() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    let (powers, squares, keys) = (path("powers"), path("squares"), path("keys"));
    let mut kills = 0;
    let mut all = |args: &[&str]| kills += in_spite_of_kills(args);
    let contribution = |ceremony: &str| {
        let out = path("contribution");
        tool().ok(&["ceremony", "contribute", ceremony, "--name", "Alice", "--out", &out]);
        out
    };
    all(&["ceremony", "new", "--rows", "1024", "--subcircuits", "64", "--out", &powers]);
    all(&["ceremony", "add", &powers, &contribution(&powers)]);
    all(&["ceremony", "finish", &powers]);
    std::fs::remove_file(path("contribution")).unwrap();
    let new = ["ceremony", "new", "squares", "--subcircuits", "8", "--powers", &powers];
    all(&[&new[..], &["--out", &squares]].concat());
    all(&["ceremony", "add", &squares, &contribution(&squares)]);
    all(&["ceremony", "finish", &squares, "--powers", &powers, "--keys", &keys]);
    assert!(kills > 20, "{kills}");
    let verify = ["ceremony", "verify", &squares, "--powers", &powers, "--keys", &keys];
    assert!(tool().ok(&verify).contains("every point, and the keys"));
    let mut left: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|f| f.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["contribution", "contribution.receipt", "keys", "powers", "squares"]);
    for ceremony in [&powers, &squares] {
        assert_eq!(std::fs::read_dir(format!("{ceremony}/incoming")).unwrap().count(), 0);
        let sections = if ceremony == &powers { 2 } else { 1 };
        assert_eq!(std::fs::read_dir(format!("{ceremony}/sections")).unwrap().count(), sections);
    }
}
