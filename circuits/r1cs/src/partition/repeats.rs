//! Rows that repeat: circuits with loops or equal components repeat the same constraints over other wires.
//! Parts that begin at the same place of such a period are equal, and share a key.

use super::contiguous::{Filler, at_boundaries, segment};
use super::graph::{assignment, less};
use super::order::Line;
use super::{Cut, FIXED_ROWS, Occurrences};
use crate::numbers::limit;
use crate::system::System;
use std::collections::HashMap;
use std::ops::Range;

/// The numbers of rows that are compared when periods are looked for: short periods repeat within
/// long ones.
const WINDOWS: [usize; 3] = [64, 1024, 8192];
/// One window in this many is looked up, chosen by its content.
const SAMPLED: u64 = 8;
/// The periods with the most votes for each window that are tried.
const TRIED: usize = 3;
/// The least number of repeats that count.
const LEAST: usize = 4;

/// Rows from `start` to `end` of an order that repeat with a period: row i has the shape of row
/// i + period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    start: usize,
    end: usize,
    period: usize,
}

impl Run {
    fn pieces(self) -> usize {
        (self.end - self.start) / self.period
    }
}

/// Spreads the bits of a number.
fn mix(value: u64) -> u64 {
    let round = |bits: u64| (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    round(round(value))
}

/// The shape of each row: what its coefficients are, and not its wires. Rows of one shape can still
/// differ; whether parts are equal is decided by comparing them.
fn shapes(rows: &[u32], system: &System) -> Vec<u64> {
    let shape = |row: &u32| {
        system.row(*row as usize).iter().fold(0u64, |all, side| {
            // A sum does not depend on the order of wires.
            let sum = side.iter().fold(side.len() as u64, |sum, term| {
                let is_constant = u64::from(term.wire == 0);
                sum.wrapping_add(mix((u64::from(term.coefficient) << 1 | is_constant) + 1))
            });
            mix(all.wrapping_mul(3).wrapping_add(sum))
        })
    };
    rows.iter().map(shape).collect()
}

/// Distances at which windows of this many shapes occur again, those that occur most often first.
fn distances(shapes: &[u64], window: usize) -> Vec<usize> {
    const BASE: u64 = 0x9e37_79b9_7f4a_7c15;
    if shapes.len() < 2 * window {
        return Vec::new();
    }
    let leaving = (0..window).fold(1u64, |power, _| power.wrapping_mul(BASE));
    let mut last: HashMap<u64, usize> = HashMap::new();
    let mut votes: HashMap<usize, u64> = HashMap::new();
    let mut hash = 0u64;
    for (at, shape) in shapes.iter().enumerate() {
        hash = hash.wrapping_mul(BASE).wrapping_add(*shape);
        if at >= window {
            // A rolling hash: the window's oldest shape leaves, so each position costs the same whatever
            // the window is.
            hash = hash.wrapping_sub(shapes[at - window].wrapping_mul(leaving));
        }
        if at + 1 >= window
            // Chosen by content and not by position: equal windows are then chosen together.
            && mix(hash).is_multiple_of(SAMPLED)
            && let Some(before) = last.insert(hash, at)
        {
            *votes.entry(at - before).or_default() += 1;
        }
    }
    let mut ranked: Vec<(usize, u64)> = votes.into_iter().collect();
    // Of equal votes, the shorter one: the same on every machine.
    ranked.sort_unstable_by_key(|(distance, votes)| (std::cmp::Reverse(*votes), *distance));
    ranked.into_iter().map(|(distance, _)| distance).take(TRIED).collect()
}

/// The runs with a period that are at least `least` rows long.
fn runs(shapes: &[u64], period: usize, least: usize) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut start = 0;
    for at in 0..=shapes.len().saturating_sub(period) {
        let repeats = at + period < shapes.len() && shapes[at] == shapes[at + period];
        if repeats {
            continue;
        }
        let run = Run { start, end: (at + period).min(shapes.len()), period };
        if run.pieces() >= LEAST && run.end - run.start >= least {
            runs.push(run);
        }
        // The next run begins after what this one has.
        start = at + 1;
    }
    // Runs of one period may overlap by less than a period.
    for i in 1..runs.len() {
        let end = runs[i - 1].end;
        let run: &mut Run = &mut runs[i];
        run.start = run.start.max(end);
    }
    runs.retain(|run| run.start < run.end && run.pieces() >= LEAST);
    runs
}

/// The repeats along an order of rows.
#[derive(Debug)]
pub(super) struct Repeats {
    shapes: Vec<u64>,
    periods: Vec<usize>,
}

impl Repeats {
    /// Looks for periods.
    pub(super) fn new(line: &Line<'_>) -> Self {
        let shapes = shapes(&line.rows, line.system);
        let mut periods: Vec<usize> =
            WINDOWS.iter().flat_map(|window| distances(&shapes, *window)).collect();
        periods.sort_unstable();
        periods.dedup();
        Self { shapes, periods }
    }

    /// Cuts of rows that repeat, with boundaries at the same places of each period; the rest is cut as
    /// [`contiguous`](super::contiguous) does it. The cuts for different periods, in no order; empty if
    /// nothing repeats. Each has at most `most` rows per part, slots included.
    pub(super) fn cuts(&self, line: &Line<'_>, occurrences: &Occurrences, most: u64) -> Vec<Cut> {
        let room = limit(most.saturating_sub(FIXED_ROWS)).max(1);
        // A run shorter than two parts has no two parts that could be equal.
        let least = 2 * room.min(self.shapes.len() / 4);
        let found = self.periods.iter().map(|period| runs(&self.shapes, *period, least));
        found.filter_map(|runs| fitting(line, occurrences, &runs, room, most)).collect()
    }

    /// The shapes of all rows of each part, as one number: equal parts have the same.
    pub(super) fn kinds(&self, line: &Line<'_>, cut: &Cut) -> Vec<u64> {
        let mut kinds = vec![0u64; cut.parts as usize];
        for (row, shape) in line.rows.iter().zip(&self.shapes) {
            let kind = &mut kinds[cut.part_of[*row as usize] as usize];
            *kind = mix(kind.wrapping_add(*shape));
        }
        kinds
    }
}

/// The cut along runs with the largest parts that fit.
fn fitting(
    line: &Line<'_>,
    occurrences: &Occurrences,
    runs: &[Run],
    mut room: usize,
    most: u64,
) -> Option<Cut> {
    if runs.is_empty() {
        return None;
    }
    let Line { system, rows, live, .. } = line;
    let mut filler = Filler::new(line);
    // Slots take room, too: less and less for constraints, until all parts fit.
    for _ in 0..6 {
        let rest = |range| filler.parts(range, most).map(|filled| filled.ends);
        let (boundaries, inside) = boundaries(rows.len(), live, runs, room, rest)?;
        let mut cut = at_boundaries(rows, &boundaries);
        for copies in &inside {
            cut_copies(&mut cut, system, rows, copies, room)?;
        }
        cut.drop_empty();
        let largest = cut.cost(system, occurrences).largest();
        if largest <= most {
            return Some(cut);
        }
        room = less(room, largest, most)?;
    }
    None
}

/// Cuts a period that is longer than a part with the graph partitioner, if there is one, and copies
/// its cut to all periods of the run. Without a partitioner, periods stay cut at boundaries.
fn cut_copies(cut: &mut Cut, system: &System, rows: &[u32], run: &Run, room: usize) -> Option<()> {
    let Run { start, end, period } = *run;
    // The first period may begin with constants where others have wires.
    let sample = start + period..start + 2 * period;
    let Some((inside, parts)) = assignment(system, &rows[sample], room) else { return Some(()) };
    for piece in 0..(end - start) / period {
        for (offset, part) in inside.iter().enumerate() {
            let row = rows[start + piece * period + offset] as usize;
            cut.part_of[row] = cut.parts + part;
        }
        cut.parts = cut.parts.checked_add(parts)?;
    }
    Some(())
}

/// Returns the ends of parts, and the runs, from their first boundary to their last, whose periods are
/// longer than a part. `rest` returns the ends of parts of what is between runs, or `None` if it cannot
/// be cut.
fn boundaries(
    rows: usize,
    live: &[u32],
    runs: &[Run],
    room: usize,
    mut rest: impl FnMut(Range<usize>) -> Option<Vec<usize>>,
) -> Option<(Vec<usize>, Vec<Run>)> {
    let (mut ends, mut long) = (Vec::new(), Vec::new());
    let mut done = 0;
    for run in runs {
        let period = run.period;
        // Where the fewest wires live at the boundary of two periods.
        let phase = (0..period).min_by_key(|phase| live[run.start + period + phase]).unwrap_or(0);
        let start = run.start + phase;
        let pieces = (run.end - start) / period;
        if pieces == 0 {
            continue;
        }
        ends.extend(rest(done..start)?);
        if period <= room {
            let parts = pieces.div_ceil(room / period);
            let each = pieces.div_ceil(parts);
            for first in (0..pieces).step_by(each) {
                ends.push(start + period * (first + each).min(pieces));
            }
        } else {
            // A period is cut once, and its cut copied.
            let mut inside = Vec::new();
            // Each copy of the period is cut at the same places, so its parts have the same types.
            segment(start, start + period, live, room, &mut inside);
            for piece in 0..pieces {
                ends.extend(inside.iter().map(|end| end + piece * period));
            }
            long.push(Run { start, end: start + pieces * period, period });
        }
        done = start + pieces * period;
    }
    ends.extend(rest(done..rows)?);
    Some((ends, long))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_found_in_noise() {
        // 400 rows of noise, 10 periods of 300 rows, 500 rows of noise.
        let noise = |seed: u64, count: u64| (0..count).map(move |i| mix(seed + i));
        let period: Vec<u64> = noise(1 << 40, 300).collect();
        let mut shapes: Vec<u64> = noise(0, 400).collect();
        (0..10).for_each(|_| shapes.extend(&period));
        shapes.extend(noise(1 << 20, 500));
        assert_eq!(distances(&shapes, 64)[0], 300);
        let found = runs(&shapes, 300, 600);
        assert_eq!(found, [Run { start: 400, end: 3400, period: 300 }]);
        assert_eq!(found[0].pieces(), 10);
        assert!(runs(&shapes, 299, 600).is_empty());
        // Too short to count.
        assert!(runs(&shapes, 300, 3001).is_empty());
        assert!(distances(&shapes[..100], 64).is_empty());
    }

    #[test]
    fn boundaries_are_at_the_same_places_of_each_period() {
        let run = Run { start: 100, end: 1150, period: 100 };
        let mut live = vec![50; 1301];
        // The fewest wires live 30 rows into each period.
        (0..12).for_each(|i| live[130 + 100 * i] = 1);
        let rest = |room: usize| {
            move |range: Range<usize>| {
                Some(
                    range
                        .clone()
                        .step_by(room)
                        .map(|start| (start + room).min(range.end))
                        .collect(),
                )
            }
        };
        let (ends, long) = boundaries(1300, &live, &[run], 250, rest(250)).unwrap();
        assert!(long.is_empty());
        // Before, five parts of two periods, after.
        assert_eq!(ends, [130, 330, 530, 730, 930, 1130, 1300]);
        let (ends, long) = boundaries(1300, &live, &[run], 60, rest(60)).unwrap();
        assert_eq!(long, [Run { start: 130, end: 1130, period: 100 }]);
        let inside: Vec<usize> =
            ends.iter().filter(|end| (130..1130).contains(*end)).map(|e| e % 100).collect();
        assert_eq!(inside.len(), 20);
        assert!(inside.chunks(2).all(|pair| pair == &inside[..2]), "{inside:?}");
        assert_eq!(ends.last(), Some(&1300));
        // What is between runs cannot be cut.
        assert!(boundaries(1300, &live, &[run], 250, |_| None).is_none());
        assert!(ends.windows(2).all(|w| w[0] < w[1] && w[1] - w[0] <= 70), "{ends:?}");
    }
}
