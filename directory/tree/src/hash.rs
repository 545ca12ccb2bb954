//! The hash functions of the tree's profiles.

use sha2::digest::generic_array::GenericArray;
use sha2::{Digest as _, Sha256};
use std::sync::LazyLock;

/// A digest of 32 bytes. In the tree, the last bit says what it is of: 1 of a leaf, 0 of an inner node.
pub type Digest = [u8; 32];

/// The digest of a place without a leaf; where leaves move up, of every subtree without leaves. The root of an empty tree
/// is another one with [`Profile::Full`].
pub const EMPTY: Digest = [0; 32];

/// The number of bits of an index, and so the largest depth.
pub(crate) const DEPTH: usize = 128;

/// The initial state of SHA-256 (FIPS 180-4, section 5.3.3).
const IV: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// The way a tree is hashed. It is a parameter of a directory and never changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// SHA-256's compression function with its initial state, one block per node. A subtree of one leaf is that leaf.
    Compress,
    /// SHA-256, two blocks a node. A subtree of one leaf is that leaf.
    Sha256,
    /// SHA-256, and every leaf is at depth 128, as in the paper.
    Full,
}

impl Profile {
    /// All profiles.
    pub const ALL: [Self; 3] = [Self::Compress, Self::Sha256, Self::Full];

    /// The name, as in parameters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compress => "compress",
            Self::Sha256 => "sha256",
            Self::Full => "full",
        }
    }

    /// The number of the profile in encodings.
    pub fn number(self) -> u8 {
        match self {
            Self::Compress => 0,
            Self::Sha256 => 1,
            Self::Full => 2,
        }
    }

    /// The profile with a number.
    pub fn of_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.number() == number)
    }

    /// Reports whether a subtree of one leaf is that leaf.
    pub fn collapses(self) -> bool {
        self != Self::Full
    }

    /// The digest of two others, of all bits.
    pub fn combine(self, left: &Digest, right: &Digest) -> Digest {
        if self != Self::Compress {
            return Sha256::new().chain_update(left).chain_update(right).finalize().into();
        }
        // All messages have 64 bytes, so padding would add a second block and no security: 90,560
        // rows instead of 52,128 for two hashes in a proof (docs/spec/11-directory.md).
        let mut block = GenericArray::default();
        block[..32].copy_from_slice(left);
        block[32..].copy_from_slice(right);
        let mut state = IV;
        sha2::compress256(&mut state, &[block]);
        let mut digest = EMPTY;
        for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        digest
    }

    /// The digest of an inner node: the last bit is 0.
    pub(crate) fn node(self, left: &Digest, right: &Digest) -> Digest {
        let mut digest = self.combine(left, right);
        // Without this bit, a node could be presented as a leaf that consists of two digests.
        digest[31] &= 0xfe;
        digest
    }

    /// The digest of a subtree without leaves that begins at a depth.
    pub fn empty(self, depth: usize) -> Digest {
        // A path of this profile asks for the digest at almost every depth, so all of them are
        // computed once.
        static FULL: LazyLock<Vec<Digest>> = LazyLock::new(|| {
            let above = |below: &Digest| Some(Profile::Full.node(below, below));
            std::iter::successors(Some(EMPTY), above).take(DEPTH + 1).collect()
        });
        if self.collapses() { EMPTY } else { FULL[DEPTH - depth.min(DEPTH)] }
    }
}

/// Reports whether a digest is that of a leaf.
pub(crate) fn is_leaf(digest: &Digest) -> bool {
    digest[31] & 1 == 1
}
