//! Turns the arguments of the process into a command and an exit code.

use crate::command_line::command_line;
use crate::commands::{
    check, circuits, directory, doctor, estimate, hash, import, inspect, keys, manual, prove,
    setup, verify, vm,
};
use crate::exit;
use crate::options::{Command, Options};
use crate::program::Program;
use crate::report;
use crate::subject::Subject;
use crate::terminal::output;
use clap::FromArgMatches;
use std::process::ExitCode;

/// Parses the command line of this process.
fn parse(program: &Program) -> Result<Options, clap::Error> {
    let mut matches = command_line(program.name()).try_get_matches()?;
    Options::from_arg_matches_mut(&mut matches)
}

impl Program {
    /// Runs the command line of this process, and returns its exit code.
    pub fn run(&self) -> ExitCode {
        run(self)
    }
}

fn run(program: &Program) -> ExitCode {
    output::set_program(program.name());
    let options = match parse(program) {
        Ok(options) => options,
        Err(error) => return output::command_line_error(&error),
    };
    output::start_logging("warn,gr1cs=off,r1cs=off");
    let json = options.json;
    if let Err(why) = hekaton_core::Backend::choose() {
        output::failure(&exit::Failure::new(exit::USAGE, why), json);
        return ExitCode::from(exit::USAGE);
    }
    let result = match &options.command {
        Command::Circuits => circuits::run(program, json),
        Command::Analyse(command) => import::analyse(command, json),
        Command::Import(command) => import::import(command, json),
        Command::Setup(command) => setup::run(command, program, json),
        Command::Estimate(command) => estimate::run(command, program, json),
        #[cfg(feature = "mpi")]
        Command::Prove(command) if command.ranks.mpi => {
            crate::commands::prove_mpi::run(command, &Subject::File(program), json)
        }
        Command::Prove(command) => prove::run(command, &Subject::File(program), json),
        Command::Vm(command) => vm::run(command, json),
        Command::Directory(command) => directory::run(command, json),
        Command::Verify(command) => verify::run(command, program, json),
        Command::Check(command) => check::run(command, program, json),
        Command::Hash(command) => hash::run(command, program, json),
        Command::Inspect(command) => inspect::run(command, program, json),
        Command::Completions(command) => manual::completions(command.shell, program),
        Command::Man(command) => manual::man(&command.directory, program, json),
        Command::Keys(command) => keys::run(command, program, json),
        Command::Report(command) => report::run(command, json),
        Command::Doctor(command) => doctor::run(command, json),
    };
    output::exit_code(result, json)
}
