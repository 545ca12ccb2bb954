//! The commands of `docs/guide/programs.md`, as printed, from a folder like the repository's root.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The blocks of code with this word behind their fence.
fn blocks<'a>(text: &'a str, kind: &str) -> Vec<&'a str> {
    let fence = format!("```{kind}\n");
    let behind = text.split(&*fence).skip(1);
    behind.map(|rest| rest.split("```").next().unwrap()).collect()
}

/// A folder with the repository's `circuits`, where `hekaton` is this program.
struct Checkout(tempfile::TempDir);

impl Checkout {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(root().join("circuits"), folder.path().join("circuits"))
            .unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let programs = [
            ("hekaton", env!("CARGO_BIN_EXE_hekaton")),
            ("cargo-hekaton", env!("CARGO_BIN_EXE_cargo-hekaton")),
        ];
        for (name, program) in programs {
            std::os::unix::fs::symlink(program, bin.join(name)).unwrap();
        }
        Self(folder)
    }

    /// Runs commands; returns what they print.
    #[track_caller]
    fn run(&self, commands: &str) -> String {
        let path = std::env::var("PATH").unwrap();
        let path = format!("{}:{path}", self.0.path().join("bin").display());
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", commands]).current_dir(&self.0).env("PATH", path);
        let output = shell.output().unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{commands}\n{out}\n{err}");
        out.into_owned()
    }
}

/// Keys that are still smaller than those of the guide.
fn with_small_keys(commands: &str) -> String {
    commands.replace("--rows 2^14 --subcircuits 1024", "--rows 2^12 --subcircuits 256")
}

#[test]
fn the_commands_of_the_guide_work() {
    let text = std::fs::read_to_string(root().join("docs/guide/programs.md")).unwrap();
    let (shell, checkout) = (blocks(&text, "sh"), Checkout::new());
    let first = with_small_keys(shell[0]);
    assert!(first.contains("--rows 2^12"), "{first}");
    let said = checkout.run(&first);
    for part in ["result       exit code 0", "the proof holds", "proof of a program's run"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    // The program for TinyRAM, and what the guide does with it.
    let program = blocks(&text, "text").into_iter().find(|block| block.starts_with("; TinyRAM"));
    std::fs::write(checkout.0.path().join("sum.tinyram"), program.unwrap()).unwrap();
    let tiny = shell.iter().find(|block| block.contains("--isa tinyram")).unwrap();
    let said = checkout.run(tiny);
    assert!(said.contains("the proof holds") && said.contains("output 0x2a"), "{said}");
}

/// The compiler command in the help works as printed.
#[test]
fn the_command_of_the_help_works() {
    let help = crate::common::ok(&["vm", "--help"]);
    let examples = help.split("Examples:").nth(1).unwrap();
    let compile = examples.lines().find(|line| line.contains("vm cc")).unwrap();
    let checkout = Checkout::new();
    checkout.run("cp circuits/vm/guests/json.c program.c");
    let said = checkout.run(compile);
    assert!(said.contains("program for rv32im") && said.contains("digest"), "{said}");
    let said = checkout.run("printf '[]' > list && hekaton vm run program --input list");
    assert!(said.contains("exit code 0"), "{said}");
}

/// The commands for Rust, up to a verified proof.
#[test]
fn the_commands_for_rust_work() {
    if !crate::rust::has_target() {
        return;
    }
    let text = std::fs::read_to_string(root().join("docs/guide/programs.md")).unwrap();
    let all = blocks(&text, "sh").into_iter().find(|block| block.contains("hekaton new")).unwrap();
    let all = with_small_keys(all).replace("--subcircuits 256", "--subcircuits 512");
    let checkout = Checkout::new();
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide");
    let target = format!("export CARGO_TARGET_DIR={}", target.display());
    // rustup is not run: the target is there, and a test changes no toolchain.
    let said = checkout.run(&format!("{target}\n{}", all.replace("rustup", "true rustup")));
    let sum = "exit code 0, output of 1 byte: 06\n";
    assert!(said.contains(sum) && said.contains("the proof holds"), "{said}");
    // The program in the guide is the one of the project.
    let main = std::fs::read_to_string(checkout.0.path().join("sum/src/main.rs")).unwrap();
    let shown =
        blocks(&text, "rust,ignore").into_iter().find(|it| it.contains("println!")).unwrap();
    assert!(main.ends_with(shown), "{main}");
}

/// Flame graphs, and tables of functions and loops with their lines.
#[test]
fn runs_are_profiled() {
    let checkout = Checkout::new();
    let said = checkout.run(
        "hekaton vm cc circuits/vm/guests/json.c -o json -- -g && echo '{\"a\": [1, 2, 3]}' > list
         hekaton vm run json --input list --profile out.svg",
    );
    let all = [
        "  value  ",
        "own   total",
        "iterations  loop",
        " at json.c:",
        " of the work with --rows 2^12",
    ];
    for part in all {
        assert!(said.contains(part), "{part}: {said}");
    }
    let read = |name: &str| std::fs::read_to_string(checkout.0.path().join(name)).unwrap();
    for (name, unit) in [("out.svg", "constraints"), ("out.cycles.svg", "cycles")] {
        let svg = read(name);
        assert!(svg.contains("<svg") && svg.contains("<title>value ("), "{name}");
        assert!(svg.contains(&format!("json: {unit}")), "{name}");
    }
    let said = checkout.run("hekaton vm run json --input list --profile out.svg --json");
    let found: serde_json::Value = serde_json::from_str(&said).unwrap();
    let sum = |kind: &str| -> u64 {
        let all = found["profile"]["functions"].as_array().unwrap();
        all.iter().map(|it| it[kind].as_u64().unwrap()).sum()
    };
    assert_eq!(found["cycles"], sum("cycles"));
    assert_eq!(found["constraints"], sum("constraints"));
    let said = checkout.run(
        "set +e; cp list out.cycles.svg; (hekaton vm run json --input out.cycles.svg --profile out.svg 2>&1; echo code $?)
         (hekaton vm run json --input list --profile z.svg --output z.cycles.svg 2>&1; echo code $?)
         printf '; TinyRAM\nanswer 0\n' > tiny; (hekaton vm run tiny --profile out.svg 2>&1; echo code $?)",
    );
    assert!(said.contains("that is the input") && said.contains("code 3"), "{said}");
    assert!(said.contains("--output and --profile would both write z.cycles.svg"), "{said}");
    assert!(said.contains("programs for TinyRAM have no functions"), "{said}");
}

/// `vm cc` with either compiler, options, several files, and the C library where it is installed.
#[test]
fn programs_are_compiled() {
    let checkout = Checkout::new();
    let write =
        |name: &str, text: &str| std::fs::write(checkout.0.path().join(name), text).unwrap();
    write("small.c", "#include \"hekaton.h\"\nint main(void) { OUTPUT[0] = VALUE; return 0; }\n");
    write(
        "own.c",
        "#include \"hekaton.h\"\nvoid *memset(void *to, int value, __SIZE_TYPE__ n) {\n\
         char *t = to; while (n--) *t++ = value; return to; }\n\
         int main(void) { static char b[9]; memset(b, 65, PUBLIC_INPUT[0]); OUTPUT[0] = b[8]; return 0; }\n",
    );
    write(
        "ends.c",
        "#include <assert.h>\n#include <stdlib.h>\n#include \"hekaton.h\"\nint main(void) {\n\
         u32 x = PUBLIC_INPUT[0]; if (x == 1) exit(5); if (x == 2) abort(); assert(x != 3); return 9; }\n",
    );
    let word = |name: &str, value: u8| write(name, &format!("{}\0\0\0", char::from(value)));
    (0..4).for_each(|value| word(&format!("word{value}"), value));
    word("word9", 9);
    let has_gcc = Command::new("riscv64-unknown-elf-gcc").arg("--version").output().is_ok();
    let has_library = Path::new("/usr/lib/picolibc/riscv64-unknown-elf").exists();
    // GCC and the library may be missing, as for the tests of toolchains.
    for compiler in ["clang", "gcc"].into_iter().take(1 + usize::from(has_gcc)) {
        let cc = format!("hekaton vm cc --compiler {compiler}");
        let said = checkout.run(&format!(
            "{cc} small.c -o small -- -O3 -DVALUE=7 && hekaton vm run small
             {cc} own.c -o own && hekaton vm run own --public-input word9"
        ));
        assert!(said.contains("output 0x7\n") && said.contains("output 0x41\n"), "{said}");
        for level in ["-O0", "-O2"].into_iter().filter(|_| has_library) {
            let tests = "circuits/vm/tests/programs";
            let said = checkout.run(&format!(
                "{cc} {tests}/library.c {tests}/more.c -o library -- {level} && hekaton vm run library"
            ));
            let all = "exit code 0, output 0xcbf43926 0xfd48d066 0x45f5207d 0x60a 0x57a7a 0x544b2fba 0x3227d409 \
                       0x1abc01da 0x7 0x3 0x258 0x6\n";
            assert!(said.contains(all), "{compiler} {level}: {said}");
            let said = checkout.run(&format!(
                "{cc} ends.c -o ends -- {level}
                 for i in 0 1 2 3; do hekaton vm run ends --public-input word$i 2>&1 || true; done"
            ));
            for part in ["exit code 9", "exit code 5", "(abort)", "(__assert_func)"] {
                assert!(said.contains(part), "{compiler} {level} {part}: {said}");
            }
        }
    }
}

/// Errors of `vm cc` are reported, standard output is one object with `--json`, and an existing output file is kept.
#[test]
fn programs_that_cannot_be_compiled_are_reported() {
    let checkout = Checkout::new();
    let run = |commands: &str| checkout.run(&format!("set +e; {commands}"));
    let small = "echo 'int main(void) { return 0; }' > small.c; hekaton vm cc small.c -o small --json 2>/dev/null";
    let printed: serde_json::Value =
        serde_json::from_str(&run(&format!("{small} -- -Wl,--print-map"))).unwrap();
    assert_eq!(printed["isa"], "rv32im", "{printed}");
    let before = std::fs::read(checkout.0.path().join("small")).unwrap();
    for (commands, code, says) in [
        ("echo 'int main(void) { return x; }' > wrong.c; hekaton vm cc wrong.c -o small", 4, "'x'"),
        ("hekaton vm cc wrong.c -o small", 4, "clang could not compile the program"),
        (
            "echo 'int printf(const char *, ...); int main(void) { return printf(\"1\"); }' > prints.c; \
             hekaton vm cc prints.c -o small",
            4,
            "hekaton_print(text, length)",
        ),
        ("hekaton vm cc small.c -o small.c", 3, "that is the input, which would be lost"),
        ("hekaton vm cc missing.c -o small", 4, "missing.c"),
        ("hekaton vm cc small.c -o small -- --version", 4, "clang wrote no program"),
        (
            "hekaton vm cc small.c -o small -- -march=rv32imc",
            3,
            "the compiled program: the instruction set",
        ),
        (
            "printf '#include \"hekaton.h\"\n__attribute__((constructor)) static void f(void) { OUTPUT[0] = 1; }\n\
             int main(void) { return 0; }\n' > first.c; hekaton vm cc first.c -o small",
            4,
            "constructors are not called",
        ),
        (
            "PATH=$PWD/bin hekaton vm cc small.c -o small",
            4,
            "installed: `sudo apt-get install clang lld` or",
        ),
        (
            "PATH=$PWD/bin hekaton vm cc small.c -o small --compiler gcc",
            4,
            "no compiler for the machine is installed: `sudo apt-get install gcc-riscv64-unknown-elf`",
        ),
    ] {
        let said = run(&format!("({commands}) 2>&1; echo code $?"));
        assert!(
            said.ends_with(&format!("code {code}\n")) && said.contains(says),
            "{commands}: {said}"
        );
        assert_eq!(std::fs::read(checkout.0.path().join("small")).unwrap(), before, "{commands}");
    }
}

/// The command that a proof is printed with verifies it, whatever the names of the files.
#[test]
fn the_printed_command_verifies() {
    let [program, keys, public] = crate::paths();
    let checkout = Checkout::new();
    let names = [("sum of $bytes", &program), ("it's public", &public)];
    for (name, from) in names {
        std::fs::copy(from, checkout.0.path().join(name)).unwrap();
    }
    std::os::unix::fs::symlink(&keys, checkout.0.path().join("the keys")).unwrap();
    let prove = "printf '\\001\\002' > private && hekaton vm prove 'sum of $bytes' --keys 'the keys' --input private \
                 --public-input \"it's public\" --proof 'a proof' 2>&1";
    let said = checkout.run(prove);
    let verify = said.split("verify it with\n").nth(1).unwrap_or_else(|| panic!("{said}"));
    let verify = verify.lines().next().unwrap().trim();
    assert!(verify.contains("vm verify 'a proof'"), "{said}");
    let verified = checkout.run(verify);
    assert!(verified.contains("the proof holds"), "{verify}: {verified}");
}
