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
    /// The accesses of each instance, by position among the memories of its type.
    traces: HashMap<u32, Vec<Vec<Access>>>,
}

/// One memory.
#[derive(Clone, Debug)]
struct RamState {
    name: String,
    spec: Arc<RamSpec>,
    /// The cells that were accessed: time and value of the last access.
    cells: HashMap<u64, (u64, Fr)>,
    /// For each instance with accesses: the time of the first one, how many there are, and the
    /// position of the memory among those of its type.
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

    /// Makes an access of an instance: `value` is the value to leave, of the one that was found.
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
                "the layout says nothing of accesses of instance {number} to RAM '{name}': declare \
                 them with accesses"
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
        // Times rise with the instances, so an earlier instance can no longer write what a later one
        // has read.
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
        ram.last = instance.0;
        let initial = (0, spec.initial(address));
        let known = ram.cells.get(&address).copied();
        if known.is_none() {
            ram.accessed[region] += 1;
            if spec.is_sparse() && ram.accessed[region] > spec.total() {
                let (addresses, total) = (&spec.addresses, spec.total());
                return Err(format!(
                    "{}: address {address} would be cell {} of the sparse addresses {addresses:?}, \
                     which have {total}: declare more",
                    which(),
                    total + 1
                )
                .into());
            }
        }
        let (before, found) = known.unwrap_or(initial);
        list[index].push(Access { before, found });
        ram.cells.insert(address, (first + made as u64, value(found)));
        Ok(found)
    }

    /// The accesses of an instance.
    pub(crate) fn trace(&self, instance: InstanceId) -> Vec<Vec<Access>> {
        self.traces.get(&instance.0).cloned().unwrap_or_default()
    }

    /// Chooses the cells of sparse regions, now that all accesses are made: those that were accessed,
    /// and the first others to fill up.
    pub(crate) fn finish(&mut self) {
        for ram in self.rams.values_mut() {
            let mut accessed: Vec<u64> = ram.cells.keys().copied().collect();
            accessed.sort_unstable();
            let choose = |region: &RegionSpec| {
                if !region.is_sparse() {
                    return Vec::new();
                }
                let own = accessed.iter().filter(|address| region.addresses.contains(address));
                let mut own: Vec<u64> = own.copied().collect();
                let missing =
                    usize::try_from(region.total()).unwrap_or(0).saturating_sub(own.len());
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
        let Some(ram) = self.rams.get(&kind.bus) else { return Vec::new() };
        let Some(region) = ram.spec.regions.get(kind.region) else { return Vec::new() };
        let start = region.starts.get(part).copied().unwrap_or_default();
        let cell = |address: u64| {
            let initial = (0, region.initial(address));
            let (time, value) = ram.cells.get(&address).copied().unwrap_or(initial);
            FinalCell { address, time, value }
        };
        if !region.is_sparse() {
            let first = region.addresses.start + start;
            return (first..first + kind.rows as u64).map(cell).collect();
        }
        let first = usize::try_from(start).unwrap_or(usize::MAX);
        let chosen = ram.sparse.get(kind.region).map_or(&[][..], Vec::as_slice);
        chosen.iter().skip(first).take(kind.rows).copied().map(cell).collect()
    }
}
