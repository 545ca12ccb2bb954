//! Sparse matrices as they lie in a key: compressed rows with a table of distinct coefficients.

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
    /// A table of 1 and -1.
    pub fn new() -> Self {
        let mut table = Self { index: HashMap::new(), values: Vec::new() };
        assert_eq!(
            (table.intern(Fr::ONE), table.intern(-Fr::ONE)),
            (ONE, MINUS_ONE),
            "the table starts with 1 and -1"
        );
        table
    }

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
    /// The rows of a matrix, with their coefficients in a table.
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

/// A matrix in place in a key section.
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
    /// Checks all indices, so that [`Matrix::row`] is in bounds.
    pub fn is_well_formed(&self, rows: usize, variables: usize) -> bool {
        self.starts.len() == rows + 1
            && self.starts[0] == 0
            && self.starts.windows(2).all(|w| w[0] <= w[1])
            && self.starts[rows] as usize == self.entries.len()
            && self
                .entries
                .iter()
                .all(|[v, k]| (*v as usize) < variables && (*k as usize) < self.coefficients.len())
    }

    /// The product of a row with an assignment. Most values are 0 or 1 and most coefficients 1 or -1.
    pub fn row(&self, row: usize, z: &[Fr]) -> Fr {
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
