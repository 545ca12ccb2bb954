//! The number of strings in a subcircuit, and the number of subcircuits.

use hekaton_standard::keccak::{Pieces, Tables};
use serde::{Deserialize, Serialize};

/// The number of rows of one subcircuit of a table.
const TABLE: usize = 3 * (1 << 14) - 3;

/// The capacity of one subcircuit of each type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Branches all of whose children are hashes.
    pub branches: usize,
    /// Leaves and extensions of one block.
    pub leaves: usize,
    /// Blocks of codes.
    pub codes: usize,
    /// Branches of a mixed subcircuit, which contain some of their children.
    pub mixed_branches: usize,
    /// Leaves of two blocks of a mixed subcircuit.
    pub mixed_leaves: usize,
    /// The pieces of the Keccak tables.
    pub pieces: Pieces,
}

impl Sizes {
    // One more string of any kind would exceed the domain of 2^18 rows: branches take 254,037 rows, leaves 249,669, codes 253,566, and
    // mixed strings 240,032 (`rows_are_these`).
    /// Up to 2^18 rows.
    pub const LARGE: Self = Self {
        branches: 4,
        leaves: 15,
        codes: 16,
        mixed_branches: 2,
        mixed_leaves: 3,
        pieces: Pieces::LARGE,
    };
    /// For tests: small tables, and one or two strings of each kind.
    pub const SMALL: Self = Self {
        branches: 1,
        leaves: 2,
        codes: 2,
        mixed_branches: 1,
        mixed_leaves: 1,
        pieces: Pieces::SMALL,
    };

    /// The number of rows of one subcircuit of a table, at most.
    pub(crate) fn table(self) -> usize {
        TABLE
    }

    /// The number of subcircuits that hold the tables.
    pub(crate) fn tables(self) -> usize {
        Tables::rows_of_each(self.pieces).into_iter().map(|rows| rows.div_ceil(TABLE)).sum()
    }
}

/// The number of subcircuits of each type. Any numbers prove the same statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Subcircuits of [`Sizes::branches`].
    pub branches: usize,
    /// Subcircuits of [`Sizes::leaves`].
    pub leaves: usize,
    /// Subcircuits of [`Sizes::codes`].
    pub codes: usize,
    /// Subcircuits of mixed strings.
    pub mixed: usize,
}

impl Counts {
    pub(crate) fn all(self) -> [(&'static str, usize); 4] {
        let Self { branches, leaves, codes, mixed } = self;
        [("branches", branches), ("leaves", leaves), ("codes", codes), ("mixed", mixed)]
    }

    /// Rounds each number up to a power of two or three times one (1, 2, 3, 4, 6, 8, 12 and so on), so that there are few different
    /// layouts. Spare subcircuits prove nothing.
    #[must_use]
    pub fn on_the_ladder(self) -> Self {
        let Self { branches, leaves, codes, mixed } = self;
        let [branches, leaves, codes, mixed] = [branches, leaves, codes, mixed].map(rung);
        Self { branches, leaves, codes, mixed }
    }
}

/// Returns the next number that is a power of two or three times one.
fn rung(count: usize) -> usize {
    let power = count.next_power_of_two();
    // With these steps in between, less than a third of the subcircuits are spare. With powers of
    // two alone, it would be almost half.
    let less = power / 4 * 3;
    if count == 0 {
        0
    } else if less >= count {
        less
    } else {
        power
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_has_two_rungs_an_octave() {
        let rungs: Vec<usize> = (0..14).map(rung).collect();
        assert_eq!(rungs, [0, 1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 12, 12, 16]);
    }
}
