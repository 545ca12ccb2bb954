//! Labels, their places in the tree, and commitments to the values that they have had.

use crate::hash::{DEPTH, Digest};
use sha2::{Digest as _, Sha256};

/// The maximum length of a label, in bytes. It has at least one.
pub const MAX_LABEL: usize = 1 << 10;

/// The maximum length of a value, in bytes.
pub const MAX_VALUE: usize = 1 << 16;

/// Random bytes that hide a value in its commitment.
pub type Salt = [u8; 32];

/// A label or a value of a length that none has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LabelError {
    /// The label is empty or too long.
    #[error("a label of {0} bytes: expected 1 to {MAX_LABEL}")]
    Label(usize),
    /// The value is too long.
    #[error("a value of {0} bytes: expected at most {MAX_VALUE}")]
    Value(usize),
}

/// The place of a label in the tree: 128 bits, the first of which says on which side of the root it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Index(pub [u8; 16]);

impl Index {
    /// The index of a label: the first half of `SHA-256("index" || label)`.
    ///
    /// # Errors
    /// If the label is empty or longer than [`MAX_LABEL`].
    pub fn of(label: &[u8]) -> Result<Self, LabelError> {
        check_label(label)?;
        let digest = Sha256::new().chain_update(b"index").chain_update(label).finalize();
        let mut index = [0; 16];
        index.copy_from_slice(&digest[..16]);
        Ok(Self(index))
    }

    /// Returns the side on which the index is below a node at a depth: `false` for the left one.
    ///
    /// # Panics
    /// If the depth is 128 or more.
    pub fn bit(&self, depth: usize) -> bool {
        self.0[depth / 8] >> (7 - depth % 8) & 1 == 1
    }

    /// The number of bits that two indices have in common, from the first one on.
    pub fn common(&self, other: &Self) -> usize {
        (0..DEPTH).find(|depth| self.bit(*depth) != other.bit(*depth)).unwrap_or(DEPTH)
    }
}

fn check_label(label: &[u8]) -> Result<(), LabelError> {
    match label.len() {
        1..=MAX_LABEL => Ok(()),
        length => Err(LabelError::Label(length)),
    }
}

/// A value with what opens it: without the salt, a commitment reveals nothing about its value.
#[derive(Clone, PartialEq, Eq)]
pub struct Opening {
    /// The salt.
    pub salt: Salt,
    /// The value.
    pub value: Vec<u8>,
}

impl std::fmt::Debug for Opening {
    /// Values may be secret: only the length is printed.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opening").field("bytes", &self.value.len()).finish_non_exhaustive()
    }
}

impl Opening {
    /// The digest of the value as one of this label: `SHA-256(salt || length of label, 4 bytes || label || value)`.
    ///
    /// # Errors
    /// If the label or the value has a length that none has.
    pub fn digest(&self, label: &[u8]) -> Result<Digest, LabelError> {
        check_label(label)?;
        if self.value.len() > MAX_VALUE {
            return Err(LabelError::Value(self.value.len()));
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most 2^10")]
        let length = (label.len() as u32).to_be_bytes();
        // Without the length, bytes could be moved from the label to the value, and one digest
        // would open for two labels.
        let hasher = Sha256::new().chain_update(self.salt).chain_update(length);
        Ok(hasher.chain_update(label).chain_update(&self.value).finalize().into())
    }
}

/// A commitment to all values that a label has had, in their order: a chain, so a history opens without the
/// epochs that it is of, and a value that is erased leaves its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Commitment(pub Digest);

impl Commitment {
    /// The commitment of a label that has had no value.
    pub const NONE: Self = Self([0; 32]);

    /// The commitment after one more value, of which this is the digest.
    #[must_use]
    pub fn then(&self, value: &Digest) -> Self {
        Self(Sha256::new().chain_update(self.0).chain_update(value).finalize().into())
    }
}
