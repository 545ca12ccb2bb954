//! Values that leaves commit to: the last one, or all that a label has had.

use crate::hash::Digest;
use crate::key::{Commitment, Index, LabelError, MAX_VALUE, Opening};
use crate::leaf::Leaf;
use crate::read::{DecodeError, Reader};

/// The version of the format.
const VERSION: u8 = 1;

/// One value of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry {
    /// The value, with its salt.
    Value(Opening),
    /// A value that is erased, or kept back: the digest that the commitment has of it.
    Erased(Digest),
}

/// All values of a label, from version 0 on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History(pub Vec<Entry>);

/// The reason why values were rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A label or a value that no directory has.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// The leaf is another label's.
    #[error("the leaf is that of another label")]
    OtherLabel,
    /// The leaf has had more or fewer values.
    #[error("there are {found} values, and the leaf has had {expected}")]
    Count {
        /// The number in the history.
        found: usize,
        /// The leaf's version plus one.
        expected: u64,
    },
    /// The first value of a label has others before it.
    #[error("the leaf has version 0, and the value has others before it")]
    First,
    /// The values are not those of the leaf.
    #[error("the values are not those that the leaf commits to")]
    Commitment,
}

/// The value that a leaf has, without those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    /// The commitment to the values before it.
    pub before: Commitment,
    /// The value.
    pub opening: Opening,
}

impl Current {
    /// Checks that this is the value that a leaf commits to last.
    ///
    /// # Errors
    /// If it is not.
    pub fn verify(&self, label: &[u8], leaf: &Leaf) -> Result<(), HistoryError> {
        // A path proves the leaf of an index; this ties it to the label that the client asked for.
        if Index::of(label)? != leaf.index {
            return Err(HistoryError::OtherLabel);
        }
        // Only this keeps a server from hiding earlier values behind a leaf that claims to be the
        // first one.
        if leaf.version == 0 && self.before != Commitment::NONE {
            return Err(HistoryError::First);
        }
        match self.before.then(&self.opening.digest(label)?) == leaf.commitment {
            true => Ok(()),
            false => Err(HistoryError::Commitment),
        }
    }
}

impl History {
    /// Checks that these are all values that a leaf commits to, in their order; some or all of them may be
    /// [erased](Entry::Erased). That the leaf is the label's in some
    /// epoch is what a [`Path`](crate::Path) proves.
    ///
    /// # Errors
    /// If they are not.
    pub fn verify(&self, label: &[u8], leaf: &Leaf) -> Result<(), HistoryError> {
        if Index::of(label)? != leaf.index {
            return Err(HistoryError::OtherLabel);
        }
        let expected = u64::from(leaf.version) + 1;
        // The chain alone does not say how long it is: it would also open for a leaf with a wrong
        // version.
        if self.0.len() as u64 != expected {
            return Err(HistoryError::Count { found: self.0.len(), expected });
        }
        match self.commitment(label)? == leaf.commitment {
            true => Ok(()),
            false => Err(HistoryError::Commitment),
        }
    }

    /// The commitment to these values.
    ///
    /// # Errors
    /// If the label or a value has a length that none has.
    pub fn commitment(&self, label: &[u8]) -> Result<Commitment, LabelError> {
        self.0.iter().try_fold(Commitment::NONE, |before, entry| {
            Ok(before.then(&match entry {
                Entry::Value(opening) => opening.digest(label)?,
                Entry::Erased(digest) => *digest,
            }))
        })
    }

    /// The bytes: version; the number of values in 4 bytes; for each one 1, its salt, its length in 4 bytes and the
    /// value, or 0 and a digest.
    pub fn encode(&self) -> Vec<u8> {
        #[allow(clippy::cast_possible_truncation, reason = "versions are below 2^32")]
        let count = self.0.len() as u32;
        let mut out = vec![VERSION];
        out.extend(count.to_be_bytes());
        for entry in &self.0 {
            match entry {
                Entry::Value(Opening { salt, value }) => {
                    out.push(1);
                    out.extend(salt);
                    #[allow(clippy::cast_possible_truncation, reason = "values are below 2^17")]
                    out.extend((value.len() as u32).to_be_bytes());
                    out.extend(value);
                }
                Entry::Erased(digest) => {
                    out.push(0);
                    out.extend(digest);
                }
            }
        }
        out
    }

    /// Reads a history. Nothing of it is verified.
    ///
    /// # Errors
    /// If the bytes are not what [`encode`](Self::encode) writes.
    pub fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        reader.version(VERSION)?;
        let count = reader.u32("number of values")?;
        // Without a capacity: the count is untrusted, and a message of a few bytes could ask for
        // gigabytes.
        let mut entries = Vec::new();
        for _ in 0..count {
            entries.push(match reader.byte("values")? {
                0 => Entry::Erased(reader.array("values")?),
                1 => {
                    let salt = reader.array("values")?;
                    let length = reader.u32("values")? as usize;
                    if length > MAX_VALUE {
                        let why = format!("value has {length} bytes, at most {MAX_VALUE}");
                        return Err(DecodeError::Field(why));
                    }
                    Entry::Value(Opening { salt, value: reader.bytes(length, "values")?.to_vec() })
                }
                other => {
                    return Err(DecodeError::Field(format!("kind of value is {other}: 0 or 1")));
                }
            });
        }
        reader.end()?;
        Ok(Self(entries))
    }
}
