//! The state of an analysis, with what is known of each value, and the rules for single rows.

use super::bounds::{Finding, Interval, Term, examine};
use super::rows::{ONE, Rows, Uses};
use super::ties::{Function, Ties};
use ark_ff::{BigInteger, PrimeField};
use hashbrown::{HashMap, HashSet};
use std::cell::Cell;
use std::collections::BTreeMap;

/// The most unknowns of a row that the rules for integers look at: more than the bits of an element.
const WIDEST: usize = 512;

/// The number of times that an interval may shrink. Two rows may narrow each other's intervals by one at a time.
const SHRINKS: u8 = 64;

/// The reason why a value is determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The only unknown of a row in which it is linear.
    Linear,
    /// A double root of a row with one unknown, or the only value that two rows allow.
    Roots,
    /// A relation among bounded values that holds over the integers.
    Integers,
    /// A function of values that are determined.
    Function,
    /// Several linear rows together.
    Elimination,
    /// All other values contradict a row.
    Cases,
}

/// The state of an analysis.
#[derive(Clone, Debug)]
pub(super) struct State<'a, F: PrimeField> {
    pub(super) rows: &'a Rows<F>,
    pub(super) uses: &'a Uses,
    /// The witness.
    pub(super) values: &'a [F],
    /// For searches, a variable may be unknown for a time, although no row counts it.
    known: Vec<Cell<bool>>,
    /// Variables that a second witness does not change.
    held: HashSet<u32>,
    /// A row was too wide for the rules.
    cut_off: bool,
    /// The only other value that is possible, as a difference from the witness.
    other: HashMap<u32, F>,
    intervals: HashMap<u32, (Interval<F::BigInt>, u8)>,
    /// The occurrences of unknowns in the sides of each row.
    unknown: Vec<[u32; 3]>,
    /// The occurrences of unknowns that have neither another value nor an interval.
    bare: Vec<u32>,
    queue: Vec<u32>,
    queued: Vec<bool>,
    pub(super) reasons: BTreeMap<Rule, usize>,
    /// The number of times that more became known.
    progress: u64,
}

impl<'a, F: PrimeField> State<'a, F> {
    /// Begins with a witness that satisfies all rows, and the variables that are given.
    pub(super) fn new(
        rows: &'a Rows<F>,
        uses: &'a Uses,
        values: &'a [F],
        given: impl IntoIterator<Item = u32>,
    ) -> Self {
        let known = vec![Cell::new(false); values.len()];
        known[ONE as usize].set(true);
        given.into_iter().for_each(|variable| known[variable as usize].set(true));
        let is_unknown = |[variable, _]: &&[u32; 2]| !known[*variable as usize].get();
        let count = |row: usize, side: usize| {
            u32::try_from(rows.entries_of(row, side).iter().filter(is_unknown).count())
                .expect("`Rows::new` refuses more entries")
        };
        let unknown: Vec<[u32; 3]> =
            (0..rows.len()).map(|row| [0, 1, 2].map(|side| count(row, side))).collect();
        let bare = unknown.iter().map(|sides| sides.iter().sum()).collect();
        let all = u32::try_from(rows.len()).expect("`Rows::new` refuses more rows");
        Self {
            rows,
            uses,
            values,
            known,
            held: HashSet::new(),
            cut_off: false,
            other: HashMap::new(),
            intervals: HashMap::new(),
            unknown,
            bare,
            queue: (0..all).rev().collect(),
            queued: vec![true; rows.len()],
            reasons: BTreeMap::new(),
            progress: 0,
        }
    }

    /// Takes note of constraints that are not rows.
    pub(super) fn set_ties(&mut self, ties: &Ties<F>) {
        self.held = ties.held.iter().copied().collect();
        for (variable, bits) in &ties.ranges {
            // Such a range cannot wrap around: its reach is below the modulus.
            if *bits >= F::MODULUS_BIT_SIZE.min(64) {
                continue;
            }
            let (value, largest) = (self.value(*variable).into_bigint(), (1_u64 << bits) - 1);
            let mut above = F::BigInt::from(largest);
            // A value outside of its range is not a witness, and says nothing.
            if value <= above {
                above.sub_with_borrow(&value);
                self.set_interval(*variable, Interval { below: value, above });
            }
        }
    }

    /// Applies functions whose arguments are known. Returns whether that determined or bounded a value.
    pub(super) fn apply(&mut self, functions: &[Function<F>]) -> bool {
        let before = self.progress;
        for Function { arguments, value } in functions {
            if arguments.iter().all(|argument| self.is_known(*argument)) {
                let mut unknown: Vec<(u32, F)> =
                    value.iter().copied().filter(|(v, _)| !self.is_known(*v)).collect();
                merge(&mut unknown);
                if !unknown.is_empty() {
                    self.relation(&unknown, Rule::Function);
                }
            }
        }
        self.progress != before
    }

    /// Reports whether a second witness must not change a variable.
    pub(super) fn is_held(&self, variable: u32) -> bool {
        self.held.contains(&variable)
    }

    /// Reports whether a row was too wide for the rules.
    pub(super) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Lets searches change a given variable, until it is fixed again. Rules do not count it, so none may run meanwhile.
    pub(super) fn release(&self, variable: u32) {
        self.known[variable as usize].set(false);
    }

    pub(super) fn fix(&self, variable: u32) {
        self.known[variable as usize].set(true);
    }

    /// A number that rises whenever more becomes known.
    pub(super) fn progress(&self) -> u64 {
        self.progress
    }

    pub(super) fn value(&self, variable: u32) -> F {
        self.values[variable as usize]
    }

    pub(super) fn is_known(&self, variable: u32) -> bool {
        self.known[variable as usize].get()
    }

    /// The variables that are not determined, in ascending order.
    #[allow(clippy::cast_possible_truncation, reason = "`Rows::new` refuses more variables")]
    pub(super) fn unknown_variables(&self) -> impl Iterator<Item = u32> {
        (0..self.known.len() as u32).filter(|variable| !self.is_known(*variable))
    }

    /// The only other value that a variable may have, if there is one.
    pub(super) fn other(&self, variable: u32) -> Option<F> {
        self.other.get(&variable).map(|step| self.value(variable) + step)
    }

    /// Reports whether a variable is 0 or 1, and not known to be one of them.
    pub(super) fn is_bit(&self, variable: u32) -> bool {
        let value = self.value(variable);
        self.other(variable).is_some_and(|other| {
            (value.is_zero() && other.is_one()) || (value.is_one() && other.is_zero())
        })
    }

    /// Reports whether rules allow a value.
    pub(super) fn allows(&self, variable: u32, value: F) -> bool {
        let difference = value - self.value(variable);
        match (self.is_known(variable), self.other.get(&variable), self.intervals.get(&variable)) {
            (true, ..) => difference.is_zero(),
            (false, Some(step), _) => difference.is_zero() || difference == *step,
            (false, None, Some((interval, _))) => interval.has(difference),
            (false, None, None) => true,
        }
    }

    /// The unknown variables that have one other value, in ascending order.
    pub(super) fn with_other(&self) -> Vec<u32> {
        let mut all: Vec<u32> = self.other.keys().copied().collect();
        all.sort_unstable();
        all
    }

    fn is_bounded(&self, variable: u32) -> bool {
        self.other.contains_key(&variable) || self.intervals.contains_key(&variable)
    }

    pub(super) fn learn(&mut self, variable: u32, rule: Rule) {
        if self.known[variable as usize].replace(true) {
            return;
        }
        self.progress += 1;
        *self.reasons.entry(rule).or_default() += 1;
        let bare = !self.is_bounded(variable);
        self.other.remove(&variable);
        self.intervals.remove(&variable);
        let uses = self.uses;
        for (row, side) in uses.of(variable) {
            self.unknown[row][side] -= 1;
            self.bare[row] -= u32::from(bare);
            self.enqueue(row);
        }
    }

    #[allow(clippy::cast_possible_truncation, reason = "`Rows::new` refuses more rows")]
    fn enqueue(&mut self, row: usize) {
        if !std::mem::replace(&mut self.queued[row], true) {
            self.queue.push(row as u32);
        }
    }

    /// Notes that a variable has bounds; `first` if it had none.
    fn bounded(&mut self, variable: u32, first: bool) {
        let uses = self.uses;
        for (row, _) in uses.of(variable) {
            self.bare[row] -= u32::from(first);
            self.enqueue(row);
        }
    }

    /// Notes that a variable has its value in the witness, or differs by this much.
    fn set_other(&mut self, variable: u32, step: F) {
        if self.is_known(variable) {
            return;
        }
        let outside = |(interval, _): &(Interval<F::BigInt>, u8)| !interval.has(step);
        let is_new = match self.other.get(&variable) {
            // Both are right, so neither other value is possible.
            Some(known) if *known != step => return self.learn(variable, Rule::Roots),
            Some(_) => return,
            None => !self.intervals.contains_key(&variable),
        };
        if step.is_zero() || self.intervals.get(&variable).is_some_and(outside) {
            return self.learn(variable, Rule::Roots);
        }
        self.progress += 1;
        self.other.insert(variable, step);
        self.bounded(variable, is_new);
    }

    /// Notes that a variable's difference is in an interval, which is smaller than the one that was known.
    fn set_interval(&mut self, variable: u32, interval: Interval<F::BigInt>) {
        if self.is_known(variable) {
            return;
        }
        let outside = |step: &F| !interval.has(*step);
        if interval.is_zero() || self.other.get(&variable).is_some_and(outside) {
            return self.learn(variable, Rule::Integers);
        }
        let is_new = !self.is_bounded(variable);
        let (known, shrinks) = self.intervals.entry(variable).or_insert((interval, 0));
        if *shrinks < SHRINKS {
            (*known, *shrinks) = (interval, *shrinks + 1);
            self.progress += 1;
            self.bounded(variable, is_new);
        }
    }

    /// Applies the rules for single rows until none of them says more.
    pub(super) fn run(&mut self) {
        while let Some(row) = self.queue.pop() {
            let row = row as usize;
            self.queued[row] = false;
            self.look(row);
        }
    }

    /// Applies the rules to one row.
    fn look(&mut self, row: usize) {
        let [a, b, c] = self.unknown[row];
        match (a, b) {
            (0, 0) if c == 0 => {}
            // Before the terms are collected, which each of many unknowns would cause.
            (0, _) | (_, 0) if (a + b + c) as usize > WIDEST => self.cut_off = true,
            (0, _) | (_, 0) if self.bare[row] <= 1 || self.factor(row).is_zero() => {
                let terms = self.linear(row);
                self.relation(&terms, Rule::Integers);
            }
            (1, 1) if c <= 1 => self.roots(row),
            _ => {}
        }
    }

    /// The value of the known one of A and B, by which the unknowns of the other one are multiplied; 1 if both are known.
    fn factor(&self, row: usize) -> F {
        let value = |side| self.rows.value(row, side, |variable| self.value(variable));
        match self.unknown[row] {
            [0, 0, _] => F::ONE,
            [0, ..] => value(0),
            _ => value(1),
        }
    }

    /// The factors of differences in a row that is linear in what is unknown: `sum factor d = 0`. Factors of zero are left out.
    pub(super) fn linear(&self, row: usize) -> Vec<(u32, F)> {
        let factor = self.factor(row);
        let unknown = |side| self.rows.terms(row, side).filter(|(v, _)| !self.is_known(*v));
        let mut terms: Vec<(u32, F)> =
            unknown(0).chain(unknown(1)).map(|(v, k)| (v, factor * k)).collect();
        terms.extend(unknown(2).map(|(v, k)| (v, -k)));
        // A known factor of zero leaves C alone.
        merge(&mut terms);
        terms
    }

    /// Reports whether a row is linear in what is unknown, and has unknowns.
    pub(super) fn is_linear(&self, row: usize) -> bool {
        let [a, b, c] = self.unknown[row];
        (a == 0 || b == 0) && a + b + c > 0
    }

    /// Applies the rules for a relation `sum factor d = 0`. Factors are not zero.
    pub(super) fn relation(&mut self, relation: &[(u32, F)], rule: Rule) {
        if let [(variable, _)] = relation {
            let single = if rule == Rule::Integers { Rule::Linear } else { rule };
            return self.learn(*variable, single);
        }
        if relation.len() > WIDEST {
            return;
        }
        let mut bare = 0;
        let terms: Vec<Term<F>> = relation
            .iter()
            .map_while(|(variable, factor)| {
                let term = self.term(*variable, *factor);
                bare += usize::from(term.interval.is_none());
                (bare < 2).then_some(term)
            })
            .collect();
        if bare > 1 {
            return;
        }
        match examine(&terms) {
            Finding::Determined => terms.iter().for_each(|term| self.learn(term.variable, rule)),
            Finding::Intervals(found) => {
                for (at, interval) in found {
                    let variable = terms[at].variable;
                    match self.other.contains_key(&variable) {
                        // Its multiple of the step is 0 or 1.
                        true if interval.is_zero() => self.learn(variable, rule),
                        true => {}
                        false => self.set_interval(variable, interval),
                    }
                }
            }
            Finding::Nothing => {}
        }
    }

    fn term(&self, variable: u32, factor: F) -> Term<F> {
        match (self.other.get(&variable), self.intervals.get(&variable)) {
            (Some(step), _) => {
                Term { variable, factor: factor * step, interval: Some(Interval::unit()) }
            }
            (None, found) => {
                Term { variable, factor, interval: found.map(|(interval, _)| *interval) }
            }
        }
    }

    /// A row with one unknown in A and in B: `(A + a d) (B + b d) = C + c d` with the values A, B and C of the witness, so that d is
    /// zero or `(c - a B - b A) / (a b)`.
    fn roots(&mut self, row: usize) {
        let unknown = |side| self.rows.terms(row, side).find(|(v, _)| !self.is_known(*v));
        let (Some((variable, a)), Some((second, b))) = (unknown(0), unknown(1)) else { return };
        let c = match unknown(2) {
            Some((third, c)) if third == variable => c,
            Some(_) => return,
            None => F::ZERO,
        };
        if second != variable {
            return;
        }
        let value = |side| self.rows.value(row, side, |variable| self.value(variable));
        let linear = c - a * value(1) - b * value(0);
        // In the row of a bit the product is 1, and an inverse takes more time than all else here.
        let product = a * b;
        let step = match product.is_one() {
            true => linear,
            false => linear / product,
        };
        self.set_other(variable, step);
    }
}

/// Sorts terms by variable, adds up those of the same one, and leaves out zeros.
pub(super) fn merge<F: PrimeField>(terms: &mut Vec<(u32, F)>) {
    if !terms.is_sorted_by(|left, right| left.0 < right.0) {
        terms.sort_unstable_by_key(|(variable, _)| *variable);
        terms.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
    }
    terms.retain(|(_, factor)| !factor.is_zero());
}
