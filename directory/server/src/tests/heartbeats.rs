//! Epochs without changes.

use super::{client, create, open, options, parameters, update};
use crate::{Mode, Options, Server};
use hekaton_directory::Profile;
use std::time::{Duration, Instant};

fn until_epoch(server: &Server, epoch: u32) {
    let since = Instant::now();
    while server.view().unwrap().record().epoch < epoch {
        assert!(since.elapsed() < Duration::from_secs(60), "epoch {epoch} is not closed");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// They keep everything but time and chain, in all modes and over restarts, also where the leaf of their steps is not in memory. A
/// directory without labels has none.
#[test]
fn epochs_are_closed_while_nothing_changes() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Compress);
    let beating = |mode| Options {
        max_updates: 100,
        resident: 0,
        heartbeat: Some(Duration::from_secs(1)),
        ..options(mode)
    };
    let opened = |options| open(folder.path(), Profile::Compress, options);
    let server = opened(beating(Mode::Serial));
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(server.view().unwrap().record().epoch, 0);
    let labels: Vec<String> = (0..100).map(|number| format!("label {number}")).collect();
    let updates: Vec<(&str, &str)> = labels.iter().map(|label| (&label[..], "value")).collect();
    update(&server, &updates);
    drop(server);
    for mode in Mode::ALL {
        let server = opened(beating(mode));
        update(&server, &[("changed", mode.name())]);
        let first = *server.view().unwrap().record();
        until_epoch(&server, first.epoch + 2);
        let last = *server.view().unwrap().record();
        assert_eq!((last.root, last.leaves), (first.root, first.leaves));
        assert_eq!((last.log_root, last.log_size), (first.log_root, first.log_size));
        assert!(last.chain != first.chain && last.closed > first.closed);
        let view = server.view().unwrap();
        let (_, values) = client(&parameters(Profile::Compress), &view, b"changed").unwrap();
        assert_eq!(values.last().map(String::as_str), Some(mode.name()));
        // The steps of all epochs among the rest.
        server.check().unwrap();
        server.close().unwrap();
    }
    // An update that waits for others keeps no epoch from being closed.
    let server = opened(beating(Mode::Pipelined));
    let epoch = server.view().unwrap().record().epoch;
    server.submit(crate::Update::new("waits", "value")).unwrap();
    until_epoch(&server, epoch + 2);
    assert!(client(&parameters(Profile::Compress), &server.view().unwrap(), b"waits").is_none());
    server.flush().unwrap();
    assert!(client(&parameters(Profile::Compress), &server.view().unwrap(), b"waits").is_some());
    server.close().unwrap();
    drop(server);
    // Without the option, nothing is closed.
    let server = opened(options(Mode::Serial));
    let epoch = server.view().unwrap().record().epoch;
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(server.view().unwrap().record().epoch, epoch);
    server.check().unwrap();
}

/// A tree whose leaves are all at the same depth has no steps for an epoch without changes.
#[test]
fn trees_whose_leaves_stay_down_have_none() {
    let folder = tempfile::tempdir().unwrap();
    create(folder.path(), Profile::Full);
    let beating = Options { heartbeat: Some(Duration::from_secs(1)), ..options(Mode::Serial) };
    let server = open(folder.path(), Profile::Full, beating);
    update(&server, &[("label", "value")]);
    std::thread::sleep(Duration::from_millis(1500));
    update(&server, &[("label", "next value")]);
    assert_eq!(server.view().unwrap().record().epoch, 2);
    server.check().unwrap();
}
