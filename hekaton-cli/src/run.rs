//! Turns the arguments of the process into a command and an exit code.

use crate::app::App;
use crate::command_line::command_line;
use crate::commands::{
    ceremony, check, circuits, doctor, estimate, export, hash, import, inspect, keys, manual,
    programs, prove, setup, verify, vm,
};
use crate::options::{Command, Directory, Options};
use crate::report;
use clap::FromArgMatches;
use hekaton_terminal::exit;
use hekaton_terminal::output;
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
        Err(error) => return output::command_line_error(&error),
    };
    // arkworks logs each namespace of each synthesis, and each unsatisfied constraint as a warning of its own.
    output::start_logging("warn,gr1cs=off,r1cs=off");
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
        Command::Directory(Directory { arguments }) => {
            let purpose = "`hekaton directory` is";
            programs::run("hekaton-directory", "hekaton-directory-cli", purpose, arguments, json)
        }
        Command::Verify(command) if export::is_direct_key(&command.key) => {
            export::verify(command, app, json)
        }
        Command::Verify(command) => verify::run(command, app, json),
        Command::Check(command) => check::run(command, app, json),
        Command::Hash(command) => hash::run(command, app, json),
        Command::Inspect(command) => inspect::run(command, app, json),
        Command::Completions(command) => manual::completions(command.shell, app),
        Command::Man(command) => manual::man(&command.directory, app, json),
        Command::Keys(command) => keys::run(command, app, json),
        Command::Export(command) => export::run(command, app, json),
        Command::Ceremony(command) => ceremony::run(command, app, json),
        Command::Report(command) => report::run(command, json),
        Command::Doctor(command) => doctor::run(command, json),
    };
    output::exit_code(result, json)
}
