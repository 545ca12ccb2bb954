//! New projects.

use crate::build::TARGET;
use hekaton_cli::{package_name, write_project};
use hekaton_terminal::exit::Failure;
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
    let name = package_name(path, &[])?;
    let manifest = MANIFEST.replace("NAME", name);
    // For editors, which call cargo without `hekaton`.
    let target = format!("[build]\ntarget = \"{TARGET}\"\n");
    let ignored = "/target\n/*.proof\n/*.keys\n";
    let runtime = RUNTIME.map(|(file, text)| (format!("hekaton-guest/{file}"), text));
    let mut files: Vec<(&str, &[u8])> = vec![
        ("Cargo.toml", manifest.as_bytes()),
        ("src/main.rs", MAIN.as_bytes()),
        ("input", &INPUT),
        (".cargo/config.toml", target.as_bytes()),
        (".gitignore", ignored.as_bytes()),
    ];
    files.extend(runtime.iter().map(|(file, text)| (file.as_str(), text.as_bytes())));
    write_project(path, &files)?;
    let lines =
        format!("{name}: try `cd {} && cargo hekaton run --input input`", shell::path(path));
    output::result(false, &serde_json::Value::Null, &lines)
}
