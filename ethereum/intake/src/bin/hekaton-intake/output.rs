//! Failures and results that several commands share.

use hekaton_intake::jwt::Secret;
use hekaton_intake::record::Record;
use hekaton_service::program::{Failure, exit, failure, print};
use std::path::{Path, PathBuf};

pub(crate) fn bad_file(path: &Path) -> impl Fn(std::io::Error) -> Failure + '_ {
    |error| failure(exit::BAD_FILE, format!("{}: {error}", path.display()))
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
    path.map(|path| Secret::read(path).map_err(|error| failure(exit::BAD_FILE, error))).transpose()
}

pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Failure> {
    let made = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    made.map_err(|error| failure(exit::FAILED, error))
}
