//! The programs of `guests/`, compiled by clang: here they have the results that they have under Linux in qemu-riscv32,
//! and those that are known. Needs clang, lld and qemu-user, which `scripts/test` installs. `tests/toolchains.rs` has what
//! depends on compilers and linkers.

#![allow(clippy::cast_possible_truncation, reason = "short inputs")]

use hekaton_circuit::check;
use hekaton_testing::{noise, squares};
use hekaton_vm::{Chip, Counts, Input, MachineCircuit, OUTPUT_WORDS, Program, Run, Sizes, run};
use num_bigint::BigUint;
use sha2::{Digest as _, Sha256};
use sha3::Keccak256;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const MAX_CYCLES: u64 = 1 << 24;

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests")
}

/// Returns the folders of the programs: for the machine, and for Linux.
fn built() -> &'static [PathBuf; 2] {
    static BUILT: OnceLock<[PathBuf; 2]> = OnceLock::new();
    BUILT.get_or_init(|| {
        ["machine", "linux"].map(|system| {
            let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("guests-{system}"));
            let mut build = Command::new(guests().join("build"));
            if system == "linux" {
                build.env("LINUX", "1");
            }
            let status = build.arg(&out).status().unwrap();
            assert!(status.success(), "guests/build needs clang and lld");
            out
        })
    })
}

fn program(name: &str) -> Program {
    let [machine, _] = built();
    Program::from_elf(&std::fs::read(machine.join(name)).unwrap()).unwrap()
}

/// The bytes of an input in memory.
fn memory(input: &Input) -> Vec<u8> {
    let words = input.public.iter().copied().chain([input.private.len() as u32]);
    words.flat_map(u32::to_le_bytes).chain(input.private.iter().copied()).collect()
}

/// Exit code and output under Linux.
fn on_linux(name: &str, input: &Input) -> (i32, Vec<u8>) {
    let [_, linux] = built();
    let mut child = Command::new("qemu-riscv32")
        .arg(linux.join(name))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("qemu-riscv32, which is in Debian's package qemu-user");
    child.stdin.take().unwrap().write_all(&memory(input)).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code().unwrap(), output.stdout)
}

/// Runs a program on both, which must agree.
fn both(name: &str, input: &Input) -> Run {
    let run = run(&program(name), input, MAX_CYCLES).unwrap();
    let output: Vec<u8> = run.output().iter().flat_map(|word| word.to_le_bytes()).collect();
    let (code, expected) = on_linux(name, input);
    assert_eq!((run.exit_code(), output), (code as u32, expected), "{name}");
    run
}

fn private(bytes: impl Into<Vec<u8>>) -> Input {
    Input { public: Vec::new(), private: bytes.into() }
}

#[test]
fn fibonacci() {
    for (n, expected) in [(0u32, 0u64), (1, 1), (2, 1), (10, 55), (93, 12_200_160_415_121_876_738)]
    {
        let run = both("fibonacci", &Input { public: vec![n], private: Vec::new() });
        let [low, high] = [run.output()[0], run.output()[1]].map(u64::from);
        assert_eq!(low | high << 32, expected, "{n}");
    }
}

#[test]
fn quicksort() {
    let mut list: Vec<u32> = noise(2000).collect();
    let run =
        both("quicksort", &private(list.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>()));
    list.sort_unstable();
    let sum = list.iter().fold(0u32, |sum, x| sum.wrapping_mul(31).wrapping_add(*x));
    assert_eq!(run.output()[..5], [2000, list[0], list[1000], list[1999], sum]);
    assert_eq!(both("quicksort", &private([1, 2, 3])).exit_code(), 1);
}

#[test]
fn sha256() {
    let abc = [
        0xba7816bf, 0x8f01cfea, 0x414140de, 0x5dae2223, 0xb00361a3, 0x96177a9c, 0xb410ff61,
        0xf20015ad,
    ];
    let run = both("sha256", &private(*b"abc"));
    assert_eq!(run.output()[..8], abc.map(u32::swap_bytes));
    for length in [0, 55, 56, 63, 64, 65, 1000] {
        both("sha256", &private(noise(length).map(|x| (x >> 24) as u8).collect::<Vec<_>>()));
    }
}

/// The functions of the machine return what other software returns, at all lengths around the ends of blocks; and the
/// circuit accepts it.
#[test]
fn hash() {
    for length in [0, 55, 56, 64, 135, 136, 137, 300] {
        let bytes: Vec<u8> = noise(length).map(|x| (x >> 24) as u8).collect();
        let run = both("hash", &private(bytes.clone()));
        let output: Vec<u8> = run.output().iter().flat_map(|word| word.to_le_bytes()).collect();
        let digests = [&Sha256::digest(&bytes)[..], &Keccak256::digest(&bytes)].concat();
        assert_eq!(output, digests, "{length} bytes");
        let blocks = [(length + 9).div_ceil(64), length / 136 + 1].map(|blocks| blocks as u64);
        assert_eq!([Chip::Sha256, Chip::Keccak].map(|chip| run.count(chip)), blocks);
    }
    let (program, input) = (program("hash"), private(*b"abc"));
    let run = run(&program, &input, MAX_CYCLES).unwrap();
    let sizes = Sizes::SMALL;
    let counts = Counts::of(&run, &program, &input, sizes);
    let execution =
        MachineCircuit { program, sizes, counts, public_words: 0, max_cycles: MAX_CYCLES };
    let report = check(&execution, &input, |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
}

/// a b + c mod m by the calls of the machine, and bit by bit elsewhere.
#[test]
fn modular() {
    for (kind, words) in [(0u32, 8), (1, 12)] {
        let noise: Vec<u32> = noise(16 * words).collect();
        let most = vec![u32::MAX; words];
        let one: Vec<u32> = (0..words).map(|at| u32::from(at == 0)).collect();
        let mut lists: Vec<Vec<u32>> = noise.chunks(4 * words).map(<[u32]>::to_vec).collect();
        // The modulus is the largest number, or 1; factors are below it, or one of them is.
        lists.push([&noise[..3 * words], &most].concat());
        lists.push([&most[..], &one, &most, &noise[..words]].concat());
        lists.push([&one[..], &one, &most, &one].concat());
        for mut list in lists {
            // The largest word of noise.
            list[4 * words - 1] |= if list[3 * words..] == one { 0 } else { 1 << 31 };
            let number = |which: usize| BigUint::from_slice(&list[which * words..][..words]);
            let [a, b, c, m] = [0, 1, 2, 3].map(number);
            if a >= m && b >= m {
                list.copy_within(3 * words.., 0);
                list[0] -= 1;
            }
            let a = BigUint::from_slice(&list[..words]);
            let first = (a * &b + &c) % &m;
            let mut expected = ((first * b + c) % m).to_u32_digits();
            expected.resize(OUTPUT_WORDS, 0);
            let input: Vec<u8> = [kind].iter().chain(&list).flat_map(|w| w.to_le_bytes()).collect();
            let run = both("modular", &private(input));
            assert_eq!((run.exit_code(), &run.output()[..]), (0, &expected[..]));
        }
    }
    assert_eq!(both("modular", &private([0; 131])).exit_code(), 1);
}

#[test]
fn json() {
    let text = r#" {"a": [1, -2.5e+3, "\u00e9 é €"], "b": {"c": null, "d": [true, false, {}]}} "#;
    let run = both("json", &private(text));
    assert_eq!((run.exit_code(), &run.output()[..8]), (0, &[3, 2, 4, 5, 2, 3, 4, 0][..]));
    let wrong: [&[u8]; 14] = [
        b"",
        b"{",
        b"[1,]",
        b"{\"a\" 1}",
        b"01",
        b"1.",
        b"1e",
        b"-",
        b"tru",
        b"\"\x01\"",
        b"\"\\x\"",
        b"\"\xc0\x80\"",
        b"\"\xed\xa0\x80\"",
        b"[] []",
    ];
    for text in wrong {
        assert_eq!(both("json", &private(text)).exit_code(), 1, "{text:?}");
    }
    let deep = |levels: usize| private("[".repeat(levels) + &"]".repeat(levels));
    assert_eq!([64, 65].map(|levels| both("json", &deep(levels)).exit_code()), [0, 1]);
}

/// The sum of the squares below 50, by a program of the program.
#[test]
fn interpreter() {
    let run = both("interpreter", &private(squares(50)));
    assert_eq!((run.exit_code(), run.output()[..2].to_vec()), (0, vec![40_425, 4 + 50 * 14 + 2]));
    // An addition without operands.
    assert_eq!(both("interpreter", &private(2u32.to_le_bytes())).exit_code(), 1);
}

/// A compiled program satisfies its chips, and the model's count of rows holds.
#[test]
fn a_compiled_program_is_provable() {
    let (program, input) = (program("json"), private(r#"{"a": [1, 2.5, "x"], "b": null}"#));
    let run = run(&program, &input, MAX_CYCLES).unwrap();
    let sizes = Sizes::SMALL;
    let rows = sizes.constraints_of(&run) as f64 / run.cycles() as f64;
    assert!((17.0..20.0).contains(&rows), "{rows} rows a cycle");
    let counts = Counts::of(&run, &program, &input, sizes);
    let execution =
        MachineCircuit { program, sizes, counts, public_words: 0, max_cycles: MAX_CYCLES };
    let report = check(&execution, &input, |_, _| {}).unwrap();
    assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
    assert_eq!(report.public_values.len(), 1 + OUTPUT_WORDS);
}
