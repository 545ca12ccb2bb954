//! The answers that clients believe, and those that they refuse.

use super::{Running, parameters, problem, signing_key};
use crate::body::{HistoryBody, KeyBody};
use crate::{AnswerError, Base64, ParametersFile, follow};
use hekaton_directory::{Audit, Checked, Parameters, Record, SignedRecord};

/// Every byte of an answer that is changed leads to an error, or to what the answer was.
#[test]
fn forged_answers_are_rejected() {
    let running = Running::plain();
    for value in ["1", "2", "3"] {
        running.insert("alice", value);
        running.insert("bob", value);
    }
    let check = |body: &KeyBody, label: &[u8]| body.verify(&parameters(), label, None);
    let alice = running.client.key("alice", None).unwrap();
    let truth = check(&alice, b"alice").unwrap();
    type Part = fn(&mut KeyBody) -> &mut Vec<u8>;
    let parts: [Part; 5] = [
        |body| &mut body.record.0,
        |body| &mut body.path.0,
        |body| &mut body.current.as_mut().unwrap().before.0,
        |body| &mut body.current.as_mut().unwrap().salt.0,
        |body| &mut body.current.as_mut().unwrap().value.0,
    ];
    let mut rejected = 0;
    for part in parts {
        for at in 0..part(&mut alice.clone()).len() {
            let mut changed = alice.clone();
            part(&mut changed)[at] ^= 1;
            assert!(check(&changed, b"alice").is_err(), "byte {at}");
            rejected += 1;
        }
        let mut longer = alice.clone();
        part(&mut longer).push(0);
        assert!(check(&longer, b"alice").is_err());
        let mut shorter = alice.clone();
        part(&mut shorter).pop();
        assert!(check(&shorter, b"alice").is_err());
    }
    assert!(rejected > 400);
    // What belongs to another label, another epoch, or another directory.
    assert!(check(&alice, b"bob").is_err());
    assert!(check(&alice, b"nobody").is_err());
    let says = KeyBody { epoch: 7, ..alice.clone() };
    assert!(matches!(check(&says, b"alice"), Err(AnswerError::Says { says: 7, found: 6 })));
    let wrong = alice.verify(&parameters(), b"alice", Some(5)).unwrap_err();
    assert!(matches!(wrong, AnswerError::Epoch { found: 6, expected: 5 }));
    let older = running.client.key("alice", Some(4)).unwrap();
    let record = older.record.clone();
    assert!(check(&KeyBody { epoch: 4, record, ..alice.clone() }, b"alice").is_err());
    assert!(check(&KeyBody { current: older.current, ..alice.clone() }, b"alice").is_err());
    let other = Parameters { proofs: [7; 32], ..parameters() };
    assert!(alice.verify(&other, b"alice", None).is_err());
    // An absence with a value, and a value that is kept back.
    let nobody = running.client.key("nobody", None).unwrap();
    assert_eq!(check(&nobody, b"nobody").unwrap().leaf, None);
    let surplus = KeyBody { current: alice.current.clone(), ..nobody };
    assert!(matches!(check(&surplus, b"nobody"), Err(AnswerError::Surplus)));
    let kept = check(&KeyBody { current: None, ..alice.clone() }, b"alice").unwrap();
    assert_eq!((kept.leaf, kept.value), (truth.leaf, None));

    let check = |body: &HistoryBody, label: &[u8]| body.verify(&parameters(), label, None);
    let alice = running.client.history("alice", None).unwrap();
    assert_eq!(check(&alice, b"alice").unwrap().values().count(), 3);
    for at in 0..alice.history.0.len() {
        let mut changed = alice.clone();
        changed.history.0[at] ^= 1;
        assert!(check(&changed, b"alice").is_err(), "byte {at} of the history");
    }
    let nobody = running.client.history("nobody", None).unwrap();
    let surplus = HistoryBody { history: alice.history.clone(), ..nobody };
    assert!(matches!(check(&surplus, b"nobody"), Err(AnswerError::Surplus)));
    let none = HistoryBody { history: Base64(vec![1, 0, 0, 0, 0]), ..alice };
    assert!(check(&none, b"alice").is_err());
}

#[test]
fn clients_follow_one_history() {
    let running = Running::plain();
    for value in ["1", "2", "3", "4", "5"] {
        running.insert("label", value);
    }
    let client = &running.client;
    let body = client.records(0, 5).unwrap();
    let all: Vec<Checked> = body.records.iter().map(|record| checked(&record.0)).collect();
    let go = |seen: &Checked, to: &Checked| {
        follow::<AnswerError>(seen, to, |from, to| Ok(client.continuation(from, to).unwrap()))
    };
    for to in 0..=5 {
        for seen in 0..=to {
            go(&all[seen], &all[to]).unwrap();
        }
    }
    assert!(matches!(go(&all[4], &all[2]), Err(AnswerError::Record(_))), "an older one");
    // Of pruned epochs, too.
    running.server.prune(4).unwrap();
    go(&all[1], &all[5]).unwrap();
    go(&all[1], &all[3]).unwrap();
    // Another record with the same parameters and the same chain, of epoch 3.
    let other = Record { log_root: [1; 32], ..*all[3].record() };
    let other = checked(&other.sign(&signing_key()).encode());
    let error = go(&all[3], &other).unwrap_err().to_string();
    assert!(error.contains("two records of epoch 3"), "{error}");
    let error = go(&other, &all[5]).unwrap_err().to_string();
    assert!(error.contains("is not proven to continue"), "{error}");
    // Proofs of other epochs, or none.
    let asked = |from: u32, to: u32| {
        follow::<AnswerError>(&all[1], &all[4], |_, _| Ok(client.continuation(from, to).unwrap()))
    };
    asked(1, 4).unwrap();
    for (from, to) in [(0, 4), (2, 4), (1, 3), (1, 5), (4, 4)] {
        assert!(matches!(asked(from, to), Err(AnswerError::Record(_))), "{from} {to}");
    }
    let mut cut = client.continuation(1, 4).unwrap();
    cut.entry.0.pop();
    let error = cut.verify(&all[1], &all[4]).unwrap_err().to_string();
    assert_eq!(
        error,
        "the answer's entry has 63 bytes, expected any number of digests of 32 bytes"
    );
    // The tree with which an audit begins later.
    for from in 0..=5 {
        let body = client.records(from, 5).unwrap();
        let signed = SignedRecord::decode(&body.records[0].0).unwrap();
        let begun = Audit::begin(&parameters(), &signed, from).unwrap();
        begun.with_records(body.records_before(from).unwrap()).unwrap();
        let other = body.records_before(from ^ 1).unwrap_err().to_string();
        assert!(other.contains("digests of 32 bytes"), "{other}");
    }
    assert_eq!(problem(client.continuation(2, 9)).0, 404);
    assert_eq!(problem(client.continuation(3, 2)).0, 400);
}

fn checked(bytes: &[u8]) -> Checked {
    SignedRecord::decode(bytes).unwrap().verify(&parameters()).unwrap()
}

#[test]
fn parameters_as_a_file() {
    let file = ParametersFile::of(&parameters());
    let read = ParametersFile::read(&file.bytes()).unwrap();
    assert_eq!(read.parameters().unwrap(), parameters());
    let why = |change: fn(&mut ParametersFile)| {
        let mut file = file.clone();
        change(&mut file);
        file.parameters().unwrap_err().to_string()
    };
    assert!(why(|file| file.format = 2).contains("version 2, but this program reads version 1"));
    assert!(why(|file| file.profile = "x".into()).contains("profile is 'x'"));
    assert!(why(|file| file.server.truncate(63)).contains("server is not a key"));
    // Not a point of the curve.
    assert!(why(|file| file.server = format!("02{}", "00".repeat(31))).contains("not a key"));
    assert!(why(|file| file.proofs.push('0')).contains("proofs is not a digest"));
    assert!(ParametersFile::read(b"{}").is_err());
    assert!(ParametersFile::read(b"not json").is_err());
}
