//! The order in which rows are cut into contiguous parts.

use super::occurrences::Occurrences;
use crate::system::{System, Term};

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// As in the source.
    Source,
    /// By the largest wire in a row; rows with the same in the order of the source. circom writes all
    /// products first and all linear rows after them, far from the rows whose wires they have.
    LargestWire,
}

impl Order {
    /// The rows in this order.
    pub fn rows(self, system: &System) -> Vec<u32> {
        #[allow(clippy::cast_possible_truncation, reason = "a file has fewer rows")]
        let mut rows: Vec<u32> = (0..system.rows() as u32).collect();
        if self == Self::LargestWire {
            let largest: Vec<u32> = rows.iter().map(|row| largest(system, *row)).collect();
            rows.sort_by_key(|row| largest[*row as usize]);
        }
        rows
    }
}

/// The largest wire of a row, those left out that a partition added: they say nothing of a place.
fn largest(system: &System, row: u32) -> u32 {
    // Wires ascend in each combination.
    let first = system.derived().first();
    let last = system.row(row as usize).map(|terms| {
        let from_source = |term: &&Term| term.wire < first;
        terms.iter().rev().find(from_source).map_or(0, |term| term.wire)
    });
    last.into_iter().max().unwrap_or_default()
}

/// For each boundary between two rows of an order, how many wires occur on both sides: element p is
/// about the boundary before position p, and there is one more at the end.
pub(super) fn live(rows: &[u32], system: &System, occurrences: &Occurrences) -> Vec<u32> {
    let mut position = vec![0u32; rows.len()];
    for (at, row) in (0u32..).zip(rows) {
        position[*row as usize] = at;
    }
    let mut changes = vec![0i64; rows.len() + 2];
    for wire in 1..system.wires() {
        let at = || occurrences.rows(wire).iter().map(|row| position[*row as usize] as usize);
        if let (Some(first), Some(last)) = (at().min(), at().max())
            && first < last
        {
            // It is live at the boundaries before first + 1 up to last.
            changes[first + 1] += 1;
            changes[last + 1] -= 1;
        }
    }
    let mut live = 0i64;
    let sum = |change: &i64| {
        live += change;
        u32::try_from(live).unwrap_or(u32::MAX)
    };
    changes[..=rows.len()].iter().map(sum).collect()
}

/// The better of both orders for cuts into `parts` parts: the one with fewer live wires at the
/// boundaries of equal parts.
pub fn order(system: &System, occurrences: &Occurrences, parts: u32) -> Order {
    let cost = |order: Order| -> u64 {
        let rows = order.rows(system);
        let live = live(&rows, system, occurrences);
        let boundary = |part: u32| rows.len() * part as usize / parts.max(1) as usize;
        (1..parts).map(|part| u64::from(live[boundary(part)])).sum()
    };
    match cost(Order::LargestWire) < cost(Order::Source) {
        true => Order::LargestWire,
        false => Order::Source,
    }
}
