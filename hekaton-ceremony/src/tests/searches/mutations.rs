//! S6: random changes of a ceremony, by somebody who signs them.

use super::super::*;
use super::algebra::Random;
use hekaton_arith::{Fr, G1Point};
use hekaton_testing::Squarings;

const ONE: Chain = Chain::Segment(1);

/// A number below `count`.
fn below(random: &mut Random, count: usize) -> usize {
    let bytes = hekaton_arith::fr_to_bytes(&random.draw());
    usize::from_le_bytes(bytes[..8].try_into().unwrap()) % count
}

fn pick<'a, T>(random: &mut Random, list: &'a [T]) -> &'a T {
    &list[below(random, list.len())]
}

/// A last contributor replaces points by combinations of published ones; somebody changes bits of files. Nothing of it is accepted.
fn nothing_changed_is_accepted(count: u64) {
    let mut random = Random(7);
    let bench = Bench::new(&Squarings, true, None);
    [4, 5].into_iter().for_each(|seed| bench.step(seed));
    let transcript = open(&bench.path());
    let sections: Vec<Vec<u8>> = transcript
        .sections(ONE)
        .iter()
        .map(|section| std::fs::read(&section.path).unwrap())
        .collect();
    let tau = bench.powers.tau.read::<G1Point>(0, 64).unwrap();
    let of_sections = sections
        .iter()
        .flat_map(|section| (0..section.len() / 96).map(|at| get::<G1Point>(section, 0, at)));
    let of_records = transcript.records(ONE).iter().flat_map(|record| record.step.secret_points());
    let published: Vec<G1Point> = tau.into_iter().chain(of_sections).chain(of_records).collect();
    let files: Vec<PathBuf> = ["1.log", "genesis"]
        .into_iter()
        .map(|name| bench.path().join(name))
        .chain(transcript.sections(ONE).into_iter().map(|section| section.path))
        .collect();
    let good: Vec<Vec<u8>> = files.iter().map(|path| std::fs::read(path).unwrap()).collect();
    for number in 0..count {
        if number % 2 == 0 {
            cheat(&bench.path(), ONE, 6, |_, sections| {
                let kind = below(&mut random, sections.len());
                let at = below(&mut random, sections[kind].len() / 96);
                let [p, q] = [(); 2].map(|()| *pick(&mut random, &published));
                let factor = pick(&mut random, &[0u64, 1, 2, u64::MAX]).to_owned();
                let old: G1Point = get(&sections[kind], 0, at);
                let new = p.add(&q.mul(&Fr::from(factor)));
                assert_ne!(old, new, "published points divided by fresh secrets");
                set(&mut sections[kind], 0, at, &new);
            });
        } else {
            let file = below(&mut random, files.len());
            let mut bytes = good[file].clone();
            let at = below(&mut random, bytes.len());
            bytes[at] ^= 1 << below(&mut random, 8);
            std::fs::write(&files[file], bytes).unwrap();
        }
        let result = Transcript::open(&bench.path()).and_then(|changed| {
            verify_family(&changed, &bench.powers, None, &bench.types, &mut |_| {})
        });
        assert!(result.is_err(), "change {number}");
        for (path, bytes) in files.iter().zip(&good) {
            std::fs::write(path, bytes).unwrap();
        }
    }
    bench.check().unwrap();
}

#[test]
fn s6_no_change_is_accepted() {
    nothing_changed_is_accepted(100);
}

#[test]
#[ignore = "minutes: scripts/test --all"]
fn s6_no_change_of_many_is_accepted() {
    nothing_changed_is_accepted(10_000);
}
