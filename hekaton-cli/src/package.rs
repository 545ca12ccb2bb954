//! `hekaton new`: a package with a circuit of one's own, and what new projects have in common.

use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use hekaton_app::App;
use hekaton_app::product::Product;
use hekaton_files::NewDirectory;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::{output, shell};
use serde_json::json;
use std::path::{Path, PathBuf};

/// `Cargo.toml`, for a name and the path of a checkout as a string of TOML.
const MANIFEST: &str = r#"[package]
name = "NAME"
version = "0.1.0"
edition = "2024"

[features]
# Proving on many ranks: cargo build --release --features mpi
mpi = ["hekaton-app/mpi"]
# Proving with NVIDIA GPUs: cargo build --release --features gpu
gpu = ["hekaton-app/gpu"]

[dependencies]
# Nothing is published yet: paths to a checkout.
hekaton-app = { path = PATH/hekaton-app" }
hekaton-circuit = { path = PATH/hekaton-circuit" }
serde = { version = "1", features = ["derive"] }

[profile.release]
debug = "line-tables-only"

[workspace]
"#;

/// `src/main.rs`, which is also compiled and tested as a program of the examples.
const MAIN: &str = include_str!("../templates/package/main.rs");

#[derive(Debug, Subcommand)]
enum Commands {
    /// Make a package with a small circuit, its program and its tests, as the start of your own
    #[command(display_order = 0)]
    New(New),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton new powers
  cd powers
  cargo test --release
  cargo run --release -- check input
  cargo run --release -- setup --keys powers.keys
  cargo run --release -- prove input --keys powers.keys --proof proof

docs/guide/library.md explains how to write circuits.")]
struct New {
    /// The directory to make; its last part is the name of the package
    path: PathBuf,
    /// The checkout of Hekaton that the package is compiled with [default: the one that this program is in, or else the
    /// current directory]
    #[arg(long, value_name = "DIR")]
    hekaton: Option<PathBuf>,
}

/// The command that makes a package with a circuit.
#[derive(Clone, Copy, Debug)]
pub struct NewPackage;

impl Product for NewPackage {
    fn commands(&self, program: clap::Command) -> clap::Command {
        Commands::augment_subcommands(program)
    }

    fn run(&self, _: &App, matches: &ArgMatches, json: bool) -> Option<Result<(), Failure>> {
        let Commands::New(command) = Commands::from_arg_matches(matches).ok()?;
        Some(new(&command, json))
    }
}

fn new(command: &New, json: bool) -> Result<(), Failure> {
    let name = package_name(&command.path, &["serde"])?;
    let checkout = checkout(command.hekaton.as_deref())?;
    // A string of TOML without its last quote.
    let path = json!(checkout).to_string();
    let manifest = MANIFEST.replace("NAME", name).replace("PATH", &path[..path.len() - 1]);
    let main = MAIN.replace("App::new(\"powers\")", &format!("App::new({})", json!(name)));
    let lock = checkout.join("Cargo.lock");
    // The versions that the checkout is tested with; cargo removes what the package does not need.
    let versions = std::fs::read(&lock)
        .map_err(|e| format!("{}: {e}", lock.display()))
        .or_fail(exit::BAD_FILE)?;
    let files: [(&str, &[u8]); 5] = [
        ("Cargo.toml", manifest.as_bytes()),
        ("Cargo.lock", &versions),
        ("src/main.rs", main.as_bytes()),
        ("input", b"3\n"),
        (".gitignore", b"/target\n/*.keys\n/*.proof\n"),
    ];
    write_project(&command.path, &files)?;
    let lines = format!(
        "{name}: a package with the crates of {}; try `cd {} && cargo test --release && cargo run --release -- --help`",
        checkout.display(),
        shell::path(&command.path)
    );
    let object = json!({ "ok": true, "package": command.path, "hekaton": checkout });
    output::result(json, &object, &lines)
}

/// The checkout in this directory, or else the one that this program or the current directory is in.
fn checkout(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let is_one = |path: &Path| path.join("hekaton-app/Cargo.toml").is_file();
    let found = match given {
        Some(path) if is_one(path) => std::path::absolute(path).or_fail(exit::FAILED)?,
        Some(path) => {
            let why = format!("--hekaton {}: not a checkout of Hekaton", path.display());
            return Err(Failure::new(exit::USAGE, why));
        }
        None => {
            let of = |path: PathBuf| path.ancestors().find(|path| is_one(path)).map(Path::to_owned);
            let found = match of(std::env::current_exe().or_fail(exit::FAILED)?) {
                // Programs built with CARGO_TARGET_DIR, or installed, are elsewhere.
                None => of(std::env::current_dir().or_fail(exit::FAILED)?),
                found => found,
            };
            found.ok_or_else(|| {
                let why = "neither this program nor the current directory is in a checkout of Hekaton, whose \
                           crates the package needs: pass --hekaton DIR";
                Failure::new(exit::USAGE, why)
            })?
        }
    };
    match found.to_str() {
        Some(_) => Ok(found),
        None => {
            let why = format!("{}: cargo needs a path that is text", found.display());
            Err(Failure::new(exit::USAGE, why))
        }
    }
}

/// The name of the package in a directory that is to be made: lower-case letters, digits, `-` and `_`, neither one of cargo's folders,
/// nor one of the crates in `taken`, nor one of Hekaton's.
///
/// # Errors
/// Fails if the name is another, or if the directory exists.
pub fn package_name<'a>(path: &'a Path, taken: &[&str]) -> Result<&'a str, Failure> {
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
    let folders = ["build", "deps", "examples", "incremental", "test"];
    // Cargo refuses two packages with one name and version.
    let is_ours = name.starts_with("hekaton-");
    if is_ours || folders.contains(&name) || taken.contains(&name) {
        let why = "cargo uses this name for a folder or a crate of the project: choose another";
        return Err(Failure::new(exit::USAGE, format!("{}: {why}", path.display())));
    }
    if path.exists() {
        return Err(Failure::new(exit::USAGE, format!("{} exists already", path.display())));
    }
    Ok(name)
}

/// Writes the files of a project, which is visible once it is complete: half of one would be in the way of the next attempt.
///
/// # Errors
/// Fails if a file cannot be written, or if the directory exists by then.
pub fn write_project(path: &Path, files: &[(&str, &[u8])]) -> Result<(), Failure> {
    let failed = |e: std::io::Error| Failure::new(exit::FAILED, format!("{}: {e}", path.display()));
    let project = NewDirectory::beside(path).map_err(failed)?;
    for (file, bytes) in files {
        let file = project.path().join(file);
        let folder = file.parent().expect("a file in the project");
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, bytes))
            .map_err(failed)?;
    }
    project.publish().map_err(failed).map(drop)
}
