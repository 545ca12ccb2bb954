//! Contiguous parts, with boundaries where few wires live.

use super::order::live;
use super::{Cut, FIXED_ROWS, Occurrences, Order};
use crate::system::System;
use std::ops::Range;

/// How far a boundary may be from that of equal parts, as a fraction of a part: 3 in 100.
const SLACK: [usize; 2] = [3, 100];

/// No number of parts fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no cut into contiguous parts has at most {most} rows a part: constraint {number} and its wires \
     need {needed}; allow larger parts"
)]
pub struct DoesNotFit {
    /// The most rows of a part.
    pub most: u64,
    /// The number in the source of the constraint with the most wires.
    pub number: u32,
    /// What it needs alone.
    pub needed: u64,
}

/// Cuts the rows of an order into the least number of contiguous parts of which each has at most
/// `most` rows, slots included.
///
/// # Errors
/// If a part of one constraint is too large.
pub fn contiguous(
    system: &System,
    occurrences: &Occurrences,
    order: Order,
    most: u64,
) -> Result<Cut, DoesNotFit> {
    let rows = order.rows(system);
    let live = live(&rows, system, occurrences);
    let room = most.saturating_sub(FIXED_ROWS).max(1);
    let mut parts = (rows.len() as u64).div_ceil(room).max(1);
    loop {
        let mut ends = Vec::new();
        equal(0..rows.len(), &live, usize::try_from(parts).unwrap_or(usize::MAX), &mut ends);
        let cut = at_boundaries(&rows, &ends);
        let cost = cut.cost(system, occurrences);
        if cost.largest() <= most {
            return Ok(cut);
        }
        if parts >= rows.len() as u64 {
            // One constraint a part.
            let largest = (0..cut.parts as usize).max_by_key(|part| cost.slots[*part]);
            let row = cut.part_of.iter().position(|part| Some(*part as usize) == largest);
            let number = row.map_or(0, |row| system.number(row));
            return Err(DoesNotFit { most, number, needed: cost.largest() });
        }
        // In proportion to what is missing, but at least an eighth more: a single wide constraint must
        // not make that creep.
        let wanted = u128::from(parts) * u128::from(cost.largest()) / u128::from(most);
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        parts = wanted.max(parts + parts / 8 + 1).min(rows.len() as u64);
    }
}

/// Appends the ends of about equal parts of these positions, each where the fewest wires live nearby.
fn equal(range: Range<usize>, live: &[u32], parts: usize, ends: &mut Vec<usize>) {
    let length = range.len();
    let parts = parts.clamp(1, length.max(1));
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
