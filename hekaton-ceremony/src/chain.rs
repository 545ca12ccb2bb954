//! The record check of a chain: everything that can be checked from the log alone (spec: ceremony#records).

use crate::check::{Broken, CeremonyError, Check, require};
use crate::genesis::{Chain, Genesis};
use crate::random::VerifierRandomness;
use crate::record::{Kind, Record, Step, TypeStep, first_head};
use crate::secrets;
use hekaton_arith::{G1Point, G2Point, Group, MillerLoop};

/// A chain whose records have been checked.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The chain.
    pub chain: Chain,
    /// The state before the first record, and after each.
    pub steps: Vec<Step>,
    /// The head before the first record, and after each.
    pub heads: Vec<[u8; 32]>,
    /// `true` if one of the records is a beacon.
    pub(crate) has_beacon: bool,
}

impl Checked {
    /// The single points after the last record.
    pub fn last(&self) -> &Step {
        self.steps.last().expect("there is a state before the first record")
    }

    /// The head after the last record.
    pub fn head(&self) -> [u8; 32] {
        *self.heads.last().expect("there is a head before the first record")
    }
}

/// The name of a record, for messages.
pub(crate) fn name_of(record: &Record) -> String {
    let who = match &record.kind {
        Kind::Contribution => format!("by {}", record.name),
        Kind::Beacon { .. } => "a beacon".to_owned(),
    };
    format!("chain {}, record {} ({who})", record.chain, record.place)
}

/// Reports whether `e(a, H) = e(G, b)` for all pairs, with one product of pairings.
pub(crate) fn same_logarithms(
    pairs: &[(G1Point, G2Point)],
    random: &mut VerifierRandomness,
) -> bool {
    let weights = random.coefficients(pairs.len());
    let (a, b): (Vec<G1Point>, Vec<G2Point>) = pairs.iter().copied().unzip();
    let (a, b) = (G1Point::msm(&a, &weights), G2Point::msm(&b, &weights));
    same_pairings(&[(a, G2Point::generator())], &[(G1Point::generator(), b)])
}

/// Reports whether two products of pairings are equal.
pub(crate) fn same_pairings(left: &[(G1Point, G2Point)], right: &[(G1Point, G2Point)]) -> bool {
    let right: Vec<_> = right.iter().map(|(a, b)| (a.neg(), *b)).collect();
    let all = left.iter().chain(&right).map(|(a, b)| (a, b));
    MillerLoop::of_pairs(all).finish().is_identity()
}

/// Checks the records of a chain: their order, the points of secrets and the proofs of knowledge.
///
/// # Errors
/// The first rule that a record breaks.
pub(crate) fn check(
    genesis: &Genesis,
    chain: Chain,
    records: &[Record],
) -> Result<Checked, CeremonyError> {
    let mut random = VerifierRandomness::new()?;
    let mut checked = Checked {
        chain,
        steps: vec![Step::start(genesis, chain)],
        heads: vec![first_head(genesis, chain)],
        has_beacon: false,
    };
    // Of a file of others; generators are equal in both groups.
    let same = same_logarithms(&checked.last().in_both_groups(), &mut random);
    require(same, Check::Groups, || format!("chain {chain}, at its start"))?;
    for record in records {
        check_next(&checked, record, &mut random)?;
        checked.steps.push(record.step.clone());
        checked.heads.push(record.head());
        checked.has_beacon |= matches!(record.kind, Kind::Beacon { .. });
    }
    Ok(checked)
}

/// Checks a record that is to follow those checked so far.
pub(crate) fn check_next(
    checked: &Checked,
    record: &Record,
    random: &mut VerifierRandomness,
) -> Result<(), Broken> {
    let at = || name_of(record);
    let (before, after) = (checked.last(), &record.step);
    require(record.before == checked.head(), Check::Head, at)?;
    require(record.place as usize + 1 == checked.heads.len(), Check::Place, at)?;
    require(!after.has_identity(), Check::Identity, at)?;
    let (old, new) = (before.secret_points(), after.secret_points());
    require(old.iter().zip(&new).all(|(old, new)| old != new), Check::Unchanged, at)?;
    require(same_logarithms(&after.in_both_groups(), random), Check::Groups, at)?;
    let body = record.body();
    let proofs = record.proofs.iter().zip(old.iter().zip(&new)).enumerate();
    let mut known =
        proofs.map(|(number, (proof, (old, new)))| proof.holds(&body, number, old, new));
    require(record.proofs.len() == new.len() && known.all(|one| one), Check::Knowledge, at)?;
    let linked = before.digests().iter().zip(after.digests()).all(|(b, a)| b.new == a.received);
    require(linked, Check::Link, at)?;
    if let Kind::Beacon { value, exponent } = &record.kind {
        require(!checked.has_beacon, Check::SecondBeacon, at)?;
        let secrets = secrets::of_beacon(&record.before, record.chain, value, *exponent, old.len());
        let expected = old.iter().zip(&secrets).map(|(old, secret)| old.mul(secret));
        require(expected.eq(new.iter().copied()), Check::Beacon, at)?;
    }
    Ok(())
}

/// Checks what must hold when all chains of a transcript are finished: somebody has contributed to each.
pub(crate) fn check_end(chains: &[(&[Record], &Checked)]) -> Result<(), Broken> {
    for (records, checked) in chains {
        let contributed = records.iter().any(|record| record.kind == Kind::Contribution);
        require(contributed, Check::Contribution, || format!("chain {}", checked.chain))?;
    }
    Ok(())
}

/// Checks that no delta or eta of the types of a family is shared or 1 (spec: mirage#asserts).
pub(crate) fn check_distinct<'a>(
    types: impl IntoIterator<Item = &'a TypeStep>,
) -> Result<(), Broken> {
    let mut seen = std::collections::HashSet::from([G1Point::generator().to_compressed()]);
    let mut all = types.into_iter().flat_map(|kind| kind.in_g1);
    let distinct = all.all(|point| seen.insert(point.to_compressed()));
    require(distinct, Check::Distinct, || "the last records".to_owned())
}
