//! A ceremony that extends the family of another one by a later type, as people run it.

use hekaton_testing::Tool;
use std::os::unix::fs::MetadataExt;

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
    fails(3, "another ceremony", &["inspect", &keys]);
    fails(3, "that it extends is missing", &["keys", "verify", &keys, "--powers", &powers]);
}
