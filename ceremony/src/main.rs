//! `hekaton-ceremony`: the part of a setup ceremony that needs no circuits.

mod body;
mod common;
mod contribute;
mod files;
mod options;
mod remote;
mod service;

use clap::{CommandFactory, Parser};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::{manual, output};
use options::{Command, Options};
use std::process::ExitCode;

/// Faster than the allocator of musl, which static programs would use (Cargo.toml).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let Options { json, command } = match Options::try_parse() {
        Ok(options) => options,
        Err(error) => return output::command_line_error(&error),
    };
    // Log messages of the service are for its operator.
    output::start_logging("warn,hekaton_ceremony=info");
    if let Err(why) = hekaton_core::Backend::choose() {
        output::failure(&Failure::new(exit::USAGE, why), json);
        return ExitCode::from(exit::USAGE);
    }
    output::exit_code(run(&command, json), json)
}

fn run(command: &Command, json: bool) -> Result<(), Failure> {
    match command {
        Command::Contribute(command) if is_url(&command.ceremony) => {
            remote::contribute(command, json)
        }
        Command::Contribute(command) => contribute::run(command, json),
        Command::Fetch(command) if is_url(&command.ceremony) => remote::fetch(command, json),
        Command::Fetch(command) => files::fetch(command, json),
        Command::Send(command) => remote::send(command, json),
        Command::Add(command) => files::add(command, json),
        Command::Beacon(command) => files::beacon(command, json),
        Command::Serve(command) => service::run(command, json),
        Command::Status(command) if is_url(&command.ceremony) => {
            remote::status(&command.ceremony, json)
        }
        Command::Status(command) => files::status(command, json),
        Command::Receipt(command) => files::receipt(command, json),
        Command::Manual(command) => manual::run(command, Options::command(), json),
    }
}

/// Reports whether a ceremony is named by the address of a service.
fn is_url(text: &str) -> bool {
    text.contains("://")
}
