//! Outputs of any number of bytes, of which a claim has the bytes themselves or a digest (spec: machine#output).

use crate::address_space::OUTPUT_WORDS;
use sha2::{Digest, Sha256};

/// The last word of an output in bytes, with its number of bytes or [`DIGEST`] in the lowest byte: "HKO" and a number.
const TAG: u32 = 0x4f4b_4800;

/// The number that says that the words are a digest.
const DIGEST: u8 = 0xff;

/// The maximum number of bytes that the words have themselves.
const INLINE: usize = 4 * (OUTPUT_WORDS - 1);

/// The meaning of the words of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// The words as a program wrote them one by one.
    Words([u32; OUTPUT_WORDS]),
    /// An output in bytes, at most 60.
    Bytes(Vec<u8>),
    /// The digest of an output in bytes.
    Digest {
        /// SHA-256 of the bytes.
        sha256: [u8; 32],
        /// The number of bytes.
        length: u32,
    },
}

impl Output {
    /// Reads the words of a claim.
    pub fn of(words: &[u32; OUTPUT_WORDS]) -> Self {
        let [content @ .., last] = words;
        let bytes: Vec<u8> = content.iter().flat_map(|word| word.to_le_bytes()).collect();
        let number = last.to_le_bytes()[0];
        let rest_is_zero = |from: usize| bytes[from..].iter().all(|byte| *byte == 0);
        match (last ^ u32::from(number) == TAG, usize::from(number)) {
            (true, length) if length <= INLINE && rest_is_zero(length) => {
                Self::Bytes(bytes[..length].to_vec())
            }
            (true, _) if number == DIGEST && rest_is_zero(36) => {
                let mut sha256 = [0; 32];
                sha256.copy_from_slice(&bytes[..32]);
                Self::Digest { sha256, length: content[8] }
            }
            // Whatever else they are: a program may write any words.
            _ => Self::Words(*words),
        }
    }

    /// Reports whether the output is these bytes. Words that a program wrote one by one are their bytes, of which zeros at
    /// the end may be left out.
    pub fn is(&self, bytes: &[u8]) -> bool {
        match self {
            Self::Words(words) => {
                let mut own = words.iter().flat_map(|word| word.to_le_bytes());
                let same = bytes.iter().all(|byte| own.next() == Some(*byte));
                same && own.all(|byte| byte == 0)
            }
            Self::Bytes(own) => own == bytes,
            Self::Digest { sha256, length } => {
                usize::try_from(*length) == Ok(bytes.len()) && *sha256 == *Sha256::digest(bytes)
            }
        }
    }
}
