//! Derived wires in place of many shared ones: partial sums, and packed bits (see
//! [`Derived`](crate::Derived)).

use super::moves::Counts;
use super::parts::parts_in;
use super::{Cut, FIXED_ROWS, Occurrences, Order, Parts};
use crate::derived::{Definitions, MOST_BITS, RowKind, powers_of_two};
use crate::numbers::{count, limit, signed};
use crate::system::{System, Term};
use ark_ff::{Field, Zero};
use hekaton_circuit::Fr;
use std::collections::{BTreeMap, HashMap};

/// The least number of slots that a sum replaces; it has two slots of its own, and a row.
const LEAST_SAVED: usize = 4;
/// The least number of bits in a pack.
const LEAST_BITS: usize = 8;
/// The most terms of a combination in parts with room for three of them: longer ones become sums of
/// sums.
const MOST_TERMS: u64 = 4096;
/// Wires of more parts than this are left out: they are nearly everywhere.
const MANY: usize = 64;

/// A system with derived wires, and its cut.
#[derive(Clone, Debug)]
pub(super) struct Derivation {
    /// Its rows are in the order of parts.
    pub(super) system: System,
    pub(super) occurrences: Occurrences,
    pub(super) cut: Cut,
}

impl Derivation {
    /// The order of rows.
    pub(super) fn rows(&self) -> Vec<u32> {
        (0..count(self.system.rows())).collect()
    }
}

/// Coefficients that derived rows have, at their places in the table of a system.
struct Constants {
    places: HashMap<Fr, u32>,
    /// Those that the system does not have, which come after its own.
    more: Vec<Fr>,
}

impl Constants {
    fn new(system: &System) -> Self {
        let mut wanted: HashMap<Fr, Option<u32>> =
            powers_of_two().take(MOST_BITS).chain([-Fr::ONE]).map(|value| (value, None)).collect();
        for (place, coefficient) in (0u32..).zip(system.coefficients()) {
            wanted.entry(*coefficient).and_modify(|known| *known = Some(place));
        }
        let (mut places, mut more) = (HashMap::new(), Vec::new());
        for value in powers_of_two().take(MOST_BITS).chain([-Fr::ONE]) {
            let next = system.coefficients().len() + more.len();
            let place = wanted[&value].unwrap_or_else(|| {
                more.push(value);
                count(next)
            });
            places.insert(value, place);
        }
        Self { places, more }
    }

    fn term(&self, coefficient: Fr, wire: u32) -> Term {
        Term { coefficient: self.places[&coefficient], wire }
    }
}

/// Reports whether rows have the numbers from 0 on, so that those after them are free.
fn has_room_for_numbers(system: &System) -> bool {
    let rows = system.rows() + system.without_wires().len();
    let last = (0..system.rows()).map(|row| system.number(row)).max();
    // A source from elsewhere may number its rows as it likes; derived rows need the numbers behind them.
    last.is_none_or(|last| (last as usize) < rows)
}

/// Rewrites combinations of more terms than a part can have as sums of sums: the sums are rows of
/// their own, which any part may have. `None` if all are short, or one part has room for everything.
pub(super) fn split_long(system: &System, most: u64) -> Option<System> {
    let all = system.rows() as u64 + u64::from(system.public()) + FIXED_ROWS;
    if all <= most || !has_room_for_numbers(system) {
        return None;
    }
    // A row with three sides of this length fits into a part of its own.
    let longest = limit(MOST_TERMS.min(most.saturating_sub(1 + FIXED_ROWS) / 3).max(2));
    let is_long = |row: &usize| system.row(*row).iter().any(|side| side.len() > longest);
    // Nothing is copied for the usual system, which has no long rows.
    (0..system.rows()).find(is_long)?;
    let constants = Constants::new(system);
    let mut definitions = Definitions::new(system.coefficients(), system.derived());
    // The terms of all sums, and the rows with shorter sides.
    let mut sums: Vec<(u32, Vec<Term>)> = Vec::new();
    let mut shorter: HashMap<usize, [Vec<Term>; 3]> = HashMap::new();
    for row in (0..system.rows()).filter(is_long) {
        let sides = system.row(row).map(|side| {
            // The constant stays: it is in all parts.
            let (constant, mut side): (Vec<Term>, Vec<Term>) =
                side.iter().copied().partition(|term| term.wire == 0);
            while side.len() > longest {
                let mut next = Vec::new();
                for piece in side.chunks(longest) {
                    if let [alone] = piece {
                        next.push(*alone);
                        continue;
                    }
                    let wire = definitions.next();
                    let terms = piece.iter().map(|term| [term.coefficient, term.wire]);
                    definitions.sum(terms);
                    sums.push((wire, piece.to_vec()));
                    next.push(constants.term(Fr::ONE, wire));
                }
                // Combinations are canonical: wires ascend.
                next.sort_unstable_by_key(|term| term.wire);
                side = next;
            }
            [constant, side].concat()
        });
        shorter.insert(row, sides);
    }
    let derived = definitions.finish()?;
    let one = [constants.term(Fr::ONE, 0)];
    let mut out = system.without_rows(derived, &constants.more);
    for row in 0..system.rows() {
        match shorter.get(&row) {
            Some(sides) => out.push(system.number(row), sides.each_ref().map(Vec::as_slice)),
            None => out.push(system.number(row), system.row(row)),
        }
    }
    for (wire, terms) in &sums {
        let number = out.derived().number(RowKind::Definition(*wire));
        out.push(number, [terms, &one, &[constants.term(Fr::ONE, *wire)]]);
    }
    Some(out)
}

/// A sum that a part makes for a row of another one.
struct Sum {
    wire: u32,
    maker: u32,
    terms: Vec<Term>,
}

/// A pack, and the parts that have it.
struct Pack {
    wire: u32,
    bits: Vec<u32>,
    parts: Vec<u32>,
}

/// Looks for sums and packs that make a cut cheaper. `rows` is the order of rows in parts; no part that
/// had at most `most` rows, slots included, exceeds that. `None` if there are no such sums and packs.
pub(super) fn derive(
    system: &System,
    occurrences: &Occurrences,
    cut: &Cut,
    rows: &[u32],
    most: u64,
) -> Option<Derivation> {
    let cost = cut.cost(system, occurrences);
    let sizes = cost.rows.iter().zip(&cost.slots).map(|(rows, slots)| rows + slots + FIXED_ROWS);
    let mut search = Search {
        system,
        cut,
        counts: Counts::new(cut, system, occurrences),
        sizes: sizes.map(|size| 0i64.saturating_add_unsigned(size)).collect(),
        most: 0i64.saturating_add_unsigned(most),
        definitions: Definitions::new(system.coefficients(), system.derived()),
        shorter: HashMap::new(),
        sums: HashMap::new(),
        owners: HashMap::new(),
    };
    let is_source = system.derived().is_empty();
    if search.counts.shared.len() < LEAST_SAVED || (is_source && !has_room_for_numbers(system)) {
        return None;
    }
    rows.iter().for_each(|row| search.sums_of(*row));
    let packs = search.packs();
    if search.sums.is_empty() && packs.is_empty() {
        return None;
    }
    search.finish(rows, &packs)
}

/// The parts of a cut, with sums and packs in place of shared wires where that saves slots. Without
/// any, they are those of [`parts`](super::parts()).
///
/// # Panics
/// If the cut is not one of this system.
pub fn derived_parts(
    system: &System,
    occurrences: &Occurrences,
    cut: &Cut,
    order: Order,
    most: u64,
) -> Parts {
    let rows = order.rows(system);
    match derive(system, occurrences, cut, &rows, most) {
        Some(found) => parts_in(&found.system, &found.occurrences, &found.cut, &found.rows(), most),
        None => parts_in(system, occurrences, cut, &rows, most),
    }
}

struct Search<'a> {
    system: &'a System,
    cut: &'a Cut,
    counts: Counts<'a>,
    /// The rows of each part, slots and the fixed ones included.
    sizes: Vec<i64>,
    most: i64,
    definitions: Definitions<'a>,
    /// The terms that rows lose, with the sum that comes in their place.
    shorter: HashMap<u32, Vec<(usize, u32, Vec<Term>)>>,
    /// The sums that are made for a row.
    sums: HashMap<u32, Vec<Sum>>,
    /// The parts that say that a shared wire is a bit.
    owners: HashMap<u32, Vec<u32>>,
}

impl Search<'_> {
    /// Finds sums that one wire can replace in a row of a part: their terms are over wires that the part has
    /// only there, and that another part has, too.
    fn sums_of(&mut self, row: u32) {
        let sides = self.system.row(row as usize);
        if sides.iter().all(|side| side.len() <= LEAST_SAVED / 2) {
            return;
        }
        // A definition has all its terms in one part.
        let number = self.system.number(row as usize);
        if !matches!(self.system.derived().row(number), Some(RowKind::Source(_))) {
            return;
        }
        let part = self.cut.part_of[row as usize];
        for (at, side) in sides.iter().enumerate() {
            let is_only_here = |term: &Term| {
                let others = (0..3).filter(|other| *other != at);
                let elsewhere = |other: usize| {
                    sides[other].binary_search_by_key(&term.wire, |t| t.wire).is_ok()
                };
                term.wire != 0 && !others.into_iter().any(elsewhere)
            };
            let mut candidates: Vec<Term> = Vec::new();
            for term in side.iter().filter(|term| self.counts.shared.contains_key(&term.wire)) {
                if is_only_here(term) && self.counts.get(self.cut, term.wire, part) == 1 {
                    candidates.push(*term);
                }
            }
            while candidates.len() > LEAST_SAVED / 2 - 1 {
                let Some(maker) = self.maker(&candidates, part) else { break };
                let is_known = |term: &&Term| self.counts.get(self.cut, term.wire, maker) > 0;
                let terms: Vec<Term> = candidates.iter().filter(is_known).copied().collect();
                candidates.retain(|term| !contains(&terms, term));
                self.make(row, at, part, maker, terms);
            }
        }
    }

    /// The slots that the part and the maker of a sum no longer have for one of its wires.
    fn saved(&self, wire: u32) -> usize {
        // A wire that a third part has, or the verifier, keeps its slot in the maker's part.
        let is_left = wire <= self.system.public() || self.counts.lambda(wire) > 2;
        if is_left { 1 } else { 2 }
    }

    /// The part that saves most slots if it makes a sum of what it knows of these terms; of several,
    /// the first.
    fn maker(&self, candidates: &[Term], part: u32) -> Option<u32> {
        // For each part the slots saved, and its own among them.
        let mut tally: BTreeMap<u32, [usize; 2]> = BTreeMap::new();
        for term in candidates {
            let Some(parts) = self.counts.shared.get(&term.wire) else { continue };
            if parts.len() > MANY {
                continue;
            }
            let saved = self.saved(term.wire);
            for (other, _) in parts.iter().filter(|(other, _)| *other != part) {
                let [all, own] = tally.entry(*other).or_default();
                (*all, *own) = (*all + saved, *own + saved - 1);
            }
        }
        let has_room = |(maker, [all, own]): &(u32, [usize; 2])| {
            let grows = 2 - signed(*own);
            *all >= LEAST_SAVED && (grows <= 0 || self.sizes[*maker as usize] + grows <= self.most)
        };
        let makers = tally.into_iter().filter(has_room);
        // Of equal savings, the part with the lowest number: the same partition on every machine.
        makers.min_by_key(|(part, [all, _])| (std::cmp::Reverse(*all), *part)).map(|(part, _)| part)
    }

    fn make(&mut self, row: u32, side: usize, part: u32, maker: u32, terms: Vec<Term>) {
        let wire = self.definitions.next();
        self.definitions.sum(terms.iter().map(|term| [term.coefficient, term.wire]));
        // The part gets a slot for the sum; the maker a slot and the row that defines it.
        self.sizes[part as usize] += 1;
        self.sizes[maker as usize] += 2;
        for term in &terms {
            self.sizes[part as usize] -= 1;
            self.sizes[maker as usize] -= i64::from(self.saved(term.wire) == 2);
            self.counts.moved(self.cut, term.wire, part, maker);
        }
        self.shorter.entry(row).or_default().push((side, wire, terms.clone()));
        self.sums.entry(row).or_default().push(Sum { wire, maker, terms });
    }

    /// Packs of bits that the same parts share.
    fn packs(&mut self) -> Vec<Pack> {
        let public = self.system.public();
        for row in 0..self.system.rows() {
            if let Some(wire) = bit_of_row(self.system, row)
                && self.counts.shared.contains_key(&wire)
            {
                self.owners.entry(wire).or_default().push(self.cut.part_of[row]);
            }
        }
        let mut groups: BTreeMap<Vec<u32>, Vec<u32>> = BTreeMap::new();
        let mut wires: Vec<u32> = self.counts.shared.keys().copied().collect();
        wires.sort_unstable();
        for wire in wires.into_iter().filter(|wire| *wire > public) {
            let parts: Vec<u32> = self.counts.shared[&wire].iter().map(|(part, _)| *part).collect();
            // Only wires that the source itself makes bits: a pack of other values would constrain what the
            // source leaves free (P9).
            if parts.len() <= MANY && self.owners.contains_key(&wire) {
                groups.entry(parts).or_default().push(wire);
            }
        }
        let mut packs = Vec::new();
        for (parts, bits) in groups {
            // About equal packs, of which none is too small.
            let count = bits.len().div_ceil(MOST_BITS);
            let bits =
                bits.chunks(bits.len().div_ceil(count)).filter(|bits| bits.len() >= LEAST_BITS);
            for bits in bits {
                self.pack(&parts, bits, &mut packs);
            }
        }
        packs
    }

    /// Reports whether a part says itself that a wire is a bit.
    fn owns(&self, part: u32, wire: u32) -> bool {
        self.owners.get(&wire).is_some_and(|parts| parts.contains(&part))
    }

    /// Packs bits, if that leaves room in all parts.
    fn pack(&mut self, parts: &[u32], bits: &[u32], packs: &mut Vec<Pack>) {
        let mut grow = Vec::with_capacity(parts.len());
        for part in parts {
            let missing = bits.iter().filter(|bit| !self.owns(*part, **bit)).count();
            // The row of the pack, its slot, and bits; slots go.
            let grows = 2 + signed(missing) - signed(bits.len());
            // All parts or none: a part without the pack would need slots for the bits, and with it the
            // others.
            if grows > 0 && self.sizes[*part as usize] + grows > self.most {
                return;
            }
            grow.push(grows);
        }
        parts.iter().zip(grow).for_each(|(part, grows)| self.sizes[*part as usize] += grows);
        let (wire, bits, parts) = (self.definitions.next(), bits.to_vec(), parts.to_vec());
        self.definitions.pack(bits.clone());
        packs.push(Pack { wire, bits, parts });
    }

    /// Writes the system anew: sums after the rows that they are made for, packs at the end.
    fn finish(self, rows: &[u32], packs: &[Pack]) -> Option<Derivation> {
        // Whether a part says that a wire is a bit, before the definitions are given away.
        let mut missing_bits: Vec<Vec<u32>> = Vec::new();
        for Pack { bits, parts, .. } in packs {
            for part in parts {
                let missing = bits.iter().filter(|bit| !self.owns(*part, **bit));
                missing_bits.push(missing.copied().collect());
            }
        }
        let constants = Constants::new(self.system);
        let Self { system, cut, definitions, mut shorter, mut sums, .. } = self;
        let mut out = system.without_rows(definitions.finish()?, &constants.more);
        let mut part_of = Vec::with_capacity(rows.len());
        let one = [constants.term(Fr::ONE, 0)];
        for row in rows {
            let (sides, number) = (system.row(*row as usize), system.number(*row as usize));
            match shorter.remove(row) {
                Some(sums) => {
                    let sides = shortened(sides, &sums, &constants);
                    out.push(number, sides.each_ref().map(Vec::as_slice));
                }
                None => out.push(number, sides),
            }
            part_of.push(cut.part_of[*row as usize]);
            for Sum { wire, maker, terms } in sums.remove(row).into_iter().flatten() {
                let number = out.derived().number(RowKind::Definition(wire));
                out.push(number, [&terms, &one, &[constants.term(Fr::ONE, wire)]]);
                part_of.push(maker);
            }
        }
        let mut bit_rows = missing_bits.into_iter();
        for Pack { wire, bits, parts } in packs {
            let weights = powers_of_two().zip(bits);
            let terms: Vec<Term> = weights.map(|(k, bit)| constants.term(k, *bit)).collect();
            let number = out.derived().number(RowKind::Definition(*wire));
            for part in parts {
                out.push(number, [&terms, &one, &[constants.term(Fr::ONE, *wire)]]);
                part_of.push(*part);
                for bit in bit_rows.next().expect("one list for each part of a pack") {
                    let a = constants.term(Fr::ONE, bit);
                    let b = [constants.term(-Fr::ONE, 0), a];
                    out.push(out.derived().number(RowKind::Bit(bit)), [&[a], &b, &[]]);
                    part_of.push(*part);
                }
            }
        }
        let occurrences = Occurrences::new(&out);
        let cut = Cut { part_of, parts: cut.parts };
        Some(Derivation { system: out, occurrences, cut })
    }
}

/// The sides of a row with sums in place of some terms.
fn shortened(
    sides: [&[Term]; 3],
    sums: &[(usize, u32, Vec<Term>)],
    constants: &Constants,
) -> [Vec<Term>; 3] {
    let mut shorter = sides.map(<[Term]>::to_vec);
    for (at, wire, terms) in sums {
        shorter[*at].retain(|term| !contains(terms, term));
        // Sums have larger numbers than all wires, and ascend.
        shorter[*at].push(constants.term(Fr::ONE, *wire));
    }
    shorter
}

/// Reports whether terms in ascending order of wires contain one.
fn contains(terms: &[Term], term: &Term) -> bool {
    terms.binary_search_by_key(&term.wire, |other| other.wire).is_ok()
}

/// The wire of which a row says that it is 0 or 1, and nothing else: (a w + a') (b w + b') - (c w + c')
/// is a multiple of w (w - 1).
pub(super) fn bit_of_row(system: &System, row: usize) -> Option<u32> {
    let sides = system.row(row);
    if sides.iter().any(|side| side.len() > 2) {
        return None;
    }
    let mut terms = sides.into_iter().flatten().filter(|term| term.wire != 0);
    let wire = terms.next()?.wire;
    if terms.any(|term| term.wire != wire) {
        return None;
    }
    let value = |side: &[Term], of: u32| {
        let term = side.iter().find(|term| term.wire == of);
        term.map_or(Fr::zero(), |term| system.coefficients()[term.coefficient as usize])
    };
    let [a, b, c] = sides.map(|side| [value(side, 0), value(side, wire)]);
    let square = a[1] * b[1];
    let linear = a[0] * b[1] + a[1] * b[0] - c[1];
    let is_bit = !square.is_zero() && linear == -square && a[0] * b[0] == c[0];
    is_bit.then_some(wire)
}
