//! Checks that the parts of a partition say what the source says (spec: soundness#imported). It shares
//! no code with what makes partitions, and trusts nothing of it.
//!
//! It reads the constraints of types (from a circuit directory, or from the matrices of proving keys),
//! the wires and constraints that each part claims to have, the definitions of derived wires, and the
//! addresses and multiplicities of all slots as the memory check has them. It asserts, with the
//! numbers of the design:
//!
//! - P1: each constraint of the source is in one part, once; those left out are true and have no wires;
//! - P2: each row of a part, with variables replaced by their wires and sums by their terms, is that
//!   constraint;
//! - P3: the wires of a part are distinct, and none is the constant;
//! - P4: a wire that occurs in two parts, derived ones included, has a slot in each, with one address
//!   and a multiplicity, or is a bit of one pack that is in each;
//! - P5: an address is that of one wire, and one slot writes what all others there read;
//! - P6: a sum has at least two terms, over wires of the source and earlier sums, and one row, in one
//!   part, which is its definition;
//! - P7: a pack has at most 254 bits, each a private wire of the source and in no other pack; every
//!   part with it has its row, and for each bit a row that is true for 0 and 1 only, before sums are
//!   replaced;
//! - P8: public wire i has address i, which the verifier writes and every part with the wire reads;
//! - P9: there are no other rows; rows that make a wire a bit are only there where the source has such
//!   a row;
//! - P10: rows have no variables but those of the type.
//!
//! Then values that satisfy all parts and the memory check are those of one assignment of the source.
//! Each wire has one value: in a part by P3, over parts by P4 and P5, for bits by P7, because a number
//! below 2^254 has one binary form. So each sum has the value of its definition, one after the other,
//! by P6; each constraint holds for these values, by P1 and P2; and public wires have the verifier's,
//! by P8.

use crate::derived::{Definition, Derived, MOST_BITS, RowKind};
use crate::directory::{BundleError, CircuitBundle, PartContent};
use crate::system::System;
use ark_ff::{AdditiveGroup, Field};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Fr, SlotAccess};

/// A row with variables in place of wires: the sides A, B and C.
pub type LocalRow = [Vec<(Fr, usize)>; 3];

/// The reason why a partition is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PartitionError {
    /// The circuit directory cannot be read.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The constraints of a type cannot be read.
    #[error("type '{kind}': {why}")]
    Rows {
        /// The type.
        kind: String,
        /// The reason.
        why: String,
    },
    /// The directory is of another source.
    #[error("the circuit has {found} {what}, but the partition is of one with {expected}")]
    Source {
        /// The things that are counted.
        what: &'static str,
        /// The number in the partition.
        expected: u64,
        /// The number in the source.
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
        /// The problem.
        why: PartProblem,
    },
    /// A constraint is in no part.
    #[error("constraint {0} of the source is in no part")]
    Missing(u32),
    /// The constraints that are left out are not those without wires.
    #[error("the constraints that were left out are not the true ones without wires")]
    LeftOut,
    /// A derived wire is not what it may be (P6, P7).
    #[error("derived wire {wire}: {why}")]
    Definition {
        /// The wire.
        wire: u32,
        /// The problem.
        why: &'static str,
    },
    /// The slots at an address do not form a star.
    #[error("address {address}: {why}")]
    Address {
        /// The address.
        address: u64,
        /// The problem.
        why: &'static str,
    },
    /// The verifier's public wires are not those of the source.
    #[error("public value {index}: {why}")]
    Public {
        /// The public value, from 1.
        index: u64,
        /// The problem.
        why: &'static str,
    },
}

/// A problem in a part.
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
    /// A second row for a sum, or for a pack of a part (P6, P7).
    #[error("derived wire {0} is defined twice")]
    DefinedTwice(u32),
    /// A row that is not the definition of a derived wire (P6, P7).
    #[error("row {row} is not the definition of derived wire {wire}")]
    OtherDefinition {
        /// The row of the part.
        row: usize,
        /// The derived wire.
        wire: u32,
    },
    /// A row for a bit that is not one, or of a wire that is not a bit in the source (P9).
    #[error(
        "row {row} should make wire {wire} a bit of a pack, but does not, repeats another row, or \
         has no counterpart in the source"
    )]
    NoBit {
        /// The row of the part.
        row: usize,
        /// The wire.
        wire: u32,
    },
    /// A pack without its row (P7).
    #[error("the row that defines pack {0} is missing")]
    NoPackRow(u32),
    /// A bit of a pack that may have other values than 0 and 1 (P7).
    #[error("nothing in the part says that wire {bit} of pack {pack} is a bit")]
    FreeBit {
        /// The pack.
        pack: u32,
        /// The wire of the source.
        bit: u32,
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

/// The numbers of things that were checked.
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
// One piece: the checks in the order of the argument; each relies on those before it.
pub fn check_partition(
    source: &System,
    directory: &CircuitBundle,
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
    let slots_of = |kind: &u32| wiring.types.get(*kind as usize).map(|kind| kind.slots);
    let slots: Option<Vec<usize>> = wiring.type_of.iter().map(slots_of).collect();
    let slots = slots.ok_or(PartitionError::Layout("types"))?;
    if slots.iter().sum::<usize>() != wiring.slots.len() {
        return Err(PartitionError::Layout("slots"));
    }
    let derived = directory.derived();
    let numbers = (derived.first(), derived.number(RowKind::Definition(derived.first())));
    let expected = (source.wires(), u32::try_from(summary.source.rows).unwrap_or(u32::MAX));
    if numbers != expected {
        return Err(PartitionError::Layout("wires or constraints before derived ones"));
    }
    let mut check = Check::new(source, derived, wiring);
    check.definitions()?;
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
            check.packs(&wires).map_err(inside)?;
            report.wires += wires.len() as u64;
        }
    }
    check.finish()?;
    Ok(report)
}

/// The wire and the accesses at an address.
#[derive(Clone, Copy, Default)]
struct AddressUse {
    /// The wire, 0 before one is found.
    wire: u32,
    /// The multiplicity of the writer, 0 before one is found.
    written: i64,
    readers: i64,
}

/// A wire that was in no part so far.
const UNSEEN: u64 = u64::MAX;
/// A wire that is known as a bit of a pack: this, and the number of the pack. No address is as large.
const PACKED: u64 = 1 << 63;

struct Check<'a> {
    source: &'a System,
    derived: &'a Derived,
    /// `true` for each row of the source that was found.
    found: Vec<bool>,
    /// The last part, from 1, that has the row of each derived wire.
    defined: Vec<u32>,
    /// The last part, from 1, that says that each wire of the source is a bit. Empty if there
    /// are no packs, as are the following two.
    is_bit: Vec<u32>,
    /// `true` for each wire that the source says is a bit.
    is_bit_in_source: Vec<bool>,
    /// The pack of each wire of the source, 0 for none.
    pack: Vec<u32>,
    /// The role of each wire in the parts where it was found: an address, a pack, or 0 for neither.
    address: Vec<u64>,
    /// The places by address; the first one is that of no wire.
    places: Vec<AddressUse>,
    /// The part in which each wire was found last, from 1.
    last: Vec<u32>,
    part: u32,
}

impl<'a> Check<'a> {
    fn new(source: &'a System, derived: &'a Derived, wiring: &Wiring) -> Self {
        // No address beyond these can be that of a star: each has a slot or is public.
        let places = wiring.slots.len() + wiring.public.len() + 1;
        let wires = derived.wires() as usize;
        Self {
            source,
            derived,
            found: vec![false; source.rows()],
            defined: vec![0; derived.definitions().len()],
            is_bit: Vec::new(),
            is_bit_in_source: Vec::new(),
            pack: Vec::new(),
            address: vec![UNSEEN; wires],
            places: vec![AddressUse::default(); places],
            last: vec![0; wires],
            part: 0,
        }
    }

    /// Checks P6 and P7: the definitions of derived wires.
    fn definitions(&mut self) -> Result<(), PartitionError> {
        let is_pack = |wire: u32| matches!(self.derived.get(wire), Some(Definition::Pack(_)));
        let definitions = self.derived.definitions();
        if definitions.iter().any(|definition| matches!(definition, Definition::Pack(_))) {
            let wires = self.source.wires() as usize;
            (self.is_bit, self.pack) = (vec![0; wires], vec![0; wires]);
            self.is_bit_in_source = vec![false; wires];
            let coefficients = self.source.coefficients();
            for row in 0..self.source.rows() {
                let term = |t: &crate::Term| (coefficients[t.coefficient as usize], t.wire);
                let sides = self.source.row(row).map(|side| side.iter().map(term));
                if let Some(wire) = bit_of(sides) {
                    self.is_bit_in_source[wire as usize] = true;
                }
            }
        }
        for (wire, definition) in (self.source.wires()..).zip(definitions) {
            let wrong = |why| Err(PartitionError::Definition { wire, why });
            match definition {
                Definition::Sum(terms) => {
                    // With one term or none, replacing sums by terms might never end.
                    if terms.len() < 2 {
                        return wrong("a sum has at least two terms");
                    }
                    let is_valid = |[_, of]: &[u32; 2]| *of > 0 && *of < wire && !is_pack(*of);
                    if !terms.iter().all(is_valid) {
                        return wrong("a sum has terms over wires of the source and earlier sums");
                    }
                    if !terms.is_sorted_by(|[_, a], [_, b]| a < b) {
                        return wrong("the wires of a sum ascend");
                    }
                }
                Definition::Pack(bits) => {
                    if bits.len() > MOST_BITS {
                        return wrong("a pack of more than 254 bits has several meanings");
                    }
                    for bit in bits {
                        let is_private = *bit > self.source.public() && *bit < self.source.wires();
                        if !is_private {
                            return wrong("the bits of a pack are private wires of the source");
                        }
                        if std::mem::replace(&mut self.pack[*bit as usize], wire) != 0 {
                            return wrong("a bit has one place in one pack");
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks P8: the verifier's public wires are those of the source, in order, and it has no others.
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

    fn place(&mut self, address: u64) -> Option<&mut AddressUse> {
        self.places.get_mut(usize::try_from(address).ok()?)
    }

    /// Checks P3, P4, P5 and P8 for the wires of a part, of which those in slots come first.
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
            if let Some(slot) = slots.get(at) {
                self.slot(at, *wire, *slot)?;
            }
        }
        for (at, wire) in wires.iter().enumerate() {
            let index = *wire as usize;
            let mut address = slots.get(at).map_or(0, |slot| slot.address);
            if let Some(pack) = self.pack.get(index).filter(|pack| address == 0 && **pack > 0)
                && self.last[*pack as usize] == self.part
            {
                address = PACKED + u64::from(*pack);
            }
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

    /// Counts the access of a slot.
    fn slot(&mut self, at: usize, wire: u32, slot: SlotAccess) -> Result<(), PartProblem> {
        let SlotAccess { address, multiplicity } = slot;
        if (address == 0) != (multiplicity == 0) {
            return Err(PartProblem::HalfUsed(at));
        }
        if address == 0 {
            return Ok(());
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
        Ok(())
    }

    /// Checks P1, P2, P6, P7, P9 and P10 for the rows of a part.
    fn rows(
        &mut self,
        rows: &[LocalRow],
        numbers: &[u32],
        wires: &[u32],
    ) -> Result<(), PartProblem> {
        if rows.len() != numbers.len() {
            return Err(PartProblem::RowCount { rows: rows.len(), numbers: numbers.len() });
        }
        let mut sides: [Vec<(Fr, u32)>; 3] = Default::default();
        for (row, (local, number)) in rows.iter().zip(numbers).enumerate() {
            for (side, terms) in sides.iter_mut().zip(local) {
                side.clear();
                for (coefficient, variable) in terms {
                    let wire = match variable.checked_sub(1) {
                        None => Some(0),
                        Some(at) => wires.get(at).copied(),
                    };
                    let last = wires.len();
                    let no = PartProblem::NoSuchVariable { row, variable: *variable, last };
                    side.push((*coefficient, wire.ok_or(no)?));
                }
            }
            let bit = bit_of(sides.each_ref().map(|side| side.iter().copied()));
            let was_bit = bit.and_then(|bit| self.is_bit.get(bit as usize)) == Some(&self.part);
            if let Some(place) = bit.and_then(|bit| self.is_bit.get_mut(bit as usize)) {
                *place = self.part;
            }
            match self.derived.row(*number).ok_or(PartProblem::NoSuchRow(*number))? {
                RowKind::Source(_) => self.source_row(row, *number, &mut sides)?,
                RowKind::Definition(wire) => self.definition_row(row, wire, &sides)?,
                RowKind::Bit(wire) => {
                    let is_bit = self.is_bit_in_source.get(wire as usize) == Some(&true);
                    let pack = self.pack.get(wire as usize).map_or(0, |pack| *pack);
                    let is_packed = pack > 0 && self.last[pack as usize] == self.part;
                    if bit != Some(wire) || !is_bit || !is_packed || was_bit {
                        return Err(PartProblem::NoBit { row, wire });
                    }
                }
            }
        }
        Ok(())
    }

    /// Checks P1 and P2 for a row that claims to be a constraint of the source.
    fn source_row(
        &mut self,
        row: usize,
        number: u32,
        sides: &mut [Vec<(Fr, u32)>; 3],
    ) -> Result<(), PartProblem> {
        let index = self.index(number).ok_or(PartProblem::NoSuchRow(number))?;
        if std::mem::replace(&mut self.found[index], true) {
            return Err(PartProblem::RowTwice(number));
        }
        let other = PartProblem::OtherRow { row, number };
        for (side, expected) in sides.iter_mut().zip(self.source.row(index)) {
            if !self.expand(side, expected.len()) {
                return Err(other);
            }
            side.sort_unstable_by_key(|(_, wire)| *wire);
            // A wire that two sums have is there twice, and so it differs.
            let coefficients = self.source.coefficients();
            let expected = expected.iter();
            let expected = expected.map(|t| (coefficients[t.coefficient as usize], t.wire));
            if !expected.eq(side.iter().copied()) {
                return Err(other);
            }
        }
        Ok(())
    }

    /// Replaces sums by their terms, if there are no more of them than `most`. Packs have no place in
    /// constraints of the source.
    fn expand(&self, side: &mut Vec<(Fr, u32)>, most: usize) -> bool {
        let mut at = 0;
        while at < side.len() {
            // Each sum has two terms or more, and so this ends.
            if side.len() > most {
                return false;
            }
            let (coefficient, wire) = side[at];
            match self.derived.get(wire) {
                None => at += 1,
                Some(Definition::Pack(_)) => return false,
                Some(Definition::Sum(terms)) => {
                    side.swap_remove(at);
                    let table = self.derived.coefficients();
                    let term = |[k, wire]: &[u32; 2]| (coefficient * table[*k as usize], *wire);
                    side.extend(terms.iter().map(term));
                }
            }
        }
        side.len() <= most
    }

    /// Checks P6 and P7 for a row that claims to define a derived wire: (its terms) 1 = the wire.
    fn definition_row(
        &mut self,
        row: usize,
        wire: u32,
        [a, b, c]: &[Vec<(Fr, u32)>; 3],
    ) -> Result<(), PartProblem> {
        let other = PartProblem::OtherDefinition { row, wire };
        let definition = self.derived.get(wire).ok_or(other.clone())?;
        let index = (wire - self.derived.first()) as usize;
        let before = std::mem::replace(&mut self.defined[index], self.part);
        let mut a = a.clone();
        a.sort_unstable_by_key(|(_, wire)| *wire);
        let mut expected: Vec<(Fr, u32)> = match definition {
            Definition::Sum(terms) => {
                if before != 0 {
                    return Err(PartProblem::DefinedTwice(wire));
                }
                let table = self.derived.coefficients();
                terms.iter().map(|[k, wire]| (table[*k as usize], *wire)).collect()
            }
            Definition::Pack(bits) => {
                if before == self.part {
                    return Err(PartProblem::DefinedTwice(wire));
                }
                let weights = std::iter::successors(Some(Fr::ONE), |weight| Some(*weight + weight));
                weights.zip(bits.iter().copied()).collect()
            }
        };
        expected.sort_unstable_by_key(|(_, wire)| *wire);
        match a == expected && *b == [(Fr::ONE, 0)] && *c == [(Fr::ONE, wire)] {
            true => Ok(()),
            false => Err(other),
        }
    }

    /// Checks P7 for the packs of a part, of which all rows were seen.
    fn packs(&self, wires: &[u32]) -> Result<(), PartProblem> {
        for wire in wires {
            let Some(Definition::Pack(bits)) = self.derived.get(*wire) else { continue };
            if self.defined[(wire - self.derived.first()) as usize] != self.part {
                return Err(PartProblem::NoPackRow(*wire));
            }
            // Its row has all bits, and so they are wires of this part.
            if let Some(bit) = bits.iter().find(|bit| self.is_bit[**bit as usize] != self.part) {
                return Err(PartProblem::FreeBit { pack: *wire, bit: *bit });
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

    /// Checks what can be checked only at the end: all constraints were found, and each address has one
    /// writer, whose multiplicity is the number of readers.
    fn finish(&self) -> Result<(), PartitionError> {
        if let Some(missing) = self.found.iter().position(|found| !found) {
            return Err(PartitionError::Missing(self.source.number(missing)));
        }
        for (wire, part) in (self.source.wires()..).zip(&self.defined) {
            if *part == 0 {
                let why = "no part has the row that defines it";
                return Err(PartitionError::Definition { wire, why });
            }
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

/// The wire of which a row says that it is 0 or 1, and nothing else: A B - C is a multiple of
/// w (w - 1), and not 0.
fn bit_of<I: Iterator<Item = (Fr, u32)>>(sides: [I; 3]) -> Option<u32> {
    let mut wire = None;
    // Of each side, the constant and the coefficient of the wire.
    let mut values = [[Fr::ZERO; 2]; 3];
    for (value, side) in values.iter_mut().zip(sides) {
        for (coefficient, of) in side {
            if of == 0 {
                value[0] += coefficient;
            } else if *wire.get_or_insert(of) == of {
                value[1] += coefficient;
            } else {
                return None;
            }
        }
    }
    let [a, b, c] = values;
    // The coefficients of 1, w and w^2.
    let polynomial = [a[0] * b[0] - c[0], a[0] * b[1] + a[1] * b[0] - c[1], a[1] * b[1]];
    let is_bit = polynomial[0] == Fr::ZERO
        && polynomial[2] != Fr::ZERO
        && polynomial[1] + polynomial[2] == Fr::ZERO;
    wire.filter(|_| is_bit)
}
