//! The reasons why the program ends, with their exit codes.

use std::fmt::Display;
use std::path::Path;

/// The command line is wrong, or what it asks for does not fit the machine.
pub(crate) const USAGE: u8 = 2;
/// A file cannot be used: missing, damaged, of another schema.
pub(crate) const BAD_FILE: u8 = 3;
/// A point failed, or a program could not be run.
pub(crate) const FAILED: u8 = 4;
/// Asked to stop by Ctrl-C or SIGTERM; completed repetitions are kept.
pub(crate) const STOPPED: u8 = 5;

/// An error for the user.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl Display) -> Self {
        Self { code, message: message.to_string() }
    }

    /// An error about a file.
    pub(crate) fn file(path: &Path, why: impl Display) -> Self {
        Self::new(BAD_FILE, format!("{}: {why}", path.display()))
    }
}

/// Adds the path to errors about files.
pub(crate) trait At<T> {
    /// Fails with the path and the error's message.
    fn at(self, path: &Path) -> Result<T, Failure>;
}

impl<T, E: Display> At<T> for Result<T, E> {
    fn at(self, path: &Path) -> Result<T, Failure> {
        self.map_err(|e| Failure::file(path, e))
    }
}
