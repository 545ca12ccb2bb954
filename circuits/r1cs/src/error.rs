//! What is wrong with a file, and where.

use std::io;
use std::path::{Path, PathBuf};

/// An error in a file from another tool.
#[derive(Debug, thiserror::Error)]
#[error("{}: {place}{problem}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// Where in the file.
    pub place: Place,
    /// What is wrong.
    pub problem: Problem,
}

/// A place in a file, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The type of the section.
    pub section: Option<u32>,
    /// The constraint, from 0.
    pub row: Option<u64>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The offset in the file.
    pub byte: Option<u64>,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let parts = [
            ("section", self.section.map(u64::from)),
            ("row", self.row),
            ("line", self.line),
            ("byte", self.byte),
        ];
        let parts = parts.into_iter().filter_map(|(name, number)| Some((name, number?)));
        for (i, (name, number)) in parts.enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {number}")?;
        }
        if *self == Self::default() { Ok(()) } else { f.write_str(": ") }
    }
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file does not begin like one of its kind.
    #[error("not a {expected} file: it does not begin with \"{expected}\"")]
    Magic {
        /// What such files begin with.
        expected: &'static str,
    },
    /// The file has a version that cannot be read.
    #[error("version {found} of the format; only version {expected} is known")]
    Version {
        /// The version in the file.
        found: u32,
        /// The version that is read.
        expected: u32,
    },
    /// The file ends before what it announces.
    #[error("the file ends here, but {what} needs {needed} more bytes: it is truncated")]
    Truncated {
        /// What is read there.
        what: &'static str,
        /// How many bytes are missing at least.
        needed: u64,
    },
    /// Bytes follow the end.
    #[error("{count} bytes follow the end of {what}")]
    LeftOver {
        /// What has ended.
        what: &'static str,
        /// How many bytes follow.
        count: u64,
    },
    /// A section is missing.
    #[error("there is no section {0}")]
    NoSection(u32),
    /// A section is there twice.
    #[error("a second section {0}")]
    SecondSection(u32),
    /// The numbers are of another field.
    #[error(
        "the numbers are of {field}, and Hekaton's are of BLS12-381: compile with `circom --prime \
         bls12381`. Constants such as those of Poseidon belong to one field: a circuit that has \
         them for another one must get new ones"
    )]
    Field {
        /// The other field, by name or in hexadecimal.
        field: String,
    },
    /// Numbers do not have 32 bytes.
    #[error("numbers of {0} bytes; those of BLS12-381 have 32")]
    FieldSize(u32),
    /// A number is not below the modulus.
    #[error("{what} is not below the modulus of the field")]
    NotCanonical {
        /// Which number.
        what: &'static str,
    },
    /// Custom gates.
    #[error(
        "the circuit has custom gates, which are no R1CS constraints and cannot be proven: compile \
         without them"
    )]
    CustomGates,
    /// A number contradicts another one.
    #[error("{what} is {found}, expected {expected}")]
    Mismatch {
        /// Which number.
        what: &'static str,
        /// What the file has.
        found: u64,
        /// What follows from the rest.
        expected: u64,
    },
    /// A number is too large.
    #[error("{what} is {found}; at most {most} are supported")]
    TooMany {
        /// Which number.
        what: &'static str,
        /// What the file has.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// A constraint is wrong.
    #[error(transparent)]
    Row(#[from] crate::RowError),
    /// The first value of a witness is not 1.
    #[error("the first value is not 1: this is no witness of an R1CS")]
    NotOne,
    /// A line of a `.sym` is not four fields.
    #[error(
        "not a line of a .sym file, which has label, wire (or -1), component and name between commas"
    )]
    Line,
}

impl FileError {
    pub(crate) fn new(path: &Path, place: Place, problem: impl Into<Problem>) -> Self {
        Self { path: path.to_owned(), place, problem: problem.into() }
    }
}
