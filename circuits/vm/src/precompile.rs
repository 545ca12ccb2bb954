//! Precompiles: functions of many words that a program calls with an ECALL, in place of thousands of
//! instructions (spec: machine#precompiles).

use crate::isa::Chip;
use crate::mulmod;

/// A function that an ECALL computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Precompile {
    /// The compression function of SHA-256: of the state at a0 and the block at a1.
    Sha256,
    /// Keccak-f\[1600\] of the state at a0.
    Keccak,
    /// a b + c mod m at a0, of the numbers at a1 to a4, which have 256 bits.
    MulMod256,
    /// The same on numbers of 384 bits.
    MulMod384,
}

/// The number and the memory accesses of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    /// The number of the call, in a7.
    pub(crate) number: u32,
    /// The number of words that it reads and writes, from the address in a0.
    pub(crate) changed: usize,
    /// The numbers of words that it reads, from the addresses in a1 and the registers after it.
    pub(crate) read: &'static [usize],
}

impl Call {
    /// The number of words that it accesses.
    pub(crate) fn words(&self) -> usize {
        self.changed + self.read.iter().sum::<usize>()
    }

    /// The number of accesses of an operation: its words, then the registers from a2 on.
    pub(crate) fn accesses(&self) -> usize {
        self.words() + self.read.len().saturating_sub(1)
    }

    /// The number of cycles that it takes: in each it accesses one operand, the words that it changes in the last one.
    #[allow(clippy::cast_possible_truncation, reason = "at most four operands are read")]
    pub(crate) fn cycles(&self) -> u32 {
        1 + self.read.len() as u32
    }
}

impl Chip {
    /// The number of cycles of an operation.
    pub(crate) fn cycles(self) -> u32 {
        Precompile::of(self).map_or(1, |precompile| precompile.call().cycles())
    }
}

impl Precompile {
    pub(crate) const ALL: [Self; 4] =
        [Self::Sha256, Self::Keccak, Self::MulMod256, Self::MulMod384];

    /// The precompile whose chip this is.
    pub(crate) fn of(chip: Chip) -> Option<Self> {
        Self::ALL.into_iter().find(|precompile| precompile.chip() == chip)
    }

    /// The precompile that a call with this number is for. Linux has no such calls and returns an error, so a
    /// program can detect that and continue without them.
    pub(crate) fn of_call(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|precompile| precompile.call().number == number)
    }

    pub(crate) fn chip(self) -> Chip {
        match self {
            Self::Sha256 => Chip::Sha256,
            Self::Keccak => Chip::Keccak,
            Self::MulMod256 => Chip::MulMod256,
            Self::MulMod384 => Chip::MulMod384,
        }
    }

    pub(crate) fn call(self) -> Call {
        match self {
            // Above all of Linux's own calls, of which there are about 450.
            Self::Sha256 => Call { number: 1001, changed: 8, read: &[16] },
            Self::Keccak => Call { number: 1002, changed: 50, read: &[] },
            Self::MulMod256 => Call { number: 1003, changed: 8, read: &[8; 4] },
            Self::MulMod384 => Call { number: 1004, changed: 12, read: &[12; 4] },
        }
    }

    /// Returns the words that the function changes, from all words that it accesses; those that it changes come first.
    /// `None` if it has no result.
    pub(crate) fn compute(self, words: &[u32]) -> Option<Vec<u32>> {
        Some(match self {
            Self::Sha256 => {
                let mut state = [0; 8];
                state.copy_from_slice(&words[..8]);
                // The words are the message's bytes as a little-endian machine has them, while SHA-256
                // reads big-endian words: the gadget swaps, so that programs need not.
                let mut block = sha2::digest::generic_array::GenericArray::default();
                for (bytes, word) in block.chunks_exact_mut(4).zip(&words[8..]) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                sha2::compress256(&mut state, &[block]);
                state.to_vec()
            }
            Self::Keccak => {
                let mut lanes = [0; 25];
                for (lane, words) in lanes.iter_mut().zip(words.chunks_exact(2)) {
                    *lane = u64::from(words[0]) | u64::from(words[1]) << 32;
                }
                ::keccak::f1600(&mut lanes);
                #[allow(clippy::cast_possible_truncation, reason = "halves of lanes")]
                let halves = |lane: &u64| [*lane as u32, (lane >> 32) as u32];
                lanes.iter().flat_map(halves).collect()
            }
            Self::MulMod256 | Self::MulMod384 => return mulmod::remainder(words),
        })
    }
}
