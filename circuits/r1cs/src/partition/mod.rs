//! Cuts a constraint system into parts, so that few wires are shared. What a cut costs is counted
//! here; whether parts prove what the system says does not depend on how they were found.
//!
//! A part has a row for each constraint, and one more (with a committed variable, and 32 bytes on
//! their way to a prover) for each occurrence of a shared wire. The number of occurrences S is what
//! the cut should make small:
//!
//! ```text
//! lambda_w = number of parts in whose rows wire w occurs
//! S = sum of max(lambda_w, 1) over public w, and of lambda_w over private w with lambda_w >= 2
//! ```
//!
//! Shared wires of one combination may have a sum in their place, and shared bits a number in which
//! they are packed: see [`Derived`](crate::Derived).

mod choice;
mod contiguous;
mod derive;
mod graph;
mod moves;
mod occurrences;
mod order;
mod parts;
mod plan;
mod repeats;

pub use choice::{Choice, Considered, Depth, PartSizes, Price, choose, one_part, part_sizes};
pub use contiguous::{DoesNotFit, contiguous};
pub use derive::derived_parts;
pub use moves::improve;
pub use occurrences::Occurrences;
pub use order::{Order, order};
pub use parts::{Access, Part, PartType, Parts, Rows, parts};
pub use plan::{Plan, Step};

use crate::system::System;

/// Rows of a part that are neither constraints nor slots: the sum of its terms, and two masks.
pub const FIXED_ROWS: u64 = 3;

/// A cut: the part of each row of a [`System`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The part of each row.
    pub part_of: Vec<u32>,
    /// The number of parts, k.
    pub parts: u32,
}

/// The cost of a cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The number of constraints of each part.
    pub rows: Vec<u64>,
    /// The number of shared wires that each part has: those that occur in it, and `unread`.
    pub slots: Vec<u64>,
    /// The number of public wires that occur in no row and that each part has all the same: the
    /// emptiest parts, as many as they have room for without becoming larger than the largest.
    pub unread: Vec<u64>,
    /// The number of shared wires, public ones included.
    pub shared: u64,
}

impl Cost {
    /// Shares public wires that occur in no row among parts of these sizes.
    fn share(sizes: &[u64], unread: u64) -> Vec<u64> {
        let all = sizes.iter().sum::<u64>() + unread;
        // A cut without rows has no parts, and nothing that is large.
        let largest = sizes.iter().copied().max();
        let level = largest.unwrap_or(0).max(all.div_ceil(sizes.len().max(1) as u64));
        let mut emptiest: Vec<usize> = (0..sizes.len()).collect();
        // A stable sort: the same shares on every machine.
        emptiest.sort_by_key(|part| sizes[*part]);
        let (mut left, mut shares) = (unread, vec![0; sizes.len()]);
        for part in emptiest {
            shares[part] = left.min(level - sizes[part]);
            left -= shares[part];
        }
        shares
    }

    /// The number of occurrences of shared wires, S.
    pub fn occurrences(&self) -> u64 {
        self.slots.iter().sum()
    }

    /// The rows of the largest part, slots and the fixed ones included.
    pub fn largest(&self) -> u64 {
        let sizes = self.rows.iter().zip(&self.slots).map(|(rows, slots)| rows + slots);
        sizes.max().map_or(FIXED_ROWS, |rows| rows + FIXED_ROWS)
    }

    /// The rows that the cut adds, as a fraction of the constraints.
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn added(&self) -> f64 {
        self.occurrences() as f64 / self.rows.iter().sum::<u64>().max(1) as f64
    }
}

impl Cut {
    /// All rows in one part.
    pub fn whole(system: &System) -> Self {
        Self { part_of: vec![0; system.rows()], parts: 1 }
    }

    /// Leaves out parts without rows.
    pub fn drop_empty(&mut self) {
        // Each part is a subcircuit; without rows, it would prove nothing.
        let mut numbers = vec![u32::MAX; self.parts as usize];
        self.part_of.iter().for_each(|part| numbers[*part as usize] = 0);
        let mut next = 0;
        for number in numbers.iter_mut().filter(|number| **number == 0) {
            *number = next;
            next += 1;
        }
        self.part_of.iter_mut().for_each(|part| *part = numbers[*part as usize]);
        self.parts = next;
    }

    /// Counts what the cut costs.
    pub fn cost(&self, system: &System, occurrences: &Occurrences) -> Cost {
        let parts = self.parts as usize;
        let (mut rows, mut slots, mut shared) = (vec![0; parts], vec![0; parts], 0);
        self.part_of.iter().for_each(|part| rows[*part as usize] += 1);
        let packed = system.derived().packed();
        let mut found = Vec::new();
        let mut unread = 0;
        // The last wire that was found in each part.
        let mut last = vec![0; parts];
        for wire in 1..system.wires() {
            found.clear();
            for row in occurrences.rows(wire) {
                let part = self.part_of[*row as usize];
                // One comparison for each occurrence; a set for each wire would take most of the time of a
                // cut.
                if std::mem::replace(&mut last[part as usize], wire) != wire {
                    found.push(part);
                }
            }
            let is_public = wire <= system.public();
            if is_public || (found.len() >= 2 && !packed.contains(&wire)) {
                shared += 1;
                found.iter().for_each(|part| slots[*part as usize] += 1);
            }
            if is_public && found.is_empty() {
                unread += 1;
            }
        }
        let sizes: Vec<u64> = rows.iter().zip(&slots).map(|(rows, slots)| rows + slots).collect();
        let unread = Cost::share(&sizes, unread);
        slots.iter_mut().zip(&unread).for_each(|(slots, unread)| *slots += unread);
        Cost { rows, slots, unread, shared }
    }
}
