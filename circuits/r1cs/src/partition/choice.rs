//! The size of parts, chosen by what a run of them will cost.
//!
//! A cut takes time, and most sizes of parts are far from the best. So each size first gets a bound from
//! numbers alone, then those that can be best a quick cut, and the cheapest of these the whole search.
//! The costs come from the caller, who knows the prover; the same costs give the same choice on every machine.

use super::derive::{bit_of_row, split_long};
use super::graph::TRIES;
use super::plan::{Cutter, Drafts};
use super::{Cost, DoesNotFit, FIXED_ROWS, Occurrences, Parts, Plan, Step};
use crate::system::System;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The sizes of parts that are chosen from, as powers of two.
const SIZES: std::ops::RangeInclusive<u32> = 14..=20;
/// The largest parts that a prover takes, as a power of two. Sizes above [`SIZES`] are for circuits of
/// which smaller parts share nearly everything.
const LARGEST: u32 = 28;
/// A cut that adds more rows than this fraction of those of one part calls for such sizes.
const MANY: f64 = 0.25;
/// A choice that costs at most half more than the best is good enough to save the time for others.
const GOOD_ENOUGH: f64 = 1.5;
/// A search that can save less than 1 in 20 is left out.
const WORTH_A_SEARCH: f64 = 0.95;
/// The share of the proving time that looking for a cut may take.
const SHARE: f64 = 0.1;
/// Seconds that looking for a cut may take in any case.
const LEAST: f64 = 1.0;
/// Seconds per occurrence of a wire that a quick cut takes, a search without METIS, and METIS; measured
/// on an AMD EPYC (Zen 5).
const DRAFT: f64 = 50e-9;
const SEARCH: f64 = 150e-9;
const GRAPH: f64 = 700e-9;
/// The most slots per constraint of a cut that METIS is tried on.
const MOST_SHARED: f64 = 0.5;
/// The number of sizes that are cut at the same time, after the most promising one.
const AT_ONCE: usize = 4;

/// Equal parts, as costs are counted from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PartSizes {
    /// The number of these parts.
    pub parts: u64,
    /// Constraints, without the rows of slots.
    pub constraints: u64,
    /// Slots.
    pub slots: u64,
    /// Own variables.
    pub own: u64,
    /// Own variables of which a constraint says that they are 0 or 1.
    pub bits: u64,
    /// Own variables that occur in A.
    pub in_a: u64,
    /// Own variables that occur in B.
    pub in_b: u64,
    /// Terms of all constraints.
    pub terms: u64,
}

/// The price of parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// The price that the choice makes small, in seconds.
    pub seconds: f64,
    /// The processor time of proving, in seconds, on which the time for the search depends.
    pub proving: f64,
}

/// The depth to which a size of parts was followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Depth {
    /// Not cut, because even parts without any shared private wire would cost more than others.
    Bound,
    /// Cut where few wires live.
    Draft,
    /// Cut as well as is known.
    Plan,
}

/// A size of parts that was considered, with its parts as they are known.
#[derive(Clone, Debug)]
pub struct Considered {
    /// The most rows of a part.
    pub most: u64,
    /// The depth to which it was followed.
    pub depth: Depth,
    /// The parts, by type, or the reason why nothing fits.
    pub parts: Result<Vec<PartSizes>, DoesNotFit>,
    /// The price of the parts, in seconds.
    pub seconds: f64,
}

/// A chosen plan, and what it was chosen from.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The plan.
    pub plan: Plan,
    /// All sizes in ascending order, with that of the plan.
    pub considered: Vec<Considered>,
    /// The time that the search took, in seconds of a processor, estimated from its steps.
    pub seconds: f64,
}

/// The sizes of parts that are chosen from, for a system with this number of rows and public wires:
/// first those that any prover has the memory for, then larger ones.
fn sizes(rows: u64, public: u64) -> [Vec<u64>; 2] {
    let whole = (rows + public + FIXED_ROWS).next_power_of_two().max(1 << SIZES.start());
    let up_to_whole = |size: &u64| *size <= whole;
    let first = SIZES.map(|log| 1 << log).filter(up_to_whole).collect();
    let more = (SIZES.end() + 1..=LARGEST).map(|log| 1 << log).filter(up_to_whole).collect();
    [first, more]
}

/// Chooses the size of parts that costs least, and cuts a system into parts of that size.
///
/// # Errors
/// If no size has room for a constraint and its wires.
pub fn choose(
    system: &System,
    occurrences: &Occurrences,
    price: impl Fn(&[PartSizes]) -> Price + Sync,
    mut step: impl FnMut(Step),
) -> Result<Choice, DoesNotFit> {
    let means = Means::new(system, occurrences);
    let [first, more] = sizes(means.rows, means.public);
    let split = OnceLock::new();
    let made = OnceLock::new();
    let cutter = || {
        made.get_or_init(|| {
            let without_long = split.get_or_init(|| {
                let system = split_long(system, first[0])?;
                Some((Occurrences::new(&system), system))
            });
            let (occurrences, system) = match without_long {
                Some((occurrences, system)) => (occurrences, system),
                None => (occurrences, system),
            };
            Cutter::new(system, occurrences, means.rows)
        })
    };
    let mut choosing = Choosing {
        means: &means,
        price: &price,
        spent: 0.0,
        allowed: LEAST,
        considered: Vec::new(),
        best: None,
        problem: None,
    };
    // A system that fits into one part is not cut for it, and costs what its bound says.
    let one_part = first.iter().copied().find(|most| means.fits(*most));
    let whole_seconds = one_part.map(|most| price(&[means.ideal(most)]).seconds);
    choosing.among(&first, whole_seconds, cutter, &mut step);
    if let (Some(most), Some(seconds)) = (one_part, whole_seconds) {
        match choosing.best.as_ref().is_none_or(|(_, best)| seconds < best.seconds) {
            true => choosing.take(Plan::whole(system, occurrences, most)),
            false => choosing.considered(most, Depth::Bound, Ok(vec![means.ideal(most)]), seconds),
        }
    }
    let is_wasteful = |(plan, _): &(Plan, Price)| plan.beyond_one_part() > MANY;
    for size in more {
        if choosing.best.as_ref().is_none_or(is_wasteful) {
            match means.fits(size) {
                true => choosing.take(Plan::whole(system, occurrences, size)),
                false => choosing.among(&[size], None, cutter, &mut step),
            }
        }
    }
    choosing.finish()
}

/// The parts of a plan, as their price is counted from them.
pub fn part_sizes(system: &System, occurrences: &Occurrences, parts: &Parts) -> Vec<PartSizes> {
    Means::new(system, occurrences).of_parts(parts)
}

/// A system in one part, as its price is counted from it.
pub fn one_part(system: &System, occurrences: &Occurrences) -> PartSizes {
    Means::new(system, occurrences).ideal(u64::MAX)
}

/// A choice that is being made.
struct Choosing<'a, P> {
    means: &'a Means,
    price: &'a P,
    /// The seconds that the work so far takes, by the constants above: the same on every machine.
    spent: f64,
    /// The seconds that it may take.
    allowed: f64,
    considered: Vec<Considered>,
    best: Option<(Plan, Price)>,
    problem: Option<DoesNotFit>,
}

/// The quick cuts of a size, with the parts of the cheapest.
struct Draft<'a> {
    drafts: Drafts<'a>,
    bound: f64,
    parts: Vec<PartSizes>,
    seconds: f64,
}

impl<P> Choosing<'_, P> {
    /// Returns the best plan, or why there is none.
    fn finish(self) -> Result<Choice, DoesNotFit> {
        let Self { means, mut considered, best, problem, spent, .. } = self;
        considered.sort_by_key(|size| size.most);
        match (best, problem) {
            (Some((plan, _)), _) => Ok(Choice { plan, considered, seconds: spent }),
            (None, Some(problem)) => Err(problem),
            (None, None) => {
                let needed = means.rows + means.public + FIXED_ROWS;
                Err(DoesNotFit { most: 1 << LARGEST, number: 0, needed })
            }
        }
    }
}

impl<P: Fn(&[PartSizes]) -> Price + Sync> Choosing<'_, P> {
    /// Considers sizes of which several parts are needed, where one part costs `whole` seconds.
    fn among<'a>(
        &mut self,
        sizes: &[u64],
        whole: Option<f64>,
        cutter: impl Fn() -> &'a Cutter<'a>,
        step: &mut impl FnMut(Step),
    ) {
        let too_small = sizes.iter().copied().filter(|most| !self.means.fits(*most));
        let ideal = |most| {
            let parts = self.means.ideal(most);
            (most, parts, (self.price)(&[parts]))
        };
        let mut bounds: Vec<_> = too_small.map(ideal).collect();
        bounds.sort_by(|(_, _, a), (_, _, b)| a.seconds.total_cmp(&b.seconds));
        if let Some((_, _, cheapest)) = bounds.first() {
            self.allowed = (SHARE * cheapest.proving).max(LEAST);
        }
        let mut drafts: Vec<Draft<'a>> = Vec::new();
        let mut rest = bounds.as_slice();
        while let [(_, _, bound), ..] = rest {
            let drafted = drafts.iter().map(|draft| draft.seconds);
            if !self.is_worth(bound.seconds, self.least(drafted.chain(whole))) {
                break;
            }
            step(Step::Cut);
            // The most promising one alone: it may rule out all others.
            let left = (self.allowed - self.spent) / (DRAFT * self.means.occurrences);
            let at_once = (2..=AT_ONCE).take_while(|count| *count as f64 <= left).count() + 1;
            let many = if drafts.is_empty() { 1 } else { at_once.min(rest.len()) };
            let (now, later) = rest.split_at(many);
            rest = later;
            self.spent += DRAFT * self.means.occurrences * now.len() as f64;
            let found = self.drafts(now, cutter());
            drafts.extend(found);
        }
        for (most, parts, bound) in rest {
            self.considered(*most, Depth::Bound, Ok(vec![*parts]), bound.seconds);
        }
        drafts.sort_by(|a, b| a.seconds.total_cmp(&b.seconds));
        for Draft { drafts, bound, parts, seconds } in drafts {
            let best = self.least(whole);
            // A search is unlikely to save more than a third of what the quick cut costs.
            if seconds < best || (seconds < GOOD_ENOUGH * best && self.is_worth(bound, best)) {
                let tries = self.tries(&parts);
                self.spent += SEARCH * self.means.occurrences;
                let (plan, tried) = cutter().plan(&drafts, tries, &mut *step);
                self.spent += GRAPH * self.means.occurrences * tried as f64;
                self.take(plan);
            } else {
                self.considered(drafts.most, Depth::Draft, Ok(parts), seconds);
            }
        }
    }

    /// The least of these costs and that of the best plan; infinite before anything is known.
    fn least(&self, known: impl IntoIterator<Item = f64>) -> f64 {
        let best = self.best.iter().map(|(_, price)| price.seconds);
        best.chain(known).fold(f64::INFINITY, f64::min)
    }

    /// Reports whether a cut that costs at least `bound` is worth the time, given one that costs
    /// `known`.
    fn is_worth(&self, bound: f64, known: f64) -> bool {
        let is_late = self.spent > self.allowed;
        bound < known * if is_late { 1.0 / GOOD_ENOUGH } else { WORTH_A_SEARCH }
    }

    /// Returns how often METIS may be tried on a cut into these parts. Where most wires are shared it
    /// takes a hundred times longer, and finds nothing: with 200 rows of 2,000 terms anywhere, a minute.
    fn tries(&self, parts: &[PartSizes]) -> usize {
        let sum = |of: fn(&PartSizes) -> u64| parts.iter().map(|kind| kind.parts * of(kind)).sum();
        let (slots, rows): (u64, u64) = (sum(|kind| kind.slots), sum(|kind| kind.constraints));
        if slots as f64 > MOST_SHARED * rows as f64 {
            return 0;
        }
        let (left, each) = (self.allowed - self.spent, GRAPH * self.means.occurrences);
        (1..=TRIES).take_while(|tries| *tries as f64 * each <= left).count()
    }

    /// Makes quick cuts, at the same time.
    fn drafts<'a>(
        &mut self,
        sizes: &[(u64, PartSizes, Price)],
        cutter: &'a Cutter<'a>,
    ) -> Vec<Draft<'a>> {
        let (means, price) = (self.means, self.price);
        let draft = |most: u64, bound: f64| {
            let drafts = cutter.drafts(most)?;
            let priced = drafts.cuts().map(|cut| {
                let cost = cut.cost(cutter.system, cutter.occurrences);
                let parts = means.of_cut(&cost, &drafts.kinds(cut));
                let seconds = price(&parts).seconds;
                (parts, seconds)
            });
            let best = priced.min_by(|(_, a), (_, b)| a.total_cmp(b));
            let (parts, seconds) = best.expect("`cuts` begins with the contiguous one");
            Ok(Draft { drafts, bound, parts, seconds })
        };
        let found: Vec<(u64, Result<Draft<'a>, DoesNotFit>)> = std::thread::scope(|scope| {
            let make = &draft;
            let threads: Vec<_> = (sizes.iter())
                .map(|(most, _, bound)| (*most, scope.spawn(move || make(*most, bound.seconds))))
                .collect();
            let join = |(most, thread): (u64, std::thread::ScopedJoinHandle<'_, _>)| {
                (most, thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            };
            threads.into_iter().map(join).collect()
        });
        let mut drafts = Vec::new();
        for (most, found) in found {
            match found {
                Ok(draft) => drafts.push(draft),
                Err(problem) => {
                    self.problem = Some(problem);
                    self.considered(most, Depth::Draft, Err(problem), f64::INFINITY);
                }
            }
        }
        drafts
    }

    /// Takes a plan if it is the best so far.
    fn take(&mut self, plan: Plan) {
        let parts = self.means.of_parts(&plan.parts);
        let price = (self.price)(&parts);
        self.considered(plan.most, Depth::Plan, Ok(parts), price.seconds);
        if self.best.as_ref().is_none_or(|(_, best)| price.seconds < best.seconds) {
            self.best = Some((plan, price));
        }
    }

    fn considered(
        &mut self,
        most: u64,
        depth: Depth,
        parts: Result<Vec<PartSizes>, DoesNotFit>,
        seconds: f64,
    ) {
        self.considered.push(Considered { most, depth, parts, seconds });
    }
}

/// The averages per constraint of a system: enough for the costs of parts that are not made yet.
struct Means {
    rows: u64,
    public: u64,
    /// The number of pairs of a wire and a row in which it occurs.
    occurrences: f64,
    /// The averages per constraint: wires, bits, wires of A, wires of B, terms.
    wires: f64,
    bits: f64,
    in_a: f64,
    in_b: f64,
    terms: f64,
}

impl Means {
    fn new(system: &System, occurrences: &Occurrences) -> Self {
        let mut seen = vec![[false; 4]; system.wires() as usize];
        for row in 0..system.rows() {
            for (side, terms) in system.row(row).into_iter().enumerate() {
                terms.iter().for_each(|term| seen[term.wire as usize][side] = true);
            }
            if let Some(bit) = bit_of_row(system, row) {
                seen[bit as usize][3] = true;
            }
        }
        let count = |f: &dyn Fn(&[bool; 4]) -> bool| seen.iter().skip(1).filter(|s| f(s)).count();
        let rows = system.rows().max(1) as f64;
        let mean = |f: &dyn Fn(&[bool; 4]) -> bool| count(f) as f64 / rows;
        Self {
            rows: system.rows() as u64,
            public: system.public().into(),
            occurrences: occurrences.count() as f64,
            wires: mean(&|s| s[0] || s[1] || s[2]),
            bits: mean(&|s| s[3]),
            in_a: mean(&|s| s[0]),
            in_b: mean(&|s| s[1]),
            terms: system.terms() as f64 / rows,
        }
    }

    /// Reports whether everything fits into one part.
    fn fits(&self, most: u64) -> bool {
        self.rows + self.public + FIXED_ROWS <= most
    }

    /// Parts with this number of constraints and slots, and about as many variables as others.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts, of which fractions are dropped"
    )]
    fn sizes(&self, parts: u64, constraints: u64, slots: u64) -> PartSizes {
        let of = |mean: f64| (mean * constraints as f64) as u64;
        PartSizes {
            parts,
            constraints,
            slots,
            own: of(self.wires).saturating_sub(slots),
            bits: of(self.bits),
            in_a: of(self.in_a),
            in_b: of(self.in_b),
            terms: of(self.terms),
        }
    }

    /// Returns the fewest parts of a size that are possible, all equal.
    fn ideal(&self, most: u64) -> PartSizes {
        let parts = (self.rows + self.public).div_ceil(most.saturating_sub(FIXED_ROWS).max(1));
        self.sizes(parts, self.rows.div_ceil(parts), self.public.div_ceil(parts))
    }

    /// The parts of a cut, of which those with the same number are equal.
    fn of_cut(&self, cost: &Cost, kinds: &[u64]) -> Vec<PartSizes> {
        let mut types: BTreeMap<(u64, u64), (u64, u64)> = BTreeMap::new();
        for ((kind, rows), slots) in kinds.iter().zip(&cost.rows).zip(&cost.slots) {
            let (parts, most) = types.entry((*kind, *rows)).or_default();
            (*parts, *most) = (*parts + 1, (*most).max(*slots));
        }
        let sizes = |((_, rows), (parts, slots))| self.sizes(parts, rows, slots);
        types.into_iter().map(sizes).collect()
    }

    /// The parts of a plan.
    fn of_parts(&self, parts: &Parts) -> Vec<PartSizes> {
        let types = parts.types.iter().zip(parts.counts());
        let sizes = types.map(|(kind, count)| {
            let (rows, slots) = (kind.rows.lengths.len() as u64, u64::from(kind.slots));
            let terms = kind.rows.terms.len() as u64;
            PartSizes { own: kind.own.into(), terms, ..self.sizes(count as u64, rows, slots) }
        });
        sizes.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_go_up_to_that_of_everything() {
        assert_eq!(sizes(100, 20), [vec![1 << 14], vec![]]);
        assert_eq!(sizes((1 << 15) - 5, 2), [vec![1 << 14, 1 << 15], vec![]]);
        assert_eq!(sizes((1 << 15) - 5, 3), [vec![1 << 14, 1 << 15, 1 << 16], vec![]]);
        let [first, more] = sizes(3 << 20, 0);
        assert_eq!((first.len(), more), (7, vec![1 << 21, 1 << 22]));
        assert_eq!(sizes(1 << 40, 0)[1].last(), Some(&(1 << 28)));
    }
}
