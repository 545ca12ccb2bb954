//! `hekaton directory` as operators, clients and auditors use it, mistakes included.

mod common;
#[path = "directory/full_disk.rs"]
mod full_disk;
#[path = "directory/promises.rs"]
mod promises;
#[path = "directory/restores.rs"]
mod restores;

use common::{command, fails, ok};
use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Keys with little room, made once.
fn keys() -> &'static str {
    static KEYS: OnceLock<(tempfile::TempDir, String)> = OnceLock::new();
    &KEYS
        .get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            let keys = dir.path().join("keys").to_str().unwrap().to_owned();
            let parameters = ["-p", "profile=compress", "-p", "steps=2"];
            ok(&[&["setup", "epochs", "--up-to", "132", "--keys", &keys], &parameters[..]]
                .concat());
            (dir, keys)
        })
        .1
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(&[args, &["--json"]].concat())).unwrap()
}

/// A new directory in a folder.
struct Directory {
    dir: tempfile::TempDir,
}

impl Directory {
    /// Room for one.
    fn bare() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    fn new() -> Self {
        let directory = Self::bare();
        let object = json(&["directory", "init", &directory.path("d"), "--keys", keys()]);
        assert_eq!(object["parameters"]["profile"], "compress");
        // What clients have from somebody they trust.
        std::fs::copy(directory.path("d/parameters.json"), directory.path("parameters")).unwrap();
        directory
    }

    fn path(&self, name: &str) -> String {
        self.dir.path().join(name).to_str().unwrap().to_owned()
    }

    /// Serves the folder at a port of its own.
    fn serve(&self, more: &[&str]) -> Service {
        let log = std::fs::File::create(self.path("log")).unwrap();
        let mut child = command(&["directory", "serve", &self.path("d"), "--json"])
            .args(["--listen", "127.0.0.1:0", "--interval", "20ms"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"));
        Service { child, address: said["address"].as_str().unwrap().to_owned() }
    }

    /// Waits until all epochs are proven, and returns the last one.
    fn until_proven(&self, directory: &str) -> u64 {
        let since = Instant::now();
        loop {
            let parameters = self.path("parameters");
            let epoch = json(&["directory", "epoch", directory, "--parameters", &parameters]);
            if epoch["state"] == "proven" {
                return epoch["epoch"].as_u64().unwrap();
            }
            let log = || std::fs::read_to_string(self.path("log")).unwrap();
            assert!(since.elapsed() < Duration::from_secs(240), "{epoch} {}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

struct Service {
    child: Child,
    address: String,
}

impl Service {
    /// Sends a signal, and returns the exit code.
    fn end(&mut self, signal: &str) -> Option<i32> {
        send(signal, self.child.id());
        self.child.wait().unwrap().code()
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(signal: &str, process: u32) {
    let status = Command::new("kill").args([signal, &process.to_string()]).status().unwrap();
    assert!(status.success());
}

/// The prover that a service has started, once there is one.
fn prover_of(service: &Service) -> u32 {
    let since = Instant::now();
    loop {
        let output = Command::new("pgrep").args(["-P", &service.child.id().to_string()]).output();
        let text = String::from_utf8(output.unwrap().stdout).unwrap();
        if let Some(process) = text.lines().next() {
            return process.parse().unwrap();
        }
        assert!(since.elapsed() < Duration::from_secs(60), "no prover was started");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_service_from_init_to_audit() {
    let directory = Directory::new();
    let mut service = directory.serve(&["--keys", keys()]);
    let at = service.address.clone();
    let lines: String =
        (0..20).map(|n| format!("{{\"label\":\"label {n}\",\"value\":\"{n}\"}}\n")).collect();
    std::fs::write(directory.path("updates"), lines).unwrap();
    let object = json(&["directory", "insert", &at, "--file", &directory.path("updates")]);
    assert_eq!(object["updates"], 20);
    assert_eq!(object["states"].get("accepted"), None, "{object}");
    let object = json(&["directory", "insert", &at, "alice", "her key", "--expected", "absent"]);
    assert_eq!(
        (&object["status"]["version"], &object["status"]["state"]),
        (&0.into(), &"visible".into())
    );
    let again = ["directory", "insert", &at, "alice", "another", "--expected", "absent"];
    fails(4, "another version than the label has, which is 0", &again);
    // An update is visible before it is proven: an audit may wait for that.
    let (parameters, seen) = (directory.path("parameters"), directory.path("seen"));
    let audit = ["directory", "audit", &at, "--parameters", &parameters, "--keys", keys()];
    let waited = json(&[&audit[..], &["--wait"]].concat());
    let visible = object["epoch"].as_u64().unwrap();
    assert!(waited["to"].as_u64().unwrap() >= visible, "{waited} {visible}");
    let insert = ["directory", "insert", &at, "alice", "her next key", "--expected", "0"];
    let proven = json(&[&insert[..], &["--wait", "proven"]].concat());
    assert_eq!(proven["states"], serde_json::json!({ "proven": 1 }));
    let last = proven["epoch"].as_u64().unwrap();
    assert!(last >= 3);

    let client = |what: &str, more: &[&str]| {
        let asked = ["directory", what, &at, "--parameters", &parameters, "--seen", &seen];
        json(&[&asked[..], more].concat())
    };
    let found = client("lookup", &["alice"]);
    assert_eq!((&found["version"], &found["state"]), (&1.into(), &"proven".into()));
    assert_eq!(found["value_base64"], "aGVyIG5leHQga2V5");
    let absent = client("lookup", &["nobody"]);
    assert_eq!((&absent["present"], &absent["version"]), (&false.into(), &Value::Null));
    let history = client("history", &["alice"]);
    assert_eq!(history["values_base64"].as_array().unwrap().len(), 2);
    let audit = client("audit", &["--keys", keys()]);
    assert_eq!(
        (&audit["from"], &audit["to"], &audit["not_audited"]),
        (&0.into(), &last.into(), &0.into())
    );
    assert!(audit["proofs"].as_u64().unwrap() >= 1);
    // An earlier epoch is part of what was seen.
    assert_eq!(client("lookup", &["alice", "--epoch", "0"])["present"], false);
    let text = ok(&["directory", "lookup", &at, "alice", "--parameters", &parameters]);
    assert!(text.contains("her next key") && text.contains("has version 1"), "{text}");

    // What another directory has is rejected, and so is what it continues.
    let other = Directory::new();
    let wrong = ["directory", "lookup", &at, "alice", "--parameters", &other.path("parameters")];
    fails(1, "is not signed by this server", &wrong);
    ok(&["directory", "lookup", &other.path("d"), "x", "--seen", &other.path("seen")]);
    let wrong = [
        "directory",
        "lookup",
        &at,
        "x",
        "--parameters",
        &parameters,
        "--seen",
        &other.path("seen"),
    ];
    fails(3, "is not signed by this server", &wrong);
    // Without the server, a client has no excuse to trust it.
    fails(2, "--parameters FILE is needed", &["directory", "lookup", &at, "alice"]);
    fails(3, "while it is served, give the address", &["directory", "check", &directory.path("d")]);
    fails(
        4,
        "there is no epoch 99",
        &["directory", "epoch", &at, "99", "--parameters", &parameters],
    );

    assert_eq!(service.end("-TERM"), Some(0));
    fails(4, "", &["directory", "lookup", &at, "alice", "--parameters", &parameters]);
    // The folder has it all, without a service.
    let folder = directory.path("d");
    assert_eq!(json(&["directory", "check", &folder])["proven"], last);
    ok(&["directory", "audit", &folder, "--keys", keys()]);
    ok(&["directory", "erase", &folder, "alice", "0"]);
    ok(&["directory", "prune", &folder, &last.to_string()]);
    let history = json(&["directory", "history", &folder, "alice"]);
    assert_eq!(history["values_base64"], serde_json::json!([null, "aGVyIG5leHQga2V5"]));
    fails(4, "is pruned", &["directory", "lookup", &folder, "alice", "--epoch", "0"]);
    ok(&["directory", "audit", &folder, "--keys", keys()]);
    ok(&["directory", "check", &folder]);
}

/// Updates with tokens, and what a service without a prover cannot wait for.
#[test]
fn writers_have_tokens() {
    let directory = Directory::new();
    let file = |name: &str, text: &str| {
        std::fs::write(directory.path(name), text).unwrap();
        directory.path(name)
    };
    let tokens = file("tokens", "# alice\n0123456789abcdef\n");
    let service = directory.serve(&["--tokens", &tokens]);
    let insert = ["directory", "insert", &service.address, "label", "value"];
    fails(4, "has no valid token: updates need the header", &insert);
    let wrong = file("wrong", "0123456789abcdeg\n");
    fails(4, "does not know the token", &[&insert[..], &["--token", &wrong]].concat());
    let all = [&insert[..], &["--token", &tokens]].concat();
    fails(3, "tokens: expected one token alone", &all);
    let token = file("right", "0123456789abcdef\n");
    let right = [&insert[..], &["--token", &token]].concat();
    fails(4, "this service proves nothing", &[&right[..], &["--wait", "proven"]].concat());
    assert_eq!(json(&right)["states"], serde_json::json!({ "visible": 1 }));
}

/// A directory in which nothing happens closes epochs, and proves them. What is older than a client takes is rejected.
#[test]
fn epochs_without_changes() {
    let directory = Directory::new();
    let mut service = directory.serve(&["--keys", keys(), "--heartbeat", "1s"]);
    let (at, parameters) = (service.address.clone(), directory.path("parameters"));
    let first = json(&["directory", "insert", &at, "alice", "her key"])["epoch"].as_u64().unwrap();
    let since = Instant::now();
    let audit = ["directory", "audit", &at, "--parameters", &parameters, "--keys", keys()];
    let audit = [&audit[..], &["--max-age", "1m", "--wait"]].concat();
    while json(&audit)["to"].as_u64().unwrap() < first + 2 {
        assert!(since.elapsed() < Duration::from_secs(240));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(service.end("-TERM"), Some(0));
    let folder = directory.path("d");
    assert_eq!(json(&["directory", "check", &folder])["updates"], 1);
    let look_up = ["directory", "lookup", &folder, "alice", "--max-age", "0s"];
    fails(1, "and --max-age is 0 ms: it hides later epochs, or closes none", &look_up);
    // An older epoch is no answer about now.
    ok(&[&look_up[..], &["--epoch", "1"]].concat());
}

/// F11: the prover dies, the service dies, and the work that was begun continues.
#[test]
fn provers_and_services_that_die() {
    let directory = Directory::new();
    let mut service = directory.serve(&["--keys", keys()]);
    ok(&["directory", "insert", &service.address, "alice", "1"]);
    send("-KILL", prover_of(&service));
    assert_eq!(directory.until_proven(&service.address), 1);
    let log = std::fs::read_to_string(directory.path("log")).unwrap();
    assert!(log.contains("the prover of epochs 1 to 1 ended with signal: 9"), "{log}");
    // A service that is killed leaves its prover, which ends what it has begun; nothing is lost.
    ok(&["directory", "insert", &service.address, "alice", "2"]);
    prover_of(&service);
    assert_eq!(service.end("-KILL"), None);
    let mut service = directory.serve(&["--keys", keys()]);
    ok(&["directory", "insert", &service.address, "alice", "3"]);
    directory.until_proven(&service.address);
    // One that is stopped in the middle asks its prover to stop, too.
    ok(&["directory", "insert", &service.address, "alice", "4"]);
    let prover = prover_of(&service);
    assert_eq!(service.end("-INT"), Some(0));
    assert!(!Path::new(&format!("/proc/{prover}")).exists(), "the prover still runs");
    let proven = json(&["directory", "prove", &directory.path("d"), "--keys", keys()]);
    assert_eq!(proven["proven"], 4);
    let audit = json(&["directory", "audit", &directory.path("d"), "--keys", keys()]);
    assert_eq!((&audit["to"], &audit["not_audited"]), (&4.into(), &0.into()));
    assert_eq!(std::fs::read_dir(directory.path("d/proving")).unwrap().count(), 0);
}

/// Programs that stand in for those of SLURM. A job is a process of its own, as there.
const SLURM: [(&str, &str); 2] = [
    (
        "sbatch",
        r#"#!/bin/sh
here=$(dirname "$0")
[ "$1" = --version ] && exec echo "slurm for tests"
while [ $# -gt 1 ]; do
    [ "$1" = --output ] && log=$2
    shift
done
id=$(($(cat "$here/last" 2>/dev/null || echo 100) + 1))
echo $id >"$here/last"
setsid sh -c "sh '$1'; echo \$? >'$here/ended-$id'" >"$log" 2>&1 </dev/null &
echo "$id;cluster"
"#,
    ),
    (
        "squeue",
        r#"#!/bin/sh
for word in "$@"; do case $word in --jobs=*) id=${word#--jobs=} ;; esac; done
ended=$(cat "$(dirname "$0")/ended-$id" 2>/dev/null)
case $ended in
    "") echo RUNNING ;;
    0) echo COMPLETED ;;
    *) echo FAILED ;;
esac
"#,
    ),
];

/// The first job dies; the second one waits for a sign.
const JOB: &str = r#"
here=$(dirname "$0")
[ -e "$here/first" ] || { touch "$here/first"; exit 7; }
while [ ! -e "$here/go" ]; do sleep 0.05; done
exec "$HEKATON" prove "$FILE" --keys "$KEYS" --run "$RUN" --resume $OPTIONS
"#;

/// F11: jobs fail and are resumed, and outlive the command that submitted them.
#[test]
fn proofs_are_made_by_jobs() {
    let directory = Directory::new();
    let folder = directory.path("d");
    for value in ["1", "2"] {
        ok(&["directory", "insert", &folder, "alice", value]);
    }
    for (name, text) in SLURM {
        std::fs::write(directory.path(name), text).unwrap();
        let made = Command::new("chmod").args(["755", &directory.path(name)]).status();
        assert!(made.unwrap().success());
    }
    let script = directory.path("job");
    std::fs::write(&script, JOB).unwrap();
    let path = format!("{}:{}", directory.dir.path().display(), std::env::var("PATH").unwrap());
    let prove = || {
        let mut command = command(&["directory", "prove", &folder, "--keys", keys()]);
        command.args(["--slurm", &script, "--memory-limit", "4G", "--json"]).env("PATH", &path);
        command
    };
    let jobs = || std::fs::read_to_string(directory.path("last")).unwrap().trim().to_owned();
    let output = prove().output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("SLURM job 101 ended as FAILED; its log is"), "{said}");
    // Stopped while the job runs: the job continues, and is not submitted again.
    let mut child = prove().stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let since = Instant::now();
    while jobs() != "102" {
        assert!(since.elapsed() < Duration::from_secs(60), "no job was submitted");
        std::thread::sleep(Duration::from_millis(20));
    }
    let job = format!("{folder}/proving/0-2/job");
    while !Path::new(&job).exists() {
        assert!(since.elapsed() < Duration::from_secs(60), "the job's number is not kept");
        std::thread::sleep(Duration::from_millis(20));
    }
    send("-INT", child.id());
    assert_eq!(child.wait().unwrap().code(), Some(5));
    std::fs::write(directory.path("go"), "").unwrap();
    let output = prove().output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let proven: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&proven["proven"], &proven["proofs"]), (&2.into(), &1.into()));
    assert_eq!(jobs(), "102");
    let audit = json(&["directory", "audit", &folder, "--keys", keys()]);
    assert_eq!(audit["to"], 2);
    // What is left are the keys that were derived for the ranks.
    let left = std::fs::read_dir(format!("{folder}/proving")).unwrap().flatten();
    let left: Vec<String> = left.map(|e| e.file_name().into_string().unwrap()).collect();
    assert!(left.len() == 1 && left[0].starts_with("keys-"), "{left:?}");
    fails(
        2,
        "no such batch script",
        &["directory", "prove", &folder, "--keys", keys(), "--slurm", &directory.path("none")],
    );
}

/// Stands between a client and a service, and asks for something else than the client.
fn liar(service: &str, change: fn(&str) -> String) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let to = service.trim_start_matches("http://").to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let mut head = String::new();
            let mut reader = BufReader::new(&client);
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).is_ok_and(|n| n > 0) {}
            let Some(path) = head.split(' ').nth(1) else { continue };
            let mut server = std::net::TcpStream::connect(&to).unwrap();
            let path = change(path);
            write!(server, "GET {path} HTTP/1.1\r\nhost: {to}\r\nconnection: close\r\n\r\n")
                .unwrap();
            std::io::copy(&mut server, &mut &client).unwrap();
        }
    });
    address
}

#[test]
fn servers_that_lie_are_found_out() {
    let directory = Directory::new();
    let folder = directory.path("d");
    ok(&["directory", "insert", &folder, "alice", "1"]);
    let backup = directory.path("backup");
    let copied = Command::new("cp").args(["-a", &folder, &backup]).status();
    assert!(copied.unwrap().success());
    for value in ["2", "3", "4"] {
        ok(&["directory", "insert", &folder, "alice", value]);
        // A proof for each epoch.
        ok(&["directory", "prove", &folder, "--keys", keys()]);
    }
    let seen = directory.path("seen");
    ok(&["directory", "lookup", &folder, "alice", "--seen", &seen]);
    let before = std::fs::read(&seen).unwrap();
    // An older state is an answer only to who asks for it.
    let older = ["directory", "lookup", &backup, "alice", "--seen", &seen];
    fails(1, "answers with epoch 1, but epoch 4 was seen before", &older);
    let kept = || {
        let names = std::fs::read_dir(directory.dir.path()).unwrap().flatten();
        names.filter(|e| e.file_name().to_string_lossy().starts_with("seen.rejected-1-")).count()
    };
    assert_eq!(kept(), 1);
    assert_eq!(std::fs::read(&seen).unwrap(), before);
    ok(&["directory", "lookup", &folder, "alice", "--seen", &seen, "--epoch", "1"]);
    fails(1, "it hides what came after", &["directory", "epoch", &backup, "--seen", &seen]);
    fails(
        1,
        "it hides what came after",
        &["directory", "audit", &backup, "--keys", keys(), "--seen", &seen],
    );

    let service = directory.serve(&[]);
    let parameters = directory.path("parameters");
    let audit = |address: &str, more: &[&str]| {
        let all = ["directory", "audit", address, "--parameters", &parameters, "--keys", keys()];
        [&all[..], more].concat().into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    let run = |args: &[String], code: i32, says: &str| {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        match code {
            0 => drop(ok(&args)),
            code => fails(code, says, &args),
        }
    };
    run(&audit(&service.address, &["--from", "0", "--to", "2"]), 0, "");
    run(&audit(&service.address, &["--from", "2", "--to", "4"]), 0, "");
    run(
        &audit(&service.address, &["--from", "1", "--to", "4"]),
        4,
        "begins and ends where a proof does",
    );
    run(&audit(&service.address, &["--to", "9"]), 4, "5 epochs are visible");
    // Records and proofs that are good, of other epochs than those that are audited.
    let shifted =
        liar(&service.address, |path| match path.strip_prefix("/v1/records?from=0&to=") {
            Some("0") => "/v1/records?from=2&to=2".into(),
            Some(_) => "/v1/records?from=2&to=4".into(),
            None => path.replace("/v1/proofs?from=1", "/v1/proofs?from=3"),
        });
    run(
        &audit(&shifted, &["--from", "0", "--to", "2"]),
        1,
        "begins with epoch 0, but its first record is of epoch 2",
    );
    let proofs = liar(&service.address, |path| path.replace("/v1/proofs/0-2", "/v1/proofs/2-3"));
    run(&audit(&proofs, &["--from", "0", "--to", "2"]), 1, "the next proof must begin at epoch 0");
    let last = liar(&service.address, |path| path.replace("from=3&to=3", "from=4&to=4"));
    run(&audit(&last, &[]), 1, "the audit does not hold");
}

#[test]
fn a_folder_without_a_service() {
    let directory = Directory::new();
    let folder = directory.path("d");
    std::fs::write(directory.path("value"), [0, 255]).unwrap();
    ok(&["directory", "insert", &folder, "bytes", "--value-file", &directory.path("value")]);
    let found = ok(&["directory", "lookup", &folder, "bytes"]);
    assert!(found.contains("00ff (hexadecimal)") && found.contains("not proven yet"), "{found}");
    let audit = ["directory", "audit", &folder, "--keys", keys()];
    fails(4, "an audit needs two epochs", &audit);
    fails(4, "epoch 1 is signed and has no proof yet: --wait waits for it", &audit);
    fails(4, "nothing proves the others", &[&audit[..], &["--wait"]].concat());
    // Accepted and not visible: look-ups leave it so.
    let object = json(&["directory", "insert", &folder, "later", "x", "--wait", "accepted"]);
    assert_eq!(object["states"], serde_json::json!({ "accepted": 1 }));
    assert_eq!(json(&["directory", "lookup", &folder, "later"])["present"], false);
    ok(&["directory", "insert", &folder, "last", "x"]);
    assert_eq!(json(&["directory", "lookup", &folder, "later"])["present"], true);
    // More than a proof has room for becomes several epochs, and each of them can be proven.
    let lines: String =
        (0..60).map(|n| format!("{{\"label\":\"{n}\",\"value\":\"{n}\"}}\n")).collect();
    std::fs::write(directory.path("updates"), lines).unwrap();
    let object = json(&["directory", "insert", &folder, "--file", &directory.path("updates")]);
    assert!(object["epoch"].as_u64().unwrap() > 3, "{object}");
    assert_eq!(json(&["directory", "check", &folder])["updates"], 63);
}

#[test]
fn wrong_turns() {
    let directory = Directory::new();
    let (folder, at) = (directory.path("d"), |name: &str| directory.path(name));
    fails(3, "is not empty", &["directory", "init", &folder, "--keys", keys()]);
    let none = at("none");
    fails(3, "has no directory", &["directory", "check", &none]);
    fails(3, "", &["directory", "init", &none, "--keys", &none]);
    fails(4, "", &["directory", "insert", "http://127.0.0.1:1", "a", "b"]);
    fails(2, "is no address", &["directory", "insert", "https://localhost", "a", "b"]);
    fails(2, "", &["directory", "insert", &folder, "label"]);
    fails(
        2,
        "expected the number of a version",
        &["directory", "insert", &folder, "a", "b", "--expected", "x"],
    );
    fails(4, "a label of 0 bytes", &["directory", "insert", &folder, "", "b"]);
    std::fs::write(at("updates"), "{\"label\":\"a\",\"value\":\"b\"}\n{\"label\":\n").unwrap();
    fails(3, "line 2", &["directory", "insert", &folder, "--file", &at("updates")]);
    std::fs::write(at("updates"), "\n\n").unwrap();
    fails(3, "has no updates", &["directory", "insert", &folder, "--file", &at("updates")]);
    fails(2, "", &["directory", "serve", &folder, "--max-unproven", "3"]);
    let public = ["directory", "serve", &folder, "--listen", "0.0.0.0:0"];
    fails(2, "everybody who reaches it could change labels; --tokens FILE", &public);
    let tokens = at("tokens");
    std::fs::write(&tokens, "short\n").unwrap();
    let short = [&public[..], &["--tokens", &tokens]].concat();
    fails(3, "tokens: line 1: the token has 5 characters, expected at least 16", &short);
    let insert = ["directory", "insert", &folder, "a", "b"];
    fails(2, "is for services", &[&insert[..], &["--wait", "proven"]].concat());
    fails(2, "is for services", &[&insert[..], &["--token", &tokens]].concat());
    fails(2, "at most a day", &["directory", "serve", &folder, "--interval", "25h"]);

    // Keys of another circuit, keys without room, keys of another directory, keys for tests.
    let (small, seeded, chain) = (at("small"), at("seeded"), at("chain"));
    let setup = |keys: &str, more: &[&str]| {
        let common = ["setup", "epochs", "-p", "profile=compress", "-p", "steps=1", "--keys", keys];
        ok(&[&common[..], more].concat());
    };
    setup(&small, &["--up-to", "100"]);
    fails(3, "room for 100 steps", &["directory", "init", &none, "--keys", &small]);
    setup(&seeded, &["--up-to", "132", "--insecure-seed", "1"]);
    fails(1, "proves nothing", &["directory", "init", &none, "--keys", &seeded]);
    ok(&["setup", "merkle", "-p", "leaf-bytes=1", "--up-to", "4", "--keys", &chain]);
    fails(3, "for circuit 'merkle'", &["directory", "init", &none, "--keys", &chain]);
    fails(1, "those of the directory", &["directory", "audit", &folder, "--keys", &small]);
    fails(1, "those of the directory", &["directory", "serve", &folder, "--keys", &small]);
    ok(&["directory", "init", &at("test"), "--keys", &seeded, "--accept-test-keys"]);
    fails(1, "proves nothing", &["directory", "prove", &at("test"), "--keys", &seeded]);

    // What is in the folder is checked.
    let changed = |name: &str, from: &str, to: &str, code: i32, says: &str| {
        let path = format!("{folder}/{name}");
        let before = std::fs::read_to_string(&path).unwrap();
        assert!(before.contains(from), "{before}");
        std::fs::write(&path, before.replacen(from, to, 1)).unwrap();
        fails(code, says, &["directory", "check", &folder]);
        std::fs::write(&path, before).unwrap();
    };
    changed("parameters.json", "\"format\": 1", "\"format\": 2", 3, "reads version 1");
    changed("parameters.json", "compress", "sha256", 3, "profile compress, expected sha256");
    changed("parameters.json", "{", "", 3, "not the parameters of a directory");
    changed("settings.json", "\"format\": 1", "\"format\": 2", 3, "reads version 1");
    changed("signing.key", "\n", "0\n", 3, "is no key");
    let public = Command::new("chmod").args(["644", &format!("{folder}/signing.key")]).status();
    assert!(public.unwrap().success());
    fails(3, "others may read this secret key", &["directory", "check", &folder]);
    // A record of the client that is cut off.
    let public = Command::new("chmod").args(["600", &format!("{folder}/signing.key")]).status();
    assert!(public.unwrap().success());
    let seen = at("seen");
    ok(&["directory", "epoch", &folder, "--seen", &seen]);
    let bytes = std::fs::read(&seen).unwrap();
    std::fs::write(&seen, &bytes[1..]).unwrap();
    fails(3, "", &["directory", "epoch", &folder, "--seen", &seen]);
}
