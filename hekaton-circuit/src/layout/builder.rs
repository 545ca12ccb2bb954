//! Collects a layout, and checks it: each wire has one writer and a reader, and no slot is forgotten.

use crate::buses::library::memory::{LIMB, Ram, RamSpec, RegionSpec};
use crate::buses::library::table::{Table, TableSpec};
use crate::buses::library::{BusKind, BusSpec, LibraryType, SparseChain};
use crate::layout::compact::{LIMIT, Naming, Slot, SlotTable, Visibility, WireTable, Words};
use crate::layout::error::LayoutError;
use crate::layout::ids::{
    BusId, InstanceId, RamId, TableId, TypeId, WireId, WireName, Writer, to_index,
};
use crate::layout::{Constants, Layout, RamPlace, TypeSpec};
use crate::text::{is_public_name, is_type_name};
use hekaton_arith::Fr;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

impl Layout {
    /// Creates a builder for an empty layout.
    pub fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }
}

/// Collects a layout; [`LayoutBuilder::build`] checks it.
#[derive(Clone, Debug, Default)]
pub struct LayoutBuilder {
    types: Vec<TypeSpec>,
    instances: Vec<u32>,
    slots: SlotTable,
    starts: Vec<usize>,
    wires: WireTable,
    constants: HashMap<Fr, WireId>,
    type_names: HashSet<String>,
    buses: Vec<BusSpec>,
    given: BTreeMap<u32, Constants>,
    /// The wires between the subcircuits of sparse memories.
    chains: Vec<SparseChain>,
    error: Option<LayoutError>,
}

impl LayoutBuilder {
    /// Declares a subcircuit type with `slots` slots for shared wires. A type without instances is
    /// left out of the layout.
    ///
    /// The name becomes a file name in the key store: 1 to 64 characters from a-z, 0-9, `_` and
    /// `-`.
    pub fn subcircuit_type(&mut self, name: &str, slots: usize) -> TypeId {
        self.named_type(name, slots, Vec::new())
    }

    /// [`Self::subcircuit_type`] with a name for every slot.
    pub(crate) fn named_type(
        &mut self,
        name: &str,
        slots: usize,
        slot_names: Vec<String>,
    ) -> TypeId {
        if !is_type_name(name) {
            self.fail(LayoutError::TypeName(name.to_owned()));
        } else if !self.type_names.insert(name.to_owned()) {
            self.fail(LayoutError::DuplicateType(name.to_owned()));
        }
        let (name, unconstrained) = (name.to_owned(), BTreeSet::new());
        let (parameters, pairs, rams, library) = (0, 0, Vec::new(), None);
        self.types.push(TypeSpec {
            name,
            slots,
            slot_names,
            unconstrained,
            parameters,
            pairs,
            rams,
            library,
        });
        TypeId(to_index(self.types.len() - 1))
    }

    /// Declares that no constraint of a type needs to use a slot. Without this declaration, setup
    /// and `check` refuse a slot that is in none of the author's constraints: the prover could
    /// choose its value freely.
    pub fn unconstrained(&mut self, kind: TypeId, slot: usize) {
        let Some(spec) = self.types.get_mut(kind.index()) else {
            return self.fail(LayoutError::Foreign { what: "type", index: kind.index() });
        };
        if slot < spec.slots {
            spec.unconstrained.insert(slot);
        } else {
            let (type_name, slots) = (spec.name.clone(), spec.slots);
            self.fail(LayoutError::NoSlotToExempt { type_name, slots, slot });
        }
    }

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

    /// The table of the numbers of `bits` bits, for
    /// [`Subcircuit::range_check`](crate::Subcircuit::range_check): there is one for each number of
    /// bits, named `range-<bits>`.
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
        let what = "RAM";
        if ram.0.index() >= self.buses.len() {
            return self.fail(LayoutError::Foreign { what, index: ram.0.index() });
        }
        let Some(spec) = self.declared(kind) else { return };
        match spec.rams.iter_mut().find(|place| place.ram == ram) {
            Some(place) => place.accesses = count,
            None => {
                let (index, parameter) = (spec.rams.len(), 0); // `build` sets the parameter
                spec.rams.push(RamPlace { ram, index, accesses: count, parameter });
            }
        }
    }

    /// Takes the buses, tables and memories of a builder that has nothing else.
    pub(crate) fn adopt(&mut self, other: Self) {
        self.buses = other.buses;
        if let Some(error) = other.error {
            self.fail(error);
        }
    }

    fn add_bus(&mut self, name: &str, kind: BusKind) -> BusId {
        let name = name.to_owned();
        if !is_type_name(&name) {
            self.fail(LayoutError::BusName(name.clone()));
        } else if self.buses.iter().any(|other| other.name == name) {
            self.fail(LayoutError::DuplicateBus(name.clone()));
        }
        self.buses.push(BusSpec { name, kind });
        BusId(to_index(self.buses.len() - 1))
    }

    /// Gives the instances that access memories their times, and appends the subcircuits of tables and
    /// memories.
    fn add_library(&mut self) {
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
        for (index, BusSpec { name, kind }) in self.buses.clone().into_iter().enumerate() {
            let bus = BusId(to_index(index));
            // Gaps between times are checked to be below 2^32.
            if times[index] >= 1 << 32 {
                let why = "more than 2^32 accesses".to_owned();
                self.fail(LayoutError::Ram { name: name.clone(), why });
            }
            match kind {
                BusKind::Raw => {}
                BusKind::Table(table) => {
                    let (rows, starts) = table.starts();
                    let starts = starts.into_iter().map(|start| start as u64).collect();
                    let name = format!("table-{name}");
                    let constants = table.constants(rows);
                    let library = LibraryType { bus, region: 0, rows };
                    self.add_rows(&name, library, constants, starts, |row| {
                        table.pair(usize::try_from(row).unwrap_or(usize::MAX))
                    });
                }
                BusKind::Ram(ram) => {
                    for (number, region) in ram.regions.iter().enumerate() {
                        let name = match number {
                            0 => format!("ram-{name}"),
                            number => format!("ram-{name}-{number}"),
                        };
                        let library = LibraryType { bus, region: number, rows: region.cells };
                        if region.is_sparse() {
                            self.add_sparse(&name, library, region);
                            continue;
                        }
                        let (first, starts) = (region.addresses.start, region.starts.clone());
                        self.add_rows(&name, library, region.constants(), starts, |cell| {
                            [Fr::from(first + cell), region.initial(first + cell)]
                        });
                    }
                }
            }
        }
    }

    /// Adds a type for the cells of a sparse region, and a chain of its instances: each one reads the
    /// address that its cells have at least, and writes that of the next one. The first and the last of
    /// these are constants (spec: buses#sparse).
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
        starts: Vec<u64>,
        pair: impl Fn(u64) -> [Fr; 2],
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
                let [key, value] = pair(start + row as u64);
                self.set_pair(instance, row, key, value);
            }
        }
    }

    /// Declares that the instances of a type have parameters: constants of which each instance has
    /// its own, fixed by the verifying key. [`set_parameter`](Self::set_parameter) gives their
    /// values. The default is none.
    pub fn parameters(&mut self, kind: TypeId, count: usize) {
        if let Some(spec) = self.declared(kind) {
            spec.parameters = count;
        }
    }

    /// Declares that the instances of a type have pairs of a key and a value: entries of a bus that
    /// the verifying key fixes. [`set_pair`](Self::set_pair) gives them. The default is none.
    pub fn pairs(&mut self, kind: TypeId, count: usize) {
        if let Some(spec) = self.declared(kind) {
            spec.pairs = count;
        }
    }

    /// Gives a parameter of an instance its value.
    pub fn set_parameter(&mut self, instance: InstanceId, index: usize, value: Fr) {
        if let Some(given) = self.constants_of(instance, "parameter", index, |t| t.parameters) {
            place(&mut given.parameters, index, value);
        }
    }

    /// Gives a pair of an instance its key and its value.
    pub fn set_pair(&mut self, instance: InstanceId, index: usize, key: Fr, value: Fr) {
        if let Some(given) = self.constants_of(instance, "pair", index, |t| t.pairs) {
            place(&mut given.pairs, index, [key, value]);
        }
    }

    fn declared(&mut self, kind: TypeId) -> Option<&mut TypeSpec> {
        if kind.index() >= self.types.len() {
            self.fail(LayoutError::Foreign { what: "type", index: kind.index() });
        }
        self.types.get_mut(kind.index())
    }

    /// The constants of an instance whose type has one at this index.
    fn constants_of(
        &mut self,
        instance: InstanceId,
        what: &'static str,
        index: usize,
        count: impl Fn(&TypeSpec) -> usize,
    ) -> Option<&mut Constants> {
        let Some(kind) = self.instances.get(instance.index()) else {
            self.fail(LayoutError::Foreign { what: "instance", index: instance.index() });
            return None;
        };
        let spec = &self.types[*kind as usize];
        let (count, type_name) = (count(spec), spec.name.clone());
        if index >= count {
            let instance = instance.index();
            self.fail(LayoutError::NoSuchConstant { instance, type_name, what, count, index });
            return None;
        }
        Some(self.given.entry(instance.0).or_default())
    }

    /// Declares an instance of a type.
    pub fn instance(&mut self, kind: TypeId) -> InstanceId {
        let Some(slots) = self.types.get(kind.index()).map(|t| t.slots) else {
            self.fail(LayoutError::Foreign { what: "type", index: kind.index() });
            return InstanceId(0); // build() reports the error
        };
        if self.instances.len() >= LIMIT || self.slots.len().saturating_add(slots) > LIMIT {
            self.fail(LayoutError::TooMany("instances or slots"));
            return InstanceId(0); // build() reports the error; nothing grows further
        }
        self.starts.push(self.slots.len());
        self.slots.extend(slots);
        self.instances.push(kind.0);
        InstanceId(to_index(self.instances.len() - 1))
    }

    /// The number of instances declared so far.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// Declares a wire between subcircuits. The name is used in error messages only.
    pub fn wire(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(Naming::Name(WireName(name, index)), Visibility::Private)
    }

    /// Keeps a list of words for [`worded_wire`](Self::worded_wire).
    pub(crate) fn words(&mut self, words: Vec<&'static str>) -> Words {
        self.wires.words(words)
    }

    /// Declares a wire between subcircuits whose name is a word of a list, and a number. Wires with
    /// successive words of a list and one number need little memory.
    pub(crate) fn worded_wire(&mut self, words: Words, place: u32, index: u64) -> WireId {
        self.add_wire(Naming::Word { words, place, index }, Visibility::Private)
    }

    /// Declares a wire that the verifier writes. Public values are ordered by the declarations of
    /// public wires.
    pub fn public_input(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(Naming::Name(WireName(name, index)), Visibility::PublicInput)
    }

    /// Declares a wire that the verifier reads. Public values are ordered by the declarations of
    /// public wires.
    pub fn public_output(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(Naming::Name(WireName(name, index)), Visibility::PublicOutput)
    }

    /// Declares a wire with a value that the verifying key fixes: the verifier writes it, and no
    /// prover can choose it. Constants pad uneven counts. The same value always has the same wire,
    /// and a constant without readers is left out.
    pub fn constant(&mut self, value: Fr) -> WireId {
        if let Some(wire) = self.constants.get(&value) {
            return *wire;
        }
        let index = self.constants.len() as u64;
        let name = Naming::Name(WireName("constant", index));
        let wire = self.add_wire(name, Visibility::Constant(value));
        self.constants.insert(value, wire);
        wire
    }

    /// Places a wire that `instance` writes in one of its slots.
    pub fn write(&mut self, instance: InstanceId, slot: usize, wire: WireId) {
        self.place(instance, slot, wire, true);
    }

    /// Places a wire that `instance` reads in one of its slots.
    pub fn read(&mut self, instance: InstanceId, slot: usize, wire: WireId) {
        self.place(instance, slot, wire, false);
    }

    /// Declares a slot of an instance unused. The prover may then choose any value that the type's
    /// constraints allow, so make sure that nothing depends on it.
    pub fn unused(&mut self, instance: InstanceId, slot: usize) {
        let Some(kind) =
            self.instances.get(instance.index()).map(|kind| &self.types[*kind as usize])
        else {
            return self.fail(LayoutError::Foreign { what: "instance", index: instance.index() });
        };
        if slot >= kind.slots {
            let (type_name, slots) = (kind.name.clone(), kind.slots);
            let wire = WireName("unused", 0);
            return self.fail(LayoutError::NoSuchSlot {
                instance: instance.index(),
                type_name,
                slots,
                slot,
                wire,
            });
        }
        let place = self.starts[instance.index()] + slot;
        match self.slots.get(place).wire() {
            None => self.slots.set(place, Slot::Unused),
            Some(first) => {
                let first = self.wires.name(WireId(first));
                let second = WireName("unused", 0);
                self.fail(LayoutError::SlotTwice {
                    instance: instance.index(),
                    slot,
                    first,
                    second,
                });
            }
        }
    }

    fn add_wire(&mut self, name: Naming, visibility: Visibility) -> WireId {
        if self.wires.len() >= LIMIT {
            self.fail(LayoutError::TooMany("wires"));
            return WireId(0);
        }
        self.wires.push(name, visibility)
    }

    fn place(&mut self, instance: InstanceId, slot: usize, wire: WireId, writes: bool) {
        let Some(kind) = self.instances.get(instance.index()).copied() else {
            return self.fail(LayoutError::Foreign { what: "instance", index: instance.index() });
        };
        if wire.index() >= self.wires.len() {
            return self.fail(LayoutError::Foreign { what: "wire", index: wire.index() });
        }
        let spec = &self.types[kind as usize];
        if slot >= spec.slots {
            let (type_name, slots) = (spec.name.clone(), spec.slots);
            return self.fail(LayoutError::NoSuchSlot {
                instance: instance.index(),
                type_name,
                slots,
                slot,
                wire: self.wires.name(wire),
            });
        }
        let place = self.starts[instance.index()] + slot;
        let found = self.slots.get(place);
        if found != Slot::Empty {
            let first = found.wire().map(|first| self.wires.name(WireId(first)));
            return self.fail(LayoutError::SlotTwice {
                instance: instance.index(),
                slot,
                first: first.unwrap_or(WireName("unused", 0)),
                second: self.wires.name(wire),
            });
        }
        self.slots.set(place, if writes { Slot::Writes(wire.0) } else { Slot::Reads(wire.0) });
        if !writes {
            self.wires.add_reader(wire);
        } else if let Err(first) = self.wires.set_writer(wire, instance.0) {
            let (wire, second) = (self.wires.name(wire), Writer::Instance(instance.index()));
            self.fail(LayoutError::TwoWriters { wire, first, second });
        }
    }

    /// The instance that a slot belongs to.
    fn instance_at(&self, place: usize) -> usize {
        self.starts.partition_point(|start| *start <= place) - 1
    }

    /// Keeps the first error, for `build` to return.
    fn fail(&mut self, error: LayoutError) {
        self.error.get_or_insert(error);
    }

    /// Returns the first mistake so far.
    pub(crate) fn first_error(&self) -> Result<(), LayoutError> {
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Checks the layout: every wire needs exactly one writer and at least one reader, where the
    /// verifier counts for public wires, and every slot must be used or declared unused.
    ///
    /// # Errors
    /// The first mistake found, with the wire and the instances involved.
    pub fn build(mut self) -> Result<Layout, LayoutError> {
        self.first_error()?;
        if self.instances.is_empty() {
            return Err(LayoutError::Empty);
        }
        self.add_library();
        self.first_error()?;
        // One writer and at least one reader make the accesses to each address a star
        // (spec: memory-check#stars). `Wiring::check_stars` asserts that again, but knows no names.
        for wire in (0..to_index(self.wires.len())).map(WireId) {
            let name = || self.wires.name(wire);
            match (self.wires.writer(wire), self.wires.readers(wire)) {
                (None, _) => {
                    // The verifier reads a public output, and is not a subcircuit.
                    let reader = self.slots.position(Slot::Reads(wire.0));
                    return Err(match reader.map(|place| self.instance_at(place)) {
                        Some(reader) => LayoutError::NoWriter { wire: name(), reader },
                        None => LayoutError::UnusedWire(name()),
                    });
                }
                (Some(Writer::Key), 0) => {} // left out of the wiring
                (Some(writer), 0) => {
                    return Err(LayoutError::NoReader { wire: name(), writer });
                }
                (Some(_), _) => {}
            }
        }
        // The JSON form of public values has one entry per name.
        let mut names = HashSet::new();
        let public = self.wires.special().iter().filter(|(_, visibility)| visibility.is_public());
        for name in public.map(|(wire, _)| self.wires.name(*wire)) {
            if !is_public_name(name.0) {
                return Err(LayoutError::PublicName(name.0));
            }
            if !names.insert(name) {
                return Err(LayoutError::DuplicatePublic(name));
            }
        }
        // A forgotten slot would be a free variable of the prover: leaving one must be explicit.
        if let Some(place) = self.slots.position(Slot::Empty) {
            let instance = self.instance_at(place);
            let type_name = self.types[self.instances[instance] as usize].name.clone();
            return Err(LayoutError::EmptySlot {
                instance,
                type_name,
                slot: place - self.starts[instance],
            });
        }
        let (parameters, pairs) = self.take_constants()?;
        let Self { types: declared, instances, slots, starts, wires, buses, chains, .. } = self;
        let mut used = vec![false; declared.len()];
        instances.iter().for_each(|kind| used[*kind as usize] = true);
        let all = (0..to_index(declared.len())).map(TypeId);
        let types = all.filter(|kind| used[kind.index()]).collect();
        let buses = buses.into();
        Ok(Layout {
            declared,
            types,
            instances,
            slots,
            starts,
            wires,
            buses,
            chains,
            parameters,
            pairs,
        })
    }

    /// The parameters and pairs of all instances.
    #[allow(clippy::type_complexity)]
    fn take_constants(
        &self,
    ) -> Result<((BTreeMap<u32, usize>, Vec<Fr>), (BTreeMap<u32, usize>, Vec<[Fr; 2]>)), LayoutError>
    {
        let (mut parameters, mut pairs) = (Default::default(), Default::default());
        if self.types.iter().all(|spec| (spec.parameters, spec.pairs) == (0, 0)) {
            return Ok((parameters, pairs));
        }
        let none = Constants::default();
        for (instance, kind) in (0..).zip(&self.instances) {
            let spec = &self.types[*kind as usize];
            let given = self.given.get(&instance).unwrap_or(&none);
            let missing = |what, index| LayoutError::MissingConstant {
                instance: instance as usize,
                type_name: spec.name.clone(),
                what,
                index,
            };
            take(&mut parameters, instance, &given.parameters, spec.parameters)
                .map_err(|index| missing("parameter", index))?;
            take(&mut pairs, instance, &given.pairs, spec.pairs)
                .map_err(|index| missing("pair", index))?;
        }
        Ok((parameters, pairs))
    }
}

/// Puts a value in its place of a list.
fn place<T: Clone>(list: &mut Vec<Option<T>>, index: usize, value: T) {
    if list.len() <= index {
        list.resize(index + 1, None);
    }
    list[index] = Some(value);
}

/// Appends an instance's constants, or returns the first one that is missing.
fn take<T: Copy>(
    (places, list): &mut (BTreeMap<u32, usize>, Vec<T>),
    instance: u32,
    given: &[Option<T>],
    count: usize,
) -> Result<(), usize> {
    if count == 0 {
        return Ok(());
    }
    places.insert(instance, list.len());
    for index in 0..count {
        list.push(given.get(index).copied().flatten().ok_or(index)?);
    }
    Ok(())
}
