//! Compiles a package for the machine.

use crate::{Program, failed};
use hekaton_terminal::exit::{self, Failure, OrFail};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The target of Rust's compiler that the machine is.
pub(crate) const TARGET: &str = "riscv32im-unknown-none-elf";

/// A program that was compiled.
pub(crate) struct Built {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// Compiles a program of the package in this folder.
pub(crate) fn build(program: &Program) -> Result<Built, Failure> {
    check_target()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut call = Command::new(&cargo);
    call.args(["build", "--release", "--target", TARGET, "--message-format"]);
    call.args(["json-render-diagnostics", "--config", &flags()?]);
    call.args(program.locked.then_some("--locked"));
    for (option, value) in [("--bin", &program.bin), ("--features", &program.features)] {
        call.args(value.iter().flat_map(|value| [option, value]));
    }
    // Flags of this shell are for the host's programs, and would replace those for the machine.
    call.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    let found =
        call.stderr(Stdio::inherit()).output().map_err(|e| failed(Path::new(&cargo), &e))?;
    if !found.status.success() {
        // cargo has already reported the errors.
        return Err(Failure::new(exit::FAILED, "cargo could not compile the program"));
    }
    let mut programs = Vec::new();
    for line in found.stdout.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{")) {
        let message: Value = serde_json::from_slice(line).or_fail(exit::FAILED)?;
        if let (Some(path), Some(name)) =
            (message["executable"].as_str(), message["target"]["name"].as_str())
        {
            programs.push(Built { name: name.to_owned(), path: path.into() });
        }
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<&str> = programs.iter().map(|it| it.name.as_str()).collect();
    let why = match programs.len() {
        0 => "this package has no program: a program has a file src/main.rs".to_owned(),
        1 => return Ok(programs.remove(0)),
        _ => format!("this package has several programs: --bin {}", names.join(" or --bin ")),
    };
    Err(Failure::new(exit::USAGE, why))
}

/// The flags of the compiler: where segments, stack and heap are, and names of files in panics that do not depend on the folders of
/// this machine.
fn flags() -> Result<String, Failure> {
    let mut flags = vec!["-Clink-arg=-Tguest.ld".to_owned()];
    let here = std::env::current_dir().or_fail(exit::FAILED)?;
    let home = std::env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")));
    let folders = home.map(|home| (home, "cargo")).into_iter().chain([(here, ".")]);
    flags.extend(
        folders.map(|(folder, name)| format!("--remap-path-prefix={}={name}", folder.display())),
    );
    Ok(format!("target.{TARGET}.rustflags={}", serde_json::json!(flags)))
}

/// Refuses a compiler without the target before cargo does: its error would name the core library.
fn check_target() -> Result<(), Failure> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let found =
        Command::new(&rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    let found = found.map_err(|e| failed(Path::new(&rustc), &e))?;
    if !found.status.success() {
        let why = String::from_utf8_lossy(&found.stderr);
        let rustc = Path::new(&rustc).display();
        return Err(Failure::new(exit::FAILED, format!("{rustc} failed: {}", why.trim_end())));
    }
    let folder = String::from_utf8_lossy(&found.stdout);
    match Path::new(folder.trim_end()).is_dir() {
        true => Ok(()),
        false => {
            let why = format!(
                "Rust's compiler lacks the target of the machine: `rustup target add {TARGET}`"
            );
            Err(Failure::new(exit::FAILED, why))
        }
    }
}
