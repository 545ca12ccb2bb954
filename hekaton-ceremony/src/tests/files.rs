//! Files: logs, states, responses, and what a crash leaves behind.

use super::*;
use crate::genesis::Genesis;
use hekaton_testing::Squarings;

fn bench() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = powers_of(directory.path(), 4, 2, &[1]);
    (directory, path)
}

/// Estimates have the numbers of the ceremonies that they are for.
#[test]
fn estimates_count_all_points() {
    let bench = Bench::new(&Squarings, true, None);
    let rates = crate::Rates { g1: 1e-5, g2: 2e-5 };
    let cost = crate::ceremony_cost(&bench.types, 5, &rates);
    let family = open(&bench.path()).genesis;
    let chains = family.chains();
    assert_eq!(cost.family.bytes, crate::bytes_of_chains(&family, &chains));
    assert_eq!(cost.family.points, [crate::points_of_chains(&family, &chains), 0]);
    let (kind, of_genesis) = (&cost.types[0], &family.family().unwrap().types[0]);
    assert_eq!((kind.points, kind.domain), (of_genesis.points, of_genesis.domain));
    // Powers of just the size that the family needs.
    let path = powers_of(&bench.directory.path().join("small"), cost.domain, 5, &[]);
    let powers = open(&path).genesis;
    let chains = powers.chains();
    assert_eq!(cost.powers.bytes, crate::bytes_of_chains(&powers, &chains));
    assert_eq!(cost.powers.points.iter().sum::<usize>(), crate::points_of_chains(&powers, &chains));
    // 4N + 2M points in G1 and N + 2M in G2, M = 8; 25 % for checks.
    let (n, m) = (cost.domain as f64, 8.0);
    let products = (4.0 * n + 2.0 * m - 1.0) * 1e-5 + (n + 2.0 * m - 1.0) * 2e-5;
    assert!((cost.powers.contribute - 1.25 * products).abs() < 1e-9);
}

/// A record that was not written whole is not there, for readers; the next writer cuts it off.
#[test]
fn torn_ends_of_logs_are_cut() {
    let (_directory, path) = bench();
    let log = path.join("tau.log");
    let good = std::fs::read(&log).unwrap();
    step(&path, 2);
    let two = std::fs::read(&log).unwrap();
    for end in good.len() + 1..two.len() {
        std::fs::write(&log, &two[..end]).unwrap();
        let transcript = open(&path);
        assert!(transcript.log(Chain::Tau).torn && transcript.records(Chain::Tau).len() == 1);
    }
    // Written, but not synced: the last bytes are zeros.
    let mut zeros = two.clone();
    zeros[good.len() + 40..].fill(0);
    std::fs::write(&log, &zeros).unwrap();
    assert!(open(&path).log(Chain::Tau).torn);
    zeros[good.len()..].fill(0);
    std::fs::write(&log, &zeros).unwrap();
    assert!(open(&path).log(Chain::Tau).torn);
    // In the middle it is damage, and not repaired.
    let mut damaged = two.clone();
    damaged[60] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    let why = Transcript::open(&path).unwrap_err().to_string();
    assert!(why.contains("record 0"), "{why}");
}

/// Every prefix of the writes of `add` leaves a directory that can be used: sections without a record are removed, and a record of one chain
/// alone is accepted as it is.
#[test]
fn crashes_while_adding_lose_nothing_that_was_accepted() {
    let (_directory, path) = bench();
    let (tau, phi) = (path.join("tau.log"), path.join("phi.log"));
    let before = [&tau, &phi].map(|log| std::fs::read(log).unwrap());
    let old: Vec<PathBuf> = sections(&path);
    let kept: Vec<(PathBuf, Vec<u8>)> =
        old.iter().map(|p| (p.clone(), std::fs::read(p).unwrap())).collect();
    step(&path, 2);
    let after = [&tau, &phi].map(|log| std::fs::read(log).unwrap());
    let put_back = || kept.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    // New sections are there, and no record.
    put_back();
    std::fs::write(&tau, &before[0]).unwrap();
    std::fs::write(&phi, &before[1]).unwrap();
    assert_eq!(sections(&path).len(), 4);
    drop(Coordinator::open(&path).unwrap());
    assert_eq!(sections(&path), old);
    assert!(check_powers(&path).is_ok());
    step(&path, 3);
    assert!(check_powers(&path).is_ok());
    assert_eq!(open(&path).records(Chain::Tau).len(), 2);
    // The first record is there, the second is not.
    let (_directory, path) = bench();
    let phi = path.join("phi.log");
    let before = std::fs::read(&phi).unwrap();
    let kept: Vec<(PathBuf, Vec<u8>)> =
        sections(&path).iter().map(|p| (p.clone(), std::fs::read(p).unwrap())).collect();
    step(&path, 2);
    kept.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    std::fs::write(&phi, before).unwrap();
    step(&path, 3);
    let transcript = open(&path);
    let places = [Chain::Tau, Chain::Phi].map(|chain| transcript.records(chain).len());
    assert_eq!(places, [3, 2]);
    assert!(check_powers(&path).is_ok());
    assert!(after[0].len() > 44);
}

/// A damaged last record looks like a torn one, but its sections are there and those before it are not: nothing is removed, and
/// the right log makes the directory whole again.
#[test]
fn damage_removes_no_sections() {
    let (_directory, path) = bench();
    step(&path, 2);
    let (log, before) = (path.join("tau.log"), sections(&path));
    let good = std::fs::read(&log).unwrap();
    let mut damaged = good.clone();
    let last = damaged.len() - 100;
    damaged[last] ^= 1;
    std::fs::write(&log, &damaged).unwrap();
    assert!(Coordinator::open(&path).is_err());
    assert!(refused_as_torn(&path));
    assert_eq!(sections(&path), before);
    std::fs::write(&log, &good).unwrap();
    drop(Coordinator::open(&path).unwrap());
    assert!(check_powers(&path).is_ok());
}

/// Verifiers refuse a log that ends in the middle of a record.
fn refused_as_torn(path: &Path) -> bool {
    check_powers(path).unwrap_err().to_string().contains("in the middle of a record")
}

/// A crash between the records of one contribution: adding it again accepts the rest.
#[test]
fn half_a_contribution_is_completed() {
    let (_directory, path) = bench();
    let phi = path.join("phi.log");
    let before = std::fs::read(&phi).unwrap();
    let mut coordinator = Coordinator::open(&path).unwrap();
    let kept: Vec<(PathBuf, Vec<u8>)> =
        sections(&path).iter().map(|p| (p.clone(), std::fs::read(p).unwrap())).collect();
    let out = path.join("incoming/two");
    contribute_as(&coordinator.transcript, 2, &[Chain::Tau, Chain::Phi], &out).unwrap();
    let response = Response::open(&out, &coordinator.transcript.genesis).unwrap();
    coordinator.add(&response, &mut |_| {}).unwrap();
    drop(coordinator);
    let after = open(&path).digest();
    kept.iter().for_each(|(path, bytes)| std::fs::write(path, bytes).unwrap());
    std::fs::write(&phi, before).unwrap();
    let mut coordinator = Coordinator::open(&path).unwrap();
    assert_eq!(coordinator.transcript.records(Chain::Phi).len(), 1);
    coordinator.add(&response, &mut |_| {}).unwrap();
    assert_eq!(coordinator.transcript.digest(), after);
    let again = coordinator.add(&response, &mut |_| {}).unwrap_err().to_string();
    assert!(again.contains("already"), "{again}");
    assert!(check_powers(&path).is_ok());
}

fn sections(path: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(path.join("sections")).unwrap().map(|e| e.unwrap().path()).collect();
    found.sort();
    found
}

/// A state has all that a contributor needs, and works like the directory.
#[test]
fn states_are_transcripts_in_one_file() {
    let bench = Bench::new(&Squarings, true, Some(1));
    bench.step(4);
    let state = bench.directory.path().join("state");
    open(&bench.path()).write_state(&state).unwrap();
    let from_state = open(&state);
    assert_eq!(from_state.digest(), open(&bench.path()).digest());
    // One chain of two, so that sections lie behind others.
    let chain = Chain::Segment(2);
    let responses = ["a", "b"].map(|name| bench.directory.path().join(name));
    contribute_as(&from_state, 5, &[chain], &responses[0]).unwrap();
    contribute_as(&open(&bench.path()), 5, &[chain], &responses[1]).unwrap();
    let genesis = &from_state.genesis;
    let [one, two] = responses.map(|path| Response::open(&path, genesis).unwrap());
    assert_eq!(one.records[0].step, two.records[0].step);
    let mut coordinator = Coordinator::open(&bench.path()).unwrap();
    coordinator.add(&one, &mut |_| {}).unwrap();
    drop(coordinator);
    assert!(bench.check().is_ok());
    let bytes = std::fs::read(&state).unwrap();
    for end in (0..bytes.len()).step_by(97).chain([bytes.len() - 1]) {
        std::fs::write(&state, &bytes[..end]).unwrap();
        assert!(Transcript::open(&state).is_err(), "{end}");
    }
    std::fs::write(&state, [&bytes[..], &[0]].concat()).unwrap();
    assert!(Transcript::open(&state).is_err());
}

/// Responses that are cut off, go on, or are for another ceremony.
#[test]
fn responses_are_read_strictly() {
    let (_directory, path) = bench();
    let out = path.join("incoming/response");
    let transcript = open(&path);
    contribute_as(&transcript, 2, &[Chain::Phi, Chain::Tau], &out).unwrap();
    let bytes = std::fs::read(&out).unwrap();
    let read = |bytes: &[u8]| {
        std::fs::write(&out, bytes).unwrap();
        Response::open(&out, &transcript.genesis)
    };
    assert_eq!(read(&bytes).unwrap().records.len(), 2);
    for end in (0..bytes.len()).step_by(31) {
        assert!(read(&bytes[..end]).is_err(), "{end}");
    }
    assert!(read(&[&bytes[..], &[0]].concat()).is_err());
    let (_other, other) = bench();
    assert!(matches!(
        Response::open(&out, &open(&other).genesis),
        Err(CeremonyError::Foreign(_) | CeremonyError::File { .. })
    ));
}

/// The genesis: one encoding, and numbers within their bounds.
#[test]
fn genesis_has_one_encoding() {
    let bench = Bench::new(&Squarings, true, None);
    for path in [bench.path(), bench.directory.path().join("powers")] {
        let genesis = open(&path).genesis;
        let bytes = genesis.to_bytes();
        assert_eq!(Genesis::from_bytes(&bytes).as_ref(), Ok(&genesis));
        for end in 0..bytes.len() {
            assert!(Genesis::from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        assert!(Genesis::from_bytes(&[&bytes[..], &[0]].concat()).is_err());
        for at in 0..bytes.len() {
            for bit in [0, 7] {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                let read = Genesis::from_bytes(&changed).ok();
                assert!(read.is_none_or(|other| other.to_bytes() == changed), "{at}");
            }
        }
    }
    for (domain, instances) in [(5, 1), (0, 1), (4, 0), (1 << 29, 1), (4, usize::MAX)] {
        let path = bench.directory.path().join("bad");
        assert!(new_powers(&path, domain, instances, "", &|_| {}).is_err(), "{domain} {instances}");
        assert!(!path.exists());
    }
}

/// One process at a time changes a directory, and none changes a finished one.
#[test]
fn directories_are_locked_and_ended() {
    let (_directory, path) = bench();
    let coordinator = Coordinator::open(&path).unwrap();
    let why = Coordinator::open(&path).unwrap_err().to_string();
    assert!(why.contains("another process"), "{why}");
    coordinator.finish().unwrap();
    coordinator.finish().unwrap();
    drop(coordinator);
    let mut coordinator = Coordinator::open(&path).unwrap();
    let out = path.join("incoming/late");
    contribute_as(&coordinator.transcript, 2, &[Chain::Tau], &out).unwrap();
    let response = Response::open(&out, &coordinator.transcript.genesis).unwrap();
    let why = coordinator.add(&response, &mut |_| {}).unwrap_err().to_string();
    assert!(why.contains("finished"), "{why}");
    assert!(new_powers(&path, 4, 2, "", &|_| {}).unwrap_err().to_string().contains("not empty"));
}

/// Powers too small for a family are refused before anything is made.
#[test]
fn families_fit_their_powers() {
    let directory = tempfile::tempdir().unwrap();
    let powers = check_powers(&powers_of(directory.path(), 4, 2, &[1])).unwrap();
    let (types, buses) = types_of(&Squarings, true);
    let path = directory.path().join("family");
    let made = new_family(&path, plan(buses, true), &powers, None, &types, &|_| {}, &mut |_| {});
    assert!(made.unwrap_err().to_string().contains("use powers for more"));
    assert!(!path.exists());
}
