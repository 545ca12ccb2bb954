//! The answers of nodes, in the encodings that are in use, each named by the pull requests of execution-apis that specify it.

pub mod apis773;
pub mod apis793;
pub mod json;
mod parameters;
mod payload;
pub mod rlp;

use hekaton_witness_format::ExecutionWitness;
use hekaton_witness_format::ssz::{Part, SszError};

/// The status of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The payload was executed, and is valid.
    Valid,
    /// The payload is invalid.
    Invalid,
    /// The node lacks a block before it.
    Syncing,
    /// The payload is on a side chain, and was not executed.
    Accepted,
    /// The hash of the block is not the one in the payload. Only in [`apis773`].
    InvalidBlockHash,
}

impl Status {
    /// Returns the name in JSON-RPC.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Invalid => "INVALID",
            Self::Syncing => "SYNCING",
            Self::Accepted => "ACCEPTED",
            Self::InvalidBlockHash => "INVALID_BLOCK_HASH",
        }
    }

    /// Returns the status of a name.
    pub fn named(name: &str) -> Option<Self> {
        ALL.into_iter().find(|status| status.name() == name)
    }

    /// Returns the number in SSZ.
    pub(crate) fn number(self) -> u8 {
        match self {
            Self::Valid => 0,
            Self::Invalid => 1,
            Self::Syncing => 2,
            Self::Accepted => 3,
            Self::InvalidBlockHash => 4,
        }
    }
}

const ALL: [Status; 5] =
    [Status::Valid, Status::Invalid, Status::Syncing, Status::Accepted, Status::InvalidBlockHash];

/// Reads a status, which must be one of the first `count`.
fn status(part: Part<'_>, count: usize) -> Result<Status, SszError> {
    let [number] = *part.array::<1>()?;
    let found = ALL.get(usize::from(number)).filter(|_| usize::from(number) < count);
    found
        .copied()
        .ok_or_else(|| part.error(format!("status {number}, expected 0 to {}", count - 1)))
}

/// A node's answer about a payload, with the witness if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// The status of the payload.
    pub status: Status,
    /// The hash of the last valid block.
    pub latest_valid_hash: Option<[u8; 32]>,
    /// The error, if the payload is invalid.
    pub validation_error: Option<&'a str>,
    /// The input of a stateless execution.
    pub witness: Option<ExecutionWitness<'a>>,
    /// The public key of the sender of each transaction, 65 bytes each. Only in [`apis793`].
    pub public_keys: &'a [u8],
}
