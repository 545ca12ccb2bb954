//! The items that a layout counts: types, instances, wires; and the names of wires and writers in
//! errors.

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

/// A bus of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BusId(pub(crate) u32);

/// A table of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableId(pub(crate) BusId);

/// A memory of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RamId(pub(crate) BusId);

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

impl BusId {
    /// Position in the order of declaration, from 0. The bus's tag is one higher: tag 0 is that of
    /// the slots (spec: buses#entries).
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

/// The writer of a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writer {
    /// The verifier, which writes public inputs.
    Verifier,
    /// The verifying key, which fixes the values of constants.
    Key,
    /// The subcircuit with this index.
    Instance(usize),
}

impl std::fmt::Display for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Verifier => write!(f, "the verifier (public input)"),
            Self::Key => write!(f, "the verifying key (constant)"),
            Self::Instance(i) => write!(f, "instance {i}"),
        }
    }
}
