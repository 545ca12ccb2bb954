//! Verification of an answer by a client.

use crate::base64::Base64;
use crate::body::{ContinuationBody, CurrentBody, HistoryBody, KeyBody, RecordsBody};
use hekaton_directory::{
    Checked, Commitment, Continuation, Current, DecodeError, Digest, Entry, Frontier, History,
    HistoryError, Index, LabelError, Leaf, LookUpError, Opening, Parameters, Path, RecordError,
    SignedRecord,
};

/// The reason why an answer was rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// A part of it cannot be read.
    #[error("the answer's {0} cannot be read: {1}")]
    Decode(&'static str, DecodeError),
    /// A field has another length.
    #[error("the answer's {0} has {1} bytes, expected 32")]
    Length(&'static str, usize),
    /// The label is not valid.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The record is not one of this directory, or does not follow the one before it.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The answer states another epoch than its record.
    #[error("the answer says that it is of epoch {says}, and its record is of epoch {found}")]
    Says {
        /// The epoch that the answer states.
        says: u32,
        /// The epoch of the record.
        found: u32,
    },
    /// The answer is of another epoch.
    #[error("the answer is of epoch {found}, asked for was epoch {expected}")]
    Epoch {
        /// The epoch of its record.
        found: u32,
        /// The epoch that was asked for.
        expected: u32,
    },
    /// The path does not prove what the label has.
    #[error(transparent)]
    LookUp(#[from] LookUpError),
    /// The value, or values, are not those of the leaf.
    #[error(transparent)]
    History(#[from] HistoryError),
    /// There are values, and the label has none.
    #[error("the answer has values, and its path proves that the label has none")]
    Surplus,
    /// A field is no list of digests, or has too many or too few.
    #[error("the answer's {what} has {found} bytes, expected {expected} digests of 32 bytes")]
    Digests {
        /// The field.
        what: &'static str,
        /// Its length.
        found: usize,
        /// The number of digests that it should have.
        expected: String,
    },
}

/// The verified value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The record of the epoch, with its signature verified.
    pub record: Checked,
    /// The leaf of the label, or nothing: then the label was never in the directory.
    pub leaf: Option<Leaf>,
    /// The value; nothing if there is no leaf or the value is erased.
    pub value: Option<Vec<u8>>,
}

/// All that a label has had, verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHistory {
    /// The record of the epoch, with its signature verified.
    pub record: Checked,
    /// The leaf of the label, or nothing.
    pub leaf: Option<Leaf>,
    /// The values, from version 0 on.
    pub history: History,
}

fn decode<T>(
    what: &'static str,
    bytes: &[u8],
    decode: impl FnOnce(&[u8]) -> Result<T, DecodeError>,
) -> Result<T, AnswerError> {
    decode(bytes).map_err(|error| AnswerError::Decode(what, error))
}

fn digest(what: &'static str, bytes: &[u8]) -> Result<[u8; 32], AnswerError> {
    bytes.try_into().map_err(|_| AnswerError::Length(what, bytes.len()))
}

/// The record and the leaf that an answer proves.
fn leaf(
    parameters: &Parameters,
    label: &[u8],
    (says, record, path): (u32, &[u8], &[u8]),
    epoch: Option<u32>,
) -> Result<(Checked, Option<Leaf>), AnswerError> {
    let record = decode("record", record, SignedRecord::decode)?.verify(parameters)?;
    let found = record.record().epoch;
    // What a client shows as the epoch must be what is signed.
    if says != found {
        return Err(AnswerError::Says { says, found });
    }
    // The record of any other epoch is signed as well and may have another value.
    if let Some(expected) = epoch.filter(|expected| *expected != found) {
        return Err(AnswerError::Epoch { found, expected });
    }
    let path = decode("path", path, Path::decode)?;
    let leaf = record.look_up(&Index::of(label)?, &path)?;
    Ok((record, leaf))
}

impl CurrentBody {
    fn current(&self) -> Result<Current, AnswerError> {
        let before = Commitment(digest("commitment", &self.before.0)?);
        let salt = digest("salt", &self.salt.0)?;
        Ok(Current { before, opening: Opening { salt, value: self.value.0.clone() } })
    }
}

impl KeyBody {
    /// Verifies what the label has in the epoch of the record, or in the epoch that was asked for.
    ///
    /// This does not verify that the record is the newest, and that the server shows the same to everybody: [`follow`]
    /// continues from the last record that the client saw, and audits verify what was between.
    ///
    /// # Errors
    /// What is wrong with the answer.
    pub fn verify(
        &self,
        parameters: &Parameters,
        label: &[u8],
        epoch: Option<u32>,
    ) -> Result<Found, AnswerError> {
        let (record, leaf) =
            leaf(parameters, label, (self.epoch, &self.record.0, &self.path.0), epoch)?;
        let value = match (&leaf, &self.current) {
            // An erased value: whether there is a leaf is proven without it.
            (_, None) => None,
            (None, Some(_)) => return Err(AnswerError::Surplus),
            (Some(leaf), Some(current)) => {
                let decoded = current.current()?;
                decoded.verify(label, leaf)?;
                Some(decoded.opening.value)
            }
        };
        Ok(Found { record, leaf, value })
    }
}

impl HistoryBody {
    /// All that the label has had up to the epoch of the record, or up to the epoch that was asked for.
    ///
    /// # Errors
    /// What is wrong with the answer.
    pub fn verify(
        &self,
        parameters: &Parameters,
        label: &[u8],
        epoch: Option<u32>,
    ) -> Result<FoundHistory, AnswerError> {
        let (record, leaf) =
            leaf(parameters, label, (self.epoch, &self.record.0, &self.path.0), epoch)?;
        let history = decode("history", &self.history.0, History::decode)?;
        match &leaf {
            Some(leaf) => history.verify(label, leaf)?,
            None if history.0.is_empty() => {}
            None => return Err(AnswerError::Surplus),
        }
        Ok(FoundHistory { record, leaf, history })
    }
}

impl FoundHistory {
    /// The values as bytes; nothing for one that is erased.
    pub fn values(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.history.0.iter().map(|entry| match entry {
            Entry::Value(opening) => Some(&opening.value[..]),
            Entry::Erased(_) => None,
        })
    }
}

/// The digests of a field.
fn digests(what: &'static str, bytes: &Base64) -> Result<Vec<Digest>, AnswerError> {
    match bytes.0.as_chunks() {
        (digests, []) => Ok(digests.to_vec()),
        _ => {
            let expected = "any number of".to_owned();
            Err(AnswerError::Digests { what, found: bytes.0.len(), expected })
        }
    }
}

impl ContinuationBody {
    /// Verifies that a record continues the history of one that was seen ([`Checked::check_continues`]).
    ///
    /// # Errors
    /// If it is not proven.
    pub fn verify(&self, seen: &Checked, to: &Checked) -> Result<(), AnswerError> {
        let (entry, before) = (digests("entry", &self.entry)?, digests("before", &self.before)?);
        Ok(to.check_continues(seen, &Continuation { entry, before })?)
    }
}

impl RecordsBody {
    /// The tree of all records before the first one, which is of an epoch. Nothing of it is verified:
    /// [`Audit::with_records`](hekaton_directory::Audit::with_records) compares it with the first record.
    ///
    /// # Errors
    /// If it has another number of digests than the tree has.
    pub fn records_before(&self, epoch: u32) -> Result<Frontier, AnswerError> {
        let peaks = digests("before", &self.before)?;
        Frontier::with_peaks(epoch.into(), &peaks).ok_or_else(|| AnswerError::Digests {
            what: "before",
            found: self.before.0.len(),
            expected: epoch.count_ones().to_string(),
        })
    }
}

/// Continues from a record that the client saw to a later one: the server continues the same history. `ask` returns the proof for the
/// epochs of both. For two records of one epoch, checks that they are the same.
///
/// # Errors
/// If there is no proof, or it does not hold.
pub fn follow<E: From<AnswerError>>(
    seen: &Checked,
    to: &Checked,
    ask: impl FnOnce(u32, u32) -> Result<ContinuationBody, E>,
) -> Result<(), E> {
    let (from, end) = (seen.record().epoch, to.record().epoch);
    let proof = if from < end { ask(from, end)? } else { ContinuationBody::default() };
    Ok(proof.verify(seen, to)?)
}
