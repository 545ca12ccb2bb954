//! Parts that the command lines of setup ceremonies share.

use crate::exit::Failure;
use crate::options::Threads;
use crate::progress::Display;
use hekaton_ceremony::{CeremonyError, Transcript};
use std::path::Path;

/// The failure for an error of a ceremony.
pub fn failed(error: &CeremonyError) -> Failure {
    Failure::new(error.exit_code(), error)
}

/// Calls a function on as many threads as were asked for.
///
/// # Errors
/// If they cannot be started, or the function fails.
pub fn on_threads<R: Send>(
    threads: &Threads,
    call: impl FnOnce() -> Result<R, CeremonyError> + Send,
) -> Result<R, Failure> {
    threads.install(call)?.map_err(|e| failed(&e))
}

/// Opens the directory of a ceremony, or a state.
///
/// # Errors
/// If it is something else, or damaged.
pub fn open(path: &Path) -> Result<Transcript, Failure> {
    Transcript::open(path).map_err(|e| failed(&e))
}

/// Prints each step of a check.
pub fn steps(display: &Display) -> impl FnMut(&str) + Send + '_ {
    |step| display.line(&format!("checking {step}"))
}
