//! Layouts: the subcircuits of a circuit and the wires that they share. A layout is known at setup
//! and independent of any witness.

use crate::memory::{Masking, PublicWire, SlotAccess};
use crate::wiring::{Wiring, WiringType};
use std::collections::HashSet;

/// The maximum number of instances, of slots and of wires in a layout.
const LIMIT: usize = 1 << 31;

/// The 32-bit form of the index of a type, instance or wire.
#[allow(
    clippy::cast_possible_truncation,
    reason = "a layout has at most LIMIT instances and wires, and no more types than instances"
)]
pub(crate) const fn to_index(index: usize) -> u32 {
    index as u32
}

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
    /// Position in the order of declaration, from 0. The wire's address is one higher.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// The name of a wire for error messages: a word and a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WireName(pub &'static str, pub u64);

impl std::fmt::Display for WireName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}[{}]", self.0, self.1)
    }
}

/// Why a layout is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The layout has no instances.
    #[error("the layout has no instances: declare at least one subcircuit")]
    Empty,
    /// A type has no instances.
    #[error("subcircuit type '{0}' has no instances: remove it or declare an instance")]
    UnusedType(String),
    /// A type name is not usable as a file name, or is already taken.
    #[error(
        "'{0}' cannot name a subcircuit type: use a unique name of 1 to 64 characters from a-z, \
         0-9, '_' and '-'"
    )]
    TypeName(String),
    /// A slot index is out of range for the type.
    #[error(
        "instance {instance} of type '{type_name}' has {slots} slots, but wire {wire} was placed \
         in slot {slot}"
    )]
    NoSuchSlot {
        /// The instance.
        instance: usize,
        /// Its type.
        type_name: String,
        /// The number of slots of the type.
        slots: usize,
        /// The index of the slot that was used.
        slot: usize,
        /// The wire.
        wire: WireName,
    },
    /// A slot was used twice.
    #[error(
        "slot {slot} of instance {instance} is used twice: for wire {first} and for wire {second}"
    )]
    SlotTwice {
        /// The instance.
        instance: usize,
        /// The slot.
        slot: usize,
        /// The wire in the slot.
        first: WireName,
        /// The wire that was placed in it afterwards.
        second: WireName,
    },
    /// A wire has two writers.
    #[error("wire {wire} has two writers: {first} and {second}")]
    TwoWriters {
        /// The wire.
        wire: WireName,
        /// The first writer.
        first: Writer,
        /// The second writer.
        second: Writer,
    },
    /// A wire has no writer.
    #[error("wire {wire} is read by instance {reader}, but has no writer")]
    NoWriter {
        /// The wire.
        wire: WireName,
        /// One of its readers.
        reader: usize,
    },
    /// A wire has no reader.
    #[error("wire {wire}, written by {writer}, has no reader: declare its slot unused instead")]
    NoReader {
        /// The wire.
        wire: WireName,
        /// Its writer.
        writer: Writer,
    },
    /// A slot is neither connected to a wire nor declared unused.
    #[error(
        "slot {slot} of instance {instance} (type '{type_name}') holds no wire, so the prover \
         could choose its value freely: read or write a wire there, or declare it unused"
    )]
    EmptySlot {
        /// The instance.
        instance: usize,
        /// Its type.
        type_name: String,
        /// The slot.
        slot: usize,
    },
    /// A wire is in no slot.
    #[error("wire {0} is declared, but not used in any slot")]
    UnusedWire(WireName),
    /// A limit is exceeded; the text names what there is too much of.
    #[error("the layout has more than 2^31 {0}")]
    TooMany(&'static str),
}

/// The writer of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The verifier, which writes public inputs.
    Verifier,
    /// The subcircuit with this index.
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
    /// Not assigned yet; `build` rejects it.
    Empty,
    /// Declared unused.
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
    /// Declares a subcircuit type with `slots` slots for shared wires.
    ///
    /// The name becomes a file name in the key store: 1 to 64 characters from a-z, 0-9, `_` and
    /// `-`.
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
        TypeId(to_index(self.types.len() - 1))
    }

    /// Declares an instance of a type.
    pub fn instance(&mut self, kind: TypeId) -> InstanceId {
        let slots = self.types.get(kind.index()).map_or(0, |t| t.slots);
        if self.instances.len() >= LIMIT || self.slots.len().saturating_add(slots) > LIMIT {
            self.fail(LayoutError::TooMany("instances or slots"));
            return InstanceId(0); // build() reports the error; nothing grows further
        }
        self.starts.push(self.slots.len());
        self.slots.resize(self.slots.len() + slots, Slot::Empty);
        self.instances.push(kind.0);
        InstanceId(to_index(self.instances.len() - 1))
    }

    /// Declares a wire between subcircuits. The name is used in error messages only.
    pub fn wire(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(WireName(name, index), Visibility::Private)
    }

    /// Declares a wire that the verifier writes. Public values are ordered by the declarations of
    /// public wires.
    pub fn public_input(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(WireName(name, index), Visibility::PublicInput)
    }

    /// Declares a wire that the verifier reads. Public values are ordered by the declarations of
    /// public wires.
    pub fn public_output(&mut self, name: &'static str, index: u64) -> WireId {
        self.add_wire(WireName(name, index), Visibility::PublicOutput)
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
        // The verifier is the writer or a reader of each public wire
        // (spec: memory-check#addresses).
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
        WireId(to_index(self.wires.len() - 1))
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

    /// Keeps the first error, for `build` to return.
    fn fail(&mut self, error: LayoutError) {
        self.error.get_or_insert(error);
    }

    /// Checks the layout: every wire needs exactly one writer and at least one reader, where the
    /// verifier counts for public wires, and every slot must be used or declared unused.
    ///
    /// # Errors
    /// The first mistake found, with the wire and the instances involved.
    pub fn build(self) -> Result<Layout, LayoutError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        if self.instances.is_empty() {
            return Err(LayoutError::Empty);
        }
        let used: HashSet<u32> = self.instances.iter().copied().collect();
        if let Some((_, unused)) =
            self.types.iter().enumerate().find(|(i, _)| !used.contains(&to_index(*i)))
        {
            return Err(LayoutError::UnusedType(unused.name.clone()));
        }
        // One writer and at least one reader make the accesses to each address a star
        // (spec: memory-check#stars). `Wiring::check_stars` asserts that again, but knows no names.
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
        // A forgotten slot would be a free variable of the prover: leaving one must be explicit.
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

/// A checked layout: subcircuit types, their instances, and the wire in each slot.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) types: Vec<TypeSpec>,
    instances: Vec<u32>,
    slots: Vec<Slot>,
    starts: Vec<usize>,
    pub(crate) wires: Vec<Wire>,
}

impl Layout {
    /// Creates a builder for an empty layout.
    pub fn builder() -> LayoutBuilder {
        LayoutBuilder::default()
    }

    /// The number of instances, n in the specification.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// The number of types, k in the specification.
    pub fn types(&self) -> usize {
        self.types.len()
    }

    /// The number of shared wires, without masks.
    pub fn wires(&self) -> usize {
        self.wires.len()
    }

    /// All instances in order.
    pub fn instance_ids(&self) -> impl Iterator<Item = InstanceId> + use<> {
        (0..to_index(self.instances.len())).map(InstanceId)
    }

    /// All types in order.
    pub fn type_ids(&self) -> impl Iterator<Item = TypeId> + use<> {
        (0..to_index(self.types.len())).map(TypeId)
    }

    /// The type of an instance.
    pub fn type_of(&self, instance: InstanceId) -> TypeId {
        TypeId(self.instances[instance.index()])
    }

    /// The name of a type.
    pub fn type_name(&self, kind: TypeId) -> &str {
        &self.types[kind.index()].name
    }

    /// The number of slots of a type, without mask slots.
    pub fn slots(&self, kind: TypeId) -> usize {
        self.types[kind.index()].slots
    }

    /// The name of a wire.
    pub fn wire_name(&self, wire: WireId) -> WireName {
        self.wires[wire.index()].name
    }

    /// The wire in each slot of an instance, `None` for an unused slot.
    pub fn wires_of(&self, instance: InstanceId) -> impl Iterator<Item = Option<WireId>> + '_ {
        let start = self.starts[instance.index()];
        let count = self.slots(self.type_of(instance));
        self.slots[start..start + count].iter().map(|slot| slot.wire().map(WireId))
    }

    /// The public wires in the order of the public values.
    pub fn public_wires(&self) -> impl Iterator<Item = WireId> + '_ {
        let public =
            self.wires.iter().enumerate().filter(|(_, w)| w.visibility != Visibility::Private);
        public.map(|(i, _)| WireId(to_index(i)))
    }

    /// Returns the addresses and multiplicities for the memory check (spec: memory-check#addresses,
    /// memory-check#stars). With masks, every subcircuit has two additional slots, which hold a
    /// chain of mask wires (spec: zero-knowledge#masks).
    pub fn wiring(&self, masking: Masking) -> Wiring {
        let n = self.instances.len();
        let extra = masking.slots();
        let types = self
            .types
            .iter()
            .map(|t| WiringType { name: t.name.clone(), slots: t.slots + extra })
            .collect();
        let mut wiring =
            Wiring { types, type_of: self.instances.clone(), ..Wiring::empty(masking) };
        // The masks take the addresses after those of the layout's wires, so they collide with
        // none.
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
                // Instance i reads mask i - 1 and writes mask i, so each mask has one reader and
                // cancels in the LogUp sum. The ends of the chain keep the slot unused: all
                // instances of a type must have one R1CS (spec: zero-knowledge#masks).
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
        // The verifier writes public inputs and reads public outputs, in the same stars as the
        // subcircuits (spec: memory-check#addresses).
        wiring.public = (self.public_wires())
            .map(|wire| match self.wires[wire.index()].visibility {
                Visibility::PublicInput => self.writes(wire.0),
                _ => SlotAccess::read(address(wire.0)),
            })
            .map(|SlotAccess { address, multiplicity }| PublicWire { address, multiplicity })
            .collect();
        wiring
    }

    /// The access of the writer of a wire: its multiplicity is the number of readers.
    fn writes(&self, wire: u32) -> SlotAccess {
        SlotAccess::write(address(wire), self.wires[wire as usize].readers as i64)
    }
}

/// The address of a wire. Addresses start at 1; address 0 is reserved for unused slots
/// (spec: memory-check#addresses).
fn address(wire: u32) -> u64 {
    u64::from(wire) + 1
}
