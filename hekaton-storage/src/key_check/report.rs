//! The outcome of a check of keys.

use super::relation::Relation;
use hekaton_core::keys::KeyFileError;

/// The reason that keys are rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyCheckError {
    /// A section cannot be read.
    #[error(transparent)]
    Key(#[from] KeyFileError),
    /// A point is not in its group.
    #[error("{key}, section '{section}': point {index} is not a reduced point of the subgroup")]
    Point {
        /// The key.
        key: String,
        /// The section of the key.
        section: &'static str,
        /// The index of the first bad point.
        index: usize,
    },
    /// A point is at infinity where no honest setup has one.
    #[error(
        "{key}, section '{section}': point {index} is at infinity: these keys do not come from an \
         honest setup"
    )]
    Infinity {
        /// The key.
        key: String,
        /// The section of the key.
        section: &'static str,
        /// The index of the first such point.
        index: usize,
    },
    /// A relation does not hold.
    #[error("{key}: '{relation}' does not hold: these keys do not come from an honest setup")]
    Relation {
        /// The key.
        key: String,
        /// The relation.
        relation: Relation,
    },
    /// The operating system provides no randomness.
    #[error("the operating system provides no randomness: {0}")]
    Randomness(getrandom::Error),
}

impl From<getrandom::Error> for KeyCheckError {
    fn from(error: getrandom::Error) -> Self {
        Self::Randomness(error)
    }
}

/// The extent of a successful check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyCheckReport {
    /// The number of points whose group membership was checked.
    pub points: u64,
    /// The number of relations that were checked.
    pub relations: u64,
    /// Elements that verifiers use and no relation covers, one clause each; empty for most keys. A
    /// caller that does not compare the digest must reject keys with any.
    pub not_covered: Vec<String>,
    /// Elements that only provers use and no relation covers, one clause each.
    pub only_provers: Vec<String>,
}

impl KeyCheckReport {
    /// The report after a check of every point against something else, such as the ceremony that has made the keys.
    #[must_use]
    pub fn all_covered(self) -> Self {
        Self { not_covered: Vec::new(), only_provers: Vec::new(), ..self }
    }
}
