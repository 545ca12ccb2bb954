//! Programs in Rust, from `cargo hekaton new` to a proof.

#![allow(clippy::print_stdout, reason = "says what is skipped")]

use crate::common::{hekaton, ok};
use crate::files;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const TARGET: &str = "riscv32im-unknown-none-elf";

/// The crates that the programs use.
const DEPENDENCIES: &str = r#"
curve25519-dalek = { version = "4", default-features = false, features = ["precomputed-tables"] }
k256 = { version = "0.13", default-features = false, features = ["ecdsa"] }
miniz_oxide = { version = "0.8", default-features = false, features = ["with-alloc"] }
serde = { version = "1", default-features = false, features = ["alloc", "derive"] }
serde_json = { version = "1", default-features = false, features = ["alloc"] }
sha2 = { version = "0.10", default-features = false }
"#;

/// The programs.
const PROGRAMS: [(&str, &str); 9] = [
    ("curves", include_str!("crates/curves.rs")),
    ("ecdsa", include_str!("../../../circuits/vm/guests/ecdsa.rs")),
    ("hash", include_str!("crates/hash.rs")),
    ("inflate", include_str!("crates/inflate.rs")),
    ("json", include_str!("crates/json.rs")),
    ("numbers", include_str!("crates/numbers.rs")),
    ("primes", include_str!("../../../circuits/vm/guests/primes.rs")),
    ("signature", include_str!("crates/signature.rs")),
    ("values", include_str!("crates/values.rs")),
];

/// A run of `cargo hekaton`: the exit code, and what it prints on both streams.
fn cargo_hekaton(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-hekaton"));
    // As cargo calls it.
    command.arg("hekaton").args(arguments).current_dir(folder);
    // Programs of both packages have the same names.
    let target = if folder.to_str().unwrap().contains("patched") { "rust-patched" } else { "rust" };
    command.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join(target));
    command.env("CARGO_NET_OFFLINE", "false");
    let output = command.output().unwrap();
    let [out, err] = [&output.stdout, &output.stderr].map(|it| String::from_utf8_lossy(it));
    (output.status.code().unwrap(), format!("{out}{err}"))
}

/// Reports whether Rust's compiler has the target.
pub(crate) fn has_target() -> bool {
    let found =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    let libdir = String::from_utf8(found.unwrap().stdout).unwrap();
    Path::new(libdir.trim()).is_dir()
}

/// A package of all programs, once for all tests; `None` where the target or the crates are missing.
fn package() -> Option<&'static Path> {
    static PACKAGE: OnceLock<Option<PathBuf>> = OnceLock::new();
    PACKAGE.get_or_init(|| new_package(Path::new(&files().path("crates")))).as_deref()
}

/// The same, with crates that use the calls of the machine.
fn patched() -> Option<&'static Path> {
    static PATCHED: OnceLock<Option<PathBuf>> = OnceLock::new();
    let make = || {
        let place = PathBuf::from(files().path("patched"));
        std::fs::create_dir(&place).unwrap();
        let folder = new_package(&place.join("crates"))?;
        let (code, said) = cargo_hekaton(&folder, &["patch"]);
        assert_eq!(code, 0, "{said}");
        for line in ["curve25519-dalek 4.1.3: patched in", "k256 0.13.4", "sha2 0.10.9"] {
            assert!(said.contains(line), "{said}");
        }
        Some(folder)
    };
    PATCHED.get_or_init(make).as_deref()
}

/// Makes a package of all programs, whose name is in the lock file.
fn new_package(folder: &Path) -> Option<PathBuf> {
    if !has_target() {
        println!("SKIPPED: programs in Rust, which need `rustup target add {TARGET}`");
        return None;
    }
    let (code, said) = cargo_hekaton(folder.parent().unwrap(), &["new", "crates"]);
    assert_eq!(code, 0, "{said}");
    let manifest = folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&manifest).unwrap();
    let own = "hekaton-guest = { path = \"hekaton-guest\" }\n";
    assert!(text.contains(own), "{text}");
    std::fs::write(&manifest, text.replace(own, &format!("{own}{DEPENDENCIES}"))).unwrap();
    std::fs::write(folder.join("Cargo.lock"), include_str!("crates/locked.toml")).unwrap();
    std::fs::create_dir(folder.join("src/bin")).unwrap();
    for (name, text) in PROGRAMS {
        std::fs::write(folder.join("src/bin").join(name).with_extension("rs"), text).unwrap();
    }
    let mut fetch = Command::new("cargo");
    let fetched = fetch.args(["fetch", "--locked"]).current_dir(folder).output().unwrap();
    let said = String::from_utf8_lossy(&fetched.stderr);
    assert!(!said.contains("--locked"), "{said}");
    if !fetched.status.success() {
        println!("SKIPPED: programs with crates, which are not to be had: {said}");
        return None;
    }
    Some(folder.to_owned())
}

/// Compiles a program, and runs it on a file with these bytes, with more options. Returns the exit code of the command, the
/// result, and what is printed on standard error.
fn run(folder: &Path, program: &str, input: &[u8], more: &[&str]) -> (i32, Value, String) {
    let file = folder.join(format!("{program}.input"));
    std::fs::write(&file, input).unwrap();
    let (code, said) = cargo_hekaton(folder, &["build", "--locked", "--bin", program]);
    assert_eq!(code, 0, "{said}");
    let path = said.lines().find(|line| line.starts_with('/')).unwrap();
    let fixed = ["vm", "run", path, "--json", "--input", file.to_str().unwrap()];
    let output = hekaton(&[&fixed, more].concat());
    let found = serde_json::from_slice(&output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().unwrap(), found, said)
}

/// A number as postcard has it.
fn varint(mut n: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = u8::try_from(n & 0x7f).unwrap();
        n >>= 7;
        bytes.push(if n == 0 { low } else { low | 0x80 });
        if n == 0 {
            return bytes;
        }
    }
}

/// The bytes of an output, as `vm run` shows them.
fn bytes(found: &Value) -> &str {
    found["output_bytes"]["hex"].as_str().unwrap()
}

/// The input of `signature`: ECDSA with the secret key 1, as Bitcoin's implementations make it; RFC 8032, section 7.1, test 1.
fn signed() -> Vec<u8> {
    let key = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";
    let signature = "934b1ea10a4b3c1757e2b0c017d0b6143ce3c9a7e6a4a49860d7a6ab210ee3d8\
                     2442ce9d2b916064108014783e923ec36b49743e2ffa1c4496f01a512aafd9e5";
    let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
    let mut input = hex::decode([key, signature, seed].concat()).unwrap();
    input.extend(b"Satoshi Nakamoto");
    input
}

#[test]
fn well_known_crates_work_unchanged() {
    let Some(folder) = package() else { return };
    // FIPS 180-4: SHA-256 and SHA-512 of "abc".
    let output = folder.join("hash.output");
    let (_, found, _) = run(folder, "hash", b"abc", &["--output", output.to_str().unwrap()]);
    let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\
                    ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                    2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f";
    assert_eq!(hex::encode(std::fs::read(&output).unwrap()), expected);
    assert_eq!(found["output_bytes"]["bytes"], 96);

    let people = br#"[{"name": "Ada", "age": 36}, {"age": 41.5, "name": "Alan"}]"#;
    let (_, found, _) = run(folder, "json", people, &[]);
    let mean = hex::encode(38.75f64.to_le_bytes());
    assert_eq!(bytes(&found), format!("0203{}04{}{mean}", hex::encode("Ada"), hex::encode("Alan")));
    let (_, found, said) = run(folder, "json", b"[{\"name\": 1}]", &[]);
    assert_eq!(found["program_exit_code"], 1);
    assert!(said.contains("invalid type: integer `1`, expected a string"), "{said}");

    let mut input = signed();
    let (_, found, _) = run(folder, "signature", &input, &[]);
    let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
    assert_eq!((&found["program_exit_code"], bytes(&found)), (&0.into(), public));
    *input.last_mut().unwrap() ^= 1;
    let (_, found, said) = run(folder, "signature", &input, &[]);
    assert_eq!(found["program_exit_code"], 1);
    assert!(said.contains("signature::Error"), "{said}");

    let text = "to be compressed ".repeat(40);
    let (code, found, said) = run(folder, "inflate", text.as_bytes(), &[]);
    assert_eq!((code, &found["program_exit_code"]), (0, &0.into()), "{said}");
    assert!(found["output_bytes"]["bytes"].as_u64().unwrap() > 680, "{found}");
}

/// Patched crates have the results of others, and cost a tenth.
#[test]
#[ignore = "minutes: in scripts/test --all"]
fn patched_crates_use_the_calls() {
    let (Some(folder), Some(patched)) = (package(), patched()) else { return };
    let both = |program: &str, input: &[u8]| {
        let [own, other] = [folder, patched].map(|folder| run(folder, program, input, &[]).1);
        assert_eq!(own["program_exit_code"], other["program_exit_code"], "{program}");
        assert_eq!(own["output"], other["output"], "{program}");
        [own, other].map(|it| it["constraints"].as_u64().unwrap())
    };
    // Blocks that begin at words and between them.
    for length in [0, 55, 56, 64, 1000] {
        both("hash", &vec![7; length]);
    }
    let constraints = both("signature", &signed());
    assert!(constraints[1] < 18_500_000 && constraints[0] > 10 * constraints[1], "{constraints:?}");
    let mut input = [&signed()[..97], b"Satoshi Nakamoto"].concat();
    let constraints = both("ecdsa", &input);
    assert!(constraints[1] < 13_000_000, "{constraints:?}");
    input[40] ^= 1;
    both("ecdsa", &input);
    // 0, 1, 2, the orders of both fields and numbers beside them, little-endian and big-endian, and the largest.
    let ed: Vec<u8> = [[0xed].as_slice(), &[0xff; 30], &[0x7f]].concat();
    let secp: Vec<u8> = [[0xff; 27].as_slice(), &[0xfe, 0xff, 0xff, 0xfc, 0x2f]].concat();
    let mut encodings = vec![vec![0; 32], vec![0xff; 32]];
    for (list, place) in [(&ed, 0), (&secp, 31)] {
        for change in [0, 1, 2, 3, 4, 255, 254] {
            let mut near = list.clone();
            near[place] = near[place].wrapping_add(change);
            encodings.push(near);
        }
        for value in [1, 2, 3, 9] {
            let mut small = vec![0; 32];
            small[place] = value;
            encodings.push(small);
        }
    }
    both("curves", &encodings.concat());
}

/// The calls for large numbers, with operands anywhere, and copies of memory.
#[test]
fn numbers_are_multiplied_by_calls() {
    let Some(folder) = package() else { return };
    // 2 * 3 + 4 = 3 and 2 * 2 + 4 = 1 modulo 7.
    let words = |words: usize| {
        [2u32, 3, 4, 7]
            .map(|n| [n.to_le_bytes().to_vec(), vec![0; 4 * words - 4]].concat())
            .concat()
    };
    let output = folder.join("numbers.output");
    let options = ["--output", output.to_str().unwrap()];
    let (_, found, said) = run(folder, "numbers", &[words(8), words(12)].concat(), &options);
    assert_eq!(found["program_exit_code"], 0, "{said}");
    let number = |n: u8, bytes: usize| [vec![n], vec![0; bytes - 1]].concat();
    let expected = [number(3, 32), number(1, 32), number(3, 48), number(1, 48)].concat();
    assert_eq!(std::fs::read(&output).unwrap(), expected);
}

/// Words of input and output, as C programs have them.
#[test]
fn words_are_read_and_written() {
    let Some(folder) = package() else { return };
    for (n, exit, words) in [(10_000u32, 0, [1229, 9973]), (1 << 17, 1, [0, 0])] {
        let public = folder.join("public");
        std::fs::write(&public, n.to_le_bytes()).unwrap();
        let options = ["--public-input", public.to_str().unwrap()];
        let (_, found, _) = run(folder, "primes", b"", &options);
        assert_eq!(found["program_exit_code"], exit);
        assert_eq!([&found["output"][0], &found["output"][1]], [&words[0], &words[1]]);
        assert_eq!(found["output_bytes"], Value::Null);
    }
}

/// Typed values in, texts and outputs of any length out; errors and panics say what is wrong.
#[test]
fn values_texts_and_panics() {
    let Some(folder) = package() else { return };
    let words = [1, 3, 1, b'b', 1, b'a', 1, b'b', 1, b'z'];
    let (_, found, said) = run(folder, "values", &words, &[]);
    assert_eq!((&found["program_exit_code"], bytes(&found)), (&0.into(), "02016101016202"));
    assert_eq!(said, "an order: Words([\"b\", \"a\", \"b\"])\n");
    for (input, exit, text) in [
        (&[1, 0][..], 1, "Error: Words([])\n"),
        (&[1, 1, 1, b'b', 1, b'y'], 101, "failed: the input must end with z\n"),
        (&[1, 1, 1, b'b', 1, b'y'], 101, "panicked at src/bin/values.rs:"),
        (
            &[1, 1, 1, b'b'],
            101,
            "byte 4 of 4 of the input does not begin a char: Hit the end of buffer",
        ),
        (&[7], 101, "byte 0 of 1 of the input does not begin a values::Order"),
    ] {
        let (code, found, said) = run(folder, "values", input, &[]);
        assert_eq!((code, &found["program_exit_code"]), (0, &exit.into()), "{said}");
        assert!(said.contains(text), "{text}: {said}");
        assert_eq!(found["output_bytes"], Value::Null, "without output: {said}");
    }
    // 96 KiB of stack are enough for some depth, and where not, the line is named.
    let (_, found, _) = run(folder, "values", &[2, 100], &[]);
    assert_eq!(bytes(&found), hex::encode(varint(5050)));
    let (code, found, _) = run(folder, "values", &[vec![2], varint(1000)].concat(), &[]);
    let error = found["error"].as_str().unwrap();
    assert!(code == 4 && error.contains("stack overflow"), "{code}: {found}");
    assert!(error.contains("(values::deep") && error.contains(") at values.rs:2"), "{error}");
    assert!(error.contains("#[hekaton_guest::main(stack = N)]"), "{error}");
}

/// Outputs around the lengths at which they become digests, and at which SHA-256 has one block more.
#[test]
fn outputs_have_any_length() {
    let Some(folder) = package() else { return };
    for n in [0u32, 1, 59, 60, 61, 63, 64, 119, 120, 128, 100_000] {
        let input = [vec![0], varint(n)].concat();
        let output = folder.join("values.output");
        let (_, found, _) = run(folder, "values", &input, &["--output", output.to_str().unwrap()]);
        let expected: Vec<u8> = (0..n).map(|i| (i & 0xff).try_into().unwrap()).collect();
        assert_eq!(std::fs::read(&output).unwrap(), expected, "{n}");
        assert_eq!(found["output_bytes"]["bytes"], n, "{n}");
        assert_eq!(found["output_bytes"]["sha256"].is_null(), n <= 60, "{n}");
    }
}

/// A proof, verified with its output and refused with another one.
#[test]
fn the_output_is_part_of_the_claim() {
    let Some(folder) = package() else { return };
    let [keys, input, output, proof] =
        ["keys", "rust.order", "rust.output", "values.proof"].map(|name| files().path(name));
    std::fs::write(&input, [0, 70]).unwrap();
    let (code, said) = cargo_hekaton(
        folder,
        &[
            "prove", "--locked", "--bin", "values", "--input", &input, "--keys", &keys, "--proof",
            &proof,
        ],
    );
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("an order"), "texts may have secrets: {said}");
    assert!(said.contains("output of 70 bytes with SHA-256"), "{said}");
    let verify = |bytes: &[u8]| {
        std::fs::write(&output, bytes).unwrap();
        let fixed = ["verify", "--locked", "--bin", "values", &proof, "--keys", &keys];
        cargo_hekaton(folder, &[&fixed[..], &["--output", &output, "--accept-test-keys"]].concat())
    };
    let mut bytes: Vec<u8> = (0..70).collect();
    let (code, said) = verify(&bytes);
    assert!(code == 0 && said.contains("the proof holds"), "{code}: {said}");
    bytes[69] = 0;
    let (code, said) = verify(&bytes);
    assert!(code == 1 && said.contains("output"), "{code}: {said}");
    let (code, said) = verify(&[7; 1000]);
    assert!(code == 1 && said.contains("output"), "{code}: {said}");
    let (code, said) = verify(&bytes[..69]);
    assert!(code == 1 && said.contains("output"), "{code}: {said}");
    // The words are 64 bytes, but they are not the output.
    let shown: Value = serde_json::from_str(&ok(&["vm", "inspect", &proof, "--json"])).unwrap();
    let words: Vec<u32> = serde_json::from_value(shown["output"].clone()).unwrap();
    let (code, said) = verify(&words.iter().flat_map(|it| it.to_le_bytes()).collect::<Vec<_>>());
    assert!(code == 1 && said.contains("output"), "{code}: {said}");
}

/// `cargo hekaton` says what is wrong, and what to do.
#[test]
fn mistakes_with_packages_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| cargo_hekaton(folder.path(), arguments);
    let (code, said) = run(&["new", "sum"]);
    assert!(code == 0 && said.contains("cd sum && cargo hekaton run"), "{said}");
    for (arguments, code, says) in [
        (&["new", "sum"][..], 2, "sum exists already"),
        (&["new", "Sum"], 2, "expected a name of lower-case letters"),
        (&["new", "hekaton-guest"], 2, "cargo uses this name"),
        (
            &["run", "--input", "i", "--bin=x"],
            2,
            "--bin must come before the options of `hekaton vm`",
        ),
        (&["build"], 4, "could not find `Cargo.toml`"),
        (&[], 2, "cargo hekaton new sum && cd sum"),
    ] {
        if arguments == ["build"] && !has_target() {
            continue;
        }
        let (found, said) = run(arguments);
        assert!(found == code && said.contains(says), "{arguments:?}: {found}: {said}");
    }
    if let Some(package) = package() {
        let (code, said) = cargo_hekaton(package, &["build", "--locked"]);
        assert!(
            code == 2 && said.contains("--bin curves or --bin ecdsa or --bin hash"),
            "{code}: {said}"
        );
    }
}
