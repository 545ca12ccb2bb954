//! The promises of the guide about updates and provers when something fails in between.

use super::{Directory, json, keys, ok, prover_of, send};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Stands between a client and a service. Of the first connections it passes the request on, and keeps the answer: whether an update was
/// accepted is unknown to its sender.
fn silent_at_first(service: &str, silent: usize) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let to = service.trim_start_matches("http://").to_owned();
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(&to).unwrap();
            let (mut from, mut into) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut into);
                let _ = into.shutdown(Shutdown::Write);
            });
            let is_silent = seen.fetch_add(1, Ordering::SeqCst) < silent;
            let (mut client, mut server) = (client, server);
            std::thread::spawn(move || {
                let mut part = [0; 4096];
                while let Ok(count @ 1..) = server.read(&mut part) {
                    if is_silent || client.write_all(&part[..count]).is_err() {
                        break;
                    }
                }
                let _ = client.shutdown(Shutdown::Both);
            });
        }
    });
    (address, count)
}

#[test]
fn an_update_whose_answer_is_lost_is_done_once() {
    let directory = Directory::new();
    let service = directory.serve(&[]);
    let (address, connections) = silent_at_first(&service.address, 2);
    ok(&["directory", "insert", &address, "alice", "1"]);
    assert!(connections.load(Ordering::SeqCst) > 2);
    let parameters = directory.path("parameters");
    let asked = ["directory", "history", &service.address, "alice", "--parameters", &parameters];
    assert_eq!(json(&asked)["values_base64"].as_array().unwrap().len(), 1);
}

#[test]
fn a_batch_that_is_sent_again_is_done_once() {
    let directory = Directory::new();
    let service = directory.serve(&[]);
    let lines = |count: usize| -> String {
        (0..count).map(|n| format!("{{\"label\":\"label {n}\",\"value\":\"{n}\"}}\n")).collect()
    };
    let file = directory.path("updates");
    let insert = ["directory", "insert", &service.address, "--batch", "a name", "--file", &file];
    // As if it had been interrupted after three of them.
    for count in [3, 5, 5] {
        std::fs::write(&file, lines(count)).unwrap();
        assert_eq!(json(&insert)["updates"], count);
    }
    let parameters = directory.path("parameters");
    let epoch = json(&["directory", "epoch", &service.address, "--parameters", &parameters]);
    assert_eq!((&epoch["updates"], &epoch["leaves"]), (&5.into(), &5.into()));
}

/// A run of another version of the program, or one that was damaged, begins again: otherwise no later epoch would be proven.
#[test]
fn a_run_that_cannot_be_resumed_begins_again() {
    let directory = Directory::new();
    let mut service = directory.serve(&["--keys", keys()]);
    ok(&["directory", "insert", &service.address, "alice", "1"]);
    let prover = prover_of(&service);
    let run = directory.path("d/proving/0-1/run/run.json");
    let since = Instant::now();
    while !Path::new(&run).exists() {
        assert!(since.elapsed() < Duration::from_secs(60), "no run was begun");
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(service.end("-KILL"), None);
    send("-KILL", prover);
    std::fs::write(&run, "{").unwrap();
    let service = directory.serve(&["--keys", keys()]);
    assert_eq!(directory.until_proven(&service.address), 1);
    let log = std::fs::read_to_string(directory.path("log")).unwrap();
    assert!(log.contains("is set aside, and begins again"), "{log}");
}
