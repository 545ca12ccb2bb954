//! Why a layout is invalid.

use crate::ids::{WireName, Writer};

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
