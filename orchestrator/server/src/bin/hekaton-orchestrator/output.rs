//! Exit codes, errors and results.

use crate::arguments::ToService;
use hekaton_orchestrator::http::JobStatus;
use hekaton_orchestrator::{Client, ClientError};
use serde::Serialize;
use std::io::Write;
use std::path::Path;

/// The exit codes, which are those of `hekaton`.
pub(crate) mod exit {
    pub(crate) const REFUSED: u8 = 1;
    pub(crate) const USAGE: u8 = 2;
    pub(crate) const BAD_FILE: u8 = 3;
    pub(crate) const FAILED: u8 = 4;
}

/// The reason for which the program ends.
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

pub(crate) fn failure(code: u8, message: impl std::fmt::Display) -> Failure {
    Failure { code, message: message.to_string() }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match error {
            ClientError::File { .. } => exit::BAD_FILE,
            _ => exit::FAILED,
        };
        failure(code, error)
    }
}

pub(crate) fn say(text: impl std::fmt::Display) -> Result<(), Failure> {
    // A reader that has seen enough is not a failure.
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(failure(exit::FAILED, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Prints a value as JSON, or as text.
pub(crate) fn print(
    json: bool,
    value: &impl Serialize,
    text: impl std::fmt::Display,
) -> Result<(), Failure> {
    match json {
        true => say(serde_json::to_string(value).expect("results are JSON")),
        false => say(text),
    }
}

/// Prints a note on standard error. A closed standard error must not end anything.
pub(crate) fn note(text: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Explains that a job waits for back-ends that no process has.
pub(crate) fn missing(backends: &[String]) -> String {
    let (are, names) = match backends {
        [name] => ("the back-end", format!("'{name}'")),
        names => ("the back-ends", format!("'{}'", names.join("', '"))),
    };
    format!("waits for {are} {names}, which no live process has: start one whose settings name it")
}

pub(crate) fn text_of(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| failure(exit::BAD_FILE, format!("{}: {error}", path.display())))
}

pub(crate) fn client(to: &ToService) -> Result<Client, Failure> {
    let token = to.token.as_deref().map(text_of).transpose()?;
    Ok(Client::new(&to.service, token.map(|token| token.trim().to_owned())))
}

pub(crate) fn show(json: bool, status: &JobStatus) -> Result<(), Failure> {
    let JobStatus { job, block, state, reason, missing: backends, .. } = status;
    let waits = (!backends.is_empty()).then(|| missing(backends));
    match reason.as_ref().or(waits.as_ref()) {
        Some(reason) => print(json, status, format_args!("{job} block {block}: {state}: {reason}")),
        None => print(json, status, format_args!("{job} block {block}: {state}")),
    }
}
