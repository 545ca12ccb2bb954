//! The check of keys from elsewhere: honest keys pass, and every changed point is found.

use ark_ff::Zero;
use hekaton_arith::{G1Point, G2Point, Group};
use hekaton_core::keys::Sections;
use hekaton_core::{LocalEngine, ProverKeys, SetupOptions, setup};
use hekaton_storage::check_keys;
use hekaton_testing::Squares;

struct Bench {
    keys: ProverKeys,
    engine: LocalEngine,
}

fn bench() -> Bench {
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(
        &Squares::new(&[0, 1, 1, 0, 1]),
        &engine,
        &SetupOptions::new("squares").insecure_seed(1),
    )
    .unwrap();
    Bench { keys, engine }
}

fn message(bench: &Bench) -> String {
    check_keys(&bench.keys, &bench.engine, |_| {}).unwrap_err().to_string()
}

#[test]
fn honest_keys_pass() {
    let bench = bench();
    let report = check_keys(&bench.keys, &bench.engine, |_| {}).unwrap();
    assert!(report.points > 100 && report.relations == 14 + 2 * 12, "{report:?}");
}

/// One point of each section is changed within its group.
#[test]
fn every_changed_point_is_found() {
    let changed = |section: &'static str| {
        let mut bench = bench();
        let sections: &mut Sections = bench.keys.types[1].sections_mut();
        if section == "b" {
            let mut points = sections.get::<G2Point>(section).unwrap().to_vec();
            points[0] = points[0].add(&G2Point::generator());
            sections.replace(section, points);
        } else {
            let mut points = sections.get::<G1Point>(section).unwrap().to_vec();
            let last = points.len() - 1;
            points[last] = points[last].add(&G1Point::generator());
            sections.replace(section, points);
        }
        message(&bench)
    };
    for section in ["b", "h", "x", "d"] {
        assert!(changed(section).contains("does not hold"), "{section}");
    }
    // A and L are only checked against each other where the C column is zero: some points are found
    for section in ["l", "a"] {
        let found = (0..bench().keys.types[1].l_query().unwrap().len()).filter(|at| {
            let mut bench = bench();
            let sections = bench.keys.types[1].sections_mut();
            let mut points = sections.get::<G1Point>(section).unwrap().to_vec();
            points[*at] = points[*at].add(&G1Point::generator());
            sections.replace(section, points);
            check_keys(&bench.keys, &bench.engine, |_| {}).is_err()
        });
        assert!(found.count() > 0, "{section}");
    }
    // aggregation key
    for (section, says) in [("phi", "phi^"), ("st", "cm_St"), ("sb", "cm_Sb"), ("sg", "cm_Sg")] {
        let mut bench = bench();
        let mut points =
            bench.keys.aggregation.sections().get::<G1Point>(section).unwrap().to_vec();
        points[1] = points[1].add(&G1Point::generator());
        bench.keys.aggregation.sections_mut().replace(section, points);
        assert!(message(&bench).contains(says), "{section}");
    }
    let mut bench = bench();
    let mut psi = bench.keys.aggregation.psi().unwrap().to_vec();
    psi[3] = psi[3].add(&G2Point::generator());
    bench.keys.aggregation.sections_mut().replace("psi", psi);
    assert!(message(&bench).contains("psi^"));
    for (element, says) in [(0, "cm_delta"), (1, "cm_eta"), (2, "cm_Theta")] {
        let mut bench = self::bench();
        let mut elements = bench.keys.aggregation.elements().unwrap().to_vec();
        elements[1][element] = elements[1][element].add(&G2Point::generator());
        bench.keys.aggregation.sections_mut().replace("elements", elements);
        assert!(message(&bench).contains(says), "{says}");
    }
}

/// Points on the curve but outside the subgroup are found, although every digest is right.
#[test]
fn points_outside_the_subgroup_are_found() {
    // (0, 2) is on the curve and has order 3
    let two = ark_bls12_381::Fq::from(2u64);
    let outside =
        G1Point::from(ark_bls12_381::G1Affine::new_unchecked(ark_bls12_381::Fq::zero(), two));
    let mut bench = bench();
    let mut points = bench.keys.types[0].l_query().unwrap().to_vec();
    points[2] = points[2].add(&outside);
    bench.keys.types[0].sections_mut().replace("l", points);
    assert!(message(&bench).contains("section 'l': point 2"), "{}", message(&bench));
}
