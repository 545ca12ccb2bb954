//! The digests of the machine's types as constants, so that keys are derived without synthesizing the types
//! (spec: key-family#pinned).

use crate::{Isa, MachineCircuit, Sizes};
use hekaton_circuit::{LayoutError, PreparedCircuit};

/// A line for each instruction set and number of rows: its name, log2 of the rows, [`Line::code`], and the digests of all
/// types with and without masks. `cargo test --release -p hekaton-vm --lib -- --ignored pinned_digests` compares all lines
/// with the code, and prints those that differ.
const PINNED: &str = include_str!("pinned.txt");

/// The digests for keys of one kind, with and without masks, if they are pinned.
pub(crate) fn pinned(isa: Isa, sizes: Sizes) -> Option<[[u8; 32]; 2]> {
    let found = lines().find(|line| (line.isa, line.rows) == (isa.name(), sizes.rows));
    found.map(|line| line.digests)
}

pub(crate) struct Line {
    pub(crate) isa: &'static str,
    pub(crate) rows: usize,
    /// The first 16 digits of the digests with masks for 2^12 and 2^17 rows, so that no line of an instruction set outlives
    /// a change of its constraints that these sizes show: most lines take too long for the tests of a push.
    #[cfg_attr(not(test), allow(dead_code, reason = "for tests"))]
    pub(crate) code: &'static str,
    pub(crate) digests: [[u8; 32]; 2],
}

pub(crate) fn lines() -> impl Iterator<Item = Line> {
    PINNED.lines().map(|line| {
        let [isa, log, code, masked, unmasked] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("pinned.txt: {line}")
        };
        let digests = [masked, unmasked].map(|digest| {
            let mut bytes = [0; 32];
            hex::decode_to_slice(digest, &mut bytes).expect("a test reads all digests");
            bytes
        });
        Line { isa, rows: 1 << log.parse::<u32>().expect("a test reads all lines"), code, digests }
    })
}

impl MachineCircuit {
    /// The circuit without an input, with the pinned digests of its types.
    ///
    /// # Errors
    /// If the circuit cannot be laid out.
    pub fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        let prepared = PreparedCircuit::new(self)?;
        Ok(match pinned(self.program.isa(), self.sizes) {
            Some(digests) => prepared.with_pinned_types(digests),
            None => prepared,
        })
    }
}
