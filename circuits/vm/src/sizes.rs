//! The sizes of subcircuits, and how many operations of each kind have room in one.

use crate::chips;
use crate::isa::Chip;
use crate::machine::REFRESH;
use crate::precompile::Precompile;
use crate::run::Run;
use crate::template::Template;
use crate::word::Word;
use hekaton_standard::{keccak, sha256};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The templates of all chips, and of refreshes.
static TEMPLATES: LazyLock<Vec<Template>> = LazyLock::new(|| {
    let chips = Chip::every().map(|chip| chips::template(chip, Word::RV32));
    chips.chain([chips::refresh(Word::RV32)]).collect()
});

/// The template of a chip.
pub(crate) fn template_of(chip: Chip) -> &'static Template {
    &TEMPLATES[chip.index()]
}

/// The template of refreshes.
pub(crate) fn refresh_template() -> &'static Template {
    &TEMPLATES[REFRESH]
}

/// The number of constraints of subcircuits, which all programs of a key family share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// The maximum number of constraints of a subcircuit, from 2^12; but one operation of a precompile, with
    /// up to 27,000, always has room in one of its kind.
    pub rows: usize,
}

impl Sizes {
    /// For tests: 2^12.
    pub const SMALL: Self = Self { rows: 1 << 12 };
    /// 2^17: 7,281 ADDI instructions in one subcircuit.
    pub const LARGE: Self = Self { rows: 1 << 17 };

    /// The number of items of a type with `slots` slots and `more` further rows, masks included.
    fn fit(self, rows_of_item: usize, slots: usize, more: usize) -> usize {
        // One row sums up the terms of shared wires; each slot has one, and the two masks of a zero-
        // knowledge key are slots.
        self.rows.saturating_sub(1 + slots + 2 + more) / rows_of_item
    }

    /// The number of instructions in a subcircuit of a chip.
    pub fn ops(self, chip: Chip) -> usize {
        let ops = self.fit(self.constraints(chip), 0, 0);
        // A precompile takes more rows than small subcircuits have; its type exceeds the size, so that
        // calls can be proven with any.
        if Precompile::of(chip).is_some() { ops.max(1) } else { ops }
    }

    /// The number of constraints of an instruction of a chip.
    pub fn constraints(self, chip: Chip) -> usize {
        match Precompile::of(chip) {
            Some(precompile) => self.of_precompile(precompile),
            None => template_of(chip).constraints(),
        }
    }

    pub(crate) fn refreshes(self) -> usize {
        self.fit(refresh_template().constraints(), 0, 0)
    }

    pub(crate) fn image(self) -> usize {
        self.fit(3, 0, 0)
    }

    /// The number of words of zero memory in a subcircuit.
    pub fn zero(self) -> usize {
        self.fit(5, 2, 2)
    }

    pub(crate) fn input(self) -> usize {
        self.fit(6, 0, 0)
    }

    /// The rows of a table in one subcircuit.
    pub(crate) fn table(self) -> usize {
        self.fit(1, 0, 0)
    }

    /// The number of constraints of all operations of a run, without those that fill up subcircuits:
    /// what remains are tables and the words of memory.
    pub fn constraints_of(self, run: &Run) -> u64 {
        let chips = Chip::every().map(|chip| self.constraints(chip) as u64 * run.count(chip));
        chips.sum::<u64>() + refresh_template().constraints() as u64 * run.refreshes()
    }
}

impl Sizes {
    /// The number of constraints of an operation of a precompile.
    fn of_precompile(self, precompile: Precompile) -> usize {
        let function = match precompile {
            Precompile::Sha256 => sha256::Tables::rows_of_compression(self.sha256_pieces()),
            Precompile::Keccak => keccak::Tables::rows_of_permutation(self.keccak_pieces()),
            // All of its rows are in the template.
            Precompile::MulMod256 | Precompile::MulMod384 => 0,
        };
        template_of(precompile.chip()).constraints() + function
    }

    /// Reports whether subcircuits are so large that tables of long pieces pay off.
    fn has_long_pieces(self) -> bool {
        // Tables of long pieces have 2^16 rows and more: in smaller subcircuits they would outweigh the
        // calls.
        self.rows >= 1 << 16
    }

    /// The maximum number of bits of pieces of words in SHA-256.
    pub(crate) fn sha256_pieces(self) -> usize {
        if self.has_long_pieces() { sha256::Tables::LARGE } else { sha256::Tables::SMALL }
    }

    /// Those of pieces of lanes in Keccak.
    pub(crate) fn keccak_pieces(self) -> keccak::Pieces {
        if self.has_long_pieces() { keccak::Pieces::LARGE } else { keccak::Pieces::SMALL }
    }
}
