//! The tables of the gadget, and how many rows they and a permutation take.

use super::WORD;
use crate::keccak::relations::{Alphabet, Pieces, cuts_of_iota};
use crate::keccak::{LANE, ROTATIONS, ROUNDS, round_constants};
use hekaton_circuit::{Fr, Table, TableId};
use std::collections::{BTreeMap, BTreeSet};

/// The tables of a layout that the gadget looks pieces up in: one for each length, because a piece that
/// is looked up among longer ones could hide a carry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tables {
    pub(super) pieces: Pieces,
    pub(super) ids: BTreeMap<(Alphabet, usize), TableId>,
    /// The tables from pieces of words to numbers, by length.
    pub(super) numbers: BTreeMap<usize, TableId>,
}

impl Tables {
    /// Adds the tables to a layout, with its method `table`
    /// ([`LayoutBuilder::table`](hekaton_circuit::LayoutBuilder::table) or
    /// [`Wires::table`](hekaton_circuit::parts::Wires::table)).
    pub fn new(pieces: Pieces, mut table: impl FnMut(&str, Table) -> TableId) -> Self {
        let mut add = |(alphabet, len): (Alphabet, usize)| {
            // Keys alone: what a piece of dropped digits is does not matter, only that it has such digits.
            let keys = alphabet.numbers(len).into_iter().map(Fr::from);
            let name = format!("keccak_{}_{len}", alphabet.name());
            ((alphabet, len), table(&name, Table::keys(keys)))
        };
        let ids = pieces.kinds().into_iter().map(&mut add).collect();
        Self { pieces, ids, numbers: BTreeMap::new() }
    }

    /// [`new`](Self::new), with the tables that [`LookUps::permute_words`](super::LookUps::permute_words) needs in addition: of 65,536 rows with [`Pieces::LARGE`], of
    /// 256 with [`Pieces::SMALL`].
    pub fn with_words(pieces: Pieces, mut table: impl FnMut(&str, Table) -> TableId) -> Self {
        let tables = Self::new(pieces, &mut table);
        let mut add = |len: usize| {
            let spread = Alphabet::Binary.numbers(len).into_iter().map(Fr::from);
            let pairs = spread.zip((0u64..).map(Fr::from));
            (len, table(&format!("keccak_number_{len}"), Table::pairs(pairs)))
        };
        let numbers = lengths_of_words(pieces).into_iter().map(&mut add).collect();
        Self { numbers, ..tables }
    }

    /// The number of rows of each table, in the order in which [`with_words`](Self::with_words) adds them.
    pub fn rows_with_words(pieces: Pieces) -> Vec<usize> {
        let mut rows = Self::rows_of_each(pieces);
        rows.extend(lengths_of_words(pieces).into_iter().map(|len| 1 << len));
        rows
    }

    /// The number of rows of each table, in the order in which [`new`](Self::new) adds them.
    pub fn rows_of_each(pieces: Pieces) -> Vec<usize> {
        let kinds = pieces.kinds().into_iter();
        kinds.map(|(alphabet, len)| alphabet.numbers(len).len()).collect()
    }

    /// The number of rows of [`LookUps::permute_words`](super::LookUps::permute_words).
    pub fn rows_of_permutation(pieces: Pieces) -> usize {
        let cut = |alphabet, cuts: &[usize]| pieces.cut(alphabet, cuts).len();
        let (binary, ternary) =
            (|cuts: &[usize]| cut(Alphabet::Binary, cuts), cut(Alphabet::Ternary, &[]));
        let columns = 5 * (binary(&[LANE - 1]) + ternary);
        let lanes = ROTATIONS.iter().map(|rotation| binary(&[LANE - rotation]) + binary(&[]));
        let chi = 25 * cut(Alphabet::Chi, &[]) + 24 * binary(&[]);
        let round = columns + lanes.sum::<usize>() + chi;
        // Lane 0 is also cut by iota. After the last round it is bits, and the others are words.
        let constants = round_constants();
        let iota = constants[..ROUNDS - 1].iter().map(|constant| binary(&cuts_of_iota(*constant)));
        let words = binary(&[WORD]);
        let last = LANE + 24 * (words - binary(&[]));
        // Two rows per piece of a word, and one per word.
        let numbers = 2 * (25 + 24) * words + 100;
        ROUNDS * round + iota.sum::<usize>() + last + numbers
    }

    /// The number of rows of all tables.
    pub fn rows(pieces: Pieces) -> usize {
        Self::rows_of_each(pieces).into_iter().sum()
    }
}

/// The lengths of pieces of words.
fn lengths_of_words(pieces: Pieces) -> BTreeSet<usize> {
    pieces.cut(Alphabet::Binary, &[WORD]).into_iter().map(|piece| piece.len()).collect()
}
