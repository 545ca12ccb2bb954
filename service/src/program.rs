//! Exit codes, failures and results of the programs.

use serde::Serialize;
use std::io::Write;
use std::net::TcpListener;

/// Exit codes, which are those of `hekaton`.
pub mod exit {
    /// The input or the result is not what it must be.
    pub const REFUSED: u8 = 1;
    /// The command line or the settings are wrong.
    pub const USAGE: u8 = 2;
    /// A file or folder cannot be used.
    pub const BAD_FILE: u8 = 3;
    /// A service does not answer or refuses, or the system fails.
    pub const FAILED: u8 = 4;
}

/// An error that ends the program.
#[derive(Debug)]
pub struct Failure {
    /// The exit code.
    pub code: u8,
    /// The text for the user.
    pub message: String,
}

/// Makes a failure.
pub fn failure(code: u8, message: impl std::fmt::Display) -> Failure {
    Failure { code, message: message.to_string() }
}

/// Listens at the address of `--listen`.
///
/// # Errors
/// Fails if it is no address, or one at which this process cannot listen.
pub fn listen(address: &str) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).map_err(|error| {
        let code = match error.kind() {
            std::io::ErrorKind::InvalidInput => exit::USAGE,
            _ => exit::FAILED,
        };
        failure(code, format!("--listen {address}: {error}"))
    })
}

/// Prints a line on standard output.
///
/// # Errors
/// If it cannot be written.
pub fn say(text: impl std::fmt::Display) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        // A reader that has seen enough is not a failure.
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(failure(exit::FAILED, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as one line of JSON, or as text.
///
/// # Errors
/// If it cannot be written.
pub fn print(
    json: bool,
    value: &impl Serialize,
    text: impl std::fmt::Display,
) -> Result<(), Failure> {
    match json {
        true => say(serde_json::to_string(value).expect("results are JSON")),
        false => say(text),
    }
}

/// Prints a note on standard error.
pub fn note(text: impl std::fmt::Display) {
    // A closed standard error must not end a process that works.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints the error of a failure, and returns the exit code.
pub fn finish(done: Result<u8, Failure>) -> std::process::ExitCode {
    match done {
        Ok(code) => code.into(),
        Err(Failure { code, message }) => {
            note(format_args!("error: {message}"));
            code.into()
        }
    }
}

/// Reports whether a log on standard error may have colors: it is a terminal, and the user has not opted out.
pub fn has_colors() -> bool {
    use std::io::IsTerminal;
    // An empty value does not count (https://no-color.org).
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    std::io::stderr().is_terminal() && !is_plain
}

/// Calls a function at each SIGINT and SIGTERM from now on, with `true` for the first of them.
///
/// # Errors
/// If the signals cannot be caught.
#[cfg(feature = "server")]
pub fn on_stop(mut asked: impl FnMut(bool) + Send + 'static) -> std::io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    // A thread, because the handler itself may do next to nothing, and the runtime may be busy or not run yet.
    std::thread::spawn(move || {
        for (count, _) in signals.forever().enumerate() {
            asked(count == 0);
        }
    });
    Ok(())
}
