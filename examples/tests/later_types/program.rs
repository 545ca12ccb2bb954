//! A program of two versions at once: `squares`, and `mixed`, which has one more type. For tests of ceremonies that extend a family.

use ark_r1cs_std::eq::EqGadget;
use hekaton_app::App;
use hekaton_circuit::named::{Family, InputFile, NamedCircuit, Parameter, ParameterMap};
use hekaton_circuit::parts::{Cs, Leaf, Part, Synthesized, Var, WiredCircuit, Wires};
use hekaton_circuit::{CircuitError, Fr, LayoutError, parse_value};
use serde::{Deserialize, Serialize};

/// x <- x^2.
#[derive(Clone, Debug, PartialEq)]
struct Square;

impl Part for Square {
    const NAME: &'static str = "square";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = ();

    fn run(&self, x: &Fr, (): &()) -> Result<Fr, CircuitError> {
        Ok(*x * x)
    }

    fn synthesize(&self, _: Cs, x: &Var, y: &Var, _: Option<&()>) -> Synthesized {
        (x * x).enforce_equal(y)
    }
}

/// x <- x^3.
#[derive(Clone, Debug, PartialEq)]
struct Cube;

impl Part for Cube {
    const NAME: &'static str = "cube";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = ();

    fn run(&self, x: &Fr, (): &()) -> Result<Fr, CircuitError> {
        Ok(*x * x * x)
    }

    fn synthesize(&self, _: Cs, x: &Var, y: &Var, _: Option<&()>) -> Synthesized {
        (&(x * x) * x).enforce_equal(y)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Links {
    links: usize,
}

const LINKS: &[Parameter] = &[Parameter {
    name: "links",
    help: "number of subcircuits, read from the input",
    default: None,
}];

/// Squares from a first value on, and cubes for every second one if there are any.
#[derive(Clone, Debug)]
struct Steps<const CUBES: bool>(Links);

impl<const CUBES: bool> WiredCircuit for Steps<CUBES> {
    type Input = Fr;

    fn wire(&self, c: &mut Wires<Fr>) -> Result<(), LayoutError> {
        let mut x = c.public_input("first", 0, |first: &Fr| Ok(*first));
        for link in 0..self.0.links {
            x = match CUBES && link % 2 == 1 {
                true => c.add(&Cube, x),
                false => c.add(&Square, x),
            };
        }
        c.output("last", x);
        Ok(())
    }
}

impl<const CUBES: bool> NamedCircuit for Steps<CUBES> {
    const NAME: &'static str = if CUBES { "mixed" } else { "squares" };
    const ABOUT: &'static str = "powers of a number";
    const INPUT: &'static str = "the number";
    const PUBLIC: &'static str = "the number and the last power";
    type Parameters = Links;
    const PARAMETERS: &'static [Parameter] = LINKS;
    type Opened = Fr;

    fn with(parameters: Links) -> Result<Self, CircuitError> {
        Ok(Self(parameters))
    }

    fn fit(parameters: &mut ParameterMap, input: &InputFile) -> Result<(), CircuitError> {
        parameters.insert("links".to_owned(), input.read_text()?.trim().len().max(2).into());
        Ok(())
    }

    fn family(_: &ParameterMap, bytes: u64) -> Result<Option<Family<Self>>, CircuitError> {
        let instances = usize::try_from(bytes)?.max(2);
        Ok(Some(Family { circuit: Self(Links { links: 2 }), instances, open: &["links"] }))
    }

    fn open(&self, input: &InputFile) -> Result<Fr, CircuitError> {
        Ok(parse_value(input.read_text()?.trim())?)
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(*b"7")
    }
}

fn main() -> std::process::ExitCode {
    App::new("later-types").circuit::<Steps<false>>().circuit::<Steps<true>>().run()
}
