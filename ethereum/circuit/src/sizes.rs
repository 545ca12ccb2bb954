//! How many strings a subcircuit holds, and how many subcircuits there are.

use hekaton_standard::keccak::{Pieces, Tables};
use serde::{Deserialize, Serialize};

/// The number of rows of one subcircuit of a table.
const TABLE: usize = 3 * (1 << 14) - 3;

/// What one subcircuit of each type holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Branches all of whose children are hashes.
    pub branches: usize,
    /// Leaves and extensions of one block.
    pub leaves: usize,
    /// Blocks of codes.
    pub codes: usize,
    /// In a mixed one, branches that contain some of their children.
    pub mixed_branches: usize,
    /// In a mixed one, leaves of two blocks.
    pub mixed_leaves: usize,
    /// The pieces of the Keccak tables.
    pub pieces: Pieces,
}

impl Sizes {
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

/// How many subcircuits of each type there are. Any numbers prove the same statement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Of [`Sizes::branches`].
    pub branches: usize,
    /// Of [`Sizes::leaves`].
    pub leaves: usize,
    /// Of [`Sizes::codes`].
    pub codes: usize,
    /// Of mixed ones.
    pub mixed: usize,
}

impl Counts {
    pub(crate) fn all(self) -> [(&'static str, usize); 4] {
        let Self { branches, leaves, codes, mixed } = self;
        [("branches", branches), ("leaves", leaves), ("codes", codes), ("mixed", mixed)]
    }

    /// The same or more: numbers with at most two binary digits of their own, 1, 2, 3, 4, 6, 8, 12 and so on, so that there are few
    /// different layouts. Spare subcircuits prove nothing.
    #[must_use]
    pub fn on_the_ladder(self) -> Self {
        let Self { branches, leaves, codes, mixed } = self;
        let [branches, leaves, codes, mixed] = [branches, leaves, codes, mixed].map(rung);
        Self { branches, leaves, codes, mixed }
    }
}

/// The next number that is a power of two or three times one.
fn rung(count: usize) -> usize {
    let power = count.next_power_of_two();
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
