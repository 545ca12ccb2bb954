//! A chain of Pedersen hashes over Jubjub, whose base field is the scalar field of BLS12-381: the kind of circuit on which Cirrus
//! (NDSS 2026) compares itself with Hekaton.

use ark_crypto_primitives::crh::pedersen::constraints::{CRHGadget, CRHParametersVar};
use ark_crypto_primitives::crh::pedersen::{CRH, Parameters, Window};
use ark_crypto_primitives::crh::{CRHScheme, CRHSchemeGadget};
use ark_ed_on_bls12_381::EdwardsProjective;
use ark_ed_on_bls12_381::constraints::EdwardsVar;
use ark_ff::{BigInteger, PrimeField};
use ark_r1cs_std::convert::ToBytesGadget;
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter, ParameterError};
use hekaton_circuit::parse_value;
use hekaton_circuit::prelude::*;
use std::sync::LazyLock;

/// 64 windows of 4 bits: the 32 bytes of a field element.
#[derive(Clone, Copy, Debug)]
struct Windows;

impl Window for Windows {
    const WINDOW_SIZE: usize = 4;
    const NUM_WINDOWS: usize = 64;
}

type Hash = CRH<EdwardsProjective, Windows>;
type HashGadget = CRHGadget<EdwardsProjective, EdwardsVar, Windows>;

// The circuit is a workload: nothing depends on where these points come from.
/// The generators of the windows, the same in every process.
static GENERATORS: LazyLock<Parameters<EdwardsProjective>> = LazyLock::new(|| {
    Hash::setup(&mut StdRng::seed_from_u64(1)).expect("drawing points does not fail")
});

/// A chain of `links` subcircuits with `hashes` Pedersen hashes each; a hash is the first coordinate of the point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pedersen {
    /// The number of subcircuits, at least 1.
    pub links: usize,
    /// The number of hashes per subcircuit, at least 1.
    pub hashes: usize,
}

/// One link of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    hashes: usize,
}

impl Part for Link {
    const NAME: &'static str = "link";
    type Reads<W: Leaf> = W;
    type Writes<W: Leaf> = W;
    type Private = ();

    fn run(&self, first: &Fr, (): &()) -> Result<Fr, CircuitError> {
        (0..self.hashes).try_fold(*first, |x, _| {
            let hash = Hash::evaluate(&GENERATORS, x.into_bigint().to_bytes_le());
            hash.map(|point| point.x).map_err(|e| e.to_string().into())
        })
    }

    fn synthesize(&self, cs: Cs, first: &Var, last: &Var, _: Option<&()>) -> Synthesized {
        let generators = CRHParametersVar::new_constant(cs, &*GENERATORS)?;
        let hash = |x: Var| HashGadget::evaluate(&generators, &x.to_bytes_le()?);
        let found =
            (0..self.hashes).try_fold(first.clone(), |x, _| hash(x).map(|point| point.x))?;
        found.enforce_equal(last)
    }
}

impl WiredCircuit for Pedersen {
    type Input = Fr;

    fn wire(&self, c: &mut Wires<Fr>) -> Result<(), LayoutError> {
        let link = Link { hashes: self.hashes };
        let mut x = c.public_input("first", 0, |x| Ok(*x));
        for _ in 0..self.links {
            x = c.add(&link, x);
        }
        c.output("last", x);
        Ok(())
    }
}

impl NamedCircuit for Pedersen {
    const NAME: &'static str = "pedersen";
    const ABOUT: &'static str = "a chain of Pedersen hashes over Jubjub, as Cirrus measures them";
    const INPUT: &'static str = "the first value as a number";
    const PUBLIC: &'static str = "the first value and the last one";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "links", help: "number of subcircuits", default: Some("8") },
        Parameter { name: "hashes", help: "hashes per subcircuit", default: Some("10") },
    ];
    type Opened = Fr;

    fn with(parameters: Self) -> Result<Self, CircuitError> {
        let Self { links, hashes } = parameters;
        ParameterError::check_range(Self::NAME, "links", links, 1..=1 << 24, "in 1..2^24")?;
        ParameterError::check_range(Self::NAME, "hashes", hashes, 1..=1 << 12, "in 1..2^12")?;
        Ok(parameters)
    }

    fn open(&self, input: &InputFile) -> Result<Fr, CircuitError> {
        Ok(parse_value(input.read_text()?.trim())?)
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes(*b"3")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::parts::run_and_check;
    use hekaton_circuit::{check, count};

    #[test]
    fn the_circuit_computes_the_native_hashes() {
        let chain = Pedersen { links: 2, hashes: 2 };
        let report = check(&chain, &Fr::from(3u64), |_, _| {}).unwrap();
        assert!(report.violations.is_empty() && report.notices.is_empty(), "{report:?}");
        let (last, holds) = run_and_check(&Link { hashes: 4 }, &Fr::from(3u64), &()).unwrap();
        assert!(holds);
        assert_eq!(report.public_values, [Fr::from(3u64), last]);
        // All hashes differ: the chain does not run in a circle.
        let of = |hashes| run_and_check(&Link { hashes }, &Fr::from(3u64), &()).unwrap().0;
        assert_ne!(of(1), of(2));
    }

    /// The number by which constraints are compared with the gates of others.
    #[test]
    fn a_hash_has_this_many_constraints() {
        let of = |hashes| count(&Pedersen { links: 1, hashes }).unwrap()[0].constraints;
        assert_eq!(of(3) - of(2), of(2) - of(1));
        assert_eq!(of(2) - of(1), 1589);
    }
}
