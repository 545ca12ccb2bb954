//! The matrices of a constraint system, with symbolic linear combinations written out.
//!
//! arkworks keeps a linear combination that is used in others by reference. Its own inlining enters
//! every coefficient of every expanded combination into a hash table, and expands also those that
//! no constraint uses; for circuits with long rows that is most of the time that synthesis takes.

use crate::synthesis::matrix::{Matrices, MatrixBuilder, Row, TooLarge, make_canonical};
use ark_ff::One;
use ark_relations::gr1cs::{ConstraintSystem, R1CS_PREDICATE_LABEL, Variable};
use hekaton_arith::Fr;

/// The number of terms for which memory is allocated at once: 640 KiB, few enough to be freed soon.
const CHUNK: usize = 1 << 14;

/// The location of the terms of an expanded combination.
#[derive(Clone, Copy, Default)]
struct Span {
    chunk: usize,
    start: usize,
    len: usize,
}

/// The linear combinations of a constraint system.
struct Combinations<'a> {
    cs: &'a ConstraintSystem<Fr>,
    /// The number of instance variables, which come before the witness variables.
    instance: usize,
    /// The number of times that each is still needed, by constraints and by later combinations.
    uses: Vec<usize>,
    places: Vec<Span>,
    /// Terms of expanded combinations. Single allocations for each of them would leave the heap in
    /// fragments that the operating system does not get back.
    chunks: Vec<Row>,
    /// The number of combinations in each chunk that are still needed. A chunk without any is freed:
    /// combinations mostly refer to recent ones.
    needed: Vec<usize>,
    /// The combination that is being expanded.
    scratch: Row,
}

/// Returns the matrices A, B and C as canonical rows: variables in ascending order, each once, with
/// coefficients that are not zero. `None` if the system has no R1CS predicate, or a combination
/// refers to one that was made after it. Unlike arkworks' own, it needs no `finalize`.
///
/// # Errors
/// If a matrix has too many entries or variables.
pub fn matrices_of(cs: &ConstraintSystem<Fr>) -> Option<Result<Matrices, TooLarge>> {
    let constraints = cs.predicate_constraint_systems.get(R1CS_PREDICATE_LABEL)?.get_constraints();
    let mut combinations = Combinations::new(cs, constraints);
    let [a, b, c] = constraints.as_slice() else { return None };
    let mut builder = MatrixBuilder::new();
    let mut expanded = 0;
    for row in 0..a.len() {
        for (side, variables) in [a, b, c].into_iter().enumerate() {
            let variable = *variables.get(row)?;
            // No more than the row requires, so that few expanded combinations are in memory at a time.
            let required = variable.get_lc_index().map_or(0, |index| index + 1);
            (expanded..required).try_for_each(|index| combinations.expand(index))?;
            expanded = expanded.max(required);
            if let Err(error) = combinations.push(variable, side, &mut builder)? {
                return Some(Err(error));
            }
        }
    }
    Some(Ok(builder.finish()))
}

impl<'a> Combinations<'a> {
    fn new(cs: &'a ConstraintSystem<Fr>, constraints: &[Vec<Variable>]) -> Self {
        let len = cs.lc_map.num_lcs();
        let mut uses = vec![0; len];
        let count = |variable: &Variable, uses: &mut Vec<usize>| {
            if let Some(uses) = variable.get_lc_index().and_then(|index| uses.get_mut(index)) {
                *uses += 1;
            }
        };
        constraints.iter().flatten().for_each(|variable| count(variable, &mut uses));
        // From the last to the first: a combination that only unused ones refer to is unused, too.
        for index in (0..len).rev() {
            if uses[index] > 0 {
                let combination = cs.get_lc(Variable::symbolic_lc(index));
                combination.iter().for_each(|(_, variable)| count(variable, &mut uses));
            }
        }
        Self {
            cs,
            instance: cs.num_instance_variables(),
            uses,
            places: vec![Span::default(); len],
            chunks: Vec::new(),
            needed: Vec::new(),
            scratch: Row::new(),
        }
    }

    /// Adds the row of one side of a constraint.
    fn push(
        &mut self,
        variable: Variable,
        side: usize,
        builder: &mut MatrixBuilder,
    ) -> Option<Result<(), TooLarge>> {
        let Some(index) = variable.get_lc_index() else {
            let single = match variable.is_zero() {
                true => None,
                false => Some((Fr::one(), variable.get_variable_index(self.instance)?)),
            };
            return Some(builder.push(side, single.into_iter()));
        };
        self.uses.get(index)?;
        let pushed = builder.push(side, self.terms(index).iter().copied());
        self.used(index);
        Some(pushed)
    }

    /// The terms of an expanded combination.
    fn terms(&self, index: usize) -> &[(Fr, usize)] {
        let Span { chunk, start, len } = self.places[index];
        self.chunks.get(chunk).map_or(&[], |chunk| &chunk[start..start + len])
    }

    /// Notes that a combination was used, and frees its chunk if none in it is still needed.
    fn used(&mut self, index: usize) {
        self.uses[index] -= 1;
        let chunk = self.places[index].chunk;
        if self.uses[index] == 0 {
            self.needed[chunk] -= 1;
            // The last chunk is still being filled.
            if self.needed[chunk] == 0 && chunk + 1 < self.chunks.len() {
                self.chunks[chunk] = Row::new();
            }
        }
    }

    /// Writes out a combination, if it is needed. It refers to earlier ones only.
    fn expand(&mut self, index: usize) -> Option<()> {
        if *self.uses.get(index)? == 0 {
            return Some(());
        }
        let mut row = std::mem::take(&mut self.scratch);
        row.clear();
        for (coefficient, variable) in self.cs.get_lc(Variable::symbolic_lc(index)).iter() {
            match variable.get_lc_index() {
                Some(earlier) if earlier < index => {
                    let terms = self.terms(earlier).iter();
                    if coefficient.is_one() {
                        row.extend(terms);
                    } else {
                        row.extend(terms.map(|(c, v)| (c * coefficient, *v)));
                    }
                    self.used(earlier);
                }
                Some(_) => return None,
                None if variable.is_zero() => {}
                None => row.push((*coefficient, variable.get_variable_index(self.instance)?)),
            }
        }
        make_canonical(&mut row);
        self.store(index, &row);
        self.scratch = row;
        Some(())
    }

    fn store(&mut self, index: usize, row: &[(Fr, usize)]) {
        // A chunk never grows: moving it would copy all of its terms.
        let room = |chunk: &Row| chunk.capacity() - chunk.len() >= row.len();
        if !self.chunks.last().is_some_and(room) {
            if let (Some(last), Some(0)) = (self.chunks.last_mut(), self.needed.last()) {
                *last = Row::new();
            }
            self.chunks.push(Row::with_capacity(row.len().max(CHUNK)));
            self.needed.push(0);
        }
        let chunk = self.chunks.len() - 1;
        self.places[index] = Span { chunk, start: self.chunks[chunk].len(), len: row.len() };
        self.chunks[chunk].extend_from_slice(row);
        self.needed[chunk] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ark_ff::Zero;
    use ark_relations::gr1cs::{LinearCombination, SynthesisMode};

    /// Pseudorandom combinations of combinations, with repeats, zeros and sums that cancel.
    fn system(seed: u64) -> ConstraintSystem<Fr> {
        let mut state = seed;
        let mut random = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % bound
        };
        let mut cs = ConstraintSystem::new();
        cs.set_mode(SynthesisMode::Setup);
        let mut variables = vec![Variable::zero(), Variable::one(), Variable::symbolic_lc(0)];
        for _ in 0..5 {
            variables.push(cs.new_input_variable(|| Ok(Fr::zero())).unwrap());
            variables.push(cs.new_witness_variable(|| Ok(Fr::zero())).unwrap());
        }
        for _ in 0..60 {
            let terms = (0..random(6)).map(|_| {
                let coefficient = Fr::from(random(5) as i64 - 2);
                (coefficient, variables[random(variables.len())])
            });
            let combination = LinearCombination(terms.collect());
            variables.push(cs.new_lc(|| combination).unwrap());
        }
        for _ in 0..40 {
            let mut side = || LinearCombination::from(variables[random(variables.len())]);
            let (a, b, c) = (side(), side(), side());
            cs.enforce_r1cs_constraint(|| a, || b, || c).unwrap();
        }
        cs
    }

    #[test]
    fn the_matrices_are_those_of_arkworks() {
        for seed in 0..50 {
            let mut cs = system(seed);
            let ours = matrices_of(&cs).unwrap().unwrap();
            cs.finalize();
            let theirs = &cs.to_matrices().unwrap()[R1CS_PREDICATE_LABEL];
            for (ours, theirs) in ours.all().iter().zip(theirs) {
                assert_eq!(ours.rows(), theirs.len(), "seed {seed}");
                for (row, theirs) in theirs.iter().enumerate() {
                    let mut theirs = theirs.clone();
                    make_canonical(&mut theirs);
                    assert_eq!(ours.terms(row).collect::<Row>(), theirs, "seed {seed}");
                    assert!(ours.is_canonical(row), "seed {seed}");
                }
            }
        }
    }
}
