//! Memories in the execution: their contents, and the accesses that subcircuits make to them.

use super::memory::RegionSpec;
use super::memory::{Access, RamSpec};
use super::{BusKind, FinalCell, LibraryType};
use crate::circuit_error::CircuitError;
use crate::layout::Layout;
use crate::layout::ids::{BusId, InstanceId, RamId};
use ark_ff::PrimeField;
use hekaton_arith::Fr;
use std::collections::HashMap;
use std::sync::Arc;

/// All memories of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memories {
    rams: HashMap<BusId, RamState>,
    /// The accesses of each instance to each memory of its type.
    traces: HashMap<u32, Vec<Vec<Access>>>,
}

/// One memory.
#[derive(Clone, Debug)]
struct RamState {
    name: String,
    spec: Arc<RamSpec>,
    /// The cells that were accessed: time and value of the last access.
    cells: HashMap<u64, (u64, Fr)>,
    /// For each instance with accesses: the time of the first one, their number, and the position of the
    /// memory among those of its type.
    places: HashMap<u32, (u64, usize, usize)>,
    /// The last instance that made an access.
    last: u32,
    /// The number of cells that were accessed, of each region.
    accessed: Vec<u64>,
    /// The addresses of all cells of each sparse region, in ascending order; none of a dense one.
    sparse: Vec<Vec<u64>>,
}

impl Memories {
    pub(crate) fn new(layout: &Layout) -> Self {
        let mut rams = HashMap::new();
        for (bus, spec) in (0..).zip(layout.buses.iter()) {
            let BusKind::Ram(ram) = &spec.kind else { continue };
            let (name, spec) = (spec.name.clone(), Arc::clone(ram));
            let (cells, places) = (HashMap::new(), HashMap::new());
            let (accessed, sparse) = (vec![0; spec.regions.len()], Vec::new());
            let state = RamState { name, spec, cells, places, last: 0, accessed, sparse };
            rams.insert(BusId(bus), state);
        }
        if !rams.is_empty() {
            for instance in layout.instance_ids() {
                let parameters = layout.preprocessed(instance).parameters;
                for place in layout.ram_places(layout.type_of(instance)) {
                    let first = parameters[place.parameter].into_bigint().0[0];
                    let at = (first, place.accesses, place.index);
                    rams.get_mut(&place.ram.0).map(|ram| ram.places.insert(instance.0, at));
                }
            }
        }
        Self { rams, traces: HashMap::new() }
    }

    /// Makes an access of an instance. `value` computes the value to leave from the value found.
    // One piece: each error names the access with what the checks before it have found.
    pub(crate) fn access(
        &mut self,
        instance: InstanceId,
        ram: RamId,
        address: u64,
        value: impl FnOnce(Fr) -> Fr,
    ) -> Result<Fr, CircuitError> {
        let Some(ram) = self.rams.get_mut(&ram.0) else {
            return Err("the RAM is not in this layout: its id comes from another one".into());
        };
        let (name, number) = (&ram.name, instance.index());
        let Some((first, accesses, index)) = ram.places.get(&instance.0).copied() else {
            return Err(format!(
                "the layout declares no accesses of instance {number} to RAM '{name}': declare them \
                 with accesses"
            )
            .into());
        };
        let list = self.traces.entry(instance.0).or_default();
        if list.len() <= index {
            list.resize(index + 1, Vec::new());
        }
        let made = list[index].len();
        let which = || format!("access {made} of instance {number} to RAM '{name}'");
        if made >= accesses {
            return Err(format!("{}: the layout has only {accesses}", which()).into());
        }
        // Times rise with the instances. An access of an earlier instance would come before those that
        // later instances have made already, and their values would be wrong.
        if instance.0 < ram.last {
            let last = ram.last;
            return Err(format!("{} comes after one of instance {last}", which()).into());
        }
        let Some(region) = ram.spec.region_of(address) else {
            let regions: Vec<_> = ram.spec.regions.iter().map(|r| r.addresses.clone()).collect();
            let all = match &regions[..] {
                [only] => format!("{only:?}"),
                several => format!("any of {several:?}"),
            };
            return Err(format!("{}: address {address} is not in {all}", which()).into());
        };
        let spec = &ram.spec.regions[region];
        let initial = (0, spec.initial(address)); // time 0 is the beginning
        let known = ram.cells.get(&address).copied();
        // Also dense regions are counted, which have a cell for every address: only sparse ones can run out.
        if known.is_none() {
            if spec.is_sparse() && ram.accessed[region] >= spec.total() {
                let (addresses, total) = (&spec.addresses, spec.total());
                return Err(format!(
                    "{}: address {address} would be cell {} of the sparse addresses {addresses:?}, \
                     which have {total}: declare more",
                    which(),
                    total + 1
                )
                .into());
            }
            ram.accessed[region] += 1;
        }
        ram.last = instance.0;
        let (before, found) = known.unwrap_or(initial);
        list[index].push(Access { before, found });
        ram.cells.insert(address, (first + made as u64, value(found)));
        Ok(found)
    }

    /// The accesses of an instance.
    pub(crate) fn trace(&self, instance: InstanceId) -> Vec<Vec<Access>> {
        // Only instances that made an access have an entry.
        self.traces.get(&instance.0).map_or_else(Vec::new, Vec::clone)
    }

    /// Chooses the cells of sparse regions after all accesses: the accessed addresses, and as many of the
    /// first others as are missing.
    pub(crate) fn finish(&mut self) {
        for ram in self.rams.values_mut() {
            let mut accessed: Vec<u64> = ram.cells.keys().copied().collect();
            accessed.sort_unstable();
            let choose = |region: &RegionSpec| {
                if !region.is_sparse() {
                    return Vec::new();
                }
                let mut own: Vec<u64> = (accessed.iter().copied())
                    .filter(|address| region.addresses.contains(address))
                    .collect();
                // `access` refuses more addresses than there are cells.
                let missing = region.starts.len() * region.cells - own.len();
                // Constraints ask for rising addresses, not for accessed ones, so any free ones will do.
                let is_free = |address: &u64| accessed.binary_search(address).is_err();
                let free: Vec<u64> =
                    region.addresses.clone().filter(is_free).take(missing).collect();
                own.extend(free);
                own.sort_unstable();
                own
            };
            ram.sparse = ram.spec.regions.iter().map(choose).collect();
        }
    }

    /// The address of a cell of a sparse region, counted over all of its instances.
    pub(crate) fn sparse_address(&self, bus: BusId, region: usize, cell: usize) -> Option<u64> {
        self.rams.get(&bus)?.sparse.get(region)?.get(cell).copied()
    }

    /// The cells of an instance of a memory's own type, after all accesses.
    pub(crate) fn cells(&self, kind: LibraryType, part: usize) -> Vec<FinalCell> {
        // An empty list in place of a missing memory would be a wrong witness that no prover notices.
        let ram = self.rams.get(&kind.bus).expect("a type of cells belongs to a RAM of its layout");
        let region = &ram.spec.regions[kind.region];
        let start = region.starts[part];
        let cell = |address: u64| {
            let initial = (0, region.initial(address));
            let (time, value) = ram.cells.get(&address).copied().unwrap_or(initial);
            FinalCell { address, time, value }
        };
        if !region.is_sparse() {
            let first = region.addresses.start + start as u64;
            return (first..first + kind.rows as u64).map(cell).collect();
        }
        // Empty before `finish`, which only the execution of a range does not call; no circuit with
        // memories has one.
        let chosen = ram.sparse.get(kind.region).map_or(&[][..], Vec::as_slice);
        chosen.iter().skip(part * kind.rows).take(kind.rows).copied().map(cell).collect()
    }
}
