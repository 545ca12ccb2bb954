//! Constraint systems in one piece, from other tools: circom's files, and arkworks circuits.
//!
//! - [`R1csFile`]: the constraints in a circom `.r1cs`, as a [`System`].
//! - [`WitnessFile`]: the values in a `.wtns`, read where they are needed.
//! - [`Symbols`]: the names of wires in a `.sym`.
//! - [`system_of`] and [`witness_of`]: the same from an arkworks circuit.
//! - [`Unique`]: whether the values of a witness follow from the inputs.
//! - [`partition`]: cuts of a system into parts that share few wires.
//!
//! The field is the scalar field of BLS12-381 (`circom --prime bls12381`). Everything is checked
//! before use, and nothing is allocated for a number whose bytes are not in the file.

mod checker;
mod container;
mod derived;
pub mod directory;
mod error;
mod free_wires;
mod import;
mod imported;
mod monolith;
mod numbers;
pub mod partition;
mod r1cs_file;
mod symbols;
mod system;
mod templates;
mod unique;
mod values;
mod witness;

pub use checker::{LocalRow, PartProblem, PartitionError, PartitionReport, check_partition};
pub use derived::{Definition, Derived, MOST_BITS, RowKind};
pub use directory::CircuitBundle;
pub use error::{FileError, FilePosition, Problem};
pub use import::{ImportError, Monolith};
pub use imported::Imported;
pub use monolith::{MonolithError, system_of, witness_of};
pub use r1cs_file::{Counts, R1csFile};
pub use symbols::{Symbols, label, with_names};
pub use system::{FalseRow, Limit, RowError, System, SystemBuilder, Term};
pub use templates::Template;
pub use unique::{Unique, UniqueError};
pub use values::Values;
pub use witness::WitnessFile;
