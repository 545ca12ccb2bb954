//! Bounds of what a prover chooses, which a verifier checks before keys are derived (spec: machine#bounds).

use crate::address_space::{INPUT, OUTPUT};
use crate::circuit::{MAX_PUBLIC, MachineCircuit, image_end};
use crate::input;
use crate::isa::Isa;
use crate::sizes::Sizes;

/// The largest size of a subcircuit.
const MAX_ROWS: usize = 1 << 28;

/// The maximum number of cycles of operations of all chips, and of refreshes, those that fill up subcircuits
/// included: cycles are below 2^32.
const MAX_CYCLES_OF_OPERATIONS: u128 = (1 << 32) - 2;

/// A circuit that is not one of a program's run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BoundsError {
    /// Subcircuits are too small or too large.
    #[error("subcircuits have {0} rows, expected 2^12 to 2^28")]
    Rows(usize),
    /// There are too many public words.
    #[error("too many public words: {0}, at most 2^20")]
    PublicWords(usize),
    /// There are numbers for the chips of another instruction set.
    #[error("counts: for {found} kinds of instructions, expected {expected}")]
    Chips {
        /// The number that was found.
        found: usize,
        /// The number of chips.
        expected: usize,
    },
    /// The chain of memory that is zero at the beginning has no end.
    #[error("counts: no subcircuits of zero memory, expected at least one")]
    NoZero,
    /// RV32IM has its input in memory.
    #[error(
        "counts: no subcircuits of input, expected at least one: RV32IM has its input in memory"
    )]
    NoInput,
    /// TinyRAM has it on a tape.
    #[error("counts: {0} subcircuits of input, expected 0: TinyRAM has its input on a tape")]
    Tape(usize),
    /// Times would not be below 2^32.
    #[error(
        "room for {found} cycles of operations, refreshes included, at most {MAX_CYCLES_OF_OPERATIONS}"
    )]
    Operations {
        /// The cycles of the operations that have room; a refresh counts as one.
        found: u128,
    },
    /// Cells of the input reach the output.
    #[error("an input with room for {found} private bytes reaches the output: at most {most}")]
    Input {
        /// The private bytes that have room.
        found: u128,
        /// The maximum.
        most: usize,
    },
    /// Cells of zero memory reach the input.
    #[error("{found} words of zero memory, at most {most} between the program and its input")]
    Zero {
        /// The words that have cells.
        found: u128,
        /// The maximum.
        most: u32,
    },
}

impl Sizes {
    /// The maximum number of private bytes behind some public words: cells of words come in whole subcircuits, all of which
    /// are below the output.
    pub fn private_room(self, isa: Isa, public_words: usize) -> usize {
        let Some(room) = input::room(public_words) else { return 0 };
        match isa {
            // The word with the length is among the cells.
            Isa::Rv32im => {
                let (cells, whole) = (room / 4 + 1, self.input().max(1));
                4 * (cells / whole * whole).saturating_sub(1)
            }
            // A tape has no cells; its words are the results of `read`.
            Isa::TinyRam => room,
        }
    }
}

impl MachineCircuit {
    /// The first word of the private input.
    pub(crate) fn private_start(&self) -> u64 {
        u64::from(INPUT / 4) + self.public_words as u64
    }

    /// Checks what a verifier must not take from a prover. [`layout`](hekaton_circuit::Circuit::layout) does it, too.
    ///
    /// # Errors
    /// If subcircuits or their counts are out of bounds.
    pub fn check(&self) -> Result<(), BoundsError> {
        let Self { program, sizes, counts, public_words, .. } = self;
        // All of this comes with a proof, from anyone. Each bound is checked before a table or a subcircuit
        // is allocated for it.
        if !(Sizes::SMALL.rows..=MAX_ROWS).contains(&sizes.rows) {
            return Err(BoundsError::Rows(sizes.rows));
        }
        if *public_words > MAX_PUBLIC {
            return Err(BoundsError::PublicWords(*public_words));
        }
        let (found, expected) = (counts.chips.len(), program.isa().chips().len());
        if found != expected {
            return Err(BoundsError::Chips { found, expected });
        }
        if counts.zero == 0 {
            return Err(BoundsError::NoZero);
        }
        match (program.isa(), counts.input) {
            (Isa::Rv32im, 0) => return Err(BoundsError::NoInput),
            (Isa::TinyRam, found @ 1..) => return Err(BoundsError::Tape(found)),
            _ => {}
        }
        // Rises of the keys of registers are bounded by that, so that a register's digit is that of the
        // program's row. Refreshes raise them, too (spec: machine#registers).
        let refreshes = counts.refresh as u128 * sizes.refreshes() as u128;
        let cycles = program
            .isa()
            .chips()
            .iter()
            .map(|chip| {
                let operations = counts.chips[chip.place()] as u128 * sizes.ops(*chip) as u128;
                operations * u128::from(chip.cycles())
            })
            .fold(refreshes, u128::saturating_add);
        if cycles > MAX_CYCLES_OF_OPERATIONS {
            return Err(BoundsError::Operations { found: cycles });
        }
        // A cell of the input at the output's address would be a second cell of that word.
        let cells = counts.input as u128 * sizes.input() as u128;
        if u128::from(self.private_start()) + cells > u128::from(OUTPUT / 4) {
            let most = sizes.private_room(program.isa(), *public_words);
            return Err(BoundsError::Input { found: 4 * cells.saturating_sub(1), most });
        }
        let zero_words = counts.zero as u128 * sizes.zero() as u128;
        // With the largest subcircuits, those of the image alone may reach the input.
        let most = (INPUT / 4).saturating_sub(image_end(program, *sizes));
        if zero_words > u128::from(most) {
            return Err(BoundsError::Zero { found: zero_words, most });
        }
        Ok(())
    }
}
