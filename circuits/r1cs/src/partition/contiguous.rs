//! Contiguous parts: each takes as many rows as fit with their slots, and ends where few wires live.
//! A place with many shared wires makes its own part shorter, and no other one.

use super::order::Line;
use super::{Cost, Cut, FIXED_ROWS, Occurrences, Order};
use crate::numbers::count;
use crate::system::System;
use std::ops::Range;

/// The distance from its last possible end at which a part may end, as a fraction of its rows: 3 in 100.
const SLACK: [usize; 2] = [3, 100];
/// The excess over the room of a part that is looked at, as a fraction: slots can become fewer again,
/// once all rows of a wire are there. 1 in 4.
const BEYOND: u64 = 4;
/// The largest number of parts that are made about equal. Of more parts, the last one matters little.
const EVEN: usize = 64;
/// The excess of even parts over their mean, as fractions of it that are tried in turn: 1 in 64, 1 in
/// 16.
const UNEVEN: [u64; 2] = [64, 16];
/// The number of times that the room is reduced for public wires that are in no row.
const TRIES: usize = 8;

/// No number of parts fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "cannot cut the circuit into parts of at most {most} rows: constraint {number} and its wires need \
     {needed} rows; allow larger parts"
)]
pub struct DoesNotFit {
    /// The most rows of a part.
    pub most: u64,
    /// The number in the source of the constraint with the most wires.
    pub number: u32,
    /// The number of rows that it needs alone.
    pub needed: u64,
}

/// The ends of contiguous parts, and their rows and slots together.
pub(super) struct Filled {
    pub(super) ends: Vec<usize>,
    sizes: u64,
}

/// Fills parts along an order.
pub(super) struct Filler<'a> {
    line: &'a Line<'a>,
    /// The position after the last one at which each wire was seen, 0 for none.
    seen: Vec<u32>,
    /// The slots of a part that ends before each position from its start on.
    slots: Vec<u64>,
}

impl<'a> Filler<'a> {
    pub(super) fn new(line: &'a Line<'a>) -> Self {
        Self { line, seen: vec![0; line.ends.len()], slots: Vec::new() }
    }

    /// Parts of a range of positions, each with at most `most` rows, slots and the fixed ones
    /// included. `None` if there would be more than `parts`, or a row does not fit.
    fn fill(&mut self, range: Range<usize>, most: u64, parts: usize) -> Option<Filled> {
        self.seen.fill(0);
        let room = most.saturating_sub(FIXED_ROWS);
        let (mut start, mut filled) = (range.start, Filled { ends: Vec::new(), sizes: 0 });
        while start < range.end {
            // More parts than allowed: the caller tries a larger limit, and the rest of the rows need not
            // be looked at.
            if filled.ends.len() == parts {
                return None;
            }
            let end = self.end(start, range.end, room)?;
            filled.sizes += (end - start) as u64 + self.slots[end - start - 1];
            filled.ends.push(end);
            start = end;
        }
        Some(filled)
    }

    /// Returns the end of a part that begins at a position: within 3 % of the last place at which it
    /// fits, where the fewest wires live.
    fn end(&mut self, start: usize, limit: usize, room: u64) -> Option<usize> {
        let Self { line, seen, slots: all } = self;
        let terms = |at: usize| line.system.row(line.rows[at] as usize).into_iter().flatten();
        let public = line.system.public();
        all.clear();
        let (mut slots, mut fits) = (0u64, start);
        for at in start..limit {
            for term in terms(at) {
                let wire = term.wire as usize;
                // Positions before this part say nothing; in one row, a wire counts once.
                let now = count(at + 1);
                let before = std::mem::replace(&mut seen[wire], now) as usize;
                if wire == 0 || before == at + 1 {
                    continue;
                }
                let [first, last] = line.ends[wire].map(|at| at as usize);
                let is_public = term.wire <= public;
                let is_outside = is_public || first < start;
                match before > start {
                    // The first occurrence in this part: a slot if the wire is public or was in an earlier
                    // part, or, until its last row is in this part, too, if it comes again.
                    false => slots += u64::from(is_outside || last > at),
                    // The last row of a wire that lives in this part only: its slot goes away.
                    true => slots -= u64::from(!is_outside && last == at),
                }
            }
            all.push(slots);
            let size = (at + 1 - start) as u64 + slots;
            if size <= room {
                fits = at + 1;
            } else if size > room + room / BEYOND {
                break;
            }
        }
        let length = Some(fits - start).filter(|length| *length > 0)?;
        let slack = if fits == limit { 0 } else { length * SLACK[0] / SLACK[1] };
        let size = |end: usize| (end - start) as u64 + all[end - start - 1];
        let ends = (fits - slack..=fits).filter(|end| size(*end) <= room);
        // The last of the best: the same cut on every machine.
        let end = ends.min_by_key(|end| (line.live[*end], fits - end))?;
        // What was seen after the end is still to come.
        for at in end..start + all.len() {
            terms(at).for_each(|term| seen[term.wire as usize] = 0);
        }
        Some(end)
    }

    /// Parts of a range of positions, as few as [`fill`](Self::fill) finds, and about equal if they
    /// are few.
    pub(super) fn parts(&mut self, range: Range<usize>, most: u64) -> Option<Filled> {
        let full = self.fill(range.clone(), most, usize::MAX)?;
        let parts = full.ends.len();
        if !(2..=EVEN).contains(&parts) {
            return Some(full);
        }
        let mean = full.sizes.div_ceil(parts as u64);
        let limits = UNEVEN.map(|part| FIXED_ROWS + mean + mean.div_ceil(part));
        let mut below = limits.into_iter().filter(|limit| *limit < most);
        let even = below.find_map(|limit| self.fill(range.clone(), limit, parts));
        Some(even.unwrap_or(full))
    }
}

/// Cuts the rows of an order into contiguous parts of which each has at most `most` rows, slots
/// included: as few as there are if each part takes what fits.
///
/// # Errors
/// If a part of one constraint is too large.
pub fn contiguous(
    system: &System,
    occurrences: &Occurrences,
    order: Order,
    most: u64,
) -> Result<Cut, DoesNotFit> {
    contiguous_in(&Line::new(system, order), occurrences, most)
}

/// [`contiguous`] along an order that is at hand.
pub(super) fn contiguous_in(
    line: &Line<'_>,
    occurrences: &Occurrences,
    most: u64,
) -> Result<Cut, DoesNotFit> {
    let (system, rows) = (line.system, line.rows.len());
    let mut filler = Filler::new(line);
    // The first try gives parts all that they may have; what is in no row is added afterwards and may not
    // fit.
    let mut limit = most;
    for _ in 0..TRIES {
        let Some(Filled { ends, sizes }) = filler.parts(0..rows, limit) else { break };
        let cut = at_boundaries(&line.rows, &ends);
        let cost = cut.cost(system, occurrences);
        if cost.largest() <= most {
            return Ok(cut);
        }
        // Public wires in no row need room somewhere: more parts, each with less of the rest.
        let all = sizes + cost.unread.iter().sum::<u64>();
        let parts = all.div_ceil(most.saturating_sub(FIXED_ROWS).max(1));
        limit = (FIXED_ROWS + sizes.div_ceil(parts)).min(limit - limit / 16 - 1);
    }
    // One constraint per part.
    let cut = at_boundaries(&line.rows, &(1..=rows).collect::<Vec<_>>());
    let cost = cut.cost(system, occurrences);
    if cost.largest() <= most {
        return Ok(cut);
    }
    Err(does_not_fit(line, &cost, most))
}

/// The constraint that needs the most room, of a cut with one constraint per part.
fn does_not_fit(line: &Line<'_>, cost: &Cost, most: u64) -> DoesNotFit {
    let largest = (0..cost.slots.len()).max_by_key(|part| cost.slots[*part]);
    let row = largest.and_then(|part| line.rows.get(part));
    let number = row.map_or(0, |row| line.system.number(*row as usize));
    DoesNotFit { most, number, needed: cost.largest() }
}

/// Appends the ends of about equal parts of these positions, each where the fewest wires live nearby.
fn equal(range: Range<usize>, live: &[u32], wanted: usize, ends: &mut Vec<usize>) {
    let length = range.len();
    let parts = wanted.clamp(1, length.max(1));
    let mut start = range.start;
    for part in 1..=parts {
        let exact = range.start + length * part / parts;
        let slack = length / parts * SLACK[0] / SLACK[1] / 2;
        let nearby = exact.saturating_sub(slack).max(start + 1)..=(exact + slack).min(range.end);
        let end = match part == parts {
            true => range.end,
            // The first of the best: the same cut on every machine.
            false => nearby.min_by_key(|at| (live[*at], at.abs_diff(exact))).unwrap_or(exact),
        };
        ends.push(end);
        start = end;
    }
}

/// Appends the ends of parts of at most about `room` rows between two positions.
pub(super) fn segment(start: usize, end: usize, live: &[u32], room: usize, ends: &mut Vec<usize>) {
    if start < end {
        equal(start..end, live, (end - start).div_ceil(room), ends);
    }
}

/// The cut with parts that end at these positions of an order, of which the last one is its end.
pub(super) fn at_boundaries(rows: &[u32], ends: &[usize]) -> Cut {
    let mut part_of = vec![0; rows.len()];
    let (mut start, mut parts) = (0, 0);
    for end in ends {
        rows[start..*end].iter().for_each(|row| part_of[*row as usize] = parts);
        (start, parts) = (*end, parts + 1);
    }
    Cut { part_of, parts: parts.max(1) }
}
