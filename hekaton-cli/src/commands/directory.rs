//! `hekaton directory`: runs the program `hekaton-directory`, as cargo and git run theirs.

use crate::options::Directory;
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::installation;
use std::process::Command;

/// Replaces this process by the program, with the same arguments. Returns only if it cannot be started.
pub(crate) fn run(command: &Directory, json: bool) -> Result<(), Failure> {
    let purpose = "`hekaton directory` is";
    let program = installation::find("hekaton-directory", "hekaton-directory-cli", purpose)?;
    let mut call = Command::new(&program);
    // --json may stand before the name of the command.
    call.args(json.then_some("--json")).args(&command.arguments);
    let error = std::os::unix::process::CommandExt::exec(&mut call);
    Err(Failure::new(exit::USAGE, format!("cannot run {}: {error}", program.display())))
}
