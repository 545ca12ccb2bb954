//! The matrix product as a named circuit: parameters and input files.

use super::{Matrices, Matrix};
use hekaton_circuit::CircuitError;
use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter};

impl NamedCircuit for Matrix {
    const NAME: &'static str = "matrix";
    const ABOUT: &'static str = "the sum of the entries of the product of two secret matrices";
    const INPUT: &'static str = "JSON: {\"a\": the rows of A, \"b\": the columns of B}";
    const PUBLIC: &'static str = "the total";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "rows", help: "rows of A", default: Some("5") },
        Parameter { name: "inner", help: "columns of A and rows of B", default: Some("8") },
        Parameter { name: "columns", help: "columns of B", default: Some("7") },
        Parameter { name: "block", help: "rows and columns per subcircuit", default: Some("3") },
    ];
    type Opened = Matrices;

    fn with(parameters: Self) -> Result<Self, CircuitError> {
        Ok(parameters)
    }

    fn open(&self, input: &InputFile) -> Result<Matrices, CircuitError> {
        let m: Matrices = serde_json::from_reader(input.reader()?)?;
        let fits = |lines: &[Vec<u16>], n| {
            lines.len() == n && lines.iter().all(|line| line.len() == self.inner)
        };
        match fits(&m.a, self.rows) && fits(&m.b, self.columns) {
            true => Ok(m),
            false => Err("the matrices do not have the sizes of the circuit".into()),
        }
    }

    fn sample(&self) -> InputFile {
        let lines = |n| vec![vec![3u16; self.inner]; n];
        let sample = Matrices { a: lines(self.rows), b: lines(self.columns) };
        InputFile::from_bytes(serde_json::to_vec(&sample).expect("lists of numbers are JSON"))
    }
}
