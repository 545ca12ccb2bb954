//! Moves single rows to other parts where that makes fewer occurrences.

use super::occurrences::{Occurrences, wires_of};
use super::{Cut, FIXED_ROWS};
use crate::system::System;
use std::collections::HashMap;

/// The most passes over all rows.
const PASSES: usize = 10;
/// Wires in more parts than this suggest no parts to move to: they are in nearly all of them.
const MANY: usize = 64;

/// In which parts the wires are, and how often. A wire in one part needs no entry: it is where its
/// first row is, as often as it has rows.
pub(super) struct Counts<'a> {
    occurrences: &'a Occurrences,
    /// For wires in several parts, these in ascending order, with the number of rows.
    pub(super) shared: HashMap<u32, Vec<(u32, u32)>>,
}

impl<'a> Counts<'a> {
    pub(super) fn new(cut: &Cut, system: &System, occurrences: &'a Occurrences) -> Self {
        let mut shared = HashMap::new();
        let mut parts = Vec::new();
        for wire in 1..system.wires() {
            parts.clear();
            parts.extend(occurrences.rows(wire).iter().map(|row| cut.part_of[*row as usize]));
            if parts.iter().all(|part| *part == parts[0]) {
                continue;
            }
            parts.sort_unstable();
            let count = |same: &[u32]| (same[0], u32::try_from(same.len()).unwrap_or(u32::MAX));
            shared.insert(wire, parts.chunk_by(|a, b| a == b).map(count).collect());
        }
        Self { occurrences, shared }
    }

    /// The number of rows of a wire in a part.
    pub(super) fn get(&self, cut: &Cut, wire: u32, part: u32) -> u32 {
        match self.shared.get(&wire) {
            Some(parts) => {
                let at = parts.binary_search_by_key(&part, |(part, _)| *part);
                at.map_or(0, |at| parts[at].1)
            }
            None => {
                let rows = self.occurrences.rows(wire);
                let is_there = rows.first().is_some_and(|row| cut.part_of[*row as usize] == part);
                if is_there { u32::try_from(rows.len()).unwrap_or(u32::MAX) } else { 0 }
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

/// What moving a row changes: the number of slots of the part that it leaves, and of the one that it
/// enters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Change {
    from: i64,
    to: i64,
}

impl Change {
    /// What moving a row changes for one of its wires, which is in `lambda` parts, among them `from`,
    /// where it may be in this row only, and perhaps `to`.
    fn of_wire(is_public: bool, lambda: usize, only_here: bool, is_there: bool) -> Self {
        let after = lambda + usize::from(!is_there) - usize::from(only_here);
        let is_slot = |lambda: usize| is_public || lambda > 1;
        // Both parts before, and both after: a wire in one part costs nothing there.
        let has = |present: bool, lambda: usize| i64::from(present && is_slot(lambda));
        let from = has(!only_here, after) - has(true, lambda);
        let to = has(true, after) - has(is_there, lambda);
        Self { from, to }
    }
}

/// Moves single rows while that makes fewer occurrences of shared wires, in at most ten passes, to
/// parts in which one of their wires occurs. No part exceeds `most` rows, slots included, that did
/// not before. Returns how many moves were made.
pub fn improve(cut: &mut Cut, system: &System, occurrences: &Occurrences, most: u64) -> usize {
    let mut counts = Counts::new(cut, system, occurrences);
    let cost = cut.cost(system, occurrences);
    let sizes = cost.rows.iter().zip(&cost.slots).map(|(rows, slots)| rows + slots + FIXED_ROWS);
    let mut sizes: Vec<i64> = sizes.map(|size| i64::try_from(size).unwrap_or(i64::MAX)).collect();
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut moved = 0;
    let (mut wires, mut targets) = (Vec::new(), Vec::new());
    for _ in 0..PASSES {
        let before = moved;
        for row in 0..system.rows() {
            let from = cut.part_of[row];
            wires_of(system, row, &mut wires);
            parts_nearby(&wires, &counts, &mut targets);
            let change = |to: u32| {
                let all = wires.iter().map(|wire| {
                    let only_here = counts.get(cut, *wire, from) == 1;
                    let is_there = counts.get(cut, *wire, to) > 0;
                    let is_public = *wire <= system.public();
                    Change::of_wire(is_public, counts.lambda(*wire), only_here, is_there)
                });
                all.fold(Change::default(), |sum, change| Change {
                    from: sum.from + change.from,
                    to: sum.to + change.to,
                })
            };
            // The part with the largest gain that has room; of several, the first.
            let mut best: Option<(Change, u32)> = None;
            for to in targets.iter().copied().filter(|to| *to != from) {
                let change = change(to);
                let gain = |change: &Change| -change.from - change.to;
                let grows = |part: u32, by: i64| by <= 0 || sizes[part as usize] + by <= most;
                let fits = grows(to, change.to + 1) && grows(from, change.from - 1);
                let is_better = best.is_none_or(|(other, _)| gain(&change) > gain(&other));
                if fits && gain(&change) > 0 && is_better {
                    best = Some((change, to));
                }
            }
            let Some((change, to)) = best else { continue };
            wires.iter().for_each(|wire| counts.moved(cut, *wire, from, to));
            sizes[from as usize] += change.from - 1;
            sizes[to as usize] += change.to + 1;
            cut.part_of[row] = to;
            moved += 1;
        }
        if moved == before {
            break;
        }
    }
    moved
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
