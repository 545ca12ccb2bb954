//! Records: C13 to C22, C47, C63.

use super::*;
use crate::chain;
use crate::record::Record;
use crate::secrets::Seed;
use hekaton_arith::{G1Point, G2Point};

const CHAIN: Chain = Chain::Tau;

fn bench() -> (tempfile::TempDir, Transcript) {
    let directory = tempfile::tempdir().unwrap();
    let path = powers_of(directory.path(), 4, 2, &[1, 2, 3]);
    let transcript = open(&path);
    (directory, transcript)
}

fn check(transcript: &Transcript, records: &[Record]) -> Result<chain::Checked, CeremonyError> {
    chain::check(&transcript.genesis, CHAIN, records)
}

/// C13 to C15, C17: records that are left out, repeated, in another order or at another place.
#[test]
fn c13_to_c17_records_follow_one_another() {
    let (_directory, transcript) = bench();
    let records = transcript.records(CHAIN).to_vec();
    assert!(check(&transcript, &records).is_ok());
    let [one, two, three] = <[Record; 3]>::try_from(records).unwrap();
    let rest = [Check::Place, Check::Knowledge, Check::Link, Check::Unchanged];
    for list in [
        vec![one.clone(), three.clone()],
        vec![one.clone(), two.clone(), two.clone()],
        vec![two.clone(), one.clone()],
    ] {
        refused_by_this_alone(Check::Head, &rest, || check(&transcript, &list));
    }
    let moved = Record { place: 7, ..three.clone() };
    let list = [one.clone(), two.clone(), moved];
    refused_by_this_alone(Check::Place, &[Check::Knowledge], || check(&transcript, &list));
}

/// C16: a contributor drops its predecessors: the record names the head after them, but its points start from the
/// generators.
#[test]
fn c16_predecessors_cannot_be_dropped() {
    let (_directory, transcript) = bench();
    let records = transcript.records(CHAIN)[..2].to_vec();
    let checked = check(&transcript, &records).unwrap();
    let start = check(&transcript, &[]).unwrap();
    let first = records[0].clone();
    let seed = Seed::known(1);
    let secrets = seed.secrets(CHAIN, 3);
    let draft = Record { place: 2, before: checked.head(), ..first.clone() };
    let dropped = sign(&seed, draft, &start, first.step, &secrets).unwrap();
    let list = [records, vec![dropped]].concat();
    refused_by_this_alone(Check::Knowledge, &[Check::Link, Check::Unchanged], || {
        check(&transcript, &list)
    });
}

/// C18: a record of another ceremony with the same content, and one of another chain.
#[test]
fn c18_records_belong_to_one_chain_of_one_ceremony() {
    let (_directory, transcript) = bench();
    let (_other, other) = bench();
    let rest = [Check::Knowledge];
    refused_by_this_alone(Check::Head, &rest, || check(&transcript, other.records(CHAIN)));
    let bytes = transcript.records(CHAIN)[0].to_bytes();
    assert!(Record::from_bytes(&bytes, &transcript.genesis, Chain::Phi).is_err());
}

/// C19: nothing in a record can be changed under its proofs: each byte of each field.
#[test]
fn c19_proofs_sign_the_whole_record() {
    let (_directory, transcript) = bench();
    let records = transcript.records(CHAIN).to_vec();
    let last = &records[2];
    let changes: [(&str, Record); 5] = [
        ("name", Record { name: "contributor 4".into(), ..last.clone() }),
        ("program", Record { program: "another program".into(), ..last.clone() }),
        ("kind", Record { kind: Kind::Beacon { value: vec![1], exponent: 1 }, ..last.clone() }),
        ("received", with_digest(last, true)),
        ("new", with_digest(last, false)),
    ];
    for (what, changed) in changes {
        let list = [records[..2].to_vec(), vec![changed]].concat();
        assert_eq!(refusal(check(&transcript, &list)), Check::Knowledge, "{what}");
        let rest = [Check::Knowledge, Check::Link, Check::Beacon];
        assert!(without(&rest, || check(&transcript, &list)).is_ok(), "{what}");
    }
    for number in 0..3 {
        let mut changed = last.clone();
        changed.proofs[number].z += hekaton_arith::Fr::from(1u64);
        let list = [records[..2].to_vec(), vec![changed]].concat();
        refused_by_this_alone(Check::Knowledge, &[], || check(&transcript, &list));
        let mut changed = last.clone();
        changed.proofs.swap(number, (number + 1) % 3);
        let list = [records[..2].to_vec(), vec![changed]].concat();
        refused_by_this_alone(Check::Knowledge, &[], || check(&transcript, &list));
    }
}

fn with_digest(record: &Record, received: bool) -> Record {
    let mut changed = record.clone();
    let Step::Powers(step) = &mut changed.step else { panic!() };
    let digest = if received { &mut step.digests.received } else { &mut step.digests.new };
    digest[0] ^= 1;
    changed
}

/// C20: a chain without a contribution; C21: one with a beacon only; C22: a beacon with another value than its points.
#[test]
fn c20_to_c22_beacons_count_for_nobody() {
    let directory = tempfile::tempdir().unwrap();
    let path = powers_of(directory.path(), 4, 2, &[]);
    let verify = || crate::verify_records(&open(&path));
    refused_by_this_alone(Check::Contribution, &[], verify);
    let beacon = |value: &[u8]| Kind::Beacon { value: value.to_vec(), exponent: 3 };
    add_as(&path, beacon(b"block 1"), 9);
    refused_by_this_alone(Check::Contribution, &[], verify);
    step(&path, 1);
    assert!(verify().is_ok() && check_powers(&path).is_ok());
    // A second one.
    without(&[Check::SecondBeacon], || add_as(&path, beacon(b"block 2"), 9));
    refused_by_this_alone(Check::SecondBeacon, &[], verify);
    let other = tempfile::tempdir().unwrap();
    let path = powers_of(other.path(), 4, 2, &[1, 2]);
    add_as(&path, beacon(b"block 2"), 9);
    let transcript = open(&path);
    check_powers(&path).unwrap();
    assert_eq!(crate::contributors(transcript.records(CHAIN)), ["contributor 1", "contributor 2"]);
    // Signed by somebody who has secrets of its own.
    let records = transcript.records(CHAIN).to_vec();
    let before = check(&transcript, &records[..2]).unwrap();
    let seed = Seed::known(5);
    let secrets = seed.secrets(CHAIN, 3);
    let mut step = before.last().clone();
    if let (Step::Powers(step), Step::Powers(old)) = (&mut step, before.last()) {
        step.digests.received = old.digests.new;
        step.in_g1.iter_mut().zip(&*secrets).for_each(|(point, secret)| *point = point.mul(secret));
        step.in_g2[0] = step.in_g2[0].mul(&secrets[0]);
        step.in_g2[1] = step.in_g2[1].mul(&secrets[2]);
    }
    let draft = Record { place: 2, before: before.head(), ..records[2].clone() };
    let false_beacon = sign(&seed, draft, &before, step, &secrets).unwrap();
    let list = [records[..2].to_vec(), vec![false_beacon]].concat();
    refused_by_this_alone(Check::Beacon, &[], || check(&transcript, &list));
}

fn add_as(path: &Path, kind: Kind, seed: u64) {
    let mut coordinator = Coordinator::open(path).unwrap();
    let chains = coordinator.transcript.genesis.chains();
    let contributor = Contributor { name: "beacon", program: PROGRAM, kind, chains: &chains };
    let out = path.join("incoming/beacon");
    let seed = Seed::known(seed);
    contribute(&coordinator.transcript, &contributor, seed, &out, &mut |_| {}).unwrap();
    let response = Response::open(&out, &coordinator.transcript.genesis).unwrap();
    let why = coordinator.add(&response, &mut |_| {}).unwrap_err().to_string();
    assert!(why.contains("a beacon is the coordinator's"), "{why}");
    coordinator.add_beacon(&response, &mut |_| {}).unwrap();
}

/// C63: the same seed and fresh bytes, but another statement: another nonce.
#[test]
fn c63_nonces_depend_on_the_statement() {
    let seed = Seed::known(7);
    let fresh = [5; 32];
    let nonce = seed.nonce_with(b"head 1", &fresh);
    assert_eq!(*nonce, *seed.nonce_with(b"head 1", &fresh));
    assert_ne!(*nonce, *seed.nonce_with(b"head 2", &fresh));
    assert_ne!(*nonce, *seed.nonce_with(b"head 1", &[6; 32]));
    assert_ne!(*nonce, *Seed::known(8).nonce_with(b"head 1", &fresh));
    assert_ne!(*seed.nonce(b"head 1").unwrap(), *seed.nonce(b"head 1").unwrap());
}

/// Secrets are drawn for a chain: no two are equal.
#[test]
fn secrets_are_distinct() {
    let mut all = Vec::new();
    for chain in [Chain::Tau, Chain::Phi, Chain::Segment(1), Chain::Segment(2)] {
        all.extend(Seed::known(1).secrets(chain, 9).iter().copied());
    }
    all.extend(Seed::known(2).secrets(Chain::Tau, 9).iter().copied());
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!((all.len(), count), (45, 45));
}

/// Records and their encodings: each byte counts, and nothing may follow.
#[test]
fn records_have_one_encoding() {
    let (_directory, transcript) = bench();
    let record = &transcript.records(CHAIN)[1];
    let bytes = record.to_bytes();
    let read = |bytes: &[u8]| Record::from_bytes(bytes, &transcript.genesis, CHAIN);
    assert_eq!(read(&bytes).as_ref(), Ok(record));
    for end in 0..bytes.len() {
        assert!(read(&bytes[..end]).is_err(), "{end}");
    }
    assert!(read(&[&bytes[..], &[0]].concat()).is_err());
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        assert!(read(&changed).ok().is_none_or(|other| other.to_bytes() == changed), "{at}");
    }
}

/// C47: nothing can be published beside what a record, a log or a genesis has: psi^2 or kappa tau in G1, kappa in G2.
#[test]
fn c47_nothing_else_fits_into_files() {
    let bench = Bench::new(&hekaton_testing::Squarings, true, Some(1));
    bench.step(4);
    let powers = open(&bench.directory.path().join("powers"));
    let family = open(&bench.path());
    let smuggled = [
        G1Point::generator().to_compressed().to_vec(),
        G2Point::generator().to_compressed().to_vec(),
    ];
    for transcript in [&powers, &family] {
        let genesis = &transcript.genesis;
        for log in &transcript.logs {
            let bytes = log.records[0].to_bytes();
            assert_eq!(
                Record::from_bytes(&bytes, genesis, log.chain).as_ref(),
                Ok(&log.records[0])
            );
            for point in &smuggled {
                for at in 0..=bytes.len() {
                    let more = [&bytes[..at], &point[..], &bytes[at..]].concat();
                    assert!(Record::from_bytes(&more, genesis, log.chain).is_err(), "at {at}");
                }
            }
        }
        let bytes = genesis.to_bytes();
        for point in &smuggled {
            // In a text it would be another genesis, with another digest; anywhere else it is refused.
            for at in (0..=bytes.len()).rev().take(96) {
                let more = [&bytes[..at], &point[..], &bytes[at..]].concat();
                assert!(crate::Genesis::from_bytes(&more).is_err(), "at {at}");
            }
        }
    }
    // A section that no log names is no part of a state, of what is served, or of the directory after its next use.
    let psi_squared = bench.path().join("sections").join("ab".repeat(32));
    std::fs::write(&psi_squared, &smuggled[0]).unwrap();
    let served = open(&bench.path()).named_files(&family.genesis.chains(), true);
    assert!(served.iter().all(|file| !file.name.contains("abab")));
    drop(Coordinator::open(&bench.path()).unwrap());
    assert!(!psi_squared.exists());
}
