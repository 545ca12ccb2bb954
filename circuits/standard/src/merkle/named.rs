//! `merkle` as a named circuit: parameters, input files and the root as text.

use super::Merkle;
use super::hash::join_halves;
use crate::sha256::{DIGEST, digest_halves};
use hekaton_circuit::named::{
    Family, InputFile, NamedCircuit, Parameter, ParameterError, ParameterMap, create,
};
use hekaton_circuit::{CircuitError, Fr};

impl NamedCircuit for Merkle {
    const NAME: &'static str = "merkle";
    const ABOUT: &'static str =
        "the SHA-256 Merkle tree of a file: proves knowledge of a file with this root";
    const INPUT: &'static str = "any file";
    const PUBLIC: &'static str = "the root as 64 hexadecimal digits";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "leaves",
            help: "number of leaves; derived from the file, if one is given",
            default: None,
        },
        Parameter {
            name: "leaf-bytes",
            help: "bytes per leaf; 26,200 constraints per 64 bytes, counting 9 bytes of padding",
            default: Some("512"),
        },
        Parameter {
            name: "iterations",
            help: "SHA-256 iterations per leaf, for scaling experiments",
            default: Some("1"),
        },
        Parameter {
            name: "extra-wires",
            help: "additional shared wires per subcircuit, for scaling experiments",
            default: Some("0"),
        },
    ];

    type Opened = Vec<u8>;

    fn with(circuit: Self) -> Result<Self, CircuitError> {
        let Self { leaves, leaf_bytes, iterations, extra_wires } = circuit;
        let check = |name, value, range, text| {
            ParameterError::check_range(Self::NAME, name, value, range, text)
        };
        check("leaves", leaves, 1..=1 << 24, "in 1..2^24")?;
        check("leaf-bytes", leaf_bytes, 1..=1 << 18, "in 1..2^18")?;
        check("iterations", iterations, 1..=1 << 12, "in 1..2^12")?;
        check("extra-wires", extra_wires, 0..=1 << 16, "in 0..2^16")?;
        // Each parameter is in range; together they must not require more than any machine has.
        let blocks = (leaf_bytes + 9).div_ceil(64) + iterations - 1;
        // No value is in this range: the check fails always, and names the parameter to change.
        if blocks > 1 << 12 {
            let text = "small enough for at most 4096 SHA-256 blocks per leaf";
            check("leaf-bytes", leaf_bytes, 0..=0, text)?;
        }
        if 2 * leaves * (extra_wires + 2) > 1 << 27 {
            let text = "small enough for at most 2^27 shared wires in total \
                        (2 leaves (extra-wires + 2))";
            match extra_wires {
                0 => check("leaves", leaves, 0..=0, text)?,
                x => check("extra-wires", x, 0..=0, text)?,
            }
        }
        Ok(circuit)
    }

    fn fit(parameters: &mut ParameterMap, input: &InputFile) -> Result<(), CircuitError> {
        let leaf_bytes = parameters.get("leaf-bytes").and_then(|value| value.as_u64());
        // A value that is not a number is refused when the circuit is created; until then, any size will
        // do.
        let leaves = input.length()?.div_ceil(leaf_bytes.unwrap_or(1).max(1)).max(1);
        parameters.entry("leaves".to_owned()).or_insert_with(|| leaves.into());
        Ok(())
    }

    fn family(parameters: &ParameterMap, bytes: u64) -> Result<Option<Family<Self>>, CircuitError> {
        let mut all = parameters.clone();
        let leaf_bytes = all.get("leaf-bytes").and_then(|value| value.as_u64());
        let largest = bytes.div_ceil(leaf_bytes.unwrap_or(1).max(1)).max(1);
        let mut with_leaves = |leaves: u64| {
            all.insert("leaves".to_owned(), leaves.into());
            create::<Self>(&all, None).map(|(circuit, _)| circuit)
        };
        // Keys of a family have room for the largest layout, which is that of the longest file.
        let instances = with_leaves(largest)?.instances();
        // A tree of five leaves has all types.
        Ok(Some(Family { circuit: with_leaves(5)?, instances, open: &["leaves"] }))
    }

    fn subcircuits(&self) -> Option<usize> {
        Some(self.instances())
    }

    fn open(&self, input: &InputFile) -> Result<Vec<u8>, CircuitError> {
        self.check_length(input.length()?)?;
        let file = input.read()?;
        // The file may have changed in between.
        self.check_length(file.len() as u64)?;
        Ok(file)
    }

    fn sample(&self) -> InputFile {
        // Varied bytes, so that the bits in the circuit are as mixed as those of a real file.
        let byte = |i: usize| (i.wrapping_mul(0x9e37_79b9) >> 13).to_le_bytes()[0];
        let bytes: Vec<u8> = (0..self.leaves * self.leaf_bytes).map(byte).collect();
        InputFile::from_bytes(bytes)
    }

    fn show(values: &[Fr]) -> Option<String> {
        join_halves(values).map(hex::encode)
    }

    fn read(text: &str) -> Option<Result<Vec<Fr>, CircuitError>> {
        let bytes: Option<[u8; DIGEST]> =
            hex::decode(text.trim()).ok().and_then(|b| b.try_into().ok());
        let digest = bytes.ok_or_else(|| "a root consists of 64 hexadecimal digits".into());
        Some(digest.map(|digest| digest_halves(&digest).to_vec()))
    }
}
