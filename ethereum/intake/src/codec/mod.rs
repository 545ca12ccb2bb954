//! The answers of nodes, in the two encodings that are in use.

pub mod a;
pub mod b;
pub mod json;

use crate::ssz::{Field, Items, OFFSET, Part, SszError, Writer, write_items};

/// The largest number of items in each part of a witness (rest.md and refactor-ssz.md: `MAX_WITNESS_ITEMS`).
pub const MAX_ITEMS: usize = 1 << 20;

/// The largest item, in bytes (`MAX_WITNESS_ITEM_BYTES`).
pub const MAX_ITEM_BYTES: usize = 1 << 20;

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
    /// The hash of the block is not the one in the payload. Only in codec A.
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
        .ok_or_else(|| part.error(format!("the status {number} is not 0 to {}", count - 1)))
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
    pub witness: Option<Witness<'a>>,
    /// The public key of the sender of each transaction, 65 bytes each. Only in codec B.
    pub public_keys: &'a [u8],
}

/// The nodes, codes and headers that the execution of a block has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness<'a> {
    /// Nodes of tries, RLP-encoded.
    pub state: Items<'a>,
    /// Codes of contracts.
    pub codes: Items<'a>,
    /// Headers of the preceding blocks, RLP-encoded; the last one is the parent's.
    pub headers: Items<'a>,
}

impl<'a> Witness<'a> {
    /// Reads the encoding of a witness.
    ///
    /// # Errors
    /// Where it is not one.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, SszError> {
        Self::read(Part::message(bytes, "witness"))
    }

    pub(crate) fn read(part: Part<'a>) -> Result<Self, SszError> {
        let fields = ["state", "codes", "headers"].map(Field::Variable);
        let [state, codes, headers] = part.container(fields)?;
        let items = |part: Part<'a>| part.items(MAX_ITEMS, MAX_ITEM_BYTES);
        Ok(Self { state: items(state)?, codes: items(codes)?, headers: items(headers)? })
    }

    /// Returns the length of the encoding.
    pub fn encoded_len(&self) -> usize {
        [self.state, self.codes, self.headers]
            .iter()
            .map(|items| items.bytes().len() + OFFSET)
            .sum()
    }

    /// Encodes the witness.
    pub fn encode(&self) -> Vec<u8> {
        self.parts().concat()
    }

    /// Encodes the witness in pieces, so that a large one need not be copied: offsets, then the three parts.
    pub(crate) fn parts(&self) -> [std::borrow::Cow<'a, [u8]>; 4] {
        let [state, codes, headers] = [self.state, self.codes, self.headers].map(|it| it.bytes());
        let ends = [0, state.len(), state.len() + codes.len()];
        let offset = |end: usize| u32::try_from(3 * OFFSET + end).unwrap_or(u32::MAX);
        let head: Vec<u8> = ends.iter().flat_map(|end| offset(*end).to_le_bytes()).collect();
        [head.into(), state.into(), codes.into(), headers.into()]
    }

    pub(crate) fn write(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        self.parts().iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }
}

/// Encodes a witness from its items.
pub fn encode_witness<'a, I>(state: I, codes: I, headers: I) -> Vec<u8>
where
    I: ExactSizeIterator<Item = &'a [u8]> + Clone,
{
    let length = |items: &I| items.clone().map(|item| item.len() + OFFSET).sum::<usize>() + OFFSET;
    let length = length(&state) + length(&codes) + length(&headers);
    let writer = Writer::new(Vec::with_capacity(length), 3 * OFFSET).offset().offset().offset();
    let writer = writer.variable(|bytes| write_items(bytes, state));
    let writer = writer.variable(|bytes| write_items(bytes, codes));
    writer.variable(|bytes| write_items(bytes, headers)).end()
}
