//! Wires and rows that a partition adds to those of its source: sums of terms, and packed bits.
//!
//! A *sum* is a wire y with the row (sum of k_j w_j) 1 = y in one part; another part has y in place of
//! these terms. A *pack* is a wire v that stands for up to 254 bits of several parts: each of them has
//! the row (sum of 2^i w_i) 1 = v, and w_i (w_i - 1) = 0 for each bit.

use crate::numbers::count;
use ark_ff::{AdditiveGroup, Field, Zero};
use hekaton_circuit::Fr;
use std::collections::{HashMap, HashSet};

/// The most bits of a pack: 2^254 is below the modulus, so that one sum has one choice of bits.
pub const MOST_BITS: usize = 254;

/// The definition of a derived wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Definition {
    /// The sum of at least two terms over wires of the source and earlier sums, wires ascending: each
    /// a place in [`Derived::coefficients`], and the wire.
    Sum(Vec<[u32; 2]>),
    /// Bit i has the weight 2^i: private wires of the source, at most 254.
    Pack(Vec<u32>),
}

/// The meaning of a row of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    /// The constraint of the source with this number.
    Source(u32),
    /// The definition of this derived wire.
    Definition(u32),
    /// The check that this wire of the source is a bit.
    Bit(u32),
}

/// The derived wires of a partition. They have the numbers after the last wire of the source; rows
/// that define them have the numbers after its last constraint, and bit rows those from 2^32 - 1 down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derived {
    /// The number of constraints of the source.
    rows: u32,
    /// The number of wires of the source.
    first: u32,
    coefficients: Vec<Fr>,
    definitions: Vec<Definition>,
}

impl Derived {
    /// Returns no derived wires, for a source with these numbers of constraints and wires.
    pub fn none(rows: u32, wires: u32) -> Self {
        Self { rows, first: wires, ..Self::default() }
    }

    /// Makes the derived wires of a source with these numbers of constraints and wires.
    ///
    /// # Errors
    /// If a definition mentions a wire or coefficient that does not exist before it, a pack has too
    /// many bits, or 32-bit numbers do not suffice for all wires and rows.
    pub fn new(
        rows: u64,
        wires: u32,
        coefficients: Vec<Fr>,
        definitions: Vec<Definition>,
    ) -> Result<Self, &'static str> {
        let more = 2 * u64::from(wires) + 2 * definitions.len() as u64;
        // Definitions are numbered behind the rows, and bit rows, one for each wire at most, from the other end: the two
        // must not meet.
        let fits = rows.checked_add(more).is_some_and(|all| all <= u32::MAX.into());
        if !definitions.is_empty() && !fits {
            return Err("there are too many derived wires for 32-bit numbers");
        }
        for (own, definition) in (wires..).zip(&definitions) {
            match definition {
                Definition::Sum(terms) => {
                    if terms.iter().any(|[k, _]| *k as usize >= coefficients.len()) {
                        return Err("a sum has a coefficient that is not in the table");
                    }
                    // Only earlier wires, so that sums can be replaced by their terms in finitely many steps.
                    if terms.iter().any(|[_, wire]| *wire >= own) {
                        return Err("a sum has a term over a wire that does not come before it");
                    }
                }
                Definition::Pack(bits) => {
                    if bits.len() > MOST_BITS {
                        return Err("a pack has more than 254 bits");
                    }
                    if bits.iter().any(|bit| *bit >= wires) {
                        return Err("a pack has a bit that is not a wire of the source");
                    }
                }
            }
        }
        // More rows than 32 bits can count pass only without definitions, where no row has a number behind theirs.
        let counted = u32::try_from(rows.min(u32::MAX.into())).expect("at most 2^32 - 1");
        Ok(Self { rows: counted, first: wires, coefficients, definitions })
    }

    /// Reports whether there are no derived wires.
    pub fn is_empty(&self) -> bool {
        self.definitions.is_empty()
    }

    /// The first derived wire, if there are any: the number of wires of the source.
    pub fn first(&self) -> u32 {
        self.first
    }

    /// The number of all wires, those of the source included.
    pub fn wires(&self) -> u32 {
        self.first + count(self.definitions.len())
    }

    /// The coefficients of sums.
    pub fn coefficients(&self) -> &[Fr] {
        &self.coefficients
    }

    /// All definitions, in the order of wires.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// The numbers of sums and of packs.
    pub fn counts(&self) -> [u64; 2] {
        // Counted apart: a sum saves slots of one row, a pack those of bits that several parts share.
        let is_sum = |definition: &&Definition| matches!(definition, Definition::Sum(_));
        let sums = self.definitions.iter().filter(is_sum).count();
        [sums as u64, (self.definitions.len() - sums) as u64]
    }

    /// The bits of all packs: parts that share them need no slots for them.
    pub(crate) fn packed(&self) -> HashSet<u32> {
        let bits = self.definitions.iter().filter_map(|definition| match definition {
            Definition::Pack(bits) => Some(bits),
            Definition::Sum(_) => None,
        });
        bits.flatten().copied().collect()
    }

    /// The definition of a wire; `None` for wires of the source.
    pub fn get(&self, wire: u32) -> Option<&Definition> {
        self.definitions.get(wire.checked_sub(self.first)? as usize)
    }

    /// The number of a row; a definition is that of a derived wire.
    pub fn number(&self, row: RowKind) -> u32 {
        match row {
            RowKind::Source(number) => number,
            RowKind::Definition(wire) => self.rows.saturating_add(wire.saturating_sub(self.first)),
            // From the other end, because how many bit rows there are depends on the cut, and definitions
            // come first.
            RowKind::Bit(wire) => u32::MAX - wire,
        }
    }

    /// The row with a number, if there can be one.
    pub fn row(&self, number: u32) -> Option<RowKind> {
        let beyond = number.checked_sub(self.rows).filter(|_| !self.is_empty());
        let Some(beyond) = beyond else { return Some(RowKind::Source(number)) };
        if (beyond as usize) < self.definitions.len() {
            return Some(RowKind::Definition(self.first + beyond));
        }
        let bit = u32::MAX - number;
        (bit < self.first).then_some(RowKind::Bit(bit))
    }

    /// All wires that the values of these need, these included: ascending, and each once.
    pub(crate) fn needed(&self, wires: &[u32]) -> Vec<u32> {
        let mut needed: Vec<u32> = wires.to_vec();
        let mut derived: Vec<u32> = wires.iter().copied().filter(|w| *w >= self.first).collect();
        let mut seen: HashSet<u32> = derived.iter().copied().collect();
        // A list and not recursion: a file may nest sums to any depth.
        while let Some(wire) = derived.pop() {
            let mut add = |wire: u32| {
                if wire < self.first {
                    needed.push(wire);
                } else if seen.insert(wire) {
                    needed.push(wire);
                    derived.push(wire);
                }
            };
            match self.get(wire) {
                Some(Definition::Sum(terms)) => terms.iter().for_each(|[_, wire]| add(*wire)),
                Some(Definition::Pack(bits)) => bits.iter().for_each(|bit| add(*bit)),
                None => {}
            }
        }
        needed.sort_unstable();
        needed.dedup();
        needed
    }

    /// The value of a derived wire, from those of earlier wires.
    pub(crate) fn value(&self, wire: u32, of: impl Fn(u32) -> Fr) -> Fr {
        match self.get(wire) {
            Some(Definition::Sum(terms)) => {
                terms.iter().map(|[k, wire]| self.coefficients[*k as usize] * of(*wire)).sum()
            }
            Some(Definition::Pack(bits)) => {
                bits.iter().rev().fold(Fr::zero(), |sum, bit| sum.double() + of(*bit))
            }
            None => Fr::ZERO,
        }
    }
}

/// Collects definitions whose coefficients are places in the table of a system.
#[derive(Debug)]
pub(crate) struct Definitions<'a> {
    table: &'a [Fr],
    derived: Derived,
    places: HashMap<u32, u32>,
}

impl<'a> Definitions<'a> {
    /// More definitions than `before`, with coefficients from this table.
    pub(crate) fn new(table: &'a [Fr], before: &Derived) -> Self {
        Self { table, derived: before.clone(), places: HashMap::new() }
    }

    /// The number that the next derived wire has.
    pub(crate) fn next(&self) -> u32 {
        self.derived.wires()
    }

    /// Adds a sum of terms: places in the table, and wires.
    pub(crate) fn sum(&mut self, terms: impl Iterator<Item = [u32; 2]>) {
        let Self { table, derived, places } = self;
        let mut place = |coefficient: u32| {
            *places.entry(coefficient).or_insert_with(|| {
                derived.coefficients.push(table[coefficient as usize]);
                count(derived.coefficients.len() - 1)
            })
        };
        let placed = terms.map(|[k, wire]| [place(k), wire]).collect();
        derived.definitions.push(Definition::Sum(placed));
    }

    pub(crate) fn pack(&mut self, bits: Vec<u32>) {
        self.derived.definitions.push(Definition::Pack(bits));
    }

    /// The definitions, if there are numbers for all of them.
    pub(crate) fn finish(self) -> Option<Derived> {
        let Derived { rows, first, coefficients, definitions } = self.derived;
        Derived::new(rows.into(), first, coefficients, definitions).ok()
    }
}

/// Powers of two, from 1.
pub(crate) fn powers_of_two() -> impl Iterator<Item = Fr> {
    std::iter::successors(Some(Fr::ONE), |power| Some(power.double()))
}
