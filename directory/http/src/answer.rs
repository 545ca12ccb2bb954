//! Answers of a directory, as an HTTP service or on the same machine.

use crate::base64::Base64;
use crate::body::{
    ContinuationBody, CurrentBody, EpochBody, EpochsBody, ExpectedBody, HistoryBody, KeyBody,
    MAX_PROOFS, MAX_RECORDS, ProofBody, ProofRange, ProofsBody, RecordsBody, State, UpdateBody,
    UpdateStatus,
};
use crate::problem::{Refusal, kind};
use hekaton_directory::{Continuation, Record};
use hekaton_directory_server::{
    Error, Expected, Outcome, Server, Status, SubmitError, Update, View,
};
use std::sync::Arc;
use std::time::Duration;

/// The most bytes of values that a history may have: as JSON, clients read it.
const MAX_HISTORY: usize = 128 << 20;

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let kind = match &error {
            Error::NoEpoch { .. } | Error::NoVersion(_) | Error::NoEntry { .. } => kind::NOT_FOUND,
            Error::Pruned { .. } => kind::PRUNED,
            Error::Label(_) => kind::BAD_REQUEST,
            Error::LongHistory { .. } => kind::TOO_LARGE,
            // The causes name files of the server.
            Error::Recovering(why) => {
                tracing::debug!(%why, "a request is refused");
                let what = "the directory cannot write now, and opens its database again: no update is taken";
                return Self::new(kind::UNAVAILABLE, what);
            }
            Error::Stopped(_) => return Self::new(kind::UNAVAILABLE, "the directory has stopped"),
            _ => {
                tracing::error!(%error, "a request cannot be answered");
                let what = "the directory cannot answer; its log says why";
                return Self::new(kind::INTERNAL, what);
            }
        };
        Self::new(kind, error)
    }
}

impl From<SubmitError> for Refusal {
    fn from(error: SubmitError) -> Self {
        let kind = match &error {
            SubmitError::Label(_) | SubmitError::IdempotencyKey(_) => kind::BAD_REQUEST,
            SubmitError::OtherUpdate { .. } => kind::CONFLICT,
            SubmitError::Full(_) => kind::FULL,
            SubmitError::Unknown(why) => {
                tracing::error!(%why, "an update may be accepted or not");
                let what = "the server cannot say whether the update was accepted, because its database failed; with the same \
                            idempotency key it can be sent again";
                return Self::new(kind::UNKNOWN, what);
            }
            SubmitError::Recovering | SubmitError::Stopping => kind::UNAVAILABLE,
            _ => {
                tracing::error!(%error, "an update cannot be taken");
                let what = "the directory cannot take the update; its log says why";
                return Self::new(kind::INTERNAL, what);
            }
        };
        Self::new(kind, error)
    }
}

impl UpdateBody {
    /// The update.
    ///
    /// # Errors
    /// If it has no value, or two of them.
    pub fn update(self) -> Result<Update, Refusal> {
        let value = match (self.value, self.value_base64) {
            (Some(text), None) => text.into_bytes(),
            (None, Some(bytes)) => bytes.0,
            (None, None) => {
                let why = "the update has no value: give value, or value_base64";
                return Err(Refusal::new(kind::BAD_REQUEST, why));
            }
            (Some(_), Some(_)) => {
                let why = "the update has two values: give value or value_base64";
                return Err(Refusal::new(kind::BAD_REQUEST, why));
            }
        };
        let mut update = Update::new(self.label, value);
        update.expected = match self.expected {
            None => Expected::Any,
            Some(ExpectedBody::Absent(_)) => Expected::Absent,
            Some(ExpectedBody::Version(version)) => Expected::Version(version),
        };
        update.idempotency_key = self.idempotency_key.map(String::into_bytes);
        Ok(update)
    }
}

/// Accepts an update.
///
/// # Errors
/// Why it is not accepted.
pub fn submit(server: &Server, body: UpdateBody) -> Result<UpdateStatus, Refusal> {
    let receipt = server.submit(body.update()?)?;
    Ok(UpdateStatus::accepted(receipt.number, receipt.repeated))
}

/// Waits until an update is visible or refused, at most this long, and returns its status. One that is refused is a
/// conflict.
///
/// # Errors
/// If it is refused, or the directory does not answer.
pub fn wait(
    server: &Server,
    sent: UpdateStatus,
    at_most: Duration,
) -> Result<UpdateStatus, Refusal> {
    let status = server.wait(sent.number, at_most)?;
    let status = described(server, sent.number, status)?;
    match (status.state, &status.reason) {
        (State::Refused, Some(why)) => {
            let number = status.number;
            Err(Refusal::new(kind::CONFLICT, format!("update {number} was refused: {why}")))
        }
        _ => Ok(UpdateStatus { repeated: sent.repeated, ..status }),
    }
}

/// Returns the status of an update.
///
/// # Errors
/// If there is no such update, or its outcome is no longer kept.
pub fn update(server: &Server, number: u64) -> Result<UpdateStatus, Refusal> {
    described(server, number, server.outcome(number)?)
}

fn described(server: &Server, number: u64, status: Status) -> Result<UpdateStatus, Refusal> {
    let plain = UpdateStatus::accepted(number, false);
    Ok(match status {
        Status::Waits => plain,
        Status::Done(Outcome::Committed { epoch, version }) => UpdateStatus {
            state: state(server, epoch)?,
            epoch: Some(epoch),
            version: Some(version),
            ..plain
        },
        Status::Done(Outcome::Refused(why)) => {
            UpdateStatus { state: State::Refused, reason: Some(why.to_string()), ..plain }
        }
        _ => {
            let why = format!("there is no update {number}, or its outcome is no longer kept");
            return Err(Refusal::new(kind::NOT_FOUND, why));
        }
    })
}

/// Returns the state of an epoch that is visible.
fn state(server: &Server, epoch: u32) -> Result<State, Refusal> {
    Ok(if epoch <= server.proven()? { State::Proven } else { State::Visible })
}

/// The directory after an epoch, or now.
fn view(server: &Server, epoch: Option<u32>) -> Result<Arc<View>, Refusal> {
    Ok(match epoch {
        None => server.view()?,
        Some(epoch) => Arc::new(server.view_at(epoch)?),
    })
}

/// Returns the value of a label after an epoch, or now, with its proof.
///
/// # Errors
/// If there is no such epoch or it is pruned, or the directory does not answer.
pub fn key(server: &Server, label: &[u8], epoch: Option<u32>) -> Result<KeyBody, Refusal> {
    // One view for record and path: an epoch that is closed meanwhile must not get into the answer.
    let view = view(server, epoch)?;
    let answer = view.look_up(label)?;
    let epoch = view.record().epoch;
    let current = answer.current.map(|current| CurrentBody {
        before: Base64(current.before.0.to_vec()),
        salt: Base64(current.opening.salt.to_vec()),
        value: Base64(current.opening.value),
    });
    Ok(KeyBody {
        epoch,
        state: state(server, epoch)?,
        record: Base64(view.signed().encode().to_vec()),
        path: Base64(answer.path.encode()),
        current,
    })
}

/// All that a label has had up to an epoch, or up to now.
///
/// # Errors
/// If the values have more than 128 MiB together, there is no such epoch or it is pruned, or the directory does not answer.
pub fn history(server: &Server, label: &[u8], epoch: Option<u32>) -> Result<HistoryBody, Refusal> {
    let view = view(server, epoch)?;
    let (path, history) = view.history(label, MAX_HISTORY)?;
    let epoch = view.record().epoch;
    Ok(HistoryBody {
        epoch,
        state: state(server, epoch)?,
        record: Base64(view.signed().encode().to_vec()),
        path: Base64(path.encode()),
        history: Base64(history.encode()),
    })
}

/// An epoch.
///
/// # Errors
/// If there is no such epoch, or the directory does not answer.
pub fn epoch(server: &Server, epoch: u32) -> Result<EpochBody, Refusal> {
    // Verified here, so that a damaged row is an error of the server before a client takes it for
    // evidence.
    let signed = server.record(epoch)?;
    let Record { root, leaves, log_size, closed, .. } = signed
        .verify(server.parameters())
        .map_err(|error| Refusal::new(kind::INTERNAL, error))?
        .record()
        .to_owned();
    Ok(EpochBody {
        epoch,
        state: state(server, epoch)?,
        record: Base64(signed.encode().to_vec()),
        leaves,
        updates: log_size,
        closed,
        root: hex::encode(root),
    })
}

/// All epochs.
///
/// # Errors
/// If the directory does not answer.
pub fn epochs(server: &Server) -> Result<EpochsBody, Refusal> {
    let last = epoch(server, server.view()?.record().epoch)?;
    Ok(EpochsBody { last, proven: server.proven()?, first: server.pruned()? })
}

/// The signed records from one epoch to another one, both included: those of the first 4,096 of them.
///
/// # Errors
/// If there is no such epoch, or the directory does not answer.
pub fn records(server: &Server, from: u32, to: u32) -> Result<RecordsBody, Refusal> {
    if from > to {
        let why = format!("records from epoch {from} to {to}: there are none");
        return Err(Refusal::new(kind::BAD_REQUEST, why));
    }
    // Asked for first, so that an epoch that does not exist is an error and not a shorter list.
    server.record(to)?;
    let last = to.min(from.saturating_add(MAX_RECORDS - 1));
    let records = (from..=last).map(|epoch| Ok(Base64(server.record(epoch)?.encode().to_vec())));
    let records = records.collect::<Result<_, Error>>()?;
    Ok(RecordsBody { records, before: Base64(server.records_before(from)?.concat()) })
}

/// The proof that the record of an epoch continues the history of an earlier one, or of the same one.
///
/// # Errors
/// If the epochs are in the other order, there is no such epoch, or the directory does not answer.
pub fn continuation(server: &Server, from: u32, to: u32) -> Result<ContinuationBody, Refusal> {
    if from > to {
        let why =
            format!("the record of epoch {to} does not continue a later one, of epoch {from}");
        return Err(Refusal::new(kind::BAD_REQUEST, why));
    }
    let Continuation { entry, before } = server.continuation(from, to)?;
    Ok(ContinuationBody { entry: Base64(entry.concat()), before: Base64(before.concat()) })
}

/// Lists attached proofs in order, starting with the one that covers an epoch: at most 512.
///
/// # Errors
/// If the directory does not answer.
pub fn proofs(server: &Server, epoch: u32) -> Result<ProofsBody, Refusal> {
    let ranges = server.proof_ranges(epoch, MAX_PROOFS)?.into_iter();
    Ok(ProofsBody { proofs: ranges.map(|(from, to)| ProofRange { from, to }).collect() })
}

/// The proof of these epochs.
///
/// # Errors
/// If there is no proof of exactly these, or the directory does not answer.
pub fn proof(server: &Server, ProofRange { from, to }: ProofRange) -> Result<ProofBody, Refusal> {
    // A proof of more epochs would not verify with the records at the ends of this range.
    let found = server.proof_of(to)?.filter(|proof| (proof.from, proof.to) == (from, to));
    found.map(ProofBody::from).ok_or_else(|| {
        let why = format!("there is no proof from epoch {from} to {to}; /v1/proofs lists them");
        Refusal::new(kind::NOT_FOUND, why)
    })
}
