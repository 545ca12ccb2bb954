//! Commands of other programs, which this one runs as cargo and git run theirs.

use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::installation;
use std::ffi::OsString;
use std::process::Command;

/// Replaces this process by `program`, whose package is in this folder of the repository, with these arguments. `purpose` begins the
/// sentence that says where to find it.
///
/// # Errors
/// Fails if the program is not installed or cannot be started; otherwise it does not return.
pub fn run(
    program: &str,
    folder: &str,
    purpose: &str,
    arguments: &[OsString],
    json: bool,
) -> Result<(), Failure> {
    let program = installation::find(program, folder, purpose)?;
    let mut call = Command::new(&program);
    // --json may stand before the name of the command.
    call.args(json.then_some("--json")).args(arguments);
    let error = std::os::unix::process::CommandExt::exec(&mut call);
    Err(Failure::new(exit::USAGE, format!("cannot run {}: {error}", program.display())))
}
