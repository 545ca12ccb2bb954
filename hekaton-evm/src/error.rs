//! The error of making a contract.

use crate::gas;
use hekaton_core::keys::KeyFileError;

/// The error of making the contract of a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContractError {
    /// The family is not the one that the key was derived from.
    #[error("the family's columns are not those of the direct key: export both from the same keys")]
    Columns,
    /// Verifying takes more gas than a transaction may.
    #[error(
        "a proof of {instances} subcircuits takes about {gas} gas, but a transaction may take {}: \
         prove with fewer and larger subcircuits",
        gas::LIMIT
    )]
    Gas {
        /// The number of subcircuits.
        instances: usize,
        /// The estimate.
        gas: u64,
    },
    /// A key is damaged.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}
