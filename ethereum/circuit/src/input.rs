//! An execution witness as it is transmitted: SSZ of three lists of byte lists.

use crate::error::WitnessError;
use libssz::{SszDecode as _, SszEncode as _};
use libssz_derive::{SszDecode, SszEncode};
use libssz_types::SszList;
use sha3::{Digest as _, Keccak256};

/// Up to 2^20 items of up to 2^20 bytes (EIP-7748's limits, as nodes send them).
type Items = SszList<SszList<u8, { 1 << 20 }>, { 1 << 20 }>;

#[derive(SszEncode, SszDecode)]
struct Encoded {
    state: Items,
    codes: Items,
    headers: Items,
}

/// The input of a stateless execution of a block: nodes of the tries before it, codes, and headers, the last of which is the parent's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Witness {
    /// Nodes of the account trie and of storage tries, RLP.
    pub state: Vec<Vec<u8>>,
    /// Codes of contracts.
    pub codes: Vec<Vec<u8>>,
    /// Headers, RLP, oldest first.
    pub headers: Vec<Vec<u8>>,
}

impl Witness {
    /// Reads `ExecutionWitness { state, codes, headers }` in SSZ.
    ///
    /// # Errors
    /// If it is not one.
    pub fn decode(bytes: &[u8]) -> Result<Self, WitnessError> {
        let found = Encoded::from_ssz_bytes(bytes)
            .map_err(|error| WitnessError::Ssz(format!("{error:?}")))?;
        let items =
            |items: Items| items.iter().map(|item| item.iter().copied().collect()).collect();
        let Encoded { state, codes, headers } = found;
        Ok(Self { state: items(state), codes: items(codes), headers: items(headers) })
    }

    /// Returns the encoding in SSZ.
    ///
    /// # Errors
    /// If there are too many items, or they are too long.
    pub fn encode(&self) -> Result<Vec<u8>, WitnessError> {
        let bad = |error| WitnessError::Ssz(format!("{error:?}"));
        let items = |items: &[Vec<u8>]| {
            let items = items.iter().map(|item| SszList::try_from(item.clone()).map_err(bad));
            SszList::try_from(items.collect::<Result<Vec<_>, _>>()?).map_err(bad)
        };
        let encoded = Encoded {
            state: items(&self.state)?,
            codes: items(&self.codes)?,
            headers: items(&self.headers)?,
        };
        let mut bytes = Vec::new();
        encoded.ssz_append(&mut bytes);
        Ok(bytes)
    }

    /// Returns the parent's header.
    pub(crate) fn parent(&self) -> Result<&[u8], WitnessError> {
        self.headers.last().map(Vec::as_slice).ok_or(WitnessError::NoHeader)
    }
}

/// Returns the Keccak-256 digest.
pub(crate) fn keccak(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}
