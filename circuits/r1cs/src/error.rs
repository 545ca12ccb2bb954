//! Problems with a file, and the place in it.

use std::io;
use std::path::{Path, PathBuf};

/// An error in a file from another tool.
#[derive(Debug, thiserror::Error)]
#[error("{}: {place}{problem}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The place in the file.
    pub place: FilePosition,
    /// The problem.
    pub problem: Problem,
}

/// A place in a file, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePosition {
    /// The type of the section.
    pub section: Option<u32>,
    /// The constraint, from 0.
    pub row: Option<u64>,
    /// The line, from 1.
    pub line: Option<u64>,
    /// The offset in the file.
    pub byte: Option<u64>,
}

impl std::fmt::Display for FilePosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let fields = [
            ("section", self.section.map(u64::from)),
            ("row", self.row),
            ("line", self.line),
            ("byte", self.byte),
        ];
        let known = fields.into_iter().filter_map(|(name, number)| Some((name, number?)));
        for (i, (name, number)) in known.enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{name} {number}")?;
        }
        // A place that is not known is left out of the message, separator included.
        if *self == Self::default() { Ok(()) } else { f.write_str(": ") }
    }
}

/// A problem with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The path is that of a directory.
    #[error("is a directory, expected a file")]
    Directory,
    /// The path is that of a pipe or a device.
    #[error("is a pipe or a device, which can be read only once: write it to a regular file first")]
    NotRegular,
    /// The file does not begin like one of its kind.
    #[error("not a {expected} file: it does not begin with \"{expected}\"")]
    Magic {
        /// The bytes that such files begin with.
        expected: &'static str,
    },
    /// The file has a version that cannot be read.
    #[error("format version {found} is not supported, expected version {expected}")]
    Version {
        /// The version in the file.
        found: u32,
        /// The version that is read.
        expected: u32,
    },
    /// The file ends before what it announces.
    #[error("the file ends here, but {what} needs {needed} more bytes: it is truncated")]
    Truncated {
        /// The part that is read there.
        what: &'static str,
        /// The number of bytes that are missing at least.
        needed: u64,
    },
    /// Bytes follow the end.
    #[error("{count} bytes follow the end of {what}: the file is damaged; write it again")]
    LeftOver {
        /// The part that has ended.
        what: &'static str,
        /// The number of bytes that follow.
        count: u64,
    },
    /// A section is missing.
    #[error("section {0} is missing: the file is damaged; write it again")]
    NoSection(u32),
    /// A section is there twice.
    #[error("section {0} occurs more than once; write the file again")]
    SecondSection(u32),
    /// The numbers are of another field.
    #[error(
        "the numbers are of {field}, expected BLS12-381: compile with `circom --prime bls12381`. \
         Constants such as those of Poseidon belong to one field: a circuit with those of another \
         field needs new ones"
    )]
    Field {
        /// The other field, by name or in hexadecimal.
        field: String,
    },
    /// Numbers do not have 32 bytes.
    #[error("numbers have {0} bytes, expected 32 bytes as in BLS12-381")]
    FieldSize(u32),
    /// A number is not below the modulus.
    #[error(
        "{what} is not below the modulus of the field: the file is damaged, or its writer does not \
         reduce numbers"
    )]
    NotCanonical {
        /// The name of the number.
        what: &'static str,
    },
    /// Custom gates.
    #[error(
        "the circuit uses custom gates ({0} times), which are not R1CS constraints and cannot be \
         proven: remove `custom` from its templates, and write them with constraints"
    )]
    CustomGates(u32),
    /// A value of a witness is not below the modulus.
    #[error(
        "the value of wire {0} is not below the modulus of the field: the witness is damaged, or its \
         writer does not reduce numbers; compute it again"
    )]
    ValueNotCanonical(u32),
    /// A number contradicts another one.
    #[error("{what} is {found}, expected {expected}")]
    Mismatch {
        /// The name of the number.
        what: &'static str,
        /// The number in the file.
        found: u64,
        /// The number that follows from the rest.
        expected: u64,
    },
    /// There are fewer wires than public ones and the constant.
    #[error(
        "the number of wires is {found}, expected {least} or more: the constant 1, the public outputs \
         and the public inputs"
    )]
    TooFewWires {
        /// The number in the file.
        found: u64,
        /// The number of these wires.
        least: u64,
    },
    /// A number is larger than what the file has bytes for.
    #[error("{what} is {found}, but the file has bytes for at most {most}: it is damaged")]
    NoBytesFor {
        /// The name of the number.
        what: &'static str,
        /// The number in the file.
        found: u64,
        /// The largest number that the bytes allow.
        most: u64,
    },
    /// A number is too large.
    #[error("{what} is {found}; at most {most} are supported")]
    TooMany {
        /// The name of the number.
        what: &'static str,
        /// The number in the file.
        found: u64,
        /// The limit.
        most: u64,
    },
    /// A constraint is wrong.
    #[error(transparent)]
    Row(#[from] crate::RowError),
    /// A witness is for a circuit with another number of wires.
    #[error(
        "the number of values is {found}, expected {expected}, the number of the circuit's wires: the \
         witness is for another circuit, or for another compilation of this one (such as another of \
         --O0, --O1 and --O2)"
    )]
    OtherWires {
        /// The number of values.
        found: u64,
        /// The number of wires.
        expected: u64,
    },
    /// The first value of a witness is not 1.
    #[error(
        "the first value is not 1, the constant: this is not a witness of an R1CS; compute it again"
    )]
    NotOne,
    /// A line of a `.sym` is not four fields.
    #[error(
        "not a line of a .sym file, which has label, wire (or -1), component and name between commas"
    )]
    Line,
    /// A `.sym` file is of another circuit.
    #[error(
        "wire {wire} does not exist: the circuit has wires 0 to {}; the file has the names of another \
         circuit, or of another compilation of this one",
        wires.saturating_sub(1)
    )]
    OtherNames {
        /// The wire.
        wire: u32,
        /// The number of the circuit's wires.
        wires: u32,
    },
    /// A line of a `.sym` is too long.
    #[error("a line of more than {0} bytes: not a .sym file")]
    LongLine(u64),
}

impl FileError {
    pub(crate) fn new(path: &Path, place: FilePosition, problem: impl Into<Problem>) -> Self {
        Self { path: path.to_owned(), place, problem: problem.into() }
    }
}
