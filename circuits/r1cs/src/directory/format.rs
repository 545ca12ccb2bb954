//! The contents of the files of a circuit directory (docs/formats.md, "Circuit directory").

use crate::container::{FIELD, decode};
use crate::derived::{Definition, Derived};
use crate::partition::{Access, Part, PartType, Rows};
use crate::system::bytes_of;
use hekaton_circuit::Fr;
use serde::{Deserialize, Serialize};

/// The version of circuit directories.
pub(super) const VERSION: u32 = 2;
/// The format that `circuit.json` names.
pub(super) const FORMAT: &str = "hekaton circuit";
/// The most rows, and the most variables, of a type.
pub(super) const MOST_ROWS: usize = 1 << 28;
/// The most types.
pub(super) const MOST_TYPES: usize = 1 << 16;

/// The beginning of the binary files: what they are, and the version.
pub(super) const LAYOUT: [u8; 8] = *b"HEKATNCL";
pub(super) const WIRES: [u8; 8] = *b"HEKATNCW";
pub(super) const ROWS: [u8; 8] = *b"HEKATNCR";
/// Bytes of that beginning.
// A magic word of 8 bytes and the version.
pub(super) const HEAD: usize = 12;

pub(super) fn head(magic: [u8; 8]) -> Vec<u8> {
    [magic.as_slice(), &VERSION.to_le_bytes()].concat()
}

/// The source of a circuit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The name of the file, without its folder.
    pub name: String,
    /// Its BLAKE3 digest, in hexadecimal.
    pub digest: String,
    /// The number of constraints.
    pub rows: u64,
    /// The number of wires, the constant included.
    pub wires: u32,
    /// The number of public outputs, which come before the inputs.
    pub outputs: u32,
    /// The number of public inputs.
    pub inputs: u32,
    /// The number of private inputs, which are the wires after the public ones. Earlier versions did not write it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_inputs: Option<u32>,
    /// True constraints without wires, which say nothing and are left out.
    pub without_wires: Vec<u32>,
}

impl Source {
    /// The number of public wires: wires 1 up to this number.
    pub fn public(&self) -> u32 {
        self.outputs.saturating_add(self.inputs)
    }
}

/// A type, in `circuit.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeSummary {
    /// The name of the type; its constraints are in `types/NAME.rows`.
    pub name: String,
    /// The number of constraints.
    pub rows: u32,
    /// The number of slots.
    pub slots: u32,
    /// The number of own variables.
    pub own: u32,
    /// The number of parts.
    pub parts: u32,
    /// The BLAKE3 digest of the file with the constraints, in hexadecimal.
    pub digest: String,
}

/// The content of `circuit.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Always "hekaton circuit".
    pub format: String,
    /// The version of the format.
    pub version: u32,
    /// The source that was imported.
    pub source: Source,
    /// The most rows of a part that were allowed, slots and three more included.
    pub most: u64,
    /// The number of parts.
    pub parts: u32,
    /// The number of slots of all parts.
    pub slots: u64,
    /// The number of sums that stand for several shared wires.
    pub sums: u64,
    /// The number of wires that stand for several shared bits.
    pub packs: u64,
    /// The types.
    pub types: Vec<TypeSummary>,
    /// The BLAKE3 digest of the file `layout`, in hexadecimal.
    pub layout: String,
    /// The BLAKE3 digest of the file `wires`, in hexadecimal.
    pub wires: String,
    /// The BLAKE3 digest of the file `symbols`, if the names of wires were imported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<String>,
    /// The names of the public wires, if the names of wires were imported: outputs before inputs, and
    /// empty for a wire without a name. The copy in a key store has no others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub public_names: Vec<String>,
    /// The program that wrote the directory.
    pub written_by: String,
}

/// The slots of a part, in `layout`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct PartSlots {
    pub(super) kind: u32,
    /// The wire in each slot.
    pub(super) wires: Vec<u32>,
    /// The access of the part to each of them: 0 writes, 1 reads, 2 unused.
    pub(super) access: Vec<u8>,
    /// The offset of the rest in the file `wires`.
    pub(super) start: u64,
    pub(super) length: u64,
}

impl Access {
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Writes => 0,
            Self::Reads => 1,
            Self::Unused => 2,
        }
    }

    pub(super) fn from_code(code: u8) -> Option<Self> {
        [Self::Writes, Self::Reads, Self::Unused].into_iter().find(|access| access.code() == code)
    }
}

/// The body of `layout`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LayoutFile {
    /// The slots that no constraint has, for each type.
    pub(super) unconstrained: Vec<Vec<u32>>,
    pub(super) parts: Vec<PartSlots>,
    pub(super) derived: DerivedFile,
}

/// The values of a table of coefficients.
fn decoded(coefficients: &[[u8; FIELD]]) -> Result<Vec<Fr>, &'static str> {
    let values: Option<_> = coefficients.iter().map(decode).collect();
    // Reduced, a coefficient would have several encodings, and a circuit several digests.
    values.ok_or("a coefficient is not below the modulus")
}

/// The derived wires, in `layout`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct DerivedFile {
    coefficients: Vec<[u8; FIELD]>,
    definitions: Vec<DefinitionFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum DefinitionFile {
    Sum(Vec<[u32; 2]>),
    Pack(Vec<u32>),
}

impl DerivedFile {
    pub(super) fn new(derived: &Derived) -> Self {
        let file = |definition: &Definition| match definition.clone() {
            Definition::Sum(terms) => DefinitionFile::Sum(terms),
            Definition::Pack(bits) => DefinitionFile::Pack(bits),
        };
        Self {
            coefficients: derived.coefficients().iter().map(bytes_of).collect(),
            definitions: derived.definitions().iter().map(file).collect(),
        }
    }

    /// The derived wires of a source.
    pub(super) fn derived(self, source: &Source) -> Result<Derived, &'static str> {
        let coefficients = decoded(&self.coefficients)?;
        let definition = |file| match file {
            DefinitionFile::Sum(terms) => Definition::Sum(terms),
            DefinitionFile::Pack(bits) => Definition::Pack(bits),
        };
        let definitions = self.definitions.into_iter().map(definition).collect();
        Derived::new(source.rows, source.wires, coefficients, definitions)
    }
}

/// The numbers that `wires` has of a part, as differences between successive ones.
#[derive(Serialize, Deserialize)]
pub(super) struct PartWires {
    own: Vec<i64>,
    rows: Vec<i64>,
}

fn differences(numbers: &[u32]) -> Vec<i64> {
    let mut last = 0;
    // Rows and wires of a part are mostly neighbors: a difference has one or two bytes, a number five.
    let difference =
        |number: &u32| i64::from(*number) - std::mem::replace(&mut last, (*number).into());
    numbers.iter().map(difference).collect()
}

fn sums(differences: &[i64]) -> Option<Vec<u32>> {
    let mut last = 0i64;
    let sum = |difference: &i64| {
        // The file may be damaged: a sum beyond 32 bits must not wrap to a wire that exists.
        last = last.checked_add(*difference)?;
        u32::try_from(last).ok()
    };
    differences.iter().map(sum).collect()
}

impl PartWires {
    pub(super) fn new(part: &Part) -> Self {
        let own = differences(&part.wires[part.access.len()..]);
        Self { own, rows: differences(&part.rows) }
    }

    /// The wires of own variables, and the numbers of rows.
    pub(super) fn numbers(&self) -> Option<[Vec<u32>; 2]> {
        Some([sums(&self.own)?, sums(&self.rows)?])
    }
}

/// The body of `types/NAME.rows`.
#[derive(Serialize, Deserialize)]
pub(super) struct RowsFile {
    coefficients: Vec<[u8; FIELD]>,
    lengths: Vec<[u32; 3]>,
    terms: Vec<[u32; 2]>,
}

impl RowsFile {
    pub(super) fn new(kind: &PartType) -> Self {
        let Rows { lengths, terms, coefficients } = kind.rows.clone();
        Self { coefficients: coefficients.iter().map(bytes_of).collect(), lengths, terms }
    }

    /// The rows, if they are over variables up to `last`.
    pub(super) fn rows(self, last: u64) -> Result<Rows, &'static str> {
        let coefficients = decoded(&self.coefficients)?;
        let lengths = self.lengths.iter().flatten().map(|length| u64::from(*length));
        if lengths.sum::<u64>() != self.terms.len() as u64 {
            return Err("its constraints do not have as many terms as it has");
        }
        // Provers index by both without another look.
        let is_valid = |[coefficient, local]: &[u32; 2]| {
            (*coefficient as usize) < coefficients.len() && u64::from(*local) <= last
        };
        if !self.terms.iter().all(is_valid) {
            return Err("a term has a variable or coefficient that does not exist");
        }
        Ok(Rows { lengths: self.lengths, terms: self.terms, coefficients })
    }
}
