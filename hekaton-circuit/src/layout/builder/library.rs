//! Buses, tables and memories of a layout, and the subcircuits that the library adds for their rows and
//! cells (spec: buses#tables, buses#cells).

use super::LayoutBuilder;
use crate::buses::library::memory::{LIMB, Ram, RamSpec, RegionSpec};
use crate::buses::library::table::{Table, TableSpec};
use crate::buses::library::{BusKind, BusSpec, LibraryType, SparseChain};
use crate::layout::RamPlace;
use crate::layout::error::LayoutError;
use crate::layout::ids::{BusId, InstanceId, RamId, TableId, TypeId, to_index};
use crate::text::is_type_name;
use hekaton_arith::Fr;
use std::sync::Arc;

impl LayoutBuilder {
    /// Declares a bus: a multiset to which all subcircuits add entries of a key, a value and a
    /// multiplicity, with [`Subcircuit::bus`](crate::Subcircuit::bus). A proof exists only if the
    /// multiplicities of each key and value sum to zero (spec: buses#entries).
    ///
    /// The name follows the rules for names of types.
    pub fn bus(&mut self, name: &str) -> BusId {
        self.add_bus(name, BusKind::Raw)
    }

    /// Declares a table, which subcircuits look up with [`Subcircuit::table`](crate::Subcircuit::table).
    /// Subcircuits of a type `table-<name>` hold its rows, one constraint each; the layout appends them
    /// to those of the author (spec: buses#tables).
    pub fn table(&mut self, name: &str, table: Table) -> TableId {
        let table = TableSpec::new(table).unwrap_or_else(|why| {
            self.fail(LayoutError::Table { name: name.to_owned(), why });
            TableSpec::placeholder()
        });
        TableId(self.add_bus(name, BusKind::Table(Arc::new(table))))
    }

    /// Declares the table of the numbers of `bits` bits, for
    /// [`Subcircuit::range_check`](crate::Subcircuit::range_check), or returns the one that was declared
    /// before. It is named `range-<bits>`.
    pub fn range(&mut self, bits: u32) -> TableId {
        let same = |bus: &BusSpec| match &bus.kind {
            BusKind::Table(table) => table.is_range_of(bits),
            _ => false,
        };
        match self.buses.iter().position(same) {
            Some(index) => TableId(BusId(to_index(index))),
            None => self.table(&format!("range-{bits}"), Table::range(bits)),
        }
    }

    /// Declares a memory, which subcircuits read and write with
    /// [`Subcircuit::ram`](crate::Subcircuit::ram). Subcircuits of a type `ram-<name>` hold its cells,
    /// three constraints each; the layout appends them to those of the author. The memory needs the
    /// [range](Self::range) of 16 bits, and declares it (spec: buses#cells).
    pub fn ram(&mut self, name: &str, ram: Ram) -> RamId {
        self.range(LIMB);
        let ram = RamSpec::new(ram).unwrap_or_else(|why| {
            self.fail(LayoutError::Ram { name: name.to_owned(), why });
            RamSpec::placeholder()
        });
        RamId(self.add_bus(name, BusKind::Ram(Arc::new(ram))))
    }

    /// Declares that each instance of a type makes `count` accesses to a memory. All accesses happen in
    /// the order of the instances, and within an instance in the order of the calls.
    pub fn accesses(&mut self, kind: TypeId, ram: RamId, count: usize) {
        let index = ram.0.index();
        if index >= self.buses.len() {
            return self.fail(LayoutError::Foreign { what: "RAM", index });
        }
        let Some(spec) = self.declared(kind) else { return };
        match spec.rams.iter_mut().find(|place| place.ram == ram) {
            Some(place) => place.accesses = count,
            None => {
                let index = spec.rams.len();
                // `set_times` sets the parameter: the author may declare more until then.
                spec.rams.push(RamPlace { ram, index, accesses: count, parameter: 0 });
            }
        }
    }

    /// Takes over the buses, tables and memories of a builder in which only these were declared.
    pub(crate) fn adopt(&mut self, other: Self) {
        self.buses = other.buses;
        if let Some(error) = other.error {
            self.fail(error);
        }
    }

    fn add_bus(&mut self, name: &str, kind: BusKind) -> BusId {
        // The names of the types that hold its rows are made of it.
        if !is_type_name(name) {
            self.fail(LayoutError::BusName(name.to_owned()));
        } else if self.buses.iter().any(|other| other.name == name) {
            self.fail(LayoutError::DuplicateBus(name.to_owned()));
        }
        self.buses.push(BusSpec { name: name.to_owned(), kind });
        BusId(to_index(self.buses.len() - 1))
    }

    /// Sets the times of the accesses to memories, and appends the subcircuits of tables and memories.
    pub(super) fn add_library(&mut self) {
        self.set_times();
        for (index, BusSpec { name, kind }) in self.buses.clone().into_iter().enumerate() {
            let bus = BusId(to_index(index));
            match kind {
                BusKind::Raw => {}
                BusKind::Table(table) => self.add_table(&name, bus, &table),
                BusKind::Ram(ram) => {
                    for (number, region) in ram.regions.iter().enumerate() {
                        self.add_region(&name, bus, number, region);
                    }
                }
            }
        }
    }

    /// Adds a parameter for each memory that a type accesses, and sets it to the time of an instance's
    /// first access (spec: buses#times).
    fn set_times(&mut self) {
        // The layout fixes the times, so that no prover can move an access before another one.
        for spec in &mut self.types {
            for place in &mut spec.rams {
                place.parameter = spec.parameters;
                spec.parameters += 1;
            }
        }
        // The beginning is time 0.
        let mut times = vec![1u64; self.buses.len()];
        for (instance, kind) in (0..).zip(self.instances.clone()) {
            for place in self.types[kind as usize].rams.clone() {
                let time = &mut times[place.ram.0.index()];
                let first = Fr::from(*time);
                *time = time.saturating_add(place.accesses as u64);
                self.set_parameter(InstanceId(instance), place.parameter, first);
            }
        }
        // The gap between two accesses has two limbs of 16 bits.
        if let Some(index) = times.iter().position(|time| *time >= 1 << 32) {
            let name = self.buses[index].name.clone();
            self.fail(LayoutError::Ram { name, why: "more than 2^32 accesses".to_owned() });
        }
    }

    /// Adds the subcircuits that hold the rows of a table.
    fn add_table(&mut self, name: &str, bus: BusId, table: &TableSpec) {
        let (rows, starts) = table.starts();
        let library = LibraryType { bus, region: 0, rows };
        let pair = |row| table.pair(row);
        self.add_rows(&format!("table-{name}"), library, table.constants(rows), starts, pair);
    }

    /// Adds the subcircuits that hold the cells of a region of a memory.
    fn add_region(&mut self, name: &str, bus: BusId, number: usize, region: &RegionSpec) {
        // Most memories have one region, which needs no number.
        let type_name = match number {
            0 => format!("ram-{name}"),
            number => format!("ram-{name}-{number}"),
        };
        let library = LibraryType { bus, region: number, rows: region.cells };
        if region.is_sparse() {
            return self.add_sparse(&type_name, library, region);
        }
        let (first, starts) = (region.addresses.start, region.starts.clone());
        self.add_rows(&type_name, library, region.constants(), starts, |cell| {
            let address = first + cell as u64;
            [Fr::from(address), region.initial(address)]
        });
    }

    /// Adds a type for the cells of a sparse region, and a chain of its instances. Each instance reads the
    /// lowest address that its cells may have, and writes that of the next instance. The first and the last
    /// of these addresses are constants (spec: buses#sparse).
    fn add_sparse(&mut self, name: &str, library: LibraryType, region: &RegionSpec) {
        let kind = self.subcircuit_type(name, 2);
        if let Some(spec) = self.declared(kind) {
            spec.library = Some(library);
        }
        let mut least = self.constant(Fr::from(region.addresses.start));
        for number in 1..=region.starts.len() {
            let instance = self.instance(kind);
            self.read(instance, 0, least);
            if number == region.starts.len() {
                let end = self.constant(Fr::from(region.addresses.end));
                self.read(instance, 1, end);
            } else {
                least = self.wire("next sparse cell", number as u64);
                self.write(instance, 1, least);
                self.chains.push(SparseChain { library, cell: number * region.cells, wire: least });
            }
        }
    }

    /// Adds a type of the library, and an instance for each of these first rows: with a parameter for
    /// the key of the first row, or a pair for each row.
    fn add_rows(
        &mut self,
        name: &str,
        library: LibraryType,
        (parameters, pairs): (usize, usize),
        starts: Vec<usize>,
        pair: impl Fn(usize) -> [Fr; 2],
    ) {
        let kind = self.subcircuit_type(name, 0);
        if let Some(spec) = self.declared(kind) {
            spec.library = Some(library);
            (spec.parameters, spec.pairs) = (parameters, pairs);
        }
        for start in starts {
            let instance = self.instance(kind);
            if parameters > 0 {
                self.set_parameter(instance, 0, pair(start)[0]);
            }
            for row in 0..pairs {
                let [key, value] = pair(start + row);
                self.set_pair(instance, row, key, value);
            }
        }
    }
}
