//! Wrong input from outside gets an error that says what is wrong.

use super::{create, database, key, open, options, parameters, try_open, update};
use crate::{Error, Expected, Mode, Opened, Options, Rows, Server, SubmitError, Table, Update};
use ed25519_dalek::SigningKey;
use hekaton_directory::{EpochProof, MAX_LABEL, MAX_VALUE, Profile};
use std::ops::ControlFlow;

#[test]
fn updates_that_none_can_send() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    for (update, why) in [
        (Update::new("", "v"), "a label of 0 bytes: expected 1 to 1024"),
        (Update::new(vec![1; MAX_LABEL + 1], "v"), "a label of 1025 bytes: expected 1 to 1024"),
        (
            Update::new("l", vec![1; MAX_VALUE + 1]),
            "a value of 65537 bytes: expected at most 65536",
        ),
        (
            Update { idempotency_key: Some(Vec::new()), ..Update::new("l", "v") },
            "an idempotency key of 0 bytes: expected 1 to 128",
        ),
        (
            Update { idempotency_key: Some(vec![1; 129]), ..Update::new("l", "v") },
            "an idempotency key of 129 bytes: expected 1 to 128",
        ),
    ] {
        assert_eq!(server.submit(update).unwrap_err().to_string(), why);
    }
    // The largest ones are done.
    server.submit(Update::new(vec![1; MAX_LABEL], vec![2; MAX_VALUE])).unwrap();
    server.flush().unwrap();
    assert!(server.view().unwrap().look_up(&[1; MAX_LABEL]).unwrap().current.is_some());
    assert!(server.view().unwrap().look_up(&[]).is_err());
}

#[test]
fn a_directory_of_an_earlier_version() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let store = database(folder.path())(Opened::Again).unwrap();
    let mut format = store.get(Table::Format, &[0]).unwrap().unwrap();
    format[0] = 1;
    let mut rows = Rows::default();
    rows.put(Table::Format, [0], format);
    store.commit(rows).unwrap();
    drop(store);
    let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
    let error = try_open(folder.path(), &parameters, &key(), options).unwrap_err();
    assert!(matches!(error, Error::OldFormat { found: 1, .. }), "{error}");
    assert!(error.to_string().contains("insert its labels into a new directory"), "{error}");
}

#[test]
fn too_many_updates_wait() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let options = Options { max_pending: 3, ..options(Mode::Serial) };
    let server = open(folder.path(), Profile::Compress, options);
    for label in ["a", "b", "c"] {
        server.submit(Update::new(label, "v")).unwrap();
    }
    let error = server.submit(Update::new("d", "v")).unwrap_err();
    assert!(matches!(error, SubmitError::Full(3)), "{error}");
    server.flush().unwrap();
    server.submit(Update::new("d", "v")).unwrap();
    server.close().unwrap();
    assert!(matches!(server.submit(Update::new("e", "v")), Err(SubmitError::Stopping)));
    assert!(matches!(server.view(), Err(Error::Stopped(None))));
    let all = server.submit_all(vec![Update::new("f", "v")]);
    assert!(matches!(all[..], [Err(SubmitError::Stopping)]));
    // What waited is done by the next one.
    drop(server);
    let server = open(folder.path(), Profile::Compress, options);
    assert_eq!(server.open_updates(), 1);
    server.flush().unwrap();
    assert!(server.view().unwrap().look_up(b"d").unwrap().current.is_some());
}

/// One label cannot keep the others waiting: an epoch takes one of its updates.
#[test]
fn updates_of_one_label_leave_room_for_others() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let options = Options { max_pending_of_label: 2, ..options(Mode::Serial) };
    let server = open(folder.path(), Profile::Compress, options);
    for value in ["1", "2"] {
        server.submit(Update::new("a", value)).unwrap();
    }
    assert!(matches!(server.submit(Update::new("a", "3")), Err(SubmitError::Full(2))));
    server.submit(Update::new("b", "1")).unwrap();
    server.flush().unwrap();
    server.submit(Update::new("a", "3")).unwrap();
    server.flush().unwrap();
    assert_eq!(server.view().unwrap().record().epoch, 3);
}

#[test]
fn what_waits_has_so_many_bytes() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let options = Options { max_pending_bytes: 100_000, ..options(Mode::Serial) };
    let server = open(folder.path(), Profile::Compress, options);
    server.submit(Update::new("a", vec![1; 60_000])).unwrap();
    let error = server.submit(Update::new("b", vec![1; 60_000])).unwrap_err();
    assert!(matches!(error, SubmitError::Full(1)), "{error}");
    server.submit(Update::new("c", "small")).unwrap();
    server.flush().unwrap();
    server.submit(Update::new("b", vec![1; 60_000])).unwrap();
    let status = server.wait(2, std::time::Duration::ZERO).unwrap();
    assert_eq!(status, crate::Status::Waits);
    server.flush().unwrap();
    // Any time is one to wait.
    assert_ne!(server.wait(2, std::time::Duration::MAX).unwrap(), crate::Status::Waits);
    drop(server);
    // One alone is always taken.
    let options = Options { max_pending_bytes: 1, ..options };
    let server = open(folder.path(), Profile::Compress, options);
    server.submit(Update::new("a", vec![1; 60_000])).unwrap();
}

/// A database without its head is not one that was never finished: nothing is removed, and no second record 1 is signed.
#[test]
fn a_lost_head_is_no_new_directory() {
    for was_closed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), Profile::Compress);
        let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
        update(&server, &[("a", "1")]);
        if was_closed {
            server.close().unwrap();
        }
        drop(server);
        let elsewhere = tempfile::tempdir().unwrap();
        let (head, away) = (folder.path().join("head"), elsewhere.path().join("head"));
        std::fs::rename(&head, &away).unwrap();
        if !was_closed {
            // As a process leaves it that was killed.
            std::fs::write(folder.path().join("in-use"), "").unwrap();
            let why = super::try_open(
                folder.path(),
                &parameters(Profile::Compress),
                &key(),
                options(Mode::Serial),
            );
            assert!(matches!(why, Err(Error::NoHead(_))), "{why:?}");
        }
        let created = Server::create_in(
            folder.path(),
            &parameters(Profile::Compress),
            &key(),
            4,
            super::database(folder.path()),
        );
        let why = created.unwrap_err();
        assert!(matches!(why, Error::NoHead(_) | Error::Exists(_)), "{why}");
        std::fs::rename(&away, &head).unwrap();
        let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
        assert!(server.view().unwrap().look_up(b"a").unwrap().current.is_some());
        server.check().unwrap();
    }
}

#[test]
fn other_directories_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |parameters, key: &SigningKey| {
        super::try_open(folder.path(), &parameters, key, options(Mode::Serial))
            .unwrap_err()
            .to_string()
    };
    let why = refused(parameters(Profile::Compress), &key());
    assert!(why.contains("has no directory"), "{why}");
    create(folder.path(), Profile::Compress);
    let again = Server::create(folder.path(), &parameters(Profile::Compress), &key(), 4);
    assert!(
        again.unwrap_err().to_string().contains("needs a folder that does not exist or is empty")
    );
    let why = refused(parameters(Profile::Full), &key());
    assert_eq!(why, "the directory has profile compress, expected full");
    let other = SigningKey::from_bytes(&[8; 32]);
    let mut theirs = parameters(Profile::Compress);
    let why = refused(theirs, &other);
    assert_eq!(why, "the directory has the key of another server");
    theirs.server = other.verifying_key();
    assert_eq!(refused(theirs, &other), "the directory has the key of another server");
    theirs = parameters(Profile::Compress);
    theirs.proofs = [1; 32];
    assert_eq!(refused(theirs, &key()), "the directory has another verifying key of proofs");
    // One directory has one server.
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    let why = refused(parameters(Profile::Compress), &key());
    assert!(why.contains("another process serves"), "{why}");
    server.close().unwrap();
    drop(server);
    let head = folder.path().join("head");
    let text = std::fs::read_to_string(&head).unwrap();
    std::fs::write(&head, text.replace("epoch 0", "epoch 1")).unwrap();
    let why = refused(parameters(Profile::Compress), &key());
    assert!(why.contains("is damaged; without it"), "{why}");
    std::fs::remove_file(&head).unwrap();
    // It was in use, so it was finished once.
    let why = refused(parameters(Profile::Compress), &key());
    assert!(why.contains("without its file 'head'"), "{why}");
    std::fs::remove_file(folder.path().join("in-use")).unwrap();
    let why = refused(parameters(Profile::Compress), &key());
    assert!(why.contains("was not finished"), "{why}");
    // Then it can be created again, unless there is something else.
    std::fs::write(folder.path().join("notes"), "").unwrap();
    let again = Server::create(folder.path(), &parameters(Profile::Compress), &key(), 4);
    assert!(matches!(again, Err(Error::Exists(_))));
    std::fs::remove_file(folder.path().join("notes")).unwrap();
    create(folder.path(), Profile::Compress);
    open(folder.path(), Profile::Compress, options(Mode::Serial)).check().unwrap();
}

/// Every row of every table, changed or removed, is found by `check`, or keeps the directory from being opened.
#[test]
fn damaged_rows_are_found() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    update(&server, &[("a", "1"), ("b", "2"), ("a", "3")]);
    update(&server, &[("c", "4")]);
    let proof = EpochProof { from: 0, to: 1, subcircuits: 1, proof: vec![1; 20] };
    server.attach(&proof, |_, _| Ok(())).unwrap();
    let mut refused = Update::new("c", "5");
    (refused.expected, refused.idempotency_key) = (Expected::Absent, Some(b"name".to_vec()));
    server.submit(refused).unwrap();
    server.flush().unwrap();
    // One waits.
    server.submit(Update::new("d", "6")).unwrap();
    server.close().unwrap();
    drop(server);
    let opener = super::database(folder.path());
    let store = |opened| opener(opened).unwrap();
    let mut rows = Vec::new();
    {
        let store = store(Opened::Again);
        for table in Table::ALL {
            let mut visit = |key: &[u8], value: &[u8]| {
                rows.push((table, key.to_vec(), value.to_vec()));
                ControlFlow::Continue(())
            };
            store.scan(table, &[], &[0xff; 64], &mut visit).unwrap();
        }
    }
    let tables: std::collections::BTreeSet<Table> = rows.iter().map(|row| row.0).collect();
    assert_eq!(tables.len(), Table::ALL.len(), "{tables:?}");
    let mut found = 0;
    for (table, key_of, value) in &rows {
        // A damaged one is found when the update is sent again; one that is lost cannot be.
        if *table == Table::Idempotency {
            continue;
        }
        for damage in 0..3 {
            let mut rows = Rows::default();
            let mut bytes = value.clone();
            match damage {
                0 => rows.remove(*table, key_of.clone()),
                1 => {
                    let at = bytes.len() / 2;
                    bytes[at] ^= 1;
                    rows.put(*table, key_of.clone(), bytes);
                }
                _ => {
                    bytes.pop();
                    rows.put(*table, key_of.clone(), bytes);
                }
            }
            store(Opened::Again).commit(rows).unwrap();
            let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
            let opened = super::try_open(folder.path(), &parameters, &key(), options);
            let error = opened.and_then(|server| server.check().map(drop)).err();
            // That an update was accepted is known from its row alone, and so is the version that one met that was refused.
            let is_missed = match table {
                // So are heads of earlier commits.
                Table::Format => damage == 0 && key_of[..] == crate::rows::CONFIRMED,
                Table::Intake => damage == 0,
                Table::Outcome => damage == 1 && value[0] != 0,
                _ => false,
            };
            assert_eq!(
                error.is_none(),
                is_missed,
                "{table:?} {key_of:x?}, damage {damage}: {error:?}"
            );
            found += usize::from(error.is_some());
            let mut rows = Rows::default();
            rows.put(*table, key_of.clone(), value.clone());
            store(Opened::Again).commit(rows).unwrap();
        }
    }
    assert!(found > 50, "{found}");
    open(folder.path(), Profile::Compress, options(Mode::Serial)).check().unwrap();
}
