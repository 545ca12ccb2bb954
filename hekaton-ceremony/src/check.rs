//! The rules that a transcript must obey, and the errors that name the one that is broken (spec: ceremony#verification).

use std::path::{Path, PathBuf};

/// A rule that a transcript must obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Check {
    /// A record does not follow the record that it names.
    #[error("it does not follow the record before it")]
    Head,
    /// A record is not at the place that it states.
    #[error("the place that it states is not its place in the chain")]
    Place,
    /// A secret is zero.
    #[error("a point at infinity")]
    Identity,
    /// A secret of a contribution is 1.
    #[error("a point that the contribution did not change")]
    Unchanged,
    /// A point differs between the groups.
    #[error("the points in G1 and G2 do not have the same logarithm")]
    Groups,
    /// A proof of knowledge does not hold.
    #[error("the proof of knowledge of a secret does not hold")]
    Knowledge,
    /// A record starts from another section than the record before it ended with.
    #[error("it did not start from the section that the record before it made")]
    Link,
    /// A chain has beacons only, or nothing.
    #[error("nobody contributed")]
    Contribution,
    /// Two delta or eta are equal, or one is 1.
    #[error("delta and eta of all types are not distinct, or one is 1")]
    Distinct,
    /// A beacon's secrets are not those of its value.
    #[error("the points are not those of the beacon's value")]
    Beacon,
    /// A chain has several beacons. Each costs everybody who checks it up to 2^30 hashes.
    #[error("a second beacon of its chain")]
    SecondBeacon,
    /// A Theta is not that of K.
    #[error("e(K, Theta) is not e([L_0]_1, H)")]
    Theta,
    /// A contributor worked on other points than the circuit's.
    #[error("the input sums are not those of the circuit")]
    InputSums,
    /// A section has another digest than its record says.
    #[error("the section does not have the digest of the last record")]
    Digest,
    /// The vector does not begin with the generator.
    #[error("the first power is not the generator")]
    First,
    /// A higher power is the generator.
    #[error("a secret is a root of unity of small order")]
    Order,
    /// The elements of a vector are not powers.
    #[error("the points are not successive powers")]
    Powers,
    /// The section does not fit its last record.
    #[error("the first powers are not those of the last record")]
    End,
    /// A point is not on the curve, or not encoded canonically.
    #[error("not the canonical encoding of a point of the curve")]
    Curve,
    /// A point is outside the subgroup.
    #[error("a point is outside the subgroup of prime order")]
    Subgroup,
    /// A query is not that of the circuit.
    #[error("the points are not those of the circuit")]
    Queries,
    /// A contribution did not multiply the section by its secrets.
    #[error("the section is not the one before, multiplied by the contribution's secrets")]
    Update,
}

/// A rule that is broken, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {check}")]
pub struct Broken {
    /// The rule.
    pub check: Check,
    /// The place: chain, record and contributor, or section, vector and index.
    pub at: String,
}

/// The reason why a step of a ceremony fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CeremonyError {
    /// A check fails: the transcript or the contribution must not be used.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// A file cannot be read or written.
    #[error("{path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A file is damaged, of another kind or another version.
    #[error("{path}: {why}")]
    File {
        /// The file.
        path: PathBuf,
        /// The fault, and a remedy.
        why: String,
    },
    /// An input belongs to another ceremony, another circuit, or another place in the chain.
    #[error("{0}")]
    Foreign(String),
    /// A type of the circuit would be unsound.
    #[error(transparent)]
    Type(#[from] hekaton_core::mirage::TypeError),
    /// The keys cannot be built.
    #[error(transparent)]
    Keys(#[from] hekaton_core::keys::KeyFileError),
    /// The operating system provided no randomness.
    #[error("cannot get randomness from the operating system: {0}")]
    Randomness(getrandom::Error),
}

impl From<getrandom::Error> for CeremonyError {
    fn from(error: getrandom::Error) -> Self {
        Self::Randomness(error)
    }
}

impl CeremonyError {
    /// The exit code of a program that ends with this error: 1 if a check has failed, so that the checked file must not be used; 3 for a
    /// file that cannot be read or belongs elsewhere; 4 if this machine has failed (spec: ceremony#verification).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Broken(_) | Self::Type(_) => 1,
            Self::Io { error, .. } if error.kind() == std::io::ErrorKind::StorageFull => 4,
            Self::Randomness(_) => 4,
            _ => 3,
        }
    }
}

/// Adds the path to an error of the operating system.
pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> CeremonyError + '_ {
    move |error| CeremonyError::Io { path: path.to_owned(), error }
}

/// The error for a file with wrong content.
pub(crate) fn file(path: &Path, why: impl ToString) -> CeremonyError {
    CeremonyError::File { path: path.to_owned(), why: why.to_string() }
}

/// Returns an error unless a rule holds. All rules are checked here, so that tests can disable a rule and show that it is needed.
pub(crate) fn require(
    holds: bool,
    check: Check,
    at: impl FnOnce() -> String,
) -> Result<(), Broken> {
    #[cfg(test)]
    if crate::tests::is_off(check) {
        return Ok(());
    }
    match holds {
        true => Ok(()),
        false => Err(Broken { check, at: at() }),
    }
}
