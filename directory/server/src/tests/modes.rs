//! The same updates give the same records in all modes, profiles and databases, as a map does.

use super::disk::Disk;
use super::{Random, client, key, options, outcome, parameters};
use crate::{Expected, Mode, Opener, Outcome, Refusal, Server, Update};
use hekaton_directory::{Change, Commitment, Index, Profile, Tree};
use std::collections::BTreeMap;
use std::path::Path;

/// A label's version, and its values.
type Values = BTreeMap<String, Vec<String>>;

/// The directory as a map: what becomes of an update.
fn expected(values: &mut Values, update: &Update) -> Result<u32, Refusal> {
    let label = String::from_utf8(update.label.clone()).unwrap();
    let known = values.entry(label).or_default();
    let version = known.len().checked_sub(1).map(|version| version as u32);
    match (update.expected, version) {
        (Expected::Absent, Some(found)) => return Err(Refusal::Version(found)),
        (Expected::Version(_), None) => return Err(Refusal::Absent),
        (Expected::Version(expected), Some(found)) if expected != found => {
            return Err(Refusal::Version(found));
        }
        _ => {}
    }
    known.push(String::from_utf8(update.value.clone()).unwrap());
    Ok(known.len() as u32 - 1)
}

fn random_update(random: &mut Random) -> Update {
    let label = format!("label {}", random.below(12));
    let mut update = Update::new(label, format!("value {}", random.below(1000)));
    update.expected = match random.below(8) {
        0 => Expected::Absent,
        1 => Expected::Version(random.below(4) as u32),
        _ => Expected::Any,
    };
    update
}

/// A hundred updates with restarts; returns the digests of all trees and logs.
fn run(
    folder: &Path,
    profile: Profile,
    mode: Mode,
    opener: &dyn Fn() -> Box<Opener>,
) -> Vec<[[u8; 32]; 2]> {
    let parameters = parameters(profile);
    Server::create_in(folder, &parameters, &key(), 4, opener()).unwrap();
    let (mut random, mut values) = (Random(5), Values::new());
    let mut server = Server::open_in(folder, &parameters, &key(), options(mode), opener()).unwrap();
    for round in 0..25 * super::soak() {
        let updates: Vec<Update> =
            (0..1 + random.below(9)).map(|_| random_update(&mut random)).collect();
        let numbers: Vec<u64> =
            updates.iter().map(|update| server.submit(update.clone()).unwrap().number).collect();
        server.flush().unwrap();
        for (update, number) in updates.iter().zip(numbers) {
            match (expected(&mut values, update), outcome(&server, number)) {
                (Ok(version), Outcome::Committed { epoch, version: found }) => {
                    assert_eq!(version, found);
                    assert!(epoch <= server.view().unwrap().record().epoch);
                }
                (Err(refusal), Outcome::Refused(found)) => assert_eq!(refusal, found),
                other => panic!("{other:?}"),
            }
        }
        if round % 6 == 5 {
            if round % 12 == 5 { server.close() } else { server.drain() }.unwrap();
            drop(server);
            server = Server::open_in(folder, &parameters, &key(), options(mode), opener()).unwrap();
        }
    }
    let view = server.view().unwrap();
    for number in 0..13 {
        let label = format!("label {number}");
        let found = client(&parameters, &view, label.as_bytes());
        let expected = values.get(&label).filter(|values| !values.is_empty());
        assert_eq!(found.map(|(_, values)| values), expected.cloned(), "{label}");
    }
    // The trees of all epochs, from what they have changed.
    let (mut tree, mut versions) = (Tree::new(profile), std::collections::HashMap::new());
    let mut digests = Vec::new();
    for epoch in 0..=view.record().epoch {
        let leaves = server.changes(epoch).unwrap();
        if epoch > 0 {
            assert!(!leaves.is_empty(), "epoch {epoch} has changed nothing");
            let change = |leaf: &hekaton_directory::Leaf| Change {
                index: leaf.index,
                commitment: leaf.commitment,
            };
            tree = tree.update(&leaves.iter().map(change).collect::<Vec<_>>()).unwrap();
            for leaf in &leaves {
                let version = versions.entry(leaf.index).and_modify(|v| *v += 1).or_insert(0u32);
                assert_eq!((leaf.version, leaf.epoch + 1), (*version, epoch), "{:?}", leaf.index);
            }
        }
        let record = *server.record(epoch).unwrap().verify(&parameters).unwrap().record();
        assert_eq!(record.root, tree.root(), "epoch {epoch}");
        // Salts differ between runs, so digests do: what is compared is who was changed.
        let mut places: Vec<Index> = leaves.iter().map(|leaf| leaf.index).collect();
        places.sort_unstable();
        let place = |i: &Index| [i.0, i.0].concat().try_into().unwrap();
        digests.push([record.leaves, record.log_size].map(|n| {
            let fold = |d: Commitment, i: &Index| d.then(&place(i));
            places.iter().fold(Commitment([n as u8; 32]), fold).0
        }));
    }
    server.check().unwrap();
    digests
}

#[test]
fn all_modes_and_profiles_and_databases_agree() {
    let mut all = Vec::new();
    for (number, profile) in Profile::ALL.into_iter().enumerate() {
        for mode in Mode::ALL {
            let folder = tempfile::tempdir().unwrap();
            let disk = Disk::default();
            let in_memory = || -> Box<Opener> {
                let disk = disk.clone();
                Box::new(move |opened| Ok(disk.open(opened)))
            };
            all.push(run(folder.path(), profile, mode, &in_memory));
        }
        let folder = tempfile::tempdir().unwrap();
        let mode = Mode::ALL[number];
        all.push(run(folder.path(), profile, mode, &|| super::database(folder.path())));
    }
    assert!(all[0].len() > 30);
    assert!(all.iter().all(|other| *other == all[0]));
}

#[test]
fn modes_change_while_updates_come() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::default();
    let opener = || -> Box<Opener> {
        let disk = disk.clone();
        Box::new(move |opened| Ok(disk.open(opened)))
    };
    let parameters = parameters(Profile::Compress);
    Server::create_in(folder.path(), &parameters, &key(), 4, opener()).unwrap();
    let server =
        Server::open_in(folder.path(), &parameters, &key(), options(Mode::Serial), opener())
            .unwrap();
    std::thread::scope(|scope| {
        for sender in 0..4 {
            let server = &server;
            scope.spawn(move || {
                for value in 0..50 {
                    let update = Update::new(format!("{sender}-{}", value % 7), format!("{value}"));
                    server.submit(update).unwrap();
                }
            });
        }
        for turn in 0..60 {
            server.set_mode(Mode::ALL[turn % 4]);
            // Checking and pruning work while commits are written.
            match turn % 3 {
                0 => drop(server.check().unwrap()),
                1 => server.prune(server.view().unwrap().record().epoch).unwrap(),
                _ => {}
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    });
    server.flush().unwrap();
    let view = server.view().unwrap();
    for sender in 0..4 {
        for label in 0..7 {
            let (_, values) =
                client(&parameters, &view, format!("{sender}-{label}").as_bytes()).unwrap();
            let expected: Vec<String> =
                (0..50).filter(|v| v % 7 == label).map(|v| v.to_string()).collect();
            assert_eq!(values, expected);
        }
    }
    assert_eq!(server.check().unwrap().entries, 200);
    assert_eq!(server.stats().updates, 200);
}
