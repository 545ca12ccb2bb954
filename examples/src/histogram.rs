//! A histogram of a secret file: *this byte occurs this many times in it.* A memory has a cell for
//! each byte, which the parts of the file count up; the last part reads one of them.

use hekaton_circuit::named::{InputFile, NamedCircuit, Parameter};
use hekaton_circuit::prelude::*;
use hekaton_circuit::{Ram, RamId};
use serde::{Deserialize, Serialize};

/// The cell of bytes that do not exist: it counts the padding of the last part.
const NONE: u16 = 256;

/// The histogram of a file of `bytes` bytes, of which one subcircuit counts `part`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Histogram {
    /// The number of bytes.
    pub bytes: usize,
    /// The number of bytes per subcircuit.
    pub part: usize,
    /// The byte whose count is public.
    pub byte: u8,
}

/// Counts a part of the file.
#[derive(Clone, Debug, PartialEq)]
struct Count {
    size: usize,
    counts: RamId,
}

impl Part for Count {
    const NAME: &'static str = "count";
    type Reads<W: Leaf> = ();
    type Writes<W: Leaf> = ();
    /// Bytes, or [`NONE`].
    type Private = Vec<u16>;

    fn accesses(&self) -> Vec<(RamId, usize)> {
        vec![(self.counts, 2 * self.size)]
    }

    fn run_in(
        &self,
        memory: &mut Memory<'_>,
        (): &(),
        bytes: &Vec<u16>,
    ) -> Result<(), CircuitError> {
        for byte in bytes {
            let count = memory.read(self.counts, u64::from(*byte))?;
            memory.write(self.counts, u64::from(*byte), count + Fr::from(1u64))?;
        }
        Ok(())
    }

    fn synthesize(&self, cs: Cs, (): &(), (): &(), bytes: Option<&Vec<u16>>) -> Synthesized {
        let subcircuit = Subcircuit::of(&cs)?;
        let counts = subcircuit.ram(self.counts)?;
        for i in 0..self.size {
            // A value that is not an address of the memory cannot be accessed, so this needs no other
            // check.
            let byte = subcircuit.commit(|| {
                let byte = bytes.and_then(|bytes| bytes.get(i));
                byte.map(|byte| Fr::from(*byte)).ok_or(SynthesisError::AssignmentMissing)
            })?;
            let count = counts.read(&byte)?;
            counts.write(&byte, &(count + Var::one()))?;
        }
        Ok(())
    }
}

/// Reads a count.
#[derive(Clone, Debug, PartialEq)]
struct Ask {
    counts: RamId,
}

impl Part for Ask {
    const NAME: &'static str = "ask";
    /// A byte.
    type Reads<W: Leaf> = W;
    /// Its count.
    type Writes<W: Leaf> = W;
    /// The byte as a number, which is the address.
    type Private = u8;

    fn accesses(&self) -> Vec<(RamId, usize)> {
        vec![(self.counts, 1)]
    }

    fn run_in(&self, memory: &mut Memory<'_>, _: &Fr, byte: &u8) -> Result<Fr, CircuitError> {
        memory.read(self.counts, u64::from(*byte))
    }

    fn synthesize(&self, cs: Cs, byte: &Var, count: &Var, _: Option<&u8>) -> Synthesized {
        Subcircuit::of(&cs)?.ram(self.counts)?.read(byte)?.enforce_equal(count)
    }
}

impl WiredCircuit for Histogram {
    type Input = [u8];

    fn wire(&self, c: &mut Wires<[u8]>) -> Result<(), LayoutError> {
        let Self { bytes, part, byte } = *self;
        if bytes == 0 || part == 0 {
            return Err("a histogram needs at least one byte, and parts of at least one".into());
        }
        let counts = c.ram("counts", Ram::dense(0..u64::from(NONE) + 1));
        // Parts access the memory in the order in which they are added.
        for first in (0..bytes).step_by(part) {
            let last = bytes.min(first + part);
            c.add_with(&Count { size: part, counts }, (), move |all: &[u8]| {
                let mut own: Vec<u16> = all[first..last].iter().copied().map(u16::from).collect();
                own.resize(part, NONE);
                Ok(own)
            });
        }
        let asked = c.public_input("byte", 0, move |_| Ok(Fr::from(byte)));
        let count = c.add_with(&Ask { counts }, asked, move |_| Ok(byte));
        c.output("count", count);
        Ok(())
    }
}

impl NamedCircuit for Histogram {
    const NAME: &'static str = "histogram";
    const ABOUT: &'static str = "how often a byte occurs in a secret file";
    const INPUT: &'static str = "a file";
    const PUBLIC: &'static str = "the byte, and how often it occurs";
    type Parameters = Self;
    const PARAMETERS: &'static [Parameter] = &[
        Parameter {
            name: "bytes",
            help: "number of bytes; that of the file, if there is one",
            default: None,
        },
        Parameter { name: "part", help: "bytes per subcircuit", default: Some("500") },
        Parameter { name: "byte", help: "the byte, as a number", default: Some("32") },
    ];
    type Opened = Vec<u8>;

    fn with(parameters: Self) -> Result<Self, CircuitError> {
        Ok(parameters)
    }

    fn fit(
        parameters: &mut hekaton_circuit::named::ParameterMap,
        input: &InputFile,
    ) -> Result<(), CircuitError> {
        let bytes = input.read()?.len();
        parameters.entry("bytes".to_owned()).or_insert_with(|| bytes.into());
        Ok(())
    }

    fn open(&self, input: &InputFile) -> Result<Vec<u8>, CircuitError> {
        let bytes = input.read()?;
        match bytes.len() == self.bytes {
            true => Ok(bytes.to_vec()),
            false => {
                Err(format!("{} bytes, but the circuit is for {}", bytes.len(), self.bytes).into())
            }
        }
    }

    fn sample(&self) -> InputFile {
        InputFile::from_bytes("to be or not ".repeat(self.bytes)[..self.bytes].to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hekaton_circuit::check;

    #[test]
    fn bytes_are_counted() {
        let text = b"to be, or not to be";
        for (byte, part, count) in [(b'o', 4, 4u64), (b'x', 7, 0), (b' ', 100, 5), (b't', 1, 3)] {
            let circuit = Histogram { bytes: text.len(), part, byte };
            let report = check(&circuit, &text[..], |_, _| {}).unwrap();
            assert_eq!((report.violations, report.unbalanced), (vec![], vec![]));
            assert_eq!(report.public_values, [Fr::from(byte), Fr::from(count)]);
        }
    }
}
