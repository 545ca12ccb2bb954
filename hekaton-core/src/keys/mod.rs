//! Keys: sectioned files that are memory-mapped and used in place, and the directory that holds them.

mod aggregation;
mod check;
mod directory;
mod map;
pub(crate) mod sections;

pub use aggregation::AggregationKey;
pub use check::{KeyCheckError, KeyCheckReport, check_keys};
pub(crate) use directory::write_file;
pub use directory::{KeyDirectory, KeyDirectoryError, KeySink, Manifest, MemoryKeys, TypeEntry};
pub(crate) use sections::persist;
pub use sections::{KeyFileError, SectionInfo, inspect_sections};

#[cfg(feature = "fuzzing")]
pub(crate) use sections::check_key_file;

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

impl ProverKeys {
    /// Drops each part of a mapped key from memory as soon as it was used, for runs within a limit
    /// ([`MemoryPlan`](crate::budget::MemoryPlan)).
    pub fn release_after_use(&mut self) {
        self.types.iter_mut().for_each(ProvingKey::release_after_use);
    }

    /// Bytes of all sections of all keys.
    pub fn bytes(&self) -> u64 {
        self.types.iter().map(ProvingKey::bytes).sum::<u64>() + self.aggregation.bytes()
    }
}
