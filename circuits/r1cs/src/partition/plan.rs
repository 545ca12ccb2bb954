//! Makes parts of one size from a constraint system: tries all methods, and takes the best result.

use super::contiguous::contiguous_in;
use super::derive::{Derivation, derive, split_long};
use super::graph::{TRIES, graph, pays};
use super::order::Line;
use super::parts::parts_in;
use super::repeats::Repeats;
use super::{Cost, Cut, DoesNotFit, FIXED_ROWS, Occurrences, Order, PartType, Parts, improve};
use crate::numbers::limit;
use crate::system::System;
use std::collections::HashSet;
use std::sync::OnceLock;

/// The price that fewer types may have, as a fraction of the constraints: 2 in 100, and 5 in 100 for a
/// quarter of them.
const FOR_FEWER_TYPES: [u64; 2] = [2, 100];
const FOR_FEW_TYPES: [u64; 2] = [5, 100];

/// A partition, and how it was found.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The most rows of a part, slots and three more included.
    pub most: u64,
    /// The order in which rows were cut.
    pub order: Order,
    /// `true` if single rows were moved to other parts.
    pub moved: bool,
    /// The parts.
    pub parts: Parts,
    /// The cost of the parts.
    pub cost: Cost,
    /// The number of constraints of the source.
    source_rows: u64,
    /// The number of public wires.
    public: u64,
}

/// A step of [`Plan::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The order of constraints is chosen.
    Order,
    /// Boundaries, and constraints that repeat, are looked for.
    Cut,
    /// Single constraints are moved.
    Moves,
    /// Equal parts are looked for.
    Types,
    /// A graph partitioner looks for a better cut.
    Graph,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Order => "choosing an order of the constraints",
            Self::Cut => "cutting where few wires live and where constraints repeat",
            Self::Moves => "moving constraints to where their wires are",
            Self::Types => "looking for equal parts",
            Self::Graph => "looking for a better cut with METIS",
        })
    }
}

/// The time that proving takes for slots and for other rows, in tenths of a row of small values: a slot's
/// row has values of full size.
fn burden(slots: u64, rows: u64) -> u64 {
    36 * slots + 10 * rows
}

/// A system to cut, with what all sizes of parts have in common.
#[derive(Debug)]
pub(super) struct Cutter<'a> {
    pub(super) system: &'a System,
    pub(super) occurrences: &'a Occurrences,
    /// The number of constraints of the source, some of which may have been split.
    source_rows: u64,
    lines: [Line<'a>; 2],
    /// The repeats along each of them, found when they are needed.
    repeats: [OnceLock<Repeats>; 2],
}

/// The cuts of one size that are found without a look at single rows.
pub(super) struct Drafts<'a> {
    pub(super) most: u64,
    line: &'a Line<'a>,
    repeats: &'a Repeats,
    /// Contiguous parts.
    still: Cut,
    /// Parts along periods.
    repeating: Vec<Cut>,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(system: &'a System, occurrences: &'a Occurrences, source_rows: u64) -> Self {
        let line = |order| Line::new(system, order);
        let lines = std::thread::scope(|scope| {
            // Each size of parts chooses between the orders, and needs both for that.
            let other = scope.spawn(|| line(Order::LargestWire));
            let first = line(Order::Source);
            [first, other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))]
        });
        Self { system, occurrences, source_rows, lines, repeats: Default::default() }
    }

    /// The better order for parts of a size, by its place: the one with fewer live wires at the
    /// boundaries of equal parts.
    fn best_line(&self, most: u64) -> usize {
        let room = most.saturating_sub(FIXED_ROWS).max(1);
        let count = limit((self.system.rows() as u64).div_ceil(room));
        let [source, largest] = &self.lines;
        usize::from(largest.crossings(count) < source.crossings(count))
    }

    /// The first cuts of a size.
    pub(super) fn drafts(&self, most: u64) -> Result<Drafts<'_>, DoesNotFit> {
        let at = self.best_line(most);
        let line = &self.lines[at];
        let still = contiguous_in(line, self.occurrences, most)?;
        let repeats = self.repeats[at].get_or_init(|| Repeats::new(line));
        // One part has no boundaries to place.
        let repeating = match still.parts {
            1 => Vec::new(),
            _ => repeats.cuts(line, self.occurrences, most),
        };
        Ok(Drafts { most, line, repeats, still, repeating })
    }

    /// Turns the first cuts of a size into parts. The graph partitioner is tried at most `tries` times; the
    /// number of these is returned.
    pub(super) fn plan(
        &self,
        drafts: &Drafts<'_>,
        tries: usize,
        mut step: impl FnMut(Step),
    ) -> (Plan, usize) {
        let Self { system, occurrences, .. } = *self;
        let Drafts { most, line, still, .. } = drafts;
        let at = Size { cutter: self, line, most: *most };
        // Derived wires are tried before and after moves, which can take their chance away.
        let improved = |cut: &Cut| {
            let mut better = cut.clone();
            improve(&mut better, system, occurrences, *most);
            better.drop_empty();
            better
        };
        step(Step::Moves);
        let mut best = (improved(still), true);
        let cost = best.0.cost(system, occurrences);
        if cost.largest() > *most {
            // Public wires in no row have gone to a part that has no room for them.
            best = (still.clone(), false);
        }
        let mut lightest = at.lightest(&best.0).1;
        let mut tried = 0;
        if tries > 0 && pays(&cost) {
            step(Step::Graph);
            let found;
            (found, tried) = graph(system, occurrences, &line.rows, *most, tries);
            if let Some(cut) = found {
                for found in [(improved(&cut), true), (cut, false)] {
                    let fits = found.0.cost(system, occurrences).largest() <= *most;
                    let burden = at.lightest(&found.0).1;
                    if fits && burden < lightest {
                        (best, lightest) = (found, burden);
                    }
                }
            }
        }
        step(Step::Types);
        (self.fewer_types(drafts, at.plan(&best.0, best.1)), tried)
    }

    /// Returns a plan from the first cuts that has fewer types than this one, if it has few more rows, or this one. Equal
    /// parts share a key, and rows that moved make them unequal. A type has a key, which is made, stored and read.
    fn fewer_types(&self, drafts: &Drafts<'_>, moved: Plan) -> Plan {
        let Drafts { most, line, still, .. } = drafts;
        let at = Size { cutter: self, line, most: *most };
        let first = (moved.more_rows(), moved.parts.types.len());
        let is_cheap = |other: &Plan| {
            let more = other.more_rows().saturating_sub(first.0);
            let few = 4 * other.parts.types.len() <= first.1;
            let [part, of] = if few { FOR_FEW_TYPES } else { FOR_FEWER_TYPES };
            more * of <= self.source_rows * part
        };
        let mut best = moved;
        let key = |plan: &Plan| (plan.parts.types.len(), burden(plan.slots(), plan.parts.rows()));
        for cut in drafts.repeating.iter().chain([still]) {
            let kinds = drafts.kinds(cut).into_iter().collect::<HashSet<_>>().len();
            let [types, parts] = [&best.parts.types.len(), &(cut.parts as usize)];
            // Parts of other shapes are other types.
            if kinds > *types || (kinds == *types && kinds == *parts) {
                continue;
            }
            let other = at.plan(cut, false);
            let is_better = key(&other) < key(&best);
            if is_better && is_cheap(&other) && other.parts.largest() <= *most {
                best = other;
            }
        }
        best
    }
}

impl Drafts<'_> {
    /// The cuts.
    pub(super) fn cuts(&self) -> impl Iterator<Item = &Cut> {
        std::iter::once(&self.still).chain(&self.repeating)
    }

    /// A number for each part of a cut, the same for equal parts.
    pub(super) fn kinds(&self, cut: &Cut) -> Vec<u64> {
        self.repeats.kinds(self.line, cut)
    }
}

/// A size of parts, and the order in which they are cut.
struct Size<'a> {
    cutter: &'a Cutter<'a>,
    line: &'a Line<'a>,
    most: u64,
}

impl Size<'_> {
    /// The derived wires that make a cut lighter, if there are any, and about what proving it takes.
    fn lightest(&self, cut: &Cut) -> (Option<Derivation>, u64) {
        let Cutter { system, occurrences, .. } = self.cutter;
        let of = |cost: &Cost| burden(cost.occurrences(), cost.rows.iter().sum());
        let plain = of(&cut.cost(system, occurrences));
        let found = derive(system, occurrences, cut, &self.line.rows, self.most);
        let with_burden = found.and_then(|found| {
            let cost = found.cut.cost(&found.system, &found.occurrences);
            // Derived wires have rows of their own, which can be more than they save.
            (cost.largest() <= self.most && of(&cost) < plain).then(|| (Some(found), of(&cost)))
        });
        with_burden.unwrap_or((None, plain))
    }

    /// The parts of a cut, with derived wires if they make it lighter.
    fn plan(&self, cut: &Cut, moved: bool) -> Plan {
        let Self { cutter, line, most } = *self;
        let Cutter { system, occurrences, source_rows, .. } = *cutter;
        let (parts, cost) = match self.lightest(cut).0 {
            Some(found) => {
                let Derivation { system, occurrences, cut } = &found;
                let parts = parts_in(system, occurrences, cut, &found.rows(), most);
                (parts, cut.cost(system, occurrences))
            }
            None => {
                let parts = parts_in(system, occurrences, cut, &line.rows, most);
                (parts, cut.cost(system, occurrences))
            }
        };
        let public = line.system.public().into();
        Plan { most, order: line.order, moved, parts, cost, source_rows, public }
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
        let split = split_long(system, most).map(|system| (Occurrences::new(&system), system));
        let source_rows = system.rows() as u64;
        let (occurrences, system) = match &split {
            Some((occurrences, system)) => (occurrences, system),
            None => (occurrences, system),
        };
        step(Step::Order);
        let cutter = Cutter::new(system, occurrences, source_rows);
        step(Step::Cut);
        let drafts = cutter.drafts(most)?;
        Ok(cutter.plan(&drafts, TRIES, step).0)
    }

    /// All of a system in one part, which has room for it.
    pub(super) fn whole(system: &System, occurrences: &Occurrences, most: u64) -> Self {
        let (cut, order) = (Cut::whole(system), Order::Source);
        let parts = parts_in(system, occurrences, &cut, &order.rows(system), most);
        let cost = cut.cost(system, occurrences);
        let source_rows = system.rows() as u64;
        Self { most, order, moved: false, parts, cost, source_rows, public: system.public().into() }
    }

    /// The rows beyond those that a single part would have, with a slot for each public wire, as a
    /// fraction of these.
    #[allow(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub fn beyond_one_part(&self) -> f64 {
        let [all, one] = [self.slots() + self.parts.rows(), self.source_rows + self.public];
        all.saturating_sub(one) as f64 / one.max(1) as f64
    }

    /// The number of parts that the constraints and public wires need, if no other wire were shared.
    pub fn least_parts(&self) -> u64 {
        let room = self.most.saturating_sub(FIXED_ROWS).max(1);
        (self.source_rows + self.public).div_ceil(room)
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

    /// Returns about how many bytes the proving keys of all types take.
    pub fn key_bytes(&self) -> u64 {
        self.parts.types.iter().map(PartType::key_bytes).sum()
    }
}

impl PartType {
    /// Returns about how many bytes its proving key takes: a point in G1 (96 bytes) for each variable, for
    /// each variable of A and for each place of the domain, a point in G2 (192 bytes) for each
    /// variable of B, and 8 bytes per term.
    pub fn key_bytes(&self) -> u64 {
        let (rows, slots) = (self.rows.lengths.len() as u64, u64::from(self.slots) + 2);
        // An upper bound: the prover also has domains of 3 * 2^k.
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
