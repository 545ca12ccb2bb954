//! The answers that clients believe, and those that they refuse.

use super::{Running, parameters, signing_key};
use crate::body::{HistoryBody, KeyBody};
use crate::{AnswerError, Base64, ParametersFile, follow};
use hekaton_directory::{Parameters, SignedRecord};

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
    let all: Vec<Vec<u8>> =
        client.records(0, 5).unwrap().records.into_iter().map(|record| record.0).collect();
    let checked =
        |bytes: &[u8]| SignedRecord::decode(bytes).unwrap().verify(&parameters()).unwrap();
    let at = |epoch: usize| checked(&all[epoch]);
    let go = |seen: usize, to: usize, some: usize| {
        follow::<AnswerError>(&parameters(), &at(seen), &at(to), |after| {
            let from = after as usize + 1;
            Ok(all[from..(from + some).min(all.len())].to_vec())
        })
    };
    for some in 1..=6 {
        go(0, 5, some).unwrap();
        go(2, 4, some).unwrap();
    }
    go(3, 3, 0).unwrap();
    assert!(matches!(go(1, 4, 0), Err(AnswerError::Few { found: 1, expected: 4 })));
    assert!(matches!(go(4, 2, 9), Err(AnswerError::Record(_))), "an older one");
    // Another history with the same parameters, from epoch 3 on.
    let other = {
        let key = signing_key();
        let mut record = *at(3).record();
        record.closed += 1;
        record.sign(&key).encode().to_vec()
    };
    let gives = |bytes: Vec<Vec<u8>>| move |_| Ok::<_, AnswerError>(bytes.clone());
    let forked = follow(&parameters(), &at(2), &at(3), gives(vec![other.clone()]));
    assert!(forked.unwrap_err().to_string().contains("two records of epoch 3"));
    let forked = follow(&parameters(), &at(3), &checked(&other), gives(vec![]));
    assert!(forked.unwrap_err().to_string().contains("two records of epoch 3"));
    let skipped = follow(&parameters(), &at(1), &at(3), gives(vec![all[3].clone()]));
    assert!(matches!(skipped, Err(AnswerError::Record(_))));
    let cut = follow(&parameters(), &at(1), &at(3), gives(vec![all[2][1..].to_vec()]));
    assert!(matches!(cut, Err(AnswerError::Decode("record", _))));
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
