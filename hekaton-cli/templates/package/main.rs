//! x^(2^squares), of a public x, in one subcircuit for each square.
//!
//! Replace the part, the wiring and the parameters by your own: docs/guide/library.md of Hekaton explains them.

use hekaton_app::App;
use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter};
use hekaton_circuit::parse_value;
use hekaton_circuit::prelude::*;
use serde::{Deserialize, Serialize};

/// A type of subcircuit: y = x^2.
#[derive(Clone, PartialEq)]
struct Square;

impl Part for Square {
    const NAME: &'static str = "square";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = ();

    /// Computes what the part writes.
    fn run(&self, x: &Fr, _: &()) -> Result<Fr, CircuitError> {
        Ok(x * x)
    }

    /// Adds the constraints between what the part reads and what it writes.
    fn synthesize(&self, _: Cs, x: &Var, y: &Var, _: Option<&()>) -> Synthesized {
        (x * x).enforce_equal(y)
    }
}

/// The circuit, with its parameters.
#[derive(Serialize, Deserialize)]
struct Powers {
    squares: usize,
}

impl WiredCircuit for Powers {
    type Input = Fr;

    fn wire(&self, c: &mut Wires<Fr>) -> Result<(), LayoutError> {
        let mut x = c.public_input("x", 0, |x| Ok(*x));
        for _ in 0..self.squares {
            x = c.add(&Square, x);
        }
        c.output("power", x);
        Ok(())
    }
}

impl NamedCircuit for Powers {
    const NAME: &'static str = "powers";
    const ABOUT: &'static str = "x^(2^squares)";
    const INPUT: &'static str = "x as a number";
    const PUBLIC: &'static str = "x and its power";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] =
        &[Parameter { name: "squares", help: "number of subcircuits", default: Some("8") }];
    type Opened = Fr;

    fn with(parameters: Self) -> Result<Self, CircuitError> {
        Ok(parameters)
    }

    fn open(&self, input: &InputFile) -> Result<Fr, CircuitError> {
        Ok(parse_value(input.read_text()?.trim())?)
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(*b"7")
    }
}

fn main() -> std::process::ExitCode {
    App::new("powers").circuit::<Powers>().run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::parts::run_and_check;
    use hekaton_circuit::{CheckOptions, PreparedCircuit, check_with};

    #[test]
    fn a_part_computes_what_its_constraints_say() {
        let (nine, holds) = run_and_check(&Square, &Fr::from(3u64), &()).unwrap();
        assert_eq!((nine, holds), (Fr::from(9u64), true));
    }

    /// The constraints hold, and every value follows from the input.
    #[test]
    fn the_circuit_is_sound_for_an_input() {
        let (powers, x) = (Powers { squares: 3 }, Fr::from(2u64));
        let prepared = PreparedCircuit::with_input(&powers, &x).unwrap();
        let options = CheckOptions::new().unique(true);
        let report = check_with(&prepared, &options, &mut |_, _| {}).unwrap();
        assert!(report.violations.is_empty() && report.notices.is_empty());
        assert_eq!(report.public_values, [x, Fr::from(256u64)]);
        for found in &report.unique {
            assert!(found.verdicts.free.is_empty() && found.verdicts.undecided.is_empty());
        }
    }
}
