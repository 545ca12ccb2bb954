//! Makes parts from a cut: the rows of each, with wires renamed, and equal parts as one type.

use super::{Cut, FIXED_ROWS, Occurrences, Order};
use crate::derived::Derived;
use crate::numbers::{count, limit};
use crate::system::{System, Term};
use hekaton_circuit::Fr;
use std::collections::HashMap;

/// The largest difference between the slots of equal parts, as a fraction of their rows: 2 in 100.
/// A slot that one of them has is a slot in all of them.
const UNEQUAL: [u64; 2] = [2, 100];

/// The access of a part to the wire in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Other parts read it here.
    Writes,
    /// Another part, or the verifier, writes it.
    Reads,
    /// The wire occurs in no other part.
    Unused,
}

/// Constraints over local variables: 0 is the constant 1, 1 to s are slots, own variables follow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// The numbers of terms in A, B and C of each row.
    pub lengths: Vec<[u32; 3]>,
    /// The coefficient's place in the table, and the local variable, of all terms.
    pub terms: Vec<[u32; 2]>,
    /// The table of coefficients.
    pub coefficients: Vec<Fr>,
}

impl Rows {
    /// The terms of A, B and C of each row: places of coefficients, and local variables.
    pub fn iter(&self) -> impl Iterator<Item = [&[[u32; 2]]; 3]> {
        let mut rest = self.terms.as_slice();
        self.lengths.iter().map(move |lengths| {
            lengths.map(|length| {
                let (side, after) = rest.split_at((length as usize).min(rest.len()));
                rest = after;
                side
            })
        })
    }
}

/// A type: what parts with equal constraints have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartType {
    /// The number of slots.
    pub slots: u32,
    /// The number of own variables.
    pub own: u32,
    /// The slots that no row has: public wires that occur in no constraint.
    pub unconstrained: Vec<u32>,
    /// The constraints.
    pub rows: Rows,
}

/// A part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its type.
    pub kind: u32,
    /// The wire of each local variable but the constant: slots, then own ones.
    pub wires: Vec<u32>,
    /// The number of each row, as [`Derived`] has it.
    pub rows: Vec<u32>,
    /// The access of the part to the wire in each slot.
    pub access: Vec<Access>,
}

/// A partition: types and parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The types, in the order of their first parts.
    pub types: Vec<PartType>,
    /// The parts.
    pub parts: Vec<Part>,
    /// The wires that are not those of the source.
    pub derived: Derived,
}

impl Parts {
    /// The rows of all parts, without those of slots.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|part| part.rows.len() as u64).sum()
    }

    /// The number of slots of all parts, unused ones included.
    pub fn slots(&self) -> u64 {
        self.parts.iter().map(|part| part.access.len() as u64).sum()
    }

    /// The rows of the largest part, slots and the fixed ones included.
    pub fn largest(&self) -> u64 {
        let size = |kind: &PartType| kind.rows.lengths.len() as u64 + u64::from(kind.slots);
        self.types.iter().map(size).max().map_or(FIXED_ROWS, |rows| rows + FIXED_ROWS)
    }

    /// The number of parts of each type.
    pub fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.types.len()];
        self.parts.iter().for_each(|part| counts[part.kind as usize] += 1);
        counts
    }
}

/// A part whose wires are numbered by their first occurrence, from 1.
struct Renamed {
    wires: Vec<u32>,
    rows: Vec<u32>,
    /// The numbers of terms per side, then coefficient and variable of each term, row by row.
    shape: Vec<u32>,
    /// `true` for each wire that occurs elsewhere, or is public.
    shared: Vec<bool>,
    /// The number of wires at the end that are in no row.
    extra: usize,
}

/// A type that is being collected.
struct Draft {
    shape: Vec<u32>,
    shared: Vec<bool>,
    extra: usize,
    rows: usize,
    parts: Vec<u32>,
}

/// Makes the parts of a cut, with rows in this order. No part that had at most `most` rows, slots
/// included, exceeds that.
///
/// # Panics
/// If the cut is not one of this system.
pub fn parts(
    system: &System,
    occurrences: &Occurrences,
    cut: &Cut,
    order: Order,
    most: u64,
) -> Parts {
    parts_in(system, occurrences, cut, &order.rows(system), most)
}

/// Makes the parts of a cut, with rows in this order.
pub(super) fn parts_in(
    system: &System,
    occurrences: &Occurrences,
    cut: &Cut,
    rows: &[u32],
    most: u64,
) -> Parts {
    let mut rows_of: Vec<Vec<u32>> = vec![Vec::new(); cut.parts as usize];
    for row in rows {
        rows_of[cut.part_of[*row as usize] as usize].push(*row);
    }
    let shared = shared_wires(system, occurrences, cut);
    let all_unread = unread_public(system, occurrences);
    let mut unread = all_unread.as_slice();
    let shares = cut.cost(system, occurrences).unread;
    let mut renamer = Renamer { local: vec![0; system.wires() as usize] };
    let mut drafts = Drafts::default();
    let mut renamed = Vec::with_capacity(rows_of.len());
    for ((number, rows), share) in (0u32..).zip(&rows_of).zip(shares) {
        let (extra, rest) = unread.split_at(limit(share).min(unread.len()));
        unread = rest;
        let part = renamer.rename(system, rows, extra, &shared);
        drafts.add(number, &part, most);
        renamed.push(part);
    }
    // Slots are known only now: a type has a slot for each wire that any of its parts shares.
    let mut kinds = vec![0; renamed.len()];
    for (kind, draft) in (0u32..).zip(&drafts.list) {
        draft.parts.iter().for_each(|part| kinds[*part as usize] = kind);
    }
    let mut written = vec![false; system.wires() as usize];
    let finish = |(part, kind): (Renamed, u32)| {
        part.finish(kind, &drafts.list[kind as usize], system.public(), &mut written)
    };
    let parts = renamed.into_iter().zip(kinds).map(finish).collect();
    let types = drafts.list.into_iter().map(|draft| draft.finish(system)).collect();
    Parts { types, parts, derived: system.derived().clone() }
}

/// Determines which wires are shared: public, or in several parts and not packed.
fn shared_wires(system: &System, occurrences: &Occurrences, cut: &Cut) -> Vec<bool> {
    let packed = system.derived().packed();
    let is_shared = |wire: u32| {
        if packed.contains(&wire) {
            return false;
        }
        let mut parts = occurrences.rows(wire).iter().map(|row| cut.part_of[*row as usize]);
        let first = parts.next();
        wire <= system.public() || parts.any(|part| Some(part) != first)
    };
    (0..system.wires()).map(|wire| wire > 0 && is_shared(wire)).collect()
}

/// The public wires that occur in no row.
fn unread_public(system: &System, occurrences: &Occurrences) -> Vec<u32> {
    (1..=system.public()).filter(|wire| occurrences.rows(*wire).is_empty()).collect()
}

/// The place of each variable, from 0, if slots come first: in the order of their first occurrence,
/// as own variables are.
fn places(is_slot: &[bool]) -> Vec<u32> {
    let slots = is_slot.iter().filter(|slot| **slot).count();
    let (mut slot, mut own) = (0u32, count(slots));
    let mut next = |is_slot: bool| {
        let place = if is_slot { &mut slot } else { &mut own };
        *place += 1;
        *place - 1
    };
    is_slot.iter().map(|is_slot| next(*is_slot)).collect()
}

/// Numbers the wires of a part.
struct Renamer {
    /// The number of each wire in the part at hand, 0 for none; all 0 in between.
    local: Vec<u32>,
}

impl Renamer {
    fn rename(&mut self, system: &System, rows: &[u32], extra: &[u32], shared: &[bool]) -> Renamed {
        let mut wires: Vec<u32> = Vec::new();
        let mut shape = Vec::new();
        let mut known: Vec<(u32, u32)> = Vec::new();
        for row in rows {
            let sides = system.row(*row as usize);
            shape.extend(sides.map(|side| count(side.len())));
            for side in sides {
                // Known wires by number, then new ones by coefficient, then by place: the order of
                // wires in the source plays no role for known ones.
                let is_known = |term: &&Term| term.wire == 0 || self.local[term.wire as usize] > 0;
                known.clear();
                known.extend(
                    side.iter()
                        .filter(is_known)
                        .map(|term| (self.local[term.wire as usize], term.coefficient)),
                );
                known.sort_unstable();
                let mut new: Vec<&Term> = side.iter().filter(|term| !is_known(term)).collect();
                // By place only where coefficients are equal: components of one template, over other wires,
                // then get equal numbers.
                new.sort_by_key(|term| term.coefficient);
                for (local, coefficient) in &known {
                    shape.extend([*coefficient, *local]);
                }
                for term in new {
                    wires.push(term.wire);
                    let local = count(wires.len());
                    self.local[term.wire as usize] = local;
                    shape.extend([term.coefficient, local]);
                }
            }
        }
        wires.extend_from_slice(extra);
        // Cleared by the wires of the part: clearing the whole list would make many parts quadratic.
        wires.iter().for_each(|wire| self.local[*wire as usize] = 0);
        let numbers = rows.iter().map(|row| system.number(*row as usize)).collect();
        let is_shared = wires.iter().map(|wire| shared[*wire as usize]).collect();
        Renamed { wires, rows: numbers, shape, shared: is_shared, extra: extra.len() }
    }
}

/// The types that are being collected.
#[derive(Default)]
struct Drafts {
    list: Vec<Draft>,
    /// The places in the list by the digest of the shape: comparing each part with each type takes too long.
    by_shape: HashMap<[u8; 32], Vec<usize>>,
}

impl Drafts {
    /// Adds a part to the first type that takes it, or as a new type.
    fn add(&mut self, number: u32, part: &Renamed, most: u64) {
        let Self { list, by_shape } = self;
        let candidates = by_shape.entry(part.digest()).or_default();
        match candidates.iter().copied().find(|at| list[*at].takes(part, most)) {
            Some(at) => {
                let draft = &mut list[at];
                draft.shared.iter_mut().zip(&part.shared).for_each(|(all, one)| *all |= one);
                draft.parts.push(number);
            }
            None => {
                candidates.push(list.len());
                list.push(Draft {
                    shape: part.shape.clone(),
                    shared: part.shared.clone(),
                    extra: part.extra,
                    rows: part.rows.len(),
                    parts: vec![number],
                });
            }
        }
    }
}

impl Renamed {
    /// The part as one of a type, with its slots first. `written` has the wires that earlier parts write.
    fn finish(self, kind: u32, draft: &Draft, public: u32, written: &mut [bool]) -> Part {
        let Self { wires, rows, shared, .. } = self;
        let places = places(&draft.shared);
        let mut sorted = vec![0; wires.len()];
        let mut access = vec![Access::Unused; draft.slots()];
        for ((wire, place), shared) in wires.iter().zip(&places).zip(&shared) {
            sorted[*place as usize] = *wire;
            if *shared {
                // The verifier writes public wires, the first part all others.
                let is_first = !std::mem::replace(&mut written[*wire as usize], true);
                let writes = is_first && *wire > public;
                access[*place as usize] = if writes { Access::Writes } else { Access::Reads };
            }
        }
        Part { kind, wires: sorted, rows, access }
    }

    fn digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut bytes = Vec::with_capacity(1 << 14);
        for piece in self.shape.chunks(1 << 12) {
            bytes.clear();
            piece.iter().for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
            // In pieces, so that a shape is not copied as a whole.
            hasher.update(&bytes);
        }
        *hasher.finalize().as_bytes()
    }
}

impl Draft {
    /// Reports whether a part has the same rows, and the union of slots costs little.
    fn takes(&self, part: &Renamed, most: u64) -> bool {
        // Equality is what counts, and not the digest.
        if self.shape != part.shape || self.extra != part.extra {
            return false;
        }
        let slots = |shared: &[bool]| shared.iter().filter(|slot| **slot).count() as u64;
        let both = self.shared.iter().zip(&part.shared).filter(|(a, b)| **a || **b).count() as u64;
        // Merging two parts gives both all slots of either; each costs a row in every part of the type.
        let fewest = slots(&self.shared).min(slots(&part.shared));
        let rows = self.rows as u64;
        rows + both + FIXED_ROWS <= most && (both - fewest) * UNEQUAL[1] <= rows * UNEQUAL[0]
    }

    fn slots(&self) -> usize {
        self.shared.iter().filter(|slot| **slot).count()
    }

    fn finish(self, system: &System) -> PartType {
        let places = places(&self.shared);
        let (slots, all) = (self.slots(), self.shared.len());
        let mut rows = Rows::default();
        let mut ids: HashMap<u32, u32> = HashMap::new();
        let mut words = self.shape.as_slice();
        while let [a, b, c, rest @ ..] = words {
            rows.lengths.push([*a, *b, *c]);
            words = rest;
            for length in [*a, *b, *c] {
                let (terms, rest) = words.split_at(2 * length as usize);
                let from = rows.terms.len();
                for term in terms.as_chunks::<2>().0 {
                    let [coefficient, local] = *term;
                    let next = count(ids.len());
                    let id = *ids.entry(coefficient).or_insert(next);
                    if id == next && rows.coefficients.len() < ids.len() {
                        rows.coefficients.push(system.coefficients()[coefficient as usize]);
                    }
                    let variable = match local.checked_sub(1) {
                        None => 0,
                        Some(at) => places[at as usize] + 1,
                    };
                    rows.terms.push([id, variable]);
                }
                // Numbers by first occurrence are not ascending once slots come first.
                rows.terms[from..].sort_unstable_by_key(|[_, local]| *local);
                words = rest;
            }
        }
        // What is in no row came last.
        let last = |at: &usize| *at >= all - self.extra;
        let unconstrained = (0..all).filter(last).map(|at| places[at]).collect();
        PartType { slots: count(slots), own: count(all - slots), unconstrained, rows }
    }
}
