//! New projects.

use crate::build::TARGET;
use hekaton_files::NewDirectory;
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::{output, shell};
use hekaton_vm::guests::RUNTIME;
use std::path::Path;

/// `Cargo.toml`, for a name.
const MANIFEST: &str = r#"[package]
name = "NAME"
version = "0.1.0"
edition = "2024"

[dependencies]
hekaton-guest = { path = "hekaton-guest" }

[profile.release]
opt-level = 3
lto = true
codegen-units = 1
panic = "abort"
# Traps and profiles name lines. A program's digest does not cover this.
debug = "line-tables-only"

[workspace]
"#;

/// `src/main.rs`.
const MAIN: &str = r#"//! The sum of private numbers.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::vec::Vec;
use hekaton_guest::{commit, println, read};

#[hekaton_guest::main]
fn main() {
    let numbers: Vec<u32> = read();
    println!("{} numbers", numbers.len());
    commit(&numbers.iter().map(|number| u64::from(*number)).sum::<u64>());
}
"#;

/// `input`: the list 1, 2, 3 in the encoding of postcard.
const INPUT: [u8; 4] = [3, 1, 2, 3];

/// Makes a project.
pub(crate) fn new(path: &Path) -> Result<(), Failure> {
    let name = path.file_name().and_then(|name| name.to_str());
    let is_valid = |name: &&str| {
        name.starts_with(|c: char| c.is_ascii_lowercase())
            && name
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c))
    };
    let Some(name) = name.filter(is_valid) else {
        let why = "expected a name of lower-case letters, digits, - and _ for the package";
        return Err(Failure::new(exit::USAGE, format!("{}: {why}", path.display())));
    };
    // Names of the crates in the project, and of folders of cargo's.
    let taken =
        ["hekaton-guest", "hekaton-guest-macros", "build", "deps", "examples", "incremental"];
    if taken.contains(&name) {
        let why = "cargo uses this name for a folder or a crate of the project: choose another";
        return Err(Failure::new(exit::USAGE, format!("{}: {why}", path.display())));
    }
    if path.exists() {
        return Err(Failure::new(exit::USAGE, format!("{} exists already", path.display())));
    }
    let manifest = MANIFEST.replace("NAME", name);
    // For editors, which call cargo without `hekaton`.
    let target = format!("[build]\ntarget = \"{TARGET}\"\n");
    let ignored = "/target\n/*.proof\n/*.keys\n";
    // Visible once it is complete: half of a project would be in the way of the next attempt.
    let failed = |e: std::io::Error| Failure::new(exit::FAILED, format!("{}: {e}", path.display()));
    let project = NewDirectory::beside(path).map_err(failed)?;
    let write = |file: &str, bytes: &[u8]| {
        let file = project.path().join(file);
        let folder = file.parent().expect("a file in the project");
        std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&file, bytes)).map_err(failed)
    };
    write("Cargo.toml", manifest.as_bytes())?;
    write("src/main.rs", MAIN.as_bytes())?;
    write("input", &INPUT)?;
    write(".cargo/config.toml", target.as_bytes())?;
    write(".gitignore", ignored.as_bytes())?;
    for (file, text) in RUNTIME {
        write(&format!("hekaton-guest/{file}"), text.as_bytes())?;
    }
    project.publish().map_err(failed)?;
    let lines =
        format!("{name}: try `cd {} && cargo hekaton run --input input`", shell::path(path));
    output::result(false, &serde_json::Value::Null, &lines)
}
