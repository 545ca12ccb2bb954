//! Keys: sectioned files that are memory-mapped and used in place, and the directory that holds them.

mod aggregation;
mod directory;
mod map;
pub(crate) mod sections;

pub use aggregation::AggregationKey;
pub use directory::{KeyDirectory, KeyDirectoryError, KeySink, Manifest, MemoryKeys, TypeEntry};
pub use sections::{KeyFileError, SectionInfo, inspect_sections};

use crate::mirage::ProvingKey;
use crate::verifying_key::VerifyingKey;

/// All keys that a prover needs, wherever they came from.
#[derive(Debug)]
pub struct ProverKeys {
    /// The verifying key.
    pub verifying: VerifyingKey,
    /// The aggregation key.
    pub aggregation: AggregationKey,
    /// The proving key of each type, in the order of the layout.
    pub types: Vec<ProvingKey>,
}
