//! The public interface of the memory check: its challenges, the access of a slot, and the public
//! wires that the verifier accounts for (spec: memory-check#addresses, memory-check#rows).

use ark_ff::AdditiveGroup;
use hekaton_arith::Fr;

/// The challenges of the memory check (a LogUp argument with static addresses) and of buses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryChallenges {
    /// Added to every fingerprint; the first challenge in the paper.
    pub g: Fr,
    /// Multiplies the address in the fingerprint of a slot.
    pub b: Fr,
    /// Multiplies the tag in the fingerprint of a bus entry (spec: buses#entries): `b_T`. Zero in
    /// circuits without buses, whose transcript does not draw it.
    pub b_t: Fr,
    /// Multiplies the value in the fingerprint of a bus entry: `b_V`. Zero in circuits without buses.
    pub b_v: Fr,
}

impl MemoryChallenges {
    /// The challenges of a circuit without buses.
    pub fn new(g: Fr, b: Fr) -> Self {
        Self { g, b, b_t: Fr::ZERO, b_v: Fr::ZERO }
    }
}

/// The constants that a layout gives one instance, in addition to the accesses of its slots
/// (spec: buses#preprocessed).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preprocessed<'a> {
    /// `true` if the circuit has buses.
    pub buses: bool,
    /// The values of its parameters.
    pub parameters: &'a [Fr],
    /// The key and the value of each of its pairs.
    pub pairs: &'a [[Fr; 2]],
}

/// The access of one slot of a subcircuit to the shared memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotAccess {
    /// The address of the shared wire, from 1; 0 for an unused slot.
    pub address: u64,
    /// The number of readers for the slot that writes the wire, -1 for a slot that reads it, 0 for
    /// an unused slot.
    pub multiplicity: i64,
}

impl SlotAccess {
    /// A slot without a wire.
    pub const UNUSED: Self = Self { address: 0, multiplicity: 0 };

    /// A slot that writes the wire at an address, which `readers` slots read.
    pub const fn write(address: u64, readers: i64) -> Self {
        Self { address, multiplicity: readers }
    }

    /// A slot that reads the wire at an address.
    pub const fn read(address: u64) -> Self {
        Self { address, multiplicity: -1 }
    }
}

/// A public wire as the verifier sees it: an access that the verifier makes itself
/// (spec: memory-check#addresses, verifier#public-sum).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicWire {
    /// The address in the shared memory.
    pub address: u64,
    /// The number of readers for a public input, -1 for a public output.
    pub multiplicity: i64,
    /// The name that the layout gives the wire.
    pub name: String,
    /// The number that follows the name.
    pub index: u64,
}

impl PublicWire {
    /// The name with its number: `name[index]`.
    pub fn label(&self) -> String {
        format!("{}[{}]", self.name, self.index)
    }
}

/// A wire that the verifier writes with a value fixed at setup
/// (spec: memory-check#constants, verifier#public-sum).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConstantWire {
    /// The address in the shared memory.
    pub address: u64,
    /// The number of readers.
    pub multiplicity: i64,
    /// The value.
    pub value: Fr,
}

/// The choice of subcircuits with or without the mask slots that make proofs zero-knowledge
/// (spec: zero-knowledge#masks).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Masking {
    /// Two mask slots in every subcircuit: proofs are zero-knowledge.
    Masked,
    /// No mask slots: proofs leak each subcircuit's term of the LogUp sum.
    Unmasked,
}

impl Masking {
    /// [`Masking::Masked`] if `zero_knowledge`, otherwise [`Masking::Unmasked`].
    pub const fn new(zero_knowledge: bool) -> Self {
        if zero_knowledge { Self::Masked } else { Self::Unmasked }
    }

    /// Reports whether there are mask slots.
    pub const fn is_masked(self) -> bool {
        matches!(self, Self::Masked)
    }

    /// The number of mask slots per subcircuit: one to read the previous mask, one to write the
    /// next.
    pub const fn slots(self) -> usize {
        if self.is_masked() { 2 } else { 0 }
    }
}
