//! The texts that several commands print.

use crate::arguments::ToService;
use hekaton_orchestrator::Client;
use hekaton_orchestrator::http::JobStatus;
use hekaton_service::program::{Failure, exit, failure, print};
use std::path::Path;

/// Explains that a job waits for back-ends that no process has.
pub(crate) fn missing(backends: &[String]) -> String {
    let (are, names) = match backends {
        [name] => ("the back-end", format!("'{name}'")),
        names => ("the back-ends", format!("'{}'", names.join("', '"))),
    };
    format!(
        "waits for {are} {names}, which no live process has: start one whose settings define it"
    )
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
