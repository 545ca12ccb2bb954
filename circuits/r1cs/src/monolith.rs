//! arkworks circuits in one piece: any [`ConstraintSynthesizer`] of ark-relations 0.6.

use crate::system::{RowError, System, SystemBuilder, bytes_of};
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, ConstraintSystemRef, OptimizationGoal, SynthesisError,
    SynthesisMode,
};
use hekaton_circuit::Fr;
use hekaton_circuit::prover::matrices_of;

/// The reason why an arkworks circuit has no constraint system.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MonolithError {
    /// Its synthesis failed.
    #[error("the synthesis failed: {0}")]
    Synthesis(SynthesisError),
    /// It has constraints that are not R1CS.
    #[error("the circuit has constraints other than R1CS; use R1CS gadgets only")]
    Predicate,
    /// A row is wrong.
    #[error("constraint {number}: {error}")]
    Row {
        /// The constraint, from 0.
        number: u32,
        /// The problem.
        error: RowError,
    },
    /// There are more wires or constraints than can be counted.
    #[error("the circuit has more than 2^32 - 1 wires or constraints")]
    TooLarge,
}

impl From<SynthesisError> for MonolithError {
    fn from(error: SynthesisError) -> Self {
        Self::Synthesis(error)
    }
}

/// The constraints of a circuit, which is synthesized without values. Wire 0 is the constant 1; the
/// public inputs follow in the order of their allocation, then the witness variables.
///
/// # Errors
/// If the synthesis fails, or there are constraints other than R1CS.
pub fn system_of(circuit: impl ConstraintSynthesizer<Fr>) -> Result<System, MonolithError> {
    let cs = synthesize(circuit, SynthesisMode::Setup)?;
    let count = |n: usize| u32::try_from(n).map_err(|_| MonolithError::TooLarge);
    let public = cs.num_instance_variables();
    let wires = count(public + cs.num_witness_variables())?;
    // Only R1CS has a predicate by default; another one means constraints that would silently be lost.
    if cs.num_predicates() != 1 {
        return Err(MonolithError::Predicate);
    }
    let matrices = cs
        .borrow()
        .and_then(|cs| matrices_of(&cs))
        .ok_or(MonolithError::Predicate)?
        .map_err(|_| MonolithError::TooLarge)?;
    drop(cs);
    let coefficients: Vec<_> = matrices.coefficients.iter().map(|k| (bytes_of(k), *k)).collect();
    let mut system = SystemBuilder::new(wires, count(public - 1)?);
    for row in 0..matrices.side(0).rows() {
        let number = count(row)?;
        let in_row = |error| MonolithError::Row { number, error };
        for side in matrices.all() {
            for [wire, k] in side.entries_of(row) {
                let (bytes, value) = &coefficients[*k as usize];
                system.term(*wire, bytes, || *value).map_err(in_row)?;
            }
            system.end_combination().map_err(in_row)?;
        }
        system.end_row(number).map_err(in_row)?;
    }
    Ok(system.finish())
}

/// The values of all wires of a circuit with its witness, in the order of [`system_of`].
///
/// # Errors
/// If the synthesis fails.
pub fn witness_of(circuit: impl ConstraintSynthesizer<Fr>) -> Result<Vec<Fr>, MonolithError> {
    // Only the assignment is needed, not the matrices.
    let mode = SynthesisMode::Prove { construct_matrices: false, generate_lc_assignments: false };
    let cs = synthesize(circuit, mode)?;
    let assigned = cs.borrow().ok_or(SynthesisError::MissingCS)?;
    let mut values = assigned.instance_assignment()?.to_vec();
    values.extend_from_slice(assigned.witness_assignment()?);
    Ok(values)
}

fn synthesize(
    circuit: impl ConstraintSynthesizer<Fr>,
    mode: SynthesisMode,
) -> Result<ConstraintSystemRef<Fr>, MonolithError> {
    let cs = ConstraintSystem::new_ref();
    cs.set_mode(mode);
    // Any optimization of arkworks replaces wires, and witnesses would have other wires than the imported
    // constraints.
    cs.set_optimization_goal(OptimizationGoal::None);
    circuit.generate_constraints(cs.clone())?;
    Ok(cs)
}
