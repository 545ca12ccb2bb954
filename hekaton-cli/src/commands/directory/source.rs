//! What a client asks: a service, or a folder.

use super::folder::{Folder, read_parameters};
use crate::exit::{self, Failure, OrFail};
use crate::options::Asked;
use crate::terminal::output;
use hekaton_directory::server::{Options, Server};
use hekaton_directory::{Checked, Parameters, SIGNED_LENGTH, SignedRecord};
use hekaton_directory_http::body::{
    EpochBody, EpochsBody, HistoryBody, KeyBody, ProofBody, ProofRange, ProofsBody, RecordsBody,
};
use hekaton_directory_http::{AnswerError, Client, ClientError, Problem, answer, follow};
use std::path::{Path, PathBuf};

/// What a client asks.
pub(super) enum Source {
    /// A service.
    Service(Client),
    /// A folder that no service has open.
    Folder(Box<Server>),
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        let code = if problem.status == 400 { exit::USAGE } else { exit::FAILED };
        Self::new(code, problem.detail)
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let code = match &error {
            ClientError::Address(_) => exit::USAGE,
            ClientError::Problem { problem, .. } if problem.status == 400 => exit::USAGE,
            _ => exit::FAILED,
        };
        Self::new(code, error)
    }
}

impl From<AnswerError> for Failure {
    fn from(error: AnswerError) -> Self {
        Self::new(exit::REFUSED, format!("the directory's answer is rejected: {error}"))
    }
}

/// Whether that is the address of a service, and not a folder.
pub(super) fn is_address(directory: &str) -> bool {
    directory.contains("://")
}

impl Source {
    fn ask<T>(
        &self,
        service: impl FnOnce(&Client) -> Result<T, ClientError>,
        folder: impl FnOnce(&Server) -> Result<T, Problem>,
    ) -> Result<T, Failure> {
        match self {
            Self::Service(client) => Ok(service(client)?),
            Self::Folder(server) => Ok(folder(server)?),
        }
    }

    pub(super) fn key(&self, label: &str, epoch: Option<u32>) -> Result<KeyBody, Failure> {
        self.ask(|c| c.key(label, epoch), |s| answer::key(s, label.as_bytes(), epoch))
    }

    pub(super) fn history(&self, label: &str, epoch: Option<u32>) -> Result<HistoryBody, Failure> {
        self.ask(|c| c.history(label, epoch), |s| answer::history(s, label.as_bytes(), epoch))
    }

    pub(super) fn epochs(&self) -> Result<EpochsBody, Failure> {
        self.ask(Client::epochs, answer::epochs)
    }

    pub(super) fn epoch(&self, epoch: u32) -> Result<EpochBody, Failure> {
        self.ask(|c| c.epoch(epoch), |s| answer::epoch(s, epoch))
    }

    pub(super) fn records(&self, from: u32, to: u32) -> Result<RecordsBody, Failure> {
        self.ask(|c| c.records(from, to), |s| answer::records(s, from, to))
    }

    pub(super) fn proofs(&self, from: u32) -> Result<ProofsBody, Failure> {
        self.ask(|c| c.proofs(from), |s| answer::proofs(s, from))
    }

    pub(super) fn proof(&self, range: ProofRange) -> Result<ProofBody, Failure> {
        self.ask(|c| c.proof(range), |s| answer::proof(s, range))
    }
}

/// What a client asks, with what it holds.
pub(super) struct Asking {
    pub(super) source: Source,
    pub(super) parameters: Parameters,
    seen: Option<PathBuf>,
}

impl Asking {
    pub(super) fn open(asked: &Asked) -> Result<Self, Failure> {
        let seen = asked.seen.clone();
        if let Some(path) = &seen {
            output::check_output(path, "--seen", &output::Inputs::default())?;
        }
        let given = asked.parameters.as_deref().map(read_parameters).transpose()?;
        if is_address(&asked.directory) {
            let Some(parameters) = given else {
                let why = "--parameters FILE is needed to verify what a service answers; it must not come from the service";
                return Err(Failure::new(exit::USAGE, why));
            };
            let source = Source::Service(Client::new(&asked.directory)?);
            return Ok(Self { source, parameters, seen });
        }
        let folder = Folder::read(Path::new(&asked.directory))?;
        if given.is_some_and(|given| given != folder.parameters) {
            let why = "the directory in the folder has other parameters than --parameters";
            return Err(Failure::new(exit::REFUSED, why));
        }
        let parameters = folder.parameters;
        let source = Source::Folder(Box::new(
            folder.open(Options { interval: None, ..Options::default() })?,
        ));
        Ok(Self { source, parameters, seen })
    }

    /// Goes on from the last record that was seen to one that is verified, and keeps that.
    pub(super) fn continued(&self, record: &Checked, bytes: &[u8]) -> Result<(), Failure> {
        let Some(path) = &self.seen else { return Ok(()) };
        if path.exists() {
            let seen = exit::read_at_most(path, SIGNED_LENGTH as u64)?;
            let seen = SignedRecord::decode(&seen)
                .map_err(|e| e.to_string())
                .and_then(|seen| seen.verify(&self.parameters).map_err(|e| e.to_string()));
            let seen =
                seen.map_err(|e| format!("{}: {e}", path.display())).or_fail(exit::BAD_FILE)?;
            if record.record().epoch < seen.record().epoch {
                // Something older was asked for: it is part of the history that was seen.
                return follow(&self.parameters, record, &seen, |after| {
                    self.records_after(after, seen.record().epoch)
                });
            }
            follow(&self.parameters, &seen, record, |after| {
                self.records_after(after, record.record().epoch)
            })?;
        }
        output::write(path, bytes)
    }

    fn records_after(&self, after: u32, to: u32) -> Result<Vec<Vec<u8>>, Failure> {
        let records = self.source.records(after.saturating_add(1), to)?.records;
        Ok(records.into_iter().map(|record| record.0).collect())
    }
}
