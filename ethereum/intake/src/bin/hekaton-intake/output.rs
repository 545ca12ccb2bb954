//! Failures with their exit codes, and results as lines of text or JSON, which all commands share.

use hekaton_intake::jwt::Secret;
use hekaton_intake::record::Record;
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

pub(crate) fn failure(code: u8, message: impl std::fmt::Display) -> Failure {
    Failure { code, message: message.to_string() }
}

pub(crate) fn bad_file(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    |error| failure(3, format!("{}: {error}", path.display()))
}

pub(crate) fn print(
    json: bool,
    value: &impl Serialize,
    text: impl std::fmt::Display,
) -> Result<(), Failure> {
    let line = match json {
        true => serde_json::to_string(value).expect("results are JSON"),
        false => text.to_string(),
    };
    // A reader that has seen enough is not a failure.
    match writeln!(std::io::stdout(), "{line}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(failure(4, error)),
        _ => Ok(()),
    }
}

pub(crate) fn show(json: bool, record: &Record) -> Result<(), Failure> {
    let Record { block, number, headers, nodes, codes, bytes, .. } = record;
    let text = format_args!(
        "block {number} {block}: {bytes} bytes, {headers} headers, {nodes} nodes, {codes} codes"
    )
    .to_string();
    print(json, record, text)
}

pub(crate) fn secret(path: Option<&PathBuf>) -> Result<Option<Secret>, Failure> {
    path.map(|path| Secret::read(path).map_err(|error| failure(3, error))).transpose()
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let made = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    made.map_err(|error| failure(4, error))
}
