//! Helpers that tests of imported circuits have in common.

#![allow(dead_code, reason = "not all tests use all of it")]

use ark_ff::Field;
use hekaton_circuit::{Fr, check};
use hekaton_r1cs::directory::{Source, write};
use hekaton_r1cs::partition::Parts;
use hekaton_r1cs::{ImportError, Imported, Monolith, System, SystemBuilder, WitnessFile};
use std::path::Path;

/// A row: wires with small coefficients in A, B and C.
pub(crate) type Row = [Vec<(u32, i64)>; 3];

pub(crate) fn bytes(value: i64) -> ([u8; 32], Fr) {
    let value = Fr::from(value);
    let mut bytes = [0; 32];
    bytes.copy_from_slice(&WitnessFile::bytes_of(&[Fr::ONE, value])[12 + 12 + 40 + 12 + 32..]);
    (bytes, value)
}

pub(crate) fn system(wires: u32, public: u32, rows: &[Row]) -> System {
    let mut builder = SystemBuilder::new(wires, public);
    for (number, row) in (0u32..).zip(rows) {
        for side in row {
            for (wire, coefficient) in side {
                let (bytes, value) = bytes(*coefficient);
                builder.term(*wire, &bytes, || value).unwrap();
            }
            builder.end_combination().unwrap();
        }
        builder.end_row(number).unwrap();
    }
    builder.finish()
}

pub(crate) fn monolith(system: &System) -> Monolith {
    Monolith::of_system("test", [7; 32], system.clone()).unwrap()
}

pub(crate) fn source(system: &System) -> Source {
    monolith(system).source().clone()
}

/// Writes parts without a check, and checks them.
pub(crate) fn checked(system: &System, parts: &Parts, path: &Path) -> Result<(), ImportError> {
    write(path, source(system), 1 << 20, parts, None)?;
    monolith(system).check(path).map(drop)
}

pub(crate) fn witness(values: &[Fr]) -> WitnessFile {
    WitnessFile::from_bytes(WitnessFile::bytes_of(values)).unwrap()
}

/// Reports whether all parts of a directory hold for the values of all wires.
pub(crate) fn holds(path: &Path, values: &[Fr]) -> bool {
    let (circuit, witness) = (Imported::open(path).unwrap(), witness(values));
    let report = check(&circuit, &witness, |_, _| {}).unwrap();
    assert_eq!(report.public_values, values[1..=report.public_values.len()]);
    report.violations.is_empty()
}
