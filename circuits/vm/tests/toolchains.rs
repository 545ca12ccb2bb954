//! Programs of clang with lld and of GNU tools, with the link script of `guests/` and without: where they have their data and their stack, and
//! what their digests depend on. Needs clang and lld; the GNU tools are skipped where they are missing.

#![allow(clippy::print_stdout, reason = "says what is skipped")]

use hekaton_vm::{Input, Program, RunError, TrapReason, run};
use std::path::{Path, PathBuf};
use std::process::Command;

const MAX_CYCLES: u64 = 1 << 24;

/// A compiler with its linker, as the guide calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tools {
    Clang,
    Gcc,
}

const GCC: &str = "riscv64-unknown-elf-gcc";

impl Tools {
    fn compiler(self) -> Command {
        match self {
            Self::Clang => {
                let mut command = Command::new("clang");
                command.args(["--target=riscv32", "-mno-relax", "-fuse-ld=lld"]);
                command
            }
            Self::Gcc => Command::new(GCC),
        }
    }

    /// A tool for files, such as strip.
    fn tool(self, name: &str) -> Command {
        match self {
            Self::Clang => Command::new(format!("llvm-{name}")),
            Self::Gcc => Command::new(format!("riscv64-unknown-elf-{name}")),
        }
    }
}

/// The toolchains that are installed; without clang and lld, there is no test.
fn installed() -> Vec<Tools> {
    let is_there = |name: &str| Command::new(name).arg("--version").output().is_ok();
    assert!(is_there("clang") && is_there("ld.lld"), "needs clang and lld");
    if is_there(GCC) {
        return vec![Tools::Clang, Tools::Gcc];
    }
    println!("SKIPPED: GNU tools, which need `apt-get install gcc-riscv64-unknown-elf`");
    vec![Tools::Clang]
}

fn guests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("guests")
}

/// Source and program of one test, in a folder of their own.
struct Source {
    folder: PathBuf,
    file: PathBuf,
}

impl Source {
    fn new(name: &str, text: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("toolchains").join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("program.c");
        std::fs::write(&file, text).unwrap();
        Self { folder, file }
    }

    /// The source of one of the programs in `guests/`.
    fn guest(name: &str) -> Self {
        let text = std::fs::read_to_string(guests().join(name).with_extension("c")).unwrap();
        Self::new(name, &text)
    }

    /// Compiles it with more options.
    fn compile(&self, tools: Tools, name: &str, more: &[&str]) -> PathBuf {
        let out = self.folder.join(format!("{name}-{tools:?}"));
        let guests = guests();
        let mut compile = tools.compiler();
        compile
            .args(["-march=rv32im", "-mabi=ilp32", "-O2", "-ffreestanding", "-nostdlib", "-static"])
            .arg("-I")
            .arg(&guests)
            .arg(guests.join("start.S"))
            .arg(&self.file)
            .args(more)
            .arg("-o")
            .arg(&out);
        let output = compile.output().unwrap();
        assert!(
            output.status.success(),
            "{compile:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        out
    }
}

/// The option that selects the link script.
fn script() -> String {
    format!("-Wl,-T,{}", guests().join("guest.ld").display())
}

fn program(path: &Path) -> Program {
    Program::from_elf(&std::fs::read(path).unwrap()).unwrap()
}

fn output(path: &Path, private: &[u8]) -> Vec<u32> {
    let input = Input { public: Vec::new(), private: private.to_vec() };
    let run = run(&program(path), &input, MAX_CYCLES).unwrap();
    assert_eq!(run.exit_code(), 0, "{}", path.display());
    run.output().to_vec()
}

/// GNU ld turns accesses to small data into accesses by gp, which the start code sets; also where lld relaxes, and where the
/// linker's own script says where things are.
#[test]
fn small_data_is_accessed_by_gp() {
    let small = Source::new(
        "gp",
        "#include \"hekaton.h\"\nu32 pad[64]; volatile u32 g = 41;\n\
         int main(void) { g++; pad[g & 63] = g; OUTPUT[0] = pad[42]; return 0; }\n",
    );
    let (json, text) = (
        Source::guest("json"),
        br#"{"a": [1, -2.5e+3, "x"], "b": {"c": null, "d": [true, false, {}]}}"#,
    );
    for tools in installed() {
        for (name, more) in [("script", vec![script()]), ("own", vec![])] {
            let more: Vec<&str> = more.iter().map(String::as_str).collect();
            let found = output(&small.compile(tools, name, &more), &[]);
            assert_eq!(found[0], 42, "{tools:?} {name}");
            let found = output(&json.compile(tools, name, &more), text);
            assert_eq!(found[..8], [3, 2, 4, 5, 2, 3, 4, 0], "{tools:?} {name}");
        }
        if tools == Tools::Clang {
            let relaxed = small.compile(tools, "relaxed", &[&script(), "-mrelax"]);
            assert_eq!(output(&relaxed, &[])[0], 42);
        }
    }
}

/// Variables of threads are found by tp, whether they are zero at the beginning or not.
#[test]
fn variables_of_threads_are_found_by_tp() {
    let source = Source::new(
        "tp",
        "#include \"hekaton.h\"\n_Thread_local u32 a = 5, b[3]; _Thread_local u64 e; u32 c = 7, d[4];\n\
         int main(void) { for (int i = 0; i < 4; i++) d[i] = 0x1111; b[0]++; b[1] += a; b[2] += 9; e += 3;\n\
         OUTPUT[0] = b[0]; OUTPUT[1] = b[1]; OUTPUT[2] = b[2]; OUTPUT[3] = (u32)e; OUTPUT[4] = c + d[3];\n\
         return 0; }\n",
    );
    for tools in installed() {
        let found = output(&source.compile(tools, "program", &[&script()]), &[]);
        assert_eq!(found[..5], [1, 5, 9, 3, 0x1118], "{tools:?}");
    }
}

/// With the link script, a stack that grows too far traps instead of overwriting data, and may be made larger.
#[test]
fn a_stack_that_overflows_traps() {
    let source = Source::new(
        "stack",
        "#include \"hekaton.h\"\nu32 kept = 0x1234;\n\
         __attribute__((noinline)) static u32 deep(u32 n) { volatile u32 room[60]; room[n % 60] = n;\n\
         return n == 0 ? 0 : deep(n - 1) + room[n % 60]; }\n\
         int main(void) { u32 length; private_input(0, &length); OUTPUT[0] = deep(length); OUTPUT[1] = kept;\n\
         return 0; }\n",
    );
    // Each level takes at least 240 bytes.
    let levels = |count: u32| vec![0; count as usize];
    for tools in installed() {
        let path = source.compile(tools, "program", &[&script()]);
        // Where the stack ends by the link script, the program begins.
        let start = program(&path).summary().entry;
        assert_eq!(program(&path).symbol(start + 4), Some(("_start", 4)), "{tools:?}");
        assert_eq!(output(&path, &levels(100))[..2], [5050, 0x1234], "{tools:?}");
        let input = Input { public: Vec::new(), private: levels(1000) };
        match run(&program(&path), &input, MAX_CYCLES) {
            Err(RunError::Trap(trap)) => {
                let is_it =
                    matches!(trap.reason, TrapReason::StackOverflow { start: 0x1_0000, .. });
                assert!(is_it, "{tools:?}: {trap}");
                assert!(trap.to_string().contains("(deep"), "{tools:?}: {trap}");
            }
            other => panic!("{tools:?}: {other:?}"),
        }
        let larger = [&script(), "-DSTACK_SIZE=0x80000"];
        let path = source.compile(tools, "larger", &larger);
        assert_eq!(program(&path).summary().start, 0x1_0000, "{tools:?}");
        assert_eq!(output(&path, &levels(1000))[..2], [500_500, 0x1234], "{tools:?}");
    }
}

/// The files of picolibc for this machine, and the options that a program with it has after its files; `None` where it is
/// not installed.
fn picolibc(tools: Tools) -> Option<Vec<String>> {
    const ROOT: &str = "/usr/lib/picolibc/riscv64-unknown-elf";
    let found = Command::new(GCC)
        .args(["-march=rv32im", "-mabi=ilp32", "-print-libgcc-file-name"])
        .output();
    let libgcc = found.ok().map(|output| String::from_utf8(output.stdout).unwrap());
    let (Some(libgcc), true) = (libgcc, Path::new(ROOT).exists()) else {
        println!(
            "SKIPPED: a C library, which needs `apt-get install picolibc-riscv64-unknown-elf`"
        );
        return None;
    };
    let library = format!("{ROOT}/lib/release/rv32im/ilp32");
    let mut options = vec![format!("-isystem{ROOT}/include"), format!("-L{library}")];
    options.extend(["-Wl,--start-group", "-lc", "-lm"].map(str::to_owned));
    options.extend([libgcc.trim().to_owned(), "-Wl,--end-group".to_owned()]);
    assert!(Path::new(libgcc.trim()).exists(), "{tools:?}: {libgcc}");
    Some(options)
}

/// A program of two files that both include `hekaton.h`, with the C library: strings, sorting, floating point, 64-bit
/// division, jumps, memory, and text from numbers.
#[test]
fn programs_use_a_c_library() {
    let source = Source::new("library", include_str!("programs/library.c"));
    let more = source.folder.join("more.c");
    std::fs::write(&more, include_str!("programs/more.c")).unwrap();
    // CRC-32 of "123456789" has a published value.
    let text = "-42 2a  3.14 x";
    let hash = text.bytes().fold(0u32, |h, b| h.wrapping_mul(31).wrapping_add(b.into()));
    let sorted: u32 = {
        let mut numbers: Vec<u32> =
            (0..100u32).map(|i| i.wrapping_mul(2_654_435_761) >> 8).collect();
        numbers.sort_unstable();
        (1u32..).zip(&numbers).fold(0, |sum, (i, x)| sum.wrapping_add(i.wrapping_mul(*x)))
    };
    let quotient = 0x0123_4567_89ab_cdefu64 / 12_345;
    let remainder = (-987_654_321_987i64 % 1_000_003).unsigned_abs();
    let word = |x: u64| u32::try_from(x & 0xffff_ffff).unwrap();
    let expected = [
        0xcbf4_3926,
        sorted,
        word(quotient),
        word(quotient >> 32),
        word(remainder),
        1_414_213_562,
        841_470_985,
        hash,
        7,
        3,
        600,
        6,
    ];
    for tools in installed() {
        let Some(options) = picolibc(tools) else { return };
        for level in ["-O0", "-O1", "-O2", "-O3", "-Os"] {
            let script = script();
            let mut all = vec![more.to_str().unwrap(), &*script, level];
            all.extend(options.iter().map(String::as_str));
            let found = output(&source.compile(tools, &format!("program{level}"), &all), &[]);
            assert_eq!(found[..12], expected, "{tools:?} {level}");
        }
    }
}

/// Stores to constants trap.
#[test]
fn constants_are_not_writable() {
    let source = Source::new(
        "constants",
        "#include \"hekaton.h\"\nconst u32 table[4] = {1, 2, 3, 4};\n\
         int main(void) { volatile u32 *t = (volatile u32 *)table; t[PUBLIC_INPUT[0] & 3] = 9; OUTPUT[0] = t[1];\n\
         return 0; }\n",
    );
    for tools in installed() {
        let program = program(&source.compile(tools, "program", &[&script()]));
        match run(&program, &Input { public: vec![1], private: Vec::new() }, MAX_CYCLES) {
            Err(RunError::Trap(trap)) => {
                let is_it = matches!(trap.reason, TrapReason::ReadOnly { .. });
                assert!(is_it, "{tools:?}: {trap}");
            }
            other => panic!("{tools:?}: {other:?}"),
        }
    }
}

/// A compiler's trap is not called an unknown instruction.
#[test]
fn a_trap_of_the_compiler_says_that_the_program_stopped() {
    let source = Source::new(
        "trap",
        "#include \"hekaton.h\"\nint main(void) { if (PUBLIC_INPUT[0] == 1) __builtin_trap(); return 0; }\n",
    );
    for tools in installed() {
        let program = program(&source.compile(tools, "program", &[&script()]));
        let found =
            |word: u32| run(&program, &Input { public: vec![word], private: Vec::new() }, 100);
        assert_eq!(found(0).unwrap().exit_code(), 0, "{tools:?}");
        let text = found(1).unwrap_err().to_string();
        assert!(text.contains("the program stopped with"), "{tools:?}: {text}");
    }
}

/// With the link script, the digest is that of what is executed: symbols, what debuggers want, and section headers are not
/// part of it, nor is a build's id.
#[test]
fn what_is_for_debuggers_does_not_change_the_digest() {
    let source = Source::guest("json");
    for tools in installed() {
        let script = script();
        let with =
            |name: &str, more: &[&str]| source.compile(tools, name, &[&[&*script], more].concat());
        let plain = with("plain", &[]);
        let expected = program(&plain).digest();
        let debug = with("debug", &["-g"]);
        let id = with("id", &["-g", "-Wl,--build-id"]);
        assert_ne!(std::fs::read(&plain).unwrap(), std::fs::read(&debug).unwrap());
        let mut same = vec![debug.clone(), id, with("linked-stripped", &["-g", "-s"])];
        let mut stripped = |from: &Path, name: &str, program: &str, options: &[&str]| {
            let to = source.folder.join(format!("{name}-{tools:?}"));
            let output = tools.tool(program).args(options).arg(from).arg(&to).output();
            match output {
                Ok(output) => {
                    let error = String::from_utf8_lossy(&output.stderr);
                    assert!(output.status.success(), "{tools:?} {program}: {error}");
                    same.push(to);
                }
                Err(e) => println!("SKIPPED: {program} of {tools:?}: {e}"),
            }
        };
        stripped(&debug, "stripped", "objcopy", &["--strip-all"]);
        stripped(&debug, "no-debug", "objcopy", &["--strip-debug"]);
        // No section headers: their place, size and number in the header of the file.
        let mut bytes = std::fs::read(&debug).unwrap();
        bytes[32..36].fill(0);
        bytes[46..52].fill(0);
        let bare = source.folder.join(format!("bare-{tools:?}"));
        std::fs::write(&bare, bytes).unwrap();
        same.push(bare);
        for path in &same {
            assert_eq!(program(path).digest(), expected, "{}", path.display());
        }
        // Another program has another one.
        let other = program(&with("other", &["-DSTACK_END=0x18000"]));
        assert_ne!(other.digest(), expected, "{tools:?}");
    }
}
