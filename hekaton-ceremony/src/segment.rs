//! The types of a segment: contributions, input sums, and what a coordinator checks before it accepts one
//! (spec: ceremony#input-sums).

use crate::chain::same_pairings;
use crate::check::{CeremonyError, Check, require};
use crate::membership::Members;
use crate::powers::Output;
use crate::random::{VerifierRandomness, coefficients};
use crate::record::{Digests, LedgerStep, Step, TypeStep};
use crate::sections::{Section, Visit, combination, products};
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point, Group};
use zeroize::Zeroizing;

/// The vectors of a type's section.
pub(crate) const L: usize = 0;
pub(crate) const X: usize = 1;
pub(crate) const H: usize = 2;
pub(crate) const D: usize = 3;

/// The stream of coefficients of a contribution's input sums: of the head before, the number of the type in the
/// segment, and the digest of the section as it was received.
pub(crate) fn input_coefficients(
    before: &[u8; 32],
    kind: usize,
    received: &[u8; 32],
) -> blake3::OutputReader {
    let mut hasher = blake3::Hasher::new_derive_key("hekaton-v1 ceremony input");
    hasher.update(before).update(&(kind as u64).to_le_bytes()).update(received);
    hasher.finalize_xof()
}

/// The input sums of a section as it is read: over L, X, H, and over D.
struct InputSums {
    stream: blake3::OutputReader,
    sums: [G1Point; 2],
}

impl InputSums {
    fn new(before: &[u8; 32], kind: usize, received: &[u8; 32]) -> Self {
        let stream = input_coefficients(before, kind, received);
        Self { stream, sums: [G1Point::IDENTITY; 2] }
    }

    fn take(&mut self, vector: usize, points: &[G1Point]) {
        let coefficients = coefficients(&mut self.stream, points.len());
        let sum = &mut self.sums[usize::from(vector == D)];
        *sum = sum.add(&combination(points, &coefficients));
    }
}

/// Refuses the point at infinity in X, H and D. In L it stands for variables that occur in no constraint, which only the whole
/// check knows.
fn no_identity(
    section: &Section,
    vector: usize,
    start: usize,
    points: &[G1Point],
) -> Result<(), CeremonyError> {
    match points.iter().position(Group::is_identity).filter(|_| vector != L) {
        Some(at) => Err(section.broken(Check::Identity, vector, start + at, "")),
        None => Ok(()),
    }
}

/// Multiplies the points of a section as they are read.
struct Contribution<'a, 'b> {
    section: &'a Section,
    members: &'a mut Members,
    sums: InputSums,
    /// The inverses of delta and eta.
    inverses: [Zeroizing<Fr>; 2],
    out: Output<'b>,
}

impl Visit for Contribution<'_, '_> {
    fn g1(&mut self, vector: usize, start: usize, points: &[G1Point]) -> Result<(), CeremonyError> {
        no_identity(self.section, vector, start, points)?;
        self.members.take_g1(points);
        self.sums.take(vector, points);
        let factor = &self.inverses[usize::from(vector == D)];
        let factors = Zeroizing::new(vec![**factor; points.len()]);
        self.out.write(&products(points, &factors))
    }

    fn g2(&mut self, _: usize, _: usize, _: &[G2Point]) -> Result<(), CeremonyError> {
        unreachable!("a type's section has no points of G2")
    }
}

/// Divides the points of a type by the secrets delta and eta, and computes the input sums. None of the output may
/// leave the machine unless this returns a step and `members` have been checked.
pub(crate) fn contribute(
    section: &Section,
    (head, kind): (&[u8; 32], usize),
    before: &TypeStep,
    secrets: &[Fr],
    members: &mut Members,
    out: Output<'_>,
) -> Result<TypeStep, CeremonyError> {
    members.begin(section);
    // Before the pass, because the coefficients of the sums are those of the whole section.
    let received = section.digest()?;
    let at = || format!("section '{}'", section.name);
    require(received == before.digests.new, Check::Digest, at)?;
    let [delta, eta] = secrets else { unreachable!("a type has two secrets") };
    let inverse = |x: &Fr| Zeroizing::new(x.inverse().expect("secrets are not zero"));
    let mut pass = Contribution {
        section,
        members,
        sums: InputSums::new(head, kind, &received),
        inverses: [inverse(delta), inverse(eta)],
        out,
    };
    // The file may have changed since it was hashed.
    require(section.visit(&mut pass)? == received, Check::Digest, at)?;
    let new = *pass.out.hasher.finalize().as_bytes();
    Ok(TypeStep {
        in_g1: [before.in_g1[0].mul(delta), before.in_g1[1].mul(eta)],
        in_g2: [before.in_g2[0].mul(delta), before.in_g2[1].mul(eta)],
        sums: pass.sums.sums,
        digests: Digests { received, new },
    })
}

/// The base K and all Theta after a contribution of kappa.
pub(crate) fn contribute_ledger(before: &LedgerStep, kappa: &Fr) -> LedgerStep {
    let inverse = Zeroizing::new(kappa.inverse().expect("secrets are not zero"));
    let inverses = Zeroizing::new(vec![*inverse; before.thetas.len()]);
    LedgerStep { k: before.k.mul(kappa), thetas: G2Point::mul_each(&before.thetas, &inverses) }
}

/// Takes a section with random coefficients, the same for the old one and the new one.
struct Combined<'a> {
    section: &'a Section,
    random: VerifierRandomness,
    sums: [G1Point; 2],
    /// For the old section.
    input: Option<InputSums>,
    /// For the new one.
    members: Option<&'a mut Members>,
}

impl Visit for Combined<'_> {
    fn g1(&mut self, vector: usize, start: usize, points: &[G1Point]) -> Result<(), CeremonyError> {
        no_identity(self.section, vector, start, points)?;
        if let Some(members) = &mut self.members {
            members.take_g1(points);
        }
        if let Some(input) = &mut self.input {
            input.take(vector, points);
        }
        let coefficients = self.random.coefficients(points.len());
        let sum = &mut self.sums[usize::from(vector == D)];
        *sum = sum.add(&combination(points, &coefficients));
        Ok(())
    }

    fn g2(&mut self, _: usize, _: usize, _: &[G2Point]) -> Result<(), CeremonyError> {
        unreachable!("a type's section has no points of G2")
    }
}

/// Checks a contribution to a type against the section before it: digests, input sums, and that all points were divided
/// by the same delta and eta. The caller checks `members`.
pub(crate) fn check_update(
    [old, new]: [&Section; 2],
    (head, kind): (&[u8; 32], usize),
    before: &TypeStep,
    after: &TypeStep,
    members: &mut Members,
) -> Result<(), CeremonyError> {
    members.begin(new);
    let at = || format!("section '{}'", new.name);
    let (random, sums) = (VerifierRandomness::new()?, [G1Point::IDENTITY; 2]);
    let input = Some(InputSums::new(head, kind, &after.digests.received));
    let mut one = Combined { section: old, random: random.clone(), sums, input, members: None };
    let received = old.visit(&mut one)?;
    let mut two = Combined { section: new, random, sums, input: None, members: Some(members) };
    let digest = new.visit(&mut two)?;
    let digests = received == after.digests.received && digest == after.digests.new;
    require(digests, Check::Digest, at)?;
    require(one.input.is_some_and(|input| input.sums == after.sums), Check::InputSums, at)?;
    for which in 0..2 {
        let (before, after) = (before.in_g2[which], after.in_g2[which]);
        let holds = same_pairings(&[(two.sums[which], after)], &[(one.sums[which], before)]);
        require(holds, Check::Update, at)?;
    }
    Ok(())
}

/// The steps of a segment.
pub(crate) fn types_of(step: &Step) -> (&[TypeStep], Option<&LedgerStep>) {
    match step {
        Step::Segment { types, ledger } => (types, ledger.as_ref()),
        Step::Powers(_) => unreachable!("a segment has types"),
    }
}
