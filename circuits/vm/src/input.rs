//! The input of a run.

use crate::address_space::{INPUT, OUTPUT};
use crate::isa::Isa;

/// The maximum number of private bytes behind some public words and the word with their number; none if these have no room.
pub(crate) fn room(public_words: usize) -> Option<usize> {
    // One word of the room holds the length.
    let words = ((OUTPUT - INPUT) / 4) as usize;
    Some(4 * words.checked_sub(public_words)?.checked_sub(1)?)
}

/// The input of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Input {
    /// The words that the verifier sees, at [`INPUT`](crate::INPUT).
    pub public: Vec<u32>,
    /// The bytes that it does not see: their number in a word, then the bytes, behind the public words. Of
    /// TinyRAM, tape 1, in words.
    pub private: Vec<u8>,
}

impl Input {
    /// The private bytes as words.
    pub(crate) fn tape(&self) -> impl Iterator<Item = u32> {
        self.private.chunks(4).map(|chunk| {
            let mut bytes = [0; 4];
            // The last word is filled up with zeros; the length says where the bytes end.
            bytes[..chunk.len()].copy_from_slice(chunk);
            u32::from_le_bytes(bytes)
        })
    }

    /// The words in memory behind the public ones.
    pub(crate) fn private_words(&self, isa: Isa) -> Vec<u32> {
        #[allow(clippy::cast_possible_truncation, reason = "`Machine::new` checks the size")]
        let length = self.private.len() as u32;
        match isa {
            Isa::Rv32im => std::iter::once(length).chain(self.tape()).collect(),
            // TinyRAM reads its private input from a tape.
            Isa::TinyRam => Vec::new(),
        }
    }

    /// All words in memory.
    pub(crate) fn words(&self, isa: Isa) -> impl Iterator<Item = u32> {
        self.public.iter().copied().chain(self.private_words(isa))
    }
}
