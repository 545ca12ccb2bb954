//! Tests of the service: with its client, and with requests that the client does not send.

use crate::body::{
    Absent, ExpectedBody, HealthBody, HistoryBody, KeyBody, ProofRange, State, UpdateBody,
};
use crate::{
    AnswerError, Base64, Client, ClientError, ParametersFile, Problem, ProveError, Prover, Service,
    ServiceOptions, Stop, follow, open_api,
};
use ed25519_dalek::SigningKey;
use hekaton_directory::server::{Mode, Options, Server, Update};
use hekaton_directory::{EpochProof, Parameters, Profile, SignedRecord, Witness, audit};
use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
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
        let folder = tempfile::tempdir().unwrap();
        Server::create(folder.path(), &parameters(), &signing_key(), 4).unwrap();
        let server = Server::open(folder.path(), &parameters(), &signing_key(), options).unwrap();
        let server = Arc::new(server);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = Client::new(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
        let stop = Stop::default();
        let service = Service::new(Arc::clone(&server), service);
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
    // The largest ones are none of these.
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

/// Makes what goes for a proof here, once it may.
#[derive(Default)]
struct Mock {
    /// The last epoch that it may prove up to.
    may: AtomicU32,
    /// What it was asked for.
    asked: Mutex<Vec<(u32, u32)>>,
    /// How often it fails, and how often it makes a proof that does not hold.
    fails: AtomicU32,
    wrong: AtomicU32,
    /// A proof that was begun earlier.
    begun: Option<(u32, u32)>,
    attached: Mutex<Vec<(u32, u32)>>,
}

fn take(left: &AtomicU32) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

impl Prover for Mock {
    fn room(&self) -> usize {
        4
    }

    fn begun(&self, from: u32) -> Option<u32> {
        self.begun.filter(|begun| begun.0 == from).map(|begun| begun.1)
    }

    fn prove(&self, witness: &Witness, to: u32, stop: &Stop) -> Result<EpochProof, ProveError> {
        while self.may.load(Ordering::SeqCst) < to {
            if stop.wait(Duration::from_millis(5)) {
                return Err(ProveError::Stopped);
            }
        }
        self.asked.lock().unwrap().push((witness.epoch, to));
        if take(&self.fails) {
            return Err(ProveError::Failed("no memory".into()));
        }
        let proof = if take(&self.wrong) { b"wrong".to_vec() } else { witness.encode() };
        Ok(EpochProof { from: witness.epoch, to, subcircuits: 1, proof })
    }

    fn verify(
        &self,
        proof: &EpochProof,
        values: [u128; 10],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let witness = Witness::decode(&proof.proof)?;
        let is_right = values[4] == u128::from(witness.epoch)
            && values[..2]
                == [&witness.root[..16], &witness.root[16..]]
                    .map(|half| u128::from_be_bytes(half.try_into().unwrap()));
        if is_right { Ok(()) } else { Err("it is of other epochs".into()) }
    }

    fn attached(&self, from: u32, to: u32) {
        self.attached.lock().unwrap().push((from, to));
    }
}

#[test]
fn the_three_states_are_never_mixed() {
    let mock = Arc::new(Mock::default());
    let slow = Options { interval: Some(Duration::from_millis(500)), ..options() };
    let prover: Arc<dyn Prover> = mock.clone();
    let mut running = Running::start(slow, ServiceOptions::default(), Some(prover));
    let client = running.client.clone();
    let number = client.submit(&update("label", "1"), false).unwrap().number;
    let mut seen = Vec::new();
    let mut look = || {
        let status = client.update(number).unwrap();
        // An epoch is named once it is visible, and the state of the epoch is the same or later.
        assert_eq!(status.epoch.is_some(), status.state != State::Accepted);
        if let Some(epoch) = status.epoch {
            assert_ne!(client.epoch(epoch).unwrap().state, State::Accepted);
        }
        if seen.last() != Some(&status.state) {
            seen.push(status.state);
        }
        status.state
    };
    until("it is visible", || look() == State::Visible);
    assert_eq!(client.key("label", None).unwrap().state, State::Visible);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(look(), State::Visible);
    mock.may.store(1, Ordering::SeqCst);
    until("it is proven", || look() == State::Proven);
    assert!(seen.ends_with(&[State::Visible, State::Proven]) && seen.len() <= 3, "{seen:?}");
    assert_eq!(client.key("label", None).unwrap().state, State::Proven);
    assert_eq!(client.history("label", None).unwrap().state, State::Proven);
    assert_eq!(client.epochs().unwrap().proven, 1);

    // Epochs after it are not proven with it, and go together, as many as there is room for.
    for epoch in 2..=5 {
        running.insert("label", &epoch.to_string());
    }
    let answer = client.key("label", None).unwrap();
    assert_eq!((answer.epoch, answer.state), (5, State::Visible));
    assert_eq!(client.key("label", Some(1)).unwrap().state, State::Proven);
    mock.may.store(9, Ordering::SeqCst);
    until("all are proven", || client.epochs().unwrap().proven == 5);
    let proofs = client.proofs(0).unwrap().proofs;
    let (mut at, mut all) = (0, Vec::new());
    for range in proofs {
        assert_eq!(range.from, at);
        assert!(range.to - range.from <= 2, "there is no room for more than two epochs");
        at = range.to;
        all.push(client.proof(range).unwrap().into());
    }
    assert_eq!(at, 5);
    let asked = mock.asked.lock().unwrap().clone();
    assert_eq!(asked, *mock.attached.lock().unwrap());
    // An auditor needs nothing else than what the service answers.
    let records = client.records(0, 5).unwrap().records;
    let records: Vec<_> =
        records.iter().map(|bytes| SignedRecord::decode(&bytes.0).unwrap()).collect();
    audit(&parameters(), &records, &all, |proof, values| mock.verify(proof, values)).unwrap();
    running.end(1).unwrap();
}

#[test]
fn failed_and_wrong_proofs_are_made_again() {
    let mock = Arc::new(Mock {
        may: AtomicU32::new(9),
        fails: AtomicU32::new(1),
        wrong: AtomicU32::new(1),
        ..Mock::default()
    });
    let prover: Arc<dyn Prover> = mock.clone();
    let running = Running::start(options(), ServiceOptions::default(), Some(prover));
    running.insert("label", "1");
    until("it is proven", || running.client.epochs().unwrap().proven == 1);
    assert_eq!(*mock.asked.lock().unwrap(), [(0, 1); 3]);
    let health: HealthBody = {
        let mut answer = ureq::get(format!("{}/healthz", running.client.address())).call().unwrap();
        serde_json::from_slice(&answer.body_mut().read_to_vec().unwrap()).unwrap()
    };
    assert_eq!(health, HealthBody { epoch: 1, proven: 1, proof_failures: 2 });
}

#[test]
fn a_proof_that_was_begun_is_finished() {
    // Three epochs would have room for two: what was begun has one.
    let mock = Mock { may: AtomicU32::new(0), begun: Some((0, 1)), ..Mock::default() };
    let mock = Arc::new(mock);
    let prover: Arc<dyn Prover> = mock.clone();
    let folder = tempfile::tempdir().unwrap();
    Server::create(folder.path(), &parameters(), &signing_key(), 4).unwrap();
    let server = Server::open(folder.path(), &parameters(), &signing_key(), options()).unwrap();
    for value in ["1", "2", "3"] {
        server.submit(Update::new("label", value)).unwrap();
        server.flush().unwrap();
    }
    mock.may.store(9, Ordering::SeqCst);
    let (proving, stop) = (crate::prover::Proving::default(), Stop::default());
    std::thread::scope(|scope| {
        scope.spawn(|| proving.run(&server, &*prover, &stop));
        until("all are proven", || server.proven().unwrap() == 3);
        stop.ask();
    });
    assert_eq!(*mock.asked.lock().unwrap(), [(0, 1), (1, 3)]);
}

#[test]
fn too_many_unproven_epochs_stop_updates() {
    let mock = Arc::new(Mock::default());
    let prover: Arc<dyn Prover> = mock.clone();
    let limits = ServiceOptions { max_unproven: Some(1), ..ServiceOptions::default() };
    let running = Running::start(options(), limits, Some(prover));
    running.insert("label", "1");
    running.insert("label", "2");
    let body = serde_json::to_vec(&update("label", "3")).unwrap();
    let (status, headers, problem) = running.raw("POST", "/v1/updates", "application/json", &body);
    assert_eq!((status, problem.retry_after), (429, Some(10)));
    assert!(headers.contains("retry-after") && problem.detail.contains("2 epochs wait"));
    // Look-ups go on.
    assert_eq!(running.client.key("label", None).unwrap().epoch, 2);
    mock.may.store(9, Ordering::SeqCst);
    until("they are proven", || running.client.epochs().unwrap().proven == 2);
    running.insert("label", "3");
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
    let wrong = alice.verify(&parameters(), b"alice", Some(5)).unwrap_err();
    assert!(matches!(wrong, AnswerError::Epoch { found: 6, expected: 5 }));
    let older = running.client.key("alice", Some(4)).unwrap();
    assert!(check(&KeyBody { record: older.record.clone(), ..alice.clone() }, b"alice").is_err());
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

#[test]
fn metrics_and_description() {
    let running = Running::plain();
    running.insert("secret-label", "1");
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
        "hekaton_directory_request_seconds_count{path=\"/v1/updates\"} 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("secret-label"));
    // The description names each path that the service has, and each schema that it refers to.
    let described: serde_json::Value = serde_json::from_str(&get("/openapi.json")).unwrap();
    assert_eq!(described, serde_json::to_value(open_api()).unwrap());
    let paths: Vec<&String> = described["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths.len(), 13, "{paths:?}");
    let text = described.to_string();
    for part in text.split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap();
        assert!(described["components"]["schemas"].get(name).is_some(), "{name}");
    }
}
