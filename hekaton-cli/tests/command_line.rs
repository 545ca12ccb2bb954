//! The command line as a user would use it, mistakes included.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

mod common;
#[path = "command_line/direct.rs"]
mod direct;

use common::{fails, hekaton, ok};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// A file with keys and a proof, generated once.
struct Fixture {
    dir: tempfile::TempDir,
}

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

/// Leaves of 20 bytes, one SHA-256 block each, so that everything is fast. Five leaves use all five
/// types.
fn fixture() -> &'static Fixture {
    static FIXTURE: OnceLock<Fixture> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let f = Fixture { dir: tempfile::tempdir().unwrap() };
        std::fs::write(f.path("file"), (0..93u8).collect::<Vec<_>>()).unwrap();
        let (file, keys, proof) = (f.path("file"), f.path("keys"), f.path("proof"));
        let text = ok(&["setup", "merkle", "-p", "leaf-bytes=20", "--for", &file, "--keys", &keys]);
        assert!(
            text.contains("inner-parent")
                && text.contains("trust: ")
                && text.contains("12 subcircuits"),
            "{text}"
        );
        let text = ok(&["prove", &file, "--keys", &keys, "--proof", &proof]);
        assert!(
            text.contains("per core-second")
                && text.contains("peak memory")
                && text.contains("zero knowledge   yes")
        );
        f
    })
}

fn root() -> String {
    let f = fixture();
    ok(&["hash", &f.path("file"), "-p", "leaf-bytes=20"]).trim().to_owned()
}

#[test]
fn a_proof_holds_elsewhere() {
    let f = fixture();
    let elsewhere = tempfile::tempdir().unwrap();
    let copy = |name: &str, to: &str| -> PathBuf {
        let to = elsewhere.path().join(to);
        std::fs::copy(f.path(name), &to).unwrap();
        to
    };
    let (key, proof) = (copy("keys/verifying.key", "k"), copy("proof", "p"));
    let args = |json: bool| {
        let mut args =
            vec!["verify", proof.to_str().unwrap(), "--key", key.to_str().unwrap(), "--public"];
        let root: &'static str = Box::leak(root().into_boxed_str());
        args.push(root);
        if json {
            args.push("--json");
        }
        args
    };
    let text = ok(&args(false));
    assert!(text.contains("the proof holds") && text.contains("forge proofs"), "{text}");
    let object: Value = serde_json::from_str(&ok(&args(true))).unwrap();
    assert_eq!((&object["ok"], &object["subcircuits"]), (&Value::from(true), &Value::from(12)));
    assert!(object["trust"].as_str().unwrap().contains("forge"));
    // the root from the key store's parameters is the same
    assert_eq!(ok(&["hash", &f.path("file"), "--keys", &f.path("keys")]).trim(), root());
}

#[test]
fn python_computes_the_same_root() {
    let f = fixture();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/merkle.py");
    for (len, leaf, iterations) in [(93usize, 20, 1), (0, 7, 1), (14, 7, 2), (512, 3, 1)] {
        let name = f.path(&format!("python-{len}-{leaf}"));
        std::fs::write(&name, (0..len).map(|i| (i % 251) as u8).collect::<Vec<_>>()).unwrap();
        let (leaf, iterations) = (leaf.to_string(), iterations.to_string());
        let output = Command::new("python3")
            .arg(&script)
            .args([&name, &leaf, &iterations])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let (leaf, iterations) = (format!("leaf-bytes={leaf}"), format!("iterations={iterations}"));
        let ours = ok(&["hash", &name, "-p", &leaf, "-p", &iterations]);
        assert_eq!(String::from_utf8_lossy(&output.stdout), ours, "{len} bytes");
    }
}

#[test]
fn wrong_root_wrong_key_wrong_proof() {
    let f = fixture();
    let (key, proof, root) = (f.path("keys/verifying.key"), f.path("proof"), root());
    let verify = |proof: &str, key: &str, public: &str| -> Vec<String> {
        ["verify", proof, "--key", key, "--public", public].map(str::to_owned).to_vec()
    };
    let fails = |code, says: &str, args: Vec<String>| {
        fails(code, says, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let mut other_root = root.clone().into_bytes();
    other_root[0] = if other_root[0] == b'0' { b'1' } else { b'0' };
    let other_root = String::from_utf8(other_root).unwrap();
    fails(1, "the proof does not hold", verify(&proof, &key, &other_root));
    fails(2, "64 hexadecimal digits", verify(&proof, &key, "abc"));
    fails(2, "`hekaton hash FILE --keys KEYS` prints", verify(&proof, &key, "abc"));
    fails(
        3,
        "proof for this key has",
        verify(&f.changed("proof", "short", |b| b.truncate(b.len() - 1)), &key, &root),
    );
    fails(
        3,
        "proof for this key has",
        verify(&f.changed("proof", "long", |b| b.push(0)), &key, &root),
    );
    fails(3, "malformed proof", verify(&f.changed("proof", "gt", |b| b[60] ^= 1), &key, &root));
    fails(3, "format version 9", verify(&f.changed("proof", "version", |b| b[8] = 9), &key, &root));
    fails(
        3,
        "made under another verifying key",
        verify(&f.changed("proof", "digest", |b| b[20] ^= 1), &key, &root),
    );
    fails(3, "not a Hekaton proof", verify(&f.path("file"), &key, &root));
    fails(3, "not a Hekaton verifying key", verify(&proof, &proof, &root));
    fails(
        3,
        "damaged verifying key",
        verify(&proof, &f.changed("keys/verifying.key", "bad.key", |b| b.truncate(900)), &root),
    );
    fails(3, "No such file", verify(&f.path("nowhere"), &key, &root));
    fails(3, "No such file", verify(&proof, &f.path("nowhere"), &root));
    fails(3, "is a directory", verify(&f.path("keys"), &key, &root));
    fails(3, "perhaps", verify(&proof, &f.path("keys"), &root));
    // with --json, every error is an object, too
    let mut args = verify(&proof, &key, &other_root);
    args.push("--json".into());
    let output = hekaton(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["ok"], &object["exit_code"]), (&Value::from(false), &Value::from(1)));
}

#[test]
fn wrong_turns_before_proving() {
    let f = fixture();
    let (file, keys) = (f.path("file"), f.path("keys"));
    fails(3, "already holds keys", &["setup", "merkle", "--for", &file, "--keys", &keys]);
    fails(2, "there is no circuit 'markle'", &["setup", "markle", "--keys", &f.path("k")]);
    fails(2, "needs the parameter 'leaves'", &["setup", "merkle", "--keys", &f.path("k")]);
    fails(2, "no parameter 'leafs'", &["setup", "merkle", "-p", "leafs=2", "--keys", &f.path("k")]);
    fails(2, "must be in", &["setup", "merkle", "-p", "leaves=0", "--keys", &f.path("k")]);
    fails(2, "NAME=VALUE", &["setup", "merkle", "-p", "leaves", "--keys", &f.path("k")]);
    fails(
        2,
        "use keys or parameters with leaves=",
        &["setup", "merkle", "--for", &file, "-p", "leaves=3", "--keys", &f.path("k")],
    );
    fails(
        3,
        "No such file",
        &["setup", "merkle", "--for", &f.path("nowhere"), "--keys", &f.path("k")],
    );
    assert!(!Path::new(&f.path("k")).exists());
    fails(3, "No such file", &["prove", &f.path("nowhere"), "--keys", &keys]);
    fails(3, "is a directory", &["prove", &keys, "--keys", &keys]);
    fails(3, "is not a key store", &["prove", &file, "--keys", &file]);
    fails(3, "it does not exist", &["prove", &file, "--keys", &f.path("nowhere")]);
    fails(3, "is a directory", &["prove", &file, "--keys", &keys, "--proof", &keys]);
    // No machine has a hundred GPUs. Nothing is written before that is known.
    let run = f.path("run-on-a-gpu");
    let on_gpu = ["prove", &file, "--keys", &keys, "--run", &run, "--gpu"];
    fails(2, "--gpu 99: ", &[&on_gpu[..], &["99"]].concat());
    fails(2, "a GPU is named twice", &[&on_gpu[..], &["1,1"]].concat());
    fails(2, "expected auto, off, or numbers", &[&on_gpu[..], &["first"]].concat());
    assert!(!Path::new(&run).exists());
    fails(
        3,
        "does not exist: create it first",
        &["prove", &file, "--keys", &keys, "--proof", &f.path("no/where/p")],
    );
    let other = f.changed("file", "other", |b| b.extend([0; 50]));
    fails(4, "use keys or parameters with leaves=", &["prove", &other, "--keys", &keys]);
    fails(3, "that is the input", &["prove", &file, "--keys", &keys, "--proof", &file]);
    fails(
        3,
        "inside the key store",
        &["prove", &file, "--keys", &keys, "--proof", &format!("{keys}/verifying.key")],
    );
    fails(3, "not a regular file", &["prove", &file, "--keys", &keys, "--proof", "/dev/null"]);
    fails(2, "1..=4096", &["prove", &file, "--keys", &keys, "--threads", "100000"]);
    let output = hekaton(&["prove", "--json"]);
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&object["ok"], &object["exit_code"]), (&Value::from(false), &Value::from(2)));
    fails(2, "unrecognized subcommand", &["proof"]);
    fails(2, "--keys", &["prove", &file]);
    fails(2, "invalid value", &["prove", &file, "--keys", &keys, "--threads", "0"]);
    assert!(!Path::new(&f.path("file.proof")).exists(), "no proof was written");
}

#[test]
fn a_damaged_key_is_named() {
    let f = fixture();
    let copy = f.path("copied-keys");
    std::fs::create_dir_all(format!("{copy}/types")).unwrap();
    for name in ["manifest.json", "verifying.key", "aggregation.key"] {
        std::fs::copy(f.path("keys") + "/" + name, format!("{copy}/{name}")).unwrap();
    }
    for entry in std::fs::read_dir(f.path("keys") + "/types").unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(
            entry.path(),
            format!("{copy}/types/{}", entry.file_name().to_string_lossy()),
        )
        .unwrap();
    }
    let leaf = format!("{copy}/types/leaf.pk");
    let mut bytes = std::fs::read(&leaf).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(&leaf, bytes).unwrap();
    let file = f.path("file");
    fails(
        3,
        "leaf.pk is damaged (section",
        &["prove", &file, "--keys", &copy, "--proof", &f.path("p2")],
    );
    fails(3, "DAMAGED", &["inspect", &leaf]);
    assert!(!Path::new(&f.path("p2")).exists());
}

#[test]
fn inspect_recognizes_all_files() {
    let f = fixture();
    assert!(ok(&["inspect", &f.path("keys")]).contains("forge"));
    assert!(ok(&["inspect", &f.path("keys/verifying.key")]).contains("forge"));
    assert!(ok(&["inspect", &f.path("keys/aggregation.key")]).contains("section phi"));
    assert!(ok(&["inspect", &f.path("keys/types/leaf.pk")]).contains("proving key"));
    assert!(ok(&["inspect", &f.path("proof")]).contains("9 to 16 subcircuits"));
    fails(3, "is not a Hekaton file", &["inspect", &f.path("file")]);
    assert!(ok(&["inspect", &f.path("keys/manifest.json")]).contains("key store"));
    fails(
        3,
        "no proof has this length",
        &["inspect", &f.changed("proof", "cut", |b| b.truncate(999))],
    );
    fails(3, "not a Hekaton file", &["verify", "/dev/zero", "--key", "/dev/zero", "--public", ""]);
    for name in ["keys", "keys/verifying.key", "keys/aggregation.key", "proof"] {
        let object: Value =
            serde_json::from_str(&ok(&["inspect", "--json", &f.path(name)])).unwrap();
        assert_eq!(object["ok"], Value::from(true), "{name}");
    }
}

#[test]
fn circuits_check_and_help() {
    let f = fixture();
    let text = ok(&["circuits"]);
    let circuits = ["merkle", "chain", "epochs", "witness"];
    assert!(circuits.iter().chain(&["leaf-bytes"]).all(|name| text.contains(name)), "{text}");
    let object: Value = serde_json::from_str(&ok(&["circuits", "--json"])).unwrap();
    assert_eq!(object["circuits"].as_array().map(Vec::len), Some(circuits.len()));
    let text = ok(&["check", "merkle", &f.path("file"), "-p", "leaf-bytes=20"]);
    assert!(text.contains("of 12 subcircuits hold") && text.contains(&root()), "{text}");
    let help = ok(&["--help"]);
    assert!(help.contains("Exit codes") && help.contains("hekaton setup merkle"));
    assert!(ok(&["--version"]).starts_with("hekaton "));
}

/// The other circuit, without zero knowledge, with keys and proofs for tests, which are not
/// accepted as real ones.
#[test]
fn chain_and_test_keys() {
    let f = fixture();
    let (x, keys, proof) = (f.path("x"), f.path("chain-keys"), f.path("chain-proof"));
    std::fs::write(&x, "7\n").unwrap();
    let setup = [
        "setup",
        "chain",
        "-p",
        "links=3",
        "-p",
        "steps=5",
        "--insecure-seed",
        "1",
        "--no-zero-knowledge",
        "--keys",
    ];
    ok(&[&setup[..], &[&keys]].concat());
    let run: Value = serde_json::from_str(&ok(&[
        "prove",
        &x,
        "--keys",
        &keys,
        "--proof",
        &proof,
        "--json",
        "--threads",
        "2",
    ]))
    .unwrap();
    assert_eq!(
        (&run["zero_knowledge"], &run["subcircuits"]),
        (&Value::from(false), &Value::from(3))
    );
    assert_eq!(run["phases"].as_array().map(Vec::len), Some(5));
    let public = run["public"].as_str().unwrap();
    assert_eq!(public, ok(&["hash", &x, "--keys", &keys]).trim());
    let key = format!("{keys}/verifying.key");
    let verify = ["verify", &proof, "--key", &key, "--public", public];
    fails(1, "TEST KEYS", &verify);
    assert!(ok(&[&verify[..], &["--accept-test-keys"]].concat()).contains("the proof holds"));
    // a second run over the first replaces the proof; with one seed it has the same bytes
    let seeded = ["prove", &x, "--keys", &keys, "--proof", &proof, "--insecure-seed", "4"];
    ok(&seeded);
    let first = std::fs::read(&proof).unwrap();
    ok(&seeded);
    assert_eq!(std::fs::read(&proof).unwrap(), first);
    std::fs::write(&x, "not a number").unwrap();
    fails(4, "not a decimal number", &["prove", &x, "--keys", &keys]);
    fails(
        2,
        "public values",
        &["verify", &proof, "--key", &key, "--public", "1", "--accept-test-keys"],
    );
}

#[test]
fn completions_and_man_pages() {
    for (shell, says) in
        [("bash", "complete -F"), ("zsh", "#compdef hekaton"), ("fish", "complete -c hekaton")]
    {
        let script = ok(&["completions", shell]);
        assert!(script.contains(says) && script.contains("memory-limit"), "{shell}");
    }
    let f = fixture();
    ok(&["man", &f.path("man")]);
    let page = std::fs::read_to_string(f.path("man/hekaton-prove.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("resume"));
    assert!(std::fs::read_to_string(f.path("man/hekaton.1")).unwrap().contains("Exit codes"));
    fails(3, "File exists", &["man", &f.path("file")]);
}

#[test]
fn a_memory_limit_is_kept() {
    let f = fixture();
    let (file, keys, proof) = (f.path("file"), f.path("keys"), f.path("small-proof"));
    let prove = [
        "prove",
        &file,
        "--keys",
        &keys,
        "--proof",
        &proof,
        "--threads",
        "2",
        "--json",
        "--memory-limit",
    ];
    fails(2, "smallest workable limit is", &[&prove[..], &["1M"]].concat());
    let output = hekaton(&[&prove[..], &["1M"]].concat());
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    let smallest = object["details"]["smallest_bytes"].as_u64().unwrap();
    let run = |limit: &str| -> Value {
        serde_json::from_str(&ok(&[&prove[..], &[limit]].concat())).unwrap()
    };
    let least = run(&smallest.to_string());
    assert_eq!(least["provers"], 1);
    assert!(least["peak_memory_bytes"].as_u64().unwrap() <= smallest, "{least}");
    let most = run("64G");
    assert_eq!(most["provers"], 2);
    fails(2, "expected a size above zero", &[&prove[..], &["much"]].concat());
}

#[test]
fn families_are_estimated() {
    let f = fixture();
    let chain = ["estimate", "chain", "-p", "links=2", "-p", "steps=3"];
    for option in [&["--ceremony"][..], &["--up-to", "1K"]] {
        fails(2, "so it has no key family", &[&chain[..], option].concat());
    }
    let merkle = |options: &[&str]| -> Value {
        let command = ["estimate", "merkle", "-p", "leaf-bytes=20", "--json"];
        serde_json::from_str(&ok(&[&command[..], options].concat())).unwrap()
    };
    let (largest, same) = (merkle(&["--up-to", "100"]), merkle(&["-p", "leaves=5"]));
    for figure in ["constraints", "subcircuits", "key_bytes", "parameters"] {
        assert_eq!(largest[figure], same[figure], "{figure}");
    }
    let file = f.path("file");
    fails(2, "cannot be used with", &["estimate", "merkle", "--up-to", "1K", "--for", &file]);
}

#[test]
fn estimates() {
    let f = fixture();
    let estimate = [
        "estimate",
        "merkle",
        "-p",
        "leaf-bytes=20",
        "--for",
        &f.path("file"),
        "--json",
        "--threads",
        "2",
    ];
    let found: Value = serde_json::from_str(&ok(&estimate)).unwrap();
    let manifest: Value =
        serde_json::from_str(&std::fs::read_to_string(f.path("keys/manifest.json")).unwrap())
            .unwrap();
    // these are counted, so they are exact
    for (estimated, made) in
        found["types"].as_array().unwrap().iter().zip(manifest["types"].as_array().unwrap())
    {
        for (a, b) in [
            ("name", "name"),
            ("constraints", "constraints"),
            ("instances", "instances"),
            ("key_bytes", "bytes"),
        ] {
            assert_eq!(estimated[a], made[b]);
        }
    }
    assert_eq!((&found["subcircuits"], &found["provers"]), (&12.into(), &2.into()));
    assert!(
        found["seconds"].as_f64().unwrap() > 0.0
            && found["peak_memory_bytes"].as_u64().unwrap() > 1 << 20
    );
    // without a file, from the parameters alone
    let merkle = ["estimate", "merkle", "-p", "leaf-bytes=20", "-p", "leaves=5"];
    let text = ok(&[&merkle[..], &["--ceremony", "--contributors", "3"]].concat());
    assert!(text.contains("powers with --rows 65536 --subcircuits "), "{text}");
    assert!(text.contains("3 contributors one after another"), "{text}");
    fails(2, "--ceremony", &[&merkle[..], &["--bandwidth", "1M"]].concat());
    let text = ok(&["estimate", "merkle", "-p", "leaf-bytes=20", "-p", "leaves=5", "--gpu", "24G"]);
    for part in ["peak memory", "prove round", "12", "synthesize as quickly as an H200"] {
        assert!(text.contains(part), "{part} in {text}");
    }
    fails(
        2,
        "smallest workable limit",
        &["estimate", "chain", "-p", "links=3", "-p", "steps=9", "--memory-limit", "1M"],
    );
    fails(2, "needs the parameter", &["estimate", "merkle"]);
}

#[test]
fn keys_are_verified_and_listed() {
    let f = fixture();
    let keys = f.path("keys");
    let text = ok(&["keys", "verify", &keys]);
    assert!(text.contains("pairing relations are correct"), "{text}");
    // The program has the circuit, so nothing is left out that a verifier uses.
    assert!(!text.contains("NOT CHECKED"), "{text}");
    assert!(text.contains("compare the digest"), "{text}");
    let list = ok(&["keys", "list", &f.path("")]);
    assert!(list.contains("/keys: ") && list.contains("merkle"), "{list}");
    let object: Value = serde_json::from_str(&ok(&["keys", "list", &keys, "--json"])).unwrap();
    assert_eq!(object["keys"][0]["manifest"]["circuit"], "merkle");
    fails(3, "No such file", &["keys", "list", &f.path("nowhere")]);
    fails(
        3,
        "is not empty (it contains",
        &["setup", "merkle", "--for", &f.path("file"), "--keys", &f.path("")],
    );
    fails(3, "it does not exist", &["keys", "verify", &f.path("nowhere")]);
    // valid points and matching digests, but from another setup
    let other = f.path("mixed-keys");
    ok(&["setup", "merkle", "-p", "leaf-bytes=20", "--for", &f.path("file"), "--keys", &other]);
    let manifest = std::fs::read_to_string(format!("{other}/manifest.json")).unwrap();
    let digest = |keys: &str| -> String {
        let manifest: Value = serde_json::from_str(
            &std::fs::read_to_string(format!("{keys}/manifest.json")).unwrap(),
        )
        .unwrap();
        manifest["types"][0]["digest"].as_str().unwrap().to_owned()
    };
    std::fs::copy(format!("{keys}/types/leaf.pk"), format!("{other}/types/leaf.pk")).unwrap();
    std::fs::write(
        format!("{other}/manifest.json"),
        manifest.replace(&digest(&other), &digest(&keys)),
    )
    .unwrap();
    fails(3, "does not hold", &["keys", "verify", &other]);
}

/// The text in files of key stores is neither believed nor printed as it is, and no file is read
/// without an end.
#[test]
#[cfg(unix)]
fn texts_and_files_of_keys_are_not_trusted() {
    let f = fixture();
    let copy = f.path("untrusted");
    std::fs::create_dir_all(format!("{copy}/types")).unwrap();
    for name in ["manifest.json", "verifying.key", "aggregation.key"] {
        std::fs::copy(f.path(&format!("keys/{name}")), format!("{copy}/{name}")).unwrap();
    }
    for entry in std::fs::read_dir(f.path("keys/types")).unwrap() {
        let entry = entry.unwrap();
        let to = format!("{copy}/types/{}", entry.file_name().to_str().unwrap());
        std::fs::copy(entry.path(), to).unwrap();
    }
    let file = format!("{copy}/manifest.json");
    let good = std::fs::read_to_string(&file).unwrap();
    let manifest: Value = serde_json::from_str(&good).unwrap();
    let with = |name: &str, value: &str| {
        let mut changed = manifest.clone();
        changed[name] = value.into();
        std::fs::write(&file, changed.to_string()).unwrap();
    };
    // Whom to trust is said by verifying.key, whatever the manifest says.
    assert!(ok(&["keys", "list", &copy]).contains("merkle"));
    with("trust", "keys that everybody trusts");
    let both = |args: &[&str]| {
        let output = hekaton(args);
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let (code, out) = both(&["keys", "list", &copy]);
    assert_eq!(code, Some(3));
    assert!(out.contains("DAMAGED") && out.contains("contradict verifying.key"), "{out}");
    // Neither a name nor a digest reaches the terminal with its control characters.
    let names =
        ["circuit", "trust", "written_by", "verifying_key_digest", "aggregation_key_digest"];
    for name in names {
        with(name, "a\u{1b}[2J\nb\u{9b}31m\u{202e}");
        for command in
            [&["keys", "list", &copy][..], &["inspect", &copy], &["keys", "verify", &copy]]
        {
            for json in [&[][..], &["--json"]] {
                let (code, all) = both(&[command, json].concat());
                assert_eq!(code, Some(3), "{name} {command:?}: {all}");
                assert!(!all.contains(['\u{1b}', '\u{9b}', '\u{202e}']), "{name}: {all:?}");
                assert!(!all.contains("\nb"), "{name}: {all:?}");
            }
        }
    }
    std::fs::write(&file, &good).unwrap();
    // Links to what has no end.
    for name in ["manifest.json", "verifying.key", "aggregation.key", "types/leaf.pk"] {
        let path = format!("{copy}/{name}");
        let bytes = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        fails(3, "is not a regular file", &["inspect", &copy]);
        fails(3, "is not a regular file", &["keys", "verify", &copy]);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, bytes).unwrap();
    }
    let link = f.path("endless");
    std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
    fails(
        3,
        "neither a file nor a pipe",
        &["prove", &link, "--keys", &copy, "--proof", &f.path("p3")],
    );
    fails(3, "is not a regular file", &["inspect", &link]);
}

#[test]
fn kernels_are_chosen_by_the_environment() {
    let f = fixture();
    let (key, proof, root) = (f.path("keys/verifying.key"), f.path("proof"), root());
    let with = |kernels: &str| {
        let mut command = common::command(&["verify", &proof, "--key", &key, "--public", &root]);
        let output = command.env("HEKATON_ARITH", kernels).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for kernels in ["portable", "auto", ""] {
        assert_eq!(with(kernels).0, Some(0), "a proof holds with {kernels} kernels");
    }
    let (code, says) = with("sse");
    assert!(
        code == Some(2)
            && says
                .contains("HEKATON_ARITH=sse is not a backend: use portable, avx2, ifma or auto"),
        "{says}"
    );
    // kernels that the processor cannot run are an error; no other kernels replace them
    for kernels in [hekaton_core::Backend::Avx2, hekaton_core::Backend::Ifma] {
        let (code, says) = with(&kernels.to_string());
        if kernels.is_available() {
            assert_eq!(code, Some(0), "{says}");
        } else {
            assert!(code == Some(2) && says.contains("this processor lacks"), "{says}");
        }
    }
}

/// Public values by name, and a key that is pinned by its digest.
#[test]
fn public_values_and_pinned_keys() {
    let f = fixture();
    let (proof, key) = (f.path("proof"), f.path("keys/verifying.key"));
    let verify = ["verify", &proof, "--key", &key, "--public"];
    let hashed = ok(&["hash", &f.path("file"), "-p", "leaf-bytes=20", "--json"]);
    let hashed: Value = serde_json::from_str(&hashed).unwrap();
    let by_name = hashed["public_values"].to_string();
    let verified = ok(&[&verify[..], &[&by_name, "--json"]].concat());
    let verified: Value = serde_json::from_str(&verified).unwrap();
    assert_eq!(verified["public_values"], hashed["public_values"]);
    std::fs::write(f.path("public.json"), &by_name).unwrap();
    ok(&[&verify[..], &[&format!("@{}", f.path("public.json"))]].concat());
    fails(2, "'root[1]' is missing", &[&verify[..], &["{\"root[0]\": 1}"]].concat());
    fails(2, "is not a public wire of this key", &[&verify[..], &["{\"leaf\": 1}"]].concat());
    let digest = verified["key_digest"].as_str().unwrap();
    let pinned = ok(&[&verify[..], &[&by_name, "--key-digest", digest]].concat());
    assert!(pinned.contains(&format!("{digest}, as required")), "{pinned}");
    assert!(pinned.contains("unverified claim of the key: circuit merkle"), "{pinned}");
    let other = "00".repeat(32);
    let refused = [&verify[..], &[&by_name, "--key-digest", &other]].concat();
    fails(1, "but --key-digest requires 0000", &refused);
    fails(2, "expected a digest", &[&verify[..], &[&by_name, "--key-digest", "12"]].concat());
    // A wrong value is called that, and the equations are in the details.
    let wrong = by_name.replace("\"root[0]\":\"", "\"root[0]\":\"1");
    let output = hekaton(&[&verify[..], &[&wrong, "--json"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(object["error"].as_str().unwrap().contains("does not hold for these public values"));
    assert!(object["details"]["equations"].as_array().is_some_and(|list| !list.is_empty()));
    std::fs::write(f.path("x"), "7").unwrap();
    let check = ["check", "chain", &f.path("x"), "-p", "links=2", "-p", "steps=3", "--unique"];
    let text = ok(&check);
    assert!(text.contains("type 'link', subcircuit 0: given what it reads"), "{text}");
    assert!(text.contains("1 of 1 outputs"), "{text}");
    let second = f.path("second");
    let second = [&check[..], &["--second", &second]].concat();
    fails(2, "--second is for circuits from circom", &second);
    fails(
        2,
        "parameter 'links' of circuit 'chain' is not usable: invalid type: string \"many\", expected a whole number",
        &["check", "chain", &f.path("x"), "-p", "links=many"],
    );
}

/// Keys of a family: one setup, files of several lengths; and every wrong turn.
#[test]
fn one_setup_serves_files_of_all_lengths() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_string_lossy().into_owned();
    let (family, derived) = (path("family"), path("derived"));
    let setup = ["-p", "leaf-bytes=20", "--up-to", "100", "--keys", &family];
    let text = ok(&[&["setup", "merkle"], &setup[..]].concat());
    assert!(text.contains("up to 12 subcircuits") && text.contains("family digest: "), "{text}");
    fails(3, "already holds keys", &[&["setup", "merkle"], &setup[..]].concat());
    fails(2, "unrecognized subcommand", &["keys", "family", "merkle", "--keys", &path("other")]);
    fails(
        2,
        "so it has no key family",
        &["setup", "chain", "--up-to", "1K", "--keys", &path("other")],
    );
    let leaves = ["setup", "merkle", "-p", "leaves=3", "--up-to", "1K", "--keys", &path("other")];
    fails(2, "leave it out", &leaves);
    fails(
        2,
        "cannot be used with",
        &["setup", "merkle", "--up-to", "1", "--for", "x", "--keys", "y"],
    );

    for length in [0u8, 93] {
        let (file, proof) = (path("file"), path("proof"));
        std::fs::write(&file, (0..length).collect::<Vec<_>>()).unwrap();
        let text = ok(&["prove", &file, "--keys", &family, "--proof", &proof]);
        let leaves = usize::from(length).div_ceil(20).max(1);
        let option = format!("leaves={leaves}");
        assert!(text.contains(&format!("--key {family} -p {option}")), "{text}");
        let root = ok(&["hash", &file, "--keys", &family]).trim().to_owned();
        assert_eq!(ok(&["hash", &file, "-p", "leaf-bytes=20"]).trim(), root);
        let verify = ["verify", &proof, "--key", &family, "--public", &root];
        let with = |more: &[&'static str]| [&verify[..], more].concat();
        let option: &'static str = Box::leak(option.into_boxed_str());
        let text = ok(&with(&["-p", option]));
        assert!(text.contains("the proof holds"), "{text}");
        let for_file: &'static str = Box::leak(file.clone().into_boxed_str());
        ok(&with(&["--for", for_file]));
        fails(3, "is it for the same parameters", &with(&["-p", "leaves=4"]));
        fails(2, "needs the parameter 'leaves'", &verify);
        fails(2, "all circuits of the family have leaf-bytes=20", &with(&["-p", "leaf-bytes=20"]));
        fails(2, "for at most 12", &with(&["-p", "leaves=6"]));
        let mut other = root.into_bytes();
        other[0] = if other[0] == b'0' { b'1' } else { b'0' };
        let other = String::from_utf8(other).unwrap();
        fails(
            1,
            "does not hold",
            &["verify", &proof, "--key", &family, "-p", option, "--public", &other],
        );
    }

    // Keys that are derived once: a key store like any other, for the last file.
    let file = path("file");
    let text = ok(&["keys", "derive", &family, "--for", &file, "--out", &derived]);
    assert!(text.contains("12 subcircuits of merkle -p leaves=5"), "{text}");
    let key = path("derived/verifying.key");
    let root = ok(&["hash", &file, "--keys", &derived]).trim().to_owned();
    ok(&["verify", &path("proof"), "--key", &key, "--public", &root]);
    let wrong = ["verify", &path("proof"), "--key", &key, "-p", "leaves=5", "--public", &root];
    fails(2, "a verifying key is for one circuit", &wrong);
    let proof = path("again");
    ok(&["prove", &file, "--keys", &derived, "--proof", &proof]);
    let verify = ["verify", &proof, "--key", &family, "-p", "leaves=5", "--public", &root];
    let object: Value = serde_json::from_str(&ok(&[&verify[..], &["--json"]].concat())).unwrap();
    let digest = object["family"].as_str().unwrap().to_owned();
    assert_eq!(
        (&object["key_digest_pinned"], &object["family_pinned"]),
        (&false.into(), &false.into())
    );
    // A family is pinned by its own digest, not by that of a key, and a key by its own only.
    ok(&[&verify[..], &["--key-digest", &digest]].concat());
    let key_digest = object["key_digest"].as_str().unwrap().to_owned();
    fails(1, "--key-digest requires", &[&verify[..], &["--key-digest", &key_digest]].concat());
    let by_file = ["verify", &proof, "--key", &key, "--public", &root, "--key-digest"];
    ok(&[&by_file[..], &[&key_digest]].concat());
    fails(1, "--key-digest requires", &[&by_file[..], &[&digest]].concat());
    fails(
        3,
        "is not empty",
        &["keys", "derive", &family, "--for", &file, "--out", dir.path().to_str().unwrap()],
    );

    let file_of_family = path("family/family.key");
    fails(
        3,
        "takes the directory",
        &["verify", &proof, "--key", &file_of_family, "--public", &root],
    );
    let text = ok(&["keys", "verify", &family]);
    assert!(text.contains("constraints are those of this program's circuit"), "{text}");
    ok(&["keys", "verify", &derived]);
    let text = ok(&["keys", "list", dir.path().to_str().unwrap()]);
    assert!(text.contains("to 12") && text.contains("family: merkle"), "{text}");
    assert!(ok(&["inspect", &family]).contains("key family for circuit merkle"));
    assert!(ok(&["inspect", &path("family/family.key")]).contains("key family"));
    assert!(ok(&["inspect", &key]).contains(&digest));
    // A file that is too long, and a damaged family.
    std::fs::write(&file, [0; 101]).unwrap();
    fails(2, "for at most 12", &["prove", &file, "--keys", &family]);
    fails(2, " -p leaf-bytes=20 --up-to 101 --keys DIR`", &["prove", &file, "--keys", &family]);
    let key = path("family/family.key");
    let mut bytes = std::fs::read(&key).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&key, bytes).unwrap();
    fails(3, "is damaged", &["prove", &file, "--keys", &family]);
    fails(3, "is damaged", &["keys", "verify", &family]);
}

/// The package that `new` makes is the template under a name, with paths to the checkout; `examples` compiles and tests the template.
#[test]
fn new_packages() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name).to_string_lossy().into_owned();
    ok(&["new", &path("my-circuit")]);
    let read = |file: &str| std::fs::read_to_string(path(&format!("my-circuit/{file}"))).unwrap();
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let manifest = read("Cargo.toml");
    let dependency = format!("hekaton-app = {{ path = \"{}/hekaton-app\" }}", checkout.display());
    assert!(
        manifest.contains("name = \"my-circuit\"") && manifest.contains(&dependency),
        "{manifest}"
    );
    assert!(read("src/main.rs").contains("App::new(\"my-circuit\").circuit::<Powers>()"));
    assert_eq!(read("Cargo.lock"), std::fs::read_to_string(checkout.join("Cargo.lock")).unwrap());

    let nowhere = place.path().to_string_lossy().into_owned();
    fails(2, "exists already", &["new", &path("my-circuit")]);
    fails(2, "expected a name of lower-case letters", &["new", &path("My circuit")]);
    fails(2, "cargo uses this name", &["new", &path("serde")]);
    fails(2, "not a checkout of Hekaton", &["new", &path("other"), "--hekaton", &nowhere]);
    assert!(!Path::new(&path("other")).exists());
}
