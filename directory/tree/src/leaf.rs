//! The leaves of the tree.

use crate::hash::{DEPTH, Digest, Profile};
use crate::key::{Commitment, Index};
use crate::read::{DecodeError, Reader};

/// The entry of the tree for a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// The place.
    pub index: Index,
    /// The number of times that the value was changed.
    pub version: u32,
    /// The epoch that ended with the change: the record of the one after it is the first that has it.
    pub epoch: u32,
    /// The values.
    pub commitment: Commitment,
}

impl Leaf {
    /// The number of bytes of a leaf.
    pub const LENGTH: usize = 16 + 4 + 4 + 32;

    /// The bytes: index, version, epoch, commitment. Numbers are big-endian.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [0; Self::LENGTH];
        bytes[..16].copy_from_slice(&self.index.0);
        bytes[16..20].copy_from_slice(&self.version.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.epoch.to_be_bytes());
        bytes[24..].copy_from_slice(&self.commitment.0);
        bytes
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.encode());
    }

    /// Reads a leaf from an encoding that has more.
    ///
    /// # Errors
    /// If it is cut off.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            index: Index(reader.array("leaf")?),
            version: reader.u32("leaf")?,
            epoch: reader.u32("leaf")?,
            commitment: Commitment(reader.array("leaf")?),
        })
    }

    /// The digest: of index, version, epoch, eight zero bytes, and the commitment. Its last bit is 1.
    pub fn digest(&self, profile: Profile) -> Digest {
        // The eight bytes that say nothing stay zero, which the circuit demands: a leaf has only
        // one encoding.
        let mut left = [0; 32];
        left[..16].copy_from_slice(&self.index.0);
        left[16..20].copy_from_slice(&self.version.to_be_bytes());
        left[20..24].copy_from_slice(&self.epoch.to_be_bytes());
        let mut digest = profile.combine(&left, &self.commitment.0);
        // No node has this bit, so a leaf can never be presented as a node with two sides.
        digest[31] |= 1;
        digest
    }

    /// The digest of a subtree that begins at a depth and has this leaf alone.
    pub(crate) fn digest_at(&self, profile: Profile, depth: usize) -> Digest {
        let digest = self.digest(profile);
        if profile.collapses() {
            return digest;
        }
        (depth..DEPTH).rev().fold(digest, |below, above| {
            let other = profile.empty(above + 1);
            match self.index.bit(above) {
                false => profile.node(&below, &other),
                true => profile.node(&other, &below),
            }
        })
    }
}
