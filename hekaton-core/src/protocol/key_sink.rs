//! The place where a setup stores its keys.

use crate::keys::AggregationKey;
use crate::mirage::ProvingKey;
use crate::verifier::verifying_key::VerifyingKey;

/// Takes the keys of a setup as they are made. The key store on disk (crate `hekaton-storage`)
/// implements it.
pub trait KeySink {
    /// The error when a key cannot be stored.
    type Error: std::error::Error + 'static;

    /// Takes the proving key of a type that has `instances` instances. Types arrive in the order of
    /// the layout.
    ///
    /// # Errors
    /// When the key cannot be stored.
    fn proving_key(&mut self, key: ProvingKey, instances: usize) -> Result<(), Self::Error>;

    /// Takes the remaining keys, as the last step of a setup.
    ///
    /// # Errors
    /// When the keys cannot be stored.
    fn finish(
        &mut self,
        aggregation: AggregationKey,
        verifying: &VerifyingKey,
    ) -> Result<(), Self::Error>;
}
