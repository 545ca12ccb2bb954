//! `hekaton directory`: runs the program `hekaton-directory`, as cargo and git run theirs.

use crate::options::Directory;
use hekaton_terminal::exit::{self, Failure, OrFail};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::process::Command;

/// The program, which is installed beside this one.
const PROGRAM: &str = "hekaton-directory";

/// Replaces this process by the program, with the same arguments. Returns only if it cannot be started.
pub(crate) fn run(command: &Directory, json: bool) -> Result<(), Failure> {
    let this = std::env::current_exe().or_fail(exit::FAILED)?;
    let beside = this.with_file_name(PROGRAM);
    let program = if beside.is_file() { beside.as_os_str() } else { OsStr::new(PROGRAM) };
    let mut call = Command::new(program);
    // --json may stand before the name of the command.
    call.args(json.then_some("--json")).args(&command.arguments);
    let error = std::os::unix::process::CommandExt::exec(&mut call);
    let why = match error.kind() {
        ErrorKind::NotFound => format!(
            "`hekaton directory` is the program {PROGRAM}, which is neither beside {} nor in PATH; install hekaton-directory-cli",
            this.display()
        ),
        _ => format!("cannot run {}: {error}", program.display()),
    };
    Err(Failure::new(exit::USAGE, why))
}
