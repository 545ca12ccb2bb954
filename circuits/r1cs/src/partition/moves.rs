//! Moves single rows to other parts where that makes fewer occurrences.

use super::occurrences::{Occurrences, wires_of};
use super::{Cut, FIXED_ROWS};
use crate::system::System;
use std::collections::HashMap;

/// The most passes over all rows.
const PASSES: usize = 10;

/// How often each wire occurs in each part, for wires that occur in several rows.
struct Counts {
    /// By wire and part.
    in_part: HashMap<(u32, u32), u32>,
    /// The number of parts of each wire.
    lambda: Vec<u32>,
}

impl Counts {
    fn new(cut: &Cut, system: &System, occurrences: &Occurrences) -> Self {
        let mut in_part: HashMap<(u32, u32), u32> = HashMap::new();
        let mut lambda = vec![0; system.wires() as usize];
        for wire in 1..system.wires() {
            for row in occurrences.rows(wire) {
                let count = in_part.entry((wire, cut.part_of[*row as usize])).or_default();
                *count += 1;
                lambda[wire as usize] += u32::from(*count == 1);
            }
        }
        Self { in_part, lambda }
    }

    fn get(&self, wire: u32, part: u32) -> u32 {
        self.in_part.get(&(wire, part)).copied().unwrap_or_default()
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
    /// where it may be in this row only, and perhaps `to`. Returns the number of its parts after it,
    /// too.
    fn of_wire(is_public: bool, lambda: u32, only_here: bool, is_there: bool) -> (Self, u32) {
        let after = lambda + u32::from(!is_there) - u32::from(only_here);
        let is_slot = |lambda: u32| is_public || lambda > 1;
        // Both parts before, and both after: a wire in one part costs nothing there.
        let has = |present: bool, lambda: u32| i64::from(present && is_slot(lambda));
        let from = has(!only_here, after) - has(true, lambda);
        let to = has(true, after) - has(is_there, lambda);
        (Self { from, to }, after)
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
            parts_nearby(&wires, &counts, cut, occurrences, &mut targets);
            let change_of = |wire: u32, to: u32, counts: &Counts| {
                let (only_here, is_there) = (counts.get(wire, from) == 1, counts.get(wire, to) > 0);
                let lambda = counts.lambda[wire as usize];
                Change::of_wire(wire <= system.public(), lambda, only_here, is_there)
            };
            let change = |to: u32| {
                let all = wires.iter().map(|wire| change_of(*wire, to, &counts).0);
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
            for wire in &wires {
                counts.lambda[*wire as usize] = change_of(*wire, to, &counts).1;
                match counts.in_part.get_mut(&(*wire, from)) {
                    Some(count) if *count > 1 => *count -= 1,
                    _ => drop(counts.in_part.remove(&(*wire, from))),
                }
                *counts.in_part.entry((*wire, to)).or_default() += 1;
            }
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
fn parts_nearby(
    wires: &[u32],
    counts: &Counts,
    cut: &Cut,
    occurrences: &Occurrences,
    out: &mut Vec<u32>,
) {
    out.clear();
    for wire in wires.iter().filter(|wire| counts.lambda[**wire as usize] > 1) {
        for row in occurrences.rows(*wire) {
            let part = cut.part_of[*row as usize];
            if !out.contains(&part) {
                out.push(part);
            }
        }
    }
    out.sort_unstable();
}
