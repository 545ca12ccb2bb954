//! The smallest useful example: `x <- x^2 + 5`, repeated many times and split into links.
//!
//! Subcircuit i reads `x_i`, applies `steps` steps and writes `x_(i+1)`. The first value is a
//! public input, the last one a public output.
//!
//! ```
//! use hekaton_standard::Chain;
//! use hekaton_core::{Fr, LocalEngine, ProveOptions, SetupOptions, prove, setup, verify};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let circuit = Chain { links: 3, steps: 4 };
//!
//! let engine = LocalEngine::new(None)?;
//! let keys = setup(&circuit, &engine, &SetupOptions::new("chain"))?;
//! let run = prove(&circuit, &Fr::from(2u64), &keys, &engine, &ProveOptions::new())?;
//!
//! // Elsewhere, with nothing but the verifying key, the public values and the proof:
//! verify(&keys.verifying, &run.public_values, run.proof.as_bytes())?;
//! assert_eq!(run.public_values[0], Fr::from(2u64));
//! # Ok(())
//! # }
//! ```

use ark_ff::{Field, PrimeField};
use hekaton_circuit::ark::r1cs_std::eq::EqGadget;

use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter, ParameterError};
use hekaton_circuit::parts::{Cs, Leaf, Part, Synthesized, Var, WiredCircuit, Wires};
use hekaton_circuit::{CircuitError, Fr, LayoutError, parse_value};

/// A chain of `links` subcircuits with `steps` squarings each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Chain {
    /// The number of subcircuits, at least 1.
    pub links: usize,
    /// The number of squarings per subcircuit, at least 1; one constraint each.
    pub steps: usize,
}

/// The constant that is added after each squaring.
const STEP: u64 = 5;

/// One link of a [`Chain`]: from a value to the value `steps` steps later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    steps: usize,
}

impl Part for Link {
    const NAME: &'static str = "link";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = ();

    fn run(&self, x: &Fr, (): &()) -> Result<Fr, CircuitError> {
        Ok((0..self.steps).fold(*x, |x, _| x.square() + Fr::from(STEP)))
    }

    fn synthesize(&self, _: Cs, first: &Var, last: &Var, _: Option<&()>) -> Synthesized {
        let mut x = first.clone();
        // The last step is below: its row is also the equality with the slot.
        for _ in 1..self.steps {
            x = x.clone() * &x + Fr::from(STEP);
        }
        // The product of the last step equals the next wire minus the constant, so its row doubles
        // as the equality.
        (x.clone() * &x + Fr::from(STEP)).enforce_equal(last)
    }
}

impl WiredCircuit for Chain {
    type Input = Fr;

    fn wire(&self, c: &mut Wires<Fr>) -> Result<(), LayoutError> {
        if self.links == 0 || self.steps == 0 {
            return Err("a chain needs at least one link and one step".into());
        }
        let link = Link { steps: self.steps };
        let mut x = c.public_input("x", 0, |x| Ok(*x));
        for _ in 0..self.links {
            x = c.add(&link, x);
        }
        c.output_at("x", self.links as u64, x);
        Ok(())
    }
}

impl NamedCircuit for Chain {
    const NAME: &'static str = "chain";
    const ABOUT: &'static str =
        "x <- x^2 + 5, repeated: the smallest example, and a benchmark with full-size values";
    const INPUT: &'static str = "the first value as a decimal number";
    const PUBLIC: &'static str = "FIRST,LAST: the first and last values as decimal numbers";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "links", help: "number of subcircuits", default: Some("8") },
        Parameter {
            name: "steps",
            help: "squarings per subcircuit, one constraint each",
            default: Some("1000"),
        },
    ];
    type Opened = Fr;

    fn with(chain: Self) -> Result<Self, CircuitError> {
        let Self { links, steps } = chain;
        ParameterError::check_range(Self::NAME, "links", links, 1..=1 << 24, "in 1..2^24")?;
        ParameterError::check_range(Self::NAME, "steps", steps, 1..=1 << 26, "in 1..2^26")?;
        // Within each range, the product could still be a circuit that no machine can lay out.
        let text = "small enough for at most 2^36 squarings in total";
        ParameterError::check_range(Self::NAME, "steps", steps, 0..=(1 << 36) / links, text)?;
        Ok(chain)
    }

    fn open(&self, input: &InputFile) -> Result<Fr, CircuitError> {
        // A field element has 77 digits; a larger file is not read at all.
        if input.length()? > 100 {
            return Err("the input file must hold one decimal number".into());
        }
        let text = input.read_text().map_err(|_| "the input file must hold one decimal number")?;
        number(&text)
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(*b"3")
    }

    fn show(values: &[Fr]) -> Option<String> {
        Some(values.iter().map(|x| x.into_bigint().to_string()).collect::<Vec<_>>().join(","))
    }

    fn read(text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        Some(text.split(',').map(number).collect())
    }
}

/// Parses a decimal number below r.
fn number(text: &str) -> Result<Fr, CircuitError> {
    match text.trim() {
        // `parse_value` would take it; the public values are printed in decimal, and one form is enough.
        text if text.starts_with("0x") => Err(format!("'{text}' is not a decimal number").into()),
        text => Ok(parse_value(text)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::AdditiveGroup;
    use hekaton_circuit::check;
    use hekaton_circuit::parts::run_and_check;

    #[test]
    fn is_satisfied_and_returns_the_hash() {
        let circuit = Chain { links: 3, steps: 7 };
        let report = check(&circuit, &Fr::from(9u64), |_, _| {}).unwrap();
        assert!(report.violations.is_empty());
        assert_eq!(report.instances, 3);
        let last = Link { steps: 21 }.run(&Fr::from(9u64), &()).unwrap();
        assert_eq!(report.public_values, [Fr::from(9u64), last]);
        assert_eq!(circuit.open(&InputFile::from_bytes(*b"9\n")).unwrap(), Fr::from(9u64));
        // a part can be tested without a circuit
        let (written, holds) = run_and_check(&Link { steps: 21 }, &Fr::from(9u64), &()).unwrap();
        assert!(holds && written == last);
        // per link: a row per step, shared wire and mask, the sum row, and one for the last
        // equality
        assert_eq!(report.constraints, 3 * (7 + 2 + 2 + 1 + 1));
    }

    /// The layout is the one that was written slot by slot before typed parts.
    #[test]
    fn the_layout_is_that_of_slots_by_hand() {
        for (links, expected) in [
            (1, "d6f7a538cac2bd2f326ac592e3eb6c79e01d3ac3aadb4af3bb213276f5b61963"),
            (3, "226c6b7e977713f6a830b796555ffa040f463b88818d19a9513b002fc023805d"),
        ] {
            let chain = Chain { links, steps: 7 };
            assert_eq!(crate::layout_digest_of_format_1(&chain), expected);
        }
    }

    #[test]
    fn numbers_are_canonical() {
        assert_eq!(number("007").unwrap(), Fr::from(7u64));
        assert_eq!(number(" 0 ").unwrap(), Fr::ZERO);
        assert_eq!(number(&(-Fr::ONE).into_bigint().to_string()).unwrap(), -Fr::ONE);
        for bad in [
            "",
            "x",
            "-1",
            "1.5",
            "52435875175126190479447740508185965837690552500527637822603658699938581184513",
        ] {
            assert!(number(bad).is_err(), "{bad}");
        }
        assert_eq!(Chain::read("2,3").unwrap().unwrap(), vec![Fr::from(2u64), Fr::from(3u64)]);
    }
}
