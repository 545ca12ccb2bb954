//! Reads execution witnesses of Ethereum blocks.
//!
//! A witness is the input of a stateless execution of a block: nodes of the state's tries, codes, headers ([`ExecutionWitness`]). It
//! is transmitted in SSZ ([`ssz`]), alone or with its block ([`Envelope`], [`Push`]). [`walk::Walk`] reads all nodes that hang from
//! the state root of the parent, which a header names ([`header`]).
//!
//! Nothing here trusts its input: messages have exactly one encoding, and so do nodes. The service that receives witnesses and the
//! circuit that proves them share this reader, so every witness that the service accepts can be proven.

mod envelope;
mod fork;
pub mod header;
mod payload;
mod push;
pub mod ssz;
pub mod trie;
pub mod walk;
mod witness;

pub use envelope::{Envelope, MAX_ENVELOPE};
pub use fork::{Amsterdam, Cancun, Fork};
pub use payload::{MAX_EXTRA_DATA, MAX_TRANSACTIONS, MAX_WITHDRAWALS, Payload, Withdrawal};
pub use push::{PUBLIC_KEY, Push};
pub use witness::{EncodedWitness, ExecutionWitness, MAX_ITEM_BYTES, MAX_ITEMS, encode_witness};

use sha3::{Digest as _, Keccak256};

/// The root of an empty trie: the Keccak-256 digest of [`EMPTY_NODE`].
pub const EMPTY_ROOT: [u8; 32] = [
    0x56, 0xe8, 0x1f, 0x17, 0x1b, 0xcc, 0x55, 0xa6, 0xff, 0x83, 0x45, 0xe6, 0x92, 0xc0, 0xf8, 0x6e,
    0x5b, 0x48, 0xe0, 0x1b, 0x99, 0x6c, 0xad, 0xc0, 0x01, 0x62, 0x2f, 0xb5, 0xe3, 0x63, 0xb4, 0x21,
];

/// The empty node: RLP of an empty string.
pub const EMPTY_NODE: &[u8] = &[0x80];

/// The hash of an account without a code: the Keccak-256 digest of the empty string.
pub const EMPTY_CODE: [u8; 32] = [
    0xc5, 0xd2, 0x46, 0x01, 0x86, 0xf7, 0x23, 0x3c, 0x92, 0x7e, 0x7d, 0xb2, 0xdc, 0xc7, 0x03, 0xc0,
    0xe5, 0x00, 0xb6, 0x53, 0xca, 0x82, 0x27, 0x3b, 0x7b, 0xfa, 0xd8, 0x04, 0x5d, 0x85, 0xa4, 0x70,
];

/// Returns the Keccak-256 digest, by which tries, headers and codes are named.
pub fn keccak(bytes: &[u8]) -> [u8; 32] {
    Keccak256::digest(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_digests() {
        assert_eq!(keccak(EMPTY_NODE), EMPTY_ROOT);
        assert_eq!(keccak(&[]), EMPTY_CODE);
    }
}
