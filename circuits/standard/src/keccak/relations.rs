//! The relations of the permutation by look-ups: what each sum is split into, and in which pieces.
//!
//! | sum | digits | split into |
//! |---|---|---|
//! | column of theta, five lanes | 0..5 | `p + 2 q`, p in {0, 1}, q in {0, 1, 2} |
//! | lane after theta, three lanes; absorption, two | 0..3 | `p + 2 q`, both in {0, 1} |
//! | chi, `3 - 2 a + b - c` | 0..4 | `r - 2 o`, o in {0, 1}, r in {0, 3, 4} |
//!
//! Each digit of a sum is split in one way only, also modulo 7, and all numbers are below `6 * 7^64`, which
//! is below r. So a relation in the field is one of integers, and splits them digit by digit.

use super::{LANE, ROTATIONS, round_constants};
use std::collections::BTreeSet;
use std::ops::Range;

/// The base of lanes.
pub(super) const BASE: u64 = 7;

/// The digits that a piece may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Alphabet {
    /// The digits that remain: bits.
    Binary,
    /// The digits that a column drops.
    Ternary,
    /// The digits that chi drops.
    Chi,
}

impl Alphabet {
    pub(super) fn digits(self) -> &'static [u64] {
        match self {
            Self::Binary => &[0, 1],
            Self::Ternary => &[0, 1, 2],
            Self::Chi => &[0, 3, 4],
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Ternary => "ternary",
            Self::Chi => "chi",
        }
    }

    /// All numbers of `len` digits.
    pub(super) fn numbers(self, len: usize) -> Vec<u64> {
        (0..len).fold(vec![0], |numbers, _| {
            let with =
                |number: &u64| self.digits().iter().map(|digit| number * BASE + digit).collect();
            numbers.iter().flat_map(|number| -> Vec<u64> { with(number) }).collect()
        })
    }
}

/// The maximum number of digits of a piece. Larger pieces need fewer rows, and tables of more rows. Values
/// above 20 binary or 12 ternary digits are clamped: a number of 23 digits exceeds 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The maximum of pieces with two possible digits: tables of up to `2^binary` rows.
    pub binary: usize,
    /// The maximum of pieces with three possible digits: tables of up to `3^ternary` rows.
    pub ternary: usize,
}

impl Pieces {
    /// 16 and 10: 13,534 rows for a permutation, 249,328 for all tables.
    pub const LARGE: Self = Self { binary: 16, ternary: 10 };
    /// 8 and 5, for a few permutations: 25,474 rows for one, 1,156 for all tables.
    pub const SMALL: Self = Self { binary: 8, ternary: 5 };

    pub(super) fn longest(self, alphabet: Alphabet) -> usize {
        match alphabet {
            Alphabet::Binary => self.binary.clamp(1, 20),
            Alphabet::Ternary | Alphabet::Chi => self.ternary.clamp(1, 12),
        }
    }

    /// The pieces of a lane with cuts at some digits.
    pub(super) fn cut(self, alphabet: Alphabet, cuts: &[usize]) -> Vec<Range<usize>> {
        let ends: BTreeSet<usize> =
            cuts.iter().copied().chain([LANE]).filter(|end| *end > 0).collect();
        let (mut start, mut pieces) = (0, Vec::new());
        for end in ends {
            while start < end {
                let next = end.min(start + self.longest(alphabet));
                pieces.push(start..next);
                start = next;
            }
        }
        pieces
    }

    /// All kinds of pieces but bits, which need no table.
    pub(super) fn kinds(self) -> BTreeSet<(Alphabet, usize)> {
        // A lane is cut where a rotation wraps around: its pieces then move to other places, and no row is
        // needed.
        let rotations = ROTATIONS.iter().map(|rotation| vec![LANE - rotation]);
        let constants = round_constants().into_iter().map(cuts_of_iota);
        let cuts = rotations.chain(constants).chain([vec![LANE - 1], vec![]]);
        let binary = cuts.map(|cuts| (Alphabet::Binary, cuts));
        let others = [(Alphabet::Ternary, vec![]), (Alphabet::Chi, vec![])];
        let pieces = binary.chain(others).flat_map(|(alphabet, cuts)| {
            self.cut(alphabet, &cuts).into_iter().map(move |piece| (alphabet, piece.len()))
        });
        pieces.filter(|kind| *kind != (Alphabet::Binary, 1)).collect()
    }
}

/// The cuts around the bits that iota flips: a bit of its own can be flipped by a linear combination.
pub(super) fn cuts_of_iota(constant: u64) -> Vec<usize> {
    let flipped = (0..LANE).filter(|i| constant >> i & 1 == 1);
    flipped.flat_map(|i| [i, i + 1]).collect()
}
