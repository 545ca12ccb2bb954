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

/// What proving takes for slots and for other rows, in tenths of a row of small values: a slot's row
/// has values of full size.
fn burden(slots: u64, rows: u64) -> u64 {
    36 * slots + 10 * rows
}

/// What plans are of.
struct Cutter<'a> {
    system: &'a System,
    occurrences: &'a Occurrences,
    order: Order,
    rows: Vec<u32>,
    most: u64,
    source_rows: u64,
}

impl Cutter<'_> {
    /// The derived wires that make a cut lighter, if there are any, and about what proving it takes.
    fn lightest(&self, cut: &Cut) -> (Option<Derivation>, u64) {
        let of = |cost: &Cost| burden(cost.occurrences(), cost.rows.iter().sum());
        let plain = of(&cut.cost(self.system, self.occurrences));
        let found = derive(self.system, self.occurrences, cut, &self.rows, self.most);
        let with_burden = found.and_then(|found| {
            let cost = found.cut.cost(&found.system, &found.occurrences);
            (cost.largest() <= self.most && of(&cost) < plain).then(|| (Some(found), of(&cost)))
        });
        with_burden.unwrap_or((None, plain))
    }

    /// The parts of a cut, with derived wires if they make it lighter.
    fn plan(&self, cut: &Cut, moved: bool) -> Plan {
        let Self { most, order, source_rows, .. } = *self;
        let (found, _) = self.lightest(cut);
        let (parts, cost) = match found {
            Some(found) => {
                let Derivation { system, occurrences, cut } = &found;
                let parts = parts_in(system, occurrences, cut, &found.rows(), most);
                (parts, cut.cost(system, occurrences))
            }
            None => {
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
        let split = split_long(system, most).map(|system| (Occurrences::new(&system), system));
        let (occurrences, system) = match &split {
            Some((occurrences, system)) => (occurrences, system),
            None => (occurrences, system),
        };
        step(Step::Order);
        let rows = system.rows() as u64;
        let room = most.saturating_sub(FIXED_ROWS).max(1);
        let count = u32::try_from(rows.div_ceil(room)).unwrap_or(u32::MAX);
        let order = order(system, occurrences, count);
        let in_order = order.rows(system);
        let cutter = Cutter { system, occurrences, order, rows: in_order, most, source_rows };
        step(Step::Cut);
        let still = contiguous(system, occurrences, order, most)?;
        step(Step::Moves);
        // Derived wires are tried before and after moves, which can take their chance away.
        let improved = |cut: &Cut| {
            let mut cut = cut.clone();
            improve(&mut cut, system, occurrences, most);
            cut.drop_empty();
            cut
        };
        let mut best = (improved(&still), true);
        let mut lightest = cutter.lightest(&best.0).1;
        if pays(&best.0.cost(system, occurrences)) {
            step(Step::Graph);
            if let Some(cut) = graph(system, occurrences, &cutter.rows, most) {
                for found in [(improved(&cut), true), (cut, false)] {
                    let burden = cutter.lightest(&found.0).1;
                    if burden < lightest {
                        (best, lightest) = (found, burden);
                    }
                }
            }
        }
        step(Step::Types);
        let mut best = cutter.plan(&best.0, best.1);
        // Equal parts share a key, and rows that moved make them unequal. A type has a key, which is
        // made, stored and read.
        step(Step::Repeats);
        let first = (best.more_rows(), best.parts.types.len());
        let is_cheap = |other: &Self| {
            let more = other.more_rows().saturating_sub(first.0);
            let few = 4 * other.parts.types.len() <= first.1;
            let [part, of] = if few { FOR_FEW_TYPES } else { FOR_FEWER_TYPES };
            more * of <= rows * part
        };
        let key = |plan: &Self| (plan.parts.types.len(), burden(plan.slots(), plan.parts.rows()));
        for cut in repeating(system, occurrences, order, most).into_iter().chain([still]) {
            let other = cutter.plan(&cut, false);
            let is_better = key(&other) < key(&best);
            if is_better && is_cheap(&other) && other.parts.largest() <= most {
                best = other;
            }
        }
        Ok(best)
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
