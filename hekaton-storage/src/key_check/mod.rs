//! A thorough check of keys from elsewhere: group membership of every point, and pairing relations
//! that tie every element of the keys to the matrices and the layout (spec: soundness#keys-verify).
//!
//! Opening keys checks digests, that is, that the files are as they were written. This check shows
//! that keys have the form of keys from a setup for this circuit. A relation between vectors is
//! checked by one random combination, which a false relation passes with probability 2^-64.
//!
//! Limits: it does not show who chose the secrets. The maker of a setup can forge, and so can an attacker
//! who has replaced the powers of phi and psi by known ones. Only the digest shows that keys are those of
//! a trusted setup. Elements that the report lists as not covered follow from no relation.

mod aggregation;
mod checker;
mod proving_key;
mod public;
mod relation;
mod report;
mod rows;
mod shared;
#[cfg(test)]
mod tests;

pub use relation::Relation;
pub use report::{KeyCheckError, KeyCheckReport};

use checker::Checker;
use hekaton_circuit::prover::Wiring;
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{FamilyKey, LocalEngine, ProverKeys};
use proving_key::TypeCheck;
use shared::Shared;
use std::sync::{Mutex, PoisonError};

/// Checks all points and relations of keys. `wiring` is that of the circuit's layout, with masks if the
/// keys have them; without it, the addresses and multiplicities of the keys cannot be checked.
/// `step` receives the name of each step before it starts.
///
/// # Errors
/// The first point or relation that is wrong.
pub fn check_keys(
    keys: &ProverKeys,
    wiring: Option<&Wiring>,
    pool: &LocalEngine,
    step: impl FnMut(&str) + Send,
) -> Result<KeyCheckReport, KeyCheckError> {
    check_keys_without(keys, wiring, pool, step, None)
}

fn check_keys_without(
    keys: &ProverKeys,
    wiring: Option<&Wiring>,
    pool: &LocalEngine,
    step: impl FnMut(&str) + Send,
    without: Option<Relation>,
) -> Result<KeyCheckReport, KeyCheckError> {
    let step = Steps::new(step);
    let mut check = Checker::new(pool, "aggregation key", without);
    step.say("aggregation key: points");
    check.aggregation_points(keys)?;
    let (key, vk) = (&keys.aggregation, keys.verifying.fixed_elements());
    let shared = Shared {
        phi: key.phi()?,
        psi: key.psi()?,
        gamma: key.gamma()?,
        elements: key.elements()?,
        alpha_beta: vk.alpha_beta,
        k: vk.k,
        psi_1: vk.psi_1,
        phi_2: vk.phi_2,
        types: &keys.types,
    };
    step.say("aggregation key: powers");
    check.powers(&shared)?;
    step.say("aggregation key: commitments of the verifying key");
    check.commitments(keys)?;
    check.distinct(&shared)?;
    let sums = match wiring {
        Some(wiring) => {
            step.say("aggregation key: sums of public points");
            check.same_layout(keys, wiring)?;
            Some(check.public_sums(keys, wiring)?)
        }
        None => {
            let all = "St, Sb and SV, since no layout was given to compare them with";
            check.report.not_covered.push(all.to_owned());
            None
        }
    };
    let of_types = check_types(&shared, pool, &step, without, |check, of_type, rows| {
        check.instances(keys, sums.as_ref().map(|sums| &sums[of_type.kind]), of_type, rows)
    })?;
    check.add(of_types);
    Ok(check.report)
}

/// Checks all points and relations of the keys of a family, whose proving keys are `types`. `step`
/// receives the name of each step before it starts.
///
/// # Errors
/// The first point or relation that is wrong.
pub fn check_family(
    family: &FamilyKey,
    types: &[ProvingKey],
    pool: &LocalEngine,
    step: impl FnMut(&str) + Send,
) -> Result<KeyCheckReport, KeyCheckError> {
    check_family_without(family, types, pool, step, None)
}

fn check_family_without(
    family: &FamilyKey,
    types: &[ProvingKey],
    pool: &LocalEngine,
    step: impl FnMut(&str) + Send,
    without: Option<Relation>,
) -> Result<KeyCheckReport, KeyCheckError> {
    let step = Steps::new(step);
    let mut check = Checker::new(pool, "family key", without);
    step.say("family key: points");
    let points = family.header().shared;
    let shared = Shared {
        phi: family.phi()?,
        psi: family.psi()?,
        gamma: family.gamma()?,
        elements: family.elements()?,
        alpha_beta: points.alpha_beta,
        k: points.k,
        psi_1: points.psi_1,
        phi_2: points.phi_2,
        types,
    };
    let of_family =
        (family.header().types.iter()).map(|kind| (kind.kind.name.as_str(), kind.variables()));
    let same = of_family.eq(types.iter().map(|key| (key.name(), key.layout())));
    check.relation(Relation::Types, same)?;
    check.points("phi", shared.phi)?;
    check.points("psi", shared.psi)?;
    check.points("gamma", std::slice::from_ref(shared.gamma))?;
    check.points("elements", shared.elements.as_flattened())?;
    for kind in 0..types.len() {
        check.points("ic", family.ic(kind)?)?;
    }
    step.say("family key: powers");
    check.powers(&shared)?;
    check.distinct(&shared)?;
    let of_types = check_types(&shared, pool, &step, without, |check, of_type, rows| {
        check.family_public(family.ic(of_type.kind)?, of_type, rows)
    })?;
    check.add(of_types);
    Ok(check.report)
}

/// The parts of a type's check that run at the same time.
enum Part {
    Points,
    Relations,
}

/// Checks the proving keys of all types, each with `more`.
fn check_types(
    shared: &Shared<'_>,
    pool: &LocalEngine,
    step: &Steps<'_>,
    without: Option<Relation>,
    more: impl Fn(&mut Checker<'_>, &TypeCheck<'_>, &rows::Rows<'_>) -> Result<(), KeyCheckError> + Sync,
) -> Result<KeyCheckReport, KeyCheckError> {
    let reports = pool.map((0..shared.types.len()).collect(), |kind: usize| {
        let key = &shared.types[kind];
        let checker = || Checker::new(pool, format!("key of type '{}'", key.name()), without);
        step.say(&format!("type '{}': points", key.name()));
        checker().on_curve(key)?;
        // Some steps of the relations run on one thread; meanwhile, points occupy the others.
        let mut both = pool.map(vec![Part::Points, Part::Relations], |part| {
            let mut check = checker();
            match part {
                Part::Points => check.type_points(key)?,
                Part::Relations => {
                    step.say(&format!("type '{}': relations", key.name()));
                    check.shared_elements(shared, kind)?;
                    let mut of_type = check.queries(shared, kind)?;
                    let rows = check.trace(&of_type)?;
                    more(&mut check, &of_type, &rows)?;
                    check.columns(&mut of_type, &rows)?;
                }
            }
            Ok::<_, KeyCheckError>(check.report)
        });
        let mut check = checker();
        // The part for points comes first, because a wrong point explains a relation that fails.
        both.drain(..).try_for_each(|report| report.map(|report| check.add(report)))?;
        // Mapped keys need not stay in memory until all types are done.
        key.sections().release_all();
        Ok::<_, KeyCheckError>(check.report)
    });
    let mut all = KeyCheckReport::default();
    for report in reports {
        let KeyCheckReport { points, relations, not_covered, only_provers } = report?;
        all.points += points;
        all.relations += relations;
        all.not_covered.extend(not_covered);
        all.only_provers.extend(only_provers);
    }
    Ok(all)
}

/// The function that is called with each step.
type Say<'a> = Box<dyn FnMut(&str) + Send + 'a>;

/// Reports steps, from several threads.
struct Steps<'a>(Mutex<Say<'a>>);

impl<'a> Steps<'a> {
    fn new(step: impl FnMut(&str) + Send + 'a) -> Self {
        Self(Mutex::new(Box::new(step)))
    }

    fn say(&self, text: &str) {
        // A panic in the display of another step leaves nothing half done.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)(text);
    }
}
