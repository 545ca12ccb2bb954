//! Memories: cells that instances read and write, at times that the layout fixes (spec: buses#times).

use super::cut::parts;
use super::table::power_of_two;
use ark_ff::Zero;
use hekaton_arith::Fr;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The default for the maximum number of cells of one subcircuit: 12,288 rows of cells.
const CELLS: usize = 1 << 12;

/// The number of bits of the limbs in which gaps and addresses are checked. Larger limbs would take fewer
/// rows per access, but the range table has 2^16 rows already, which are proven once per circuit.
pub(crate) const LIMB: u32 = 16;

/// The number of limbs of the gap between two accesses: times are below 2^32.
pub(crate) const GAP_LIMBS: u32 = 2;

/// A memory, for [`LayoutBuilder::ram`](crate::LayoutBuilder::ram): one or several regions of
/// addresses.
#[derive(Clone, Debug)]
pub struct Ram {
    regions: Vec<Region>,
}

#[derive(Clone, Debug)]
struct Region {
    addresses: Range<u64>,
    contents: Contents,
    most: usize,
}

#[derive(Clone, Debug)]
enum Contents {
    /// A cell for each address, with the values of the first ones at the beginning.
    Dense(Vec<Fr>),
    /// This number of cells, whose addresses are the prover's choice.
    Sparse(usize),
}

impl Ram {
    /// A memory with a cell for each of these addresses, which must be below 2^32. At the beginning all
    /// cells are zero. If they do not fill the last subcircuit, cells for the next addresses do, which
    /// constraints can access, too ([`cells_per_subcircuit`](Self::cells_per_subcircuit)).
    pub fn dense(addresses: Range<u64>) -> Self {
        Self::of(addresses, Contents::Dense(Vec::new()))
    }

    /// A memory of `cells` cells for many more addresses below 2^32. The addresses that are accessed are
    /// secret, and known only when a proof is made. At the beginning all are zero (spec: buses#sparse).
    pub fn sparse(addresses: Range<u64>, cells: usize) -> Self {
        Self::of(addresses, Contents::Sparse(cells))
    }

    fn of(addresses: Range<u64>, contents: Contents) -> Self {
        Self { regions: vec![Region { addresses, contents, most: CELLS }] }
    }

    /// Sets the values of the first cells of a dense memory at the beginning, which the verifying key
    /// fixes. In a memory of several regions, this applies to the last one.
    #[must_use]
    pub fn initial(mut self, values: impl IntoIterator<Item = Fr>) -> Self {
        if let Some(Region { contents: Contents::Dense(list), .. }) = self.regions.last_mut() {
            *list = values.into_iter().collect();
        }
        self
    }

    /// Sets the maximum number of cells of one of the subcircuits that hold the memory. In a memory of
    /// several regions, this applies to the last one.
    #[must_use]
    pub fn cells_per_subcircuit(mut self, most: usize) -> Self {
        if let Some(region) = self.regions.last_mut() {
            region.most = most.max(1);
        }
        self
    }

    /// Appends the regions of another memory, whose addresses must be others.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.regions.extend(other.regions);
        self
    }
}

/// A memory of a layout.
#[derive(Debug)]
pub(crate) struct RamSpec {
    pub(crate) regions: Vec<RegionSpec>,
    /// The number of limbs of an address.
    pub(crate) address_limbs: u32,
}

/// A region of a memory.
#[derive(Debug)]
pub(crate) struct RegionSpec {
    pub(crate) addresses: Range<u64>,
    contents: Contents,
    /// The number of cells of one instance.
    pub(crate) cells: usize,
    /// The number of cells before each instance.
    pub(crate) starts: Vec<usize>,
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
        let regions: Vec<_> =
            ram.regions.into_iter().map(RegionSpec::new).collect::<Result<_, _>>()?;
        let mut sorted: Vec<Range<u64>> = regions.iter().map(RegionSpec::held).collect();
        sorted.sort_by_key(|held| held.start);
        // Two initial entries of one address would be two cells, and the prover could choose between
        // them at every access (spec: buses#times).
        if let Some(pair) = sorted.windows(2).find(|pair| pair[1].start < pair[0].end) {
            let [first, second] = [&pair[0], &pair[1]];
            return Err(format!(
                "its regions {first:?} and {second:?} overlap, cells that fill up subcircuits included"
            ));
        }
        let end = sorted.last().map_or(0, |held| held.end);
        // Keys are `a + D t` with D of at most 2^32: an address above it would be one at another time.
        if end > 1 << 32 {
            return Err("the cells that fill up its last subcircuit are beyond 2^32".into());
        }
        Ok(Self { regions, address_limbs: if end <= 1 << LIMB { 1 } else { 2 } })
    }

    /// A memory in place of one that the builder has refused, so that the author's code can continue until
    /// `build` returns the error.
    pub(crate) fn placeholder() -> Self {
        let (contents, starts) = (Contents::Dense(Vec::new()), vec![0]);
        let region = RegionSpec { addresses: 0..1, contents, cells: 1, starts };
        Self { regions: vec![region], address_limbs: 1 }
    }

    /// D: what a time is multiplied by in a key, above every address.
    pub(crate) fn spacing(&self) -> Fr {
        power_of_two(LIMB * self.address_limbs)
    }

    /// The region of an address that the author may access.
    pub(crate) fn region_of(&self, address: u64) -> Option<usize> {
        self.regions.iter().position(|region| region.addresses.contains(&address))
    }
}

impl RegionSpec {
    fn new(region: Region) -> Result<Self, String> {
        let Region { addresses, contents, most } = region;
        let count = addresses.end.saturating_sub(addresses.start);
        if count == 0 || addresses.end > 1 << 32 {
            return Err(format!("addresses {addresses:?}: expected at least one, below 2^32"));
        }
        #[allow(clippy::cast_possible_truncation, reason = "at most 2^32")]
        let total = match &contents {
            Contents::Dense(values) if values.len() as u64 > count => {
                return Err(format!("{} initial values for {count} cells", values.len()));
            }
            Contents::Dense(_) => count as usize,
            Contents::Sparse(0) => return Err("it has no cells".into()),
            Contents::Sparse(cells) => *cells,
        };
        // Cells that fill up the last instance are real cells: all instances have the same constraints,
        // so an access to such an address has a proof, too.
        let (cells, parts) = parts(total, most);
        let starts = parts.iter().map(|part| part.start).collect();
        let region = Self { addresses, contents, cells, starts };
        if region.is_sparse() && region.total() > count {
            return Err(format!(
                "{total} sparse cells, {} with those that fill up its last subcircuit, of {count} \
                 addresses: make the region dense",
                region.total()
            ));
        }
        Ok(region)
    }

    pub(crate) fn is_sparse(&self) -> bool {
        matches!(self.contents, Contents::Sparse(_))
    }

    /// The number of cells of all instances.
    pub(crate) fn total(&self) -> u64 {
        (self.starts.len() * self.cells) as u64
    }

    /// The addresses that have or can have cells.
    fn held(&self) -> Range<u64> {
        match self.is_sparse() {
            true => self.addresses.clone(),
            false => self.addresses.start..self.addresses.start + self.total(),
        }
    }

    /// The value of a cell at the beginning.
    pub(crate) fn initial(&self, address: u64) -> Fr {
        let Contents::Dense(values) = &self.contents else { return Fr::zero() };
        // The list is of the first cells; all others begin with zero.
        let place = usize::try_from(address - self.addresses.start).ok();
        place.and_then(|place| values.get(place)).map_or(Fr::zero(), |value| *value)
    }

    /// Reports whether any cell begins with a value other than zero, so that instances have pairs.
    pub(crate) fn has_values(&self) -> bool {
        match &self.contents {
            Contents::Dense(values) => values.iter().any(|value| !value.is_zero()),
            Contents::Sparse(_) => false,
        }
    }

    /// The number of parameters and of pairs of an instance.
    pub(crate) fn constants(&self) -> (usize, usize) {
        match (self.is_sparse(), self.has_values()) {
            // Sparse addresses are marked values, so the key fixes none of them.
            (true, _) => (0, 0),
            (false, true) => (0, self.cells),
            // Cells of zero follow each other: the first address determines all entries.
            (false, false) => (1, 0),
        }
    }
}
