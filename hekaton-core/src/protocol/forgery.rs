//! Test doubles: keys as an attacker without trapdoors can change them (spec: key-family#check).

use super::setup::{Secrets, SetupError, SetupOptions, setup_wiring};
use crate::keys::ProverKeys;
use ark_ff::{Field, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, Group, MillerLoop};
use hekaton_circuit::prover::Wiring;
use hekaton_circuit::{Circuit, Masking, PreparedCircuit, SlotAccess};
use std::convert::Infallible;

/// The trapdoors of keys from a seed.
#[derive(Clone, Debug)]
pub struct Trapdoors {
    /// The secret alpha.
    pub alpha: Fr,
    /// The secret beta.
    pub beta: Fr,
    /// The secret gamma.
    pub gamma: Fr,
    /// The point at which polynomials are evaluated.
    pub tau: Fr,
    /// The logarithm of K.
    pub kappa: Fr,
    /// Delta and eta of each type.
    pub types: Vec<[Fr; 2]>,
}

impl Trapdoors {
    fn of(secrets: &Secrets) -> Self {
        let shared = &secrets.shared;
        Self {
            alpha: shared.alpha,
            beta: shared.beta,
            gamma: shared.gamma,
            tau: shared.tau,
            kappa: shared.kappa,
            types: secrets.types.iter().map(|kind| [kind.delta, kind.eta]).collect(),
        }
    }
}

/// The trapdoors of a setup of this many types from a seed.
///
/// # Panics
/// Never: a seed needs no randomness.
pub fn trapdoors(types: usize, seed: u64) -> Trapdoors {
    Trapdoors::of(&Secrets::draw(types, Some(seed)).expect("a seed needs no randomness"))
}

/// The keys of a circuit from a seed, with changed trapdoors, which must be those that setup accepts.
///
/// # Panics
/// If setup refuses the circuit or the trapdoors.
pub fn setup_with<C: Circuit>(
    circuit: &C,
    (options, seed): (&SetupOptions, u64),
    change: impl FnOnce(&mut Trapdoors),
) -> ProverKeys {
    let prepared = PreparedCircuit::new(circuit).expect("the circuit has a layout");
    let masking = Masking::new(options.zero_knowledge);
    let wiring = prepared.layout().wiring(masking);
    let mut secrets = Secrets::draw(wiring.types.len(), Some(seed)).expect("a seed");
    let mut changed = Trapdoors::of(&secrets);
    change(&mut changed);
    let shared = &mut secrets.shared;
    (shared.alpha, shared.beta, shared.gamma) = (changed.alpha, changed.beta, changed.gamma);
    (shared.tau, shared.kappa) = (changed.tau, changed.kappa);
    for (kind, [delta, eta]) in secrets.types.iter_mut().zip(changed.types) {
        (kind.delta, kind.eta) = (delta, eta);
    }
    let r1cs = |kind| Ok::<_, SetupError<Infallible>>(prepared.r1cs(kind, masking)?);
    let (mut types, kinds) = (Vec::new(), prepared.layout().type_ids().map(r1cs));
    let mut keep = |key, _| {
        types.push(key);
        Ok(())
    };
    let made = setup_wiring(&wiring, kinds, &secrets, options, &mut keep, &mut |_| {});
    let (aggregation, verifying) = made.expect("setup accepts the circuit and the trapdoors");
    ProverKeys { aggregation, verifying, types }
}

/// Changes one of the elements of the target group in a verifying key: cm_St, cm_Sg, cm_Sb, in circuits
/// with buses cm_ST and cm_SV, then cm_gamma, cm_delta, cm_eta, cm_Theta and e(alpha, beta).
///
/// # Panics
/// If there is no such element.
pub fn change_element(keys: &mut ProverKeys, index: usize) {
    let vk = &mut keys.verifying;
    let mut all = vec![&mut vk.cm_st, &mut vk.cm_sg, &mut vk.cm_sb];
    if let Some(buses) = &mut vk.buses {
        all.extend(buses.iter_mut());
    }
    all.extend([&mut vk.cm_gamma, &mut vk.cm_delta, &mut vk.cm_eta, &mut vk.cm_theta]);
    all.push(&mut vk.alpha_beta);
    let element = all.into_iter().nth(index).expect("there is such an element");
    *element = element.add(element);
}

/// Takes the commitments to ST and SV out of a verifying key.
pub fn without_buses(keys: &mut ProverKeys) {
    keys.verifying.buses = None;
}

/// Solves `sum_i x_i rows_i = target`; `None` if the target is not a combination of the rows.
fn solve(rows: &[Vec<Fr>], target: &[Fr]) -> Option<Vec<Fr>> {
    // Each row is followed by the coefficients of the combination that it is.
    let (width, n) = (target.len(), rows.len());
    let unit = |i: usize| (0..n).map(move |j| Fr::from(u64::from(i == j)));
    let mut reduced: Vec<(usize, Vec<Fr>)> = Vec::new();
    let reduce = |row: &mut Vec<Fr>, reduced: &[(usize, Vec<Fr>)]| {
        for (pivot, other) in reduced {
            let factor = row[*pivot];
            row.iter_mut().zip(other).for_each(|(x, y)| *x -= factor * y);
        }
    };
    for (i, coefficients) in rows.iter().enumerate() {
        let mut row: Vec<Fr> = coefficients.iter().copied().chain(unit(i)).collect();
        reduce(&mut row, &reduced);
        let pivot = row[..width].iter().position(|x| !x.is_zero());
        if let Some((pivot, inverse)) = pivot.and_then(|p| Some((p, row[p].inverse()?))) {
            row.iter_mut().for_each(|x| *x *= inverse);
            reduced.push((pivot, row));
        }
    }
    let mut rest: Vec<Fr> = target.iter().copied().chain((0..n).map(|_| Fr::zero())).collect();
    reduce(&mut rest, &reduced);
    rest[..width].iter().all(Zero::is_zero).then(|| rest[width..].iter().map(|x| -*x).collect())
}

/// Gives instances of one type the addresses of other slots, from nothing but the published keys and
/// their wiring: the points IC_x of the slots are combinations of the Sb_i. The commitment cm_Sb of the
/// verifying key is made anew; everything else, the digest of the layout included, stays.
///
/// # Panics
/// If the addresses of the type's instances do not determine the points that are needed.
pub fn rewire(keys: &mut ProverKeys, wiring: &Wiring, changes: &[(usize, Vec<SlotAccess>)]) {
    let instances: Vec<(u32, &[SlotAccess])> = wiring.by_instance().collect();
    let addresses = |slots: &[SlotAccess]| Wiring::preprocessed(slots).0;
    let mut sb = keys.aggregation.sb().expect("keys have Sb").to_vec();
    let published = sb.clone();
    for (changed, slots) in changes {
        let (kind, before) = instances[*changed];
        let same: Vec<usize> = (0..instances.len()).filter(|i| instances[*i].0 == kind).collect();
        let rows: Vec<Vec<Fr>> = same.iter().map(|i| addresses(instances[*i].1)).collect();
        let both = addresses(slots).into_iter().zip(addresses(before));
        let difference: Vec<Fr> = both.map(|(new, old)| new - old).collect();
        let scalars = solve(&rows, &difference).expect("the addresses of the type have full rank");
        let points: Vec<G1Point> = same.iter().map(|i| published[*i]).collect();
        sb[*changed] = sb[*changed].add(&G1Point::msm(&points, &scalars));
    }
    let psi = keys.aggregation.psi().expect("keys have powers of psi");
    let v: Vec<G2Point> = psi.iter().step_by(2).take(sb.len()).copied().collect();
    keys.verifying.cm_sb = MillerLoop::new(&sb, &v).finish();
    keys.aggregation.sections_mut().replace("sb", sb);
}

/// Puts known phi and psi in the place of those of the setup, from nothing but the published keys. The
/// commitments of the verifying key are made anew.
///
/// # Panics
/// If a section is missing.
pub fn know_powers(keys: &mut ProverKeys, phi: Fr, psi: Fr) {
    fn powers<G: Group>(of: Fr, count: usize) -> Vec<G> {
        let exponents = std::iter::successors(Some(Fr::ONE), |power| Some(*power * of));
        exponents.take(count).map(|power| G::generator().mul(&power)).collect()
    }
    let read = "the keys have all sections";
    let count =
        [keys.aggregation.phi().expect(read).len(), keys.aggregation.psi().expect(read).len()];
    keys.aggregation.sections_mut().replace("phi", powers::<G1Point>(phi, count[0]));
    keys.aggregation.sections_mut().replace("psi", powers::<G2Point>(psi, count[1]));
    keys.verifying.psi_1 = G1Point::generator().mul(&psi);
    keys.verifying.phi_2 = G2Point::generator().mul(&phi);
    commit_again(keys);
}

/// Makes all commitments of the verifying key anew from the points of the aggregation key, as
/// somebody would who has changed points.
///
/// # Panics
/// If a section is missing.
pub fn commit_again(keys: &mut ProverKeys) {
    let read = "the keys have all sections";
    let (key, vk) = (&keys.aggregation, &mut keys.verifying);
    let type_of = key.type_of().expect(read);
    let n = type_of.len();
    let v: Vec<G2Point> = key.psi().expect(read).iter().step_by(2).take(n).copied().collect();
    let w: Vec<G1Point> = key.phi().expect(read).iter().step_by(2).take(n).copied().collect();
    let of_type = |points: &[G1Point]| -> Vec<G1Point> {
        type_of.iter().map(|kind| points[*kind as usize]).collect()
    };
    let commit = |points: &[G1Point]| MillerLoop::new(points, &v).finish();
    (vk.cm_st, vk.cm_sb) = (commit(key.st().expect(read)), commit(key.sb().expect(read)));
    vk.cm_sg = commit(&of_type(key.sg().expect(read)));
    if let Some(parts) = key.buses().expect(read) {
        vk.buses = Some(Box::new([commit(&of_type(parts.tags)), commit(parts.values)]));
    }
    let elements = key.elements().expect(read);
    let column = |j: usize| {
        let points: Vec<G2Point> = type_of.iter().map(|kind| elements[*kind as usize][j]).collect();
        MillerLoop::new(&w, &points).finish()
    };
    (vk.cm_delta, vk.cm_eta, vk.cm_theta) = (column(0), column(1), column(2));
    let gamma = vec![*key.gamma().expect(read); n];
    vk.cm_gamma = MillerLoop::new(&w, &gamma).finish();
}
