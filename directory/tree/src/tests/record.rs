//! Records: signatures and chains.

use super::{commitment, index, tree_of};
use crate::log::{Frontier, entry};
use crate::{
    Checked, DecodeError, Digest, LookUpError, Parameters, PathError, Profile, Record, RecordError,
    SIGNED_LENGTH, SignedRecord, Tree,
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

fn checked(record: Record, profile: Profile) -> Result<Checked, RecordError> {
    record.sign(&key()).verify(&parameters(profile))
}

/// The records of three epochs: without leaves, with one, with two.
fn three(profile: Profile) -> [Record; 3] {
    let first = Record::first(&parameters(profile), 100);
    let tree = tree_of(profile, &[1], 8);
    let second = first.next(&tree, &log(1), 160);
    let change = crate::Change { index: index(2, 8), commitment: commitment(2) };
    let third = second.next(&tree.update(&[change]).unwrap(), &log(2), 220);
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
    let idle = first.next(&Tree::new(profile).update(&[]).unwrap(), &log(0), 50);
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
        let record = checked(second.record().next(&tree, &log(1), 200), profile).unwrap();
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
                assert_eq!(error, DecodeError::Version { found: 0, expected: 1 });
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
