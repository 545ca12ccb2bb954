//! `cargo hekaton`: Rust programs for the machine, compiled by cargo, run and proven by `hekaton vm`.

mod build;
mod patch;
mod project;

use clap::{Args, Parser, Subcommand};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::{installation, output};
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Debug, Parser)]
#[command(
    name = "cargo hekaton",
    bin_name = "cargo hekaton",
    version,
    about = "Compile, run and prove Rust programs with Hekaton",
    after_help = "Examples:
  cargo hekaton new sum && cd sum
  cargo hekaton run --input input                     # without a proof
  hekaton vm setup --keys vm.keys                     # once, for all programs
  cargo hekaton prove --input input --keys vm.keys    # sum.proof
  cargo hekaton verify sum.proof --keys vm.keys
  cargo hekaton patch k256                            # signatures for a tenth of the constraints

Needs the target: rustup target add riscv32im-unknown-none-elf
docs/guide/programs.md explains how to write programs."
)]
struct Line {
    #[command(subcommand)]
    command: Subcommands,
}

#[derive(Debug, Subcommand)]
enum Subcommands {
    /// Make a project, with the crate hekaton-guest in a folder of its own
    New {
        /// The folder, whose name is that of the package
        path: PathBuf,
    },
    /// Make crates use the machine's functions: copies them to patched/, patches the copies, and points Cargo.toml at them
    Patch(Patch),
    /// Compile a program, and print where it is
    Build(Program),
    /// Compile a program, and run it without proving: `hekaton vm run`
    Run(Passed),
    /// Compile a program, and prove a run: `hekaton vm prove`, which writes NAME.proof
    Prove(Passed),
    /// Compile a program, and verify a proof: `hekaton vm verify`
    Verify(Verify),
}

/// A program of the package in this folder.
#[derive(Debug, Args)]
pub(crate) struct Program {
    /// The program, if the package has several
    #[arg(long, value_name = "NAME")]
    pub(crate) bin: Option<String>,
    /// Features of the package, separated by commas
    #[arg(long, value_name = "NAMES")]
    pub(crate) features: Option<String>,
    /// Use Cargo.lock as it is, and fail if it must change
    #[arg(long)]
    pub(crate) locked: bool,
}

#[derive(Debug, Args)]
struct Patch {
    /// The crates: curve25519-dalek 4.1.3, k256 0.13.4, sha2 0.10.9; those of them that the package depends on, if none is given
    #[arg(value_name = "CRATE")]
    crates: Vec<String>,
}

#[derive(Debug, Args)]
struct Passed {
    #[command(flatten)]
    program: Program,
    /// Options of the `hekaton vm` command, after those of this one: see `hekaton vm run --help` and
    /// `hekaton vm prove --help`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "VM_OPTIONS")]
    options: Vec<OsString>,
}

#[derive(Debug, Args)]
struct Verify {
    #[command(flatten)]
    program: Program,
    /// The proof
    proof: PathBuf,
    /// Options of `hekaton vm verify`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "VM_OPTIONS")]
    options: Vec<OsString>,
}

fn main() -> ExitCode {
    // cargo passes the name of the subcommand first.
    let arguments = std::env::args_os().enumerate();
    let own =
        arguments.filter(|(at, it)| *at != 1 || it != "hekaton").map(|(_, argument)| argument);
    let line = match Line::try_parse_from(own) {
        Ok(line) => line,
        Err(e) => return output::command_line_error(&e),
    };
    output::exit_code(run(&line.command), false)
}

fn run(command: &Subcommands) -> Result<(), Failure> {
    match command {
        Subcommands::New { path } => project::new(path),
        Subcommands::Patch(Patch { crates }) => patch::patch(crates),
        Subcommands::Build(program) => {
            let path = build::build(program)?.path;
            let lines = path.display().to_string();
            output::result(false, &serde_json::Value::Null, &lines)
        }
        Subcommands::Run(Passed { program, options }) => {
            check_order(options)?;
            vm("run", [build::build(program)?.path.as_os_str()], options)
        }
        Subcommands::Prove(Passed { program, options }) => {
            check_order(options)?;
            let build::Built { name, path } = build::build(program)?;
            // Beside the package, not deep in its target folder.
            let proof = OsString::from(format!("{name}.proof"));
            let is_given = options.iter().any(|it| names(it, "--proof") || names(it, "--run"));
            let more = [OsStr::new("--proof"), &proof];
            let arguments = std::iter::once(path.as_os_str());
            vm("prove", arguments.chain(more.into_iter().filter(|_| !is_given)), options)
        }
        Subcommands::Verify(Verify { program, proof, options }) => {
            check_order(options)?;
            let path = build::build(program)?.path;
            vm("verify", [proof.as_os_str(), OsStr::new("--program"), path.as_os_str()], options)
        }
    }
}

/// Reports whether an argument is an option, with its value or without.
fn names(argument: &OsStr, option: &str) -> bool {
    let rest = argument.to_str().and_then(|text| text.strip_prefix(option));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
}

/// Refuses options of this command among those of `hekaton vm`, which would not know them.
fn check_order(options: &[OsString]) -> Result<(), Failure> {
    let own = ["--bin", "--features", "--locked"];
    match own.iter().find(|own| options.iter().any(|option| names(option, own))) {
        Some(own) => {
            let why = format!("{own} must come before the options of `hekaton vm`");
            Err(Failure::new(exit::USAGE, why))
        }
        None => Ok(()),
    }
}

/// Replaces this process by `hekaton vm`.
fn vm<'a>(
    command: &str,
    arguments: impl IntoIterator<Item = &'a OsStr>,
    options: &[OsString],
) -> Result<(), Failure> {
    let hekaton = installation::find("hekaton", "hekaton-cli", "`cargo hekaton` needs")?;
    let mut call = Command::new(&hekaton);
    let error = call.args(["vm", command]).args(arguments).args(options).exec();
    Err(failed(&hekaton, &error))
}

/// The failure of a program that cannot be started.
fn failed(program: &Path, error: &std::io::Error) -> Failure {
    Failure::new(exit::FAILED, format!("cannot run {}: {error}", program.display()))
}
