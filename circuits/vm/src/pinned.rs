//! The digests of the machine's types, as constants: whoever derives keys from a family compares them, and need not
//! synthesize the types (spec: key-family#pinned).

use crate::{Isa, MachineCircuit, Sizes};
use hekaton_circuit::{LayoutError, PreparedCircuit};

/// A line for each instruction set and number of rows: its name, log2 of the rows, and the digests of all types with and
/// without masks. `cargo test --release -p hekaton-vm --lib -- --ignored pinned_digests` compares all lines with the
/// code, and prints those that differ.
const PINNED: &str = include_str!("pinned.txt");

/// The digests for keys of one kind; none if they are not pinned.
pub(crate) fn pinned(isa: Isa, sizes: Sizes) -> Vec<[u8; 32]> {
    let found = lines().find(|line| (line.isa, line.rows) == (isa.name(), sizes.rows));
    found.map_or(Vec::new(), |line| line.digests.to_vec())
}

pub(crate) struct Line {
    pub(crate) isa: &'static str,
    pub(crate) rows: usize,
    /// With masks, and without.
    pub(crate) digests: [[u8; 32]; 2],
}

pub(crate) fn lines() -> impl Iterator<Item = Line> {
    PINNED.lines().map(|line| {
        let [isa, log, masked, unmasked] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("pinned.txt: {line}")
        };
        let digests = [masked, unmasked].map(|digest| {
            let mut bytes = [0; 32];
            hex::decode_to_slice(digest, &mut bytes).expect("a test reads all digests");
            bytes
        });
        Line { isa, rows: 1 << log.parse::<u32>().expect("a test reads all lines"), digests }
    })
}

impl MachineCircuit {
    /// The circuit without an input, with the pinned digests of its types.
    ///
    /// # Errors
    /// If the counts are not those of a run.
    pub fn prepared(&self) -> Result<PreparedCircuit<'_>, LayoutError> {
        let pinned = pinned(self.program.isa(), self.sizes);
        Ok(PreparedCircuit::new(self)?.with_pinned_types(pinned))
    }
}
