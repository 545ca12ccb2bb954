//! `hekaton`: proves large computations in parts and verifies the one small proof.
//!
//! Exit codes are documented in `--help` and in [`exit`].

mod check;
mod distributed;
mod doctor;
mod estimate;
mod event_files;
mod exit;
mod inspect;
mod keys;
mod manual;
mod options;
mod output;
mod progress;
mod prove;
mod report;
mod setup;
mod signals;
mod verify;

use clap::Parser;
use options::{Command, Options};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match Options::try_parse() {
        Ok(options) => options,
        Err(e) => {
            // help and version are no errors
            let code = if e.use_stderr() { exit::USAGE } else { exit::OK };
            if e.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
                let text = e.render().to_string();
                output::failure(&exit::Failure::new(code, text.trim_start_matches("error: ").trim_end()), true);
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
        Command::Circuits => check::circuits(json),
        Command::Setup(command) => setup::run(command, json),
        Command::Estimate(command) => estimate::run(command, json),
        Command::Prove(command) => prove::run(command, json),
        Command::Verify(command) => verify::run(command, json),
        Command::Check(command) => check::run(command, json),
        Command::Hash(command) => check::hash(command, json),
        Command::Inspect(command) => inspect::run(command, json),
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
