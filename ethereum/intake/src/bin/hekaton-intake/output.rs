//! Failures and results that several commands share.

use clap::Args;
use hekaton_intake::jwt::Secret;
use hekaton_intake::node::{MAX_WITNESS, Node, NodeError};
use hekaton_intake::record::Record;
use hekaton_intake::{Problem, Received};
use hekaton_service::program::{Failure, exit, failure, print};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// A running service.
#[derive(Args)]
pub(crate) struct Target {
    /// The address of the service
    #[arg(long, value_name = "ADDRESS", default_value = "http://127.0.0.1:8561")]
    pub(crate) to: String,
    /// A file with the secret that the service shares with senders: 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    secret: Option<PathBuf>,
}

impl Target {
    pub(crate) fn client(&self) -> Result<Node, Failure> {
        Ok(Node::new(&self.to, secret(self.secret.as_ref())?, false, MAX_WITNESS))
    }

    /// Reads the answer to a request. Errors begin with `about`.
    pub(crate) fn read<T: DeserializeOwned>(
        &self,
        about: impl std::fmt::Display,
        answer: Result<Received, NodeError>,
    ) -> Result<T, Failure> {
        let answer = answer.map_err(|error| match error {
            NodeError::Refused { status, body, .. } => {
                let problem = serde_json::from_str::<Problem>(&body).ok();
                // With these answers, the request is at fault. After any other one, the same command may succeed later, so scripts
                // must be able to tell the cases apart.
                let is_wrong = [400, 413, 415, 422].contains(&status)
                    || problem.as_ref().is_some_and(|it| it.kind.ends_with("unknown-payload"));
                let code = if is_wrong { exit::REFUSED } else { exit::FAILED };
                let why = problem.map_or(body, |problem| problem.detail);
                failure(code, format!("{about}: {why} (status {status})"))
            }
            error => failure(exit::FAILED, error),
        })?;
        serde_json::from_slice(&answer).map_err(|error| {
            failure(exit::FAILED, format!("{}: cannot read the answer: {error}", self.to))
        })
    }
}

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
