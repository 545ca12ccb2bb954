//! Layouts: which subcircuits there are and which wires they share. Known at setup, independent of any witness.

use crate::memory::{Masking, PublicWire, SlotAccess};
use crate::wiring::{Wiring, WiringType};
use std::collections::HashSet;

/// The most instances, slots and wires of a layout.
const LIMIT: usize = 1 << 31;

/// A subcircuit type of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TypeId(pub(crate) u32);

/// An instance of a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InstanceId(pub(crate) u32);

/// A shared wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WireId(pub(crate) u32);

impl TypeId {
    /// The type at a position in the order of declaration, from 0.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Position in the order of declaration, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl InstanceId {
    /// The instance at a position in the order of declaration, from 0.
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// Position in the order of declaration, from 0.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl WireId {
    /// Position in the order of declaration, from 0. The wire's address is one more.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A wire's name for error messages: a word and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WireName(pub &'static str, pub u64);

impl std::fmt::Display for WireName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.0, self.1)
    }
}

/// What is wrong with a layout.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// There is no instance.
    #[error("the layout has no instance: declare at least one subcircuit")]
    Empty,
    /// A type without instances.
    #[error("subcircuit type '{0}' has no instance: don't declare it")]
    UnusedType(String),
    /// A type name that can't be a file name, or that is taken.
    #[error(
        "'{0}' can't name a subcircuit type: use a new name of a-z, 0-9, '_' and '-', at most 64 characters"
    )]
    TypeName(String),
    /// A slot index the type does not have.
    #[error(
        "instance {instance} of type '{type_name}' has {slots} slots, slot {slot} was used for wire {wire}"
    )]
    NoSuchSlot {
        /// The instance.
        instance: usize,
        /// Its type.
        type_name: String,
        /// Slots of the type.
        slots: usize,
        /// The slot used.
        slot: usize,
        /// The wire.
        wire: WireName,
    },
    /// A slot used twice.
    #[error(
        "slot {slot} of instance {instance} is used for wire {first} and again for wire {second}"
    )]
    SlotTwice {
        /// The instance.
        instance: usize,
        /// The slot.
        slot: usize,
        /// The wire it had.
        first: WireName,
        /// The wire it was given.
        second: WireName,
    },
    /// Two writers.
    #[error("wire {wire} has two writers: {first} and {second}")]
    TwoWriters {
        /// The wire.
        wire: WireName,
        /// The first writer.
        first: Writer,
        /// The second.
        second: Writer,
    },
    /// No writer.
    #[error("wire {wire} is read by instance {reader} but nobody writes it")]
    NoWriter {
        /// The wire.
        wire: WireName,
        /// One of its readers.
        reader: usize,
    },
    /// No reader.
    #[error("wire {wire} has no reader (written by {writer}): leave the slot unused")]
    NoReader {
        /// The wire.
        wire: WireName,
        /// Its writer.
        writer: Writer,
    },
    /// A slot that is neither connected to a wire nor declared unused.
    #[error(
        "slot {slot} of instance {instance} (type '{type_name}') holds no wire, so the prover may choose its value freely: read or write a wire there, or say unused()"
    )]
    EmptySlot {
        /// The instance.
        instance: usize,
        /// Its type.
        type_name: String,
        /// The slot.
        slot: usize,
    },
    /// A wire in no slot at all.
    #[error("wire {0} is declared but used in no slot")]
    UnusedWire(WireName),
    /// Too many of something.
    #[error("the layout has more than 2^31 {0}")]
    TooMany(&'static str),
}

/// Who writes a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The verifier: a public input.
    Verifier,
    /// A subcircuit.
    Instance(usize),
}

impl std::fmt::Display for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Verifier => write!(f, "the verifier (public input)"),
            Self::Instance(i) => write!(f, "instance {i}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Private,
    PublicInput,
    PublicOutput,
}

#[derive(Clone, Debug)]
pub(crate) struct Wire {
    pub(crate) name: WireName,
    pub(crate) visibility: Visibility,
    writer: Option<Writer>,
    readers: u64,
    first_reader: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) name: String,
    pub(crate) slots: usize,
}

/// What is in a slot of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    /// nothing was said
    Empty,
    /// deliberately nothing
    Unused,
    Reads(u32),
    Writes(u32),
}

impl Slot {
    fn wire(self) -> Option<u32> {
        match self {
            Self::Reads(wire) | Self::Writes(wire) => Some(wire),
            _ => None,
        }
    }
}

/// Collects a layout; [`LayoutBuilder::build`] checks it.
#[derive(Clone, Debug, Default)]
pub struct LayoutBuilder {
    types: Vec<TypeSpec>,
    instances: Vec<u32>,
    slots: Vec<Slot>,
    starts: Vec<usize>,
    wires: Vec<Wire>,
    error: Option<LayoutError>,
}

impl LayoutBuilder {
    /// Declares a subcircuit type with so many slots for shared wires.
    ///
    /// The name becomes a file name in the key directory: a-z, 0-9, `_` and `-`.
    pub fn subcircuit_type(&mut self, name: &str, slots: usize) -> TypeId {
        let valid = !name.is_empty()
            && name.len() <= 64
            && name
                .bytes()
                .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-');
        if !valid || self.types.iter().any(|t| t.name == name) {
            self.fail(LayoutError::TypeName(name.to_owned()));
        }
        self.types.push(TypeSpec { name: name.to_owned(), slots });
        TypeId(self.types.len() as u32 - 1)
    }

    /// Declares an instance of a type.
    pub fn instance(&mut self, kind: TypeId) -> InstanceId {
        let slots = self.types.get(kind.index()).map_or(0, |t| t.slots);
        if self.instances.len() >= LIMIT || self.slots.len().saturating_add(slots) > LIMIT {
            self.fail(LayoutError::TooMany("instances or slots"));
            return InstanceId(0); // build() reports the error; nothing grows any more
        }
        self.starts.push(self.slots.len());
        self.slots.resize(self.slots.len() + slots, Slot::Empty);
        self.instances.push(kind.0);
        InstanceId(self.instances.len() as u32 - 1)
    }

    /// Declares a wire between subcircuits. The name is for error messages only.
    pub fn wire(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(WireName(name, index), Visibility::Private)
    }

    /// Declares a wire that the verifier writes. Public values come in the order of these declarations.
    pub fn public_input(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(WireName(name, index), Visibility::PublicInput)
    }

    /// Declares a wire that the verifier reads. Public values come in the order of these declarations.
    pub fn public_output(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(WireName(name, index), Visibility::PublicOutput)
    }

    /// Puts the wire that `instance` writes into one of its slots.
    pub fn write(&mut self, instance: InstanceId, slot: usize, wire: WireId) {
        self.place(instance, slot, wire, true);
    }

    /// Puts a wire that `instance` reads into one of its slots.
    pub fn read(&mut self, instance: InstanceId, slot: usize, wire: WireId) {
        self.place(instance, slot, wire, false);
    }

    /// Leaves a slot of an instance empty. The prover may then choose its value as far as the type's constraints let it:
    /// make sure that nothing depends on it.
    pub fn unused(&mut self, instance: InstanceId, slot: usize) {
        let Some(kind) =
            self.instances.get(instance.index()).map(|kind| &self.types[*kind as usize])
        else {
            return;
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
        let place = &mut self.slots[self.starts[instance.index()] + slot];
        match place.wire() {
            None => *place = Slot::Unused,
            Some(first) => {
                let first = self.wires[first as usize].name;
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

    fn add_wire(&mut self, name: WireName, visibility: Visibility) -> WireId {
        let (writer, readers) = match visibility {
            Visibility::Private => (None, 0),
            Visibility::PublicInput => (Some(Writer::Verifier), 0),
            Visibility::PublicOutput => (None, 1),
        };
        if self.wires.len() >= LIMIT {
            self.fail(LayoutError::TooMany("wires"));
            return WireId(0);
        }
        self.wires.push(Wire { name, visibility, writer, readers, first_reader: None });
        WireId(self.wires.len() as u32 - 1)
    }

    fn place(&mut self, instance: InstanceId, slot: usize, wire: WireId, writes: bool) {
        let Some(kind) = self.instances.get(instance.index()).copied() else { return };
        let Some(name) = self.wires.get(wire.index()).map(|w| w.name) else { return };
        let spec = &self.types[kind as usize];
        if slot >= spec.slots {
            let (type_name, slots) = (spec.name.clone(), spec.slots);
            return self.fail(LayoutError::NoSuchSlot {
                instance: instance.index(),
                type_name,
                slots,
                slot,
                wire: name,
            });
        }
        let place = self.starts[instance.index()] + slot;
        if self.slots[place] != Slot::Empty {
            let first = self.slots[place]
                .wire()
                .map_or(WireName("unused", 0), |first| self.wires[first as usize].name);
            return self.fail(LayoutError::SlotTwice {
                instance: instance.index(),
                slot,
                first,
                second: name,
            });
        }
        self.slots[place] = if writes { Slot::Writes(wire.0) } else { Slot::Reads(wire.0) };
        let entry = &mut self.wires[wire.index()];
        if writes {
            let second = Writer::Instance(instance.index());
            match entry.writer {
                Some(first) => self.fail(LayoutError::TwoWriters { wire: name, first, second }),
                None => entry.writer = Some(second),
            }
        } else {
            entry.readers += 1;
            entry.first_reader.get_or_insert(instance.0);
        }
    }

    fn fail(&mut self, error: LayoutError) {
        self.error.get_or_insert(error);
    }

    /// Checks the layout: every wire has one writer and at least one reader, counting the verifier for public wires.
    ///
    /// # Errors
    /// The first mistake found, with the names of wire and instances.
    pub fn build(self) -> Result<Layout, LayoutError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.instances.is_empty() {
            return Err(LayoutError::Empty);
        }
        let used: HashSet<u32> = self.instances.iter().copied().collect();
        if let Some((_, unused)) =
            self.types.iter().enumerate().find(|(i, _)| !used.contains(&(*i as u32)))
        {
            return Err(LayoutError::UnusedType(unused.name.clone()));
        }
        for wire in &self.wires {
            match (wire.writer, wire.readers, wire.first_reader) {
                (None, _, Some(reader)) => {
                    return Err(LayoutError::NoWriter { wire: wire.name, reader: reader as usize });
                }
                (None, _, None) => return Err(LayoutError::UnusedWire(wire.name)),
                (Some(writer), 0, _) => {
                    return Err(LayoutError::NoReader { wire: wire.name, writer });
                }
                (Some(_), readers, _) if readers >= 1 << 32 => {
                    return Err(LayoutError::TooMany("readers of one wire"));
                }
                _ => {}
            }
        }
        if let Some(place) = self.slots.iter().position(|slot| *slot == Slot::Empty) {
            let instance = self.starts.partition_point(|start| *start <= place) - 1;
            let type_name = self.types[self.instances[instance] as usize].name.clone();
            return Err(LayoutError::EmptySlot {
                instance,
                type_name,
                slot: place - self.starts[instance],
            });
        }
        let Self { types, instances, slots, starts, wires, .. } = self;
        Ok(Layout { types, instances, slots, starts, wires })
    }
}

/// A checked layout.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) types: Vec<TypeSpec>,
    instances: Vec<u32>,
    slots: Vec<Slot>,
    starts: Vec<usize>,
    pub(crate) wires: Vec<Wire>,
}

impl Layout {
    /// Starts an empty layout.
    pub fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }

    /// n, the number of instances.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// k, the number of types.
    pub fn types(&self) -> usize {
        self.types.len()
    }

    /// Number of shared wires, masks not counted.
    pub fn wires(&self) -> usize {
        self.wires.len()
    }

    /// All instances in order.
    pub fn instance_ids(&self) -> impl Iterator<Item = InstanceId> + use<> {
        (0..self.instances.len() as u32).map(InstanceId)
    }

    /// All types in order.
    pub fn type_ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..self.types.len() as u32).map(TypeId)
    }

    /// The type of an instance.
    pub fn type_of(&self, instance: InstanceId) -> TypeId {
        TypeId(self.instances[instance.index()])
    }

    /// The name of a type.
    pub fn type_name(&self, kind: TypeId) -> &str {
        &self.types[kind.index()].name
    }

    /// The number of slots of a type, masks not counted.
    pub fn slots(&self, kind: TypeId) -> usize {
        self.types[kind.index()].slots
    }

    /// The name of a wire.
    pub fn wire_name(&self, wire: WireId) -> WireName {
        self.wires[wire.index()].name
    }

    /// The wire in each slot of an instance.
    pub fn wires_of(&self, instance: InstanceId) -> impl Iterator<Item = Option<WireId>> + '_ {
        let start = self.starts[instance.index()];
        let count = self.slots(self.type_of(instance));
        self.slots[start..start + count].iter().map(|slot| slot.wire().map(WireId))
    }

    /// The public wires in the order of the public values.
    pub fn public_wires(&self) -> impl Iterator<Item = WireId> + '_ {
        let public =
            self.wires.iter().enumerate().filter(|(_, w)| w.visibility != Visibility::Private);
        public.map(|(i, _)| WireId(i as u32))
    }

    /// Addresses and multiplicities for the memory check (spec: memory-check#stars). With masks, every subcircuit has two
    /// more slots, a chain of mask wires (spec: zero-knowledge#masks).
    pub fn wiring(&self, masking: Masking) -> Wiring {
        let n = self.instances.len();
        let extra = masking.slots();
        let types = self
            .types
            .iter()
            .map(|t| WiringType { name: t.name.clone(), slots: t.slots + extra })
            .collect();
        let mut wiring =
            Wiring { masking, types, type_of: self.instances.clone(), ..Wiring::default() };
        let first_mask = self.wires.len() as u64 + 1;
        for i in 0..n {
            let start = self.starts[i];
            let count = self.types[self.instances[i] as usize].slots;
            wiring.slots.extend(self.slots[start..start + count].iter().map(|slot| match slot {
                Slot::Empty | Slot::Unused => SlotAccess::UNUSED,
                Slot::Writes(wire) => self.writes(*wire),
                Slot::Reads(wire) => SlotAccess::read(address(*wire)),
            }));
            if masking.is_masked() {
                // Mask i is written here and read by the next subcircuit; the first reads none and the last writes none.
                let i_mask = first_mask + i as u64;
                wiring.slots.push(if i > 0 {
                    SlotAccess::read(i_mask - 1)
                } else {
                    SlotAccess::UNUSED
                });
                wiring.slots.push(if i + 1 < n {
                    SlotAccess::write(i_mask, 1)
                } else {
                    SlotAccess::UNUSED
                });
            }
        }
        // The verifier writes public inputs and reads public outputs.
        wiring.public = (self.public_wires())
            .map(|wire| match self.wires[wire.index()].visibility {
                Visibility::PublicInput => self.writes(wire.0),
                _ => SlotAccess::read(address(wire.0)),
            })
            .map(|SlotAccess { address, multiplicity }| PublicWire { address, multiplicity })
            .collect();
        wiring
    }

    fn writes(&self, wire: u32) -> SlotAccess {
        SlotAccess::write(address(wire), self.wires[wire as usize].readers as i64)
    }
}

/// Addresses count from 1: address 0 is that of unused slots.
fn address(wire: u32) -> u64 {
    u64::from(wire) + 1
}
