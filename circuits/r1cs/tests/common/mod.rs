//! Writes circom's files, well-formed or not.

use ark_ff::{BigInteger, Field, PrimeField};
use hekaton_circuit::Fr;
use std::path::PathBuf;

/// A combination: wires and coefficients.
pub(crate) type Combination = Vec<(u32, Fr)>;

pub(crate) fn number(value: &Fr) -> Vec<u8> {
    value.into_bigint().to_bytes_le()
}

pub(crate) fn modulus() -> Vec<u8> {
    Fr::MODULUS.to_bytes_le()
}

/// A container of these sections.
pub(crate) fn container(magic: &str, version: u32, sections: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut out = magic.as_bytes().to_vec();
    out.extend(version.to_le_bytes());
    out.extend((sections.len() as u32).to_le_bytes());
    for (kind, content) in sections {
        out.extend(kind.to_le_bytes());
        out.extend((content.len() as u64).to_le_bytes());
        out.extend(content);
    }
    out
}

/// The header of an `.r1cs`: wires, outputs, inputs, private inputs, rows.
pub(crate) fn header(counts: [u32; 5]) -> Vec<u8> {
    let [wires, outputs, inputs, private, rows] = counts;
    let mut out = 32u32.to_le_bytes().to_vec();
    out.extend(modulus());
    for count in [wires, outputs, inputs, private] {
        out.extend(count.to_le_bytes());
    }
    out.extend(u64::from(wires).to_le_bytes());
    out.extend(rows.to_le_bytes());
    out
}

pub(crate) fn constraints(rows: &[[Combination; 3]]) -> Vec<u8> {
    let mut out = Vec::new();
    for combination in rows.iter().flatten() {
        out.extend((combination.len() as u32).to_le_bytes());
        for (wire, coefficient) in combination {
            out.extend(wire.to_le_bytes());
            out.extend(number(coefficient));
        }
    }
    out
}

/// The sections of an `.r1cs` with one output and one input.
pub(crate) fn sections(wires: u32, rows: &[[Combination; 3]]) -> Vec<(u32, Vec<u8>)> {
    let labels = (0..u64::from(wires)).flat_map(u64::to_le_bytes).collect();
    let header = header([wires, 1, 1, 0, rows.len() as u32]);
    vec![(1, header), (2, constraints(rows)), (3, labels)]
}

pub(crate) fn witness(values: &[Fr]) -> Vec<u8> {
    let mut header = 32u32.to_le_bytes().to_vec();
    header.extend(modulus());
    header.extend((values.len() as u32).to_le_bytes());
    container("wtns", 2, &[(1, header), (2, values.iter().flat_map(number).collect())])
}

/// y = x^3 + 5 with wires 1 = y, 2 = x, 3 = x^2: terms out of order, a wire twice, and a zero.
pub(crate) fn cubic() -> Vec<[Combination; 3]> {
    let one = Fr::from(1u64);
    let zero = Fr::from(0u64);
    vec![
        [vec![(2, one)], vec![(2, one)], vec![(3, one)]],
        [
            vec![(3, Fr::from(2u64)), (3, -one)],
            vec![(2, one), (1, zero)],
            vec![(1, one), (0, -Fr::from(5u64))],
        ],
    ]
}

pub(crate) fn cubic_values(x: u64) -> Vec<Fr> {
    let x = Fr::from(x);
    vec![Fr::from(1u64), x.pow([3]) + Fr::from(5u64), x, x * x]
}

/// A directory for files of a test.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
