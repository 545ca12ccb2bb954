//! C41 to C44: the attack for which input sums are there (spec: ceremony#why-input-sums). A coordinator sends an honest
//! contributor another point for a variable whose right point follows from others, and obtains it divided by the
//! contributor's secret delta.

use super::segments::contribute_with;
use super::*;
use crate::record::{Record, TypeStep};
use crate::segment::{D, H, L, X, input_coefficients, types_of as kinds_of};
use ark_ff::{Field, One, Zero};
use hekaton_arith::{Fr, G1Point, G2Point, pairing, powers};
use hekaton_circuit::Closures;
use hekaton_circuit::ark::r1cs_std::alloc::AllocVar;
use hekaton_circuit::ark::r1cs_std::eq::EqGadget;
use hekaton_circuit::ark::r1cs_std::fields::FieldVar;
use hekaton_circuit::ark::r1cs_std::fields::fp::FpVar;
use hekaton_testing::Squarings;

const ONE: Chain = Chain::Segment(1);

/// The index in X of e, which has a column in C: row 0.
fn place_of_e(r1cs: &R1cs) -> usize {
    let shape = crate::family::Shape::new(r1cs);
    shape.x.iter().position(|variable| *variable as usize == r1cs.layout.sum()).unwrap()
}

/// The right X point of e, from H: `-sum_i L_0(s w^i) H_i`, where L_0 is the column of e.
fn rebuilt(section: &[u8], start: usize, n: usize) -> G1Point {
    let (s, w) = (crate::lagrange::root(2 * n), crate::lagrange::root(n));
    let h: Vec<G1Point> = (0..n).map(|i| get(section, start, i)).collect();
    let scalars: Vec<Fr> = powers(w, n)
        .iter()
        .map(|w| {
            // L_0(x) = (x^n - 1) / (n (x - 1)), and x^n = -1 on the coset.
            let x = s * w;
            Fr::from(2u64) / (Fr::from(n as u64) * (x - Fr::one()))
        })
        .collect();
    G1Point::msm(&h, &scalars)
}

/// The input sums that an accomplice states: those of a section that it did not receive.
fn sums_of(
    section: &[u8],
    points: [usize; 4],
    head: &[u8; 32],
    received: &[u8; 32],
) -> [G1Point; 2] {
    let mut stream = input_coefficients(head, 0, received);
    let mut sums = [G1Point::IDENTITY; 2];
    let mut at = 0;
    for (vector, count) in points.into_iter().enumerate() {
        let rho = crate::random::coefficients(&mut stream, count);
        let list: Vec<G1Point> = (at..at + count).map(|i| get(section, 0, i)).collect();
        let sum = &mut sums[usize::from(vector == D)];
        *sum = sum.add(&G1Point::msm(&list, &rho));
        at += count;
    }
    sums
}

/// An honest contributor between two accomplices who lie about digests, so that all links fit and the last keys are right: the
/// input sums alone refuse it. Without them the coordinator keeps `[L_0 / delta]_1`, which is a free ledger term for
/// every proof.
#[test]
fn c41_c42_input_sums_alone_refuse_substituted_points() {
    let bench = Bench::new(&Squarings, true, None);
    let genesis = open(&bench.path()).genesis;
    let of_type = genesis.family().unwrap().types[0].clone();
    let n = of_type.domain;
    let (start_x, start_h) = (of_type.points[L] * 96, (of_type.points[L] + of_type.points[X]) * 96);
    let at = start_x + place_of_e(&bench.types[0]) * 96;
    let basis = crate::lagrange::lagrange(bench.powers.tau.read::<G1Point>(0, n).unwrap());
    let l_0 = basis[0];

    // The first accomplice knows its delta, and puts [L_0 / delta] in the place of the point of e.
    let first = Seed::known(4).secrets(ONE, 5);
    cheat(&bench.path(), ONE, 4, |_, sections| {
        let right: G1Point = get(&sections[0], at, 0);
        assert_eq!(right, rebuilt(&sections[0], start_h, n), "e is redundant");
        set(&mut sections[0], at, 0, &l_0.mul(&first[0].inverse().unwrap()));
    });

    // The honest contributor checks all that it can, with this program, and notices nothing.
    let out = bench.path().join("incoming/honest");
    contribute_as(&open(&bench.path()), 5, &[ONE], &out).unwrap();
    let response = Response::open(&out, &genesis).unwrap();
    let section = &response.sections[0][0];
    let bytes = std::fs::read(&out).unwrap();
    let mut returned = bytes[section.offset as usize..][..section.bytes() as usize].to_vec();
    let stolen: G1Point = get(&returned, at, 0);
    let mut log = open(&bench.path()).log(ONE).clone();
    log.append(&log_path(&bench.path(), ONE), response.records[0].clone()).unwrap();
    for (section, digests) in response.sections[0].iter().zip(response.records[0].step.digests()) {
        let bytes = &bytes[section.offset as usize..][..section.bytes() as usize];
        std::fs::write(section_path(&bench.path(), &digests.new), bytes).unwrap();
    }

    // The second accomplice starts from right points, and states the digest and the sums that fit.
    let right = rebuilt(&returned, start_h, n);
    set(&mut returned, at, 0, &right);
    let transcript = open(&bench.path());
    let checked = transcript.check().unwrap();
    let before = &checked[0];
    let seed = Seed::known(6);
    let secrets = seed.secrets(ONE, before.last().secrets());
    let honest = contribute_with(&bench, before, &secrets);
    let log_bytes = open(&bench.path()).log(ONE).to_bytes(&genesis);
    // Taken back: only its form was needed.
    let shorter = open(&bench.path()).log(ONE).records[..2].to_vec();
    let mut log = crate::log::Log::empty(ONE);
    std::fs::write(log_path(&bench.path(), ONE), crate::log::header(&genesis)).unwrap();
    shorter.into_iter().for_each(|r| log.append(&log_path(&bench.path(), ONE), r).unwrap());
    assert!(log_bytes.len() > log.to_bytes(&genesis).len());
    let inverse = [0, 1].map(|which: usize| secrets[which].inverse().unwrap());
    let count: usize = of_type.points.iter().sum();
    let mut last = returned.clone();
    for i in 0..count {
        let which = usize::from(i >= count - of_type.points[D]);
        let point: G1Point = get(&returned, 0, i);
        set(&mut last, 0, i, &point.mul(&inverse[which]));
    }
    let mut step = honest.step.clone();
    let Step::Segment { types, .. } = &mut step else { panic!() };
    let TypeStep { sums, digests, .. } = &mut types[0];
    *sums = sums_of(&returned, of_type.points, &before.head(), &digests.received);
    digests.new = *blake3::hash(&last).as_bytes();
    let record = Record { ..honest };
    let record = sign(&seed, record, before, step, &secrets).unwrap();
    std::fs::write(section_path(&bench.path(), &blake3::hash(&last).into()), &last).unwrap();
    log.append(&log_path(&bench.path(), ONE), record).unwrap();

    let Err(CeremonyError::Broken(broken)) = bench.check() else { panic!("accepted") };
    assert_eq!(broken.check, Check::InputSums);
    assert!(broken.at.contains("by contributor 5"), "the honest record tells: {}", broken.at);
    let family = without(&[Check::InputSums], || bench.check()).unwrap();

    // What the coordinator has kept, at the last delta: a term of C that adds L_0 to the ledger at no cost.
    let free = stolen.mul(&inverse[0]);
    let transcript = open(&bench.path());
    let delta = kinds_of(&transcript.records(ONE)[2].step).0[0].in_g2[0];
    assert_eq!(pairing(&free, &delta), pairing(&l_0, &G2Point::generator()));
    assert!(family.key(&bench.powers).is_ok(), "and the keys pass every other check");
    assert_eq!(H, 2);
}

/// C41: with honest digests, links tell already; the sums tell as well.
#[test]
fn c41_substituted_points_do_not_fit_the_digests() {
    let bench = Bench::new(&Squarings, true, None);
    bench.step(4);
    let transcript = open(&bench.path());
    let section = &transcript.sections(ONE)[0];
    let mut bytes = std::fs::read(&section.path).unwrap();
    let at = transcript.genesis.family().unwrap().types[0].points[L] * 96;
    set(&mut bytes, at, place_of_e(&bench.types[0]), &G1Point::generator());
    std::fs::write(&section.path, bytes).unwrap();
    let out = bench.path().join("incoming/next");
    let contribute = || contribute_as(&transcript, 5, &[ONE], &out);
    assert_eq!(refusal(contribute()), Check::Digest);
    assert!(!out.exists());
}

/// C44: powers that are not those of the family.
#[test]
fn c44_each_input_sum_needs_all_queries() {
    for vector in [L, X, H, D] {
        let bench = Bench::new(&Squarings, true, None);
        let points = open(&bench.path()).genesis.family().unwrap().types[1].points;
        let start: usize = points[..vector].iter().sum();
        cheat(&bench.path(), ONE, 4, |_, sections| {
            let point: G1Point = get(&sections[1], 0, start);
            set(&mut sections[1], 0, start, &point.add(&G1Point::generator()));
        });
        bench.step(5);
        let Err(CeremonyError::Broken(broken)) = bench.check() else { panic!("accepted") };
        assert_eq!(broken.check, Check::InputSums, "vector {vector}");
        assert!(broken.at.contains("by contributor 5"), "{}", broken.at);
    }
}

/// A circuit with a variable in no row, and two variables with the same columns.
fn with_spare_variables() -> Closures {
    Closures::new(
        |layout| {
            let wires = vec![layout.public_input("x", 0), layout.public_output("y", 0)];
            let kind = layout.subcircuit_type("square", 2);
            let instance = layout.instance(kind);
            layout.read(instance, 0, wires[0]);
            layout.write(instance, 1, wires[1]);
            Ok(wires)
        },
        |_, _| Ok(()),
        |_| Ok(()),
        |subcircuit, _| {
            let zero = || FpVar::new_witness(subcircuit.cs(), || Ok(Fr::from(0u64)));
            let (_, twins) = (zero()?, [zero()?, zero()?]);
            (&twins[0] + &twins[1]).enforce_equal(&FpVar::zero())?;
            let (x, y) = (subcircuit.slot(0)?, subcircuit.slot(1)?);
            (x * x).enforce_equal(y)
        },
    )
}

/// C43: points of variables in no row, or of variables with equal columns, follow from other points as well. An accomplice before an
/// honest contributor puts `[L_0 / delta]` in the place of one, an accomplice afterwards puts the right point back, and both say the
/// truth about what they received.
#[test]
fn c43_points_of_spare_variables_are_no_oracles() {
    let circuit = with_spare_variables();
    let r1cs = &types_of(&circuit, true).0[0];
    let shape = crate::family::Shape::new(r1cs);
    let column = |variable: usize| -> Vec<Vec<Fr>> {
        let coefficient = |row: usize, side: usize| {
            let terms = r1cs.side(side).canonical(row).into_iter();
            terms.filter(|term| term.1 == variable).map(|term| term.0).sum()
        };
        (0..3)
            .map(|side| (0..r1cs.constraints()).map(|row| coefficient(row, side)).collect())
            .collect()
    };
    let columns: Vec<_> = shape.aux().map(column).collect();
    let is_zero = |column: &Vec<Vec<Fr>>| column.iter().flatten().all(Zero::is_zero);
    let unused = columns.iter().position(is_zero).expect("a variable in no row");
    let twin = (0..columns.len())
        .find(|at| !is_zero(&columns[*at]) && columns[..*at].contains(&columns[*at]))
        .expect("variables with the same columns");
    let other = columns.iter().position(|column| *column == columns[twin]).unwrap();

    for (slot, right) in [(unused, None), (twin, Some(other))] {
        let bench = Bench::new(&circuit, true, None);
        let tau = bench.powers.tau.read::<G1Point>(0, shape.domain).unwrap();
        let l_0 = crate::lagrange::lagrange(tau)[0];
        let first = Seed::known(4).secrets(ONE, 3);
        cheat(&bench.path(), ONE, 4, |_, sections| {
            set(&mut sections[0], 0, slot, &l_0.mul(&first[0].inverse().unwrap()));
        });
        // The coordinator's own check, and the contributor's, find nothing.
        bench.step(5);
        let transcript = open(&bench.path());
        let section = std::fs::read(&transcript.sections(ONE)[0].path).unwrap();
        let delta = kinds_of(&transcript.records(ONE)[1].step).0[0].in_g2[0];
        let stolen: G1Point = get(&section, 0, slot);
        assert_eq!(pairing(&stolen, &delta), pairing(&l_0, &G2Point::generator()));
        cheat(&bench.path(), ONE, 6, |_, sections| {
            let point = right.map_or(G1Point::IDENTITY, |at| get(&sections[0], 0, at));
            set(&mut sections[0], 0, slot, &point);
        });
        refused_by_this_alone(Check::InputSums, &[], || bench.check());
    }
}
