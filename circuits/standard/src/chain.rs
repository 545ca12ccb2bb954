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
//! let keys = setup(&circuit, &SetupOptions::new("chain"))?;
//!
//! let engine = LocalEngine::new(None)?;
//! let run = prove(&circuit, &Fr::from(2u64), &keys, &engine, &ProveOptions::new())?;
//!
//! // Elsewhere, with nothing but the verifying key, the public values and the proof:
//! verify(&keys.verifying, &run.public_values, run.proof.as_bytes())?;
//! assert_eq!(run.public_values[0], Fr::from(2u64));
//! # Ok(())
//! # }
//! ```

use ark_ff::{AdditiveGroup, Field, PrimeField};
use ark_r1cs_std::eq::EqGadget;
use ark_r1cs_std::fields::fp::FpVar;
use ark_relations::gr1cs::SynthesisError;
use hekaton_circuit::named::{NamedCircuit, Parameter, ParameterError, Parameters, in_range};
use hekaton_circuit::{
    Circuit, CircuitError, Fr, InstanceId, Layout, LayoutError, Subcircuit, WireValues,
};
use std::borrow::Cow;

/// A chain of `links` subcircuits with `steps` squarings each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chain {
    /// The number of subcircuits, at least 1.
    pub links: usize,
    /// The number of squarings per subcircuit, at least 1; one constraint each.
    pub steps: usize,
}

/// The constant that is added after each squaring.
const STEP: u64 = 5;

impl Chain {
    /// The layout, and the wires `x_0` to `x_links`.
    fn wires(&self) -> Result<(Layout, Vec<hekaton_circuit::WireId>), LayoutError> {
        if self.links == 0 || self.steps == 0 {
            return Err(LayoutError::Empty);
        }
        let mut layout = Layout::builder();
        let link = layout.subcircuit_type("link", 2);
        let mut wires = vec![layout.public_input("x", 0)];
        wires.extend((1..self.links).map(|i| layout.wire("x", i as u64)));
        wires.push(layout.public_output("x", self.links as u64));
        for pair in wires.windows(2) {
            let instance = layout.instance(link);
            layout.read(instance, 0, pair[0]);
            layout.write(instance, 1, pair[1]);
        }
        Ok((layout.build()?, wires))
    }

    /// The steps of one subcircuit, computed natively.
    fn link(&self, x: Fr) -> Fr {
        (0..self.steps).fold(x, |x, _| x.square() + Fr::from(STEP))
    }
}

impl Circuit for Chain {
    type Input = Fr;
    type Trace = ();
    type Private = ();

    fn layout(&self) -> Result<Layout, LayoutError> {
        Ok(self.wires()?.0)
    }

    fn execute(&self, input: &Fr, values: &mut WireValues) -> Result<(), CircuitError> {
        let mut x = *input;
        let (_, wires) = self.wires()?;
        for (i, wire) in wires.into_iter().enumerate() {
            if i > 0 {
                x = self.link(x);
            }
            values.set(wire, x);
        }
        Ok(())
    }

    fn private_input(&self, _: &Fr, (): &(), _: InstanceId) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(&self, subcircuit: &Subcircuit, _: Option<&()>) -> Result<(), SynthesisError> {
        let mut x: FpVar<Fr> = subcircuit.slot(0)?.clone();
        for _ in 1..self.steps {
            x = x.clone() * &x + Fr::from(STEP);
        }
        // The product of the last step equals the next wire minus the constant, so its row doubles
        // as the equality.
        (x.clone() * &x + Fr::from(STEP)).enforce_equal(subcircuit.slot(1)?)
    }
}

impl NamedCircuit for Chain {
    const NAME: &'static str = "chain";
    const ABOUT: &'static str =
        "x <- x^2 + 5, repeated: the smallest example, and a benchmark with full-size values";
    const INPUT: &'static str = "the first value as a decimal number";
    const PUBLIC: &'static str = "FIRST,LAST: the first and last values as decimal numbers";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "links", help: "number of subcircuits", default: Some(8) },
        Parameter {
            name: "steps",
            help: "squarings per subcircuit, one constraint each",
            default: Some(1000),
        },
    ];

    fn with(parameters: &Parameters) -> Result<Self, ParameterError> {
        let links = in_range(Self::NAME, parameters, "links", 1..=1 << 24, "in 1..2^24")?;
        let steps = in_range(Self::NAME, parameters, "steps", 1..=1 << 26, "in 1..2^26")?;
        if links * steps > 1 << 36 {
            let range = "small enough for at most 2^36 squarings in total";
            return Err(ParameterError::Range {
                circuit: Self::NAME,
                name: "steps",
                value: steps as u64,
                range,
            });
        }
        Ok(Self { links, steps })
    }

    fn fit(_: &mut Parameters, _: &[u8]) {}

    fn sample(&self) -> Vec<u8> {
        b"3".to_vec()
    }

    fn input<'f>(&self, file: &'f [u8]) -> Result<Cow<'f, Fr>, CircuitError> {
        let text =
            std::str::from_utf8(file).map_err(|_| "the input file must hold one decimal number")?;
        Ok(Cow::Owned(number(text)?))
    }

    fn hash(&self, file: &[u8]) -> Result<String, CircuitError> {
        let first = self.input(file)?;
        let last = (0..self.links).fold(*first, |x, _| self.link(x));
        Ok(Self::show(&[*first, last]))
    }

    fn show(values: &[Fr]) -> String {
        values.iter().map(|x| x.into_bigint().to_string()).collect::<Vec<_>>().join(",")
    }

    fn read(text: &str) -> Result<Vec<Fr>, CircuitError> {
        text.split(',').map(number).collect()
    }
}

/// Parses a decimal number below r.
fn number(text: &str) -> Result<Fr, CircuitError> {
    let digits = text.trim();
    if digits.is_empty() || digits.len() > 78 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(format!(
            "'{}' is not a decimal number below the group order r",
            digits.chars().take(90).collect::<String>()
        )
        .into());
    }
    let mut value = Fr::ZERO;
    for digit in digits.bytes() {
        value = value * Fr::from(10u64) + Fr::from(digit - b'0');
    }
    // Reductions modulo r are refused: the value must print as it was written, up to leading zeros.
    let canonical = value.into_bigint().to_string();
    if canonical != digits.trim_start_matches('0')
        && !(canonical == "0" && digits.trim_start_matches('0').is_empty())
    {
        return Err(format!("{digits} is not below the group order r").into());
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::check;

    #[test]
    fn is_satisfied_and_returns_the_hash() {
        let circuit = Chain { links: 3, steps: 7 };
        let report = check(&circuit, &Fr::from(9u64), |_, _| {}).unwrap();
        assert!(report.violations.is_empty());
        assert_eq!(report.instances, 3);
        assert_eq!(Chain::show(&report.public_values), circuit.hash(b"9\n").unwrap());
        // per link: a row per step, shared wire and mask, the sum row, and one for the last
        // equality
        assert_eq!(report.constraints, 3 * (7 + 2 + 2 + 1 + 1));
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
        assert_eq!(Chain::read("2,3").unwrap(), vec![Fr::from(2u64), Fr::from(3u64)]);
    }
}
