//! Layouts: the subcircuits of a circuit and the wires that they share. A layout is known at setup
//! and independent of any witness.

pub(crate) mod builder;
pub(crate) mod compact;
pub(crate) mod difference;
pub(crate) mod error;
pub(crate) mod ids;

use crate::buses::library::{BusKind, BusSpec, LibraryType, SparseChain};
use crate::interface::{ConstantWire, Masking, Preprocessed, PublicWire, SlotAccess};
use crate::layout::compact::{Slot, SlotTable, Visibility, WireTable};
use crate::layout::ids::{InstanceId, RamId, TypeId, WireId, WireName, to_index};
use crate::memory::variables::{BusShape, VariableLayout};
use crate::memory::wiring::{Wiring, WiringType, encode_accesses};
use hekaton_arith::Fr;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The number of slots that are encoded in one piece for the digest, and the number of pieces in memory at
/// once: together 32 MiB, and enough pieces for the threads of a large machine. The digest does not
/// depend on them.
const SLOTS_AT_ONCE: usize = 1 << 14;
const RANGES: usize = 128;

#[derive(Clone, Debug)]
pub(crate) struct TypeSpec {
    pub(crate) name: String,
    pub(crate) slots: usize,
    /// The names of the slots; empty if they have none.
    pub(crate) slot_names: Vec<String>,
    /// The slots that need not be in a constraint of the author.
    pub(crate) unconstrained: BTreeSet<usize>,
    /// The number of parameters of an instance.
    pub(crate) parameters: usize,
    /// The number of pairs of an instance.
    pub(crate) pairs: usize,
    /// The memories that its instances access.
    pub(crate) rams: Vec<RamPlace>,
    /// The contents of a type that the library makes, rows of a table or cells of a memory; `None` for the
    /// author's types.
    pub(crate) library: Option<LibraryType>,
}

/// A memory that the instances of a type access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RamPlace {
    pub(crate) ram: RamId,
    /// Its position among the memories of the type.
    pub(crate) index: usize,
    /// The number of accesses of an instance.
    pub(crate) accesses: usize,
    /// The parameter that holds the time of the first access.
    pub(crate) parameter: usize,
}

/// The constants that an instance was given, by position.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constants {
    pub(crate) parameters: Vec<Option<Fr>>,
    pub(crate) pairs: Vec<Option<[Fr; 2]>>,
}

/// Constants of the instances that have some, and the place of each instance's first one in the list.
pub(crate) type OfInstances<T> = (BTreeMap<u32, usize>, Vec<T>);

/// A checked layout: subcircuit types, their instances, and the wire in each slot.
///
/// A type that was declared without an instance is not part of it, but keeps its [`TypeId`].
#[derive(Clone, Debug)]
pub struct Layout {
    /// All declared types, by id.
    pub(crate) declared: Vec<TypeSpec>,
    /// The types with instances, in the order of their declaration.
    pub(crate) types: Vec<TypeId>,
    /// The id of the type of each instance.
    pub(crate) instances: Vec<u32>,
    pub(crate) slots: SlotTable,
    pub(crate) starts: Vec<usize>,
    pub(crate) wires: WireTable,
    /// The buses, those of tables and memories included.
    pub(crate) buses: Arc<[BusSpec]>,
    /// The wires between the subcircuits of sparse memories.
    pub(crate) chains: Vec<SparseChain>,
    /// The parameters of all instances.
    pub(crate) parameters: OfInstances<Fr>,
    /// The pairs of all instances.
    pub(crate) pairs: OfInstances<[Fr; 2]>,
}

impl Layout {
    /// The number of instances, n in the specification.
    pub fn instances(&self) -> usize {
        self.instances.len()
    }

    /// The number of types with instances, k in the specification.
    pub fn types(&self) -> usize {
        self.types.len()
    }

    /// The number of shared wires, constants included and masks excluded.
    pub fn wires(&self) -> usize {
        self.wires.len()
    }

    /// All instances in order.
    pub fn instance_ids(&self) -> impl Iterator<Item = InstanceId> + use<> {
        (0..to_index(self.instances.len())).map(InstanceId)
    }

    /// All types with instances, in the order of their declaration.
    pub fn type_ids(&self) -> impl Iterator<Item = TypeId> + '_ {
        self.types.iter().copied()
    }

    /// The type at a position in the order of [`Self::type_ids`].
    pub fn type_id(&self, index: usize) -> Option<TypeId> {
        self.types.get(index).copied()
    }

    /// The names of declared types that have no instances and are therefore left out.
    pub fn types_without_instances(&self) -> impl Iterator<Item = &str> {
        let left_out = |(id, _): &(usize, &TypeSpec)| {
            self.types.binary_search(&TypeId(to_index(*id))).is_err()
        };
        self.declared.iter().enumerate().filter(left_out).map(|(_, spec)| spec.name.as_str())
    }

    /// The type of an instance.
    pub fn type_of(&self, instance: InstanceId) -> TypeId {
        TypeId(self.instances[instance.index()])
    }

    /// The name of a type.
    pub fn type_name(&self, kind: TypeId) -> &str {
        &self.declared[kind.index()].name
    }

    /// The number of slots of a type, without mask slots.
    pub fn slots(&self, kind: TypeId) -> usize {
        self.declared[kind.index()].slots
    }

    /// A slot of a type for error messages: its number, and its name or the name of a wire in it.
    pub fn slot_label(&self, kind: TypeId, slot: usize) -> String {
        // Only typed parts name their slots. For others, a wire of the first instance is the best hint.
        let named = self.declared[kind.index()].slot_names.get(slot).cloned();
        let wire = || {
            let instance = self.instance_ids().find(|i| self.type_of(*i) == kind)?;
            let wire = self.wires_of(instance).nth(slot).flatten()?;
            Some(self.wire_name(wire).to_string())
        };
        match named.or_else(wire) {
            Some(name) => format!("slot {slot} ('{name}')"),
            None => format!("slot {slot}"),
        }
    }

    /// Reports whether the author declared that no constraint needs to use a slot.
    pub(crate) fn is_unconstrained(&self, kind: TypeId, slot: usize) -> bool {
        self.declared[kind.index()].unconstrained.contains(&slot)
    }

    /// The ids of all wires, in the order of their declaration.
    pub fn wire_ids(&self) -> impl Iterator<Item = WireId> + use<> {
        (0..to_index(self.wires.len())).map(WireId)
    }

    /// The wire with a name and number, if there is one.
    pub fn wire(&self, name: &str, index: u64) -> Option<WireId> {
        self.wires.named(name, index)
    }

    /// The name of a wire.
    pub fn wire_name(&self, wire: WireId) -> WireName {
        self.wires.name(wire)
    }

    /// The wire in each slot of an instance, `None` for an unused slot.
    pub fn wires_of(&self, instance: InstanceId) -> impl Iterator<Item = Option<WireId>> + '_ {
        let start = self.starts[instance.index()];
        let count = self.slots(self.type_of(instance));
        self.slots.range(start, count).map(|slot| slot.wire().map(WireId))
    }

    /// Reports whether an instance writes the wire in a slot.
    pub(crate) fn writes_slot(&self, instance: InstanceId, slot: usize) -> bool {
        matches!(self.slots.get(self.starts[instance.index()] + slot), Slot::Writes(_))
    }

    /// Reports whether there are buses. With buses, subcircuits may commit to values of their own before
    /// the challenges are drawn (spec: buses#commit-round).
    pub fn has_buses(&self) -> bool {
        !self.buses.is_empty()
    }

    /// The name of the bus, table or memory with a tag.
    pub fn bus_of_tag(&self, tag: u32) -> Option<&str> {
        self.buses.get(tag.checked_sub(1)? as usize).map(|bus| bus.name.as_str())
    }

    /// Reports whether there are tables, whose multiplicities have to be counted.
    pub fn has_tables(&self) -> bool {
        self.buses.iter().any(|bus| matches!(bus.kind, BusKind::Table(_)))
    }

    /// Reports whether there are memories of the library, whose cells the whole execution fills.
    pub fn has_memories(&self) -> bool {
        self.buses.iter().any(|bus| matches!(bus.kind, BusKind::Ram(_)))
    }

    /// Returns the contents of a type that the library makes; `None` if the type is the author's.
    pub(crate) fn library(&self, kind: TypeId) -> Option<LibraryType> {
        self.declared.get(kind.index())?.library
    }

    /// Reports whether a type of the library holds the cells of a memory.
    pub(crate) fn is_memory(&self, library: LibraryType) -> bool {
        let bus = self.buses.get(library.bus.index());
        matches!(bus.map(|bus| &bus.kind), Some(BusKind::Ram(_)))
    }

    /// The position of an instance of the library among those of its type.
    pub(crate) fn part(&self, instance: InstanceId) -> usize {
        // The builder appends the library's instances at the end, type by type, in the order in which it
        // declares the types. So all instances before this type's are of types with smaller ids.
        let kind = self.instances[instance.index()];
        instance.index() - self.instances.partition_point(|other| *other < kind)
    }

    /// The memories that the instances of a type access.
    pub(crate) fn ram_places(&self, kind: TypeId) -> &[RamPlace] {
        self.declared.get(kind.index()).map_or(&[], |spec| &spec.rams)
    }

    /// The constants that an instance has in addition to the accesses of its slots.
    pub fn preprocessed(&self, instance: InstanceId) -> Preprocessed<'_> {
        let spec = &self.declared[self.type_of(instance).index()];
        // An instance without an entry has none of them, and an empty slice may begin anywhere.
        let start = |places: &BTreeMap<u32, usize>| places.get(&instance.0).copied().unwrap_or(0);
        let (parameters, pairs) = (start(&self.parameters.0), start(&self.pairs.0));
        Preprocessed {
            buses: self.has_buses(),
            parameters: &self.parameters.1[parameters..parameters + spec.parameters],
            pairs: &self.pairs.1[pairs..pairs + spec.pairs],
        }
    }

    /// The order of a type's variables as far as the layout fixes it: without marked values and
    /// entries, which synthesis finds.
    pub fn variables(&self, kind: TypeId, masking: Masking) -> VariableLayout {
        let TypeSpec { slots, parameters, pairs, .. } = &self.declared[kind.index()];
        let (slots, parameters, pairs) = (*slots, *parameters, *pairs);
        let shape = BusShape { buses: self.has_buses(), parameters, pairs, ..BusShape::default() };
        VariableLayout::new(slots + masking.slots(), masking).with(shape)
    }

    /// The public wires in the order of the public values.
    pub fn public_wires(&self) -> impl Iterator<Item = WireId> + '_ {
        let special = self.wires.special().iter();
        special.filter(|(_, visibility)| visibility.is_public()).map(|(wire, _)| *wire)
    }

    /// The constants that are read, with their values.
    pub fn constants(&self) -> impl Iterator<Item = (WireId, Fr)> + '_ {
        self.wires.special().iter().filter_map(|(wire, visibility)| match visibility {
            Visibility::Constant(value) => Some((*wire, *value)),
            _ => None,
        })
    }

    /// Returns the addresses and multiplicities for the memory check (spec: memory-check#addresses,
    /// memory-check#stars). With masks, every subcircuit has two additional slots, which hold a
    /// chain of mask wires (spec: zero-knowledge#masks).
    pub fn wiring(&self, masking: Masking) -> Wiring {
        let mut wiring = self.wiring_without_slots(masking);
        for instance in self.instance_ids() {
            self.push_accesses(instance, masking, &mut wiring.slots);
        }
        wiring
    }

    /// [`wiring`](Self::wiring) without the accesses of the subcircuits, which need the most memory.
    pub fn wiring_without_slots(&self, masking: Masking) -> Wiring {
        let extra = masking.slots();
        let spec = |kind: &TypeId| &self.declared[kind.index()];
        let types = (self.types.iter().map(spec))
            .map(|t| WiringType {
                name: t.name.clone(),
                slots: t.slots + extra,
                parameters: t.parameters,
                pairs: t.pairs,
            })
            .collect();
        let mut number = vec![0; self.declared.len()];
        (self.types.iter().enumerate()).for_each(|(i, kind)| number[kind.index()] = to_index(i));
        let type_of = self.instances.iter().map(|kind| number[*kind as usize]).collect();
        let mut wiring = Wiring { types, type_of, ..Wiring::empty(masking) };
        wiring.buses = self.buses.iter().map(|bus| bus.name.clone()).collect();
        wiring.parameters.clone_from(&self.parameters.1);
        wiring.pairs.clone_from(&self.pairs.1);
        // The verifier writes public inputs and constants and reads public outputs, in the same
        // stars as the subcircuits (spec: memory-check#addresses, memory-check#constants).
        let public = self.wires.special().iter();
        wiring.public = (public.filter(|(_, visibility)| visibility.is_public()))
            .map(|(wire, visibility)| {
                let WireName(name, index) = self.wires.name(*wire);
                let SlotAccess { address, multiplicity } = match visibility {
                    Visibility::PublicInput => self.writes(wire.0),
                    _ => SlotAccess::read(address(wire.0)),
                };
                PublicWire { address, multiplicity, name: name.to_owned(), index }
            })
            .collect();
        wiring.constants = (self.constants())
            .map(|(wire, value)| (self.writes(wire.0), value))
            // An address without readers is not a star (spec: memory-check#constants).
            .filter(|(access, _)| access.multiplicity > 0)
            .map(|(SlotAccess { address, multiplicity }, value)| ConstantWire {
                address,
                multiplicity,
                value,
            })
            .collect();
        wiring
    }

    /// The digest of [`wiring`](Self::wiring), in little memory.
    pub fn wiring_digest(&self, masking: Masking) -> [u8; 32] {
        self.wiring_digest_on(masking, |ranges, encode| ranges.into_iter().map(encode).collect())
    }

    /// [`wiring_digest`](Self::wiring_digest) on several threads: `map` applies a function to all
    /// elements of a list, and returns the results in the same order.
    pub fn wiring_digest_on(
        &self,
        masking: Masking,
        map: impl Fn(Vec<Range<usize>>, &(dyn Fn(Range<usize>) -> Vec<u8> + Sync)) -> Vec<Vec<u8>>,
    ) -> [u8; 32] {
        let encode = |range: Range<usize>| {
            let mut accesses = Vec::new();
            let mut bytes = Vec::new();
            for instance in range {
                accesses.clear();
                self.push_accesses(InstanceId(to_index(instance)), masking, &mut accesses);
                encode_accesses(&accesses, &mut bytes);
            }
            bytes
        };
        self.wiring_without_slots(masking).digest_of(|see| {
            let mut start = 0;
            while start < self.instances() {
                let mut ranges = Vec::with_capacity(RANGES);
                while ranges.len() < RANGES && start < self.instances() {
                    let slots = self.starts[start] + SLOTS_AT_ONCE;
                    // At least one instance, even if it alone has more slots than a piece.
                    let end = self.starts.partition_point(|first| *first < slots).max(start + 1);
                    ranges.push(start..end);
                    start = end;
                }
                map(ranges, &encode).iter().for_each(|bytes| see(bytes));
            }
        })
    }

    /// The position of an instance's type in the order of [`Self::type_ids`], which is also its
    /// number in [`wiring`](Self::wiring).
    pub fn type_index(&self, instance: InstanceId) -> usize {
        // The types are in the order of their ids, and that of an instance is one of them.
        let (Ok(index) | Err(index)) = self.types.binary_search(&self.type_of(instance));
        index
    }

    /// The accesses of one instance's slots, as in [`wiring`](Self::wiring).
    pub fn accesses(&self, instance: InstanceId, masking: Masking) -> Vec<SlotAccess> {
        let mut out = Vec::with_capacity(self.slots(self.type_of(instance)) + masking.slots());
        self.push_accesses(instance, masking, &mut out);
        out
    }

    /// The values in an instance's two mask slots (spec: zero-knowledge#masks): the mask that the
    /// previous instance wrote, and the one that this instance writes. `mask(i)` is the mask between
    /// instances i and i + 1; the chain starts and ends with zero.
    pub fn mask_values(&self, instance: InstanceId, mask: impl Fn(u64) -> Fr) -> [Fr; 2] {
        // Neighbors must agree on the mask between them, so it depends on its position alone. It
        // must not depend on g or b either: a mask chosen after them could repair any sum
        // (spec: zero-knowledge#masks-before-challenges).
        let i = u64::from(instance.0);
        let is_last = instance.index() + 1 == self.instances();
        [
            if i == 0 { Fr::default() } else { mask(i - 1) },
            if is_last { Fr::default() } else { mask(i) },
        ]
    }

    fn push_accesses(&self, instance: InstanceId, masking: Masking, out: &mut Vec<SlotAccess>) {
        let (start, count) = (self.starts[instance.index()], self.slots(self.type_of(instance)));
        out.extend(self.slots.range(start, count).map(|slot| match slot {
            Slot::Empty | Slot::Unused => SlotAccess::UNUSED,
            Slot::Writes(wire) => self.writes(wire),
            Slot::Reads(wire) => SlotAccess::read(address(wire)),
        }));
        if masking.is_masked() {
            // The masks take the addresses after those of the layout's wires, so they collide with
            // none. Instance i reads mask i - 1 and writes mask i, so each mask has one reader and
            // cancels in the LogUp sum. The ends of the chain keep the slot unused: all instances
            // of a type must have one R1CS (spec: zero-knowledge#masks).
            let i = instance.index();
            let mask = self.wires.len() as u64 + 1 + i as u64;
            out.push(if i > 0 { SlotAccess::read(mask - 1) } else { SlotAccess::UNUSED });
            let is_last = i + 1 == self.instances.len();
            out.push(if is_last { SlotAccess::UNUSED } else { SlotAccess::write(mask, 1) });
        }
    }

    /// The access of the writer of a wire: its multiplicity is the number of readers.
    fn writes(&self, wire: u32) -> SlotAccess {
        SlotAccess::write(address(wire), i64::from(self.wires.readers(WireId(wire))))
    }
}

/// The address of a wire. Addresses start at 1; address 0 is reserved for unused slots
/// (spec: memory-check#addresses).
fn address(wire: u32) -> u64 {
    u64::from(wire) + 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Chains of wires through instances of two types, of which one has no slots.
    fn chains(instances: usize, width: usize) -> Layout {
        let mut layout = Layout::builder();
        let (wide, empty) =
            (layout.subcircuit_type("wide", 2 * width), layout.subcircuit_type("empty", 0));
        let one = layout.constant(Fr::from(1u64));
        let mut wires = vec![one; width];
        for i in 0..instances {
            layout.instance(empty);
            let instance = layout.instance(wide);
            for (j, wire) in wires.iter_mut().enumerate() {
                layout.read(instance, j, *wire);
                *wire = if i + 1 == instances {
                    layout.public_output("y", j as u64)
                } else {
                    layout.wire("x", (i * width + j) as u64)
                };
                layout.write(instance, width + j, *wire);
            }
        }
        layout.build().unwrap()
    }

    #[test]
    fn digests_do_not_depend_on_pieces() {
        for (instances, width) in [(1, 1), (3, SLOTS_AT_ONCE), (RANGES + 2, SLOTS_AT_ONCE / 2)] {
            let layout = chains(instances, width);
            for masking in [Masking::Masked, Masking::Unmasked] {
                let expected = layout.wiring(masking).digest();
                let windows = AtomicUsize::new(0);
                let found = layout.wiring_digest_on(masking, |ranges, encode| {
                    windows.fetch_add(1, Ordering::Relaxed);
                    ranges.into_iter().map(encode).collect()
                });
                assert_eq!(found, expected, "{instances} of {width}, {masking:?}");
                assert_eq!(windows.into_inner(), if instances > RANGES { 2 } else { 1 });
                assert_eq!(layout.wiring_digest(masking), expected);
            }
        }
        let (one, other) = (chains(2, 2), chains(2, 3));
        assert_ne!(one.wiring_digest(Masking::Masked), other.wiring_digest(Masking::Masked));
        assert_ne!(one.wiring_digest(Masking::Masked), one.wiring_digest(Masking::Unmasked));
    }
}
