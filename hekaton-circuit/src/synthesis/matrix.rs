//! Sparse matrices: compressed rows with a table of distinct coefficients. Real circuits have few
//! distinct coefficients, so an entry takes 8 bytes, not 40. Key files have this format, too.

use ark_ff::{Field, Zero};
use hashbrown::{DefaultHashBuilder, HashTable};
use hekaton_arith::Fr;
use std::hash::BuildHasher;

/// A row of a matrix, written out: coefficients and variables.
pub(crate) type Row = Vec<(Fr, usize)>;

/// Sorts a row by variable, adds up repeated variables, and leaves out zeros.
pub(crate) fn make_canonical(row: &mut Row) {
    if !row.is_sorted_by(|left, right| left.1 < right.1) {
        // A stable sort merges ascending runs, of which a sum of linear combinations consists.
        row.sort_by_key(|(_, variable)| *variable);
        row.dedup_by(|next, kept| {
            let same = next.1 == kept.1;
            if same {
                kept.0 += next.0;
            }
            same
        });
    }
    row.retain(|(coefficient, _)| !coefficient.is_zero());
}

/// Index of the coefficients 1 and -1 in every table.
const ONE: u32 = 0;
const MINUS_ONE: u32 = 1;

/// A matrix has more entries, or a variable a greater number, than 32 bits can count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a matrix has 2^32 entries or variables, or more")]
pub struct TooLarge;

/// Collects the distinct coefficients of a type's matrices.
#[derive(Debug)]
struct CoefficientTable {
    /// The indices of the values, by their hashes.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// By ten bits of a value, the index of the last value with these bits.
    recent: Box<[u32; RECENT]>,
    values: Vec<Fr>,
}

/// The size of the cache in front of the hash table: 4 KiB, which stay in the first-level cache. Rows of
/// gadgets repeat few coefficients, so most are found there.
const RECENT: usize = 1 << 10;

impl CoefficientTable {
    /// A table with 1 and -1, which [`Matrix::row`] relies on.
    fn new() -> Self {
        let mut table = Self {
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            recent: Box::new([ONE; RECENT]),
            values: Vec::new(),
        };
        assert_eq!(
            (table.insert(Fr::ONE), table.insert(-Fr::ONE)),
            (ONE, MINUS_ONE),
            "the table starts with 1 and -1"
        );
        table
    }

    /// The index of a coefficient, which is added if it is new.
    #[allow(clippy::cast_possible_truncation, reason = "the remainder is less than 2^10")]
    fn intern(&mut self, value: Fr) -> u32 {
        // Montgomery form spreads small values over all bits, so these ten tell them apart.
        let place = (value.0.0[0] % RECENT as u64) as usize;
        let recent = self.recent[place];
        if self.values[recent as usize] == value {
            return recent;
        }
        let found = self.insert(value);
        self.recent[place] = found;
        found
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "2^32 distinct coefficients would take 128 GiB of memory"
    )]
    fn insert(&mut self, value: Fr) -> u32 {
        let Self { index, hasher, values, .. } = self;
        let hash = |k: &u32| hasher.hash_one(values[*k as usize].0.0);
        let same = |k: &u32| values[*k as usize] == value;
        let entry = index.entry(hasher.hash_one(value.0.0), same, hash);
        let found = *entry.or_insert(values.len() as u32).get();
        if found as usize == values.len() {
            values.push(value);
        }
        found
    }
}

/// A matrix without its coefficients: row starts, and (variable, coefficient index) of each entry.
#[derive(Clone, Debug)]
pub struct Rows {
    /// The index in `entries` at which each row starts, and the end of the last row.
    pub starts: Vec<u32>,
    /// The variable and the index of the coefficient of each entry.
    pub entries: Vec<[u32; 2]>,
}

impl Default for Rows {
    fn default() -> Self {
        Self { starts: vec![0], entries: Vec::new() }
    }
}

/// The matrices A, B and C over one table of coefficients.
#[derive(Clone, Debug)]
pub struct Matrices {
    /// The table of coefficients; 1 and -1 first.
    pub coefficients: Vec<Fr>,
    /// A, B and C.
    pub sides: [Rows; 3],
}

impl Matrices {
    /// The matrices with these rows.
    ///
    /// # Errors
    /// If a matrix has too many entries or variables.
    pub fn new(rows: [&[Vec<(Fr, usize)>]; 3]) -> Result<Self, TooLarge> {
        let mut builder = MatrixBuilder::new();
        for (side, rows) in rows.into_iter().enumerate() {
            rows.iter().try_for_each(|row| builder.push(side, row.iter().copied()))?;
        }
        Ok(builder.finish())
    }

    /// One of the matrices: 0 for A to 2 for C.
    pub fn side(&self, side: usize) -> Matrix<'_> {
        let Rows { starts, entries } = &self.sides[side];
        Matrix { starts, entries, coefficients: &self.coefficients }
    }

    /// The same rows with each variable in its place, beginning with the row `first`; those before it
    /// follow at the end. Rows stay canonical.
    pub(crate) fn reordered(self, places: &[u32], first: usize) -> Self {
        let Self { coefficients, sides } = self;
        let moved = sides.map(|rows| {
            let count = rows.starts.len().saturating_sub(1);
            let mut out = Rows { starts: Vec::with_capacity(count + 1), entries: Vec::new() };
            out.entries.reserve_exact(rows.entries.len());
            out.starts.push(0);
            // The memory check's rows were made last, since the author's entries were not known before, and
            // keys have them first.
            for row in (first..count).chain(0..first.min(count)) {
                let (start, end) = (rows.starts[row] as usize, rows.starts[row + 1] as usize);
                let begin = out.entries.len();
                let place = |[variable, k]: &[u32; 2]| [places[*variable as usize], *k];
                out.entries.extend(rows.entries[start..end].iter().map(place));
                out.entries[begin..].sort_unstable_by_key(|[variable, _]| *variable);
                // No more entries than before, whose ends were u32.
                out.starts.push(
                    out.starts[out.starts.len() - 1] + (rows.starts[row + 1] - rows.starts[row]),
                );
            }
            out
        });
        Self { coefficients, sides: moved }
    }

    /// The rows of A, B and C, written out.
    pub fn to_rows(&self) -> [Vec<Vec<(Fr, usize)>>; 3] {
        self.all().map(|m| (0..m.rows()).map(|row| m.terms(row).collect()).collect())
    }

    /// A, B and C.
    pub fn all(&self) -> [Matrix<'_>; 3] {
        [0, 1, 2].map(|side| self.side(side))
    }
}

/// Collects the rows of three matrices.
#[derive(Debug)]
pub(crate) struct MatrixBuilder {
    table: CoefficientTable,
    sides: [Rows; 3],
}

impl MatrixBuilder {
    pub(crate) fn new() -> Self {
        Self { table: CoefficientTable::new(), sides: Default::default() }
    }

    /// Adds a row to one of the matrices.
    pub(crate) fn push(
        &mut self,
        side: usize,
        row: impl Iterator<Item = (Fr, usize)>,
    ) -> Result<(), TooLarge> {
        let Rows { starts, entries } = &mut self.sides[side];
        for (coefficient, variable) in row {
            let variable = u32::try_from(variable).map_err(|_| TooLarge)?;
            entries.push([variable, self.table.intern(coefficient)]);
        }
        starts.push(u32::try_from(entries.len()).map_err(|_| TooLarge)?);
        Ok(())
    }

    /// The matrices, without memory that they do not need.
    pub(crate) fn finish(mut self) -> Matrices {
        self.table.values.shrink_to_fit();
        for rows in &mut self.sides {
            rows.starts.shrink_to_fit();
            rows.entries.shrink_to_fit();
        }
        Matrices { coefficients: self.table.values, sides: self.sides }
    }
}

/// A matrix, in memory or in place in a key section.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// The index in `entries` at which each row starts, and the end of the last row.
    pub starts: &'a [u32],
    /// The variable and the index of the coefficient of each entry.
    pub entries: &'a [[u32; 2]],
    /// The table of coefficients; 1 and -1 first.
    pub coefficients: &'a [Fr],
}

impl<'a> Matrix<'a> {
    /// Checks all row starts and indices, so that a row stays in bounds.
    pub fn is_well_formed(&self, rows: usize, variables: usize) -> bool {
        // Rows must be ascending and cover all entries, so that no row can be sliced out of bounds.
        self.starts.len() == rows + 1
            && self.starts[0] == 0
            && self.starts.windows(2).all(|w| w[0] <= w[1])
            && self.starts[rows] as usize == self.entries.len()
            && self
                .entries
                .iter()
                .all(|[v, k]| (*v as usize) < variables && (*k as usize) < self.coefficients.len())
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.starts.len().saturating_sub(1)
    }

    /// The entries of a row: variables and indices of coefficients.
    pub fn entries_of(&self, row: usize) -> &'a [[u32; 2]] {
        &self.entries[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// The coefficients and variables of a row, in the order in which they are stored.
    pub fn terms(
        &self,
        row: usize,
    ) -> impl DoubleEndedIterator<Item = (Fr, usize)> + ExactSizeIterator + Clone + use<'a> {
        let coefficients = self.coefficients;
        let term = move |[v, k]: &[u32; 2]| (coefficients[*k as usize], *v as usize);
        self.entries_of(row).iter().map(term)
    }

    /// Reports whether no two entries of a row have the same variable, they are in ascending order,
    /// and no coefficient is zero.
    pub(crate) fn is_canonical(&self, row: usize) -> bool {
        let entries = self.entries_of(row);
        entries.is_sorted_by(|left, right| left[0] < right[0])
            && !entries.iter().any(|[_, k]| self.coefficients[*k as usize].is_zero())
    }

    /// A row sorted by variable, with repeated variables added up and zeros left out, so that equal
    /// linear combinations are equal lists.
    pub fn canonical(&self, row: usize) -> Vec<(Fr, usize)> {
        let mut row: Row = self.terms(row).collect();
        make_canonical(&mut row);
        row
    }

    /// Reports whether a row of this matrix and one of another are the same linear combination.
    pub fn is_same(&self, row: usize, other: &Matrix<'_>, other_row: usize) -> bool {
        let (mine, theirs) = (self.entries_of(row), other.entries_of(other_row));
        let same = |[mine, theirs]: [&[u32; 2]; 2]| {
            mine[0] == theirs[0]
                && self.coefficients[mine[1] as usize] == other.coefficients[theirs[1] as usize]
        };
        // Most rows have the same stored form. The canonical form allocates, so it is the second try.
        mine.len() == theirs.len() && mine.iter().zip(theirs).all(|(a, b)| same([a, b]))
            || self.canonical(row) == other.canonical(other_row)
    }

    /// Returns the product of a row with an assignment.
    pub fn row(&self, row: usize, z: &[Fr]) -> Fr {
        // Most values are 0 or 1 and most coefficients 1 or -1: these cases skip the
        // multiplication.
        let mut sum = Fr::zero();
        for [variable, k] in self.entries_of(row) {
            let value = &z[*variable as usize];
            if value.is_zero() {
                continue;
            }
            match *k {
                ONE => sum += value,
                MINUS_ONE => sum -= value,
                k if *value == Fr::ONE => sum += self.coefficients[k as usize],
                k => sum += self.coefficients[k as usize] * value,
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_given_back_and_equal_coefficients_are_stored_once() {
        // More values than places for recent ones, each several times.
        let value = |i: usize| Fr::from((i * i % 5_000) as u64) - Fr::from(7u64);
        let row = |i: usize| -> Row { (0..i % 7).map(|j| (value(i * j), i + j)).collect() };
        let rows = [0, 1, 2].map(|side| (0..4_000).map(|i| row(i + side)).collect::<Vec<_>>());
        let [a, b, c] = &rows;
        let matrices = Matrices::new([a, b, c]).unwrap();
        assert_eq!(matrices.to_rows(), rows);
        assert_eq!(matrices.coefficients[..2], [Fr::ONE, -Fr::ONE]);
        let mut distinct = matrices.coefficients.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), matrices.coefficients.len());
        assert!(matrices.all().iter().all(|m| m.is_well_formed(4_000, 5_000)));
    }

    #[test]
    fn variables_of_more_than_32_bits_are_refused() {
        let row = |variable| [vec![(Fr::ONE, variable)]];
        assert!(Matrices::new([&row(u32::MAX as usize), &[], &[]]).is_ok());
        assert!(matches!(Matrices::new([&row(1 << 32), &[], &[]]), Err(TooLarge)));
    }

    #[test]
    fn products_of_rows_are_those_of_their_terms() {
        let z: Vec<Fr> = [1, 0, 1, 5, 9].map(Fr::from).to_vec();
        let [two, three] = [2u64, 3].map(Fr::from);
        let rows = [vec![(two, 0), (-Fr::ONE, 3), (three, 1), (Fr::ONE, 4), (three, 2), (two, 4)]];
        let matrices = Matrices::new([&rows, &[], &[]]).unwrap();
        // 2 - 5 + 0 + 9 + 3 + 18
        assert_eq!(matrices.side(0).row(0, &z), Fr::from(27u64));
    }
}
