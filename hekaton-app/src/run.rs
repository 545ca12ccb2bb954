//! Turns the arguments of the process into a command and an exit code.

use crate::app::App;
use crate::command_line::{command_line, for_parsing};
use crate::commands::{
    ceremony, check, circuits, doctor, estimate, export, hash, inspect, keys, setup, verify,
};
use crate::options::{Command, Options};
use crate::product;
use crate::report;
use clap::{ArgMatches, FromArgMatches, Subcommand};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::{manual, output};
use std::process::ExitCode;

/// A command of this process.
enum Parsed {
    Own(Box<Options>),
    OfProduct(ArgMatches),
}

/// Parses the command line of this process.
fn parse(app: &App) -> Result<Parsed, clap::Error> {
    let matches = match for_parsing(app).try_get_matches() {
        // Every rank parses, and only some users ask for help: what that needs of the circuits may take time.
        Err(error) if is_help(&error) => command_line(app).try_get_matches()?,
        parsed => parsed?,
    };
    let name = matches.subcommand_name();
    match name.is_some_and(Command::has_subcommand) {
        true => Options::from_arg_matches(&matches).map(|it| Parsed::Own(Box::new(it))),
        false => Ok(Parsed::OfProduct(matches)),
    }
}

fn is_help(error: &clap::Error) -> bool {
    use clap::error::ErrorKind::{DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand};
    [DisplayHelp, DisplayHelpOnMissingArgumentOrSubcommand].contains(&error.kind())
}

impl App {
    /// Runs the command line of this process, and returns its exit code.
    pub fn run(&self) -> ExitCode {
        run(self)
    }
}

fn run(app: &App) -> ExitCode {
    output::set_program(app.name());
    let parsed = match parse(app) {
        Ok(parsed) => parsed,
        Err(error) => return output::command_line_error(&error),
    };
    // arkworks logs each namespace of each synthesis, and each unsatisfied constraint as a warning of its own.
    output::start_logging("warn,gr1cs=off,r1cs=off");
    let json = match &parsed {
        Parsed::Own(options) => options.json,
        Parsed::OfProduct(matches) => matches.get_flag("json"),
    };
    // A wrong HEKATON_ARITH is refused now, and not in the middle of a run.
    if let Err(why) = hekaton_core::Backend::choose() {
        output::failure(&exit::Failure::new(exit::USAGE, why), json);
        return ExitCode::from(exit::USAGE);
    }
    let result = match &parsed {
        Parsed::Own(options) => run_own(&options.command, app, json),
        Parsed::OfProduct(matches) => {
            let found = app.products().find_map(|product| product.run(app, matches, json));
            found.expect("each command is one of this crate's or of a product's")
        }
    };
    output::exit_code(result, json)
}

fn run_own(command: &Command, app: &App, json: bool) -> Result<(), Failure> {
    match command {
        Command::Circuits => circuits::run(app, json),
        Command::Setup(command) => setup::run(command, app, json),
        Command::Estimate(command) => estimate::run(command, app, json),
        Command::Prove(command) => product::prove(command, app, app, json),
        Command::Verify(command) if export::is_direct_key(&command.key) => {
            export::verify(command, app, json)
        }
        Command::Verify(command) => verify::run(command, app, json),
        Command::Check(command) => check::run(command, app, json),
        Command::Hash(command) => hash::run(command, app, json),
        Command::Inspect(command) => inspect::run(command, app, json),
        Command::Manual(command) => manual::run(command, command_line(app), json),
        Command::Keys(command) => keys::run(command, app, json),
        Command::Export(command) => export::run(command, app, json),
        Command::Ceremony(command) => ceremony::run(command, app, json),
        Command::Report(command) => report::run(command, json),
        Command::Doctor(command) => doctor::run(command, app, json),
    }
}
