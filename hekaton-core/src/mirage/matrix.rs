//! Sparse matrices as they lie in a key: compressed rows with a table of distinct coefficients.

use ark_ff::{Field, Zero};
use hekaton_arith::Fr;
use std::collections::HashMap;

/// Index of the coefficients 1 and -1 in every table.
const ONE: u32 = 0;
const MINUS_ONE: u32 = 1;

/// Collects distinct coefficients.
pub(crate) struct CoefficientTable {
    index: HashMap<Fr, u32>,
    pub(crate) values: Vec<Fr>,
}

impl CoefficientTable {
    pub(crate) fn new() -> Self {
        let mut table = Self { index: HashMap::new(), values: Vec::new() };
        assert_eq!((table.intern(Fr::ONE), table.intern(-Fr::ONE)), (ONE, MINUS_ONE), "the table starts with 1 and -1");
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
#[derive(Default)]
pub(crate) struct OwnedMatrix {
    pub(crate) starts: Vec<u32>,
    pub(crate) entries: Vec<[u32; 2]>,
}

impl OwnedMatrix {
    pub(crate) fn new(rows: &[Vec<(Fr, usize)>], table: &mut CoefficientTable) -> Self {
        let mut out = Self { starts: vec![0], entries: Vec::new() };
        for row in rows {
            out.entries.extend(row.iter().map(|(k, variable)| [*variable as u32, table.intern(*k)]));
            out.starts.push(out.entries.len() as u32);
        }
        out
    }
}

/// A matrix in place in a key section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Matrix<'a> {
    pub(crate) starts: &'a [u32],
    pub(crate) entries: &'a [[u32; 2]],
    pub(crate) coefficients: &'a [Fr],
}

impl Matrix<'_> {
    /// Checks all indices, so that [`Matrix::row`] is in bounds.
    pub(crate) fn is_well_formed(&self, rows: usize, variables: usize) -> bool {
        self.starts.len() == rows + 1
            && self.starts[0] == 0
            && self.starts.windows(2).all(|w| w[0] <= w[1])
            && self.starts[rows] as usize == self.entries.len()
            && self.entries.iter().all(|[v, k]| (*v as usize) < variables && (*k as usize) < self.coefficients.len())
    }

    /// The product of a row with an assignment. Most values are 0 or 1 and most coefficients 1 or -1.
    pub(crate) fn row(&self, row: usize, z: &[Fr]) -> Fr {
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
