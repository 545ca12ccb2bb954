//! The tables that do not depend on the program.

use crate::precompile::Precompile;
use crate::sizes::Sizes;
use crate::word::{Word, power};
use hekaton_circuit::{Fr, LayoutBuilder, Table};
use hekaton_standard::{keccak, sha256};

/// The ranges, in bits.
// Limbs; what is left of one without a sign bit; without the two bits of an offset; bytes; bytes without a
// sign bit.
pub(crate) const RANGES: [u32; 5] = [16, 15, 14, 8, 7];

/// The numbers of rows of the other tables.
pub(crate) const LOGIC_ROWS: usize = 1 << 16;
// An amount from 0 to 31, in both directions.
pub(crate) const POWERS_ROWS: usize = 64;

/// x + 2^40 y + 2^80 (x and y), of all bytes x and y.
pub(crate) fn logic() -> Table {
    Table::keys(logic_rows(Word::RV32))
}

pub(crate) fn logic_rows(word: Word) -> Vec<Fr> {
    let bytes = 1u64 << word.byte();
    // The digits are 2^40 apart, more than a word: see `conjunction` for why 2^8 is not enough.
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

/// The tables of all precompiles.
#[derive(Clone, Debug)]
pub(crate) struct PrecompileTables {
    pub(crate) sha256: sha256::Tables,
    pub(crate) keccak: keccak::Tables,
}

impl PrecompileTables {
    /// Adds the tables to a layout; of precompiles that are not used, without their rows. TinyRAM has none.
    pub(crate) fn new(
        layout: &mut LayoutBuilder,
        sizes: Sizes,
        is_used: impl Fn(Precompile) -> bool,
    ) -> Self {
        let mut table = |precompile, name: &str, rows: Table| {
            let table = rows.rows_per_subcircuit(sizes.table());
            // Left out, but declared: the ids of later tables must not depend on the program.
            layout.table(name, if is_used(precompile) { table } else { table.left_out() })
        };
        Self {
            sha256: sha256::Tables::new(sizes.sha256_pieces(), |name, rows| {
                table(Precompile::Sha256, name, rows)
            }),
            keccak: keccak::Tables::with_words(sizes.keccak_pieces(), |name, rows| {
                table(Precompile::Keccak, name, rows)
            }),
        }
    }
}

/// The number of rows of each of the tables of a precompile.
pub(crate) fn rows_of(precompile: Precompile, sizes: Sizes) -> Vec<usize> {
    match precompile {
        Precompile::Sha256 => sha256::Tables::rows(sizes.sha256_pieces()),
        Precompile::Keccak => keccak::Tables::rows_with_words(sizes.keccak_pieces()),
        // Only ranges, which are always there.
        Precompile::MulMod256 | Precompile::MulMod384 => Vec::new(),
    }
}
