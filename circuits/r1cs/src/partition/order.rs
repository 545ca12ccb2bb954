//! The order in which rows are cut into contiguous parts.

use crate::system::{System, Term};

/// An order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// The order of the source.
    Source,
    /// The order by the largest wire of each row; rows with the same one keep the order of the source.
    /// circom writes all products first and all linear rows after them, far from the rows whose wires
    /// they have.
    LargestWire,
}

impl Order {
    /// The rows in this order.
    pub fn rows(self, system: &System) -> Vec<u32> {
        #[allow(clippy::cast_possible_truncation, reason = "a file has fewer rows")]
        let mut rows: Vec<u32> = (0..system.rows() as u32).collect();
        if self == Self::LargestWire {
            let largest: Vec<u32> = rows.iter().map(|row| largest(system, *row)).collect();
            // A stable sort: rows with the same wire stay in the order of the source.
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
    let [a, b, c] = last;
    a.max(b).max(c)
}

/// The rows of a system in an order, with the places in it between which each wire lives.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) system: &'a System,
    pub(super) order: Order,
    /// The rows in order.
    pub(super) rows: Vec<u32>,
    /// The positions of the first and the last row of each wire that occurs; [`NOWHERE`] for others.
    pub(super) ends: Vec<[u32; 2]>,
    /// The number of wires that occur on both sides of each boundary between two rows: element p is
    /// about the boundary before position p, and there is one more at the end.
    pub(super) live: Vec<u32>,
}

/// The first and the last position of a wire in no row.
const NOWHERE: [u32; 2] = [u32::MAX, 0];

impl<'a> Line<'a> {
    pub(super) fn new(system: &'a System, order: Order) -> Self {
        let rows = order.rows(system);
        let mut ends = vec![NOWHERE; system.wires() as usize];
        for (at, row) in (0u32..).zip(&rows) {
            for term in system.row(*row as usize).into_iter().flatten() {
                let [first, last] = &mut ends[term.wire as usize];
                (*first, *last) = ((*first).min(at), at);
            }
        }
        let mut changes = vec![0i64; rows.len() + 2];
        // The constant lives everywhere and costs nothing.
        for [first, last] in ends.iter().skip(1).filter(|[first, last]| first < last) {
            // It is live at the boundaries before first + 1 up to last.
            changes[*first as usize + 1] += 1;
            changes[*last as usize + 1] -= 1;
        }
        let mut alive = 0i64;
        let sum = |change: &i64| {
            alive += change;
            u32::try_from(alive)
                .expect("a wire ends after it begins, and wires have 32-bit numbers")
        };
        let live = changes[..=rows.len()].iter().map(sum).collect();
        Self { system, order, rows, ends, live }
    }

    /// Returns the number of wires that live at the boundaries of this number of equal parts.
    pub(super) fn crossings(&self, parts: usize) -> u64 {
        // Many boundaries are as good as all of them.
        let counted = parts.min(1 << 16);
        let boundary = |part: usize| self.rows.len() * part / counted.max(1);
        (1..counted).map(|part| u64::from(self.live[boundary(part)])).sum()
    }
}

/// The better of both orders for cuts into `parts` parts: the one with fewer live wires at the
/// boundaries of equal parts.
pub fn order(system: &System, parts: u32) -> Order {
    let cost = |order| Line::new(system, order).crossings(parts as usize);
    match cost(Order::LargestWire) < cost(Order::Source) {
        true => Order::LargestWire,
        false => Order::Source,
    }
}
