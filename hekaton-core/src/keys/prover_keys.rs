//! All keys of a prover.

use super::aggregation::AggregationKey;
use crate::mirage::ProvingKey;
use crate::verifier::verifying_key::VerifyingKey;

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
    /// Drops each part of a mapped key from memory as soon as it was used, for runs within a memory limit.
    pub fn release_after_use(&mut self) {
        self.types.iter_mut().for_each(ProvingKey::release_after_use);
    }

    /// Bytes of all sections of all keys.
    pub fn bytes(&self) -> u64 {
        self.types.iter().map(ProvingKey::bytes).sum::<u64>() + self.aggregation.bytes()
    }
}
