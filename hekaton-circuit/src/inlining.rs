//! The matrices of a constraint system, with symbolic linear combinations written out.
//!
//! arkworks keeps a linear combination that is used in others by reference. Its own inlining enters
//! every coefficient of every expanded combination into a hash table, and expands also those that
//! no constraint uses; for circuits with long rows that is most of the time that synthesis takes.

use crate::r1cs::Row;
use ark_ff::{One, Zero};
use ark_relations::gr1cs::{ConstraintSystem, LinearCombination, R1CS_PREDICATE_LABEL, Variable};
use hekaton_arith::Fr;

/// The linear combinations of a constraint system.
struct Combinations {
    /// The number of instance variables, which come before the witness variables.
    instance: usize,
    /// How often each is still needed, by constraints and by later combinations.
    uses: Vec<usize>,
    /// The expanded combinations that are still needed: canonical rows.
    rows: Vec<Row>,
}

/// Returns the matrices A, B and C as canonical rows: variables in ascending order, each once, with
/// coefficients that are not zero. `None` if the system has no R1CS predicate, or a combination
/// refers to one that was made after it.
pub(crate) fn matrices(cs: &ConstraintSystem<Fr>) -> Option<[Vec<Row>; 3]> {
    let constraints = cs.predicate_constraint_systems.get(R1CS_PREDICATE_LABEL)?.get_constraints();
    let [a, b, c] = &constraints[..] else { return None };
    let mut combinations = Combinations::new(cs, constraints);
    // A combination refers to earlier ones only.
    for index in 0..combinations.rows.len() {
        if combinations.uses[index] > 0 {
            let combination = cs.get_lc(Variable::symbolic_lc(index));
            combinations.rows[index] = combinations.expand(index, &combination)?;
        }
    }
    let mut matrix = |variables: &[Variable]| -> Option<Vec<Row>> {
        variables.iter().map(|variable| combinations.row(*variable)).collect()
    };
    Some([matrix(a)?, matrix(b)?, matrix(c)?])
}

impl Combinations {
    fn new(cs: &ConstraintSystem<Fr>, constraints: &[Vec<Variable>]) -> Self {
        let len = cs.lc_map.num_lcs();
        let mut uses = vec![0; len];
        let count = |variable: &Variable, uses: &mut Vec<usize>| {
            if let Some(uses) = variable.get_lc_index().and_then(|index| uses.get_mut(index)) {
                *uses += 1;
            }
        };
        constraints.iter().flatten().for_each(|variable| count(variable, &mut uses));
        // What only unused combinations use is not needed either.
        for index in (0..len).rev() {
            if uses[index] > 0 {
                let combination = cs.get_lc(Variable::symbolic_lc(index));
                combination.iter().for_each(|(_, variable)| count(variable, &mut uses));
            }
        }
        Self { instance: cs.num_instance_variables(), uses, rows: vec![Row::new(); len] }
    }

    /// Writes out the combination with this index.
    fn expand(&mut self, index: usize, combination: &LinearCombination<Fr>) -> Option<Row> {
        let mut row = Row::with_capacity(combination.len());
        for (coefficient, variable) in combination.iter().filter(|(c, _)| !c.is_zero()) {
            match variable.get_lc_index() {
                Some(earlier) if earlier < index => {
                    let earlier = self.take(earlier);
                    if coefficient.is_one() {
                        row.extend(earlier);
                    } else {
                        row.extend(earlier.into_iter().map(|(c, v)| (c * coefficient, v)));
                    }
                }
                Some(_) => return None,
                None if variable.is_zero() => {}
                None => row.push((*coefficient, variable.get_variable_index(self.instance)?)),
            }
        }
        // A stable sort merges the ascending runs that the row consists of.
        if !row.is_sorted_by(|left, right| left.1 < right.1) {
            row.sort_by_key(|(_, variable)| *variable);
            row.dedup_by(|next, kept| {
                let same = next.1 == kept.1;
                if same {
                    kept.0 += next.0;
                }
                same
            });
            row.retain(|(coefficient, _)| !coefficient.is_zero());
        }
        Some(row)
    }

    /// An expanded combination, moved out at its last use.
    fn take(&mut self, index: usize) -> Row {
        self.uses[index] -= 1;
        match self.uses[index] {
            0 => std::mem::take(&mut self.rows[index]),
            _ => self.rows[index].clone(),
        }
    }

    /// The row of one side of a constraint.
    fn row(&mut self, variable: Variable) -> Option<Row> {
        match variable.get_lc_index() {
            Some(index) if index < self.rows.len() => Some(self.take(index)),
            Some(_) => None,
            None if variable.is_zero() => Some(Row::new()),
            None => Some(vec![(Fr::one(), variable.get_variable_index(self.instance)?)]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::r1cs::canonical_row;
    use ark_relations::gr1cs::SynthesisMode;

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
            let ours = matrices(&cs).unwrap();
            cs.finalize();
            let theirs = &cs.to_matrices().unwrap()[R1CS_PREDICATE_LABEL];
            for (ours, theirs) in ours.iter().zip(theirs) {
                let theirs: Vec<_> = theirs.iter().map(|row| canonical_row(row).to_vec()).collect();
                assert_eq!(*ours, theirs, "seed {seed}");
            }
            assert!(
                ours.iter()
                    .flatten()
                    .all(|row| matches!(canonical_row(row), std::borrow::Cow::Borrowed(_)))
            );
        }
    }
}
