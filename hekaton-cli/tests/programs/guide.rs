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
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_hekaton"), bin.join("hekaton")).unwrap();
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

/// Keys for short runs in place of those that the guide makes, which take minutes.
fn with_small_keys(commands: &str) -> String {
    let small = "hekaton vm setup --rows 2^12 --subcircuits 256 ";
    commands.replace("hekaton vm setup --keys", &format!("{small}--keys"))
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

/// `vm cc` with either compiler, with several files, options, and the C library where it is installed; what goes wrong is
/// named, and what is there already stays.
#[test]
fn programs_are_compiled() {
    let checkout = Checkout::new();
    let tests = "circuits/vm/tests/programs";
    let has_gcc = Command::new("riscv64-unknown-elf-gcc").arg("--version").output().is_ok();
    // GCC may be missing, as for the tests of toolchains.
    for compiler in ["clang", "gcc"].into_iter().take(1 + usize::from(has_gcc)) {
        let small = format!(
            "echo '#include \"hekaton.h\"\nint main(void) {{ OUTPUT[0] = VALUE; return 0; }}' > small.c
             hekaton vm cc small.c -o small --compiler {compiler} -- -O3 -DVALUE=7 && hekaton vm run small"
        );
        assert!(checkout.run(&small).contains("output 0x7"), "{compiler}");
        let library = format!(
            "if [ ! -e /usr/lib/picolibc/riscv64-unknown-elf ]; then echo 'SKIPPED: picolibc'; exit 0; fi
             hekaton vm cc {tests}/library.c {tests}/more.c -o library --compiler {compiler} && hekaton vm run library"
        );
        let said = checkout.run(&library);
        // The digest of the program is printed, and that of its run is the same.
        assert!(said.contains("SKIPPED") || said.contains("output 0xcbf43926"), "{said}");
    }
    let wrong = checkout.run(
        "set +e; before=$(cksum < small); echo 'int main(void) { return x; }' > wrong.c
         hekaton vm cc wrong.c -o small 2>&1; echo code $?; [ \"$before\" = \"$(cksum < small)\" ] && echo kept
         hekaton vm cc small.c -o small.c 2>&1; echo code $?
         hekaton vm cc missing.c -o other 2>&1; echo code $?; ls other 2>&1
         hekaton vm cc small.c -o other -- -DVALUE=7 -c 2>&1; echo code $?; ls other 2>&1
         PATH=$PWD/bin hekaton vm cc small.c -o other 2>&1; echo code $?",
    );
    for part in [
        "undeclared identifier 'x'",
        "could not compile the program",
        "kept",
        "that is the input, which would be lost",
        "missing.c",
        "no compiler for the machine is installed: `sudo apt-get install clang lld`",
    ] {
        assert!(wrong.contains(part), "{part}: {wrong}");
    }
    assert!(!wrong.contains("code 0"), "{wrong}");
    assert!(!checkout.0.path().join("other").exists(), "{wrong}");
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
