//! Proofs, which come after their epochs.

use super::{create, database, open, options, outcome, parameters, update};
use crate::proofs::encode;
use crate::{
    Error, MAX_STEPS_OF_ONE, Mode, Opened, Options, Outcome, Rows, Server, Status, Table, Update,
};
use hekaton_directory::{AuditError, Change, Commitment, EpochProof, Index, Profile, Tree, audit};
use std::time::Duration;

fn proof(from: u32, to: u32) -> EpochProof {
    EpochProof { from, to, subcircuits: to - from, proof: vec![from as u8, to as u8] }
}

/// Epochs 1 to 6, with one update each.
fn six(server: &Server) {
    for epoch in 1..=6 {
        update(server, &[("label", &epoch.to_string())]);
    }
}

/// A message of an error with a refusal inside.
fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn proofs_are_attached_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Pipelined));
    six(&server);
    assert_eq!(server.proven().unwrap(), 0);
    let attach = |from, to| server.attach(&proof(from, to), |_, _| Ok(()));
    let gap = "the next proof must begin at epoch 0, but it is from epoch 1 to 2";
    assert_eq!(message(attach(1, 2)), gap);
    assert!(message(attach(0, 0)).contains("from epoch 0 to 0"));
    assert!(matches!(attach(0, 7), Err(Error::NoEpoch { epoch: 7, last: 6 })));
    // What is rejected is not attached.
    let rejected = server.attach(&proof(0, 2), |_, _| Err("it does not hold".into()));
    assert!(message(rejected).contains("it does not hold"));
    assert_eq!((server.proven().unwrap(), server.proof_of(1).unwrap()), (0, None));
    // The values are those of the records.
    let mut seen = Vec::new();
    let attached = server.attach(&proof(0, 2), |proof, values| {
        seen.push((proof.clone(), values));
        Ok(())
    });
    assert!(attached.unwrap());
    let of = |epoch: u32| server.record(epoch).unwrap().unverified().public_values();
    assert_eq!(seen, [(proof(0, 2), [of(0), of(2)].concat().try_into().unwrap())]);
    // A second proof of the same epochs says the same; one of some of them does not follow.
    let never = |_: &EpochProof, _| panic!("it is not verified");
    assert!(!server.attach(&proof(0, 2), never).unwrap());
    assert!(message(server.attach(&proof(0, 1), never)).contains("begin at epoch 2"));
    assert!(message(server.attach(&proof(1, 2), never)).contains("begin at epoch 2"));
    assert!(message(server.attach(&proof(1, 3), never)).contains("begin at epoch 2"));
    assert!(attach(2, 5).unwrap());
    assert_eq!(server.proven().unwrap(), 5);
    for epoch in 0..=7 {
        let expected = match epoch {
            1 | 2 => Some(proof(0, 2)),
            3..=5 => Some(proof(2, 5)),
            _ => None,
        };
        assert_eq!(server.proof_of(epoch).unwrap(), expected, "{epoch}");
    }
    assert_eq!(server.proof_ranges(0, 9).unwrap(), [(0, 2), (2, 5)]);
    assert_eq!(server.proof_ranges(3, 9).unwrap(), [(2, 5)]);
    assert_eq!(server.proof_ranges(0, 1).unwrap(), [(0, 2)]);
    assert_eq!(server.proof_ranges(0, 0).unwrap(), []);
    // An auditor has them from here, and they are there after a restart and a pruning.
    server.prune(6).unwrap();
    server.close().unwrap();
    drop(server);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    assert_eq!(server.check().unwrap().proven, 5);
    let records: Vec<_> = (0..=5).map(|epoch| server.record(epoch).unwrap()).collect();
    let proofs: Vec<_> = [1, 3].map(|epoch| server.proof_of(epoch).unwrap().unwrap()).to_vec();
    let [_, last] =
        audit(&parameters(Profile::Compress), 0..=5, &records, &proofs, |_, _| Ok(())).unwrap();
    assert_eq!(last.record().epoch, 5);
}

#[test]
fn provers_get_whole_epochs() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    assert_eq!(server.unproven(100).unwrap(), None);
    six(&server);
    // Each epoch has two steps: a leaf, and the end.
    let next = |most| server.unproven(most).unwrap();
    let (to, witness) = next(5).unwrap();
    assert_eq!((to, witness.epoch, witness.steps.len()), (2, 0, 4));
    assert_eq!(witness, server.witness(0, 2).unwrap());
    assert_eq!(next(100).unwrap().0, 6);
    let error = server.unproven(1).unwrap_err();
    assert!(matches!(error, Error::TooLarge { epoch: 1, steps: 2, most: 1 }), "{error}");
    // What is proven needs no prover.
    assert!(server.attach(&proof(0, 2), |_, _| Ok(())).unwrap());
    assert!(matches!(server.witness(1, 3), Err(Error::NoWitness(2))));
    let (to, witness) = next(5).unwrap();
    assert_eq!((to, witness.epoch), (4, 2));
    assert_eq!(witness, server.witness(2, 4).unwrap());
    assert!(server.attach(&proof(2, 6), |_, _| Ok(())).unwrap());
    assert_eq!(next(5), None);
    server.check().unwrap();
    // Without witnesses, nothing after them can be proven.
    server.close().unwrap();
    drop(server);
    let blind = Options { has_witness: false, ..options(Mode::Serial) };
    let server = open(folder.path(), Profile::Compress, blind);
    update(&server, &[("label", "7")]);
    assert!(matches!(server.unproven(5), Err(Error::NoWitness(7))));
    server.check().unwrap();
}

/// An epoch has as many steps as a proof has room for; the other updates wait, in their order.
#[test]
fn epochs_are_as_large_as_their_proofs() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    for max_steps in [1, MAX_STEPS_OF_ONE, 20] {
        let small = Options { max_steps, max_updates: 100, ..options(Mode::Pipelined) };
        let server = open(folder.path(), Profile::Compress, small);
        let before = server.view().unwrap().record().log_size;
        let updates = (0..40).map(|n| Update::new(format!("{n}"), format!("{max_steps}")));
        let receipts = server.submit_all(updates.collect());
        server.flush().unwrap();
        assert_eq!(server.view().unwrap().record().log_size, before + 40);
        let mut at = 0;
        for receipt in receipts {
            let Outcome::Committed { epoch, .. } = outcome(&server, receipt.unwrap().number) else {
                panic!("it was refused");
            };
            assert!(epoch >= at, "an update came before an earlier one");
            at = epoch;
        }
        server.close().unwrap();
    }
    // Each of the first forty updates has its own epoch; there is room for several in the others.
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    let last = server.view().unwrap().record().epoch;
    let steps: Vec<usize> =
        (0..last).map(|epoch| server.witness(epoch, epoch + 1).unwrap().steps.len()).collect();
    let (one, more) = steps.split_at(40);
    assert!(one.iter().all(|steps| *steps <= MAX_STEPS_OF_ONE));
    assert!(more.len() > 2 && more.len() < 40, "{more:?}");
    let largest = more.iter().position(|steps| *steps > 20).unwrap_or_default();
    assert!(more[..=largest].iter().all(|steps| *steps <= MAX_STEPS_OF_ONE), "{more:?}");
    assert!(more.last().is_some_and(|steps| *steps <= 20), "{more:?}");
    server.check().unwrap();
}

/// Whatever the indices are, one update has room in a proof of that many steps.
#[test]
fn the_most_steps_of_one_update() {
    let near = |bit: u8| Index([[0; 15].as_slice(), &[bit]].concat().try_into().unwrap());
    let change = |index, n| Change { index, commitment: Commitment([n; 32]) };
    for profile in [Profile::Compress, Profile::Sha256] {
        let mut tree = Tree::new(profile);
        let mut most = 0;
        for (n, bit) in [0, 1, 1, 3, 2, 0, 255].into_iter().enumerate() {
            let changes = [change(near(bit), n as u8)];
            most = most.max(tree.steps(&changes).unwrap().len());
            tree = tree.update(&changes).unwrap();
        }
        assert_eq!(most, MAX_STEPS_OF_ONE - 1);
    }
}

#[test]
fn check_finds_a_gap_between_proofs() {
    for remove in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), Profile::Compress);
        let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
        six(&server);
        for (from, to) in [(0, 1), (1, 3), (3, 4)] {
            assert!(server.attach(&proof(from, to), |_, _| Ok(())).unwrap());
        }
        server.check().unwrap();
        server.close().unwrap();
        drop(server);
        let store = database(folder.path())(Opened::Again).unwrap();
        let mut rows = Rows::default();
        match remove {
            true => rows.remove(Table::Proof, 3u32.to_be_bytes()),
            false => rows.put(Table::Proof, 9u32.to_be_bytes(), encode(&proof(4, 9))),
        }
        store.commit(rows).unwrap();
        drop(store);
        let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
        let why = message(server.check());
        assert!(why.contains(if remove {
            "from epoch 3, after one to epoch 1"
        } else {
            "epoch 4"
        }));
    }
}

#[test]
fn senders_can_wait() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    let number = server.submit(Update::new("label", "value")).unwrap().number;
    let short = Duration::from_millis(10);
    assert_eq!(server.wait(number, short).unwrap(), Status::Waits);
    assert_eq!(server.wait(number + 1, short).unwrap(), Status::Unknown);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| server.wait(number, Duration::from_secs(60)).unwrap());
        server.flush().unwrap();
        assert!(matches!(waits.join().unwrap(), Status::Done(_)));
    });
    // One that stops does not keep anybody waiting.
    let number = server.submit(Update::new("label", "value 2")).unwrap().number;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| server.wait(number, Duration::from_secs(60)));
        server.close().unwrap();
        assert!(matches!(waits.join().unwrap(), Err(Error::Stopped(_))));
    });
    drop(server);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    assert!(matches!(
        server.attach(&proof(0, 2), |_, _| Ok(())),
        Err(Error::NoEpoch { epoch: 2, last: 1 })
    ));
    assert!(matches!(
        server.attach(&EpochProof { from: 1, ..proof(0, 0) }, |_, _| Ok(())),
        Err(Error::Proof(AuditError::Gap { expected: 0, from: 1, to: 0 }))
    ));
}
