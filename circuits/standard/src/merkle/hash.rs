//! The digests of the tree, computed natively.

use crate::sha256::DIGEST;
use ark_ff::{BigInteger, PrimeField};
use hekaton_circuit::Fr;
use sha2::{Digest as _, Sha256};

/// The digest that stands in for a missing right child.
pub(super) const EMPTY: [u8; DIGEST] = [0; DIGEST];

/// The tag of a leaf's later iterations; messages of nodes end with the tags 0 to 3.
pub(super) const ITERATION_TAG: u8 = 4;

/// The kinds of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Leaf,
    FirstParent,
    InnerParent,
    Root,
}

impl NodeKind {
    pub(super) const fn tag(self) -> u8 {
        match self {
            Self::Leaf => 0,
            Self::FirstParent => 1,
            Self::InnerParent => 2,
            Self::Root => 3,
        }
    }
}

/// The digest of a leaf.
pub(super) fn leaf_digest(bytes: &[u8], iterations: usize) -> [u8; DIGEST] {
    // The tag is at the end: it separates kinds of nodes as well as at the beginning does, and leaves the
    // words of a digest in place.
    let first = Sha256::new().chain_update(bytes).chain_update([NodeKind::Leaf.tag()]).finalize();
    (1..iterations).fold(first.into(), |digest: [u8; DIGEST], _| {
        Sha256::new().chain_update(digest).chain_update([ITERATION_TAG]).finalize().into()
    })
}

/// The digest of a parent; the root also hashes the length of the file.
pub(super) fn node_digest(
    kind: NodeKind,
    left: &[u8; DIGEST],
    right: &[u8; DIGEST],
    length: Option<u64>,
) -> [u8; DIGEST] {
    let mut hasher = Sha256::new().chain_update(left).chain_update(right);
    if let Some(length) = length {
        hasher.update(length.to_be_bytes());
    }
    hasher.chain_update([kind.tag()]).finalize().into()
}

/// A digest from its halves; `None` unless each is below 2^128.
pub(super) fn join_halves(halves: &[Fr]) -> Option<[u8; DIGEST]> {
    let [high, low] = halves else { return None };
    let mut out = [0; DIGEST];
    for (chunk, half) in out.chunks_exact_mut(16).zip([high, low]) {
        let bytes = half.into_bigint().to_bytes_be();
        // A wire with a larger number is not half a digest; cut off, it would be that of another digest.
        let (zeros, value) = bytes.split_at(16);
        if zeros.iter().any(|b| *b != 0) {
            return None;
        }
        chunk.copy_from_slice(value);
    }
    Some(out)
}
