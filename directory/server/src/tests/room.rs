//! A full disk. Look-ups need no room, while the server runs and when it starts; that no update is taken is said, and ends when there
//! is room again.

use super::{create, key, open, options, parameters, update};
use crate::{Error, Mode, Server, Status, SubmitError, Update};
use hekaton_directory::Profile;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const FOLDER: &str = "HEKATON_DIRECTORY_ROOM";
const STARTS_FULL: &str = "HEKATON_DIRECTORY_STARTS_FULL";

/// No file of this process may grow beyond that, as on a full disk; nothing lifts it.
fn limit(bytes: Option<u64>) {
    let limit = rustix::process::Rlimit { current: bytes, maximum: None };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
}

fn value(server: &Server, label: &[u8]) -> Option<Vec<u8>> {
    let current = server.view().unwrap().look_up(label).unwrap().current;
    current.map(|current| current.opening.value)
}

/// Sends updates until the server reports that it takes none.
fn until_full(server: &Server) -> Update {
    for number in 0.. {
        let mut update = Update::new(format!("label {number}"), "value");
        update.idempotency_key = Some(vec![number, 1]);
        match server.submit(update.clone()) {
            Ok(_) => {}
            Err(SubmitError::Unknown(_)) => return update,
            Err(error) => panic!("{error}"),
        }
    }
    unreachable!("the disk is full")
}

/// The process whose files may not grow.
#[test]
#[ignore = "other tests start it"]
fn child() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let folder = Path::new(&folder);
    if std::env::var(STARTS_FULL).is_ok() {
        limit(Some(0));
    }
    let server = open(folder, Profile::Compress, options(Mode::Serial));
    assert_eq!(value(&server, b"a").unwrap(), b"1");
    let mut open_update = None;
    if std::env::var(STARTS_FULL).is_err() {
        server.ready().unwrap();
        update(&server, &[("b", "2")]);
        limit(Some(0));
        open_update = Some(until_full(&server));
    }
    // It tries again from time to time, and still answers.
    for _ in 0..10 {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(value(&server, b"a").unwrap(), b"1");
        assert_eq!(server.record(1).unwrap().unverified().epoch, 1);
        assert!(server.proven().is_ok() && server.pruned().is_ok());
        assert_eq!(server.outcome(1 << 40).unwrap(), Status::Unknown);
        assert!(matches!(server.ready(), Err(Error::Recovering(_))));
        assert!(matches!(server.submit(Update::new("c", "3")), Err(SubmitError::Recovering)));
    }
    // There is room again.
    limit(None);
    for _ in 0..1200 {
        if server.ready().is_ok() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    server.ready().unwrap();
    if let Some(open_update) = open_update {
        server.submit(open_update).unwrap();
    }
    update(&server, &[("c", "3")]);
    assert_eq!(value(&server, b"c").unwrap(), b"3");
    assert!(!folder.join("room").exists());
    server.check().unwrap();
    server.drain().unwrap();
}

fn run(folder: &Path, starts_full: bool) {
    let mut command = Command::new("sh");
    // A write past the limit is an error, not a signal.
    command.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::room::child", "--ignored", "--nocapture", "-q"]);
    command.env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::piped());
    if starts_full {
        command.env(STARTS_FULL, "1");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn look_ups_go_on_while_the_disk_is_full() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
    update(&server, &[("a", "1")]);
    server.close().unwrap();
    drop(server);
    run(folder.path(), false);
}

/// A server starts on a full disk after a clean end, and after a kill, which leaves a note and journals that would be
/// written anew.
#[test]
fn a_server_starts_on_a_full_disk() {
    for was_killed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        create(folder.path(), Profile::Compress);
        let server = open(folder.path(), Profile::Compress, options(Mode::Serial));
        update(&server, &[("a", "1")]);
        let image = tempfile::tempdir().unwrap();
        if was_killed {
            super::restores::copy(folder.path(), image.path());
        }
        server.close().unwrap();
        drop(server);
        if !was_killed {
            super::restores::copy(folder.path(), image.path());
        }
        assert_eq!(image.path().join("in-use").exists(), was_killed);
        run(image.path(), true);
    }
}

/// A failure that occurs although there is room is reported at once.
#[test]
fn a_database_that_cannot_be_opened_is_no_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let database = folder.path().join("database");
    std::fs::remove_dir_all(&database).unwrap();
    std::fs::write(&database, "").unwrap();
    let (parameters, options) = (parameters(Profile::Compress), options(Mode::Serial));
    let opened = super::try_open(folder.path(), &parameters, &key(), options);
    assert!(matches!(opened, Err(Error::Store(_))), "{opened:?}");
}
