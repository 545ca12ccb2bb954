//! Where a setup leaves its keys.

use crate::keys::AggregationKey;
use crate::mirage::ProvingKey;
use crate::verifier::verifying_key::VerifyingKey;

/// Takes the keys of a setup as they are made; a key store on disk (crate `hekaton-storage`) does.
pub trait KeySink {
    /// Why a key can't be kept.
    type Error: std::error::Error + 'static;

    /// Takes the proving key of a type that has `instances` instances. Types come in the order of the layout.
    ///
    /// # Errors
    /// When the key can't be kept.
    fn proving_key(&mut self, key: ProvingKey, instances: usize) -> Result<(), Self::Error>;

    /// Takes the other keys; nothing follows.
    ///
    /// # Errors
    /// When the keys can't be kept.
    fn finish(
        &mut self,
        aggregation: AggregationKey,
        verifying: &VerifyingKey,
    ) -> Result<(), Self::Error>;
}
