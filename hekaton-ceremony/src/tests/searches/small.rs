//! S2 and S3: exhaustive searches. Powers with small secrets and all pairs of wrong points, and all algebraic strategies against the
//! proof of knowledge in small fields.

use super::super::*;
use crate::sections::Section;
use hekaton_arith::{Fr, G1Point, G2Point};

/// Powers in the exponent, as a section has them.
#[derive(Clone)]
struct Small {
    in_g1: [Vec<u64>; 3],
    in_g2: Vec<u64>,
    /// Tau, alpha, beta of the record in G1, and tau and beta in G2.
    single: [u64; 5],
}

impl Small {
    fn new(tau: u64, alpha: u64, beta: u64) -> Self {
        let powers = |first: u64, count: u32| (0..count).map(|i| first * tau.pow(i)).collect();
        Self {
            in_g1: [powers(1, 4), powers(alpha, 2), powers(beta, 2)],
            in_g2: powers(1, 2),
            single: [tau, alpha, beta, tau, beta],
        }
    }

    fn values(&mut self) -> Vec<&mut u64> {
        let vectors = self.in_g1.iter_mut().chain([&mut self.in_g2]);
        vectors.flatten().chain(&mut self.single).collect()
    }
}

fn put<G: Group>(bytes: &mut Vec<u8>, point: &G) {
    let start = bytes.len();
    bytes.resize(start + G::UNCOMPRESSED, 0);
    point.write_uncompressed(&mut bytes[start..]);
}

/// The section and the record of powers with two rows, without anything else of a ceremony.
struct Checker {
    directory: tempfile::TempDir,
    genesis: crate::Genesis,
}

impl Checker {
    fn accepts(&self, small: &mut Small) -> bool {
        let path = self.directory.path().join("section");
        let g1 = |x: u64| G1Point::generator().mul(&Fr::from(x));
        let g2 = |x: u64| G2Point::generator().mul(&Fr::from(x));
        let mut bytes = Vec::new();
        let [tau, alpha, beta] = &small.in_g1;
        // In the order of the section: tau in G1, tau in G2, alpha, beta.
        tau.iter().for_each(|x| put(&mut bytes, &g1(*x)));
        small.in_g2.iter().for_each(|x| put(&mut bytes, &g2(*x)));
        alpha.iter().chain(beta).for_each(|x| put(&mut bytes, &g1(*x)));
        std::fs::write(&path, &bytes).unwrap();
        let mut step = Step::start(&self.genesis, Chain::Tau);
        let Step::Powers(powers) = &mut step else { panic!() };
        let [tau, alpha, beta, tau_2, beta_2] = small.single;
        powers.in_g1 = vec![g1(tau), g1(alpha), g1(beta)];
        powers.in_g2 = [g2(tau_2), g2(beta_2)];
        powers.digests.new = *blake3::hash(&bytes).as_bytes();
        let (name, vectors) = self.genesis.sections(Chain::Tau).remove(0);
        let mut section = Section::file(path, name, vectors);
        // What the record check refuses comes first.
        let pairs = [(g1(tau), g2(tau_2)), (g1(beta), g2(beta_2))];
        let mut random = crate::random::VerifierRandomness::new().unwrap();
        !small.single.contains(&0)
            && crate::chain::same_logarithms(&pairs, &mut random)
            && crate::powers::check(&mut section, Chain::Tau, powers, true).is_ok()
    }
}

/// Wrong points do not hide one another: of all states that differ from right ones in two places, those with small secrets are accepted,
/// and no others.
#[test]
fn s2_no_two_wrong_points_hide_each_other() {
    let directory = tempfile::tempdir().unwrap();
    let genesis = new_powers(&directory.path().join("powers"), 2, 1, "", &|_| {}).unwrap().genesis;
    let checker = Checker { directory, genesis };
    let right = Small::new(2, 3, 5);
    assert!(checker.accepts(&mut right.clone()));
    let places = right.clone().values().len();
    let (mut tried, mut accepted) = (0, 0);
    for first in 0..places {
        for second in first + 1..places {
            for (x, y) in [0, 1, 2, 3, 4].into_iter().flat_map(|x| [0, 1, 2, 6].map(|y| (x, y))) {
                let mut small = right.clone();
                (*small.values()[first], *small.values()[second]) = (x, y);
                tried += 1;
                let [tau, alpha, beta, ..] = small.single;
                let of_secrets = Small::new(tau, alpha, beta)
                    .values()
                    .iter()
                    .map(|x| **x)
                    .eq(small.clone().values().iter().map(|x| **x));
                // Roots of unity of small order are refused, too; 1 is the only small one.
                let expected = of_secrets && tau > 1 && alpha > 0 && beta > 0;
                assert_eq!(checker.accepts(&mut small), expected, "{:?}", small.values());
                accepted += usize::from(expected);
            }
        }
    }
    assert!(tried > 2_000 && accepted > 0, "{accepted} of {tried}");
}

/// Vectors of three elements of a small field.
fn vectors(q: u64) -> Vec<[u64; 3]> {
    (0..q.pow(3)).map(|i| [i % q, i / q % q, i / q / q]).collect()
}

/// S3: the adversary knows points with logarithms 1, x and y, of which X with logarithm x is the base, and chooses X' and T as combinations
/// of them. If two challenges can be answered, X' is a known multiple of X. Controls: X' or T chosen after the challenge.
#[test]
fn s3_proofs_show_knowledge() {
    for q in [3, 5, 7] {
        let answers = |t: [u64; 3], c: u64, new: [u64; 3]| {
            // z X = T + c X' needs z = the coefficient of x, and no others.
            [0, 2].into_iter().all(|i| (t[i] + c * new[i]).is_multiple_of(q))
        };
        let knows = |new: [u64; 3]| new[0] == 0 && new[2] == 0;
        let (all, mut convincing) = (vectors(q), 0);
        for new in &all {
            for t in &all {
                if (0..q).filter(|c| answers(*t, *c, *new)).count() >= 2 {
                    assert!(knows(*new), "T {t:?}, X' {new:?} over F_{q}");
                    convincing += 1;
                }
            }
        }
        assert_eq!(convincing, q * q);
        let unknown = all.iter().filter(|new| !knows(**new));
        let bound = |c: u64, new: [u64; 3]| all.iter().any(|t| answers(*t, c, new));
        assert!(unknown.clone().all(|new| (1..q).all(|c| bound(c, *new))), "T after the challenge");
        let late = |t: [u64; 3], c: u64| unknown.clone().any(|new| answers(t, c, *new));
        let some = all.iter().filter(|t| !knows(**t));
        assert!(some.clone().all(|t| (1..q).all(|c| late(*t, c))), "X' after the challenge");
    }
}

/// S3 with the program's proofs: of all small combinations for X' and T, and the answers that algebra allows, those of a known secret are
/// accepted, and no others.
#[test]
fn s3_proofs_of_the_program_are_those_of_the_search() {
    let g = G1Point::generator();
    // Points whose logarithms the adversary does not know.
    let [x, y] = [3u64, 5].map(|secret| g.mul(&Fr::from(u64::MAX / secret)));
    let combined = |[a, b, c]: [u64; 3]| {
        let both = x.mul(&Fr::from(b)).add(&y.mul(&Fr::from(c)));
        g.mul(&Fr::from(a)).add(&both)
    };
    let body = b"a record";
    let mut accepted = 0;
    for new in vectors(3) {
        let after = combined(new);
        for t in vectors(3) {
            let mut proof = crate::Proof { t: combined(t), z: Fr::from(0u64) };
            let c = proof.challenge(body, 1, &x, &after);
            // The coefficient of x in z X = T + c X'.
            proof.z = Fr::from(t[1]) + c * Fr::from(new[1]);
            let known = [new[0], new[2], t[0], t[2]] == [0; 4];
            assert_eq!(proof.holds(body, 1, &x, &after), known, "T {t:?}, X' {new:?}");
            accepted += u64::from(known);
            // Another statement has another challenge.
            let moved = [proof.holds(b"A record", 1, &x, &after), proof.holds(body, 0, &x, &after)];
            assert_eq!(moved, [known && new[1] == 0; 2], "T {t:?}, X' {new:?}");
        }
    }
    assert_eq!(accepted, 9);
}
