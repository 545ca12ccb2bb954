//! circom's `.r1cs` files, version 1.
//!
//! Section 1 has the field and the counts, section 2 the constraints, section 3 the labels of wires;
//! sections 4 and 5 describe custom gates. A number in the header is used only where something needs it, and
//! only as far as the file has bytes for it, because writers differ in the others: circom counts private
//! inputs before it simplifies, and some tools write no labels, or shorter ones.

use crate::container::{Container, Reader, container_of, decode};
use crate::error::{FileError, FilePosition, Problem};
use crate::numbers::count;
use crate::system::{System, SystemBuilder, bytes_of};
use ark_ff::{BigInteger, PrimeField};
use hekaton_circuit::Fr;
use std::path::Path;

const HEADER: u32 = 1;
const CONSTRAINTS: u32 = 2;
const LABELS: u32 = 3;
/// The uses of custom gates; section 4 declares them.
const CUSTOM_GATES: u32 = 5;
/// Bytes of a term: the wire and the coefficient.
const TERM: u64 = 4 + 32;
/// Bytes of a row without terms: three counts.
const EMPTY_ROW: u64 = 12;
/// Bytes of a label.
const LABEL: u64 = 8;
/// Wires that a file may have without a byte that shows for them. Each takes about 50 bytes of memory
/// in an import.
const UNSEEN_WIRES: u64 = 1 << 22;

/// The numbers of wires and constraints of a circuit. Wire 0 is the constant 1; public outputs,
/// public inputs, private inputs and all others follow in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// The number of wires, the constant included.
    pub wires: u32,
    /// The number of public outputs.
    pub outputs: u32,
    /// The number of public inputs.
    pub inputs: u32,
    /// The number of private inputs as the header has it, which nothing relies on: circom counts them
    /// before simplification, so that there can be more of them than wires.
    pub private_inputs: u32,
    /// The number of constraints.
    pub rows: u32,
}

impl Counts {
    /// The number of public wires, outputs before inputs: wires 1 up to this number.
    pub fn public(&self) -> u32 {
        // Their sum is below the number of wires.
        self.outputs + self.inputs
    }
}

/// An opened `.r1cs` file, whose header is checked.
#[derive(Debug)]
pub struct R1csFile {
    container: Container,
    counts: Counts,
    labels: u64,
}

impl R1csFile {
    /// Opens a file, and checks everything but the constraints. Sections may be in any order; other
    /// ones are skipped, and nothing depends on the labels.
    ///
    /// # Errors
    /// Fails if the file is not a regular file or not a `.r1cs` file, is truncated, is over another field, uses custom gates, or
    /// has impossible counts.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let container = Container::open(path, "r1cs", 1)?;
        let mut header = container.reader(HEADER)?;
        header.field()?;
        let wires = header.u32("the number of wires")?;
        let outputs = header.u32("the number of public outputs")?;
        let inputs = header.u32("the number of public inputs")?;
        let private_inputs = header.u32("the number of private inputs")?;
        let labels = header.u64("the number of labels")?;
        let rows = header.u32("the number of constraints")?;
        let public = u64::from(outputs) + u64::from(inputs);
        if public >= u64::from(wires) {
            let (found, least) = (u64::from(wires), public + 1);
            return Err(header.error(Problem::TooFewWires { found, least }));
        }
        if public > MOST_PUBLIC {
            let what = "the number of public wires";
            return Err(header.error(Problem::TooMany { what, found: public, most: MOST_PUBLIC }));
        }
        header.finish("the header")?;
        let counts = Counts { wires, outputs, inputs, private_inputs, rows };
        if container.has(CUSTOM_GATES) {
            // Gates that are declared and never used constrain nothing. No use is a count of zero, or
            // an empty section.
            let mut gates = container.reader(CUSTOM_GATES)?;
            let uses = if gates.left() > 0 {
                gates.u32("the number of uses of custom gates")?
            } else {
                0
            };
            if uses > 0 {
                return Err(gates.error(Problem::CustomGates(uses)));
            }
        }
        // What the file says of itself is possible, so that numbers of it may be trusted with memory.
        let bytes = match container.has(CONSTRAINTS) || rows > 0 {
            true => container.section(CONSTRAINTS)?.length,
            false => 0,
        };
        let limit = |section, what, found, most| {
            let place = FilePosition { section: Some(section), ..FilePosition::default() };
            let problem = Problem::NoBytesFor { what, found, most };
            if found > most { Err(container.error(place, problem)) } else { Ok(()) }
        };
        let what = "the number of constraints in the header";
        limit(CONSTRAINTS, what, rows.into(), bytes / EMPTY_ROW)?;
        let shown = bytes / TERM + container.length_of(LABELS) / LABEL + UNSEEN_WIRES;
        limit(HEADER, "the number of wires in the header", wires.into(), shown)?;
        Ok(Self { container, counts, labels })
    }

    /// Returns the numbers of wires and constraints.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of labels of signals before circom's simplification, as the header has it; nothing
    /// relies on it.
    pub fn labels(&self) -> u64 {
        self.labels
    }

    /// The number of wires that are private inputs: those that follow the public ones. `None` if labels do not show it.
    ///
    /// circom's header counts those that its simplification removed, too, but labels are numbered before it, in the order of
    /// outputs, public inputs and private inputs. Taken for an input, another wire would make what nothing ties look tied.
    ///
    /// # Errors
    /// Fails if the labels cannot be read.
    pub fn private_inputs(&self) -> Result<Option<u32>, FileError> {
        let Counts { wires, private_inputs, .. } = self.counts;
        let public = self.counts.public();
        if self.container.length_of(LABELS) / LABEL < u64::from(wires) {
            return Ok(None);
        }
        let mut reader = self.container.reader(LABELS)?;
        for wire in 0..=public {
            if reader.u64("a label")? != u64::from(wire) {
                return Ok(None);
            }
        }
        let (first, mut last) = (u64::from(public) + 1, u64::from(public));
        let end = first + u64::from(private_inputs);
        for wire in 0..wires - 1 - public {
            let label = reader.u64("a label")?;
            // They ascend in circom's files.
            if label <= last {
                return Ok(None);
            }
            if label >= end {
                return Ok(Some(wire));
            }
            last = label;
        }
        Ok(Some(wires - 1 - public))
    }

    /// The BLAKE3 digest of the file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn digest(&self) -> Result<[u8; 32], FileError> {
        self.container.digest()
    }

    /// The content of a file with a system's constraints, of whose public wires the first `outputs`
    /// are outputs: for arkworks circuits, and for other provers. Constraints without wires are left
    /// out.
    pub fn bytes_of(system: &System, outputs: u32) -> Vec<u8> {
        let mut header = 32u32.to_le_bytes().to_vec();
        header.extend(Fr::MODULUS.to_bytes_le());
        let public_outputs = outputs.min(system.public());
        let inputs = system.public() - public_outputs;
        for number in [system.wires(), public_outputs, inputs, 0] {
            header.extend(number.to_le_bytes());
        }
        header.extend(u64::from(system.wires()).to_le_bytes());
        header.extend(count(system.rows()).to_le_bytes());
        let coefficients: Vec<_> = system.coefficients().iter().map(bytes_of).collect();
        let mut rows = Vec::new();
        for side in (0..system.rows()).flat_map(|row| system.row(row)) {
            rows.extend(count(side.len()).to_le_bytes());
            for term in side {
                rows.extend(term.wire.to_le_bytes());
                rows.extend(coefficients[term.coefficient as usize]);
            }
        }
        let labels: Vec<u8> = (0..u64::from(system.wires())).flat_map(u64::to_le_bytes).collect();
        container_of("r1cs", 1, &[(HEADER, &header), (CONSTRAINTS, &rows), (LABELS, &labels)])
    }

    /// Reads the constraints. `progress` is called from time to time with the number of rows read.
    ///
    /// # Errors
    /// If a row has a wire that does not exist, a number that is not below the modulus, or cannot
    /// hold; if the section is truncated or longer than the rows.
    pub fn read(&self, mut progress: impl FnMut(u32)) -> Result<System, FileError> {
        let mut system = SystemBuilder::new(self.counts.wires, self.counts.public());
        if self.counts.rows == 0 && !self.container.has(CONSTRAINTS) {
            return Ok(system.finish());
        }
        let mut reader = self.container.reader(CONSTRAINTS)?;
        for row in 0..self.counts.rows {
            reader.place.row = Some(row.into());
            for _ in 0..3 {
                combination(&mut reader, &mut system)?;
            }
            system.end_row(row).map_err(|e| reader.error(e.into()))?;
            // Seldom enough that a terminal keeps up.
            if row % (1 << 16) == 0 {
                progress(row);
            }
        }
        reader.place.row = None;
        reader.finish("the constraints")?;
        Ok(system.finish())
    }
}

/// The most public wires that are supported.
const MOST_PUBLIC: u64 = 1 << 24;

/// Reads a linear combination.
fn combination(reader: &mut Reader<'_>, system: &mut SystemBuilder) -> Result<(), FileError> {
    let terms = reader.u32("the number of terms")?;
    // A count that the section has no bytes for is refused before the first term is read.
    let most = reader.left() / TERM;
    if u64::from(terms) > most {
        let what = "the number of terms";
        return Err(reader.error(Problem::NoBytesFor { what, found: terms.into(), most }));
    }
    for _ in 0..terms {
        let wire = reader.u32("a wire")?;
        let coefficient = reader.scalar("a coefficient")?;
        let value = || decode(&coefficient).expect("the reader has checked it");
        system.term(wire, &coefficient, value).map_err(|e| reader.error(e.into()))?;
    }
    system.end_combination().map_err(|e| reader.error(e.into()))
}
