//! The program `hekaton` as a library: the whole command line for any circuits.
//!
//! ```no_run
//! use hekaton_cli::{Registry, run};
//! use hekaton_standard::{Chain, Merkle};
//!
//! fn main() -> std::process::ExitCode {
//!     run(&Registry::new().with::<Merkle>().with::<Chain>())
//! }
//! ```
//!
//! Exit codes are documented in `hekaton --help`.

mod application;
mod commands;
mod event_files;
mod exit;
mod hints;
mod opened_keys;
mod options;
mod ranks;
mod registry;
mod report;
mod terminal;

pub use registry::Registry;

use clap::Parser;
use commands::{
    check, circuits, doctor, estimate, hash, inspect, keys, manual, prove, setup, verify,
};
use options::{Command, Options};
use std::process::ExitCode;
use terminal::output;

/// Runs the command line of this process with the circuits of a registry. Returns the exit code.
pub fn run(registry: &Registry) -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(e) => {
            // clap reports --help and --version as errors, too
            let code = if e.use_stderr() { exit::USAGE } else { exit::OK };
            if e.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
                let text = e.render().to_string();
                output::failure(
                    &exit::Failure::new(code, text.trim_start_matches("error: ").trim_end()),
                    true,
                );
                return ExitCode::from(code);
            }
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    output::start_logging(matches!(options.command, Command::Check(_)));
    let json = options.json;
    if let Err(why) = hekaton_core::Backend::choose() {
        output::failure(&exit::Failure::new(exit::USAGE, why), json);
        return ExitCode::from(exit::USAGE);
    }
    let result = match &options.command {
        Command::Circuits => circuits::run(registry, json),
        Command::Setup(command) => setup::run(command, registry, json),
        Command::Estimate(command) => estimate::run(command, registry, json),
        #[cfg(feature = "mpi")]
        Command::Prove(command) if command.ranks.mpi => {
            commands::prove_mpi::run(command, registry, json)
        }
        Command::Prove(command) => prove::run(command, registry, json),
        Command::Verify(command) => verify::run(command, registry, json),
        Command::Check(command) => check::run(command, registry, json),
        Command::Hash(command) => hash::run(command, registry, json),
        Command::Inspect(command) => inspect::run(command, registry, json),
        Command::Completions(command) => manual::completions(command.shell),
        Command::Man(command) => manual::man(&command.directory, json),
        Command::Keys(command) => keys::run(command, json),
        Command::Report(command) => report::run(command, json),
        Command::Doctor(command) => doctor::run(command, json),
    };
    match result {
        Ok(()) => ExitCode::from(exit::OK),
        Err(failure) => {
            output::failure(&failure, json);
            ExitCode::from(failure.code)
        }
    }
}
