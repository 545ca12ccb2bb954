//! Turns the arguments of the process into a command and an exit code.

use crate::app::App;
use crate::command_line::command_line;
use crate::commands::{
    check, circuits, doctor, estimate, hash, import, inspect, keys, manual, prove, setup, verify,
    vm,
};
use crate::options::{Command, Options};
use crate::terminal::output;
use crate::{exit, report};
use clap::FromArgMatches;
use std::process::ExitCode;

/// Parses the command line of this process.
fn parse(app: &App) -> Result<Options, clap::Error> {
    let mut matches = command_line(app.name()).try_get_matches()?;
    Options::from_arg_matches_mut(&mut matches)
}

impl App {
    /// Runs the command line of this process, and returns its exit code.
    pub fn run(&self) -> ExitCode {
        run(self)
    }
}

fn run(app: &App) -> ExitCode {
    output::set_program(app.name());
    let options = match parse(app) {
        Ok(options) => options,
        Err(e) => {
            // clap reports --help and --version as errors, too.
            let code = if e.use_stderr() { exit::USAGE } else { exit::OK };
            // The arguments could not be parsed, so --json is looked for by hand: scripts expect JSON for this error, too.
            if e.use_stderr() && std::env::args_os().any(|arg| arg == "--json") {
                let text = e.render().to_string();
                output::failure(
                    &exit::Failure::new(code, text.trim_start_matches("error: ").trim_end()),
                    true,
                );
                return ExitCode::from(code);
            }
            // A closed standard output is the reader's choice.
            let _ = e.print();
            return ExitCode::from(code);
        }
    };
    output::start_logging();
    let json = options.json;
    // A wrong HEKATON_ARITH is refused now, and not in the middle of a run.
    if let Err(why) = hekaton_core::Backend::choose() {
        output::failure(&exit::Failure::new(exit::USAGE, why), json);
        return ExitCode::from(exit::USAGE);
    }
    let result = match &options.command {
        Command::Circuits => circuits::run(app, json),
        Command::Import(command) => import::run(command, json),
        Command::Setup(command) => setup::run(command, app, json),
        Command::Estimate(command) => estimate::run(command, app, json),
        #[cfg(feature = "mpi")]
        Command::Prove(command) if command.ranks.mpi => {
            crate::commands::prove_mpi::run(command, app, json)
        }
        Command::Prove(command) => prove::run(command, app, json),
        Command::Vm(command) => vm::run(command, json),
        #[cfg(feature = "directory")]
        Command::Directory(command) => crate::commands::directory::run(command, app, json),
        Command::Verify(command) => verify::run(command, app, json),
        Command::Check(command) => check::run(command, app, json),
        Command::Hash(command) => hash::run(command, app, json),
        Command::Inspect(command) => inspect::run(command, app, json),
        Command::Completions(command) => manual::completions(command.shell, app),
        Command::Man(command) => manual::man(&command.directory, app, json),
        Command::Keys(command) => keys::run(command, app, json),
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
