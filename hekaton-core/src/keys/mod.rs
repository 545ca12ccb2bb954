//! Keys: sectioned files that are memory-mapped and used in place, the aggregation key, and the
//! keys of a prover.

mod aggregation;
mod circuit_match;
mod direct;
mod family;
mod map;
mod prover_keys;
mod sections;
mod stored_rows;

pub use aggregation::{AggregationKey, BusParts};
pub use circuit_match::{CircuitMismatch, check_circuit, check_family_circuit};
pub(crate) use circuit_match::{have_wiring, keys_match};
pub use direct::ExportError;
pub use family::{FamilyHeader, FamilyKey, FamilyType, SharedPoints};
pub(crate) use family::{FamilyPoints, MAX_INSTANCES};
pub use prover_keys::ProverKeys;
pub use sections::{KeyFileError, SectionInfo, Sections, inspect_sections};
pub use stored_rows::{StoredConstraint, stored_constraints};
