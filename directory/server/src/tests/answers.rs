//! The answers of a server, and the data that it keeps.

use super::{client, create, open, options, outcome, parameters, update};
use crate::{Error, Expected, Mode, Options, Outcome, Refusal, Server, Status, Update};
use hekaton_directory::{Continuation, Frontier, Index, Profile, log};

#[test]
fn earlier_epochs_answer_until_they_are_pruned() {
    for profile in Profile::ALL {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), profile);
        let parameters = parameters(profile);
        let server = open(folder.path(), profile, options(Mode::Pipelined));
        for epoch in 1..=20 {
            let other = format!("other {epoch}");
            update(&server, &[("label", &format!("{epoch}")), (&other, "x")]);
        }
        for epoch in 0..=20u32 {
            let view = server.view_at(epoch).unwrap();
            let found = client(&parameters, &view, b"label").map(|(_, values)| values);
            let expected: Vec<String> = (1..=epoch).map(|epoch| epoch.to_string()).collect();
            assert_eq!(found.unwrap_or_default(), expected);
            assert_eq!(client(&parameters, &view, b"other 7").is_some(), epoch >= 7);
        }
        let before = server.check().unwrap();
        let kept = server.view_at(4).unwrap();
        server.prune(12).unwrap();
        let after = server.check().unwrap();
        assert!(after.tiles < before.tiles, "{} of {} tiles are left", after.tiles, before.tiles);
        // Twice does nothing more, and neither does an epoch before.
        server.prune(12).unwrap();
        server.prune(3).unwrap();
        assert_eq!(server.check().unwrap(), after);
        for epoch in 12..=20 {
            let view = server.view_at(epoch).unwrap();
            assert_eq!(client(&parameters, &view, b"label").unwrap().1.len(), epoch as usize);
        }
        let error = server.view_at(11).unwrap_err();
        assert_eq!(error.to_string(), "epoch 11 is pruned; the first one with a tree is 12");
        // Whoever still has a view of one gets an error, not the answer of another epoch.
        assert!(kept.look_up(b"label").is_err());
        let error = server.view_at(21).unwrap_err();
        assert_eq!(error.to_string(), "there is no epoch 21 yet; the last one is 20");
        assert!(matches!(server.prune(21), Err(Error::NoEpoch { epoch: 21, last: 20 })));
        // All records are there, and the server continues after a restart.
        server.drain().unwrap();
        drop(server);
        let server = open(folder.path(), profile, options(Mode::Pipelined));
        update(&server, &[("label", "21")]);
        for epoch in 1..=21 {
            let (old, new) = (server.record(epoch - 1).unwrap(), server.record(epoch).unwrap());
            new.verify(&parameters)
                .unwrap()
                .check_after(&old.verify(&parameters).unwrap())
                .unwrap();
        }
        server.prune(21).unwrap();
        server.check().unwrap();
    }
}

#[test]
fn updates_are_done_once() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let mut server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    let mut update = Update::new("label", "value");
    update.idempotency_key = Some(b"name".to_vec());
    let first = server.submit(update.clone()).unwrap();
    assert!(!first.repeated);
    for again in 0..3 {
        let receipt = server.submit(update.clone()).unwrap();
        assert_eq!((receipt.number, receipt.repeated), (first.number, true));
        let mut other = update.clone();
        other.value = b"another".to_vec();
        let error = server.submit(other).unwrap_err();
        assert_eq!(error.to_string(), "the idempotency key was used for another update, number 0");
        if again == 0 {
            assert_eq!(server.outcome(0).unwrap(), Status::Waits);
            server.flush().unwrap();
        }
        assert_eq!(outcome(&server, 0), Outcome::Committed { epoch: 1, version: 0 });
        drop(server);
        server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    }
    assert_eq!(server.outcome(1).unwrap(), Status::Unknown);
    assert_eq!(server.view().unwrap().record().epoch, 1);
    // A label's second update of an epoch waits for the next one; both were accepted in one.
    for value in ["a", "b", "c"] {
        server.submit(Update::new("twice", value)).unwrap();
    }
    server.flush().unwrap();
    for number in 1..4 {
        let expected = Outcome::Committed { epoch: number + 1, version: number - 1 };
        assert_eq!(outcome(&server, u64::from(number)), expected);
    }
}

#[test]
fn refused_updates_close_no_epoch() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let mut server = open(folder.path(), Profile::Compress, options(Mode::Pipelined));
    update(&server, &[("label", "0")]);
    for (number, (label, expected, refusal)) in [
        ("label", Expected::Absent, Refusal::Version(0)),
        ("label", Expected::Version(1), Refusal::Version(0)),
        ("new", Expected::Version(0), Refusal::Absent),
    ]
    .into_iter()
    .enumerate()
    {
        let mut update = Update::new(label, "value");
        update.expected = expected;
        server.submit(update).unwrap();
        server.flush().unwrap();
        assert_eq!(outcome(&server, number as u64 + 1), Outcome::Refused(refusal));
        drop(server);
        server = open(folder.path(), Profile::Compress, options(Mode::Pipelined));
        assert_eq!(outcome(&server, number as u64 + 1), Outcome::Refused(refusal));
    }
    assert_eq!(server.view().unwrap().record().epoch, 1);
    update(&server, &[("label", "1")]);
    server.check().unwrap();
    server.prune(2).unwrap();
    // Outcomes are kept from the commit on that has closed the epoch.
    assert_eq!(server.outcome(1).unwrap(), Status::Unknown);
    assert_eq!(outcome(&server, 4), Outcome::Committed { epoch: 2, version: 1 });
    drop(server);
    server = open(folder.path(), Profile::Compress, options(Mode::Pipelined));
    assert_eq!(server.submit(Update::new("label", "2")).unwrap().number, 5);
}

#[test]
fn values_are_erased() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let parameters = parameters(Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    update(&server, &[("label", "0"), ("label", "1")]);
    assert!(matches!(server.erase(b"label", 2), Err(Error::NoVersion(2))));
    assert!(matches!(server.erase(b"other", 0), Err(Error::NoVersion(0))));
    server.erase(b"label", 0).unwrap();
    server.erase(b"label", 0).unwrap();
    let (_, values) = client(&parameters, &server.view().unwrap(), b"label").unwrap();
    assert_eq!(values, ["erased", "1"]);
    server.check().unwrap();
    // With the last one erased, the path still proves the version.
    server.erase(b"label", 1).unwrap();
    let view = server.view().unwrap();
    let answer = view.look_up(b"label").unwrap();
    assert_eq!(answer.current, None);
    let checked = view.signed().verify(&parameters).unwrap();
    let leaf = checked.look_up(&Index::of(b"label").unwrap(), &answer.path).unwrap().unwrap();
    assert_eq!(leaf.version, 1);
    update(&server, &[("label", "2")]);
    server.check().unwrap();
}

/// The log of a few hundred entries, over two levels of tiles: each entry is in it, and it continues each earlier one.
#[test]
fn the_log_is_proven() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let options = Options { max_updates: 150, ..options(Mode::Serial) };
    let mut server = open(folder.path(), Profile::Compress, options);
    let mut entries = Vec::new();
    for count in [1, 2, 30, 150, 73, 140, 116, 5] {
        for number in 0..count {
            server.submit(Update::new(format!("{number}"), "x")).unwrap();
        }
        server.flush().unwrap();
        drop(server);
        server = open(folder.path(), Profile::Compress, options);
        let epoch = server.view().unwrap().record().epoch;
        entries.extend(server.changes(epoch).unwrap());
    }
    assert_eq!(entries.len(), 517);
    let view = server.view().unwrap();
    let last = view.record();
    for (at, leaf) in entries.iter().enumerate() {
        let proof = view.log_entry(at as u64).unwrap();
        assert!(log::contains(&last.log_root, last.log_size, at as u64, &leaf.encode(), &proof));
    }
    for epoch in 0..=last.epoch {
        let old = server.view_at(epoch).unwrap();
        let old = old.record();
        let proof = view.log_continues(old.log_size).unwrap();
        let pair = ((&old.log_root, old.log_size), (&last.log_root, last.log_size));
        assert!(log::continues(pair.0, pair.1, &proof), "epoch {epoch}");
        // Those of then are still there.
        if old.log_size > 0 {
            let view = server.view_at(epoch).unwrap();
            let proof = view.log_entry(old.log_size - 1).unwrap();
            let leaf = entries[old.log_size as usize - 1].encode();
            assert!(log::contains(&old.log_root, old.log_size, old.log_size - 1, &leaf, &proof));
        }
    }
    assert!(matches!(view.log_entry(517), Err(Error::NoEntry { entry: 517, size: 517 })));
    assert!(view.log_continues(518).is_err());
    server.check().unwrap();
}

/// Records of over 256 epochs, of which the first tile of their tree is full: each continues each earlier one, after restarts and when
/// they are pruned, too.
#[test]
fn records_continue_each_other() {
    const LAST: u32 = 530;
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let parameters = parameters(Profile::Compress);
    let check = |server: &Server, pairs: &mut dyn Iterator<Item = (u32, u32)>| {
        for (from, to) in pairs {
            let proof = server.continuation(from, to).unwrap();
            let [seen, later] = [from, to].map(|epoch| server.record(epoch).unwrap());
            let seen = seen.verify(&parameters).unwrap();
            later.verify(&parameters).unwrap().check_continues(&seen, &proof).unwrap();
            assert!(proof.entry.len() <= 10 && proof.before.len() <= 11, "{from} {to}");
        }
    };
    let modes = [Mode::Serial, Mode::Pipelined, Mode::AnyOrder];
    let mut tree = Frontier::default();
    for (mode, end) in modes.into_iter().zip([254, 257, LAST]) {
        let server = open(folder.path(), Profile::Compress, options(mode));
        let first = server.view().unwrap().record().epoch;
        for epoch in first + 1..=end {
            server.submit(Update::new(format!("{epoch}"), "x")).unwrap();
            server.flush().unwrap();
        }
        for epoch in first..end {
            tree.append(&[server.record(epoch).unwrap().unverified().entry()]);
        }
        let last = *server.view().unwrap().record();
        assert_eq!((last.epoch, last.records), (end, tree.root()));
        assert_eq!(server.records_before(end).unwrap(), tree.peaks());
        check(&server, &mut (0..end).map(|from| (from, end)));
        server.check().unwrap();
        server.close().unwrap();
    }
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    for pruned in [0, 300, LAST] {
        server.prune(pruned).unwrap();
        let ends = [1, 2, 255, 256, 257, 511, 512, 513, LAST];
        check(
            &server,
            &mut ends.into_iter().flat_map(|to| (0..to).step_by(17).map(move |from| (from, to))),
        );
        for end in ends {
            let frontier = Frontier::with_peaks(end.into(), &server.records_before(end).unwrap());
            let record = server.record(end).unwrap();
            assert_eq!(frontier.unwrap().root(), record.unverified().records, "{end}");
        }
        server.check().unwrap();
    }
    assert_eq!(server.continuation(7, 7).unwrap(), Continuation::default());
    assert!(matches!(server.continuation(1, LAST + 1), Err(Error::NoEpoch { .. })));
    assert!(matches!(server.records_before(LAST + 1), Err(Error::NoEpoch { .. })));
}

/// A tree has only its top in memory, however many labels there are.
#[test]
fn the_depth_of_the_tree_is_on_the_disk() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Sha256);
    let options = Options { resident: 4, max_updates: 300, ..options(Mode::Pipelined) };
    let server = open(folder.path(), Profile::Sha256, options);
    let update = |number| Update::new(format!("{}", number % 1200), format!("{number}"));
    let all = server.submit_all((0..2000).map(update).collect());
    let numbers: Vec<u64> = all.into_iter().map(|receipt| receipt.unwrap().number).collect();
    assert!(numbers.into_iter().eq(0..2000));
    server.flush().unwrap();
    let view = server.view().unwrap();
    assert_eq!(view.record().leaves, 1200);
    for label in [0, 799, 800, 1199] {
        let (leaf, values) =
            client(server.parameters(), &view, format!("{label}").as_bytes()).unwrap();
        assert_eq!((leaf.version == 1, values.len() == 2), (label < 800, label < 800));
    }
    assert_eq!(client(server.parameters(), &view, b"1200"), None);
    assert_eq!(server.check().unwrap().leaves, 1200);
}

/// Numbers of updates are used once, even if those of later commits were smaller and nothing else is left.
#[test]
fn numbers_are_not_used_twice() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    let mut first = Update::new("b", "0");
    first.idempotency_key = Some(b"name".to_vec());
    for update in [Update::new("a", "0"), Update::new("a", "1"), first.clone()] {
        server.submit(update).unwrap();
    }
    server.flush().unwrap();
    // The third one was in the first epoch, the second one in the second.
    assert_eq!(outcome(&server, 2), Outcome::Committed { epoch: 1, version: 0 });
    server.prune(2).unwrap();
    assert_eq!(server.outcome(2).unwrap(), Status::Unknown);
    drop(server);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    // Its name is forgotten with its outcome.
    let receipt = server.submit(first).unwrap();
    assert_eq!((receipt.number, receipt.repeated), (3, false));
    server.flush().unwrap();
    assert_eq!(outcome(&server, 3), Outcome::Committed { epoch: 3, version: 1 });
    server.check().unwrap();
}

/// A second call that stops a server waits until it has stopped.
#[test]
fn stopping_twice() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    for round in 0..6 {
        let server = open(folder.path(), Profile::Compress, options(Mode::ALL[round % 4]));
        for value in 0..20 {
            server.submit(Update::new("label", format!("{value}"))).unwrap();
        }
        std::thread::scope(|scope| {
            scope.spawn(|| server.drain().unwrap());
            scope.spawn(|| if round % 2 == 0 { server.close() } else { server.drain() }.unwrap());
            server.close().unwrap();
            assert!(matches!(server.view(), Err(Error::Stopped(None))));
        });
    }
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    server.flush().unwrap();
    assert_eq!(server.check().unwrap().entries, 120);
}

/// The witness of epochs is that of what they have changed, from the root before them.
#[test]
fn provers_get_what_they_need() {
    for profile in [Profile::Compress, Profile::Full] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), profile);
        let server = open(folder.path(), profile, options(Mode::Pipelined));
        for epoch in 0..6u32 {
            let labels: Vec<String> = (0..4).map(|at| format!("{}", epoch * (at + 1))).collect();
            let distinct: std::collections::BTreeSet<&str> =
                labels.iter().map(String::as_str).collect();
            let updates: Vec<(&str, &str)> =
                distinct.into_iter().map(|label| (label, "v")).collect();
            update(&server, &updates);
        }
        let last = server.view().unwrap().record().epoch;
        assert!(last >= 6);
        let mut tree = hekaton_directory::Tree::new(profile);
        let mut steps = Vec::new();
        for epoch in 1..=last {
            let leaves = server.changes(epoch).unwrap();
            let change = |leaf: &hekaton_directory::Leaf| hekaton_directory::Change {
                index: leaf.index,
                commitment: leaf.commitment,
            };
            let changes: Vec<hekaton_directory::Change> = leaves.iter().map(change).collect();
            steps.extend(tree.steps(&changes).unwrap());
            tree = tree.update(&changes).unwrap();
        }
        let witness = server.witness(0, last).unwrap();
        let first = *server.record(0).unwrap().unverified();
        assert_eq!((witness.root, witness.chain, witness.epoch), (first.root, first.chain, 0));
        assert_eq!(witness.steps, steps);
        assert_eq!(server.witness(last, last).unwrap().steps, []);
        assert!(matches!(server.witness(0, last + 1), Err(Error::NoEpoch { .. })));
        server.check().unwrap();
        drop(server);
        let without = Options { has_witness: false, ..options(Mode::Serial) };
        let server = open(folder.path(), profile, without);
        update(&server, &[("a", "b")]);
        assert!(server.witness(0, last).is_ok());
        let refused = server.witness(0, last + 1);
        assert!(matches!(refused, Err(Error::NoWitness(epoch)) if epoch == last + 1));
        server.check().unwrap();
    }
}

/// Updates for which the prover of an epoch has no room wait for the next one, before later ones of the same label.
#[test]
fn what_the_prover_has_no_room_for_waits() {
    use crate::Opened;
    use crate::compute::Compute;
    use crate::pending::Pending;
    use crate::recover::first_rows;
    use crate::rows;
    use crate::update::{Accepted, Expected, Outcome};
    use hekaton_directory::{Index, Opening, Record, STACK, Tree};
    let (parameters, disk) = (parameters(Profile::Compress), super::disk::Disk::default());
    let store = disk.open(Opened::Again);
    store.commit(first_rows(&parameters, 4, 0, &super::key())).unwrap();
    let pair = (Record::first(&parameters, 0), Tree::new(Profile::Compress));
    let mut compute = Compute::new(&*store, super::TILING, pair, 0, &super::key()).unwrap();
    let mut pending = Pending::default();
    // Nobody finds such labels by chance: each is beside all that are longer.
    for number in 0..40u64 {
        let opening = Opening { salt: [0; 32], value: Vec::new() };
        let label = number.to_be_bytes().to_vec();
        let mut update = Accepted::new(number, label, opening, Expected::Any).unwrap();
        update.index = Index((!0u128 << (127 - number % 30) << 1).to_be_bytes());
        pending.push(update);
    }
    let mut order = Vec::new();
    for commit in 1..=5u32 {
        let updates = pending.take(100);
        let (computed, deferred) = compute.next(&*store, updates, 0, 0).unwrap();
        // Whoever came first is done first, whatever came later.
        let done = computed.numbers.iter().max().unwrap();
        assert!(deferred.iter().all(|update| update.number > *done));
        assert!(commit > 1 || (30 - STACK..15).contains(&deferred.len()), "{}", deferred.len());
        pending.put_back(deferred);
        for number in &computed.numbers {
            order.push((number % 30, *number));
        }
        store.commit(computed.rows).unwrap();
        for number in computed.numbers {
            let outcome: Outcome =
                rows::get(&*store, super::Table::Outcome, &number.to_be_bytes()).unwrap();
            let version = u32::from(number >= 30);
            assert_eq!(outcome, Outcome::Committed { epoch: commit, version });
        }
        if pending.first().is_none() {
            break;
        }
    }
    assert_eq!(order.len(), 40);
    let mut sorted = order.clone();
    sorted.sort_by_key(|(label, _)| *label);
    assert!(sorted.is_sorted(), "updates of a label keep their order");
}

#[test]
fn updates_that_are_put_back_are_in_their_order_and_due() {
    use crate::pending::{Pending, size};
    use crate::update::{Accepted, Expected};
    use hekaton_directory::Opening;
    let accepted = |number: u64, label: u8| {
        let opening = Opening { salt: [0; 32], value: vec![0; 10] };
        Accepted::new(number, vec![label], opening, Expected::Any).unwrap()
    };
    let mut pending = Pending::default();
    // Two of one label: the second one waits, and what is put back comes before or after it by its number.
    for (number, label) in [(1, 1), (5, 1), (6, 2), (10, 3)] {
        pending.push(accepted(number, label));
    }
    let bytes = pending.bytes();
    assert_eq!(bytes, 4 * size(&accepted(0, 0)));
    let mut taken = pending.take(9);
    assert_eq!(taken.iter().map(|update| update.number).collect::<Vec<_>>(), [1, 6, 10]);
    assert_eq!(pending.bytes(), bytes / 4);
    let (first, waits) = pending.first().unwrap();
    assert!(first == 5 && waits.is_some());
    pending.push(accepted(11, 4));
    pending.put_back(taken.split_off(1));
    let mut order = Vec::new();
    while let Some((number, waits)) = pending.first() {
        // They have waited already, and do not have to be requested again.
        assert_eq!(waits.is_none(), number == 6 || number == 10, "{number}");
        order.push(number);
        pending.take(1);
    }
    assert_eq!(order, [5, 6, 10, 11]);
    assert_eq!(pending.bytes(), 0);
}

/// The deep part of the tree is dropped from memory once it is on the disk, and not before.
#[test]
fn memory_is_bounded() {
    use crate::Opened;
    use crate::compute::Compute;
    use crate::recover::first_rows;
    use crate::update::{Accepted, Expected};
    use hekaton_directory::{Opening, Record, Tree};
    let (parameters, disk) = (parameters(Profile::Compress), super::disk::Disk::default());
    let store = disk.open(Opened::Again);
    store.commit(first_rows(&parameters, 4, 0, &super::key())).unwrap();
    let pair = (Record::first(&parameters, 0), Tree::new(Profile::Compress));
    let mut compute = Compute::new(&*store, super::TILING, pair, 0, &super::key()).unwrap();
    let mut indices = Vec::new();
    let mut written = Vec::new();
    for commit in 0..12u64 {
        let update = |number: u64| {
            let opening = Opening { salt: [0; 32], value: Vec::new() };
            let label = format!("{}", commit * 50 + number).into_bytes();
            Accepted::new(commit * 50 + number, label, opening, Expected::Any).unwrap()
        };
        let updates: Vec<Accepted> = (0..50).map(update).collect();
        indices.extend(updates.iter().map(|update| update.index));
        // Commits are written two behind.
        let confirmed = commit.saturating_sub(2);
        let (computed, deferred) = compute.next(&*store, updates, confirmed, 0).unwrap();
        assert!(deferred.is_empty());
        written.push(computed.rows);
        if commit >= 2 {
            store.commit(written.remove(0)).unwrap();
        }
    }
    indices.sort_unstable();
    assert_eq!(compute.tree().missing(&indices), [], "it is on its way");
    for rows in written {
        store.commit(rows).unwrap();
    }
    compute.next(&*store, Vec::new(), 12, 0).unwrap();
    // Down to depth 4 the tree is in memory, and nothing below.
    let missing = compute.tree().missing(&indices);
    assert_eq!(missing.len(), 16);
    assert!(missing.iter().all(|place| place.depth() == 4));
}
