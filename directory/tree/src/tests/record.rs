//! Records: signatures and chains.

use super::{commitment, index, tree_of};
use crate::log::{Frontier, entry};
use crate::{
    Checked, Continuation, DecodeError, Digest, LookUpError, Parameters, PathError, Profile,
    Record, RecordError, SIGNED_LENGTH, SignedRecord, Tree,
};
use ed25519_dalek::SigningKey;

fn key() -> SigningKey {
    SigningKey::from_bytes(&[5; 32])
}

fn parameters(profile: Profile) -> Parameters {
    Parameters { profile, server: key().verifying_key(), proofs: [9; 32] }
}

/// A log of as many entries.
fn log(entries: u8) -> Frontier {
    let mut log = Frontier::default();
    log.append(&(0..entries).map(|number| entry(&[number])).collect::<Vec<_>>());
    log
}

/// The tree of these records.
fn tree_of_records(records: &[Record]) -> Frontier {
    let mut tree = Frontier::default();
    tree.append(&records.iter().map(Record::entry).collect::<Vec<_>>());
    tree
}

fn checked(record: Record, profile: Profile) -> Result<Checked, RecordError> {
    record.sign(&key()).verify(&parameters(profile))
}

/// The records of three epochs: without leaves, with one, with two.
fn three(profile: Profile) -> [Record; 3] {
    let first = Record::first(&parameters(profile), 100);
    let tree = tree_of(profile, &[1], 8);
    let second = first.next(&tree, &log(1), &tree_of_records(&[first]), 160);
    let change = crate::Change { index: index(2, 8), commitment: commitment(2) };
    let (tree, records) = (tree.update(&[change]).unwrap(), tree_of_records(&[first, second]));
    let third = second.next(&tree, &log(2), &records, 220);
    [first, second, third]
}

/// A record with another root, and the chain that it has then.
fn with_root(record: Record, profile: Profile, root: Digest) -> Record {
    Record { root, chain: profile.combine(&record.before, &root), ..record }
}

#[test]
fn records_are_signed_and_continue_each_other() {
    for profile in Profile::ALL {
        let records = three(profile);
        for record in records {
            let signed = record.sign(&key());
            let read = SignedRecord::decode(&signed.encode()).unwrap();
            assert_eq!((read, read.epoch()), (signed, record.epoch));
            assert_eq!(read.verify(&parameters(profile)).map(|c| *c.record()), Ok(record));
            // Another key, also as that of the parameters; other parameters.
            let other = SigningKey::from_bytes(&[6; 32]);
            let error = record.sign(&other).verify(&parameters(profile)).unwrap_err();
            assert_eq!(error, RecordError::Signature(record.epoch));
            let server = Parameters { server: other.verifying_key(), ..parameters(profile) };
            let error = record.sign(&other).verify(&server).unwrap_err();
            assert_eq!(error, RecordError::Parameters(record.epoch));
            let proofs = Parameters { proofs: [8; 32], ..parameters(profile) };
            assert_eq!(signed.verify(&proofs), Err(RecordError::Parameters(record.epoch)));
        }
        let [first, second, third] = records.map(|record| checked(record, profile).unwrap());
        assert_eq!((second.check_after(&first), third.check_after(&second)), (Ok(()), Ok(())));
        let order = |after, found| Err(RecordError::Order { after, found });
        assert_eq!(third.check_after(&first), order(0, 2));
        assert_eq!(first.check_after(&first), order(0, 0));
        assert_eq!(first.check_after(&second), order(1, 0));
    }
}

/// A record that contradicts itself is refused.
#[test]
fn records_have_their_own_chain() {
    for profile in Profile::ALL {
        let [first, second, _] = three(profile);
        let cases = [
            (Record { root: [2; 32], ..second }, RecordError::Chain(1)),
            (Record { before: [2; 32], ..second }, RecordError::Chain(1)),
            (Record { chain: [2; 32], ..second }, RecordError::Chain(1)),
            (with_root(first, profile, second.root), RecordError::Start),
            (
                with_root(Record { before: [3; 32], ..first }, profile, first.root),
                RecordError::Start,
            ),
            (Record { leaves: 1, ..first }, RecordError::Start),
            (Record { log_size: 1, ..first }, RecordError::Start),
            (Record { records: second.records, ..first }, RecordError::Start),
            (Record { log_root: [4; 32], ..first }, RecordError::EmptyLog(0)),
            (Record { log_size: 0, ..second }, RecordError::EmptyLog(1)),
        ];
        for (record, error) in cases {
            assert_eq!(checked(record, profile), Err(error), "{record:?}");
        }
    }
}

/// Each change that the record of the next epoch may not make is refused; other values may stay as they were.
#[test]
fn records_after_each_other() {
    let profile = Profile::Sha256;
    let [first, second, third] = three(profile);
    let after = |record: Record, before: Record| {
        checked(record, profile).unwrap().check_after(&checked(before, profile).unwrap())
    };
    // An epoch without updates, and one that is closed while the clock is set back.
    let empty = Tree::new(profile).update(&[]).unwrap();
    let idle = first.next(&empty, &log(0), &tree_of_records(&[first]), 50);
    assert_eq!((after(idle, first), idle.closed), (Ok(()), 100));
    let fewer = |what, found, before| Err(RecordError::Fewer { epoch: 2, what, found, before });
    let cases = [
        (
            with_root(Record { before: [8; 32], ..third }, profile, third.root),
            Err(RecordError::Fork(2)),
        ),
        (Record { leaves: 0, ..third }, fewer("leaves", 0, 1)),
        (Record { log_size: 1, ..third }, Ok(())),
        (Record { log_size: 0, log_root: first.log_root, ..third }, fewer("log entries", 0, 1)),
        (Record { closed: 159, ..third }, fewer("seconds since 1970", 159, 160)),
    ];
    for (record, expected) in cases {
        assert_eq!(after(record, second), expected, "{record:?}");
    }
    // Two records of one epoch, even with one chain.
    for other in [with_root(second, profile, third.root), Record { closed: 161, ..second }] {
        assert_eq!(after(other, second), Err(RecordError::Equivocation(1)));
        assert_ne!(other.digest(), second.digest());
    }
    let parameters = Parameters { proofs: [8; 32], ..parameters(profile) };
    let elsewhere = Record::first(&parameters, 100).sign(&key()).verify(&parameters).unwrap();
    let error = checked(second, profile).unwrap().check_after(&elsewhere).unwrap_err();
    assert_eq!(error, RecordError::Parameters(1));
}

/// The siblings of subtrees of a log, for proofs: as RFC 9162 defines them, by the entries.
fn proofs(entries: &[Digest], place: usize) -> Continuation {
    let (entry, before) = (
        super::log::inclusion(entries, place),
        match place {
            0 => Vec::new(),
            place => super::log::consistency(entries, place, true),
        },
    );
    Continuation { entry, before }
}

/// A record of an epoch, one of two kinds, with any records before it.
fn of_epoch(epoch: usize, kind: u64, before: &[Record]) -> Record {
    let profile = Profile::Compress;
    let first = Record::first(&parameters(profile), 0);
    let records = tree_of_records(before).root();
    let epoch = epoch as u32;
    match epoch {
        0 => Record { closed: kind, ..first },
        // One chain for both kinds, so that nothing but the tree tells them apart.
        _ => {
            let record = Record { epoch, records, closed: kind, before: [7; 32], ..first };
            with_root(record, profile, first.root)
        }
    }
}

/// All histories of up to five epochs with two records for each epoch, and all records that somebody may have seen of them: whatever the
/// server signs, a record continues those that are in its tree behind the same records, and no others.
#[test]
fn no_record_continues_another_history() {
    const MOST: usize = 5;
    let check = |record: Record| checked(record, Profile::Compress).unwrap();
    let mut histories: Vec<Vec<Vec<Record>>> = vec![vec![Vec::new()]];
    for epoch in 0..MOST {
        let longer = histories[epoch].iter().flat_map(|history| {
            [0, 1].map(|kind| [&history[..], &[of_epoch(epoch, kind, history)]].concat())
        });
        histories.push(longer.collect());
    }
    let (mut accepted, mut lies) = (0, 0);
    // The next record of an epoch has its chain, and these all have another one.
    for (size, place) in (2..=MOST).flat_map(|size| (0..size - 1).map(move |place| (size, place))) {
        for (before, kind) in histories[place].iter().flat_map(|before| [(before, 0), (before, 1)])
        {
            let record = of_epoch(place, kind, before);
            let seen = check(record);
            for history in &histories[size] {
                let later = of_epoch(size, 1, history);
                let mut entries: Vec<Digest> = history.iter().map(Record::entry).collect();
                let honest = proofs(&entries, place);
                let holds = |later: Record, proof: &Continuation| {
                    check(later).check_continues(&seen, proof).is_ok()
                };
                let is_in = history[place] == record;
                assert_eq!(holds(later, &honest), is_in, "{place} of {size}");
                accepted += u32::from(is_in);
                if is_in {
                    continue;
                }
                // Proofs of the tree that would have the record.
                entries[place] = record.entry();
                let proof = proofs(&entries, place);
                assert!(!holds(later, &proof));
                assert!(!holds(later, &Continuation { entry: proof.entry.clone(), ..honest }));
                // And a record with that tree, in which what is before the record is not what it says itself.
                let mut tree = Frontier::default();
                tree.append(&entries);
                let lie = Record { records: tree.root(), ..later };
                let is_behind_the_same = history[..place] == before[..];
                assert_eq!(holds(lie, &proof), is_behind_the_same, "{place} of {size}");
                lies += u32::from(!is_behind_the_same);
            }
        }
    }
    assert!(accepted > 100 && lies > 100, "{accepted} {lies}");
}

/// Every part of the check is needed.
#[test]
fn records_continue_earlier_ones() {
    let profile = Profile::Sha256;
    let mut all = three(profile).to_vec();
    for _ in 0..6 {
        let last = all[all.len() - 1];
        let (records, closed) = (tree_of_records(&all).root(), last.closed + 10);
        let next = Record { epoch: last.epoch + 1, before: last.chain, records, closed, ..last };
        all.push(with_root(next, profile, last.root));
    }
    let entries: Vec<Digest> = all.iter().map(Record::entry).collect();
    let check = |record: Record| checked(record, profile).unwrap();
    for later in 1..all.len() {
        for place in 0..later {
            let proof = proofs(&entries[..later], place);
            let (seen, record) = (check(all[place]), check(all[later]));
            assert_eq!(record.check_continues(&seen, &proof), Ok(()), "{place} to {later}");
            let not = Err(RecordError::NotContinued { seen: place as u32, found: later as u32 });
            let mut wrong = vec![
                Continuation { entry: [&proof.entry[..], &[[1; 32]]].concat(), ..proof.clone() },
                Continuation { before: [&proof.before[..], &[[1; 32]]].concat(), ..proof.clone() },
            ];
            for at in 0..proof.entry.len() {
                let mut other = proof.clone();
                other.entry[at][at] ^= 1;
                wrong.push(other);
            }
            for at in 0..proof.before.len() {
                let mut other = proof.clone();
                other.before[at][at] ^= 1;
                wrong.push(other);
            }
            for wrong in wrong {
                assert_eq!(record.check_continues(&seen, &wrong), not, "{place} to {later}");
            }
        }
    }
    let (seen, last) = (check(all[2]), all[8]);
    let proof = proofs(&entries[..8], 2);
    assert_eq!(seen.check_continues(&seen, &Continuation::default()), Ok(()));
    let order = Err(RecordError::Order { after: 8, found: 2 });
    assert_eq!(seen.check_continues(&check(last), &proof), order);
    let other = check(Record { closed: all[2].closed + 1, ..all[2] });
    assert_eq!(other.check_continues(&seen, &proof), Err(RecordError::Equivocation(2)));
    let fork = with_root(Record { before: [8; 32], ..all[3] }, profile, all[3].root);
    let next = proofs(&entries[..3], 2);
    assert_eq!(check(all[3]).check_continues(&seen, &next), Ok(()));
    assert_eq!(check(fork).check_continues(&seen, &next), Err(RecordError::Fork(3)));
    for (what, record) in [
        ("leaves", Record { leaves: 1, ..last }),
        ("log entries", Record { log_size: 1, ..last }),
        ("seconds since 1970", Record { closed: 219, ..last }),
    ] {
        let error = check(record).check_continues(&seen, &proof).unwrap_err();
        assert!(
            matches!(error, RecordError::Fewer { what: found, .. } if found == what),
            "{error}"
        );
    }
    let parameters = Parameters { proofs: [8; 32], ..parameters(profile) };
    let elsewhere = Record::first(&parameters, 100).sign(&key()).verify(&parameters).unwrap();
    let error = check(last).check_continues(&elsewhere, &proofs(&entries[..8], 0)).unwrap_err();
    assert_eq!(error, RecordError::Parameters(8));
}

/// Answers to look-ups: of the tree of the record, and with leaves that there may be.
#[test]
fn look_ups_are_of_their_record() {
    let profile = Profile::Compress;
    let [_, second, third] = three(profile).map(|record| checked(record, profile).unwrap());
    let tree = tree_of(profile, &[1], 8);
    let (there, missing) = (index(1, 8), index(2, 8));
    assert_eq!(second.look_up(&there, &tree.path(&there).unwrap()), Ok(tree.leaf(&there).unwrap()));
    assert_eq!(second.look_up(&missing, &tree.path(&missing).unwrap()), Ok(None));
    let error = third.look_up(&missing, &tree.path(&missing).unwrap());
    assert_eq!(error, Err(LookUpError::Path(PathError::Root)));
    // A leaf of an epoch that has not ended, and one that was changed more often than there were epochs.
    for (epoch, version) in [(2, 0), (1, 2)] {
        let leaf = crate::Leaf { index: there, version, epoch, commitment: commitment(1) };
        let tree = Tree::with_one(profile, leaf, 2);
        let before = Record::first(&parameters(profile), 100);
        let records = tree_of_records(&[before, *second.record()]);
        let record = second.record().next(&tree, &log(1), &records, 200);
        let record = checked(record, profile).unwrap();
        let error = LookUpError::Leaf { record: 2, epoch, version };
        assert_eq!(record.look_up(&there, &tree.path(&there).unwrap()), Err(error));
    }
}

/// Each byte of a signed record counts.
#[test]
fn damaged_records_are_refused() {
    let profile = Profile::Compress;
    let bytes = three(profile)[1].sign(&key()).encode();
    for at in 0..SIGNED_LENGTH {
        let mut damaged = bytes;
        damaged[at] ^= 1 << (at % 8);
        let verified = SignedRecord::decode(&damaged)
            .map(|signed| signed.verify(&parameters(profile)).map(drop));
        match (at, verified) {
            (0, Err(error)) => {
                assert_eq!(error, DecodeError::Version { found: 3, expected: 2 });
            }
            (1.., Ok(Err(RecordError::Signature(_)))) => {}
            (_, other) => panic!("{at}: {other:?}"),
        }
    }
}

/// Signatures under keys of small order verify many messages: the strict check refuses them.
#[test]
fn keys_of_small_order_sign_nothing() {
    let mut identity = [0; 32];
    identity[0] = 1;
    let server = ed25519_dalek::VerifyingKey::from_bytes(&identity).unwrap();
    let parameters = Parameters { server, ..parameters(Profile::Sha256) };
    let record = Record::first(&parameters, 1);
    let mut bytes = record.sign(&key()).encode();
    // R is the identity and S is zero: for this key, a signature of everything.
    bytes[SIGNED_LENGTH - 64..].fill(0);
    bytes[SIGNED_LENGTH - 64] = 1;
    let signed = SignedRecord::decode(&bytes).unwrap();
    assert_eq!(signed.verify(&parameters), Err(RecordError::Signature(0)));
}
