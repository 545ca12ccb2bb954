//! Collects a layout, and checks it: each wire has one writer and a reader, and no slot is forgotten.

use crate::ids::{InstanceId, TypeId, WireId, WireName, Writer, to_index};
use crate::layout::{Layout, Slot, TypeSpec, Visibility, Wire};
use crate::layout_error::LayoutError;
use std::collections::HashSet;

/// The maximum number of instances, of slots and of wires in a layout.
const LIMIT: usize = 1 << 31;

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
