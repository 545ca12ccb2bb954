//! Powers: C1 to C12, C45.

use super::*;
use crate::record::PowersStep;
use crate::secrets::Seed;
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point};

const N: usize = 12;
const M: usize = 4;

/// The offsets in bytes of the vectors of tau, and the size of the last point.
fn starts() -> [usize; 4] {
    let g1 = G1Point::UNCOMPRESSED;
    let tau_2 = 2 * N * g1;
    let alpha = tau_2 + N * G2Point::UNCOMPRESSED;
    [0, tau_2, alpha, alpha + N * g1]
}

fn bench() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = powers_of(directory.path(), N, M, &[1, 2]);
    (directory, path)
}

fn other<G: Group>() -> G {
    G::generator().mul(&Fr::from(99u64))
}

/// Powers are those of the products of all secrets, on every domain.
#[test]
fn powers_of_a_ceremony_are_those_of_the_products() {
    let (_directory, path) = bench();
    let powers = check_powers(&path).unwrap();
    let product = |chain: Chain, i: usize, n: usize| -> Fr {
        [1, 2].iter().map(|seed| Seed::known(*seed).secrets(chain, n)[i]).product()
    };
    let [tau, alpha, beta] = [0, 1, 2].map(|i| product(Chain::Tau, i, 3));
    let [phi, psi] = [0, 1].map(|i| product(Chain::Phi, i, 2));
    let (g, h) = (G1Point::generator(), G2Point::generator());
    for i in 0..2 * N {
        let power = tau.pow([i as u64]);
        assert_eq!(powers.tau.read::<G1Point>(0, 2 * N).unwrap()[i], g.mul(&power));
        if i < N {
            assert_eq!(powers.tau.read::<G2Point>(1, N).unwrap()[i], h.mul(&power));
            assert_eq!(powers.tau.read::<G1Point>(2, N).unwrap()[i], g.mul(&(alpha * power)));
            assert_eq!(powers.tau.read::<G1Point>(3, N).unwrap()[i], g.mul(&(beta * power)));
        }
    }
    for i in 0..2 * M - 1 {
        assert_eq!(powers.phi.read::<G1Point>(0, 7).unwrap()[i], g.mul(&phi.pow([i as u64])));
        assert_eq!(powers.phi.read::<G2Point>(1, 7).unwrap()[i], h.mul(&psi.pow([i as u64])));
    }
}

/// C1 to C4: one wrong element in any vector, at any place but the first ones, which other checks see.
#[test]
fn c01_to_c04_each_element_of_tau_is_checked() {
    let [tau_1, tau_2, alpha_1, beta_1] = starts();
    for at in [2, 3, N - 1] {
        for (start, in_g2) in [(tau_1, false), (tau_2, true), (alpha_1, false), (beta_1, false)] {
            let (_directory, path) = bench();
            cheat(&path, Chain::Tau, 3, |_, sections| match in_g2 {
                true => set::<G2Point>(&mut sections[0], start, at, &other()),
                false => set::<G1Point>(&mut sections[0], start, at, &other()),
            });
            refused_by_this_alone(Check::Powers, &[Check::Order], || check_powers(&path));
        }
    }
}

/// C5 and C6: the state that a contributor receives is checked, and so is the one that it makes.
#[test]
fn c05_c06_both_states_are_checked() {
    let (_directory, path) = bench();
    cheat(&path, Chain::Tau, 3, |_, sections| set::<G1Point>(&mut sections[0], 0, 5, &other()));
    let out = path.join("incoming/next");
    let contribute = || contribute_as(&open(&path), 4, &[Chain::Tau], &out);
    assert_eq!(refusal(contribute()), Check::Powers);
    assert!(!out.exists(), "nothing leaves the machine");

    // The coordinator refuses what a contributor made wrong.
    let (_directory, path) = bench();
    let mut coordinator = Coordinator::open(&path).unwrap();
    let out = path.join("incoming/wrong");
    contribute_as(&coordinator.transcript, 3, &[Chain::Tau], &out).unwrap();
    let response = Response::open(&out, &coordinator.transcript.genesis).unwrap();
    let mut bytes = std::fs::read(&out).unwrap();
    set::<G1Point>(&mut bytes[response.sections[0][0].offset as usize..], 0, 5, &other());
    std::fs::write(&out, &bytes).unwrap();
    let refused = refusal(coordinator.add(&response, &mut |_| {}));
    assert_eq!(refused, Check::Digest);
    let length = coordinator.transcript.log(Chain::Tau).records.len();
    assert_eq!(length, 2, "nothing was accepted");
}

/// C7 and C8: one wrong element in the powers of phi or psi.
#[test]
fn c07_c08_each_element_of_phi_is_checked() {
    for at in [2, 4, 2 * M - 2] {
        for in_g2 in [false, true] {
            let (_directory, path) = bench();
            cheat(&path, Chain::Phi, 3, |_, sections| match in_g2 {
                false => set::<G1Point>(&mut sections[0], 0, at, &other()),
                true => {
                    let start = (2 * M - 1) * G1Point::UNCOMPRESSED;
                    set::<G2Point>(&mut sections[0], start, at, &other());
                }
            });
            refused_by_this_alone(Check::Powers, &[], || check_powers(&path));
        }
    }
}

/// C9: a secret that differs between the groups.
#[test]
fn c09_points_of_both_groups_have_one_logarithm() {
    for (chain, at) in [(Chain::Tau, 1), (Chain::Phi, 1), (Chain::Phi, 0), (Chain::Tau, 0)] {
        let (_directory, path) = bench();
        cheat(&path, chain, 3, |step, _| {
            let Step::Powers(PowersStep { in_g2, .. }) = step else { panic!() };
            in_g2[at] = other();
        });
        assert_eq!(refusal(check_powers(&path)), Check::Groups);
        if (chain, at) == (Chain::Tau, 1) {
            // [beta]_2 is in the record only.
            refused_by_this_alone(Check::Groups, &[], || check_powers(&path));
        }
    }
}

/// C10: tau or phi of small order, also of twice the largest domain, whose power is not published.
#[test]
fn c10_roots_of_unity_are_refused() {
    for (chain, order) in [(Chain::Tau, 16), (Chain::Tau, 24), (Chain::Tau, 3), (Chain::Phi, 6)] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("powers");
        new_powers(&path, N, M, "", &|_| {}).unwrap();
        step_with_first_secret(&path, chain, crate::lagrange::root(order));
        refused_by_this_alone(Check::Order, &[Check::Contribution], || verify_chain(&path, chain));
    }
}

/// Checks one chain of powers, begun or not.
fn verify_chain(path: &Path, chain: Chain) -> Result<(), CeremonyError> {
    let transcript = open(path);
    let checked = transcript.check()?;
    let checked = checked.iter().find(|checked| checked.chain == chain).unwrap();
    let Step::Powers(step) = checked.last() else { panic!() };
    crate::powers::check(&mut transcript.sections(chain)[0], chain, step, true)
}

/// The first contribution to a chain, with a chosen first secret.
fn step_with_first_secret(path: &Path, chain: Chain, first: Fr) {
    let transcript = open(path);
    let checked = transcript.check().unwrap();
    let before = checked.iter().find(|checked| checked.chain == chain).unwrap();
    let Step::Powers(start) = before.last() else { panic!() };
    let mut secrets = Seed::known(1).secrets(chain, start.in_g1.len());
    secrets[0] = first;
    let mut bytes = Vec::new();
    let out = crate::powers::Output {
        file: &mut bytes,
        path: Path::new("memory"),
        hasher: blake3::Hasher::new(),
    };
    let section = &transcript.sections(chain)[0];
    let step = crate::powers::contribute(section, chain, start, false, &secrets, out).unwrap();
    let record = crate::Record {
        before: before.head(),
        name: "one".into(),
        ..crate::Record::empty(&transcript.genesis, chain)
    };
    std::fs::write(section_path(path, &step_digest(&step)), &bytes).unwrap();
    let record = sign(&Seed::known(1), record, before, Step::Powers(step), &secrets).unwrap();
    let mut log = transcript.log(chain).clone();
    log.append(&log_path(path, chain), record).unwrap();
}

fn step_digest(step: &PowersStep) -> [u8; 32] {
    step.digests.new
}

/// C11: a secret that is zero makes points at infinity, in records and in sections.
#[test]
fn c11_infinity_is_refused() {
    let (_directory, path) = bench();
    cheat(&path, Chain::Tau, 3, |step, _| {
        let Step::Powers(PowersStep { in_g1, .. }) = step else { panic!() };
        in_g1[1] = G1Point::IDENTITY;
    });
    assert_eq!(refusal(check_powers(&path)), Check::Identity);
    let (_directory, path) = bench();
    cheat(&path, Chain::Tau, 3, |_, sections| {
        set::<G1Point>(&mut sections[0], 0, 4, &G1Point::IDENTITY);
    });
    assert_eq!(refusal(check_powers(&path)), Check::Identity);
}

/// C12: a contribution that leaves alpha as it was.
#[test]
fn c12_each_secret_changes_its_point() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("powers");
    new_powers(&path, N, M, "", &|_| {}).unwrap();
    step_with_first_secret(&path, Chain::Tau, Fr::ONE);
    refused_by_this_alone(Check::Unchanged, &[Check::Order], || verify_chain(&path, Chain::Tau));
}

/// The first power is the generator, and the next ones are those of the last record.
#[test]
fn the_first_powers_are_those_of_the_record() {
    let [_, tau_2, alpha_1, _] = starts();
    let factor = Fr::from(7u64);
    // A multiple of a whole vector has the right quotients.
    for (start, len, expected) in [(0, 2 * N, Check::First), (alpha_1, N, Check::End)] {
        let (_directory, path) = bench();
        cheat(&path, Chain::Tau, 3, |_, sections| {
            for at in 0..len {
                let point: G1Point = get(&sections[0], start, at);
                set(&mut sections[0], start, at, &point.mul(&factor));
            }
        });
        refused_by_this_alone(expected, &[Check::End], || check_powers(&path));
    }
    let (_directory, path) = bench();
    cheat(&path, Chain::Tau, 3, |_, sections| {
        for at in 0..N {
            let point: G2Point = get(&sections[0], tau_2, at);
            set(&mut sections[0], tau_2, at, &point.mul(&factor));
        }
    });
    refused_by_this_alone(Check::First, &[Check::End], || check_powers(&path));
}

/// A point of the curve outside the subgroup.
fn outside() -> G1Point {
    let found = (1..50).find_map(|x| {
        let mut bytes = [0; 48];
        (bytes[0], bytes[47]) = (0x80, x);
        G1Point::on_curve_from_compressed(&bytes).ok().filter(|point| !point.is_in_group())
    });
    found.unwrap()
}

/// C45: a point outside the subgroup is found by the contributor, by the coordinator and by verifiers; pairings would not
/// see a component of order 3 times a coefficient that is a multiple of 3.
#[test]
fn c45_points_outside_the_subgroup_are_refused() {
    let (_directory, path) = bench();
    cheat(&path, Chain::Tau, 3, |_, sections| {
        let point: G1Point = get(&sections[0], 0, 7);
        set(&mut sections[0], 0, 7, &point.add(&outside()));
    });
    assert_eq!(refusal(check_powers(&path)), Check::Subgroup);
    let out = path.join("incoming/next");
    let contribute = || contribute_as(&open(&path), 4, &[Chain::Tau], &out);
    assert_eq!(refusal(contribute()), Check::Subgroup);
    assert!(!out.exists(), "nothing leaves the machine");
}

/// Files that change after the check are not used, whatever they have then.
#[test]
fn what_is_read_again_is_what_was_checked() {
    let (_directory, path) = bench();
    let powers = check_powers(&path).unwrap();
    let (len, good) = (2 * N, std::fs::read(&powers.tau.path).unwrap());
    assert_eq!(powers.tau.read::<G1Point>(0, 3).unwrap().len(), 3);
    let mut other = good.clone();
    // A point of the curve, in the group, that nobody reads in this call: the whole piece counts.
    set::<G1Point>(&mut other, 0, len - 1, &G1Point::generator());
    std::fs::write(&powers.tau.path, &other).unwrap();
    for len in [1, len] {
        let why = powers.tau.read::<G1Point>(0, len).unwrap_err().to_string();
        assert!(why.contains("changed after it was checked"), "{why}");
    }
    std::fs::write(&powers.tau.path, &good).unwrap();
    assert!(powers.tau.read::<G1Point>(0, len).is_ok());
}

/// C46: bytes that are no canonical point of the curve, with the place.
#[test]
fn c46_points_are_decoded_strictly() {
    let (_directory, path) = bench();
    cheat(&path, Chain::Tau, 3, |_, sections| sections[0][5 * 96 + 95] ^= 1);
    let Err(CeremonyError::Broken(broken)) = check_powers(&path) else { panic!("accepted") };
    assert_eq!(broken.check, Check::Curve);
    assert!(broken.at.contains("point 5 of tau_1"), "{}", broken.at);
}
