//! Errors of layouts.

use crate::execution::panics::CircuitPanic;
use crate::layout::ids::{WireName, Writer};

/// The reason that a layout is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// The layout has no instances.
    #[error("the layout has no instances: declare at least one subcircuit")]
    Empty,
    /// A type name is not usable as a file name.
    #[error(
        "'{0}' cannot name a subcircuit type: use 1 to 64 characters from a-z, 0-9, '_' and '-'"
    )]
    TypeName(String),
    /// A type name is already taken.
    #[error("the layout already has a subcircuit type '{0}': give this one another name")]
    DuplicateType(String),
    /// A bus name is not usable.
    #[error("'{0}' cannot name a bus: use 1 to 64 characters from a-z, 0-9, '_' and '-'")]
    BusName(String),
    /// A bus name is already taken.
    #[error("the layout already has a bus '{0}': give this one another name")]
    DuplicateBus(String),
    /// A table cannot be used.
    #[error("table '{name}': {why}")]
    Table {
        /// The table.
        name: String,
        /// The reason it cannot be used.
        why: String,
    },
    /// A memory cannot be used.
    #[error("RAM '{name}': {why}")]
    Ram {
        /// The memory.
        name: String,
        /// The reason it cannot be used.
        why: String,
    },
    /// A parameter or pair was set that the type does not have.
    #[error(
        "instance {instance} of type '{type_name}' has {count} {what}s, but {what} {index} was set"
    )]
    NoSuchConstant {
        /// The instance.
        instance: usize,
        /// Its type.
        type_name: String,
        /// `parameter` or `pair`.
        what: &'static str,
        /// The number that the type declares.
        count: usize,
        /// The index that was set.
        index: usize,
    },
    /// A parameter or pair was not set.
    #[error("{what} {index} of instance {instance} (type '{type_name}') was given no value")]
    MissingConstant {
        /// The instance.
        instance: usize,
        /// Its type.
        type_name: String,
        /// `parameter` or `pair`.
        what: &'static str,
        /// Its index.
        index: usize,
    },
    /// An id belongs to another layout.
    #[error("{what} {index} is not in this layout: its id comes from another one")]
    Foreign {
        /// The kind of item that the id is for.
        what: &'static str,
        /// The index in the id.
        index: usize,
    },
    /// A slot that was declared unconstrained does not exist.
    #[error("type '{type_name}' has {slots} slots, but slot {slot} was declared unconstrained")]
    NoSlotToExempt {
        /// The type.
        type_name: String,
        /// The number of slots of the type.
        slots: usize,
        /// The slot.
        slot: usize,
    },
    /// The circuit has no layout for its parameters.
    #[error("{0}")]
    Parameters(String),
    /// The circuit's `layout` panicked.
    #[error(transparent)]
    Panic(CircuitPanic),
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
    /// A name cannot be that of a public wire.
    #[error("'{0}' cannot name a public wire: a name has no brackets, which are for its number")]
    PublicName(&'static str),
    /// Two public wires have one name.
    #[error("two public wires are named {0}: public values are supplied by name")]
    DuplicatePublic(WireName),
    /// A limit is exceeded; the text names the items.
    #[error("the layout has more than 2^31 {0}")]
    TooMany(&'static str),
}

impl From<String> for LayoutError {
    fn from(why: String) -> Self {
        Self::Parameters(why)
    }
}

impl From<&str> for LayoutError {
    fn from(why: &str) -> Self {
        Self::Parameters(why.to_owned())
    }
}
