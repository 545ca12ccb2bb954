//! A hash chain: *I know a value whose hash, hashed again and again, is this value.* Delay functions
//! and one-time passwords are made of such chains.

use ark_crypto_primitives::crh::poseidon::CRH;
use ark_crypto_primitives::crh::poseidon::constraints::{CRHGadget, CRHParametersVar};
use ark_crypto_primitives::crh::{CRHScheme, CRHSchemeGadget};
use ark_crypto_primitives::sponge::poseidon::{PoseidonConfig, find_poseidon_ark_and_mds};
use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter};
use hekaton_circuit::parse_value;
use hekaton_circuit::prelude::*;
use std::sync::LazyLock;

/// Poseidon over two elements with x^5, 8 full and 57 partial rounds.
static POSEIDON: LazyLock<PoseidonConfig<Fr>> = LazyLock::new(|| {
    let (ark, mds) = find_poseidon_ark_and_mds(255, 2, 8, 57, 0);
    PoseidonConfig::new(8, 57, 5, mds, ark, 2, 1)
});

/// A chain of `links` subcircuits with `hashes` hashes each.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct HashChain {
    /// The number of subcircuits.
    pub links: usize,
    /// The number of hashes per subcircuit.
    pub hashes: usize,
}

/// One link of the chain.
#[derive(Clone, Debug, PartialEq)]
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
            CRH::evaluate(&POSEIDON, [x]).map_err(|e| e.to_string().into())
        })
    }

    fn synthesize(&self, _: Cs, first: &Var, last: &Var, _: Option<&()>) -> Synthesized {
        let parameters = CRHParametersVar { parameters: POSEIDON.clone() };
        let hash = |x| CRHGadget::evaluate(&parameters, &[x]);
        (0..self.hashes).try_fold(first.clone(), |x, _| hash(x))?.enforce_equal(last)
    }
}

impl WiredCircuit for HashChain {
    type Input = Fr;

    fn wire(&self, c: &mut Wires<Fr>) -> Result<(), LayoutError> {
        if self.links == 0 || self.hashes == 0 {
            return Err("a hash chain needs at least one link and one hash".into());
        }
        // The first value stays secret: a part writes it.
        let mut x = c.add_with(&Secret, (), |first| Ok(Number(*first)));
        for _ in 0..self.links {
            x = c.add(&Link { hashes: self.hashes }, x);
        }
        c.output("last", x);
        Ok(())
    }
}

/// Writes the secret first value, and shows that its owner knows its hash.
#[derive(Clone, Debug, PartialEq)]
struct Secret;

/// A field element as a private input.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
struct Number(#[serde(with = "hekaton_circuit::canonical")] Fr);

impl Part for Secret {
    const NAME: &'static str = "secret";
    type Reads<W: Leaf> = ();
    type Writes<W: Leaf> = W;
    type Private = Number;

    fn run(&self, (): &(), first: &Number) -> Result<Fr, CircuitError> {
        Ok(first.0)
    }

    fn synthesize(&self, cs: Cs, (): &(), first: &Var, private: Option<&Number>) -> Synthesized {
        use hekaton_circuit::ark::r1cs_std::alloc::AllocVar;
        let value = || private.map(|first| first.0).ok_or(SynthesisError::AssignmentMissing);
        // What the subcircuit chooses; all else follows from it (`check --unique`).
        let secret = Subcircuit::given(&cs, || Var::new_witness(cs.clone(), value))?;
        secret.enforce_equal(first)
    }
}

impl NamedCircuit for HashChain {
    const NAME: &'static str = "hash-chain";
    const ABOUT: &'static str = "a chain of Poseidon hashes from a secret first value";
    const INPUT: &'static str = "the secret first value as a number";
    const PUBLIC: &'static str = "the last value";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter { name: "links", help: "number of subcircuits", default: Some("4") },
        Parameter { name: "hashes", help: "hashes per subcircuit", default: Some("100") },
    ];
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

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::parts::run_and_check;
    use hekaton_circuit::{check, count};

    #[test]
    fn the_chain_is_the_native_one() {
        let chain = HashChain { links: 3, hashes: 2 };
        let report = check(&chain, &Fr::from(7u64), |_, _| {}).unwrap();
        assert!(report.violations.is_empty() && report.notices.is_empty());
        let (last, holds) = run_and_check(&Link { hashes: 6 }, &Fr::from(7u64), &()).unwrap();
        assert!(holds);
        assert_eq!(report.public_values, [last]);
        // 237 constraints per hash: 3 for each of 8 * 3 + 57 powers of 5, but two of them are of
        // constants
        assert_eq!(count(&chain).unwrap()[1].constraints, 2 + 1 + 2 * 237 + 1);
    }
}
