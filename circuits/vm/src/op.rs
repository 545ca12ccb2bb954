//! One operation of a chip: the values from which all of its committed values follow.

use serde::{Deserialize, Serialize};

/// One operation: an instruction that was executed, or a refresh of a register. The default is what fills up
/// a subcircuit: nothing happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Op {
    // False by default: what fills up a subcircuit takes and gives nothing.
    pub(crate) enabled: bool,
    /// The cycle, from 1; of a refresh, the time of the register's cell.
    pub(crate) time: u64,
    pub(crate) pc: u32,
    /// The instruction of the chip.
    pub(crate) variant: u8,
    pub(crate) rs1: u8,
    pub(crate) rs2: u8,
    pub(crate) rd: u8,
    /// The bits [`FLAG`] and [`END`], for TinyRAM.
    pub(crate) bits: u8,
    pub(crate) imm: u32,
    /// The values of rs1 and rs2, and what rd had before.
    pub(crate) x: u32,
    pub(crate) y: u32,
    pub(crate) old: u32,
    /// The time since the last access to each of the three, in ticks less one.
    pub(crate) gaps: [u16; 3],
    /// The word in memory before, and how many cycles ago, less one, it was accessed. Without an access to
    /// memory, the word of a tape, and the gap of TinyRAM's flag, in ticks less one.
    pub(crate) word: u32,
    pub(crate) word_gap: u32,
}

/// One word of memory that a precompile accesses. The default is what fills up a subcircuit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    /// The values of the word before and after.
    pub(crate) before: u32,
    pub(crate) after: u32,
    /// The time since the last access, in cycles less one.
    pub(crate) gap: u32,
}

/// A bit of an operation: what the flag was before it.
pub(crate) const FLAG: u8 = 1;

/// A bit of an operation: whether the tape is at its end after it.
pub(crate) const END: u8 = 2;

/// The lower half of a word.
pub(crate) fn low(word: u32) -> i128 {
    i128::from(word & 0xffff)
}

/// The upper bit of a word.
pub(crate) fn sign(word: u32) -> i128 {
    i128::from(word >> 31)
}

impl Op {
    /// Returns 1 if a number is the variant, and 0 otherwise.
    pub(crate) fn is(&self, variant: u8) -> i128 {
        i128::from(self.variant == variant)
    }

    /// Returns the flag before the operation.
    pub(crate) fn flag(&self) -> bool {
        self.bits & FLAG != 0
    }

    /// The second operand: the register's, or the immediate. One of the two is zero.
    pub(crate) fn operand(&self) -> u32 {
        // The decoder leaves one of the two zero, so this is a choice and not a sum.
        self.y.wrapping_add(self.imm)
    }

    /// The address of an access, or the target of an indirect jump.
    pub(crate) fn address(&self) -> u32 {
        self.x.wrapping_add(self.imm)
    }

    /// The half of the word in memory, and its byte, at the address.
    pub(crate) fn part(&self) -> [u32; 2] {
        let half = self.word >> (16 * (self.address() >> 1 & 1)) & 0xffff;
        [half, half >> (8 * (self.address() & 1)) & 0xff]
    }
}
