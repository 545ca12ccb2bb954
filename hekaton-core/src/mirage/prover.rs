//! Commit and prove (spec: mirage#commit, mirage#prove). Single-threaded: one prover per core.

use super::key::ProvingKey;
use crate::keys::KeyFileError;
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, Group, Scalars};

/// A Mirage proof of one subcircuit, without its commitment D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MirageProof {
    /// The proof element A in G1.
    pub a: G1Point,
    /// The proof element B in G2.
    pub b: G2Point,
    /// The proof element C in G1.
    pub c: G1Point,
    /// The subcircuit's term e of the ledger sum; E = e K.
    pub e: Fr,
}

/// A witness that does not satisfy its constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("constraint {constraint} does not hold")]
pub struct Unsatisfied {
    /// Index of the first constraint that fails, in the R1CS with the rows of the memory check.
    pub constraint: usize,
}

impl Unsatisfied {
    /// Describes the constraint by its number among the author's own, which follow `memory_rows` rows of the memory
    /// check.
    pub(crate) fn describe(&self, memory_rows: usize) -> String {
        match self.constraint.checked_sub(memory_rows) {
            Some(own) => format!("constraint {own}, counted from 0, does not hold"),
            None => format!("row {} of the memory check does not hold", self.constraint),
        }
    }
}

/// A prover's choice to check its witness against the constraints before it proves, or to skip the
/// check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WitnessCheck {
    /// A wrong witness is an error that names the constraint; costs one more sparse product.
    #[default]
    Check,
    /// A wrong witness makes a wrong proof, which the coordinator finds after the aggregation.
    Skip,
}

/// The randomizers of one proof (spec: mirage#blinding).
#[derive(Clone, Copy)]
pub(crate) struct Blinding {
    /// The scalar k_D that hides the commitment.
    pub(crate) commitment: Fr,
    /// The additive randomizer s of B.
    pub(crate) additive: Fr,
    /// The multiplicative randomizer x of A and B, nonzero.
    pub(crate) multiplicative: Fr,
}

/// Why no proof was produced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProverError {
    #[error(transparent)]
    Unsatisfied(#[from] Unsatisfied),
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

/// The sums of an assignment with the queries of its type: nearly all of a prover's work, and what an
/// [`Accelerator`](crate::protocol::accelerator::Accelerator) computes in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sums {
    /// The sum of the query A.
    pub a: G1Point,
    /// The sum of the query B.
    pub b: G2Point,
    /// The sum of the query X: C over the public, committed and sum variables.
    pub x: G1Point,
    /// The sum of the query L: C over the auxiliary variables.
    pub l: G1Point,
    /// The sum of the query H with the products of A z and B z on the coset.
    pub h: G1Point,
}

/// Computes `sum v_j DQ_j` (spec: mirage#commit).
pub(crate) fn sum_of_committed(key: &ProvingKey, values: &[Fr]) -> Result<G1Point, KeyFileError> {
    let sum = G1Point::msm(key.d_query()?, values);
    // The kernel maps pages around one that is read: half a megabyte for each type, of all types at once.
    key.sections().all_used();
    Ok(sum)
}

/// Computes `D = sum v_j DQ_j + k_D [delta]_1` from the sum (spec: mirage#commit): k_D hides the
/// values, the full rank of the committed columns binds them.
pub(crate) fn commit(key: &ProvingKey, sum: &G1Point, k_d: Fr) -> G1Point {
    sum.add(&key.elements.delta_1.mul(&k_d))
}

/// Computes the sums of a full assignment z under the challenge b (spec: mirage#prove). An unchecked witness that
/// violates a constraint makes a proof that does not verify.
// One piece: the order in which vectors are made and dropped bounds the memory of a prover.
pub(crate) fn sums(
    key: &ProvingKey,
    z: &[Fr],
    b: &Fr,
    check: WitnessCheck,
) -> Result<Sums, ProverError> {
    let rows = key.constraints();
    let [ma, mb, mc] = key.matrices()?;
    let mut a: Vec<Fr> = (0..rows).map(|i| ma.row(i, z)).collect();
    let mut b_rows: Vec<Fr> = (0..rows).map(|i| mb.row(i, z)).collect();
    // C z is not evaluated below, so a wrong witness would go unnoticed (spec: mirage#unsatisfied).
    if check == WitnessCheck::Check
        && let Some(constraint) = (0..rows).find(|i| a[*i] * b_rows[*i] != mc.row(*i, z))
    {
        return Err(Unsatisfied { constraint }.into());
    }
    // After its last use each part of a mapped key may be dropped from memory.
    let used = |part: usize| key.sections().used(ProvingKey::PARTS[part]);
    used(0);
    // spec: mirage#coset: m = a b on the coset, by two inverse and two forward FFTs. The vanishing
    // polynomial is -2 there, so h = (c - m)/2; the c part is linear in z and sits in the L and X
    // queries.
    a.resize(key.domain.size(), Fr::default());
    b_rows.resize(key.domain.size(), Fr::default());
    key.domain.to_coset(&mut a);
    key.domain.to_coset(&mut b_rows);
    a.iter_mut().zip(&b_rows).for_each(|(a, b)| *a *= b);
    drop(b_rows);
    // The largest vectors come first: each is dropped before the next is allocated.
    let h = G1Point::msm(key.h_query()?, &a);
    drop(a);
    used(1);

    // C is split by query: L over the auxiliary variables, X over pub, com and e.
    let layout = key.layout();
    let l = G1Point::msm_prepared(key.l_query()?, &Scalars::new(&z[layout.auxiliary(z.len())]));
    used(2);
    let x = key.x_query()?.evaluate(z);
    used(5);
    let a = key.a_query()?.evaluate(z);
    used(3);
    // The scaled addresses are b times small numbers.
    let b = key.b_query()?.evaluate_folded(z, layout.addresses(), b);
    used(4);
    Ok(Sums { a, b, x, l, h })
}

/// [`sums`] and [`finish`].
#[cfg(test)]
pub(crate) fn prove(
    key: &ProvingKey,
    z: &[Fr],
    b: &Fr,
    blinding: &Blinding,
    check: WitnessCheck,
) -> Result<MirageProof, ProverError> {
    Ok(finish(key, &sums(key, z, b, check)?, z[key.layout().sum()], blinding))
}

/// Makes the proof of an assignment from its sums and its term e (spec: mirage#prove).
pub(crate) fn finish(key: &ProvingKey, sums: &Sums, e: Fr, blinding: &Blinding) -> MirageProof {
    let elements = &key.elements;
    // spec: mirage#blinding: only B has an additive randomizer, so no MSM for B in G1 is needed; C
    // cancels it with s A0, and the blinding of D with k_D eta.
    let a0 = elements.alpha_1.add(&sums.a);
    let b0 = G2Point::sum(&[elements.beta_2, sums.b, elements.delta_2.mul(&blinding.additive)]);
    let c = G1Point::sum(&[
        sums.l,
        sums.x,
        sums.h,
        a0.mul(&blinding.additive),
        elements.eta_1.mul(&-blinding.commitment),
    ]);
    // x != 0 makes A uniform in G1 without 0 and leaves e(A, B) unchanged.
    let x = blinding.multiplicative;
    let x_inverse = x.inverse().expect("`Blinding` has no zero as its multiplicative part");
    MirageProof { a: a0.mul(&x), b: b0.mul(&x_inverse), c, e }
}
