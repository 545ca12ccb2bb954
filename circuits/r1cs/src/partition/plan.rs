//! From a constraint system to parts: tries what there is, and takes the best.

use super::derive::{Derivation, derive, split_long};
use super::graph::{graph, pays};
use super::parts::parts_in;
use super::repeats::repeating;
use super::{Cost, Cut, DoesNotFit, FIXED_ROWS, Occurrences, Order, PartType, Parts};
use super::{contiguous, improve, order};
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
    /// The number of constraints of the source.
    source_rows: u64,
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

/// A cut, perhaps with derived wires, before parts are made of it.
struct Candidate {
    cut: Cut,
    derivation: Option<Derivation>,
    moved: bool,
    /// About how much longer than its constraints it takes to prove, in tenths of a row.
    burden: u64,
}

/// What proving takes for slots and for other rows, in tenths of a row of small values: a slot's row
/// has values of full size.
fn burden(slots: u64, rows: u64) -> u64 {
    36 * slots + 10 * rows
}

/// The lighter one of two candidates, the first if they are equal.
fn lighter(a: Candidate, b: Candidate) -> Candidate {
    if b.burden < a.burden { b } else { a }
}

/// What candidates are of.
struct Cutter<'a> {
    system: &'a System,
    occurrences: &'a Occurrences,
    order: Order,
    rows: Vec<u32>,
    most: u64,
}

impl Cutter<'_> {
    fn candidate(&self, cut: Cut, moved: bool) -> Candidate {
        let plain = cut.cost(self.system, self.occurrences);
        let plain = burden(plain.occurrences(), plain.rows.iter().sum());
        let derivation = derive(self.system, self.occurrences, &cut, &self.rows, self.most);
        let cost = |found: &Derivation| {
            let cost = found.cut.cost(&found.system, &found.occurrences);
            (cost.largest() <= self.most)
                .then(|| burden(cost.occurrences(), cost.rows.iter().sum()))
        };
        let found = derivation.as_ref().and_then(cost).filter(|burden| *burden < plain);
        let derivation = derivation.filter(|_| found.is_some());
        Candidate { cut, derivation, moved, burden: found.unwrap_or(plain) }
    }

    fn plan(&self, candidate: &Candidate) -> Plan {
        let (most, order, moved) = (self.most, self.order, candidate.moved);
        let source_rows = self.system.rows() as u64;
        let (parts, cost) = match &candidate.derivation {
            Some(found) => {
                let Derivation { system, occurrences, cut } = found;
                let parts = parts_in(system, occurrences, cut, &found.rows(), most);
                (parts, cut.cost(system, occurrences))
            }
            None => {
                let Candidate { cut, .. } = candidate;
                let parts = parts_in(self.system, self.occurrences, cut, &self.rows, most);
                (parts, cut.cost(self.system, self.occurrences))
            }
        };
        Plan { most, order, moved, parts, cost, source_rows }
    }
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
        let source_rows = system.rows() as u64;
        let split = split_long(system).map(|system| (Occurrences::new(&system), system));
        let (occurrences, system) = match &split {
            Some((occurrences, system)) => (occurrences, system),
            None => (occurrences, system),
        };
        step(Step::Order);
        let rows = system.rows() as u64;
        let room = most.saturating_sub(FIXED_ROWS).max(1);
        let count = u32::try_from(rows.div_ceil(room)).unwrap_or(u32::MAX);
        let order = order(system, occurrences, count);
        let cutter = Cutter { system, occurrences, order, rows: order.rows(system), most };
        step(Step::Cut);
        let cut = contiguous(system, occurrences, order, most)?;
        step(Step::Moves);
        // Derived wires are tried before and after moves, which can take their chance away.
        let improved = |cut: &Cut| {
            let mut cut = cut.clone();
            improve(&mut cut, system, occurrences, most);
            cut.drop_empty();
            cut
        };
        let moved = improved(&cut);
        let pays = pays(&moved.cost(system, occurrences));
        let still = cutter.candidate(cut, false);
        let mut best = cutter.candidate(moved, true);
        if pays {
            step(Step::Graph);
            if let Some(cut) = graph(system, occurrences, &cutter.rows, most) {
                let moved = cutter.candidate(improved(&cut), true);
                let found = [cutter.candidate(cut, false), moved];
                best = found.into_iter().fold(best, lighter);
            }
        }
        // Equal parts share a key; rows that moved make them unequal.
        step(Step::Repeats);
        let repeating = repeating(system, occurrences, order, most);
        let others = repeating.into_iter().map(|cut| cutter.candidate(cut, false));
        let others: Vec<Plan> =
            others.chain([still]).map(|candidate| cutter.plan(&candidate)).collect();
        step(Step::Types);
        let mut plans = vec![cutter.plan(&best)];
        plans.extend(others);
        plans.iter_mut().for_each(|plan| plan.source_rows = source_rows);
        let best = plans.remove(0);
        // A type has a key, which is made, stored and read.
        let is_cheap = |other: &Self| {
            let more = other.more_rows().saturating_sub(best.more_rows());
            let few = 4 * other.parts.types.len() <= best.parts.types.len();
            let [part, of] = if few { FOR_FEW_TYPES } else { FOR_FEWER_TYPES };
            more * of <= rows * part
        };
        let others =
            plans.into_iter().filter(|other| is_cheap(other) && other.parts.largest() <= most);
        let weight = |plan: &Self| burden(plan.slots(), plan.parts.rows());
        // Another plan of no more types is taken only if it is lighter.
        let fewest = others.min_by_key(|plan| (plan.parts.types.len(), weight(plan)));
        let key = |plan: &Self| (plan.parts.types.len(), weight(plan));
        let fewer = fewest.filter(|other| key(other) < key(&best));
        Ok(fewer.unwrap_or(best))
    }

    /// The number of slots of all parts, unused ones included.
    pub fn slots(&self) -> u64 {
        self.parts.slots()
    }

    /// The rows that the cut adds: slots, and those of derived wires.
    pub fn more_rows(&self) -> u64 {
        (self.slots() + self.parts.rows()).saturating_sub(self.source_rows)
    }

    /// The rows that the cut adds, as a fraction of the constraints.
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn added(&self) -> f64 {
        self.more_rows() as f64 / self.source_rows.max(1) as f64
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
        let (a, b) = (count(0) + slots, count(1) + 2 * slots);
        let own = u64::from(self.own) + 2 * slots;
        96 * (a + own + domain) + 192 * b + 8 * (self.rows.terms.len() as u64 + 6 * slots)
    }
}
