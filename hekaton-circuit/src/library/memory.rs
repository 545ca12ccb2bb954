//! Memories: cells that instances read and write, at times that the layout fixes (spec: buses#times).

use super::cut::parts;
use super::table::power_of_two;
use ark_ff::Zero;
use hekaton_arith::Fr;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The default for the maximum number of cells of one subcircuit, three rows each.
const CELLS: usize = 1 << 12;

/// The number of bits of a limb: ranges of gaps and addresses are checked in such limbs.
pub(crate) const LIMB: u32 = 16;

/// The number of limbs of the gap between two accesses: times are below 2^32.
pub(crate) const GAP_LIMBS: u32 = 2;

/// A memory, for [`LayoutBuilder::ram`](crate::LayoutBuilder::ram).
#[derive(Clone, Debug)]
pub struct Ram {
    addresses: Range<u64>,
    values: Vec<Fr>,
    most: usize,
}

impl Ram {
    /// A memory with a cell for each of these addresses, which must be below 2^32. At the beginning all
    /// cells are zero.
    pub fn dense(addresses: Range<u64>) -> Self {
        Self { addresses, values: Vec::new(), most: CELLS }
    }

    /// Sets the values of the first cells at the beginning, which the verifying key fixes.
    #[must_use]
    pub fn initial(self, values: impl IntoIterator<Item = Fr>) -> Self {
        Self { values: values.into_iter().collect(), ..self }
    }

    /// Sets the maximum number of cells of one of the subcircuits that hold the memory.
    #[must_use]
    pub fn cells_per_subcircuit(self, most: usize) -> Self {
        Self { most: most.max(1), ..self }
    }
}

/// A memory of a layout.
#[derive(Debug)]
pub(crate) struct RamSpec {
    pub(crate) addresses: Range<u64>,
    /// The values of the first cells at the beginning; those of the others are zero.
    values: Vec<Fr>,
    /// The number of limbs of an address.
    pub(crate) address_limbs: u32,
    /// The number of cells of one instance, and the first cell of each instance.
    pub(crate) cells: usize,
    pub(crate) starts: Vec<u64>,
}

/// One access of a subcircuit, as the execution made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Access {
    /// The time of the access before it to the same cell; 0 is the beginning.
    pub(crate) before: u64,
    /// The value that it found.
    #[serde(with = "crate::canonical")]
    pub(crate) found: Fr,
}

impl RamSpec {
    pub(crate) fn new(ram: Ram) -> Result<Self, String> {
        let Ram { addresses, values, most } = ram;
        let count = addresses.end.saturating_sub(addresses.start);
        if count == 0 || addresses.end > 1 << 32 {
            return Err(format!("addresses {addresses:?}: expected at least one, below 2^32"));
        }
        if values.len() as u64 > count {
            return Err(format!("{} initial values for {count} cells", values.len()));
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most 2^32")]
        let (cells, parts) = parts(count as usize, most);
        // Cells that fill up the last instance are real cells.
        let starts: Vec<u64> =
            parts.iter().map(|part| addresses.start + part.start as u64).collect();
        let end = starts.last().map_or(0, |start| start + cells as u64);
        let address_limbs = if end <= 1 << LIMB { 1 } else { 2 };
        if end > 1 << 32 {
            return Err("the cells that fill up its last subcircuit are beyond 2^32".into());
        }
        Ok(Self { addresses, values, address_limbs, cells, starts })
    }

    /// A memory in place of one that the builder has refused.
    pub(crate) fn placeholder() -> Self {
        let (addresses, values, starts) = (0..1, Vec::new(), vec![0]);
        Self { addresses, values, address_limbs: 1, cells: 1, starts }
    }

    /// D: what a time is multiplied by in a key, above every address.
    pub(crate) fn spacing(&self) -> Fr {
        power_of_two(LIMB * self.address_limbs)
    }

    /// The value of a cell at the beginning.
    pub(crate) fn initial(&self, address: u64) -> Fr {
        let place = usize::try_from(address - self.addresses.start).unwrap_or(usize::MAX);
        self.values.get(place).copied().unwrap_or_default()
    }

    /// Whether any cell begins with another value than zero, so that instances have pairs.
    pub(crate) fn has_values(&self) -> bool {
        self.values.iter().any(|value| !value.is_zero())
    }

    /// The number of parameters and of pairs of an instance.
    pub(crate) fn constants(&self) -> (usize, usize) {
        if self.has_values() { (0, self.cells) } else { (1, 0) }
    }
}
