//! Compiles C programs for the machine.

use super::options::Compiler;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_vm::guests::{HEADER, LIBRARY, LINK_SCRIPT, START};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's picolibc for RISC-V.
const PICOLIBC: &str = "/usr/lib/picolibc/riscv64-unknown-elf";
const GCC: &str = "riscv64-unknown-elf-gcc";
const MACHINE: [&str; 2] = ["-march=rv32im", "-mabi=ilp32"];

impl Compiler {
    /// This compiler if it is given, else the one that is installed; clang if both are.
    pub(crate) fn found(given: Option<Self>) -> Result<Self, Failure> {
        let wanted = given.map_or_else(|| vec![Self::Clang, Self::Gcc], |given| vec![given]);
        let ways: Vec<&str> = wanted.iter().map(|compiler| compiler.install()).collect();
        let found = wanted.iter().find(|compiler| compiler.is_installed());
        let why = format!("no compiler for the machine is installed: {}", ways.join(" or "));
        found.copied().ok_or_else(|| Failure::new(exit::FAILED, why))
    }

    fn is_installed(self) -> bool {
        match self {
            Self::Clang => answers("clang") && answers("ld.lld"),
            Self::Gcc => answers(GCC),
        }
    }

    /// The command that installs it on Debian.
    fn install(self) -> &'static str {
        match self {
            Self::Clang => "`sudo apt-get install clang lld`",
            Self::Gcc => "`sudo apt-get install gcc-riscv64-unknown-elf`",
        }
    }

    fn command(self) -> Command {
        match self {
            Self::Clang => {
                let mut command = Command::new("clang");
                command.args(["--target=riscv32", "-mno-relax", "-fuse-ld=lld"]);
                command
            }
            Self::Gcc => {
                let mut command = Command::new(GCC);
                // A program's own memset would become a call of itself.
                command.arg("-fno-tree-loop-distribute-patterns");
                command
            }
        }
    }
}

fn answers(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The functions that compilers call for what the machine has no instructions for, such as 64-bit division: the library
/// of GCC, for either compiler.
fn libgcc() -> Option<OsString> {
    let output = Command::new(GCC).args(MACHINE).arg("-print-libgcc-file-name").output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(path.trim_end());
    path.is_file().then(|| path.as_os_str().to_owned())
}

/// Reports whether a source file seems to write to standard output.
fn prints(file: &Path) -> bool {
    // A file that cannot be read as text is not C; the compiler has already reported one that is missing.
    let Ok(text) = std::fs::read_to_string(file) else { return false };
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
        .any(|word| ["printf", "fprintf", "puts", "putchar"].contains(&word))
}

/// Compiles files to a program, whose bytes it returns. `options` follow the ones given here and override them.
pub(crate) fn compile(
    compiler: Compiler,
    files: &[PathBuf],
    options: &[OsString],
) -> Result<Vec<u8>, Failure> {
    let folder = tempfile::tempdir().or_fail(exit::FAILED)?;
    let at = |name: &str| folder.path().join(name);
    let own = [START, LIBRARY, LINK_SCRIPT, HEADER];
    for (name, text) in ["start.S", "library.S", "guest.ld", "hekaton.h"].into_iter().zip(own) {
        std::fs::write(at(name), text).or_fail(exit::FAILED)?;
    }
    let has_library = Path::new(PICOLIBC).is_dir();
    let libgcc = libgcc();
    let mut command = compiler.command();
    command.args(MACHINE).args(["-O2", "-nostdlib", "-static", "-I"]).arg(folder.path());
    command.arg("-T").arg(at("guest.ld")).arg(at("start.S"));
    // With a library, compilers may use what they know about its functions.
    if has_library {
        command.arg(at("library.S")).arg("-isystem").arg(format!("{PICOLIBC}/include"));
        command.arg(format!("-L{PICOLIBC}/lib/release/rv32im/ilp32"));
    } else {
        command.arg("-ffreestanding");
    }
    command.args(options).args(files).arg("-Wl,--start-group");
    if has_library {
        command.args(["-lc", "-lm"]);
    }
    command.args(&libgcc).arg("-Wl,--end-group").arg("-o").arg(at("program"));
    // Standard output is for the result.
    command.stdout(std::io::stderr());
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("{name}: {e}")).or_fail(exit::FAILED)?;
    if !status.success() {
        // The compiler has already reported the errors.
        let mut why = format!("{name} could not compile the program");
        if !has_library || libgcc.is_none() {
            why += "; if it lacks the headers or functions of a C library, or functions such as __udivdi3: `sudo apt-get \
                    install gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf`";
        }
        if files.iter().any(|file| prints(file)) {
            why += "; the machine has no standard output: hekaton_print(text, length) of hekaton.h shows text";
        }
        return Err(Failure::new(exit::FAILED, why));
    }
    std::fs::read(at("program")).map_err(|e| {
        let why = "does one of the options stop it before linking?";
        Failure::new(exit::FAILED, format!("{name} wrote no program ({e}); {why}"))
    })
}
