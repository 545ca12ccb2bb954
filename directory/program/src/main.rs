//! `hekaton-directory`: a verifiable key directory, its clients and its auditors.

mod ask;
mod audit;
mod failure;
mod folder;
mod foreign_text;
mod head;
mod insert;
mod manage;
mod options;
mod proving;
mod serve;
mod source;

use clap::{CommandFactory, Parser};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::{manual, output};
use options::{Directory, Options};
use std::process::ExitCode;

fn main() -> ExitCode {
    let Options { json, command } = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return output::command_line_error(&error),
    };
    // What the service reports of its own is for its operator, warnings of libraries are for everybody.
    output::start_logging("warn,hekaton_directory_http=info,gr1cs=off,r1cs=off");
    if let Err(why) = hekaton_core::Backend::choose() {
        output::failure(&Failure::new(exit::USAGE, why), json);
        return ExitCode::from(exit::USAGE);
    }
    output::exit_code(run(&command, json), json)
}

fn run(command: &Directory, json: bool) -> Result<(), Failure> {
    match command {
        Directory::Init(command) => folder::init(command, json),
        Directory::Insert(command) => insert::run(command, json),
        Directory::Lookup(command) => ask::look_up(command, json),
        Directory::History(command) => ask::history(command, json),
        Directory::Epoch(command) => ask::epoch(command, json),
        Directory::Audit(command) => audit::run(command, json),
        Directory::Serve(command) => serve::run(command, json),
        Directory::Prove(command) => manage::prove(command, json),
        Directory::Head(command) => head::run(command, json),
        Directory::Check(command) => manage::check(command, json),
        Directory::Prune(command) => manage::prune(command, json),
        Directory::Erase(command) => manage::erase(command, json),
        Directory::Manual(command) => manual::run(command, Options::command(), json),
    }
}
