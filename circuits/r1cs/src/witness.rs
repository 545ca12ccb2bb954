//! circom's `.wtns` files, version 2: section 1 has the field and the number of values, section 2 the
//! values of all wires.

use crate::container::{Container, FIELD, Section, container_of, decode};
use crate::error::{FileError, FilePosition, Problem};
use ark_ff::{BigInteger, One, PrimeField};
use hekaton_circuit::Fr;
use std::ops::Range;
use std::path::Path;

const HEADER: u32 = 1;
const VALUES: u32 = 2;
/// Values that are read because they are between two that are asked for.
// One read of 2 KiB more costs less than another system call.
const GAP: u32 = 64;
/// The number of values that are read together.
const AT_ONCE: u32 = 1 << 14;

/// An opened `.wtns` file. Values are read when they are asked for, also by several threads at once.
#[derive(Debug)]
pub struct WitnessFile {
    container: Container,
    values: Section,
    wires: u32,
    /// `true` if all values are 1, and not in a file.
    is_ones: bool,
}

impl WitnessFile {
    /// Opens a file, and checks its length and that the first value is 1.
    ///
    /// # Errors
    /// Fails if the file is not a `.wtns` file, is truncated, or is over another field.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        Self::of(Container::open(path, "wtns", 2)?)
    }

    /// The content of such a file in memory, for example from a pipe.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, FileError> {
        Self::of(Container::of_bytes(bytes, "wtns", 2)?)
    }

    /// The content of a file with values for a circuit's wires, of which the first is 1.
    pub fn bytes_of(values: &[Fr]) -> Vec<u8> {
        let mut header = 32u32.to_le_bytes().to_vec();
        header.extend(Fr::MODULUS.to_bytes_le());
        header.extend(crate::numbers::count(values.len()).to_le_bytes());
        let mut body = Vec::with_capacity(FIELD * values.len());
        values.iter().for_each(|value| body.extend(crate::system::bytes_of(value)));
        container_of("wtns", 2, &[(HEADER, &header), (VALUES, &body)])
    }

    /// A witness whose values are all 1, without bytes: for estimates.
    ///
    /// # Errors
    /// Never.
    pub fn ones(wires: u32) -> Result<Self, FileError> {
        let mut witness = Self::from_bytes(Self::bytes_of(&[Fr::one()]))?;
        (witness.wires, witness.is_ones) = (wires, true);
        Ok(witness)
    }

    fn of(container: Container) -> Result<Self, FileError> {
        let mut header = container.reader(HEADER)?;
        header.field()?;
        let wires = header.u32("the number of values")?;
        header.finish("the header")?;
        let values = container.section(VALUES)?;
        let expected = FIELD as u64 * u64::from(wires);
        if values.length != expected {
            let place = FilePosition { section: Some(VALUES), ..FilePosition::default() };
            let problem = Problem::Mismatch {
                what: "the length of the values in bytes",
                found: values.length,
                expected,
            };
            return Err(container.error(place, problem));
        }
        let witness = Self { container, values, wires, is_ones: false };
        // Constraints use wire 0 as the constant 1; another value would satisfy another system.
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
        let (found, expected) = (self.wires.into(), expected.into());
        let place = FilePosition { section: Some(HEADER), ..FilePosition::default() };
        Err(self.container.error(place, Problem::OtherWires { found, expected }))
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
        if self.is_ones {
            return Ok(vec![Fr::one(); wires.len()]);
        }
        let mut bytes = vec![0; FIELD * wires.len()];
        let start = self.values.start + FIELD as u64 * u64::from(wires.start);
        self.container.read_at(start, &mut bytes, "the values")?;
        let mut values = Vec::with_capacity(wires.len());
        for (wire, bytes) in wires.zip(bytes.as_chunks::<FIELD>().0) {
            let value = decode(bytes);
            values.push(value.ok_or_else(|| self.error(wire, Problem::ValueNotCanonical(wire)))?);
        }
        Ok(values)
    }

    /// Reads all values once: that each is below the modulus.
    ///
    /// # Errors
    /// As for [`values`](Self::values).
    pub fn check_values(&self) -> Result<(), FileError> {
        if self.is_ones {
            return Ok(());
        }
        let mut next = 0;
        while next < self.wires {
            let end = self.wires.min(next.saturating_add(AT_ONCE));
            self.values(next..end)?;
            next = end;
        }
        Ok(())
    }

    /// The values of wires in any order. Neighbors are read together.
    ///
    /// # Errors
    /// As for [`values`](Self::values), and if a wire does not exist.
    pub fn gather(&self, wires: &[u32]) -> Result<Vec<Fr>, FileError> {
        let mut order: Vec<usize> = (0..wires.len()).collect();
        // Wires of a part are spread over the file, and reads in ascending order are sequential.
        order.sort_unstable_by_key(|at| wires[*at]);
        if let Some(last) = order.last().map(|at| wires[*at]).filter(|last| *last >= self.wires) {
            let problem = crate::RowError::NoSuchWire { wire: last, wires: self.wires };
            return Err(self.container.error(FilePosition::default(), problem.into()));
        }
        let mut out = vec![Fr::default(); wires.len()];
        let near = |a: &usize, b: &usize| wires[*b] - wires[*a] <= GAP;
        for run in order.chunk_by(near) {
            // Not all at once: a run may be as long as the file.
            for piece in run.chunks(AT_ONCE as usize) {
                let first = wires[piece[0]];
                let end = piece.last().map_or(first, |at| wires[*at]) + 1;
                let values = self.values(first..end)?;
                piece.iter().for_each(|at| out[*at] = values[(wires[*at] - first) as usize]);
            }
        }
        Ok(out)
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
        let place = FilePosition { section: Some(VALUES), byte, ..FilePosition::default() };
        self.container.error(place, problem)
    }
}
