//! Compiles programs in C for the machine.

use crate::options::Compiler;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_vm::guests::{HEADER, LINK_SCRIPT, START};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Debian's picolibc for RISC-V.
const PICOLIBC: &str = "/usr/lib/picolibc/riscv64-unknown-elf";
const GCC: &str = "riscv64-unknown-elf-gcc";
const MACHINE: [&str; 2] = ["-march=rv32im", "-mabi=ilp32"];

impl Compiler {
    /// The compiler that is installed; clang if both are.
    pub(crate) fn installed() -> Result<Self, Failure> {
        let found = [Self::Clang, Self::Gcc].into_iter().find(|compiler| compiler.is_installed());
        let why = "no compiler for the machine is installed: `sudo apt-get install clang lld` or \
                   `sudo apt-get install gcc-riscv64-unknown-elf`";
        found.ok_or_else(|| Failure::new(exit::FAILED, why))
    }

    fn is_installed(self) -> bool {
        match self {
            Self::Clang => answers("clang") && answers("ld.lld"),
            Self::Gcc => answers(GCC),
        }
    }

    fn command(self) -> Command {
        match self {
            Self::Clang => {
                let mut command = Command::new("clang");
                command.args(["--target=riscv32", "-mno-relax", "-fuse-ld=lld"]);
                command
            }
            Self::Gcc => Command::new(GCC),
        }
    }
}

fn answers(program: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// The functions that compilers call for what the machine has no instructions for, such as division of 64 bits: the library
/// of GCC, for either compiler.
fn libgcc() -> Option<OsString> {
    let output = Command::new(GCC).args(MACHINE).arg("-print-libgcc-file-name").output().ok()?;
    let path = String::from_utf8(output.stdout).ok()?;
    let path = Path::new(path.trim_end());
    path.is_file().then(|| path.as_os_str().to_owned())
}

/// Compiles files to a program, whose bytes it returns. `options` come last, so they override those here.
pub(crate) fn compile(
    compiler: Compiler,
    files: &[PathBuf],
    options: &[OsString],
) -> Result<Vec<u8>, Failure> {
    let folder = tempfile::tempdir().or_fail(exit::FAILED)?;
    let at = |name: &str| folder.path().join(name);
    for (name, text) in [("start.S", START), ("guest.ld", LINK_SCRIPT), ("hekaton.h", HEADER)] {
        std::fs::write(at(name), text).or_fail(exit::FAILED)?;
    }
    let has_library = Path::new(PICOLIBC).is_dir();
    let libgcc = libgcc();
    let mut command = compiler.command();
    command.args(MACHINE).args(["-O2", "-nostdlib", "-static"]);
    // With a library, compilers may use what they know about its functions.
    if has_library {
        command.arg("-isystem").arg(format!("{PICOLIBC}/include"));
        command.arg(format!("-L{PICOLIBC}/lib/release/rv32im/ilp32"));
    } else {
        command.arg("-ffreestanding");
    }
    command.arg("-I").arg(folder.path()).arg("-T").arg(at("guest.ld"));
    command.arg(at("start.S")).args(files).args(options).arg("-Wl,--start-group");
    if has_library {
        command.args(["-lc", "-lm"]);
    }
    command.args(&libgcc).arg("-Wl,--end-group").arg("-o").arg(at("program"));
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command.status().map_err(|e| format!("{name}: {e}")).or_fail(exit::FAILED)?;
    if !status.success() {
        // What the compiler has to say is on standard error already.
        let mut why = format!("{name} could not compile the program");
        if !has_library || libgcc.is_none() {
            why += "; division of 64 bits, floating point and the C library need `sudo apt-get install \
                    gcc-riscv64-unknown-elf picolibc-riscv64-unknown-elf`";
        }
        return Err(Failure::new(exit::FAILED, why));
    }
    std::fs::read(at("program")).or_fail(exit::FAILED)
}
