//! The constraints that keys of an imported circuit have, for a comparison with its source.

use crate::keys::{CircuitMismatch, ProverKeys};
use crate::mirage::{ProvingKey, check_type_with};
use hekaton_circuit::prover::{Matrices, Matrix, Rows, VariableLayout};
use hekaton_circuit::{Fr, Masking, R1cs};

/// A constraint over local variables: 0 is the constant 1, 1 to s are the slots without masks, own
/// variables follow. The sides are A, B and C.
pub type StoredConstraint = [Vec<(Fr, usize)>; 3];

/// The constraints of a type in keys, as its proving key's matrices have them, without those of the
/// memory check. All asserts of setup hold for the matrices (spec: memory-check#asserts), and they
/// have the digest that the verifying key promises.
///
/// # Errors
/// If a key is damaged, or its matrices are not those of a type that setup would accept.
///
/// # Panics
/// If there is no such type.
pub fn stored_constraints(
    keys: &ProverKeys,
    kind: usize,
) -> Result<Vec<StoredConstraint>, CircuitMismatch> {
    let masking = Masking::new(keys.verifying.zero_knowledge);
    let (key, promised) = (&keys.types[kind], &keys.verifying.types[kind]);
    let r1cs = r1cs_of(key, masking)?;
    check_type_with(&r1cs, &[])?;
    if r1cs.digest() != promised.r1cs {
        return Err(CircuitMismatch::Digest { kind: r1cs.name });
    }
    let layout = &r1cs.layout;
    let local = |(coefficient, variable): (Fr, usize)| {
        let local = match variable {
            VariableLayout::ONE => 0,
            // `check_type_with` leaves nothing else: slots without masks, and own variables.
            variable => match layout.slot_of(variable) {
                Some(slot) => 1 + slot,
                None => 1 + layout.author_slots() + (variable - layout.len()),
            },
        };
        (coefficient, local)
    };
    let rows = layout.author_rows(r1cs.constraints());
    let side = |matrix: usize, row: usize| r1cs.side(matrix).terms(row).map(local).collect();
    Ok(rows.map(|row| [0, 1, 2].map(|matrix| side(matrix, row))).collect())
}

/// The matrices of a key as an R1CS.
fn r1cs_of(key: &ProvingKey, masking: Masking) -> Result<R1cs, CircuitMismatch> {
    let name = key.name().to_owned();
    if key.slots() < masking.slots() {
        return Err(CircuitMismatch::Types);
    }
    let layout = VariableLayout::new(key.slots(), masking);
    let [a, b, c] = key.matrices()?;
    let owned = |m: Matrix<'_>| Rows { starts: m.starts.to_vec(), entries: m.entries.to_vec() };
    let matrices = Matrices { coefficients: a.coefficients.to_vec(), sides: [a, b, c].map(owned) };
    key.matrices_used();
    Ok(R1cs { name, layout, variables: key.variables(), matrices })
}
