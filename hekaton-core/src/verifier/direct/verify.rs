//! The verifier of direct proofs (spec: direct#checks).

use super::Context;
use super::key::DirectKey;
use super::proof::DirectProof;
use super::transcript;
use crate::verifier::verify::{Equation, VerifyError, public_sum};
use crate::verifier::verifying_key::Trust;
use ark_ff::Zero;
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop, powers};
use hekaton_circuit::MemoryChallenges;

/// Verifies a direct proof.
///
/// `public_values` are the values of the key's public wires, in the key's order, and `context` is the
/// application's part of the statement, zero where it has none. Never panics, whatever the bytes. Test
/// keys are refused: see [`verify_direct_with_test_keys`].
///
/// **A proof is not unique:** anybody can change it into others of the same statement
/// (spec: direct#not-unique).
///
/// # Errors
/// See [`VerifyError`].
pub fn verify_direct(
    key: &DirectKey,
    public_values: &[Fr],
    context: &Context,
    proof: &[u8],
) -> Result<(), VerifyError> {
    match key.verifying().trust {
        Trust::InsecureSeed => Err(VerifyError::TestKeys),
        Trust::SingleParty | Trust::Ceremony(_) => {
            verify_direct_with_test_keys(key, public_values, context, proof)
        }
    }
}

/// **For tests only:** [`verify_direct`] that also accepts proofs under test keys, which anyone who
/// knows the seed can forge.
///
/// # Errors
/// See [`VerifyError`].
pub fn verify_direct_with_test_keys(
    key: &DirectKey,
    public_values: &[Fr],
    context: &Context,
    proof: &[u8],
) -> Result<(), VerifyError> {
    let (expected, found) = (key.verifying().public.len(), public_values.len());
    let proof = DirectProof::from_bytes(proof, key)?;
    if found != expected {
        return Err(VerifyError::PublicValues { expected, found });
    }
    let committed = transcript::committed(key, context, public_values, &proof.d);
    let memory = transcript::memory(&committed, key.has_buses());
    let r = transcript::factor(&transcript::proven(&committed, &proof));
    let checks = [
        (Equation::Ledger, ledger_holds(key, public_values, &memory, &proof)?),
        (Equation::Pairings, pairings_hold(key, &memory, &r, &proof)),
    ];
    let failing: Vec<Equation> =
        checks.into_iter().filter(|(_, holds)| !holds).map(|(equation, _)| equation).collect();
    if failing.is_empty() { Ok(()) } else { Err(VerifyError::Equations { failing }) }
}

/// Check (2): the terms of all subcircuits and the verifier's own sum to zero. A pole is an error.
pub(crate) fn ledger_holds(
    key: &DirectKey,
    public_values: &[Fr],
    memory: &MemoryChallenges,
    proof: &DirectProof,
) -> Result<bool, VerifyError> {
    let public = public_sum(key.verifying(), public_values, memory)?;
    Ok((public + proof.e.iter().sum::<Fr>()).is_zero())
}

/// Check (3): the equations of all subcircuits, with the factors r^i.
pub(crate) fn pairings_hold(
    key: &DirectKey,
    memory: &MemoryChallenges,
    r: &Fr,
    proof: &DirectProof,
) -> bool {
    let factors = powers(*r, key.instances());
    let (a, mut bases): (Vec<G1Point>, Vec<G2Point>) = proof.ab.iter().copied().unzip();
    let mut points = G1Point::mul_each(&a, &factors);
    let sum: Fr = factors.iter().sum();
    points.extend([key.alpha.mul(&-sum), public_part(key, memory, &factors).neg()]);
    bases.extend([key.beta, key.gamma]);
    // Terms of one type have one delta and eta. Theta depends on the size of a type's domain alone.
    let mut ledger: Vec<(G2Point, Fr)> = Vec::new();
    for (kind, of_type) in key.types.iter().enumerate() {
        let chosen: Vec<usize> = key.instances_of(kind).collect();
        let weights: Vec<Fr> = chosen.iter().map(|i| -factors[*i]).collect();
        let of = |list: &[G1Point]| {
            G1Point::msm(&chosen.iter().map(|i| list[*i]).collect::<Vec<_>>(), &weights)
        };
        let [delta, eta, theta] = of_type.elements;
        points.extend([of(&proof.c), of(&proof.d)]);
        bases.extend([delta, eta]);
        let e: Fr = chosen.iter().zip(&weights).map(|(i, weight)| proof.e[*i] * weight).sum();
        match ledger.iter_mut().find(|(other, _)| *other == theta) {
            Some((_, sum)) => *sum += e,
            None => ledger.push((theta, e)),
        }
    }
    for (theta, e) in ledger {
        points.push(key.verifying().k.mul(&e));
        bases.push(theta);
    }
    MillerLoop::new(&points, &bases).finish().is_identity()
}

/// S: the public parts of all instances with their factors.
pub(crate) fn public_part(key: &DirectKey, memory: &MemoryChallenges, factors: &[Fr]) -> G1Point {
    let (mut points, mut scalars) = (Vec::new(), Vec::new());
    let mut term = |point: G1Point, scalar: Fr| {
        points.push(point);
        scalars.push(scalar);
    };
    for (instance, factor) in key.parts.iter().zip(factors) {
        term(instance.st, *factor);
        term(instance.sb, memory.b * factor);
        instance.sv.into_iter().for_each(|sv| term(sv, memory.b_v * factor));
    }
    for (kind, of_type) in key.types.iter().enumerate() {
        let sum: Fr = key.instances_of(kind).map(|i| factors[i]).sum();
        term(of_type.sg, memory.g * sum);
        of_type.st.into_iter().for_each(|tags| term(tags, memory.b_t * sum));
    }
    G1Point::msm(&points, &scalars)
}
