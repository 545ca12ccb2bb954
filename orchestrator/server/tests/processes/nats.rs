//! A NATS server that is away, that forgets what it kept in memory, that has lost its disk, or that is too old.

use super::support::*;
use hekaton_orchestrator::Client;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A server that syncs every write, killed at the end of its test.
pub(super) struct Server {
    program: PathBuf,
    config: PathBuf,
    pub(super) store: PathBuf,
    pub(super) port: u16,
    child: Option<Child>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// Prepares a server that is not started yet. Returns `None` if the program (`NATS_SERVER`, or in PATH) does not exist.
    pub(super) fn new(place: &Place) -> Option<Self> {
        let program = std::env::var_os("NATS_SERVER").map_or("nats-server".into(), PathBuf::from);
        if Command::new(&program).arg("--version").stdout(Stdio::null()).status().is_err() {
            let _ = writeln!(std::io::stderr(), "SKIPPED: there is no nats-server");
            return None;
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (config, store) = (place.path("nats.conf"), place.path("nats"));
        let text = include_str!("../../nats.conf").replace("4222", &port.to_string());
        std::fs::write(&config, text.replace("nats-data", &store.display().to_string())).unwrap();
        Some(Self { program, config, store, port, child: None })
    }

    pub(super) fn start(&mut self) {
        let mut command = Command::new(&self.program);
        command.arg("-c").arg(&self.config).stdout(Stdio::null()).stderr(Stdio::null());
        self.child = Some(command.spawn().unwrap());
        wait("the server of NATS answers", || {
            std::net::TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    /// Kills the server: what it kept in memory is gone.
    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// The arguments of processes that connect as a user of `nats.conf`.
    pub(super) fn arguments(&self, user: &str) -> Vec<String> {
        let address = format!("nats://{user}:{user}-password@127.0.0.1:{}", self.port);
        vec!["--nats".into(), address]
    }
}

fn is_ready(process: &Process) -> bool {
    process.get("/readyz").status == 204
}

/// Publishes one more block, whichever process has to run it.
fn publish(place: &Place, client: &Client, block: u64) {
    let job = submit(client, place, block, &format!("0 w{block}"));
    assert_eq!(ended(client, &job).state, "done", "{}", place.errors());
    let all: Vec<String> = (1..=block).map(|block| format!("b{block}")).collect();
    wait("all are published in order", || published(client) == all);
}

/// Only the server is started again. All processes renew their sessions, even the worker, which may not make the stream, and the death
/// of one is noticed afterwards.
#[test]
fn sessions_that_the_server_forgets_are_made_again_by_the_processes_that_run() {
    let mut place = Place::new("");
    let Some(mut server) = Server::new(&place) else { return };
    server.start();
    place.more = server.arguments("service");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    place.more = server.arguments("worker");
    let first = place.work();
    publish(&place, &client, 1);
    for round in 0..2 {
        server.kill();
        wait("it is noticed", || service.get("/readyz").status == 503);
        assert_eq!(service.get("/healthz").status, 200);
        server.start();
        wait("all is back", || is_ready(&service));
        publish(&place, &client, 2 + round);
    }
    // The process that dies now has a renewed session, or no other would take its task.
    let job = submit(&client, &place, 4, "600 w4");
    wait("it runs", || place.attempts() == 4);
    first.kill();
    let _second = place.work();
    assert_eq!(ended(&client, &job).state, "done", "{}", place.errors());
    wait("it is published", || published(&client).len() == 4);
}

#[test]
fn processes_that_start_while_the_server_is_away_wait_for_it() {
    let mut place = Place::new("");
    let Some(mut server) = Server::new(&place) else { return };
    place.more = server.arguments("service");
    let service = place.serve(&["--slots", "0"]);
    place.more = server.arguments("worker");
    let worker = place.work();
    wait("both say that they wait", || {
        place.errors().matches("waiting for the store").count() >= 2
    });
    assert_eq!(service.get("/healthz").status, 200);
    let answer = service.get("/readyz");
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("the store of records"), "{}", answer.body);
    assert_eq!(service.get("/v1/chains/main").status, 503);
    server.start();
    wait("it is ready", || is_ready(&service));
    let client = service.client();
    strict(&client);
    publish(&place, &client, 1);
    drop(worker);
}

/// Neither a process that runs nor one that starts takes an empty server for a new one.
#[test]
fn records_that_the_server_has_lost_are_missed_and_not_made_anew() {
    let mut place = Place::new("");
    let Some(mut server) = Server::new(&place) else { return };
    server.start();
    place.more = server.arguments("service");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    publish(&place, &client, 1);
    server.kill();
    let kept = place.path("kept");
    std::fs::rename(&server.store, &kept).unwrap();
    server.start();
    wait("it is said", || place.errors().contains("its storage was lost"));
    assert_eq!(service.get("/readyz").status, 503);
    assert_eq!(service.get("/v1/chains/main").status, 503, "not: there is no such chain");
    let mut arguments = vec!["serve", "--listen", "127.0.0.1:0", "--data"];
    let data = place.path("data").display().to_string();
    let settings = place.path("settings.toml").display().to_string();
    arguments.extend([data.as_str(), "--settings", &settings]);
    arguments.extend(place.more.iter().map(String::as_str));
    let other = Command::new(PROGRAM).args(&arguments).output().unwrap();
    assert_eq!(other.status.code(), Some(4), "{}", text(&other.stderr));
    for part in ["its storage was lost", "from a backup", "remove the file nats-hekaton"] {
        assert!(text(&other.stderr).contains(part), "{}", text(&other.stderr));
    }
    // Once the backup is restored, the same process resumes.
    server.kill();
    std::fs::remove_dir_all(&server.store).unwrap();
    std::fs::rename(&kept, &server.store).unwrap();
    server.start();
    wait("it is ready", || is_ready(&service));
    publish(&place, &client, 2);
}

/// A stand-in for a server that reports a given version.
fn pretends(version: &'static str) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let info = serde_json::json!({
                "server_id": "x", "server_name": "x", "version": version, "go": "go1", "host": "127.0.0.1", "port": port,
                "headers": true, "max_payload": 1_048_576, "proto": 1, "jetstream": true,
            });
            let _ = write!(stream, "INFO {info}\r\n");
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while let Some(Ok(line)) = lines.next() {
                if line.starts_with("PING") {
                    let _ = write!(stream, "PONG\r\n");
                }
            }
        }
    });
    port
}

#[test]
fn servers_that_cannot_sync_or_replicate_are_refused() {
    let place = Place::new("");
    for (version, replicas, needs) in [
        ("2.9.10", "1", "2.10.0 or later"),
        ("2.10.29", "3", "2.11.0 or later"),
        ("unknown", "1", "2.10.0 or later"),
    ] {
        let address = format!("nats://127.0.0.1:{}", pretends(version));
        let mut command = Command::new(PROGRAM);
        command.args(["work", "--nats", &address, "--replicas", replicas, "--data"]);
        command.arg(place.path("data")).arg("--settings").arg(place.path("settings.toml"));
        let output = command.output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{said}");
        assert!(said.contains(version) && said.contains(needs), "{said}");
    }
}
