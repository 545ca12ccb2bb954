//! A matrix product: *I know two matrices of small numbers whose product has this sum of entries.*
//!
//! Every row of A and every column of B is a subcircuit that writes its numbers. A block of rows is
//! multiplied by a block of columns in one subcircuit, which adds its sum to a running total; rows
//! and columns that complete the last blocks are constants.

use hekaton_circuit::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::{AddAssign, Mul};

mod named;

/// The product of a secret matrix with `rows` rows and another one with `columns` columns.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Matrix {
    /// The number of rows of A.
    pub rows: usize,
    /// The number of columns of A, and of rows of B.
    pub inner: usize,
    /// The number of columns of B.
    pub columns: usize,
    /// The number of rows, and of columns, that one subcircuit multiplies.
    pub block: usize,
}

/// The input: the rows of A and the columns of B.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Matrices {
    /// The rows of A.
    pub a: Vec<Vec<u16>>,
    /// The columns of B.
    pub b: Vec<Vec<u16>>,
}

/// A row of A or a column of B: numbers below 2^16.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    length: usize,
}

impl Part for Line {
    const NAME: &'static str = "line";
    type Reads<W: Leaf> = ();
    type Writes<W: Leaf> = Vec<W>;
    type Private = Vec<u16>;

    fn writes(&self) -> Vec<Slot> {
        vec![Slot; self.length]
    }

    fn run(&self, (): &(), line: &Vec<u16>) -> Result<Vec<Fr>, CircuitError> {
        Ok(line.iter().copied().map(Fr::from).collect())
    }

    fn synthesize(&self, cs: Cs, (): &(), line: &Vec<Var>, _: Option<&Vec<u16>>) -> Synthesized {
        // What the subcircuit chooses; all else follows from it (`check --unique`).
        line.iter().for_each(|cell| Subcircuit::given_value(&cs, cell));
        line.iter().try_for_each(|cell| cell.to_bits_le_with_top_bits_zero(16).map(drop))
    }
}

/// The values that a product reads: a block of rows, a block of columns, and the total so far.
#[derive(Clone, Debug, Slots)]
struct Factors<W> {
    rows: Vec<Vec<W>>,
    columns: Vec<Vec<W>>,
    total: W,
}

impl<T: Clone + AddAssign<T>> Factors<T>
where
    for<'a> &'a T: Mul<&'a T, Output = T>,
{
    /// The total and all entries of the product, of numbers as of variables.
    fn sum(&self) -> T {
        let pairs = self.rows.iter().flat_map(|row| self.columns.iter().map(move |c| (row, c)));
        let mut sum = self.total.clone();
        pairs.for_each(|(row, c)| row.iter().zip(c).for_each(|(x, y)| sum += x * y));
        sum
    }
}

/// The product of two blocks, added to a total.
#[derive(Clone, Debug, PartialEq)]
struct Product {
    block: usize,
    inner: usize,
}

impl Part for Product {
    const NAME: &'static str = "product";
    type Reads<W: Leaf> = Factors<W>;
    type Writes<W: Leaf> = W;
    type Private = ();

    fn reads(&self) -> Factors<Slot> {
        let block = vec![vec![Slot; self.inner]; self.block];
        Factors { rows: block.clone(), columns: block, total: Slot }
    }

    fn run(&self, factors: &Factors<Fr>, (): &()) -> Result<Fr, CircuitError> {
        Ok(factors.sum())
    }

    fn synthesize(
        &self,
        _: Cs,
        factors: &Factors<Var>,
        total: &Var,
        _: Option<&()>,
    ) -> Synthesized {
        factors.sum().enforce_equal(total)
    }
}

impl WiredCircuit for Matrix {
    type Input = Matrices;

    fn wire(&self, c: &mut Wires<Matrices>) -> Result<(), LayoutError> {
        let Self { rows, inner, columns, block } = *self;
        if rows == 0 || inner == 0 || columns == 0 || block == 0 {
            return Err("no dimension of a matrix product may be zero".into());
        }
        let line = Line { length: inner };
        let row = |i: usize| c.add_with(&line, (), move |m| Ok(m.a[i].clone()));
        let mut a: Vec<Vec<Wire>> = (0..rows).map(row).collect();
        let column = |i: usize| c.add_with(&line, (), move |m| Ok(m.b[i].clone()));
        let mut b: Vec<Vec<Wire>> = (0..columns).map(column).collect();
        // Uneven counts: constants complete the last blocks, and no prover can choose them.
        let zero = c.constant(0u64);
        a.resize(rows.next_multiple_of(block), vec![zero; inner]);
        b.resize(columns.next_multiple_of(block), vec![zero; inner]);
        let mut total = zero;
        for rows in a.chunks(block) {
            for columns in b.chunks(block) {
                let (rows, columns) = (rows.to_vec(), columns.to_vec());
                total = c.add(&Product { block, inner }, Factors { rows, columns, total });
            }
        }
        c.output("total", total);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::named::{InputFile, NamedCircuit};
    use hekaton_circuit::{CheckOptions, PreparedCircuit, check_with};
    use hekaton_core::{LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};

    fn matrices(circuit: &Matrix) -> Matrices {
        let line = |seed: usize| {
            (0..circuit.inner)
                .map(|j| u16::try_from(((seed + 1) * 31 + j * 17) % 1000).unwrap())
                .collect()
        };
        Matrices {
            a: (0..circuit.rows).map(line).collect(),
            b: (0..circuit.columns).map(|i| line(i + 100)).collect(),
        }
    }

    fn total(m: &Matrices) -> Fr {
        let dot = |x: &[u16], y: &[u16]| -> u64 {
            x.iter().zip(y).map(|(x, y)| u64::from(*x) * u64::from(*y)).sum()
        };
        Fr::from(m.a.iter().flat_map(|row| m.b.iter().map(move |c| dot(row, c))).sum::<u64>())
    }

    #[test]
    fn every_slot_is_constrained() {
        for (rows, columns) in [(1, 1), (5, 7), (6, 6)] {
            let circuit = Matrix { rows, inner: 2, columns, block: 3 };
            let input = matrices(&circuit);
            let prepared = PreparedCircuit::with_input(&circuit, &input).unwrap();
            let options = CheckOptions::new().unique(true).every(true);
            let report = check_with(&prepared, &options, &mut |_, _| {}).unwrap();
            assert_eq!(report.violations, []);
            assert_eq!(report.notices, []);
            for found in &report.unique {
                let verdicts = &found.verdicts;
                // What it reads from memory is tied by a bus.
                assert_eq!((&verdicts.free[..], verdicts.undecided_counts()[0]), (&[][..], 0));
                assert_eq!(found.without_effect, [""; 0]);
            }
            assert_eq!(report.public_values, [total(&input)]);
        }
    }

    #[test]
    fn the_total_is_proven() {
        let circuit = Matrix { rows: 4, inner: 2, columns: 3, block: 3 };
        let input = matrices(&circuit);
        let engine = LocalEngine::new(None).unwrap();
        let keys = setup(&circuit, &engine, &SetupOptions::new("matrix")).unwrap();
        let run = prove(&circuit, &input, &keys, &engine, &ProveOptions::new()).unwrap();
        // The constant 0 is in the verifying key, so it is not an input.
        assert_eq!(run.public_values, [total(&input)]);
        assert_eq!((run.public[0].name.as_str(), run.public[0].index), ("total", 0));
        let check = |value| verify(&keys.verifying, &[value], run.proof.as_bytes());
        assert_eq!(check(total(&input)), Ok(()));
        assert!(check(total(&input) + Fr::from(1u64)).is_err());
    }

    #[test]
    fn wrong_sizes_are_refused() {
        let circuit = Matrix { rows: 2, inner: 2, columns: 2, block: 2 };
        let open = |text: &str| circuit.open(&InputFile::from_bytes(text.as_bytes()));
        assert!(open(r#"{"a": [[1, 2], [3, 4]], "b": [[1, 2], [3, 4]]}"#).is_ok());
        assert!(open(r#"{"a": [[1, 2], [3]], "b": [[1, 2], [3, 4]]}"#).is_err());
        assert!(open(r#"{"a": [[1, 2], [3, 70000]], "b": [[1, 2], [3, 4]]}"#).is_err());
    }
}
