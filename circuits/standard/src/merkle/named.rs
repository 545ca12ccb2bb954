//! `merkle` as a named circuit: parameters, input files and the root as text.

use super::Merkle;
use crate::sha256::{DIGEST, digest_halves};
use ark_ff::{BigInteger, PrimeField};
use hekaton_circuit::named::{NamedCircuit, Parameter, ParameterError, Parameters, in_range};
use hekaton_circuit::{CircuitError, Fr};
use std::borrow::Cow;

impl NamedCircuit for Merkle {
    const NAME: &'static str = "merkle";
    const ABOUT: &'static str =
        "the SHA-256 Merkle tree of a file: proves knowledge of a file with this root";
    const INPUT: &'static str = "any file";
    const PUBLIC: &'static str = "the root as 64 hexadecimal digits";
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "leaves",
            help: "number of leaves; derived from the file, if one is given",
            default: None,
        },
        Parameter {
            name: "leaf-bytes",
            help: "bytes per leaf; 26,200 constraints per 64 bytes, counting 9 bytes of padding",
            default: Some(512),
        },
        Parameter {
            name: "iterations",
            help: "SHA-256 iterations per leaf, for scaling experiments",
            default: Some(1),
        },
        Parameter {
            name: "extra-wires",
            help: "additional shared wires per subcircuit, for scaling experiments",
            default: Some(0),
        },
    ];

    fn with(parameters: &Parameters) -> Result<Self, ParameterError> {
        let circuit = Self {
            leaves: in_range(Self::NAME, parameters, "leaves", 1..=1 << 24, "in 1..2^24")?,
            leaf_bytes: in_range(Self::NAME, parameters, "leaf-bytes", 1..=1 << 18, "in 1..2^18")?,
            iterations: in_range(Self::NAME, parameters, "iterations", 1..=1 << 12, "in 1..2^12")?,
            extra_wires: in_range(
                Self::NAME,
                parameters,
                "extra-wires",
                0..=1 << 16,
                "in 0..2^16",
            )?,
        };
        // Each parameter is in range; together they must not require more than any machine has.
        let blocks = (circuit.leaf_bytes + 9).div_ceil(64) + circuit.iterations - 1;
        let wires = 2 * circuit.leaves * (circuit.extra_wires + 2);
        let too_large = |name, value, range| {
            Err(ParameterError::Range { circuit: Self::NAME, name, value, range })
        };
        if blocks > 1 << 12 {
            return too_large(
                "leaf-bytes",
                circuit.leaf_bytes as u64,
                "small enough for at most 4096 SHA-256 blocks per leaf",
            );
        }
        if wires > 1 << 27 {
            let range = "small enough for at most 2^27 shared wires in total \
                         (2 leaves (extra-wires + 2))";
            let (name, value) = match circuit.extra_wires {
                0 => ("leaves", circuit.leaves),
                x => ("extra-wires", x),
            };
            return too_large(name, value as u64, range);
        }
        Ok(circuit)
    }

    fn fit(parameters: &mut Parameters, file: &[u8]) {
        let leaf_bytes = parameters.get("leaf-bytes").copied().unwrap_or(1).max(1);
        let leaves = (file.len() as u64).div_ceil(leaf_bytes).max(1);
        parameters.entry("leaves".to_owned()).or_insert(leaves);
    }

    fn sample(&self) -> Vec<u8> {
        // Varied bytes, so that the bits in the circuit are as mixed as those of a real file.
        (0..self.leaves * self.leaf_bytes)
            .map(|i| (i.wrapping_mul(0x9e37_79b9) >> 13).to_le_bytes()[0])
            .collect()
    }

    fn input<'f>(&self, file: &'f [u8]) -> Result<Cow<'f, [u8]>, CircuitError> {
        self.check_length(file)?;
        Ok(Cow::Borrowed(file))
    }

    fn hash(&self, file: &[u8]) -> Result<String, CircuitError> {
        Ok(hex::encode(self.root(file)?))
    }

    fn show(values: &[Fr]) -> String {
        join_halves(values).map_or_else(|| format!("(not a digest: {values:?})"), hex::encode)
    }

    fn read(text: &str) -> Result<Vec<Fr>, CircuitError> {
        let bytes: Option<[u8; DIGEST]> =
            hex::decode(text.trim()).ok().and_then(|b| b.try_into().ok());
        let digest = bytes.ok_or("a root consists of 64 hexadecimal digits")?;
        Ok(digest_halves(&digest).to_vec())
    }
}

/// Joins a digest from its halves; `None` unless there are two, each below 2^128.
fn join_halves(halves: &[Fr]) -> Option<[u8; DIGEST]> {
    let [high, low] = halves else { return None };
    let mut out = [0; DIGEST];
    for (chunk, half) in out.chunks_exact_mut(16).zip([high, low]) {
        let bytes = half.into_bigint().to_bytes_be();
        let (zeros, value) = bytes.split_at(16);
        if zeros.iter().any(|b| *b != 0) {
            return None;
        }
        chunk.copy_from_slice(value);
    }
    Some(out)
}
