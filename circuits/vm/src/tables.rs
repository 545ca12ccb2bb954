//! The tables that do not depend on the program.

use crate::word::{Word, power};
use hekaton_circuit::{Fr, Table};

/// The ranges, in bits.
pub(crate) const RANGES: [u32; 5] = [16, 15, 14, 8, 7];

/// The numbers of rows of the other tables.
pub(crate) const LOGIC_ROWS: usize = 1 << 16;
pub(crate) const POWERS_ROWS: usize = 64;

/// x + 2^40 y + 2^80 (x and y), of all bytes x and y.
pub(crate) fn logic() -> Table {
    Table::keys(logic_rows(Word::RV32))
}

pub(crate) fn logic_rows(word: Word) -> Vec<Fr> {
    let bytes = 1u64 << word.byte();
    let row = |x: u64, y: u64| Fr::from(x) + Fr::from(y) * power(40) + Fr::from(x & y) * power(80);
    (0..bytes).flat_map(|x| (0..bytes).map(move |y| row(x, y))).collect()
}

/// sh + 2^40 right, with the factor 2^sh to the left and 2^(32 - sh) to the right.
pub(crate) fn powers() -> Table {
    Table::pairs(powers_rows(Word::RV32).into_iter().map(|[index, value]| (index, value)))
}

pub(crate) fn powers_rows(word: Word) -> Vec<[Fr; 2]> {
    let amounts = || 0..word.0;
    let left = amounts().map(|sh| [Fr::from(sh), power(sh)]);
    let right = amounts().map(|sh| [Fr::from(sh) + power(40), power(word.0 - sh)]);
    left.chain(right).collect()
}
