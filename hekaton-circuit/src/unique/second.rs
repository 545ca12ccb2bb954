//! The search for a second witness with the same given values.
//!
//! Some values are changed; each row that no longer holds is repaired by one unknown, and so on. All rows with a changed value are then
//! evaluated, and the others hold as in the witness, so a mistake here can miss a witness, and never invents one.

use super::cases::{Number, World, digits, powers};
use super::state::{State, merge};
use ark_ff::PrimeField;
use hashbrown::HashMap;

/// The rows that one search may look at.
const STEPS: usize = 200_000;

/// A way in which a search repairs rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strategy {
    /// The order in which the sides of a row are tried for the unknown that repairs it: 0 for A to 2 for C.
    order: [usize; 3],
    /// The number of times that a variable may be changed, other than seeds and those with one other value. What is computed from
    /// several values may have to change with each of them, but rows may also undo each other's repairs.
    changes: u8,
}

/// Strategies to try, the most successful ones first. Most rows compute what is in C.
pub(super) const STRATEGIES: [Strategy; 4] = [
    Strategy { order: [2, 0, 1], changes: 1 },
    Strategy { order: [2, 0, 1], changes: 8 },
    Strategy { order: [0, 1, 2], changes: 1 },
    Strategy { order: [1, 0, 2], changes: 1 },
];

/// Looks for a witness in which some values are changed. Returns all changes. `steps` is reduced by the rows that were looked at.
pub(super) fn search<F: PrimeField>(
    state: &State<'_, F>,
    seeds: &World<F>,
    strategy: Strategy,
    steps: &mut usize,
) -> Option<World<F>> {
    if seeds.iter().any(|(v, value)| state.is_held(*v) || !state.allows(*v, *value)) {
        return None;
    }
    let times = seeds.keys().map(|variable| (*variable, strategy.changes)).collect();
    let mut search = Search { state, strategy, world: seeds.clone(), times };
    let mut queue = Vec::new();
    let mut variables: Vec<u32> = seeds.keys().copied().collect();
    variables.sort_unstable();
    for variable in variables {
        queue.extend(state.uses.of(variable).map(|(row, _)| row));
    }
    for _ in 0..STEPS {
        let Some(row) = queue.pop() else {
            return search.is_witness().then_some(search.world);
        };
        // By the length of the row, since a wide one takes longer.
        *steps = steps.checked_sub(state.rows.length(row))?;
        if !search.holds(row) {
            for (variable, value) in search.repair(row)? {
                *search.times.entry(variable).or_default() += 1;
                search.world.insert(variable, value);
                queue.extend(state.uses.of(variable).map(|(row, _)| row));
            }
        }
    }
    None
}

struct Search<'a, 'b, F: PrimeField> {
    state: &'a State<'b, F>,
    strategy: Strategy,
    world: World<F>,
    /// The number of times that each variable was changed.
    times: HashMap<u32, u8>,
}

impl<F: PrimeField> Search<'_, '_, F> {
    fn value(&self, variable: u32) -> F {
        self.world.get(&variable).copied().unwrap_or_else(|| self.state.value(variable))
    }

    fn holds(&self, row: usize) -> bool {
        self.state.rows.holds(row, |variable| self.value(variable))
    }

    /// Checks all rows with a changed value, and that none is one that cannot change.
    fn is_witness(&self) -> bool {
        let is_changed = |(v, value): &(&u32, &F)| **value != self.state.value(**v);
        let mut changed =
            self.world.iter().filter(is_changed).map(|(variable, _)| *variable).peekable();
        changed.peek().is_some()
            && changed.all(|variable| {
                let mut rows = self.state.uses.of(variable);
                !self.state.is_known(variable) && rows.all(|(row, _)| self.holds(row))
            })
    }

    /// Values of unknowns with which a row holds.
    fn repair(&self, row: usize) -> Option<Vec<(u32, F)>> {
        let rows = self.state.rows;
        let sides = [0, 1, 2].map(|side| rows.value(row, side, |variable| self.value(variable)));
        for side in self.strategy.order {
            let mut candidates: Vec<(u32, F)> =
                rows.terms(row, side).filter(|(v, _)| self.may_change(*v)).collect();
            // Those with one other value, and those in many rows, are the hardest to repair with.
            let rank = |v: u32| (self.state.other(v).is_some(), self.state.uses.count(v), v);
            candidates.sort_unstable_by_key(|(v, _)| rank(*v));
            let repaired = |(variable, k): &(u32, F)| {
                Some((*variable, self.repaired(row, side, &sides, (*variable, *k))?))
            };
            if let Some(change) = candidates.iter().find_map(repaired) {
                return Some(vec![change]);
            }
        }
        self.digits(row, &sides)
    }

    fn may_change(&self, variable: u32) -> bool {
        let most = if self.state.other(variable).is_some() { 1 } else { self.strategy.changes };
        let times = self.times.get(&variable).copied().unwrap_or(0);
        !self.state.is_known(variable) && !self.state.is_held(variable) && times < most
    }

    /// The value of a variable on one side of a row with which the row holds.
    fn repaired(
        &self,
        row: usize,
        side: usize,
        &[a, b, c]: &[F; 3],
        (variable, k): (u32, F),
    ) -> Option<F> {
        let rows = self.state.rows;
        let is_in = |side: usize| rows.entries_of(row, side).iter().any(|[v, _]| *v == variable);
        let value = match [0, 1, 2].into_iter().any(|other| other != side && is_in(other)) {
            // The row is not linear in it, but it may have one other value.
            true => {
                let other = [self.state.other(variable)?, self.state.value(variable)]
                    .into_iter()
                    .find(|other| *other != self.value(variable))?;
                let with = |v: u32| if v == variable { other } else { self.value(v) };
                rows.holds(row, with).then_some(other)?
            }
            false => {
                let missing = match side {
                    0 => c * b.inverse()? - a,
                    1 => c * a.inverse()? - b,
                    _ => a * b - c,
                };
                self.value(variable) + missing * k.inverse()?
            }
        };
        self.state.allows(variable, value).then_some(value)
    }

    /// The bits of a number in a linear row, all of which may change.
    fn digits(&self, row: usize, &[a, b, c]: &[F; 3]) -> Option<Vec<(u32, F)>> {
        let rows = self.state.rows;
        let bits = |side| {
            rows.terms(row, side).filter(|(v, _)| self.may_change(*v) && self.state.is_bit(*v))
        };
        let (factor, side) = match (bits(0).next(), bits(1).next()) {
            (None, _) => (a, 1),
            (_, None) => (b, 0),
            _ => return None,
        };
        let mut terms: Vec<(u32, F)> = bits(side).map(|(v, k)| (v, factor * k)).collect();
        terms.extend(bits(2).map(|(v, k)| (v, -k)));
        merge(&mut terms);
        let (is_negative, powers) = powers(&terms)?;
        // What the sum of the bits with their factors must be so that A B - C is zero.
        let now: F = terms.iter().map(|(v, k)| *k * self.value(*v)).sum();
        let sum = now - (a * b - c);
        let number = Number::of(&if is_negative { -sum } else { sum }.into_bigint());
        digits(&number, &powers)
    }
}
