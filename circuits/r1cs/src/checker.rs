//! Whether the parts of a partition say what the source says (spec: soundness#imported). It shares
//! no code with what makes partitions, and trusts nothing of it.
//!
//! It reads the constraints of types (from a circuit directory, or from the matrices of proving keys),
//! the wires and constraints that each part claims to have, and the addresses and multiplicities of
//! all slots as the memory check has them. It asserts, with the numbers of the design:
//!
//! - P1: each constraint of the source is in one part, once; those left out are true and have no wires;
//! - P2: each row of a part, with variables replaced by their wires, is that constraint;
//! - P3: the wires of a part are distinct, and none is the constant;
//! - P4: a wire that occurs in two parts has a slot in each, with one address and a multiplicity;
//! - P5: an address is that of one wire, and one slot writes what all others there read;
//! - P8: public wire i has address i, which the verifier writes and every part with the wire reads;
//! - P9: there are no other rows;
//! - P10: rows have no variables but those of the type.
//!
//! Then values that satisfy all parts and the memory check are those of one assignment of the source:
//! each wire has one value, by P3 in a part and by P4 and P5 over parts; each constraint holds for
//! these values, by P1 and P2; and public wires have the verifier's, by P8.

use crate::directory::{Directory, DirectoryError, PartContent};
use crate::system::System;
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Fr, SlotAccess};

/// A row with variables in place of wires: the sides A, B and C.
pub type LocalRow = [Vec<(Fr, usize)>; 3];

/// Why a partition is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The circuit directory cannot be read.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The constraints of a type cannot be read.
    #[error("type '{kind}': {why}")]
    Rows {
        /// The type.
        kind: String,
        /// Why not.
        why: String,
    },
    /// The directory is of another source.
    #[error("the circuit has {found} {what}, but the partition is of one with {expected}")]
    Source {
        /// What is counted.
        what: &'static str,
        /// In the partition.
        expected: u64,
        /// In the source.
        found: u64,
    },
    /// The layout is not that of the directory.
    #[error("the layout has another number of {0} than the partition")]
    Layout(&'static str),
    /// A part is wrong.
    #[error("part {part}: {why}")]
    Part {
        /// The part.
        part: usize,
        /// What is wrong.
        why: PartProblem,
    },
    /// A constraint is in no part.
    #[error("constraint {0} of the source is in no part")]
    Missing(u32),
    /// The constraints that are left out are not those without wires.
    #[error("the constraints that were left out are not the true ones without wires")]
    LeftOut,
    /// The slots at an address do not form a star.
    #[error("address {address}: {why}")]
    Address {
        /// The address.
        address: u64,
        /// What is wrong.
        why: &'static str,
    },
    /// The verifier's public wires are not those of the source.
    #[error("public value {index}: {why}")]
    Public {
        /// The public value, from 1.
        index: u64,
        /// What is wrong.
        why: &'static str,
    },
}

/// What is wrong with a part.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartProblem {
    /// A constraint that the source does not have (P1).
    #[error("the source has no constraint {0}")]
    NoSuchRow(u32),
    /// A constraint that another row has (P1).
    #[error("constraint {0} of the source is there twice")]
    RowTwice(u32),
    /// A row that is not the constraint (P2).
    #[error("row {row} is not constraint {number} of the source")]
    OtherRow {
        /// The row of the part.
        row: usize,
        /// The constraint of the source.
        number: u32,
    },
    /// A wire that is twice in a part (P3).
    #[error("wire {0} has two variables")]
    WireTwice(u32),
    /// A wire that cannot be in a part (P3).
    #[error("wire {0} is the constant, or does not exist")]
    NoSuchWire(u32),
    /// A wire of several parts without a slot (P4).
    #[error("wire {0} is in several parts, and not shared by all of them")]
    NotShared(u32),
    /// A second writer, another negative multiplicity than -1, or an address beyond all (P5).
    #[error("the slot of wire {0} is neither the one writer nor a reader of its address")]
    NoStar(u32),
    /// A slot with an address, and without a multiplicity, or the other way round (P4).
    #[error("slot {0} has an address or a multiplicity, but not both")]
    HalfUsed(usize),
    /// Two wires at one address (P5).
    #[error("wires {0} and {1} have the same address")]
    TwoWires(u32, u32),
    /// A public wire that is not read (P8).
    #[error("public wire {0} is not read at its address")]
    NotPublic(u32),
    /// More or fewer rows than constraints (P9).
    #[error("it has {rows} rows for {numbers} constraints")]
    RowCount {
        /// Rows of its type.
        rows: usize,
        /// Constraints that it claims to have.
        numbers: usize,
    },
    /// A variable that the type does not have (P10).
    #[error("row {row} has variable {variable}, but the last one is {last}")]
    NoSuchVariable {
        /// The row.
        row: usize,
        /// The variable.
        variable: usize,
        /// The last variable of the type.
        last: usize,
    },
}

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartitionReport {
    /// The number of parts.
    pub parts: usize,
    /// The number of constraints.
    pub rows: usize,
    /// The number of wires of all parts.
    pub wires: u64,
}

/// Checks a partition against its source. `rows` returns the constraints of a type over local
/// variables (0 is the constant 1, 1 to s the slots, then own ones); `wiring` is without masks.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_partition(
    source: &System,
    directory: &Directory,
    wiring: &Wiring,
    mut rows: impl FnMut(usize) -> Result<Vec<LocalRow>, PartitionError>,
) -> Result<PartitionReport, PartitionError> {
    let summary = directory.summary();
    let same = |what, expected: u64, found: u64| match expected == found {
        true => Ok(()),
        false => Err(PartitionError::Source { what, expected, found }),
    };
    let public = source.public();
    same("wires", summary.source.wires.into(), source.wires().into())?;
    same("public wires", summary.source.public().into(), public.into())?;
    same(
        "constraints",
        summary.source.rows,
        (source.rows() + source.without_wires().len()) as u64,
    )?;
    if summary.source.without_wires != source.without_wires() {
        return Err(PartitionError::LeftOut);
    }
    if wiring.masking.is_masked() || wiring.instances() != directory.parts() {
        return Err(PartitionError::Layout("parts"));
    }
    if wiring.types.len() != summary.types.len() {
        return Err(PartitionError::Layout("types"));
    }
    let mut check = Check::new(source, wiring);
    check.verifier(wiring)?;
    let starts = wiring.starts();
    let mut of_type: Vec<Vec<usize>> = vec![Vec::new(); summary.types.len()];
    for (part, kind) in wiring.type_of.iter().enumerate() {
        of_type.get_mut(*kind as usize).ok_or(PartitionError::Layout("types"))?.push(part);
    }
    let mut report = PartitionReport { parts: directory.parts(), rows: source.rows(), wires: 0 };
    for (kind, parts) in of_type.into_iter().enumerate() {
        let slots = wiring.types[kind].slots;
        let rows = rows(kind)?;
        for part in parts {
            let inside = |why| PartitionError::Part { part, why };
            if directory.kind(part) != kind || directory.slots(part).count() != slots {
                return Err(PartitionError::Layout("slots"));
            }
            let accesses = &wiring.slots[starts[part]..starts[part] + slots];
            let PartContent { own, rows: numbers } = directory.content(part)?;
            let mut wires: Vec<u32> = directory.slots(part).map(|(wire, _)| wire).collect();
            wires.extend(own);
            check.wires(&wires, accesses).map_err(inside)?;
            check.rows(&rows, &numbers, &wires).map_err(inside)?;
            report.wires += wires.len() as u64;
        }
    }
    check.finish()?;
    Ok(report)
}

/// What is at an address.
#[derive(Clone, Copy, Default)]
struct Place {
    /// The wire, 0 before one is found.
    wire: u32,
    /// The multiplicity of the writer, 0 before one is found.
    written: i64,
    readers: i64,
}

/// A wire that was in no part so far.
const UNSEEN: u64 = u64::MAX;

struct Check<'a> {
    source: &'a System,
    /// Whether each row of the source was found.
    found: Vec<bool>,
    /// The address of each wire in the parts where it was found: 0 for none.
    address: Vec<u64>,
    /// By address; the first one is that of no wire.
    places: Vec<Place>,
    /// The part in which each wire was found last, from 1.
    last: Vec<u32>,
    part: u32,
}

impl<'a> Check<'a> {
    fn new(source: &'a System, wiring: &Wiring) -> Self {
        // No address beyond these can be that of a star: each has a slot or is public.
        let places = wiring.slots.len() + wiring.public.len() + 1;
        let wires = source.wires() as usize;
        Self {
            source,
            found: vec![false; source.rows()],
            address: vec![UNSEEN; wires],
            places: vec![Place::default(); places],
            last: vec![0; wires],
            part: 0,
        }
    }

    /// P8: the verifier's public wires are those of the source, in order, and it has no others.
    fn verifier(&mut self, wiring: &Wiring) -> Result<(), PartitionError> {
        let public = u64::from(self.source.public());
        let wrong = |index: u64, why| Err(PartitionError::Public { index, why });
        if !wiring.constants.is_empty() {
            return wrong(0, "the layout has constants, which the source does not have");
        }
        if wiring.public.len() as u64 != public {
            return wrong(public, "the layout has another number of public values");
        }
        for (index, wire) in (1u64..).zip(&wiring.public) {
            if wire.address != index {
                return wrong(index, "it has another address");
            }
            if wire.multiplicity < 1 {
                return wrong(index, "the verifier does not write it for a reader");
            }
            let Some(place) = self.place(index) else { return wrong(index, "there is no reader") };
            place.written = wire.multiplicity;
        }
        Ok(())
    }

    fn place(&mut self, address: u64) -> Option<&mut Place> {
        self.places.get_mut(usize::try_from(address).ok()?)
    }

    /// P3, P4, P5 and P8 for the wires of a part, of which those in slots come first.
    fn wires(&mut self, wires: &[u32], slots: &[SlotAccess]) -> Result<(), PartProblem> {
        self.part += 1;
        for (at, wire) in wires.iter().enumerate() {
            let index = *wire as usize;
            let is_there = *wire > 0 && index < self.last.len();
            if !is_there {
                return Err(PartProblem::NoSuchWire(*wire));
            }
            if std::mem::replace(&mut self.last[index], self.part) == self.part {
                return Err(PartProblem::WireTwice(*wire));
            }
            let address = match slots.get(at) {
                Some(slot) => self.slot(at, *wire, *slot)?,
                None => 0,
            };
            let is_public = *wire <= self.source.public();
            if is_public && (address != u64::from(*wire) || slots[at].multiplicity != -1) {
                return Err(PartProblem::NotPublic(*wire));
            }
            // The second part with a wire, and all after it.
            let before = std::mem::replace(&mut self.address[index], address);
            if before != UNSEEN && (before != address || address == 0) {
                return Err(PartProblem::NotShared(*wire));
            }
        }
        Ok(())
    }

    /// The address of a slot, 0 if it is unused. Counts the access.
    fn slot(&mut self, at: usize, wire: u32, slot: SlotAccess) -> Result<u64, PartProblem> {
        let SlotAccess { address, multiplicity } = slot;
        if (address == 0) != (multiplicity == 0) {
            return Err(PartProblem::HalfUsed(at));
        }
        if address == 0 {
            return Ok(0);
        }
        let no_star = PartProblem::NoStar(wire);
        let Some(place) = self.place(address) else { return Err(no_star) };
        match place.wire {
            0 => place.wire = wire,
            other if other == wire => {}
            other => return Err(PartProblem::TwoWires(other, wire)),
        }
        if multiplicity == -1 {
            place.readers += 1;
        } else if place.written == 0 && multiplicity > 0 {
            place.written = multiplicity;
        } else {
            return Err(no_star);
        }
        Ok(address)
    }

    /// P1, P2, P9 and P10 for the rows of a part.
    fn rows(
        &mut self,
        rows: &[LocalRow],
        numbers: &[u32],
        wires: &[u32],
    ) -> Result<(), PartProblem> {
        if rows.len() != numbers.len() {
            return Err(PartProblem::RowCount { rows: rows.len(), numbers: numbers.len() });
        }
        let mut side = Vec::new();
        for (row, (local, number)) in rows.iter().zip(numbers).enumerate() {
            let index = self.index(*number).ok_or(PartProblem::NoSuchRow(*number))?;
            if std::mem::replace(&mut self.found[index], true) {
                return Err(PartProblem::RowTwice(*number));
            }
            for (terms, expected) in local.iter().zip(self.source.row(index)) {
                side.clear();
                for (coefficient, variable) in terms {
                    let wire = match variable.checked_sub(1) {
                        None => Some(0),
                        Some(at) => wires.get(at).copied(),
                    };
                    let last = wires.len();
                    let no = PartProblem::NoSuchVariable { row, variable: *variable, last };
                    side.push((wire.ok_or(no)?, *coefficient));
                }
                side.sort_unstable_by_key(|(wire, _)| *wire);
                let coefficients = self.source.coefficients();
                let expected = expected.iter();
                let expected = expected.map(|t| (t.wire, coefficients[t.coefficient as usize]));
                if !expected.eq(side.iter().copied()) {
                    return Err(PartProblem::OtherRow { row, number: *number });
                }
            }
        }
        Ok(())
    }

    /// The index of a constraint of the source.
    fn index(&self, number: u32) -> Option<usize> {
        // They ascend, without those that have no wires.
        let (mut from, mut to) = (0, self.source.rows());
        while from < to {
            let middle = from + (to - from) / 2;
            match self.source.number(middle).cmp(&number) {
                std::cmp::Ordering::Less => from = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => to = middle,
            }
        }
        None
    }

    /// What can be said only at the end: all constraints were found, and each address has one
    /// writer, whose multiplicity is the number of readers.
    fn finish(&self) -> Result<(), PartitionError> {
        if let Some(missing) = self.found.iter().position(|found| !found) {
            return Err(PartitionError::Missing(self.source.number(missing)));
        }
        let public = self.source.public() as usize;
        for (address, place) in (0u64..).zip(&self.places).skip(1) {
            let wrong = |why| Err(PartitionError::Address { address, why });
            if place.wire == 0 && place.written == 0 {
                continue;
            }
            if place.readers == 0 || place.written != place.readers {
                return wrong("its writer does not have the number of its readers");
            }
            let is_public = address <= public as u64;
            if is_public != (u64::from(place.wire) == address && place.wire as usize <= public) {
                return wrong(
                    "it has a private wire in place of a public one, or the other way round",
                );
            }
        }
        Ok(())
    }
}
