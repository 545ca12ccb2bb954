//! Tests of the service: with its client, and with requests that the client does not send.

mod clients;
mod description;
mod provers;
mod writers;

use crate::body::{Absent, ExpectedBody, ProofRange, State, UpdateBody};
use crate::service::MAX_WAITING;
use crate::{Base64, Client, ClientError, Problem, Service, ServiceOptions, open_api};
use ed25519_dalek::SigningKey;
use hekaton_directory::{Parameters, Profile, SignedRecord};
use hekaton_directory_server::{Mode, Options, Prover, Server, Stop};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

fn signing_key() -> SigningKey {
    SigningKey::from_bytes(&[5; 32])
}

fn parameters() -> Parameters {
    let server = signing_key().verifying_key();
    Parameters { profile: Profile::Compress, server, proofs: [8; 32] }
}

/// An epoch for each update that waits a moment.
fn options() -> Options {
    Options {
        interval: Some(Duration::from_millis(1)),
        mode: Mode::Serial,
        threads: 1,
        cache: 1 << 20,
        ..Options::default()
    }
}

struct Running {
    server: Arc<Server>,
    client: Client,
    stop: Stop,
    thread: Option<std::thread::JoinHandle<std::io::Result<()>>>,
    folder: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.ask();
        self.stop.ask();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Running {
    fn start(options: Options, service: ServiceOptions, prover: Option<Arc<dyn Prover>>) -> Self {
        Self::run(options, |server| Service::new(server, service), prover)
    }

    fn run(
        options: Options,
        service: impl FnOnce(Arc<Server>) -> Service,
        prover: Option<Arc<dyn Prover>>,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Server::create(folder.path(), &parameters(), &signing_key(), 4).unwrap();
        let server = Server::open(folder.path(), &parameters(), &signing_key(), options).unwrap();
        let server = Arc::new(server);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let stop = Stop::default();
        let service = service(Arc::clone(&server));
        let stopped = stop.clone();
        let run = move || service.run(listener, &stopped, prover.as_deref());
        let thread = Some(std::thread::spawn(run));
        Self { server, client, stop, thread, folder }
    }

    fn plain() -> Self {
        Self::start(options(), ServiceOptions::default(), None)
    }

    /// Sends an update and waits until it is visible.
    fn insert(&self, label: &str, value: &str) -> u32 {
        let status = self.client.submit(&update(label, value), true).unwrap();
        assert_eq!(status.state, State::Visible);
        status.epoch.unwrap()
    }

    /// Stops, and returns what the service returned.
    fn end(&mut self, times: usize) -> std::io::Result<()> {
        (0..times).for_each(|_| self.stop.ask());
        self.thread.take().unwrap().join().unwrap()
    }

    /// A request that the client would not send: the status, the headers as text, and the problem.
    fn raw(&self, method: &str, path: &str, kind: &str, body: &[u8]) -> (u16, String, Problem) {
        let agent: ureq::Agent = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .allow_non_standard_methods(true)
            .build()
            .into();
        let request = ureq::http::Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.client.address()))
            .header("content-type", kind)
            .body(body)
            .unwrap();
        let mut answer = agent.run(request).unwrap();
        let headers = format!("{:?}", answer.headers());
        let status = answer.status().as_u16();
        let text = answer.body_mut().read_to_string().unwrap();
        let problem = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
        (status, headers, problem)
    }
}

fn update(label: &str, value: &str) -> UpdateBody {
    UpdateBody { label: label.into(), value: Some(value.into()), ..UpdateBody::default() }
}

/// Status and kind of a problem.
fn problem<T: std::fmt::Debug>(answer: Result<T, ClientError>) -> (u16, String) {
    match answer {
        Err(ClientError::Problem { problem, .. }) => {
            (problem.status, problem.kind.replace("urn:hekaton:directory:", ""))
        }
        other => panic!("{other:?}"),
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn what_is_sent_can_be_looked_up() {
    let running = Running::plain();
    let client = &running.client;
    assert_eq!(client.parameters().unwrap().parameters().unwrap(), parameters());
    for (label, value) in [("alice", "1"), ("a/b ?#%", "slash"), ("alice", "2"), ("ä€", "3")] {
        running.insert(label, value);
    }
    let bytes = vec![0, 255, 10];
    let mut binary = update("binary", "");
    (binary.value, binary.value_base64) = (None, Some(Base64(bytes.clone())));
    client.submit(&binary, true).unwrap();
    let look_up = |label: &str, epoch| {
        let found = client.key(label, epoch).unwrap();
        found.verify(&parameters(), label.as_bytes(), epoch).unwrap()
    };
    for (label, value) in [("alice", b"2"), ("ä€", b"3")] {
        assert_eq!(look_up(label, None).value.unwrap(), value);
    }
    assert_eq!(look_up("a/b ?#%", None).value.unwrap(), b"slash");
    assert_eq!(look_up("binary", None).value.unwrap(), bytes);
    assert_eq!(look_up("alice", Some(1)).value.unwrap(), b"1");
    let nobody = look_up("nobody", None);
    assert_eq!((nobody.leaf, nobody.value, nobody.record.record().epoch), (None, None, 5));
    assert_eq!(look_up("alice", Some(0)).leaf, None);
    let history = client.history("alice", None).unwrap();
    let history = history.verify(&parameters(), b"alice", None).unwrap();
    assert_eq!(history.leaf.unwrap().version, 1);
    assert_eq!(history.values().collect::<Vec<_>>(), [Some(&b"1"[..]), Some(b"2")]);
    let nobody = client.history("nobody", Some(2)).unwrap();
    let nobody = nobody.verify(&parameters(), b"nobody", Some(2)).unwrap();
    assert_eq!((nobody.leaf, nobody.values().count()), (None, 0));
    // Erased, the value is gone, and the rest still holds.
    running.server.erase(b"alice", 0).unwrap();
    let history = client.history("alice", None).unwrap();
    let history = history.verify(&parameters(), b"alice", None).unwrap();
    assert_eq!(history.values().collect::<Vec<_>>(), [None, Some(&b"2"[..])]);

    let epochs = client.epochs().unwrap();
    assert_eq!((epochs.last.epoch, epochs.proven, epochs.first), (5, 0, 0));
    assert_eq!(
        (epochs.last.leaves, epochs.last.updates, epochs.last.state),
        (4, 5, State::Visible)
    );
    assert_eq!(client.epoch(5).unwrap(), epochs.last);
    let record = SignedRecord::decode(&client.epoch(2).unwrap().record.0).unwrap();
    assert_eq!(record.verify(&parameters()).unwrap().record().epoch, 2);
    running.server.prune(2).unwrap();
    assert_eq!(client.epochs().unwrap().first, 2);
    assert_eq!(problem(client.key("alice", Some(1))), (410, "pruned".into()));
    assert_eq!(problem(client.history("alice", Some(1))), (410, "pruned".into()));
}

#[test]
fn requests_that_are_wrong() {
    let running = Running::plain();
    let client = &running.client;
    running.insert("label", "value");
    let gone = (404, "not-found".to_owned());
    assert_eq!(problem(client.key("label", Some(2))), gone);
    assert_eq!(problem(client.epoch(2)), gone);
    assert_eq!(problem(client.update(77)), gone);
    assert_eq!(problem(client.records(0, 2)), gone);
    assert_eq!(problem(client.proof(ProofRange { from: 0, to: 1 })), gone);
    assert_eq!(client.proofs(0).unwrap().proofs, []);
    let bad = (400, "bad-request".to_owned());
    assert_eq!(problem(client.key(&"x".repeat(1025), None)), bad);
    assert_eq!(problem(client.submit(&update("", "x"), false)), bad);
    assert_eq!(problem(client.submit(&update("x", &"x".repeat((1 << 16) + 1)), false)), bad);
    assert_eq!(problem(client.submit(&UpdateBody::default(), false)), bad);
    let both = UpdateBody { value_base64: Some(Base64(vec![])), ..update("x", "x") };
    assert_eq!(problem(client.submit(&both, false)), bad);
    assert_eq!(problem(client.records(1, 0)), bad);
    // The largest label and value are accepted.
    client.submit(&update(&"x".repeat(1024), &"\u{1}".repeat(1 << 16)), true).unwrap();

    let json = "application/json";
    let cases: [(&str, &str, &str, &[u8], u16); 16] = [
        ("POST", "/v1/updates", json, b"{", 400),
        ("POST", "/v1/updates", json, b"[]", 400),
        ("POST", "/v1/updates", json, b"{\"label\":\"x\"}", 400),
        ("POST", "/v1/updates", json, b"{\"label\":\"x\",\"value\":\"x\",\"extra\":1}", 400),
        ("POST", "/v1/updates", json, b"{\"label\":\"x\",\"value_base64\":\"*\"}", 400),
        ("POST", "/v1/updates", json, b"{\"label\":\"x\",\"value\":\"x\",\"expected\":-1}", 400),
        (
            "POST",
            "/v1/updates",
            json,
            b"{\"label\":\"x\",\"value\":\"x\",\"expected\":\"no\"}",
            400,
        ),
        ("POST", "/v1/updates?wait=perhaps", json, b"{\"label\":\"x\",\"value\":\"x\"}", 400),
        ("POST", "/v1/updates", "text/plain", b"{}", 415),
        ("POST", "/v1/updates", json, &vec![b' '; (512 << 10) + 1], 413),
        ("GET", "/v1/keys/%ff", json, b"", 400),
        ("GET", "/v1/keys/x?epoch=-1", json, b"", 400),
        ("GET", "/v1/proofs/1", json, b"", 400),
        ("GET", "/v1/proofs/1-x", json, b"", 400),
        ("GET", "/v1/nothing", json, b"", 404),
        ("DELETE", "/v1/epochs", json, b"", 405),
    ];
    for (method, path, kind, body, status) in cases {
        let (found, headers, problem) = running.raw(method, path, kind, body);
        let what = format!("{method} {path}: {problem:?}");
        assert_eq!((found, problem.status), (status, status), "{what}");
        assert!(headers.contains("application/problem+json"), "{what} {headers}");
        assert!(problem.kind.starts_with("urn:hekaton:directory:"), "{what}");
    }
    for address in ["https://x", "x", "http://", "http://x?y"] {
        assert!(matches!(Client::new(address), Err(ClientError::Address(_))), "{address}");
    }
    let nowhere = Client::new("http://127.0.0.1:1").unwrap();
    assert!(matches!(nowhere.epochs(), Err(ClientError::Connection { .. })));
}

#[test]
fn updates_conflict() {
    let running = Running::plain();
    let client = &running.client;
    let named = |value: &str| UpdateBody {
        idempotency_key: Some("a long and random name".into()),
        ..update("label", value)
    };
    let first = client.submit(&named("1"), true).unwrap();
    let again = client.submit(&named("1"), true).unwrap();
    assert_eq!((again.number, again.repeated, first.repeated), (first.number, true, false));
    assert_eq!(problem(client.submit(&named("2"), true)), (409, "conflict".into()));
    let expecting = |expected| UpdateBody { expected: Some(expected), ..update("label", "3") };
    let absent = expecting(ExpectedBody::Absent(Absent::Absent));
    assert_eq!(problem(client.submit(&absent, true)), (409, "conflict".into()));
    let later = expecting(ExpectedBody::Version(1));
    assert_eq!(problem(client.submit(&later, true)), (409, "conflict".into()));
    // Without waiting, it has an outcome later.
    let sent = client.submit(&later, false).unwrap();
    assert_eq!(sent.state, State::Accepted);
    until("it is refused", || client.update(sent.number).unwrap().state == State::Refused);
    let refused = client.update(sent.number).unwrap();
    assert!(refused.reason.unwrap().contains("another version than the label has, which is 0"));
    let right = client.submit(&expecting(ExpectedBody::Version(0)), true).unwrap();
    assert_eq!((right.version, right.state), (Some(1), State::Visible));
}

/// Clients that wait take no more threads than there are for them: the others get the answer that their updates are
/// accepted.
#[test]
fn waiting_is_limited() {
    let never = Options { interval: None, ..options() };
    let running = Running::start(never, ServiceOptions::default(), None);
    let client = running.client.clone();
    let waits: Vec<_> = (0..MAX_WAITING + 8)
        .map(|n| {
            let (client, update) = (client.clone(), update(&n.to_string(), "value"));
            std::thread::spawn(move || client.submit(&update, true).unwrap().state)
        })
        .collect();
    until("some are sent away", || waits.iter().filter(|wait| wait.is_finished()).count() == 8);
    // Look-ups continue meanwhile.
    assert_eq!(client.key("1", None).unwrap().epoch, 0);
    running.server.flush().unwrap();
    let states: Vec<State> = waits.into_iter().map(|wait| wait.join().unwrap()).collect();
    let count = |state| states.iter().filter(|found| **found == state).count();
    assert_eq!((count(State::Accepted), count(State::Visible)), (8, MAX_WAITING));
}

#[test]
fn a_full_intake_says_when_to_come_back() {
    let never = Options { interval: None, max_pending: 2, ..options() };
    let running = Running::start(never, ServiceOptions::default(), None);
    for value in ["1", "2"] {
        running.client.submit(&update("label", value), false).unwrap();
    }
    let body = serde_json::to_vec(&update("label", "3")).unwrap();
    let (status, headers, problem) = running.raw("POST", "/v1/updates", "application/json", &body);
    assert_eq!((status, problem.retry_after), (429, Some(1)));
    assert!(headers.contains("retry-after") && problem.kind.ends_with(":full"));
}

#[test]
fn what_is_accepted_is_visible_when_it_stops() {
    let never = Options { interval: None, ..options() };
    let mut running = Running::start(never, ServiceOptions::default(), None);
    let client = running.client.clone();
    client.submit(&update("label", "1"), false).unwrap();
    running.end(1).unwrap();
    assert!(matches!(client.epochs(), Err(ClientError::Connection { .. })));
    let open =
        || Server::open(running.folder.path(), &parameters(), &signing_key(), never).unwrap();
    assert_eq!(open().view().unwrap().record().epoch, 1);

    // Asked twice at once, it leaves the update for the next start; nothing is lost.
    let mut running = Running::start(never, ServiceOptions::default(), None);
    running.client.submit(&update("label", "1"), false).unwrap();
    running.end(2).unwrap();
    let server = Server::open(running.folder.path(), &parameters(), &signing_key(), never).unwrap();
    let (epoch, open) = (server.view().unwrap().record().epoch, server.open_updates());
    // The first wish may have been granted by then.
    assert!((epoch, open) == (0, 1) || (epoch, open) == (1, 0), "{epoch} {open}");
    server.flush().unwrap();
    assert_eq!(server.view().unwrap().record().leaves, 1);
}

/// However many read their histories slowly, and never stop, the next one is sent at once.
#[test]
fn slow_readers_keep_no_history_waiting() {
    use std::io::{Read, Write};
    let running = Running::plain();
    // So much that a reader at twice the least rate takes three minutes for it.
    for _ in 0..80 {
        running.insert("label", &"a".repeat(60_000));
    }
    let address = running.client.address().trim_start_matches("http://").to_owned();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (begun, begins) = std::sync::mpsc::channel();
        for _ in 0..3 {
            let (mut begun, done, address) = (Some(begun.clone()), &done, &address);
            scope.spawn(move || {
                let mut slow = std::net::TcpStream::connect(address).unwrap();
                let request = b"GET /v1/keys/label/history HTTP/1.1\r\nhost: x\r\n\r\n";
                slow.write_all(request).unwrap();
                let mut part = vec![0; 1 << 16];
                while !done.load(Ordering::SeqCst) && slow.read_exact(&mut part).is_ok() {
                    if let Some(begun) = begun.take() {
                        let _ = begun.send(());
                    }
                    std::thread::sleep(Duration::from_secs(2));
                }
            });
        }
        // Two of them have begun.
        for _ in 0..2 {
            begins.recv().unwrap();
        }
        let body = running.client.history("label", None);
        done.store(true, Ordering::SeqCst);
        let body = body.unwrap();
        assert_eq!(body.verify(&parameters(), b"label", None).unwrap().values().count(), 80);
    });
}

/// Connections that say nothing, or a byte now and then, keep nobody from an answer, and from the end.
#[test]
fn silent_connections_make_room() {
    use std::io::Write;
    let limits = ServiceOptions { max_connections: 2, ..ServiceOptions::default() };
    let mut running = Running::start(options(), limits, None);
    let address = running.client.address().trim_start_matches("http://").to_owned();
    let silent = || std::net::TcpStream::connect(&address).unwrap();
    let mut held = [silent(), silent()];
    held[1].write_all(b"POST /v1/updates HTTP/1.1\r\nhost: x\r\ncontent-").unwrap();
    for _ in 0..3 {
        assert_eq!(running.client.health().unwrap().epoch, 0);
        assert_eq!(running.client.epochs().unwrap().last.epoch, 0);
    }
    // It would wait for thirty seconds for each of them, and longer for others.
    running.end(1).unwrap();
    drop(held);
}

/// Names are taken in any case, and what is not taken is named.
#[test]
fn requests_are_as_http_says() {
    let running = Running::plain();
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let send = |headers: &[(&str, &str)]| {
        let url = format!("{}/v1/updates", running.client.address());
        let mut request = agent.post(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = serde_json::to_vec(&update("label", "1")).unwrap();
        let answer = request.send(&body[..]).unwrap();
        let taken =
            answer.headers().get("accept-encoding").map(|value| value.to_str().unwrap().to_owned());
        (answer.status().as_u16(), taken)
    };
    for kind in ["application/json", "Application/JSON; Charset=UTF-8"] {
        assert_eq!(send(&[("content-type", kind)]), (202, None));
        for coding in ["identity", "Identity", "identity, IDENTITY"] {
            assert_eq!(send(&[("content-type", kind), ("content-encoding", coding)]), (202, None));
        }
        for coding in ["gzip", "GZIP", "br", "identity, gzip", "x"] {
            let found = send(&[("content-type", kind), ("content-encoding", coding)]);
            assert_eq!(found, (415, Some("identity".into())), "{coding}");
        }
    }
    let (status, headers, _) = running.raw("DELETE", "/v1/updates", "text/plain", b"");
    assert!(status == 405 && headers.contains("\"allow\": \"POST\""), "{headers}");
    for path in ["/healthz", "/v1/epochs", "/openapi.json"] {
        let url = format!("{}{path}", running.client.address());
        let mut answer = agent.head(url).call().unwrap();
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(answer.body_mut().read_to_vec().unwrap(), b"");
    }
    let ready = agent.get(format!("{}/readyz", running.client.address())).call().unwrap();
    assert_eq!(ready.status().as_u16(), 204);
}

#[test]
fn pages_from_anywhere_may_read() {
    let running = Running::plain();
    let address = running.client.address();
    let answer = ureq::get(format!("{address}/v1/epochs")).header("origin", "http://page");
    let answer = answer.call().unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], "*");
    // A page cannot send an update, not even one that reaches the service by a name of its own.
    let body = serde_json::to_vec(&update("label", "1")).unwrap();
    let sent = ureq::post(format!("{address}/v1/updates")).header("origin", "http://page");
    let sent = sent.header("content-type", "application/json").config().http_status_as_error(false);
    assert_eq!(sent.build().send(&body[..]).unwrap().status().as_u16(), 403);
    let sent = ureq::post(format!("{address}/v1/updates")).header("sec-fetch-site", "cross-site");
    let sent = sent.header("content-type", "application/json").config().http_status_as_error(false);
    assert_eq!(sent.build().send(&body[..]).unwrap().status().as_u16(), 403);
    assert_eq!(running.server.open_updates(), 0);
    let asked = ureq::http::Request::builder()
        .method("OPTIONS")
        .uri(format!("{address}/v1/updates"))
        .header("origin", "http://page")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "content-type")
        .body(())
        .unwrap();
    let answer = ureq::run(asked).unwrap();
    assert_eq!(answer.headers()["access-control-allow-methods"], "GET");
    assert!(answer.headers().get("access-control-allow-headers").is_none());
}

#[test]
fn metrics_and_description() {
    let running = Running::plain();
    running.insert("secret-label", "1");
    // Metrics name neither unknown methods nor labels.
    running.raw("STRANGE", "/v1/epochs", "text/plain", b"");
    let _ = running.client.key("secret-label", None);
    let _ = running.client.key("secret-label", Some(7));
    let get = |path: &str| {
        let mut answer = ureq::get(format!("{}{path}", running.client.address())).call().unwrap();
        answer.body_mut().read_to_string().unwrap()
    };
    let text = get("/metrics");
    for line in [
        "hekaton_directory_up 1",
        "hekaton_directory_epoch 1",
        "hekaton_directory_labels 1",
        "hekaton_directory_unproven_epochs 1",
        "hekaton_directory_accepted_updates 0",
        "hekaton_directory_commits_total 1",
        "requests_total{method=\"GET\",path=\"/v1/keys/{label}\",status=\"200\"} 1",
        "requests_total{method=\"GET\",path=\"/v1/keys/{label}\",status=\"404\"} 1",
        "requests_total{method=\"other\",path=\"/v1/epochs\",status=\"405\"} 1",
        "hekaton_directory_request_seconds_count{path=\"/v1/updates\"} 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("secret-label") && !text.contains("STRANGE"));
    // The description names each path that the service has, and each schema that it refers to.
    let described: serde_json::Value = serde_json::from_str(&get("/openapi.json")).unwrap();
    assert_eq!(described, serde_json::to_value(open_api()).unwrap());
    let paths: Vec<&String> = described["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths.len(), 15, "{paths:?}");
    let text = described.to_string();
    for part in text.split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(described["components"]["schemas"].get(name).is_some(), "{name}");
    }
}
