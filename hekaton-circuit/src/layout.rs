//! Layouts: the subcircuits of a circuit and the wires that they share. A layout is known at setup
//! and independent of any witness.

use crate::ids::{InstanceId, TypeId, WireId, WireName, Writer, to_index};
use crate::memory::{Masking, PublicWire, SlotAccess};
use crate::wiring::{Wiring, WiringType};

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
    pub(crate) writer: Option<Writer>,
    pub(crate) readers: u64,
    pub(crate) first_reader: Option<u32>,
}

#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) name: String,
    pub(crate) slots: usize,
}

/// What is in a slot of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slot {
    /// Not assigned yet; `build` rejects it.
    Empty,
    /// Declared unused.
    Unused,
    Reads(u32),
    Writes(u32),
}

impl Slot {
    pub(crate) fn wire(self) -> Option<u32> {
        match self {
            Self::Reads(wire) | Self::Writes(wire) => Some(wire),
            _ => None,
        }
    }
}

/// A checked layout: subcircuit types, their instances, and the wire in each slot.
#[derive(Clone, Debug)]
pub struct Layout {
    pub(crate) types: Vec<TypeSpec>,
    pub(crate) instances: Vec<u32>,
    pub(crate) slots: Vec<Slot>,
    pub(crate) starts: Vec<usize>,
    pub(crate) wires: Vec<Wire>,
}

impl Layout {
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
