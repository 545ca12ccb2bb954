//! Verdicts on the values of a witness: do they follow from the inputs?
//!
//! Most faults of circuits are values that no constraint ties: the proof is right, and the statement is not what the author meant.
//! With a witness at hand, most of that question is linear algebra. [`analyze`] says of each value, given the inputs, at this witness:
//!
//! - **determined**: it follows by rules, each of which has its argument where it is implemented: [`state`] for single rows, [`bounds`]
//!   for relations over the integers, [`eliminate`] for several linear rows, and [`cases`] for case splits;
//! - **free**: there is a second witness with the same inputs in which it differs ([`second`]), which was checked, so this is a proof;
//! - **undecided**: neither.
//!
//! Nothing is said about other inputs, which may take other branches, or about whether constraints mean what their author thinks.

mod bounds;
mod cases;
mod eliminate;
mod rows;
mod second;
mod state;
#[cfg(test)]
mod tests;
mod ties;

pub use rows::{ONE, Rows, TooManyRows};
pub use state::Rule;
pub use ties::{Function, Ties};

use ark_ff::PrimeField;
use cases::World;
use hashbrown::HashMap;
use hekaton_arith::Fr;
use rows::Uses;
use second::STRATEGIES;
use state::State;
use std::collections::{BTreeMap, BTreeSet};

/// The most rounds of eliminations and case splits. Each follows from what the one before has found.
const ROUNDS: usize = 64;

/// The terms that all searches for second witnesses may look at.
const STEPS: usize = 20_000_000;

/// The most variables that are changed in searches for second witnesses.
const SEEDS: usize = 1_000;

/// The number of variables in a row without a second witness after which the search ends.
const FAILURES: usize = 200;

/// The most numbers whose other bits are tried in searches.
const NUMBERS: usize = 1_000;

/// A witness, and what is given.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a, F> {
    /// The constraints.
    pub rows: &'a Rows<F>,
    /// The value of each variable.
    pub values: &'a [F],
    /// The variables that are given: inputs.
    pub given: &'a [u32],
    /// The variables whose values matter.
    pub outputs: &'a [u32],
    /// The constraints on variables in addition to rows.
    pub ties: &'a Ties<F>,
}

/// The verdicts on all values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<F> {
    /// Variables that differ in a second witness, with a value that they have in one, in ascending order.
    pub free: BTreeMap<u32, F>,
    /// Variables that are neither determined nor known to be free, in ascending order.
    pub undecided: BTreeSet<u32>,
    /// All values that differ in a second witness: one in which an output differs, if there is one.
    pub second: Option<BTreeMap<u32, F>>,
    /// The number of variables that each rule determined.
    pub rules: BTreeMap<Rule, usize>,
    /// `true` if a rule was cut off, which might decide more.
    pub cut_off: bool,
}

/// A value that differs in a second witness.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeValue {
    /// Its name.
    pub name: String,
    /// `true` if it is an output.
    pub is_output: bool,
    /// The value in the witness.
    pub value: Fr,
    /// The value in the second witness.
    pub other: Fr,
}

/// The verdicts on the values of a witness, with their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdicts {
    /// The number of outputs.
    pub outputs: usize,
    /// The number of other values that are not given.
    pub others: usize,
    /// Values that differ in a second witness, outputs first.
    pub free: Vec<FreeValue>,
    /// The names of values that are neither determined nor known to be free, with `true` for outputs, which are first.
    pub undecided: Vec<(String, bool)>,
    /// `true` if a rule was cut off, which might decide more.
    pub cut_off: bool,
}

impl Verdicts {
    /// Names the values of an answer, of which `others` are neither outputs nor given.
    pub fn new(
        answer: &Answer<Fr>,
        values: &[Fr],
        outputs: &[u32],
        others: usize,
        name: impl Fn(u32) -> String,
    ) -> Self {
        let all: BTreeSet<u32> = outputs.iter().copied().collect();
        let mut free: Vec<FreeValue> = (answer.free.iter())
            .map(|(variable, other)| FreeValue {
                name: name(*variable),
                is_output: all.contains(variable),
                value: values[*variable as usize],
                other: *other,
            })
            .collect();
        free.sort_by_key(|value| !value.is_output);
        let named = |variable: &u32| (name(*variable), all.contains(variable));
        let mut undecided: Vec<(String, bool)> = answer.undecided.iter().map(named).collect();
        undecided.sort_by_key(|(_, is_output)| !is_output);
        let (outputs, cut_off) = (all.len(), answer.cut_off);
        Self { outputs, others, free, undecided, cut_off }
    }

    /// The number of free values that are outputs, and of those that are not.
    pub fn free_counts(&self) -> [usize; 2] {
        let outputs = self.free.iter().filter(|value| value.is_output).count();
        [outputs, self.free.len() - outputs]
    }

    /// The number of undecided values that are outputs, and of those that are not.
    pub fn undecided_counts(&self) -> [usize; 2] {
        let outputs = self.undecided.iter().filter(|(_, is_output)| *is_output).count();
        [outputs, self.undecided.len() - outputs]
    }
}

/// A row that the values do not satisfy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the values do not satisfy row {0}")]
pub struct FalseRow(pub usize);

/// Says what follows from what is given, at a witness.
///
/// # Errors
/// If the values are not a witness.
///
/// # Panics
/// If a row, `given` or `outputs` have a variable that has no value.
pub fn analyze<F: PrimeField>(question: &Question<'_, F>) -> Result<Answer<F>, FalseRow> {
    let Question { rows, values, given, outputs, ties } = *question;
    assert!(rows.variables() as usize <= values.len(), "all variables have values");
    if let Some(row) = rows.first_false(values) {
        return Err(FalseRow(row));
    }
    let uses = Uses::new(rows, values.len());
    let mut state = State::new(rows, &uses, values, given.iter().copied());
    state.set_ties(ties);
    let (mut cut_off, mut work) = (false, eliminate::WORK);
    for round in 0..=ROUNDS {
        state.run();
        while state.apply(&ties.functions) {
            state.run();
        }
        cut_off = false;
        if state.unknown_variables().next().is_none() {
            break;
        }
        let eliminated = eliminate::eliminate(&mut state, &mut work);
        cut_off = eliminated.cut_off || state.is_cut_off() || round == ROUNDS;
        if !eliminated.progress && !cases::split(&mut state) {
            break;
        }
    }
    let mut found = Found { free: BTreeMap::new(), second: None };
    found.search(&state, outputs);
    let undecided = state.unknown_variables().filter(|v| !found.free.contains_key(v)).collect();
    let Found { free, second } = found;
    let second = second.map(|(_, changes)| changes);
    Ok(Answer { free, undecided, second, rules: state.reasons, cut_off })
}

/// The work of a search for a witness with another input.
const EFFECT_STEPS: usize = 20_000;

/// The given variables among `inputs` without an effect on outputs at a witness: each can have three other values, a neighbor, another
/// bit and a large one, with the same outputs and other given values.
pub fn without_effect<F: PrimeField>(question: &Question<'_, F>, inputs: &[u32]) -> Vec<u32> {
    let Question { rows, values, given, outputs, ties } = *question;
    let uses = Uses::new(rows, values.len());
    let fixed = given.iter().chain(outputs).copied();
    let mut state = State::new(rows, &uses, values, fixed);
    state.set_ties(ties);
    let has_none = |input: &u32| {
        let value = values[*input as usize];
        let bit = if value.is_one() { F::ZERO } else { F::ONE };
        let changes = [value + F::ONE, bit, value + F::from(u128::MAX)];
        state.release(*input);
        let is_possible = |other: &F| {
            let (seeds, mut steps) = (World::from([(*input, *other)]), EFFECT_STEPS);
            second::search(&state, &seeds, STRATEGIES[0], &mut steps).is_some()
        };
        let has_none = changes.iter().all(is_possible);
        state.fix(*input);
        has_none
    };
    inputs.iter().copied().filter(has_none).collect()
}

/// The findings of searches.
struct Found<F> {
    free: BTreeMap<u32, F>,
    /// A second witness, and whether an output differs in it.
    second: Option<(bool, BTreeMap<u32, F>)>,
}

impl<F: PrimeField> Found<F> {
    /// Looks for second witnesses in which unknowns differ, outputs first.
    fn search(&mut self, state: &State<'_, F>, outputs: &[u32]) {
        let (mut steps, mut failures) = (STEPS, 0);
        let is_output: BTreeSet<u32> = outputs.iter().copied().collect();
        let mut inner: Vec<u32> =
            state.unknown_variables().filter(|v| !is_output.contains(v)).collect();
        inner.sort_by_key(|variable| state.uses.count(*variable));
        let unknown_outputs = outputs.iter().copied().filter(|v| !state.is_known(*v));
        let seeds: Vec<u32> = unknown_outputs.chain(inner).take(SEEDS).collect();
        for variable in seeds {
            if self.free.contains_key(&variable) {
                continue;
            }
            let value = state.value(variable);
            let others = match state.other(variable) {
                Some(other) => vec![other],
                None => vec![value + F::ONE, value - F::ONE, F::ZERO, F::ONE],
            };
            // Other repairs are for what matters most.
            let most = if is_output.contains(&variable) { STRATEGIES.len() } else { 2 };
            let attempts = others
                .iter()
                .flat_map(|other| STRATEGIES[..most].iter().map(move |strategy| (other, strategy)));
            for (other, strategy) in attempts {
                if *other == value || self.free.contains_key(&variable) {
                    continue;
                }
                let seeds = World::from([(variable, *other)]);
                if let Some(world) = second::search(state, &seeds, *strategy, &mut steps) {
                    self.note(state, world, &is_output);
                }
            }
            failures = if self.free.contains_key(&variable) { 0 } else { failures + 1 };
            if failures == FAILURES {
                break;
            }
        }
        for case in cases::numbers(state).into_iter().flatten().take(NUMBERS) {
            let changed = case.into_iter().filter(|(v, value)| *value != state.value(*v));
            let seeds: World<F> = changed.collect();
            if let Some(world) = second::search(state, &seeds, STRATEGIES[0], &mut steps) {
                self.note(state, world, &is_output);
            }
        }
    }

    /// Notes a second witness.
    fn note(&mut self, state: &State<'_, F>, world: HashMap<u32, F>, outputs: &BTreeSet<u32>) {
        let changed = world.into_iter().filter(|(v, value)| *value != state.value(*v));
        let changes: BTreeMap<u32, F> = changed.collect();
        for (variable, value) in &changes {
            self.free.entry(*variable).or_insert(*value);
        }
        let reaches = changes.keys().any(|variable| outputs.contains(variable));
        let is_better = self.second.as_ref().is_none_or(|(known, _)| reaches && !known);
        if is_better {
            self.second = Some((reaches, changes));
        }
    }
}
