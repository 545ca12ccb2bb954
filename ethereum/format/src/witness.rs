//! An execution witness as it is transmitted: SSZ of three lists of byte lists.

use crate::ssz::{Field, Items, OFFSET, Part, SszError, Writer, write_items};
use std::borrow::Cow;

/// The largest number of items in each part of a witness (rest.md and refactor-ssz.md: `MAX_WITNESS_ITEMS`).
pub const MAX_ITEMS: usize = 1 << 20;

/// The largest item, in bytes (`MAX_WITNESS_ITEM_BYTES`).
pub const MAX_ITEM_BYTES: usize = 1 << 20;

/// The input of a stateless execution of a block: nodes of the tries before it, codes, and headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExecutionWitness<'a> {
    /// Nodes of the account trie and of storage tries, RLP-encoded.
    pub state: Items<'a>,
    /// Codes of contracts.
    pub codes: Items<'a>,
    /// Headers of the preceding blocks, RLP-encoded, oldest first; the last one is the parent's.
    pub headers: Items<'a>,
}

impl<'a> ExecutionWitness<'a> {
    /// Reads `ExecutionWitness { state, codes, headers }` in SSZ.
    ///
    /// # Errors
    /// The first byte that cannot be part of a witness.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, SszError> {
        Self::read(Part::message(bytes, "witness")?)
    }

    /// Reads a witness that is part of a message.
    ///
    /// # Errors
    /// The first byte that cannot be part of a witness.
    pub fn read(part: Part<'a>) -> Result<Self, SszError> {
        let fields = ["state", "codes", "headers"].map(Field::Variable);
        let [state, codes, headers] = part.container(fields)?;
        let items = |part: Part<'a>| part.items(MAX_ITEMS, MAX_ITEM_BYTES);
        Ok(Self { state: items(state)?, codes: items(codes)?, headers: items(headers)? })
    }

    /// Returns the length of the encoding.
    pub fn encoded_len(&self) -> usize {
        [self.state, self.codes, self.headers]
            .iter()
            .map(|items| items.encoded().len() + OFFSET)
            .sum()
    }

    /// Encodes the witness.
    pub fn encode(&self) -> Vec<u8> {
        self.parts().concat()
    }

    /// Encodes the witness in parts, so that a large one need not be copied: offsets, then the three lists.
    pub fn parts(&self) -> [Cow<'a, [u8]>; 4] {
        let [state, codes, headers] = [self.state, self.codes, self.headers].map(Items::encoded);
        let head = Writer::new(Vec::with_capacity(3 * OFFSET), 3 * OFFSET);
        let starts = [0, state.len(), state.len() + codes.len()];
        let head = starts.into_iter().fold(head, |head, start| head.offset_to(3 * OFFSET + start));
        [head.end().into(), state.into(), codes.into(), headers.into()]
    }

    /// Appends the encoding to a message.
    pub fn write(&self, mut bytes: Vec<u8>) -> Vec<u8> {
        self.parts().iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    }
}

/// Encodes a witness from its items.
///
/// # Errors
/// If it has 4 GiB or more, which offsets do not reach. The limits of items are not checked: [`ExecutionWitness::decode`] does that.
pub fn encode_witness<'a, I>(state: I, codes: I, headers: I) -> Result<Vec<u8>, SszError>
where
    I: ExactSizeIterator<Item = &'a [u8]> + Clone,
{
    let length = |items: &I| items.clone().map(|item| item.len() + OFFSET).sum::<usize>() + OFFSET;
    let total = length(&state) + length(&codes) + length(&headers);
    // Before anything is written: items may come from JSON, whose lengths no offset has limited.
    crate::ssz::check_length(total, "witness")?;
    Ok(Writer::new(Vec::with_capacity(total), 3 * OFFSET)
        .offset()
        .offset()
        .offset()
        .variable(|bytes| write_items(bytes, state))
        .variable(|bytes| write_items(bytes, codes))
        .variable(|bytes| write_items(bytes, headers))
        .end())
}

/// A witness that owns its encoding, which was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedWitness(Vec<u8>);

impl EncodedWitness {
    /// Checks the encoding of a witness.
    ///
    /// # Errors
    /// The first byte that cannot be part of a witness.
    pub fn new(bytes: Vec<u8>) -> Result<Self, SszError> {
        ExecutionWitness::decode(&bytes)?;
        Ok(Self(bytes))
    }

    /// Returns the witness. Reads its offsets again, which takes a few nanoseconds per item.
    pub fn witness(&self) -> ExecutionWitness<'_> {
        ExecutionWitness::decode(&self.0).expect("the encoding was checked when it was made")
    }

    /// Returns the encoding in SSZ.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}
