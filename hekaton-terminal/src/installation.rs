//! The other programs of an installation.

use crate::exit::{self, Failure, OrFail};
use std::path::PathBuf;

/// Finds another program: beside this one, or else in `PATH`. `folder` is that of its package in the repository; `purpose` begins the
/// text of the error.
///
/// # Errors
/// Fails if it is in neither place; the error has the command that installs it.
pub fn find(program: &str, folder: &str, purpose: &str) -> Result<PathBuf, Failure> {
    let this = std::env::current_exe().or_fail(exit::FAILED)?;
    let in_path = std::env::var_os("PATH");
    let folders = in_path.iter().flat_map(std::env::split_paths);
    // That of this installation first, because one of another version may refuse what this one passes to it.
    std::iter::once(this.with_file_name(program))
        .chain(folders.map(|folder| folder.join(program)))
        .find(|found| found.is_file())
        .ok_or_else(|| {
            format!(
                "{purpose} the program {program}, which is neither beside {} nor in PATH: install it with \
                 `cargo install --locked --path {folder}` in the repository",
                this.display()
            )
        })
        .or_fail(exit::USAGE)
}
