//! Segments: C23 to C40.

use super::*;
use crate::record::{LedgerStep, TypeStep};
use crate::segment::types_of as kinds_of;
use ark_ff::Field;
use hekaton_arith::{Fr, G1Point, G2Point};
use hekaton_testing::{Shop, Squarings};

const ONE: Chain = Chain::Segment(1);

fn other() -> G1Point {
    G1Point::generator().mul(&Fr::from(99u64))
}

/// The offset in bytes of a vector of a type.
fn offset(bench: &Bench, kind: usize, vector: usize) -> usize {
    let transcript = open(&bench.path());
    transcript.genesis.family().unwrap().types[kind].points[..vector].iter().sum::<usize>() * 96
}

fn shop() -> Bench {
    let bench = Bench::new(&Shop::new(2), true, None);
    [4, 5].into_iter().for_each(|seed| bench.step(seed));
    bench
}

/// C23 to C26: one wrong element in L, X, H or D of any type, by the last contributor. The check names the query.
#[test]
fn c23_to_c26_each_query_is_checked() {
    let bench = shop();
    let log = std::fs::read(bench.path().join("1.log")).unwrap();
    let points = open(&bench.path()).genesis.family().unwrap().types.clone();
    for (kind, of_kind) in points.iter().enumerate() {
        for (vector, name) in ["L", "X", "H", "D"].into_iter().enumerate() {
            let start = offset(&bench, kind, vector);
            let at = of_kind.points[vector] - 1;
            cheat(&bench.path(), ONE, 6, |_, sections| {
                set::<G1Point>(&mut sections[kind], start, at, &other());
            });
            let Err(CeremonyError::Broken(broken)) = bench.check() else { panic!("accepted") };
            let expected = format!("section '{}', {name}", of_kind.name);
            assert_eq!((broken.check, broken.at), (Check::Queries, expected));
            assert!(without(&[Check::Queries, Check::Identity], || bench.check()).is_ok());
            std::fs::write(bench.path().join("1.log"), &log).unwrap();
            restore(&bench);
        }
    }
    assert!(bench.check().is_ok());
}

/// Makes the sections of the last record again, which a cheat has not removed.
fn restore(bench: &Bench) {
    assert!(open(&bench.path()).sections(ONE).iter().all(|section| section.path.exists()));
}

/// C27 to C29: IC, A and B, which the coordinator makes and nobody contributes to.
#[test]
fn c27_to_c29_fixed_queries_are_checked() {
    let bench = shop();
    let transcript = open(&bench.path());
    for kind in 0..bench.types.len() {
        let shape = crate::family::Shape::new(&bench.types[kind]);
        let vectors = shape.fixed();
        let mut start = 0;
        for vector in &vectors {
            let digest = transcript.genesis.family().unwrap().types[kind].fixed;
            let path = crate::transcript::fixed_path(&bench.path(), &digest);
            let good = std::fs::read(&path).unwrap();
            let mut bytes = good.clone();
            match vector.name {
                "B" => set(&mut bytes, start, 0, &G2Point::generator().mul(&Fr::from(9u64))),
                _ => set(&mut bytes, start, vector.len - 1, &other()),
            }
            start += vector.bytes() as usize;
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(refusal(bench.check()), Check::Digest);
            let refused = without(&[Check::Digest], || bench.check());
            assert_eq!(refusal(refused), Check::Queries, "{}", vector.name);
            let off = [Check::Digest, Check::Queries, Check::Identity];
            assert!(without(&off, || bench.check()).is_ok());
            std::fs::write(&path, good).unwrap();
        }
    }
    assert!(bench.check().is_ok());
}

/// C30, C31: delta or eta that differ between the groups, with sections to match.
#[test]
fn c30_c31_delta_and_eta_have_one_logarithm() {
    for which in [0, 1] {
        let bench = shop();
        let points = open(&bench.path()).genesis.family().unwrap().types[0].points;
        cheat(&bench.path(), ONE, 6, |step, sections| {
            let y = Fr::from(5u64);
            let Step::Segment { types, .. } = step else { panic!() };
            types[0].in_g2[which] = types[0].in_g2[which].mul(&y);
            let range = match which {
                0 => 0..points[..3].iter().sum(),
                _ => points[..3].iter().sum()..points.iter().sum::<usize>(),
            };
            let inverse = y.inverse().unwrap();
            for at in range {
                let point: G1Point = get(&sections[0], 0, at);
                set(&mut sections[0], 0, at, &point.mul(&inverse));
            }
        });
        refused_by_this_alone(Check::Groups, &[], || bench.check());
    }
}

/// C32, C33: a Theta that is not that of K, and one of another size.
#[test]
fn c32_c33_thetas_are_those_of_k() {
    for size in [0, 3, 5] {
        let bench = shop();
        cheat(&bench.path(), ONE, 6, |step, _| {
            let Step::Segment { ledger: Some(LedgerStep { thetas, .. }), .. } = step else {
                panic!()
            };
            thetas[size] = thetas[size].mul(&Fr::from(3u64));
        });
        refused_by_this_alone(Check::Theta, &[], || bench.check());
        let bench = shop();
        cheat(&bench.path(), ONE, 6, |step, _| {
            let Step::Segment { ledger: Some(LedgerStep { thetas, .. }), .. } = step else {
                panic!()
            };
            thetas[size] = thetas[size + 1];
        });
        refused_by_this_alone(Check::Theta, &[], || bench.check());
    }
}

/// Thetas at the start that are not those of the powers: they are the coordinator's, in the genesis.
#[test]
fn thetas_of_the_genesis_are_those_of_the_powers() {
    let bench = Bench::new(&Squarings, true, None);
    let mut genesis = open(&bench.path()).genesis;
    if let crate::Subject::Family(family) = &mut genesis.subject {
        family.thetas[3] = family.thetas[2];
    }
    std::fs::write(bench.path().join("genesis"), genesis.to_bytes()).unwrap();
    std::fs::write(log_path(&bench.path(), ONE), crate::log::header(&genesis)).unwrap();
    bench.step(4);
    let Err(CeremonyError::Broken(broken)) = bench.check() else { panic!("accepted") };
    assert_eq!((broken.check, &broken.at[..]), (Check::Theta, "the genesis"));
    assert!(without(&[Check::Theta], || bench.check()).is_ok());
}

/// C34: contributors of all places together share a delta between types, make it equal to an eta, or 1.
#[test]
fn c34_shared_secrets_are_refused() {
    let together = |choose: &dyn Fn(&[TypeStep], &mut Vec<Fr>)| {
        let bench = Bench::new(&Squarings, true, None);
        bench.step(4);
        let transcript = open(&bench.path());
        let checked = transcript.check().unwrap();
        let before = &checked[0];
        let mut secrets = Seed::known(5).secrets(ONE, before.last().secrets()).to_vec();
        choose(kinds_of(before.last()).0, &mut secrets);
        contribute_with(&bench, before, &secrets);
        bench
    };
    let first = |number: usize| Seed::known(4).secrets(ONE, 5)[number];
    // delta of type 0 = delta of type 1, delta of type 0 = its eta.
    for pair in [2, 1] {
        let bench = together(&|_, secrets| secrets[pair] = first(0) * secrets[0] / first(pair));
        refused_by_this_alone(Check::Distinct, &[], || bench.check());
    }
    let bench = together(&|_, secrets| secrets[0] = first(0).inverse().unwrap());
    refused_by_this_alone(Check::Distinct, &[], || bench.check());
    // Readers of family keys refuse them, too.
    let family = without(&[Check::Distinct], || bench.check()).unwrap();
    let why = family.key(&bench.powers).unwrap_err().to_string();
    assert!(why.contains("forge"), "{why}");
}

/// Contributes to the first segment with chosen secrets.
pub(super) fn contribute_with(
    bench: &Bench,
    before: &crate::chain::Checked,
    secrets: &[Fr],
) -> crate::Record {
    let transcript = open(&bench.path());
    let Step::Segment { types, ledger } = before.last() else { panic!() };
    let (mut new, mut contents) = (Vec::new(), Vec::new());
    let mut members = crate::membership::Members::new().unwrap();
    for (kind, (section, step)) in transcript.sections(ONE).iter().zip(types).enumerate() {
        let mut bytes = Vec::new();
        let out = crate::powers::Output {
            file: &mut bytes,
            path: Path::new("memory"),
            hasher: blake3::Hasher::new(),
        };
        let own = &secrets[2 * kind..2 * kind + 2];
        new.push(
            crate::segment::contribute(
                section,
                (&before.head(), kind),
                step,
                own,
                &mut members,
                out,
            )
            .unwrap(),
        );
        contents.push(bytes);
    }
    let ledger = ledger
        .as_ref()
        .map(|ledger| crate::segment::contribute_ledger(ledger, &secrets[secrets.len() - 1]));
    for (bytes, step) in contents.iter().zip(&new) {
        std::fs::write(section_path(&bench.path(), &step.digests.new), bytes).unwrap();
    }
    let record = crate::Record {
        place: (before.heads.len() - 1) as u32,
        before: before.head(),
        name: "one".into(),
        ..crate::Record::empty(&transcript.genesis, ONE)
    };
    let step = Step::Segment { types: new, ledger };
    let record = sign(&Seed::known(5), record, before, step, secrets).unwrap();
    let mut log = transcript.log(ONE).clone();
    log.append(&log_path(&bench.path(), ONE), record.clone()).unwrap();
    record
}

/// C35, C36: a point where the column is zero, and infinity where it is not.
#[test]
fn c35_c36_points_vanish_where_columns_do() {
    let bench = shop();
    for vector in 0..4 {
        let bench = shop();
        let start = offset(&bench, 1, vector);
        cheat(&bench.path(), ONE, 6, |_, sections| {
            set::<G1Point>(&mut sections[1], start, 0, &G1Point::IDENTITY);
        });
        assert_eq!(refusal(bench.check()), Check::Identity, "vector {vector}");
        assert_eq!(refusal(without(&[Check::Identity], || bench.check())), Check::Queries);
    }
    // Challenges that a type does not use have IC at infinity, and are accepted.
    let family = bench.check().unwrap();
    let key = family.key(&bench.powers).unwrap();
    let vanishing = (0..3).flat_map(|kind| key.ic(kind).unwrap().to_vec());
    assert!(vanishing.filter(Group::is_identity).count() > 0);
}

/// C37: a section with one point more or fewer.
#[test]
fn c37_sections_have_their_length() {
    for more in [true, false] {
        let bench = shop();
        cheat(&bench.path(), ONE, 6, |_, sections| match more {
            true => sections[0].extend([0; 96]),
            false => {
                let shorter = sections[0].len() - 96;
                sections[0].truncate(shorter);
            }
        });
        let why = bench.check().expect_err("refused").to_string();
        assert!(why.contains(if more { "expected" } else { "cut off" }), "{why}");
    }
}

/// C38: the sections of another branch of the ceremony.
#[test]
fn c38_sections_are_those_of_the_last_record() {
    let bench = shop();
    let last = open(&bench.path());
    let sections = last.sections(ONE);
    cheat(&bench.path(), ONE, 7, |_, _| {});
    let other = open(&bench.path()).sections(ONE);
    for (from, to) in sections.iter().zip(&other) {
        std::fs::copy(&from.path, &to.path).unwrap();
    }
    assert_eq!(refusal(bench.check()), Check::Digest);
    assert_eq!(refusal(without(&[Check::Digest], || bench.check())), Check::Queries);
}

/// C39: a family is checked against its own powers, and others are recognized by their digest.
#[test]
fn c39_a_family_belongs_to_its_powers() {
    let bench = shop();
    let directory = tempfile::tempdir().unwrap();
    let mut powers = check_powers(&powers_of(directory.path(), 64, 5, &[8])).unwrap();
    let verify = |powers: &Powers| {
        verify_family(&open(&bench.path()), powers, None, &bench.types, &mut |_| {})
    };
    assert!(matches!(verify(&powers), Err(CeremonyError::Foreign(_))));
    powers.digest = bench.powers.digest;
    assert_eq!(refusal(verify(&powers)), Check::Theta);
    let off = [Check::Theta];
    assert_eq!(refusal(without(&off, || verify(&powers))), Check::InputSums);
    let off = [Check::Theta, Check::InputSums];
    assert_eq!(refusal(without(&off, || verify(&powers))), Check::Queries);
}

/// C40: another circuit, other modes and another order of types.
#[test]
fn c40_the_genesis_fixes_the_circuit() {
    let bench = shop();
    let refuses = |types: &[R1cs]| {
        let found = verify_family(&open(&bench.path()), &bench.powers, None, types, &mut |_| {});
        assert!(matches!(found, Err(CeremonyError::Foreign(_) | CeremonyError::Type(_))));
    };
    refuses(&types_of(&Squarings, true).0);
    refuses(&types_of(&Shop::new(2), false).0);
    let mut types = bench.types.clone();
    types.swap(0, 1);
    refuses(&types);
    refuses(&bench.types[..2]);
    // A genesis with other content makes all heads others.
    let mut transcript = open(&bench.path());
    if let crate::Subject::Family(family) = &mut transcript.genesis.subject {
        family.zero_knowledge = false;
    }
    assert_eq!(refusal(transcript.check()), Check::Head);
}

/// R32: what a coordinator checks before it accepts a contribution to a segment.
#[test]
fn coordinators_refuse_wrong_contributions() {
    let bench = shop();
    let mut coordinator = Coordinator::open(&bench.path()).unwrap();
    let transcript = coordinator.transcript.clone();
    let checked = transcript.check().unwrap();
    let respond = |change: &dyn Fn(&mut Step, &mut Vec<Vec<u8>>)| {
        let out = bench.path().join("incoming/response");
        contribute_as(&transcript, 6, &[ONE], &out).unwrap();
        let response = Response::open(&out, &transcript.genesis).unwrap();
        let bytes = std::fs::read(&out).unwrap();
        let first = response.sections[0][0].offset as usize;
        let mut sections: Vec<Vec<u8>> = (response.sections[0].iter())
            .map(|section| bytes[section.offset as usize..][..section.bytes() as usize].to_vec())
            .collect();
        let mut record = response.records[0].clone();
        change(&mut record.step, &mut sections);
        let digests = sections.iter().map(|bytes| *blake3::hash(bytes).as_bytes()).collect();
        set_new_digests(&mut record.step, digests);
        let seed = Seed::known(6);
        let secrets = seed.secrets(ONE, checked[0].last().secrets());
        let step = record.step.clone();
        let record = sign(&seed, record, &checked[0], step, &secrets).unwrap();
        let mut head = bytes[..45].to_vec();
        head.push(ONE.code());
        let record = record.to_bytes();
        head.extend((record.len() as u32).to_le_bytes());
        head.extend(record);
        assert_eq!(head.len(), first);
        std::fs::write(&out, [head, sections.concat()].concat()).unwrap();
        Response::open(&out, &transcript.genesis).unwrap()
    };
    let mut refused_with = |change: &dyn Fn(&mut Step, &mut Vec<Vec<u8>>)| {
        refusal(coordinator.add(&respond(change), &mut |_| {}))
    };
    let start = offset(&bench, 0, 3);
    for at in [0, start] {
        let wrong =
            |_: &mut Step, sections: &mut Vec<Vec<u8>>| set(&mut sections[0], at, 0, &other());
        assert_eq!(refused_with(&wrong), Check::Update);
    }
    let sums = |which: usize| {
        move |step: &mut Step, _: &mut Vec<Vec<u8>>| {
            let Step::Segment { types, .. } = step else { panic!() };
            types[1].sums[which] = other();
        }
    };
    assert_eq!(refused_with(&sums(0)), Check::InputSums);
    assert_eq!(refused_with(&sums(1)), Check::InputSums);
    let thetas = |step: &mut Step, _: &mut Vec<Vec<u8>>| {
        let Step::Segment { ledger: Some(ledger), .. } = step else { panic!() };
        ledger.thetas[2] = ledger.thetas[1];
    };
    assert_eq!(refused_with(&thetas), Check::Theta);
    // The honest one is accepted, and a second one to the same head is not (C56).
    let out = bench.path().join("incoming/other");
    contribute_as(&transcript, 7, &[ONE], &out).unwrap();
    let honest = respond(&|_, _| {});
    coordinator.add(&honest, &mut |_| {}).unwrap();
    let again = coordinator.add(&honest, &mut |_| {}).unwrap_err().to_string();
    assert!(again.contains("already"), "{again}");
    let late = Response::open(&out, &transcript.genesis).unwrap();
    let late = coordinator.add(&late, &mut |_| {}).unwrap_err().to_string();
    assert!(late.contains("contribute again"), "{late}");
    drop(coordinator);
    assert!(bench.check().is_ok());
}

/// R13: the error for a wrong input sum names its record, wherever it stands.
#[test]
fn input_sums_are_those_of_the_circuit() {
    for which in [0, 1] {
        let bench = shop();
        cheat(&bench.path(), ONE, 6, |step, _| {
            let Step::Segment { types, .. } = step else { panic!() };
            types[2].sums[which] = other();
        });
        bench.step(7);
        let Err(CeremonyError::Broken(broken)) = bench.check() else { panic!("accepted") };
        assert_eq!(broken.check, Check::InputSums);
        assert!(broken.at.contains("record 2 (by contributor 6)"), "{}", broken.at);
        assert!(without(&[Check::InputSums], || bench.check()).is_ok());
    }
}
