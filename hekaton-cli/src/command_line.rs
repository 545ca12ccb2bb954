//! The command line under the name of the program.

use crate::options::Options;
use clap::CommandFactory;

/// The command line, with the program's name in its texts.
pub(crate) fn command_line(program: &'static str) -> clap::Command {
    named(Options::command(), program).name(program)
}

// clap puts its own name into usage lines, but examples are text.
/// Replaces the name of the program in the examples of a command and its subcommands.
fn named(mut command: clap::Command, name: &str) -> clap::Command {
    let replace = |text: Option<&clap::builder::StyledStr>| {
        text.map(|text| text.to_string().replace("hekaton ", &format!("{name} ")))
    };
    if let Some(text) = replace(command.get_after_help()) {
        command = command.after_help(text);
    }
    if let Some(text) = replace(command.get_long_about()) {
        command = command.long_about(text);
    }
    command.mut_subcommands(|command| named(command, name))
}
