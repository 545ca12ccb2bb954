//! `hekaton directory`: the program `hekaton-directory`.

use clap::{ArgMatches, Args, FromArgMatches, Subcommand};
use hekaton_app::App;
use hekaton_app::product::{Product, run_program};
use hekaton_terminal::exit::Failure;
use std::ffi::OsString;

// Without a doc comment, which would become that of the whole program.
#[derive(Debug, Subcommand)]
enum Commands {
    /// A verifiable key directory: serve it, look labels up, prove and audit its epochs
    #[command(disable_help_flag = true)]
    Directory(Directory),
}

#[derive(Debug, Args)]
struct Directory {
    /// A command of hekaton-directory with its arguments; `hekaton directory --help` lists them
    #[arg(value_name = "COMMAND", trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// A verifiable key directory: the program `hekaton-directory`, which is installed beside this one.
#[derive(Clone, Copy, Debug)]
pub struct KeyDirectory;

impl Product for KeyDirectory {
    fn commands(&self, program: clap::Command) -> clap::Command {
        Commands::augment_subcommands(program)
    }

    fn run(&self, _: &App, matches: &ArgMatches, json: bool) -> Option<Result<(), Failure>> {
        let Commands::Directory(Directory { arguments }) =
            Commands::from_arg_matches(matches).ok()?;
        let purpose = "`hekaton directory` is";
        Some(run_program("hekaton-directory", "directory/program", purpose, &arguments, json))
    }
}
