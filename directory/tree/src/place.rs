//! Positions of subtrees.

use crate::hash::DEPTH;
use crate::key::Index;
use crate::read::{DecodeError, Reader};

/// The position of a subtree: its depth, and the bits on the way there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    depth: u8,
    /// The bits on the way there, and zeros.
    prefix: Index,
}

/// A part of a tree that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the part of the tree at depth {} is not in memory", .0.depth)]
pub struct Away(pub Place);

impl Place {
    /// The root.
    pub const ROOT: Self = Self { depth: 0, prefix: Index([0; 16]) };

    /// The number of bytes of a place.
    pub const LENGTH: usize = 17;

    /// The place at a depth on the way to an index.
    pub fn of(index: &Index, depth: usize) -> Self {
        let clamped = depth.min(DEPTH);
        // At depth 0 the shift is by 128 bits, which `<<` does not allow.
        let mask = u128::MAX.checked_shl(u32::try_from(DEPTH - clamped).unwrap_or(0)).unwrap_or(0);
        let prefix = (u128::from_be_bytes(index.0) & mask).to_be_bytes();
        #[allow(clippy::cast_possible_truncation, reason = "at most 128")]
        Self { depth: clamped as u8, prefix: Index(prefix) }
    }

    /// The same depth below the other side of a node further down.
    pub(crate) fn right(&self, depth: usize) -> Self {
        let mut place = *self;
        place.prefix.0[depth / 8] |= 1 << (7 - depth % 8);
        place
    }

    /// The number of steps from the root.
    pub fn depth(&self) -> usize {
        usize::from(self.depth)
    }

    /// The first index below the place.
    pub fn prefix(&self) -> Index {
        self.prefix
    }

    /// The bytes: those of places deeper in the tree come later.
    pub fn encode(&self) -> [u8; Self::LENGTH] {
        let mut bytes = [self.depth; Self::LENGTH];
        bytes[1..].copy_from_slice(&self.prefix.0);
        bytes
    }

    /// Reads a place.
    ///
    /// # Errors
    /// If it is not a place.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let place = Self::read(&mut reader)?;
        reader.end()?;
        Ok(place)
    }

    /// Reads a place from an encoding that has more.
    ///
    /// # Errors
    /// If it is not a place.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let depth = usize::from(reader.byte("place")?);
        let prefix = Index(reader.array("place")?);
        let place = Self::of(&prefix, depth);
        // Bits past the depth would give one subtree several keys in the database.
        match depth <= DEPTH && place.prefix == prefix {
            true => Ok(place),
            false => Err(DecodeError::Field("place has a prefix longer than its depth".into())),
        }
    }
}
