//! Collects a layout, and checks it: each wire has one writer and a reader, and no slot is forgotten.

mod constants;
mod library;

use crate::buses::library::{BusSpec, SparseChain};
use crate::layout::compact::{LIMIT, Naming, Slot, SlotTable, Visibility, WireTable, Words};
use crate::layout::error::LayoutError;
use crate::layout::ids::{InstanceId, TypeId, WireId, WireName, Writer, to_index};
use crate::layout::{Constants, Layout, TypeSpec};
use crate::text::{is_public_name, is_type_name};
use hekaton_arith::Fr;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

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
    /// `true` if a plan of wired parts keeps those that instances were added with.
    keeps_parts: bool,
    error: Option<LayoutError>,
}

impl LayoutBuilder {
    /// A builder for a layout whose plan keeps the parts that instances were added with, for checks.
    pub(crate) fn keeping_parts() -> Self {
        Self { keeps_parts: true, ..Self::default() }
    }

    /// Reports whether a plan keeps the parts that instances were added with.
    pub(crate) fn keeps_parts(&self) -> bool {
        self.keeps_parts
    }

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
        // Added even if the name was refused, so that ids stay positions until `build` returns the error.
        self.types.push(TypeSpec {
            name: name.to_owned(),
            slots,
            slot_names,
            unconstrained: BTreeSet::new(),
            parameters: 0,
            pairs: 0,
            rams: Vec::new(),
            library: None,
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

    /// A declared type; an error for `build` if the id is of another layout.
    fn declared(&mut self, kind: TypeId) -> Option<&mut TypeSpec> {
        if kind.index() >= self.types.len() {
            self.fail(LayoutError::Foreign { what: "type", index: kind.index() });
        }
        self.types.get_mut(kind.index())
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
        // One wire per value: padding may read one constant millions of times, and each wire is a
        // term of the verifier's sum.
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
        // Declaring a slot unused twice is harmless; a slot with a wire is a contradiction.
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
        self.check_stars()?;
        self.check_public_names()?;
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
        // A type without instances has no keys.
        let mut used = vec![false; declared.len()];
        instances.iter().for_each(|kind| used[*kind as usize] = true);
        let all = (0..to_index(declared.len())).map(TypeId);
        let types = all.filter(|kind| used[kind.index()]).collect();
        Ok(Layout {
            declared,
            types,
            instances,
            slots,
            starts,
            wires,
            buses: buses.into(),
            chains,
            parameters,
            pairs,
        })
    }

    /// Checks that each wire has one writer and a reader.
    fn check_stars(&self) -> Result<(), LayoutError> {
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
        Ok(())
    }

    /// Checks that the names of public values can be keys of a JSON object, and are there once.
    fn check_public_names(&self) -> Result<(), LayoutError> {
        // Callers supply public values by name, as JSON with one entry per name.
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
        Ok(())
    }
}
