//! A ceremony through its service, as people run it: contributors, cheats, lost connections, kills.

use hekaton_ceremony::{Coordinator, Transcript, contributors, new_powers, verify_powers};
use hekaton_testing::Tool;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use ureq::http::StatusCode;

fn tool() -> Tool {
    Tool(env!("CARGO_BIN_EXE_hekaton-ceremony").into())
}

/// A directory with a ceremony for powers.
struct Place(tempfile::TempDir);

impl Place {
    fn new(domain: usize) -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        new_powers(&place.path("powers"), domain, 8, "", &|_| {}).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_string_lossy().into_owned()
    }

    fn serve(&self, port: u16, more: &[&str]) -> Served {
        let listen = format!("127.0.0.1:{port}");
        let mut command =
            tool().command(&["--json", "serve", &self.text("powers"), "--listen", &listen]);
        let mut child =
            command.args(more).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let said: Value = serde_json::from_str(&line).expect("the service starts");
        Served { address: said["address"].as_str().unwrap().to_owned(), child }
    }

    /// A contribution by way of a service, with a folder of its own.
    fn contribute(&self, service: &Served, name: &str, more: &[&str]) -> Command {
        let mut command =
            tool().command(&["--json", "contribute", &service.address, "--yes", "--name", name]);
        command.args(["--out", &self.text(name)]).args(more);
        command.stdin(Stdio::null());
        command
    }

    /// The contributors of the chains, after a check of everything.
    #[track_caller]
    fn checked(&self) -> [Vec<String>; 2] {
        let transcript = Transcript::open(&self.path("powers")).unwrap();
        verify_powers(&transcript, &mut |_| {}).unwrap();
        [0, 1].map(|chain| {
            let names = contributors(&transcript.logs[chain].records);
            names.into_iter().map(str::to_owned).collect()
        })
    }
}

/// A port that the system gives to nobody by itself, so that it is free while a service is down: one below those for outgoing
/// connections.
fn lasting_port() -> u16 {
    let first = 10_000 + u16::try_from(std::process::id() % 20_000).unwrap();
    let is_free = |port: &u16| std::net::TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (first..).take(1_000).find(is_free).expect("a port is free")
}

/// A service that runs.
struct Served {
    child: Child,
    address: String,
}

impl Served {
    fn port(&self) -> u16 {
        self.address.rsplit_once(':').unwrap().1.parse().unwrap()
    }

    /// Asks it to stop, and waits for that.
    fn stop(mut self) {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        assert!(asked.success() && self.child.wait().unwrap().success());
    }

    /// Kills it.
    fn kill(mut self) -> u16 {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.port()
    }

    /// Sends a request as it is.
    fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> (StatusCode, Vec<u8>) {
        let config = ureq::Agent::config_builder().http_status_as_error(false).build();
        let agent = ureq::Agent::from(config);
        let mut request =
            ureq::http::Request::builder().method(method).uri(format!("{}{path}", self.address));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut answer = agent.run(request.body(body).unwrap()).unwrap();
        (answer.status(), answer.body_mut().read_to_vec().unwrap())
    }

    fn json(&self, method: &str, path: &str, body: &[u8]) -> (u16, Value) {
        let (status, bytes) = self.ask(method, path, &[], body);
        (status.as_u16(), serde_json::from_slice(&bytes).unwrap())
    }

    /// A slot for a token of which all digits are the same.
    fn join(&self, digit: &str, name: &str) -> (String, Value) {
        let token = digit.repeat(64);
        let body = json!({ "token": token, "name": name, "chains": ["tau", "phi"] });
        let (_, answer) = self.json("POST", "/v1/slots", body.to_string().as_bytes());
        (token, answer)
    }

    /// Waits until a slot has another state than these, and returns it.
    fn next(&self, token: &str, states: &[&str]) -> Value {
        loop {
            let (_, slot) = self.json("GET", &format!("/v1/uploads/{token}"), b"");
            if states.iter().all(|state| slot["state"] != *state) {
                return slot;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Uploads a contribution, and returns the verdict.
    fn judge(&self, token: &str, bytes: &[u8]) -> Value {
        let at = self.next(token, &["waiting"])["received"].as_u64().unwrap();
        let path = format!("/v1/uploads/{token}");
        let sent = self.json("PUT", &format!("{path}?at={at}"), bytes);
        assert_eq!(sent.0, 200, "{sent:?}");
        let digest = blake3::hash(bytes).to_hex().to_string();
        let complete = json!({ "blake3": digest }).to_string();
        let (status, answer) = self.json("POST", &path, complete.as_bytes());
        assert_eq!(status, 200, "{answer}");
        self.next(token, &["verifying"])
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // If a test has failed before it stopped the service.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn done(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{err}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn fails(command: &mut Command, code: i32, says: &str) {
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{err}");
    assert!(err.contains(says), "expected '{says}' in: {err}");
}

/// Invited contributors at the same time, receipts, an auditor's download, and the end.
#[test]
fn contributors_take_turns() {
    let place = Place::new(48);
    let invitations = place.text("invitations");
    std::fs::write(&invitations, "# two\nalice-0123456789 Alice\nanybody-01234567\n").unwrap();
    let service = place.serve(0, &["--invitations", &invitations]);
    let status = done(tool().command(&["--json", "status"]).arg(&service.address));
    let ceremony = status["service"]["ceremony"].as_str().unwrap().to_owned();
    assert_eq!(status["service"]["invited"], true);
    let invited = ["--invitation", "anybody-01234567"];
    fails(&mut place.contribute(&service, "Eve", &[]), 1, "need an invitation");
    fails(
        &mut place.contribute(&service, "Eve", &["--invitation", "alice-0123456789"]),
        1,
        "another name",
    );
    fails(
        &mut place.contribute(&service, "Eve", &["--expect", &"00".repeat(32)]),
        3,
        "--expect requires 00",
    );
    fails(&mut place.contribute(&service, "Eve", &["--only", "3"]), 2, "no chain 3");
    let mut alice = place.contribute(
        &service,
        "Alice",
        &["--invitation", "alice-0123456789", "--expect", &ceremony],
    );
    let mut alice = alice.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let bob = done(&mut place.contribute(&service, "Bob", &invited));
    assert!(alice.wait().unwrap().success());
    let mut said = String::new();
    alice.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    let receipt =
        serde_json::from_str::<Value>(&said).unwrap()["receipt"].as_str().unwrap().to_owned();
    assert!(receipt.contains("name Alice\n") && receipt.contains("chain phi place "), "{receipt}");
    // The same command again says the same, and the invitation has served.
    assert_eq!(done(&mut place.contribute(&service, "Bob", &invited))["receipt"], bob["receipt"]);
    fails(
        &mut place.contribute(&service, "Carol", &invited),
        1,
        "has already been used for a contribution to chain tau",
    );
    // A folder belongs to one contribution.
    let mut other = place.contribute(&service, "Bob", &invited);
    fails(other.args(["--only", "phi"]), 3, "continue with the same options");
    // The token is for its owner only.
    let slot = std::fs::metadata(place.path("Bob/slot.json")).unwrap();
    assert_eq!(slot.permissions().mode() & 0o777, 0o600);
    assert!(!place.path("Bob/contribution").exists() && !place.path("Bob/transcript").exists());

    let copy = place.text("copy");
    done(
        tool()
            .command(&["--json", "fetch", &service.address, "--out", &copy, "--directory"])
            .arg("--expect")
            .arg(&ceremony),
    );
    verify_powers(&Transcript::open(Path::new(&copy)).unwrap(), &mut |_| {}).unwrap();
    // The directory is the service's alone.
    tool().fails(
        3,
        "another process is working",
        &["add", &place.text("powers"), &place.text("Bob/slot.json")],
    );
    service.stop();
    let [tau, phi] = place.checked();
    assert_eq!(tau, phi);
    assert_eq!(tau.len(), 2);
    let receipts = tool().ok(&["receipt", &place.text("powers"), "--name", "Alice"]);
    assert_eq!(receipts.trim(), receipt.trim());
    assert!(std::fs::read_dir(place.path("powers/incoming")).unwrap().count() == 1);
}

/// Without a network: the state is fetched by somebody else, who sends the contribution.
#[test]
fn contributions_are_sent_for_others() {
    let place = Place::new(8);
    let service = place.serve(0, &["--open"]);
    let (state, alice, late) = (place.text("state"), place.text("alice"), place.text("late"));
    tool().ok(&["fetch", &service.address, "--out", &state]);
    for (name, out) in [("Alice", &alice), ("Late", &late)] {
        tool().ok(&["contribute", &state, "--name", name, "--out", out]);
    }
    tool().ok(&["send", &alice, &service.address]);
    // Again, and too late: nobody waits for that.
    tool().ok(&["send", &alice, &service.address]);
    tool().fails(1, "others have contributed since", &["send", &late, &service.address]);
    let status = service.json("GET", "/v1/status", b"").1;
    assert_eq!((&status["active"], &status["waiting"]), (&json!(0), &json!(0)));
    tool().fails(3, "exists", &["fetch", &service.address, "--out", &state]);
    tool().fails(2, "is not an address", &["status", "ftp://example"]);
    tool().fails(4, "", &["status", "http://127.0.0.1:1"]);
    service.stop();
    assert_eq!(place.checked(), [["Alice"], ["Alice"]]);
}

/// Damaged, foreign and cheating uploads: each is refused with its reason, and the next contributor has its turn.
#[test]
fn wrong_contributions_are_refused() {
    let place = Place::new(8);
    let service = place.serve(0, &["--open"]);
    let (state, good) = (place.text("state"), place.text("good"));
    tool().ok(&["fetch", &service.address, "--out", &state]);
    tool().ok(&["contribute", &state, "--name", "Eve", "--out", &good]);
    let good = std::fs::read(good).unwrap();
    let last = good.len() - 1;
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let attempts: [(&str, &str, Vec<u8>); 6] = [
        ("0", "8 bytes needed", b"hello".to_vec()),
        ("1", "expected", good[..last].to_vec()),
        ("2", "another ceremony", changed(12)),
        ("3", "section 'phi'", changed(last)),
        ("4", "", changed(60)),
        ("5", "another name or other chains", good.clone()),
    ];
    for (digit, why, bytes) in attempts {
        let name = if digit == "5" { "Alice" } else { "Eve" };
        let (token, _) = service.join(digit, name);
        let verdict = service.judge(&token, &bytes);
        assert_eq!(verdict["state"], "refused", "{verdict}");
        let told = verdict["why"].as_str().unwrap();
        assert!(told.contains(why), "{told}");
        assert!(!told.contains(place.0.path().to_str().unwrap()), "{told}");
    }
    let (token, _) = service.join("6", "Eve");
    assert_eq!(service.judge(&token, &good)["state"], "accepted");
    // Accepted once: a copy follows another head.
    let (token, _) = service.join("7", "Eve");
    let again = service.judge(&token, &good);
    assert!(matches!(again["state"].as_str(), Some("accepted" | "refused")), "{again}");
    service.stop();
    assert_eq!(place.checked(), [["Eve"], ["Eve"]]);
    let transcript = Transcript::open(&place.path("powers")).unwrap();
    assert!(transcript.logs.iter().all(|log| log.records.len() == 1));
}

/// The interface for those who write clients of their own, and for those who try it out.
#[test]
fn requests_are_checked() {
    let place = Place::new(8);
    let service = place.serve(0, &["--open"]);
    let (token, slot) = service.join("a", "Alice");
    let (next, waiting) = service.join("b", "Bob");
    assert_eq!((&slot["state"], &slot["received"]), (&json!("active"), &json!(0)), "{slot}");
    assert_eq!(waiting, json!({ "state": "waiting", "before": 1, "ask_again": 1 }));
    let path = format!("/v1/uploads/{token}");
    let unknown = format!("/v1/uploads/{}", "c".repeat(64));
    let put =
        |path: &str, at: &str, bytes: &[u8]| service.json("PUT", &format!("{path}?at={at}"), bytes);
    let refused = |(status, problem): (u16, Value), wanted: u16, kind: &str| {
        assert_eq!(
            (status, &problem["type"]),
            (wanted, &json!(format!("urn:hekaton:ceremony:{kind}"))),
            "{problem}"
        );
    };
    refused(put(&unknown, "0", b"x"), 404, "not-found");
    refused(put(&format!("/v1/uploads/{next}"), "0", b"x"), 409, "conflict");
    refused(put(&path, "1", b"x"), 409, "conflict");
    refused(put(&path, "0", &vec![0; (4 << 20) + 1]), 413, "too-large");
    assert_eq!(put(&path, "0", b"abc").1["received"], 3);
    refused(put(&path, "0", b"abc"), 409, "conflict");
    // More than a contribution to these chains has.
    refused(put(&path, "3", &vec![0; 1 << 20]), 413, "too-large");
    assert_eq!(put(&path, "3", b"def").1["received"], 6);
    let complete = |digest: &str| {
        service.json("POST", &path, json!({ "blake3": digest }).to_string().as_bytes())
    };
    refused(complete(&"0".repeat(64)), 422, "damaged");
    assert_eq!(service.json("GET", &path, b"").1["received"], 0);
    refused(complete(&"0".repeat(64)), 409, "conflict");
    refused(service.json("POST", "/v1/slots", b"{}"), 400, "bad-request");
    refused(service.json("POST", "/v1/slots", b"not JSON"), 400, "bad-request");
    refused(service.json("GET", "/v1/files/lock", b""), 404, "not-found");
    refused(service.json("GET", "/v1/files/incoming/slots.json", b""), 404, "not-found");
    refused(service.json("GET", "/v1/files/..%2flock", b""), 404, "not-found");
    refused(service.json("GET", "/v1/files/final.json", b""), 404, "not-found");
    refused(service.json("GET", "/v2", b""), 404, "not-found");
    refused(service.json("PUT", &path, b"x"), 400, "bad-request");
    refused(service.json("GET", "/v1/uploads/%ff", b""), 400, "bad-request");
    refused(service.json("DELETE", &unknown, b""), 404, "not-found");
    refused(service.json("DELETE", "/v1/slots", b""), 405, "method");
    let page = service.ask("POST", "/v1/slots", &[("origin", "https://example.com")], b"{}");
    assert_eq!(page.0, StatusCode::FORBIDDEN);
    // Files, in ranges.
    let genesis = std::fs::read(place.path("powers/genesis")).unwrap();
    assert_eq!(
        service.ask("GET", "/v1/files/genesis", &[], b""),
        (StatusCode::OK, genesis.clone())
    );
    let part = service.ask("GET", "/v1/files/genesis", &[("range", "bytes=5-9")], b"");
    assert_eq!(part, (StatusCode::PARTIAL_CONTENT, genesis[5..10].to_vec()));
    let behind = format!("bytes={}-", genesis.len());
    let behind = service.ask("GET", "/v1/files/genesis", &[("range", &behind)], b"");
    assert_eq!(behind.0, StatusCode::RANGE_NOT_SATISFIABLE);
    assert_eq!(service.ask("GET", "/healthz", &[], b"").0, StatusCode::OK);
}

/// Folders of others are not touched, and what is damaged in a download is replaced.
#[test]
fn folders_are_checked() {
    let place = Place::new(8);
    let service = place.serve(0, &["--open"]);
    std::fs::create_dir(place.path("mine")).unwrap();
    std::fs::write(place.path("mine/genesis"), "of the bible").unwrap();
    let fetch = |out: &str| {
        let mut command = tool().command(&["fetch", &service.address, "--directory", "--out"]);
        command.arg(place.text(out));
        command
    };
    fails(&mut fetch("mine"), 3, "neither empty nor a download");
    fails(&mut fetch("powers"), 3, "neither empty nor a download");
    assert_eq!(std::fs::read(place.path("mine/genesis")).unwrap(), b"of the bible");
    let mut alice = place.contribute(&service, "mine", &[]);
    fails(&mut alice, 3, "is not the folder of a contribution");
    // A section that was damaged, or is too long, is downloaded again.
    assert!(fetch("copy").status().unwrap().success());
    for damage in [&b"short"[..], &[0; 10_000]] {
        for entry in std::fs::read_dir(place.path("copy/sections")).unwrap() {
            std::fs::write(entry.unwrap().path(), damage).unwrap();
        }
        assert!(fetch("copy").status().unwrap().success());
        tool().ok(&[
            "contribute",
            &place.text("copy"),
            "--name",
            "Bob",
            "--out",
            &place.text("bob"),
        ]);
        std::fs::remove_file(place.path("bob")).unwrap();
    }
    // Two processes in one folder.
    let (_, slot) = service.join("a", "Slow");
    assert_eq!(slot["state"], "active");
    let mut first = place.contribute(&service, "Alice", &[]).stderr(Stdio::null()).spawn().unwrap();
    while !place.path("Alice/slot.json").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    fails(
        &mut place.contribute(&service, "Alice", &[]),
        3,
        "another process works on this contribution",
    );
    // Whoever gives up keeps nobody waiting.
    let left = service.json("DELETE", &format!("/v1/uploads/{}", "a".repeat(64)), b"");
    assert_eq!(left.1["state"], "expired");
    assert!(first.wait().unwrap().success());
    // The receipt was lost with the answer: the folder has the contribution, which is in the transcript.
    service.stop();
    assert_eq!(place.checked(), [["Alice"], ["Alice"]]);
}

/// A run that was killed between its contribution and the receipt: the next one has both.
#[test]
fn receipts_are_written_again() {
    let place = Place::new(8);
    let service = place.serve(0, &["--open"]);
    let (slow, _) = service.join("a", "Slow");
    let mut first = place.contribute(&service, "Alice", &[]).stderr(Stdio::null()).spawn().unwrap();
    while !place.path("Alice/slot.json").exists() {
        std::thread::sleep(Duration::from_millis(10));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // What the first run would have made, without the receipt.
    let (state, out) = (place.text("state"), place.text("Alice/contribution"));
    tool().ok(&["fetch", &service.address, "--out", &state]);
    tool().ok(&["contribute", &state, "--name", "Alice", "--out", &out]);
    std::fs::remove_file(format!("{out}.receipt")).unwrap();
    service.json("DELETE", &format!("/v1/uploads/{slow}"), b"");
    let said = done(&mut place.contribute(&service, "Alice", &[]));
    assert!(said["receipt"].as_str().unwrap().contains("name Alice"));
    service.stop();
    assert_eq!(place.checked(), [["Alice"], ["Alice"]]);
}

/// After `finish`, nobody is kept waiting for a turn that cannot end well.
#[test]
fn finished_ceremonies_are_for_downloads() {
    let place = Place::new(8);
    let service = place.serve(0, &["--open"]);
    done(&mut place.contribute(&service, "Alice", &[]));
    let (active, _) = service.join("a", "Bob");
    let (waiting, _) = service.join("b", "Carol");
    service.stop();
    Coordinator::open(&place.path("powers")).unwrap().finish().unwrap();
    let service = place.serve(0, &["--open"]);
    for token in [active, waiting] {
        let slot = service.json("GET", &format!("/v1/uploads/{token}"), b"").1;
        assert_eq!(slot, json!({ "state": "refused", "why": "the ceremony is finished" }));
    }
    assert_eq!(service.join("c", "Dave").1["type"], "urn:hekaton:ceremony:finished");
    fails(&mut place.contribute(&service, "Eve", &[]), 3, "the ceremony is finished");
    let copy = place.text("copy");
    tool().ok(&["fetch", &service.address, "--directory", "--out", &copy]);
    assert!(Path::new(&copy).join("final.json").exists());
    done(&mut place.contribute(&service, "Alice", &[]));
}

/// A deadline that passes: the next one has its turn, and the first one learns of it and can come back.
#[test]
fn deadlines_pass() {
    let place = Place::new(8);
    let service = place.serve(0, &["--open", "--deadline", "5s"]);
    let (silent, slot) = service.join("a", "Silent");
    assert_eq!(slot["state"], "active");
    service.json("PUT", &format!("/v1/uploads/{silent}?at=0"), b"abc");
    done(&mut place.contribute(&service, "Alice", &[]));
    assert_eq!(service.next(&silent, &["active"])["state"], "expired");
    assert!(!place.path("powers/incoming").join(&silent).exists());
    let late = service.json("PUT", &format!("/v1/uploads/{silent}?at=3"), b"abc");
    assert_eq!(late.0, 409, "{late:?}");
    service.stop();
    assert_eq!(place.checked(), [["Alice"], ["Alice"]]);
}

/// A contributor that is killed after longer and longer times, wherever it is by then: the same command ends with one contribution.
#[test]
fn killed_contributors_go_on() {
    let place = Place::new(1 << 11);
    let service = place.serve(0, &["--open"]);
    // Of a run that was killed while it wrote, or had the records to check its receipt.
    std::fs::create_dir_all(place.path("Alice/.hekaton-ceremony-0123")).unwrap();
    std::fs::write(place.path("Alice/slot.json.0123456789abcdef.part"), "").unwrap();
    let mut after = Duration::from_millis(5);
    let mut kills = 0;
    let receipt = loop {
        let mut command = place.contribute(&service, "Alice", &[]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(after);
        if child.try_wait().unwrap().is_some() {
            assert!(child.wait().unwrap().success());
            let mut said = String::new();
            child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
            break serde_json::from_str::<Value>(&said).unwrap()["receipt"].clone();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
        after = after * 5 / 4;
    };
    assert!(kills > 0);
    // What is left has no secret, and no product that was not sent.
    let left: Vec<_> =
        std::fs::read_dir(place.path("Alice")).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(left.len(), 3, "receipt, slot and lock: {left:?}");
    service.stop();
    assert_eq!(place.checked(), [["Alice"], ["Alice"]]);
    let transcript = Transcript::open(&place.path("powers")).unwrap();
    assert!(transcript.logs.iter().all(|log| log.records.len() == 1));
    assert!(receipt.as_str().unwrap().contains("chain phi place 0"));
}

/// A service that is killed after longer and longer times while contributors work: nothing that was accepted is lost, and all of them
/// end with their contribution.
#[test]
fn killed_services_go_on() {
    let place = Place::new(1 << 10);
    let mut service = place.serve(lasting_port(), &["--open"]);
    let mut children: Vec<Child> = ["Alice", "Bob", "Carol"]
        .map(|name| {
            place
                .contribute(&service, name, &[])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap()
        })
        .into();
    let mut after = Duration::from_millis(100);
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        std::thread::sleep(after);
        let port = service.kill();
        service = place.serve(port, &["--open"]);
        after = after * 3 / 2;
    }
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    service.stop();
    assert_eq!(std::fs::read_dir(place.path("powers/incoming")).unwrap().count(), 1);
    for mut names in place.checked() {
        names.sort_unstable();
        assert_eq!(names, ["Alice", "Bob", "Carol"]);
    }
}
