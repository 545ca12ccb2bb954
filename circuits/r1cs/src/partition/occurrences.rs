//! The rows in which wires occur.

use crate::numbers::{count, index};
use crate::system::System;

/// The rows in which each wire occurs, each once and in ascending order; 4 bytes per occurrence and 8
/// per wire. The constant 1 has none: it costs nothing.
#[derive(Clone, Debug)]
pub struct Occurrences {
    starts: Vec<u64>,
    rows: Vec<u32>,
}

impl Occurrences {
    /// Finds the occurrences of all wires.
    ///
    /// # Panics
    /// If there are 2^32 rows or more; a file cannot have them.
    pub fn new(system: &System) -> Self {
        let wires = system.wires() as usize;
        let mut starts = vec![0u64; wires + 1];
        let mut seen = Vec::new();
        for row in 0..system.rows() {
            wires_of(system, row, &mut seen);
            seen.iter().for_each(|wire| starts[*wire as usize + 1] += 1);
        }
        for wire in 0..wires {
            starts[wire + 1] += starts[wire];
        }
        let mut next = starts.clone();
        let mut rows = vec![0; index(starts[wires])];
        for row in 0..system.rows() {
            wires_of(system, row, &mut seen);
            for wire in &seen {
                let place = &mut next[*wire as usize];
                rows[index(*place)] = count(row);
                *place += 1;
            }
        }
        Self { starts, rows }
    }

    /// The rows in which a wire occurs.
    pub fn rows(&self, wire: u32) -> &[u32] {
        let [start, end] = [wire, wire + 1].map(|w| self.starts[w as usize]);
        &self.rows[index(start)..index(end)]
    }

    /// The number of pairs of a wire and a row in which it occurs.
    pub fn count(&self) -> usize {
        self.rows.len()
    }
}

/// The wires of a row without the constant, each once, in ascending order.
pub(super) fn wires_of(system: &System, row: usize, out: &mut Vec<u32>) {
    out.clear();
    let terms = system.row(row).into_iter().flatten();
    out.extend(terms.map(|term| term.wire).filter(|wire| *wire != 0));
    out.sort_unstable();
    out.dedup();
}
