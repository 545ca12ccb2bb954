//! From a constraint system to parts: tries what there is, and takes the best.

use super::graph::{graph, pays};
use super::repeats::repeating;
use super::{Cost, Cut, DoesNotFit, FIXED_ROWS, Occurrences, Order, PartType, Parts};
use super::{contiguous, improve, order, parts};
use crate::system::System;

/// The sizes of parts that are chosen from, as powers of two.
const SIZES: std::ops::RangeInclusive<u32> = 14..=20;
/// The least number of parts per prover, so that none waits long for the last one.
const PARTS_PER_PROVER: u64 = 4;
/// What fewer types may cost, as a fraction of the constraints: 2 in 100, and 5 in 100 for a quarter of
/// them.
const FOR_FEWER_TYPES: [u64; 2] = [2, 100];
const FOR_FEW_TYPES: [u64; 2] = [5, 100];

/// A partition, and how it was found.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The most rows of a part, slots and three more included.
    pub most: u64,
    /// The order in which rows were cut.
    pub order: Order,
    /// Whether single rows were moved to other parts.
    pub moved: bool,
    /// The parts.
    pub parts: Parts,
    /// What they cost.
    pub cost: Cost,
}

/// A step of [`Plan::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The order of constraints is chosen.
    Order,
    /// Boundaries are looked for.
    Cut,
    /// Single constraints are moved.
    Moves,
    /// Equal parts are looked for.
    Types,
    /// Constraints that repeat are looked for.
    Repeats,
    /// A graph partitioner looks for a better cut.
    Graph,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Order => "choosing an order of the constraints",
            Self::Cut => "cutting where few wires live",
            Self::Moves => "moving constraints to where their wires are",
            Self::Types => "looking for equal parts",
            Self::Graph => "looking for a better cut with METIS",
            Self::Repeats => "looking for constraints that repeat",
        })
    }
}

/// The largest power of two in 2^14 to 2^20 for which there are at least four parts per prover.
pub fn default_size(rows: usize, provers: usize) -> u64 {
    let parts = PARTS_PER_PROVER.saturating_mul(provers as u64);
    let mut sizes = SIZES.rev().map(|log| 1u64 << log);
    sizes.find(|size| (rows as u64).div_ceil(*size) >= parts).unwrap_or(1 << SIZES.start())
}

impl Plan {
    /// Cuts a system into parts of at most `most` rows, slots and three more included.
    ///
    /// # Errors
    /// If a constraint and its wires are more than that.
    pub fn new(
        system: &System,
        occurrences: &Occurrences,
        most: u64,
        mut step: impl FnMut(Step),
    ) -> Result<Self, DoesNotFit> {
        step(Step::Order);
        let rows = system.rows() as u64;
        let room = most.saturating_sub(FIXED_ROWS).max(1);
        let count = u32::try_from(rows.div_ceil(room)).unwrap_or(u32::MAX);
        let order = order(system, occurrences, count);
        step(Step::Cut);
        let cut = contiguous(system, occurrences, order, most)?;
        let plan = |cut: &Cut, moved| {
            let parts = parts(system, occurrences, cut, order, most);
            Self { most, order, moved, parts, cost: cut.cost(system, occurrences) }
        };
        step(Step::Types);
        let still = plan(&cut, false);
        step(Step::Moves);
        let improved = |mut cut: Cut| {
            improve(&mut cut, system, occurrences, most);
            cut.drop_empty();
            plan(&cut, true)
        };
        let mut best = improved(cut);
        if pays(&best.cost) {
            step(Step::Graph);
            let cut = graph(system, occurrences, &order.rows(system), most);
            let found = cut.map(improved).filter(|found| found.slots() < best.slots());
            best = found.unwrap_or(best);
        }
        // Equal parts share a key; rows that moved make them unequal.
        step(Step::Repeats);
        let repeating = repeating(system, occurrences, order, most);
        let others = repeating.iter().map(|cut| plan(cut, false)).chain([still]);
        // A type has a key, which is made, stored and read.
        let is_cheap = |other: &Self| {
            let more = other.slots().saturating_sub(best.slots());
            let few = 4 * other.parts.types.len() <= best.parts.types.len();
            let [part, of] = if few { FOR_FEW_TYPES } else { FOR_FEWER_TYPES };
            more * of <= rows * part
        };
        let others = others.filter(|other| is_cheap(other) && other.parts.largest() <= most);
        let fewest = others.min_by_key(|plan| (plan.parts.types.len(), plan.slots()));
        let fewer = fewest.filter(|other| other.parts.types.len() < best.parts.types.len());
        Ok(fewer.unwrap_or(best))
    }

    /// The number of slots of all parts, unused ones included.
    pub fn slots(&self) -> u64 {
        self.parts.slots()
    }

    /// The rows that the cut adds, as a fraction of the constraints.
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn added(&self) -> f64 {
        self.slots() as f64 / self.cost.rows.iter().sum::<u64>().max(1) as f64
    }

    /// About how many bytes the proving keys of all types take.
    pub fn key_bytes(&self) -> u64 {
        self.parts.types.iter().map(PartType::key_bytes).sum()
    }
}

impl PartType {
    /// About how many bytes its proving key takes: a point in G1 (96 bytes) for each variable, for
    /// each variable of A and for each place of the domain, a point in G2 (192 bytes) for each
    /// variable of B, and 8 bytes per term.
    pub fn key_bytes(&self) -> u64 {
        let (rows, slots) = (self.rows.lengths.len() as u64, u64::from(self.slots) + 2);
        let domain = (rows + slots + 1).next_power_of_two();
        let variables = self.slots as usize + self.own as usize + 1;
        let mut seen = vec![[false; 3]; variables];
        for (side, terms) in self.rows.iter().flat_map(|sides| sides.into_iter().enumerate()) {
            terms.iter().for_each(|[_, local]| seen[*local as usize][side] = true);
        }
        let count = |side: usize| seen.iter().filter(|seen| seen[side]).count() as u64;
        let (a, b) = (count(0) + 2 * slots, count(1) + slots);
        let own = u64::from(self.own) + 2 * slots;
        96 * (a + own + domain) + 192 * b + 8 * (self.rows.terms.len() as u64 + 6 * slots)
    }
}
