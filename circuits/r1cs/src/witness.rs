//! circom's `.wtns` files, version 2: section 1 has the field and the number of values, section 2 the
//! values of all wires.

use crate::container::{Container, FIELD, Section, decode};
use crate::error::{FileError, Place, Problem};
use ark_ff::One;
use hekaton_circuit::Fr;
use std::ops::Range;
use std::path::Path;

const HEADER: u32 = 1;
const VALUES: u32 = 2;

/// An opened `.wtns` file. Values are read when they are asked for, also by several threads at once.
#[derive(Debug)]
pub struct WitnessFile {
    container: Container,
    values: Section,
    wires: u32,
}

impl WitnessFile {
    /// Opens a file, and checks its length and that the first value is 1.
    ///
    /// # Errors
    /// If it is no such file, is truncated, or is of another field.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let container = Container::open(path, "wtns", 2)?;
        let mut header = container.reader(HEADER)?;
        header.field()?;
        let wires = header.u32("the number of values")?;
        header.finish("the header")?;
        let values = container.section(VALUES)?;
        let expected = FIELD as u64 * u64::from(wires);
        if values.length != expected {
            let place = Place { section: Some(VALUES), ..Place::default() };
            let problem = Problem::Mismatch {
                what: "the length of the values in bytes",
                found: values.length,
                expected,
            };
            return Err(container.error(place, problem));
        }
        let witness = Self { container, values, wires };
        match witness.values(0..wires.min(1))?.first() {
            Some(one) if one.is_one() => Ok(witness),
            _ => Err(witness.error(0, Problem::NotOne)),
        }
    }

    /// The number of values, that of the constant included.
    pub fn wires(&self) -> u32 {
        self.wires
    }

    /// Checks that the witness has as many values as a circuit has wires.
    ///
    /// # Errors
    /// If it has another number.
    pub fn check_wires(&self, expected: u32) -> Result<(), FileError> {
        if self.wires == expected {
            return Ok(());
        }
        let what = "the number of values";
        let (found, expected) = (self.wires.into(), expected.into());
        let place = Place { section: Some(HEADER), ..Place::default() };
        Err(self.container.error(place, Problem::Mismatch { what, found, expected }))
    }

    /// The values of a range of wires.
    ///
    /// # Errors
    /// If a value is not below the modulus, or the file was truncated since it was opened.
    ///
    /// # Panics
    /// If the range ends beyond the last wire.
    pub fn values(&self, wires: Range<u32>) -> Result<Vec<Fr>, FileError> {
        assert!(wires.end <= self.wires, "{wires:?} of {} wires", self.wires);
        let mut bytes = vec![0; FIELD * wires.len()];
        let start = self.values.start + FIELD as u64 * u64::from(wires.start);
        self.container.read_at(start, &mut bytes, "the values")?;
        let numbers = wires.zip(bytes.as_chunks::<FIELD>().0);
        let value = |(wire, bytes): (u32, &[u8; FIELD])| {
            let what = "a value";
            decode(bytes).ok_or_else(|| self.error(wire, Problem::NotCanonical { what }))
        };
        numbers.map(value).collect()
    }

    /// The BLAKE3 digest of the file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], FileError> {
        self.container.digest()
    }

    fn error(&self, wire: u32, problem: Problem) -> FileError {
        let byte = Some(self.values.start + FIELD as u64 * u64::from(wire));
        let place = Place { section: Some(VALUES), byte, ..Place::default() };
        self.container.error(place, problem)
    }
}
