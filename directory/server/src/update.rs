//! Updates, from those who send them to what becomes of them.

use hekaton_directory::{Digest, Index, LabelError, Opening, Salt};
use sha2::{Digest as _, Sha256};

/// The maximum length of the key of an update that may be sent twice, in bytes.
pub const MAX_IDEMPOTENCY_KEY: usize = 128;

/// A new value for a label.
#[derive(Clone, PartialEq, Eq)]
pub struct Update {
    /// The label.
    pub label: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
    /// The version that the label must have before the update.
    pub expected: Expected,
    /// A name for this update, so that it may be sent again if nobody knows whether it arrived: it is done once. Names are of
    /// all senders together, so they should be long and random. One is kept as long as the outcome of its update.
    pub idempotency_key: Option<Vec<u8>>,
}

impl std::fmt::Debug for Update {
    /// Values may be secret: only the length is printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Update")
            .field("label", &String::from_utf8_lossy(&self.label))
            .field("bytes", &self.value.len())
            .field("expected", &self.expected)
            .finish_non_exhaustive()
    }
}

impl Update {
    /// A new value, whatever version the label has.
    pub fn new(label: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        Self {
            label: label.into(),
            value: value.into(),
            expected: Expected::Any,
            idempotency_key: None,
        }
    }

    /// Returns a digest by which an update differs from another one with the same idempotency key. Without the secret,
    /// it reveals nothing about the value, which may be erased.
    pub(crate) fn digest(&self, secret: &Digest) -> Digest {
        let (kind, version) = self.expected.encode();
        let length = (self.label.len() as u64).to_be_bytes();
        let hasher = Sha256::new()
            .chain_update(secret)
            .chain_update([kind])
            .chain_update(u32::to_be_bytes(version))
            .chain_update(length)
            .chain_update(&self.label)
            .chain_update(&self.value);
        hasher.finalize().into()
    }
}

/// The version that a label must have before an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Any, or none.
    Any,
    /// None: the label is new.
    Absent,
    /// This one.
    Version(u32),
}

impl Expected {
    /// The kind, and the version where there is one.
    pub(crate) fn encode(self) -> (u8, u32) {
        match self {
            Self::Any => (0, 0),
            Self::Absent => (1, 0),
            Self::Version(version) => (2, version),
        }
    }
}

/// The outcome of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is in the signed record of an epoch.
    Committed {
        /// The epoch whose record has it first.
        epoch: u32,
        /// The version of the label since then.
        version: u32,
    },
    /// It was not done.
    Refused(Refusal),
}

/// The receipt for an update that is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Its number, to ask for its outcome.
    pub number: u64,
    /// `true` if it was accepted before; `number` is then the earlier one.
    pub repeated: bool,
}

/// The status of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It waits for an epoch, or for the record of one.
    Waits,
    /// It has an outcome.
    Done(Outcome),
    /// There is no such update, or its outcome is no longer kept.
    Unknown,
}

/// The reason why an update was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It expected a version, and the label was new.
    #[error("the update expects a label that has a value, and it has none")]
    Absent,
    /// It expected another version, or a new label.
    #[error("the update expects another version than the label has, which is {0}")]
    Version(u32),
    /// The label has been changed 2^32 - 1 times.
    #[error("the label has the largest version that there is")]
    LastVersion,
}

/// An update that is on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// Its number: the order in which updates were accepted.
    pub(crate) number: u64,
    pub(crate) label: Vec<u8>,
    pub(crate) opening: Opening,
    pub(crate) expected: Expected,
    pub(crate) index: Index,
    /// The digest of the value.
    pub(crate) digest: Digest,
}

impl Accepted {
    /// Computes what the update needs of its label and its value alone.
    pub(crate) fn new(
        number: u64,
        label: Vec<u8>,
        opening: Opening,
        expected: Expected,
    ) -> Result<Self, LabelError> {
        let (index, digest) = (Index::of(&label)?, opening.digest(&label)?);
        Ok(Self { number, label, opening, expected, index, digest })
    }

    /// An update with a salt, before it has a number.
    pub(crate) fn of(update: Update, salt: Salt) -> Result<Self, LabelError> {
        let opening = Opening { salt, value: update.value };
        Self::new(u64::MAX, update.label, opening, update.expected)
    }

    /// Checks that the label may be updated, given the version that it has.
    pub(crate) fn check(&self, version: Option<u32>) -> Result<(), Refusal> {
        match (self.expected, version) {
            (_, Some(u32::MAX)) => Err(Refusal::LastVersion),
            (Expected::Absent, Some(found)) => Err(Refusal::Version(found)),
            (Expected::Version(_), None) => Err(Refusal::Absent),
            (Expected::Version(expected), Some(found)) if expected != found => {
                Err(Refusal::Version(found))
            }
            _ => Ok(()),
        }
    }
}
