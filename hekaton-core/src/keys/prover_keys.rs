//! All keys that a prover needs.

use super::aggregation::AggregationKey;
use crate::mirage::ProvingKey;
use crate::verifier::verifying_key::VerifyingKey;

/// All keys that a prover needs, from memory or from files.
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
    /// From now on, drops each part of a mapped key from memory as soon as it was used, for runs
    /// within a memory limit.
    pub fn release_after_use(&mut self) {
        self.types.iter_mut().for_each(ProvingKey::release_after_use);
    }

    /// Returns the total length of all sections of all keys in bytes.
    pub fn bytes(&self) -> u64 {
        self.types.iter().map(ProvingKey::bytes).sum::<u64>() + self.aggregation.bytes()
    }
}
