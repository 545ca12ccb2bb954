//! The fields of a header that lead from a block to the state before it.
//!
//! Only the first fields are read: forks append new ones, and a digest that is checked elsewhere covers all of them.

use alloy_rlp::Header as Rlp;

/// The number of fields that headers of all forks have: those of Frontier.
const LEAST_FIELDS: usize = 15;

/// The place of the height among the fields.
const NUMBER: usize = 8;

/// A fault of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Bytes that are not RLP, or not in its only valid encoding.
    #[error("not strict RLP: {0}")]
    Rlp(alloy_rlp::Error),
    /// Bytes after the header.
    #[error("{0} bytes follow its list")]
    Longer(usize),
    /// A list that is too short.
    #[error("{0} fields, expected at least {LEAST_FIELDS}")]
    Fields(usize),
    /// A field of another length, or one that is a list.
    #[error("{0} is not a string of {1} bytes")]
    Field(&'static str, usize),
    /// A height that is not a number of 64 bits without leading zeros.
    #[error("its height is not a number of at most 64 bits without leading zeros")]
    Number,
}

impl From<alloy_rlp::Error> for HeaderError {
    fn from(error: alloy_rlp::Error) -> Self {
        Self::Rlp(error)
    }
}

/// A header's place in the chain, and the state after its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The hash of the parent.
    pub parent_hash: [u8; 32],
    /// The root of the account trie after the block.
    pub state_root: [u8; 32],
    /// The height of the block.
    pub number: u64,
}

impl BlockHeader {
    /// Reads the fields of a header.
    ///
    /// # Errors
    /// The first fault.
    pub fn read(mut header: &[u8]) -> Result<Self, HeaderError> {
        let mut inside = Rlp::decode_bytes(&mut header, true)?;
        if !header.is_empty() {
            return Err(HeaderError::Longer(header.len()));
        }
        // `None` for a list, which no field of a header is.
        let mut fields: Vec<Option<&[u8]>> = Vec::with_capacity(32);
        while !inside.is_empty() {
            let Rlp { list, payload_length } = Rlp::decode(&mut inside)?;
            let (payload, rest) = inside.split_at(payload_length);
            fields.push((!list).then_some(payload));
            inside = rest;
        }
        if fields.len() < LEAST_FIELDS {
            return Err(HeaderError::Fields(fields.len()));
        }
        let parent_hash = *field::<32>(fields[0], "the hash of the parent")?;
        // Their lengths put the state root in the same place in all headers, which is where the circuit looks for it.
        field::<32>(fields[1], "the hash of the ommers")?;
        field::<20>(fields[2], "the beneficiary")?;
        let state_root = *field::<32>(fields[3], "the state root")?;
        Ok(Self { parent_hash, state_root, number: number(fields[NUMBER])? })
    }
}

fn field<'a, const N: usize>(
    field: Option<&'a [u8]>,
    name: &'static str,
) -> Result<&'a [u8; N], HeaderError> {
    field.and_then(|bytes| bytes.try_into().ok()).ok_or(HeaderError::Field(name, N))
}

fn number(field: Option<&[u8]>) -> Result<u64, HeaderError> {
    match field {
        // With leading zeros, a height would have several encodings, and the block several hashes.
        Some(bytes) if bytes.len() <= 8 && bytes.first() != Some(&0) => {
            Ok(bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
        }
        _ => Err(HeaderError::Number),
    }
}
