//! Writes that fail, disks that lose their power, and databases that are not what was signed.

use super::disk::{Disk, Fault};
use super::restores::copy;
use super::{Random, client, create, key, open, options, parameters, update};
use crate::{Error, Mode, Opened, Opener, Options, Server, StoreError, SubmitError, Update};
use hekaton_directory::{Digest, Profile};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

fn opener(disk: &Disk) -> Box<Opener> {
    let disk = disk.clone();
    Box::new(move |opened| Ok(disk.open(opened)))
}

fn open_disk(folder: &Path, disk: &Disk, mode: Mode) -> Server {
    let (parameters, options) = (parameters(Profile::Compress), options(mode));
    Server::open_in(folder, &parameters, &key(), options, opener(disk)).unwrap()
}

fn create_disk(folder: &Path) -> Disk {
    let disk = Disk::default();
    let parameters = parameters(Profile::Compress);
    Server::create_in(folder, &parameters, &key(), 4, opener(&disk)).unwrap();
    disk
}

/// Sends an update until it is accepted.
fn send(server: &Server, number: u32) {
    let mut update = Update::new(format!("label {}", number % 5), format!("{number}"));
    update.idempotency_key = Some(number.to_be_bytes().to_vec());
    loop {
        match server.submit(update.clone()) {
            Ok(_) => return,
            Err(SubmitError::Unknown(_) | SubmitError::Recovering) => {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(other) => panic!("{other}"),
        }
    }
}

/// All values are there once, in their order.
fn check_values(server: &Server, count: u32) {
    let view = server.view().unwrap();
    for label in 0..5 {
        let found = client(server.parameters(), &view, format!("label {label}").as_bytes());
        let expected: Vec<String> =
            (0..count).filter(|n| n % 5 == label).map(|n| n.to_string()).collect();
        assert_eq!(found.map(|(_, values)| values).unwrap_or_default(), expected, "label {label}");
    }
    server.check().unwrap();
}

/// F3, F4: every commit fails once, in each way, in each mode, while the first stage is ahead. The server opens its database
/// again by itself, nothing is lost or done twice, and what was signed stays.
#[test]
fn every_write_fails_once() {
    for (mode, fault) in Mode::ALL.into_iter().flat_map(|m| Fault::ALL.map(|f| (m, f))) {
        for failing in 0..8 {
            let folder = tempfile::tempdir().unwrap();
            let disk = create_disk(folder.path());
            let server = open_disk(folder.path(), &disk, mode);
            let mut plan = vec![Fault::None; failing];
            plan.push(fault);
            disk.state().plan = plan.into();
            let mut signed: BTreeMap<u32, Digest> = BTreeMap::new();
            for number in 0..12 {
                send(&server, number);
                if let Ok(view) = server.view() {
                    let record = view.record();
                    let known = signed.entry(record.epoch).or_insert_with(|| record.digest());
                    assert_eq!(*known, record.digest());
                }
            }
            server.flush().unwrap();
            assert!(disk.state().plan.is_empty(), "nothing has failed");
            check_values(&server, 12);
            for (epoch, digest) in signed {
                assert_eq!(server.record(epoch).unwrap().unverified().digest(), digest);
            }
            server.drain().unwrap();
        }
    }
}

/// The power is lost at any moment: what was accepted or signed is there afterwards.
#[test]
fn power_is_lost() {
    let mut random = Random(3);
    for round in 0..24 {
        let mode = Mode::ALL[round % 4];
        let folder = tempfile::tempdir().unwrap();
        let disk = create_disk(folder.path());
        disk.state().is_slow = true;
        let mut sent = 0;
        for _ in 0..4 {
            let server = open_disk(folder.path(), &disk, mode);
            for _ in 0..random.below(12) {
                send(&server, sent);
                sent += 1;
            }
            let last = *server.view().unwrap().record();
            // Some wait for an epoch, and others are on their way.
            server.set_mode(Mode::ALL[random.below(3) as usize]);
            std::thread::scope(|scope| {
                scope.spawn(|| server.flush());
                std::thread::sleep(Duration::from_micros(random.below(8000)));
            });
            // The head may be from before what the copy has, never from after it.
            let head = std::fs::read(folder.path().join("head")).unwrap();
            let copy = Disk::of(disk.state().clone());
            copy.state().lose_power();
            server.close().unwrap();
            drop(server);
            let now = copy.state().clone();
            *disk.state() = now;
            std::fs::write(folder.path().join("head"), head).unwrap();
            std::fs::write(folder.path().join("in-use"), "").unwrap();
            let server = open_disk(folder.path(), &disk, mode);
            assert_eq!(*server.record(last.epoch).unwrap().unverified(), last);
            server.flush().unwrap();
            check_values(&server, sent);
            server.close().unwrap();
        }
    }
}

#[test]
fn a_database_that_stays_closed_is_tried_again() {
    let folder = tempfile::tempdir().unwrap();
    let disk = create_disk(folder.path());
    let broken = Arc::new(AtomicBool::new(false));
    let opener: Box<Opener> = {
        let (disk, broken) = (disk.clone(), Arc::clone(&broken));
        Box::new(move |opened| match broken.load(Ordering::Relaxed) {
            true => Err(StoreError::Open("no such disk".into())),
            false => Ok(disk.open(opened)),
        })
    };
    let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
    let server = Server::open_in(folder.path(), &parameters, &key(), options, opener).unwrap();
    broken.store(true, Ordering::Relaxed);
    disk.state().plan = [Fault::Sync].into();
    let error = server.submit(Update::new("label 0", "0")).unwrap_err();
    assert!(matches!(error, SubmitError::Unknown(_)), "{error}");
    let error = loop {
        match server.submit(Update::new("label 0", "0")) {
            Err(SubmitError::Recovering) => break server.view().unwrap_err(),
            Err(SubmitError::Unknown(_)) => {}
            other => panic!("{other:?}"),
        }
    };
    assert!(error.to_string().contains("opens its database again"), "{error}");
    assert!(folder.path().join("in-use").exists());
    broken.store(false, Ordering::Relaxed);
    // Whether the first one was accepted was open: it was.
    while server.view().is_err() {
        std::thread::sleep(Duration::from_millis(5));
    }
    update(&server, &[("label 0", "5")]);
    let (_, values) = client(&parameters, &server.view().unwrap(), b"label 0").unwrap();
    assert_eq!(values, ["0", "5"]);
}

/// The data that the database shows is not trusted after anything but a clean end.
#[test]
fn a_process_that_was_killed_leaves_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let disk = create_disk(folder.path());
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let opener = || -> Box<Opener> {
        let (disk, seen) = (disk.clone(), Arc::clone(&seen));
        Box::new(move |opened| {
            seen.lock().unwrap().push(opened);
            Ok(disk.open(opened))
        })
    };
    let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
    let note = folder.path().join("in-use");
    std::fs::write(&note, "").unwrap();
    for _ in 0..2 {
        let server = Server::open_in(folder.path(), &parameters, &key(), options, opener());
        assert!(note.exists());
        server.unwrap().close().unwrap();
        assert!(!note.exists());
    }
    // A write that fails at the end leaves it.
    let server = Server::open_in(folder.path(), &parameters, &key(), options, opener()).unwrap();
    update(&server, &[("a", "1")]);
    disk.state().plan = [Fault::Sync].into();
    assert!(server.close().is_err());
    drop(server);
    assert!(note.exists());
    Server::open_in(folder.path(), &parameters, &key(), options, opener()).unwrap();
    let (again, failed) = (Opened::Again, Opened::AfterFailure);
    assert_eq!(*seen.lock().unwrap(), [failed, again, again, failed]);
}

/// F10: a database from a backup signs nothing, since it would sign other records of the same epochs.
#[test]
fn a_backup_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let backup = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    update(&server, &[("a", "1")]);
    server.drain().unwrap();
    drop(server);
    copy(&folder.path().join("database"), &backup.path().join("database"));
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    update(&server, &[("a", "2")]);
    server.drain().unwrap();
    drop(server);
    std::fs::remove_dir_all(folder.path().join("database")).unwrap();
    copy(&backup.path().join("database"), &folder.path().join("database"));
    let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
    let error = super::try_open(folder.path(), &parameters, &key(), options).unwrap_err();
    assert!(matches!(error, Error::Behind { epoch: 2, found: None, .. }), "{error}");
    assert!(error.to_string().contains("two records of one epoch"), "{error}");
    // Another history of the same length is refused, too.
    let other = tempfile::tempdir().unwrap();
    create(other.path(), Profile::Compress);
    let server = open(other.path(), Profile::Compress, options);
    update(&server, &[("a", "1")]);
    update(&server, &[("a", "3")]);
    server.drain().unwrap();
    drop(server);
    std::fs::remove_dir_all(folder.path().join("database")).unwrap();
    copy(&other.path().join("database"), &folder.path().join("database"));
    let error = super::try_open(folder.path(), &parameters, &key(), options).unwrap_err();
    assert!(matches!(error, Error::Behind { found: Some(_), .. }), "{error}");
}

/// F7: the journal is cut or damaged anywhere: everything that is left is right, or the database is refused.
#[test]
fn a_torn_journal() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    let mut heads = Vec::new();
    for number in 0..6 {
        send(&server, number);
        server.flush().unwrap();
        heads.push(std::fs::read(folder.path().join("head")).unwrap());
    }
    // A copy of a server that was killed with an epoch on its way.
    let image = tempfile::tempdir().unwrap();
    copy(folder.path(), image.path());
    std::fs::write(image.path().join("head"), &heads[4]).unwrap();
    server.close().unwrap();
    let journal = std::fs::read_dir(image.path().join("database"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|e| e == "jnl" || e == "log"))
        .unwrap();
    let bytes = std::fs::read(&journal).unwrap();
    let length = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let (mut random, mut whole, mut refused) = (Random(11), 0, 0);
    for round in 0..120 {
        let mut torn = bytes.clone();
        let at = random.below(length as u64) as usize;
        match round % 2 {
            0 => torn.truncate(at),
            _ => torn[at] ^= 1 << random.below(8),
        }
        let copied = tempfile::tempdir().unwrap();
        copy(image.path(), copied.path());
        std::fs::write(copied.path().join("database").join(journal.file_name().unwrap()), &torn)
            .unwrap();
        let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
        match super::try_open(copied.path(), &parameters, &key(), options) {
            Ok(server) => {
                server.flush().unwrap();
                let count = server.view().unwrap().record().log_size;
                assert!(count >= 5, "{count} updates");
                match round % 2 {
                    0 => check_values(&server, count as u32),
                    // Not every bit of its journal is checked by the database; those of rows are.
                    _ => drop(server.check().unwrap()),
                }
                whole += 1;
            }
            // Something that was signed is gone.
            Err(error) => {
                let is_named =
                    matches!(error, Error::Behind { .. } | Error::Store(_) | Error::Damaged(_));
                assert!(is_named, "{error}");
                assert_eq!(std::fs::read(copied.path().join("head")).unwrap(), heads[4]);
                refused += 1;
            }
        }
    }
    assert!(whole > 0 && refused > 0, "{whole} whole, {refused} refused");
}

/// F12: readers of an epoch see that epoch, however many come after it.
#[test]
fn readers_see_one_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let disk = create_disk(folder.path());
    let (parameters, options) =
        (parameters(Profile::Compress), Options { resident: 4, ..options(Mode::Pipelined) });
    let server =
        Server::open_in(folder.path(), &parameters, &key(), options, opener(&disk)).unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|reader| {
                let (server, stop, parameters) = (&server, &stop, &parameters);
                scope.spawn(move || {
                    let mut random = Random(reader);
                    let mut looked = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let view = server.view().unwrap();
                        for _ in 0..8 {
                            let label = format!("label {}", random.below(64));
                            if let Some((leaf, values)) =
                                client(parameters, &view, label.as_bytes())
                            {
                                assert!(leaf.epoch < view.record().epoch);
                                assert_eq!(values.len() as u32, leaf.version + 1);
                            }
                            looked += 1;
                        }
                    }
                    looked
                })
            })
            .collect();
        let updates = 1000 * super::soak();
        for number in 0..updates {
            server
                .submit(Update::new(format!("label {}", number % 64), format!("{number}")))
                .unwrap();
        }
        server.flush().unwrap();
        stop.store(true, Ordering::Relaxed);
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    assert!(server.view().unwrap().record().epoch as usize >= 250 * super::soak());
    server.check().unwrap();
}
