//! Moves rows to other parts where that makes fewer occurrences.

use super::occurrences::{Occurrences, wires_of};
use super::{Cut, FIXED_ROWS};
use crate::numbers::{count, signed};
use crate::system::System;
use std::collections::HashMap;

/// The most passes over all rows.
const PASSES: usize = 10;
/// Wires in more parts than this suggest no parts to move to: they are in nearly all of them.
const MANY: usize = 64;

/// The parts in which wires are, and how often. A wire in one part needs no entry: it is where its
/// first row is, as often as it has rows.
pub(super) struct Counts<'a> {
    occurrences: &'a Occurrences,
    /// The parts of wires in several parts, in ascending order, with the number of rows.
    pub(super) shared: HashMap<u32, Vec<(u32, u32)>>,
}

impl<'a> Counts<'a> {
    pub(super) fn new(cut: &Cut, system: &System, occurrences: &'a Occurrences) -> Self {
        let mut shared = HashMap::new();
        let mut parts = Vec::new();
        for wire in 1..system.wires() {
            let mut of_rows = occurrences.rows(wire).iter().map(|row| cut.part_of[*row as usize]);
            let first = of_rows.next();
            // Most wires are in one part; the map has only those that cost something.
            if of_rows.all(|part| Some(part) == first) {
                continue;
            }
            parts.clear();
            parts.extend(occurrences.rows(wire).iter().map(|row| cut.part_of[*row as usize]));
            parts.sort_unstable();
            let counted = |same: &[u32]| (same[0], count(same.len()));
            shared.insert(wire, parts.chunk_by(|a, b| a == b).map(counted).collect());
        }
        Self { occurrences, shared }
    }

    /// Returns `true` for each row with a wire that is in several parts, but not in nearly all.
    fn rows(&self, system: &System) -> Vec<bool> {
        let mut rows = vec![false; system.rows()];
        let shared = self.shared.iter().filter(|(_, parts)| parts.len() <= MANY);
        let all = shared.flat_map(|(wire, _)| self.occurrences.rows(*wire));
        all.for_each(|row| rows[*row as usize] = true);
        rows
    }

    /// The number of rows of a wire in a part.
    pub(super) fn get(&self, cut: &Cut, wire: u32, part: u32) -> u32 {
        match self.shared.get(&wire) {
            Some(parts) => rows_in(parts, part).unwrap_or(0),
            None => {
                let rows = self.occurrences.rows(wire);
                let is_there = rows.first().is_some_and(|row| cut.part_of[*row as usize] == part);
                if is_there { count(rows.len()) } else { 0 }
            }
        }
    }

    /// The number of parts of a wire that occurs.
    pub(super) fn lambda(&self, wire: u32) -> usize {
        self.shared.get(&wire).map_or(1, Vec::len)
    }

    /// Moves a row of a wire. The cut is as it was before.
    pub(super) fn moved(&mut self, cut: &Cut, wire: u32, from: u32, to: u32) {
        let mut parts = match self.shared.remove(&wire) {
            Some(parts) => parts,
            None => vec![(from, self.get(cut, wire, from))],
        };
        if let Ok(at) = parts.binary_search_by_key(&from, |(part, _)| *part) {
            parts[at].1 -= 1;
            if parts[at].1 == 0 {
                parts.remove(at);
            }
        }
        match parts.binary_search_by_key(&to, |(part, _)| *part) {
            Ok(at) => parts[at].1 += 1,
            Err(at) => parts.insert(at, (to, 1)),
        }
        if parts.len() > 1 {
            self.shared.insert(wire, parts);
        }
    }
}

/// The number of rows in a part, if there are any.
fn rows_in(parts: &[(u32, u32)], part: u32) -> Option<u32> {
    let at = parts.binary_search_by_key(&part, |(part, _)| *part).ok()?;
    Some(parts[at].1)
}

/// The effect of moving a row: the change in the number of slots of the part that it leaves, and of
/// the one that it enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    from: i64,
    to: i64,
}

impl Change {
    /// Returns the effect of moving a row for one of its wires, which is in `lambda` parts, among them
    /// `from`, where it may be in this row only, and perhaps `to`.
    fn of_wire(is_public: bool, lambda: usize, only_here: bool, is_there: bool) -> Self {
        // Parts in which the wire is once the row has moved.
        let after = lambda + usize::from(!is_there) - usize::from(only_here);
        let is_slot = |lambda: usize| is_public || lambda > 1;
        // Both parts before, and both after: a wire in one part costs nothing there.
        let has = |present: bool, lambda: usize| i64::from(present && is_slot(lambda));
        let from = has(!only_here, after) - has(true, lambda);
        let to = has(true, after) - has(is_there, lambda);
        Self { from, to }
    }

    /// Both changes.
    const fn and(self, other: Self) -> Self {
        Self { from: self.from + other.from, to: self.to + other.to }
    }
}

/// Moves rows to parts in which one of their wires occurs, in at most ten passes, while this reduces the
/// occurrences of shared wires. A row moves alone, or together with the rows that constrain one of its wires
/// alone: a row that adds up bits, for example, with the rows of these bits. No part that had at most `most`
/// rows, slots included, exceeds that. Returns how many moves were made.
pub fn improve(cut: &mut Cut, system: &System, occurrences: &Occurrences, most: u64) -> usize {
    let counts = Counts::new(cut, system, occurrences);
    let cost = cut.cost(system, occurrences);
    let size =
        |(rows, slots): (&u64, &u64)| 0i64.saturating_add_unsigned(rows + slots + FIXED_ROWS);
    let sizes = cost.rows.iter().zip(&cost.slots).map(size).collect();
    let room = 0i64.saturating_add_unsigned(most);
    let mut moves = Moves { cut, counts, sizes, most: room, public: system.public() };
    let alone = rows_alone(system);
    let mut nearby = moves.counts.rows(system);
    let mut moved = 0;
    let (mut wires, mut unit, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PASSES {
        let before = moved;
        for row in 0..system.rows() {
            if !nearby[row] {
                continue;
            }
            wires_of(system, row, &mut wires);
            parts_nearby(&wires, &moves.counts, &mut targets);
            if targets.is_empty() {
                continue;
            }
            unit.clear();
            unit.extend(wires.iter().map(|wire| (*wire, None)));
            let until_now = moved;
            moved += usize::from(moves.try_move(row, &unit, &targets));
            let from = moves.cut.part_of[row];
            // A row that says what its wire may be costs a slot where it stays, so it moves with the row
            // that uses the wire.
            for (wire, with) in &mut unit {
                let other = alone[*wire as usize] as usize;
                let is_here = moves.cut.part_of.get(other).is_some_and(|part| *part == from);
                *with = (other != row && is_here).then_some(other);
            }
            if unit.iter().any(|(_, with)| with.is_some()) {
                moved += usize::from(moves.try_move(row, &unit, &targets));
            }
            if moved > until_now {
                // Wires that were in one part may now be in two.
                let rows = wires.iter().flat_map(|wire| occurrences.rows(*wire).iter().take(MANY));
                rows.for_each(|row| nearby[*row as usize] = true);
            }
        }
        if moved == before {
            break;
        }
    }
    moved
}

/// Returns for each wire the first row that has no other wire; `u32::MAX` if there is no such row.
fn rows_alone(system: &System) -> Vec<u32> {
    let mut alone = vec![u32::MAX; system.wires() as usize];
    for (row, number) in (0..system.rows()).zip(0u32..) {
        let terms = system.row(row).into_iter().flatten();
        let mut wires = terms.map(|term| term.wire).filter(|wire| *wire != 0);
        if let Some(wire) = wires.next()
            && wires.all(|other| other == wire)
        {
            let first = &mut alone[wire as usize];
            *first = number.min(*first);
        }
    }
    alone
}

/// A cut that is being improved.
struct Moves<'a> {
    cut: &'a mut Cut,
    counts: Counts<'a>,
    /// The rows of each part, slots included.
    sizes: Vec<i64>,
    most: i64,
    /// The number of public wires.
    public: u32,
}

impl Moves<'_> {
    /// Moves a row to the one of these parts where that gains most, if it gains. `unit` are its wires,
    /// and rows of the same part that have no wire but this one and move with it. Returns whether it
    /// moved.
    fn try_move(&mut self, row: usize, unit: &[(u32, Option<usize>)], targets: &[u32]) -> bool {
        let Self { cut, counts, sizes, most, public } = self;
        let from = cut.part_of[row];
        // Wires that are in this part only cost the same wherever the row goes.
        let mut local = Change::default();
        let mut shared = Vec::with_capacity(unit.len());
        for (wire, with) in unit {
            let (is_public, moving) = (wire <= public, 1 + usize::from(with.is_some()));
            match counts.shared.get(wire) {
                Some(parts) => {
                    let rows = rows_in(parts, from);
                    let only_here = rows.is_some_and(|rows| rows as usize == moving);
                    shared.push((is_public, only_here, parts));
                }
                None => {
                    let only_here = counts.occurrences.rows(*wire).len() == moving;
                    local = local.and(Change::of_wire(is_public, 1, only_here, false));
                }
            }
        }
        let change = |to: u32| {
            let all = shared.iter().map(|(is_public, only_here, parts)| {
                let is_there = rows_in(parts, to).is_some();
                Change::of_wire(*is_public, parts.len(), *only_here, is_there)
            });
            all.fold(local, Change::and)
        };
        let rows = 1 + unit.iter().filter(|(_, with)| with.is_some()).count();
        let by = signed(rows);
        // The part with the largest gain that has room; of several, the first.
        let mut best: Option<(Change, u32)> = None;
        for to in targets.iter().copied().filter(|to| *to != from) {
            let change = change(to);
            // Only moves that gain: a move back and forth with equal cost would not end.
            let gain = |change: &Change| -change.from - change.to;
            let grows = |part: u32, by: i64| by <= 0 || sizes[part as usize] + by <= *most;
            let fits = grows(to, change.to + by) && grows(from, change.from - by);
            let is_better = best.is_none_or(|(other, _)| gain(&change) > gain(&other));
            if fits && gain(&change) > 0 && is_better {
                best = Some((change, to));
            }
        }
        let Some((change, to)) = best else { return false };
        for (wire, with) in unit {
            counts.moved(cut, *wire, from, to);
            if with.is_some() {
                counts.moved(cut, *wire, from, to);
            }
        }
        let others = unit.iter().filter_map(|(_, with)| *with);
        others.for_each(|other| cut.part_of[other] = to);
        sizes[from as usize] += change.from - by;
        sizes[to as usize] += change.to + by;
        cut.part_of[row] = to;
        true
    }
}

/// The parts that have one of these wires, if it is shared: others cannot gain. In ascending order.
fn parts_nearby(wires: &[u32], counts: &Counts<'_>, out: &mut Vec<u32>) {
    out.clear();
    let shared = wires.iter().filter_map(|wire| counts.shared.get(wire));
    let few = shared.filter(|parts| parts.len() <= MANY);
    out.extend(few.flatten().map(|(part, _)| *part));
    out.sort_unstable();
    out.dedup();
}
