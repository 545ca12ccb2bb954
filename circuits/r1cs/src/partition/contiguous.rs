//! Contiguous parts, with boundaries where few wires live.

use super::order::live;
use super::{Cut, FIXED_ROWS, Occurrences, Order};
use crate::system::System;

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
        let cut = at_boundaries(&rows, &live, usize::try_from(parts).unwrap_or(usize::MAX));
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
        // In proportion to what is missing, but at least one more.
        let wanted = u128::from(parts) * u128::from(cost.largest()) / u128::from(most);
        let wanted = u64::try_from(wanted).unwrap_or(u64::MAX);
        parts = wanted.max(parts + 1).min(rows.len() as u64);
    }
}

/// Cuts into this many parts, each boundary where the fewest wires live nearby.
fn at_boundaries(rows: &[u32], live: &[u32], parts: usize) -> Cut {
    let parts = parts.clamp(1, rows.len().max(1));
    let mut part_of = vec![0; rows.len()];
    let mut start = 0;
    for part in 0..parts {
        let exact = rows.len() * (part + 1) / parts;
        let slack = rows.len() / parts * SLACK[0] / SLACK[1] / 2;
        let nearby = exact.saturating_sub(slack).max(start + 1)..=(exact + slack).min(rows.len());
        let end = match part + 1 == parts {
            true => rows.len(),
            // The first of the best: the same cut on every machine.
            false => nearby.min_by_key(|at| (live[*at], at.abs_diff(exact))).unwrap_or(exact),
        };
        for row in &rows[start..end] {
            part_of[*row as usize] = u32::try_from(part).unwrap_or(u32::MAX);
        }
        start = end;
    }
    Cut { part_of, parts: u32::try_from(parts).unwrap_or(u32::MAX) }
}
