//! A layout as the protocol sees it: the addresses and multiplicities of all slots
//! (spec: memory-check#addresses).

use crate::interface::{ConstantWire, Masking, Preprocessed, PublicWire, SlotAccess};
use hekaton_arith::Fr;
use std::collections::BTreeMap;

/// The number of slots, or of values of twice the size, that are hashed at a time: 256 or 512 KiB.
const PIECE: usize = 1 << 14;

/// Appends the encoding of slots for the digest of a wiring.
pub(crate) fn encode_accesses(slots: &[SlotAccess], out: &mut Vec<u8>) {
    out.reserve(16 * slots.len());
    for slot in slots {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&slot.address.to_le_bytes());
        bytes[8..].copy_from_slice(&slot.multiplicity.to_le_bytes());
        out.extend_from_slice(&bytes);
    }
}

/// A subcircuit type of a wiring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WiringType {
    /// The name of the type.
    pub name: String,
    /// The number of slots, mask slots included.
    pub slots: usize,
    /// The number of parameters.
    pub parameters: usize,
    /// The number of pairs.
    pub pairs: usize,
}

/// The addresses and multiplicities of the memory check (spec: memory-check#addresses,
/// memory-check#stars).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wiring {
    /// The masking of subcircuits: all have mask slots, or none has.
    pub masking: Masking,
    /// The types, in the order of the layout.
    pub types: Vec<WiringType>,
    /// The type of each instance.
    pub type_of: Vec<u32>,
    /// The accesses of all slots, instance by instance.
    pub slots: Vec<SlotAccess>,
    /// The verifier's accesses to wires whose values the caller supplies.
    pub public: Vec<PublicWire>,
    /// The verifier's accesses to wires with fixed values.
    pub constants: Vec<ConstantWire>,
    /// The names of the buses, in the order of their tags, which start at 1.
    pub buses: Vec<String>,
    /// The values of the parameters, instance by instance.
    pub parameters: Vec<Fr>,
    /// The keys and values of the pairs, instance by instance.
    pub pairs: Vec<[Fr; 2]>,
}

/// The accesses to an address do not form a star (spec: memory-check#stars).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "address {address}: {why}; a shared wire needs one writer, whose multiplicity is the number of \
     readers, and readers of multiplicity -1"
)]
pub struct StarError {
    /// The address.
    pub address: u64,
    /// The rule that is broken.
    pub why: String,
}

impl Wiring {
    /// No types, no instances.
    pub fn empty(masking: Masking) -> Self {
        let (types, type_of) = (Vec::new(), Vec::new());
        let (slots, public, constants) = (Vec::new(), Vec::new(), Vec::new());
        let (buses, parameters, pairs) = (Vec::new(), Vec::new(), Vec::new());
        Self { masking, types, type_of, slots, public, constants, buses, parameters, pairs }
    }

    /// The number of instances.
    pub fn instances(&self) -> usize {
        self.type_of.len()
    }

    /// The number of slots of a type, mask slots included.
    pub fn slots_of_type(&self, kind: u32) -> usize {
        self.types[kind as usize].slots
    }

    /// The type and the slots of each instance, in order.
    pub fn by_instance(&self) -> impl Iterator<Item = (u32, &[SlotAccess])> {
        let mut rest = self.slots.as_slice();
        self.type_of.iter().map(move |kind| {
            let (head, tail) = rest.split_at(self.slots_of_type(*kind));
            rest = tail;
            (*kind, head)
        })
    }

    /// The type, the slots, and the constants of each instance, in order.
    pub fn preprocessed_by_instance(
        &self,
    ) -> impl Iterator<Item = (u32, &[SlotAccess], Preprocessed<'_>)> {
        let (mut parameters, mut pairs) = (self.parameters.as_slice(), self.pairs.as_slice());
        let buses = !self.buses.is_empty();
        self.by_instance().map(move |(kind, slots)| {
            let spec = &self.types[kind as usize];
            let (own_parameters, other_parameters) = parameters.split_at(spec.parameters);
            let (own_pairs, other_pairs) = pairs.split_at(spec.pairs);
            (parameters, pairs) = (other_parameters, other_pairs);
            (kind, slots, Preprocessed { buses, parameters: own_parameters, pairs: own_pairs })
        })
    }

    /// The index of each instance's first slot in [`slots`](Self::slots).
    pub fn starts(&self) -> Vec<usize> {
        let mut at = 0;
        self.type_of
            .iter()
            .map(|kind| {
                let start = at;
                at += self.slots_of_type(*kind);
                start
            })
            .collect()
    }

    /// The addresses and multiplicities of slots as field elements, which setup preprocesses
    /// (spec: memory-check#preprocessed).
    pub fn preprocessed(slots: &[SlotAccess]) -> (Vec<Fr>, Vec<Fr>) {
        slots.iter().map(|slot| (Fr::from(slot.address), Fr::from(slot.multiplicity))).unzip()
    }

    /// Asserts that the accesses to each address form a star, over the subcircuits and the verifier
    /// together (spec: memory-check#stars): exactly one entry is positive and equals the number of
    /// the others, which are all -1. Any other pattern may have a proper subset that sums to zero,
    /// and then two values could live at one address.
    ///
    /// # Errors
    /// An address whose accesses do not form a star.
    pub fn check_stars(&self) -> Result<(), StarError> {
        // The builder has checked the same with names. This check sees the contents of the keys, so it
        // does not depend on the builder.
        let mut writers: BTreeMap<u64, i64> = BTreeMap::new();
        let mut readers: BTreeMap<u64, i64> = BTreeMap::new();
        let slots = self.slots.iter().map(|slot| (slot.address, slot.multiplicity));
        let public = self.public.iter().map(|wire| (wire.address, wire.multiplicity));
        let constants = self.constants.iter().map(|wire| (wire.address, wire.multiplicity));
        for (address, multiplicity) in slots.chain(public).chain(constants) {
            let error = |why: String| Err(StarError { address, why });
            match (address, multiplicity) {
                (0, 0) => {}
                (0, m) => return error(format!("an unused slot has multiplicity {m}")),
                (_, -1) => *readers.entry(address).or_default() += 1,
                // Far below r, so multiplicities that cancel modulo r also cancel as integers.
                (_, m) if m >= 1 << 32 => {
                    return error(format!("multiplicity {m} is 2^32 or more"));
                }
                (_, m) if m > 0 => {
                    if writers.insert(address, m).is_some() {
                        return error("two writers".into());
                    }
                }
                (_, m) => return error(format!("multiplicity {m} is neither -1 nor positive")),
            }
        }
        for (address, m) in &writers {
            let count = readers.get(address).copied().unwrap_or(0);
            if count != *m {
                let why = format!("the writer has multiplicity {m} for {count} readers");
                return Err(StarError { address: *address, why });
            }
        }
        match readers.keys().find(|address| !writers.contains_key(address)) {
            Some(address) => {
                Err(StarError { address: *address, why: "readers without a writer".into() })
            }
            None => Ok(()),
        }
    }

    /// The digest of the map from instances to types.
    pub fn type_map_digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 type map");
        for kind in &self.type_of {
            hasher.update(&kind.to_le_bytes());
        }
        *hasher.finalize().as_bytes()
    }

    /// The digest of the whole wiring, which keys and proofs are bound to.
    pub fn digest(&self) -> [u8; 32] {
        // BLAKE3 hashes long pieces several times as fast as short ones.
        self.digest_of(|see| {
            for slots in self.slots.chunks(PIECE) {
                let mut bytes = Vec::new();
                encode_accesses(slots, &mut bytes);
                see(&bytes);
            }
        })
    }

    /// [`digest`](Self::digest) of a wiring with other slots, which a function shows in order and
    /// encoded.
    pub(crate) fn digest_of(&self, slots: impl FnOnce(&mut dyn FnMut(&[u8]))) -> [u8; 32] {
        // All lengths are hashed before the items, so that no two wirings have the same bytes.
        let mut hasher = blake3::Hasher::new_derive_key("hekaton-v2 wiring");
        hasher.update(&[u8::from(self.masking.is_masked())]);
        hasher.update(&(self.types.len() as u64).to_le_bytes());
        for kind in &self.types {
            hasher.update(&(kind.name.len() as u64).to_le_bytes());
            hasher.update(kind.name.as_bytes());
            hasher.update(&(kind.slots as u64).to_le_bytes());
        }
        hasher.update(&(self.type_of.len() as u64).to_le_bytes());
        hasher.update(&self.type_map_digest());
        slots(&mut |bytes| {
            hasher.update(bytes);
        });
        hasher.update(&(self.public.len() as u64).to_le_bytes());
        for wire in &self.public {
            hasher.update(&wire.address.to_le_bytes());
            hasher.update(&wire.multiplicity.to_le_bytes());
            hasher.update(&(wire.name.len() as u64).to_le_bytes());
            hasher.update(wire.name.as_bytes());
            hasher.update(&wire.index.to_le_bytes());
        }
        hasher.update(&(self.constants.len() as u64).to_le_bytes());
        for wire in &self.constants {
            hasher.update(&wire.address.to_le_bytes());
            hasher.update(&wire.multiplicity.to_le_bytes());
            hasher.update(&hekaton_arith::fr_to_bytes(&wire.value));
        }
        self.hash_buses(&mut hasher);
        *hasher.finalize().as_bytes()
    }

    /// Appends buses, parameters and pairs. Circuits without any of them keep the digests that they had
    /// before buses existed. Nothing else is appended, so no other circuit has this encoding.
    fn hash_buses(&self, hasher: &mut blake3::Hasher) {
        let counts = self.types.iter().map(|kind| (kind.parameters, kind.pairs));
        if self.buses.is_empty() && counts.clone().all(|counts| counts == (0, 0)) {
            return;
        }
        hasher.update(&(self.buses.len() as u64).to_le_bytes());
        for name in &self.buses {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
        }
        for (parameters, pairs) in counts {
            hasher.update(&(parameters as u64).to_le_bytes());
            hasher.update(&(pairs as u64).to_le_bytes());
        }
        // Their numbers follow from the counts above and the map from instances to types.
        let mut values = self.parameters.iter().chain(self.pairs.iter().flatten()).peekable();
        while values.peek().is_some() {
            let piece = values.by_ref().take(PIECE);
            hasher.update(&piece.flat_map(hekaton_arith::fr_to_bytes).collect::<Vec<u8>>());
        }
    }
}
