//! Sparse matrices in the format of a key section: compressed rows with a table of distinct
//! coefficients. Real circuits have few distinct coefficients, so an entry takes 8 bytes, not 36.

use ark_ff::{Field, Zero};
use hekaton_arith::Fr;
use std::collections::HashMap;

/// Index of the coefficients 1 and -1 in every table.
const ONE: u32 = 0;
const MINUS_ONE: u32 = 1;

/// Collects the distinct coefficients of a type's matrices.
#[derive(Debug)]
pub struct CoefficientTable {
    index: HashMap<Fr, u32>,
    /// The distinct coefficients; 1 and -1 first.
    pub values: Vec<Fr>,
}

impl Default for CoefficientTable {
    fn default() -> Self {
        Self::new()
    }
}

impl CoefficientTable {
    /// Creates a table with 1 and -1, which [`Matrix::row`] relies on.
    pub fn new() -> Self {
        let mut table = Self { index: HashMap::new(), values: Vec::new() };
        assert_eq!(
            (table.intern(Fr::ONE), table.intern(-Fr::ONE)),
            (ONE, MINUS_ONE),
            "the table starts with 1 and -1"
        );
        table
    }

    /// Returns the index of a coefficient, which is added if it is new.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "2^32 distinct coefficients would take 128 GiB of memory during setup"
    )]
    fn intern(&mut self, value: Fr) -> u32 {
        *self.index.entry(value).or_insert_with(|| {
            self.values.push(value);
            self.values.len() as u32 - 1
        })
    }
}

/// A matrix owned during setup: row starts, and (variable, coefficient index) of each entry.
#[derive(Clone, Debug, Default)]
pub struct OwnedMatrix {
    /// Where each row starts in `entries`, and where the last one ends.
    pub starts: Vec<u32>,
    /// The variable and the index of the coefficient of each entry.
    pub entries: Vec<[u32; 2]>,
}

impl OwnedMatrix {
    /// Converts the rows of a matrix; adds their coefficients to the table.
    #[allow(
        clippy::cast_possible_truncation,
        reason = "setup has checked that there are at most 2^28 variables and 2^32 - 1 entries"
    )]
    pub fn new(rows: &[Vec<(Fr, usize)>], table: &mut CoefficientTable) -> Self {
        let mut out = Self { starts: vec![0], entries: Vec::new() };
        for row in rows {
            out.entries
                .extend(row.iter().map(|(k, variable)| [*variable as u32, table.intern(*k)]));
            out.starts.push(out.entries.len() as u32);
        }
        out
    }
}

/// A matrix used in place in a key section.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// Where each row starts in `entries`, and where the last one ends.
    pub starts: &'a [u32],
    /// The variable and the index of the coefficient of each entry.
    pub entries: &'a [[u32; 2]],
    /// The table of coefficients; 1 and -1 first.
    pub coefficients: &'a [Fr],
}

impl Matrix<'_> {
    /// Checks all row starts and indices, so that [`Matrix::row`] stays in bounds.
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

    /// Returns the coefficients and variables of a row.
    pub fn entries_of(&self, row: usize) -> Vec<(Fr, usize)> {
        let entries = &self.entries[self.starts[row] as usize..self.starts[row + 1] as usize];
        let term = |[variable, k]: &[u32; 2]| (self.coefficients[*k as usize], *variable as usize);
        entries.iter().map(term).collect()
    }

    /// Returns the product of a row with an assignment.
    pub fn row(&self, row: usize, z: &[Fr]) -> Fr {
        // Most values are 0 or 1 and most coefficients 1 or -1: these cases skip the
        // multiplication.
        let entries = &self.entries[self.starts[row] as usize..self.starts[row + 1] as usize];
        let mut sum = Fr::zero();
        for [variable, k] in entries {
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
