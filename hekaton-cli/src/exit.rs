//! Exit codes.

use std::path::Path;

/// Done; for `verify`: the proof holds.
pub(crate) const OK: u8 = 0;
/// `verify`: the proof does not hold for these public values; `check`: a constraint does not hold.
pub(crate) const REFUSED: u8 = 1;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// A file or its content can't be used: missing, damaged, of another version, of another setup.
pub(crate) const BAD_FILE: u8 = 3;
/// The run failed: the input does not fit, a witness is wrong, the disk is full.
pub(crate) const FAILED: u8 = 4;
/// Ended by Ctrl-C or SIGTERM; nothing was written.
pub(crate) const INTERRUPTED: u8 = 130;

/// For `--help`.
pub(crate) const HELP: &str = "Exit codes:
  0  done; for verify: the proof holds
  1  verify: the proof does not hold; check: a constraint does not hold
  2  the command line is wrong
  3  a file can't be used: missing, damaged, of another version or another setup
  4  the run failed: the input does not fit, a witness is wrong, a disk is full
  130  interrupted; nothing was written";

/// Why the program ends, with its exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: u8, message: impl ToString) -> Self {
        Self { code, message: message.to_string() }
    }
}

/// Shorthands for results.
pub(crate) trait OrFail<T> {
    /// Fails with this code and the error's message.
    fn or_fail(self, code: u8) -> Result<T, Failure>;
}

impl<T, E: ToString> OrFail<T> for Result<T, E> {
    fn or_fail(self, code: u8) -> Result<T, Failure> {
        self.map_err(|e| Failure::new(code, e))
    }
}

/// Reads a file; errors name it.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path.is_dir() {
        return Err(Failure::new(BAD_FILE, format!("{} is a directory, expected a file", path.display())));
    }
    std::fs::read(path).map_err(|e| Failure::new(BAD_FILE, format!("{}: {e}", path.display())))
}
