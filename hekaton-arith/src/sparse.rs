//! Products with sparse matrices: sums of a few points each.

use crate::backend::Curve;
use crate::multiples::mul_each;
use crate::sums::{NEGATIVE, sum_groups};
use ark_bls12_381::Fr;
use ark_ff::Field;

/// See [`Group::sparse_sums`](crate::Group::sparse_sums).
#[allow(clippy::cast_possible_truncation, reason = "matrices have fewer than 2^31 entries")]
pub(crate) fn sums<G: Curve>(points: &[G], terms: &[(u32, Fr)], ends: &[u32]) -> Vec<G> {
    let mut source: Vec<G> = terms.iter().map(|(i, _)| points[*i as usize]).collect();
    let mut entries: Vec<u32> = (0..terms.len() as u32).collect();
    let mut products = Vec::new();
    for (at, (_, c)) in terms.iter().enumerate() {
        if *c == -Fr::ONE {
            entries[at] |= NEGATIVE;
        } else if *c != Fr::ONE {
            products.push(at);
        }
    }
    let bases: Vec<G> = products.iter().map(|at| source[*at]).collect();
    let factors: Vec<Fr> = products.iter().map(|at| terms[*at].1).collect();
    for (at, product) in products.into_iter().zip(mul_each(&bases, &factors)) {
        source[at] = product;
    }
    sum_groups(&source, &entries, ends)
}
