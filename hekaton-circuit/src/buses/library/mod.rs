//! The parts that the library makes itself: tables and memories with the subcircuits that hold
//! their rows and cells (spec: buses#tables, buses#cells).

mod cut;
pub(crate) mod look_up;
pub(crate) mod memory;
pub(crate) mod ram;
mod rows;
pub(crate) mod state;
pub(crate) mod table;

use crate::layout::ids::{BusId, WireId};
use hekaton_arith::Fr;
use memory::RamSpec;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use table::TableSpec;

/// A bus, with its one owner: only the owner's gadgets add entries to it (spec: buses#owners).
#[derive(Clone, Debug)]
pub(crate) struct BusSpec {
    pub(crate) name: String,
    pub(crate) kind: BusKind,
}

/// The owner of a bus.
#[derive(Clone, Debug)]
pub(crate) enum BusKind {
    /// The author.
    Raw,
    /// A table.
    Table(Arc<TableSpec>),
    /// A memory.
    Ram(Arc<RamSpec>),
}

impl BusKind {
    /// Returns the kind of the bus with its article, for messages.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Self::Raw => "a bus",
            Self::Table(_) => "a table",
            Self::Ram(_) => "a RAM",
        }
    }
}

/// A subcircuit type that the library makes: the rows of a table or the cells of a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LibraryType {
    /// The table or memory.
    pub(crate) bus: BusId,
    /// The index of the region, of a memory.
    pub(crate) region: usize,
    /// The number of rows or cells of each instance.
    pub(crate) rows: usize,
}

/// A wire between two subcircuits of a sparse memory. It holds the lowest address that the next cell may
/// have, which the library computes after the execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseChain {
    pub(crate) library: LibraryType,
    /// The number of cells before it.
    pub(crate) cell: usize,
    pub(crate) wire: WireId,
}

/// The private input of an instance of a [`LibraryType`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum LibraryInput {
    /// The number of look-ups of each row of a table.
    Counts(Vec<u64>),
    /// The last access to each cell: address and time, and the value.
    Cells(Vec<FinalCell>),
}

/// The state of a cell after all accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FinalCell {
    pub(crate) address: u64,
    pub(crate) time: u64,
    #[serde(with = "crate::canonical")]
    pub(crate) value: Fr,
}
