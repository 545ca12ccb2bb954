//! The service and a node over real connections: sending, fetching, passing on; every row of errors of both codecs.

mod canonical;
mod forks;
mod http;
mod ready;
mod records;
mod rpc;

use hekaton_intake::Jobs;
use hekaton_intake::Problem;
use hekaton_intake::canonical::Options;
use hekaton_intake::codec::{Status, apis773, apis793, json};
use hekaton_intake::jwt::Secret;
use hekaton_intake::node::{Codec, Node, NodeError};
use hekaton_intake::record::Record;
use hekaton_intake::service::{self, Service};
use hekaton_intake::stand_in::{Block, Debug, StandIn};
use hekaton_intake::store::WitnessStore;
use hekaton_intake::submitter::JobSubmitter;
use hekaton_witness_format::ExecutionWitness;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::sync::watch;

const OCTETS: &str = "application/octet-stream";
const JSON: &str = "application/json";

/// A world that runs a test's servers.
struct World {
    runtime: Runtime,
    end: watch::Sender<bool>,
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        Self { runtime, end: watch::channel(false).0, folder: tempfile::tempdir().unwrap() }
    }

    fn listen(&self) -> (tokio::net::TcpListener, String) {
        let bound = self.runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = format!("http://{}", bound.local_addr().unwrap());
        (bound, address)
    }

    fn node(&self, node: StandIn) -> String {
        let (listener, address) = self.listen();
        self.runtime.spawn(node.serve(listener, self.end.subscribe()));
        address
    }

    fn service(&self, change: impl FnOnce(&mut Service)) -> (Arc<JobSubmitter>, String) {
        self.service_with(Options::default(), None, change)
    }

    fn service_with(
        &self,
        options: Options,
        jobs: Option<Jobs>,
        change: impl FnOnce(&mut Service),
    ) -> (Arc<JobSubmitter>, String) {
        // Each has a folder of its own.
        let name = format!("intake-{}", std::fs::read_dir(self.folder.path()).unwrap().count());
        let submitter = JobSubmitter::new(
            Arc::new(WitnessStore::open(&self.folder.path().join(name), options).unwrap()),
            jobs,
        );
        let submitter = Arc::new(submitter);
        let mut made =
            Service::new(Arc::clone(&submitter), None, 4_000_000, std::sync::mpsc::channel().0);
        change(&mut made);
        let (listener, address) = self.listen();
        self.runtime.spawn(service::serve(Arc::new(made), listener, self.end.subscribe()));
        (submitter, address)
    }
}

/// Sends a request. Returns the status and the body.
fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> (u16, Vec<u8>) {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = ureq::http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut answer = agent.run(request.body(body).unwrap()).unwrap();
    let status = answer.status().as_u16();
    (status, answer.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap())
}

fn post(url: &str, kind: &str, body: &[u8]) -> (u16, Vec<u8>) {
    send("POST", url, &[("content-type", kind)], body)
}

fn problem(answer: (u16, Vec<u8>)) -> Problem {
    let problem: Problem = serde_json::from_slice(&answer.1)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&answer.1)));
    assert_eq!(problem.status, answer.0);
    problem
}

fn record(answer: &(u16, Vec<u8>)) -> Record {
    assert_eq!(answer.0, 202, "{}", String::from_utf8_lossy(&answer.1));
    serde_json::from_slice(&answer.1).unwrap()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn what_is_sent_is_checked_and_kept() {
    let world = World::new();
    let (submitter, address) = world.service(|_| {});
    let block = Block::new(1, 2, 100_000);
    let body = block.push();
    let url = format!("{address}/v1/witness");
    let headers = [("content-type", OCTETS), ("traceparent", "00-a-b-01")];
    let found = record(&send("POST", &url, &headers, &body));
    assert_eq!((found.number, found.bytes), (2, block.witness.len() as u64));
    assert_eq!(found.trace.as_deref(), Some("00-a-b-01"));
    let witness: hekaton_orchestrator::Digest = found.witness.parse().unwrap();
    assert_eq!(submitter.store().blobs().get(&witness, 1 << 20).unwrap(), block.witness);
    // The same witness again has the same record, accepted later; compressed, too.
    let again = record(&post(&url, OCTETS, &body));
    assert!(again.accepted >= found.accepted);
    let at = |order, again: Record| Record { accepted: found.accepted, order, ..again };
    assert_eq!((again.order, at(1, again)), (2, found.clone()));
    let headers = [("content-type", OCTETS), ("content-encoding", "gzip")];
    let again = record(&send("POST", &url, &headers, &gzip(&body)));
    assert_eq!((again.order, at(1, again.clone())), (3, found.clone()));
    let (status, read) = send("GET", &format!("{url}/{}", found.block), &[], &[]);
    assert_eq!((status, serde_json::from_slice::<Record>(&read).unwrap()), (200, again));
    // Two processes cannot use one folder.
    let second = WitnessStore::open(&world.folder.path().join("intake-0"), Options::default());
    assert!(second.unwrap_err().to_string().contains("another process uses it"));
    let (_, metrics) = send("GET", &format!("{address}/metrics"), &[], &[]);
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(metrics.contains("hekaton_intake_witnesses_total 3"), "{metrics}");
}

#[test]
fn what_is_wrong_is_said() {
    let world = World::new();
    let (_, address) = world.service(|_| {});
    let url = format!("{address}/v1/witness");
    let block = Block::new(1, 2, 20_000);
    let body = block.push();
    let zeros = gzip(&vec![0; 40_000_000]);
    assert!(zeros.len() < 400_000, "a bomb is small");
    let mut cut = body.clone();
    cut.truncate(body.len() - 1);
    let mut foreign = body.clone();
    let at = foreign.len() - 3 * 65 - 1;
    foreign[at] ^= 1;
    let gzipped = [("content-type", OCTETS), ("content-encoding", "gzip")];
    let zstd = [("content-type", OCTETS), ("content-encoding", "zstd")];
    let octets = [("content-type", OCTETS)];
    let json = [("content-type", JSON)];
    for (method, path, headers, body, status, kind, why) in [
        ("POST", "", &octets[..], &cut[..], 400, "ssz-decode-error", "public_keys"),
        ("POST", "", &octets, &[], 400, "ssz-decode-error", "expected 12 or more"),
        ("POST", "", &octets, &block.witness, 400, "ssz-decode-error", ""),
        ("POST", "", &octets, &foreign, 422, "invalid-body", "header"),
        ("POST", "", &json, &body, 400, "parse-error", "it is not JSON"),
        (
            "POST",
            "",
            &[("content-type", "text/plain")],
            &body,
            415,
            "unsupported-media-type",
            "text/plain",
        ),
        ("POST", "", &[], &body, 415, "unsupported-media-type", "''"),
        ("POST", "", &zstd, &body, 415, "unsupported-media-type", "zstd"),
        ("POST", "", &gzipped, &body, 400, "invalid-request", "not gzip"),
        ("POST", "", &gzipped, &zeros, 413, "request-too-large", "4000000"),
        ("GET", "/xyz", &[], &[], 400, "invalid-request", "64 lowercase"),
        ("GET", &format!("/{}", "0".repeat(64)), &[], &[], 404, "unknown-payload", "no witness"),
        ("POST", "/../fetch", &json, b"[]", 404, "method-not-found", "--node"),
        ("POST", "s", &octets, &[], 404, "method-not-found", "--proxy"),
    ] {
        let url = match path {
            "/../fetch" => format!("{address}/v1/fetch"),
            path => format!("{url}{path}"),
        };
        let found = problem(send(method, &url, headers, body));
        assert_eq!(found.status, status, "{found:?}");
        assert_eq!(found.kind, format!("/engine-api/errors/{kind}"), "{found:?}");
        assert!(found.detail.contains(why), "{found:?}\nand not: {why}");
    }
    // An announced length is refused before the body is sent, and an unannounced one is counted.
    let chunk = [b"100000\r\n".to_vec(), vec![0; 0x10_0000], b"\r\n".to_vec()].concat();
    for (length, chunks) in [("Content-Length: 4000001", 0), ("Transfer-Encoding: chunked", 5)] {
        let mut stream =
            std::net::TcpStream::connect(address.trim_start_matches("http://")).unwrap();
        let head = format!(
            "POST /v1/witness HTTP/1.1\r\nHost: x\r\nContent-Type: {OCTETS}\r\n{length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // The service closes the connection when it has seen enough.
        let _ = (0..chunks).try_for_each(|_| stream.write_all(&chunk));
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut answer = [0; 12];
        std::io::Read::read_exact(&mut stream, &mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 413");
    }
}

#[test]
fn a_secret_keeps_others_out() {
    let world = World::new();
    let secret = Secret::new([9; 32]);
    let (_, address) = world.service(|service| service.secret = Some(secret.clone()));
    let url = format!("{address}/v1/witness");
    let body = Block::new(1, 2, 5_000).push();
    let with = |authorization: &str| {
        send("POST", &url, &[("content-type", OCTETS), ("authorization", authorization)], &body)
    };
    assert_eq!(problem(post(&url, OCTETS, &body)).status, 401);
    let other = format!("Bearer {}", Secret::new([8; 32]).token());
    assert_eq!(problem(with(&other)).status, 401);
    let old = format!("Bearer {}", secret.token_at(1_700_000_000));
    let refused = problem(with(&old));
    assert!(refused.detail.contains("made"), "{refused:?}");
    record(&with(&format!("Bearer {}", secret.token())));
}

/// The node is asked in each of the protocols that it knows, and the best one is found.
#[test]
fn witnesses_are_fetched() {
    let world = World::new();
    let block = Block::new(4, 7, 300_000);
    let secret = Secret::new([3; 32]);
    let parameters = block.parameters.clone();
    for (has_a, has_b, best) in
        [(true, true, Codec::Apis793), (true, false, Codec::Apis773), (false, false, Codec::Json)]
    {
        let node = StandIn {
            apis773: has_a,
            apis793: has_b,
            secret: Some(secret.clone()),
            ..StandIn::new(block.clone())
        };
        let address = world.node(node);
        let node = Node::new(&address, Some(secret.clone()), false, 10_000_000);
        assert_eq!(world.runtime.block_on(node.best_codec(&parameters.envelope.fork)), best);
        let fetched = world.runtime.block_on(node.fetch(&parameters, best)).unwrap();
        let answer = fetched.answer().unwrap();
        assert_eq!(answer.witness, Some(ExecutionWitness::decode(&block.witness).unwrap()));
        // Through the service.
        let (_, service) = world.service(|service| service.node = Some(node));
        let found = record(&post(&format!("{service}/v1/fetch"), JSON, &parameters.encode()));
        assert_eq!(found.bytes, block.witness.len() as u64);
        // The body that the service is sent is malformed.
        for (body, kind) in
            [(&b"{"[..], "parse-error"), (b"[]", "invalid-body"), (b"{}", "invalid-body")]
        {
            let refused = problem(post(&format!("{service}/v1/fetch"), JSON, body));
            assert!(refused.kind.ends_with(kind), "{refused:?}");
        }
    }
}

#[test]
fn nodes_that_have_no_witness_are_reported() {
    let world = World::new();
    let block = Block::new(4, 7, 50_000);
    let parameters = block.parameters.clone();
    for codec in [Codec::Apis773, Codec::Apis793, Codec::Json] {
        let fetch = |node: StandIn, limit: u64, secret: Option<Secret>| {
            let node = Node::new(&world.node(node), secret, false, limit);
            world.runtime.block_on(node.fetch(&parameters, codec))
        };
        let good = StandIn::new(block.clone());
        let syncing = StandIn { status: Status::Syncing, ..good.clone() };
        let answered = fetch(syncing, 1 << 20, None).unwrap();
        assert_eq!(answered.answer().unwrap().status, Status::Syncing);
        let invalid =
            StandIn { status: Status::Invalid, error: Some("gas".into()), ..good.clone() };
        let answered = fetch(invalid, 1 << 20, None).unwrap();
        assert_eq!(answered.answer().unwrap().validation_error, Some("gas"));
        let guarded = StandIn { secret: Some(Secret::new([1; 32])), ..good.clone() };
        for secret in [None, Some(Secret::new([2; 32]))] {
            let refused = fetch(guarded.clone(), 1 << 20, secret);
            assert!(matches!(refused, Err(NodeError::Refused { status: 401, .. })), "{refused:?}");
        }
        let refused = fetch(good.clone(), 20_000, None);
        assert!(matches!(refused, Err(NodeError::TooLong { .. })), "{refused:?}");
        if codec != Codec::Json {
            let broken = fetch(StandIn { broken: true, ..good.clone() }, 1 << 20, None);
            assert!(matches!(broken, Err(NodeError::Refused { status: 500, .. })), "{broken:?}");
        }
    }
    let (_, address) = world.service(|service| {
        let invalid = StandIn {
            status: Status::Invalid,
            error: Some("gas".into()),
            ..StandIn::new(block.clone())
        };
        service.node = Some(Node::new(&world.node(invalid), None, false, 1 << 20));
    });
    let refused = problem(post(&format!("{address}/v1/fetch"), JSON, &parameters.encode()));
    assert_eq!((refused.status, &refused.detail[..]), (422, "the node answers INVALID: gas"));
    let nobody = Node::new("http://127.0.0.1:9", None, false, 1 << 20);
    let refused = world.runtime.block_on(nobody.fetch(&parameters, Codec::Apis773)).unwrap_err();
    assert!(refused.to_string().contains("refused"), "{refused}");
}

/// Every row of errors of both codecs, from a node that has them.
#[test]
fn rows_of_errors() {
    let world = World::new();
    let block = Block::new(4, 7, 5_000);
    let secret = Secret::new([3; 32]);
    let token = format!("Bearer {}", secret.token());
    let good = StandIn { secret: Some(secret), ..StandIn::new(block.clone()) };
    let address = world.node(good.clone());
    let broken = world.node(StandIn { broken: true, ..good });
    let call = block.parameters.encode();
    let mut old = block.parameters.clone();
    old.envelope.payload.timestamp = 1_000_000_000;
    let three = br#"[{},[],"0x00"]"#;
    let shape = br#"[{},[],"0x00",[]]"#;
    for (address, method, token, body, status, code) in [
        (&address, "POST", "Bearer x", &call[..], 401, -32_000),
        (&address, "POST", &token, b"{", 400, -32_700),
        (&address, "POST", &token, b"{}", 400, -32_602),
        (&address, "POST", &token, three, 400, -32_602),
        (&address, "POST", &token, shape, 400, -32_602),
        (&address, "POST", &token, &old.encode(), 400, -38_005),
        (&address, "PUT", &token, &call, 405, -32_601),
        (&broken, "POST", &token, &call, 500, -32_603),
    ] {
        let headers = [("content-type", JSON), ("authorization", token)];
        let (found, text) = send(method, &format!("{address}{}", apis773::PATH), &headers, body);
        let error: json::RpcError = serde_json::from_slice(&text).unwrap();
        assert_eq!((found, error.code), (status, code), "{error}");
        assert!(!error.message.is_empty());
    }
    let envelope = block.parameters.envelope.encode();
    let mut expensive = block.parameters.envelope.clone();
    expensive.payload.base_fee_per_gas[31] = 1;
    let fork = (apis793::VERSION, apis793::FORK);
    let octets = ("content-type", OCTETS);
    let allowed = ("authorization", &token[..]);
    for (address, method, path, headers, body, status, kind) in [
        (&address, "POST", apis793::PATH, vec![octets, fork], &envelope[..], 401, "unauthorized"),
        (
            &address,
            "POST",
            apis793::PATH,
            vec![octets, fork, allowed],
            b"x",
            400,
            "ssz-decode-error",
        ),
        (
            &address,
            "POST",
            apis793::PATH,
            vec![octets, allowed],
            &envelope,
            400,
            "unsupported-fork",
        ),
        (
            &address,
            "POST",
            apis793::PATH,
            vec![octets, (apis793::VERSION, "paris"), allowed],
            &envelope,
            400,
            "unsupported-fork",
        ),
        (
            &address,
            "POST",
            "/engine/v1/payloads/witness/",
            vec![octets, fork, allowed],
            &envelope,
            404,
            "method-not-found",
        ),
        (
            &address,
            "PUT",
            apis793::PATH,
            vec![octets, fork, allowed],
            &envelope,
            405,
            "method-not-found",
        ),
        (
            &address,
            "POST",
            apis793::PATH,
            vec![octets, fork, allowed],
            &vec![0; apis793::MAX_REQUEST + 1],
            413,
            "request-too-large",
        ),
        (
            &address,
            "POST",
            apis793::PATH,
            vec![("content-type", JSON), fork, allowed],
            &envelope,
            415,
            "unsupported-media-type",
        ),
        (
            &address,
            "POST",
            apis793::PATH,
            vec![octets, fork, allowed],
            &expensive.encode(),
            422,
            "invalid-body",
        ),
        (&broken, "POST", apis793::PATH, vec![octets, fork, allowed], &envelope, 500, "internal"),
    ] {
        let found = problem(send(method, &format!("{address}{path}"), &headers, body));
        assert_eq!(
            (found.status, &found.kind[..]),
            (status, &format!("/engine-api/errors/{kind}")[..]),
            "{found:?}"
        );
    }
}

/// Requests and answers pass unchanged, and a witness in them is kept.
#[test]
fn a_copy_is_kept_of_what_passes() {
    let world = World::new();
    let block = Block::new(4, 7, 500_000);
    let secret = Secret::new([3; 32]);
    let token = format!("Bearer {}", secret.token());
    let node = StandIn { secret: Some(secret), ..StandIn::new(block.clone()) };
    let behind = world.node(node);
    let (submitter, address) = world.service(|service| {
        // The service's limit is for bodies that are sent to it; the node's answers have another.
        service.node = Some(Node::new(&behind, None, false, 10_000_000));
        service.proxy = true;
    });
    let octets = vec![
        ("content-type", OCTETS),
        (apis793::VERSION, apis793::FORK),
        ("authorization", &token[..]),
    ];
    let call = block.parameters.encode();
    let envelope = block.parameters.envelope.encode();
    let as_json = vec![("content-type", JSON), ("authorization", &token[..])];
    let rpc = br#"{"jsonrpc":"2.0","id":7,"method":"engine_exchangeCapabilities","params":[[]]}"#;
    for (method, path, headers, body, kept) in [
        ("POST", "/", &as_json, &rpc[..], false),
        ("GET", "/engine/v1/capabilities", &as_json, &[], false),
        ("POST", apis773::PATH, &as_json, &call[..], true),
        ("POST", apis793::PATH, &octets, &envelope, true),
        // Errors pass, too.
        ("POST", apis773::PATH, &as_json, b"{", false),
        ("POST", apis793::PATH, &vec![], &envelope, false),
        ("POST", "/nowhere?x=1", &as_json, &[], false),
    ] {
        let direct = send(method, &format!("{behind}{path}"), headers, body);
        let passed = send(method, &format!("{address}{path}"), headers, body);
        assert_eq!(direct, passed, "{path}");
        let hash = json_hash(&block);
        let until = Instant::now() + Duration::from_secs(10);
        while kept && submitter.store().record(&hash).unwrap().is_none() {
            assert!(Instant::now() < until, "no copy is kept");
            std::thread::sleep(Duration::from_millis(10));
        }
        if kept {
            let record = submitter.store().record(&hash).unwrap().unwrap();
            assert_eq!(record.bytes, block.witness.len() as u64);
            std::fs::remove_file(
                world.folder.path().join("intake-0/blocks").join(format!("{hash}.json")),
            )
            .unwrap();
        }
    }
    // The node is away, which the answer to the caller reports.
    world.end.send_replace(true);
    let (_, address) = World::new_with(&world).service(|service| {
        service.node = Some(Node::new("http://127.0.0.1:9", None, false, 1 << 20));
        service.proxy = true;
    });
    assert_eq!(problem(send("POST", &format!("{address}/"), &as_json, rpc)).status, 502);
}

impl World {
    /// Makes another world, since the first one has ended.
    fn new_with(_: &Self) -> &'static Self {
        Box::leak(Box::new(Self::new()))
    }
}

fn json_hash(block: &Block) -> String {
    block.parameters.envelope.payload.block_hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// HTTP/2 without TLS works, as codec B recommends: to nodes, and to the service, which passes on requests of either version.
#[test]
fn http2_is_spoken() {
    let world = World::new();
    let block = Block::new(4, 7, 3_000_000);
    let behind = world.node(StandIn::new(block.clone()));
    for node_has_it in [true, false] {
        let (submitter, address) = world.service(|service| {
            service.node = Some(Node::new(&behind, None, node_has_it, 10_000_000));
            service.proxy = true;
        });
        for (address, asks_by_it) in [(&behind, true), (&address, true), (&address, false)] {
            let node = Node::new(address, None, asks_by_it, 10_000_000);
            for codec in [Codec::Apis773, Codec::Apis793, Codec::Json] {
                let fetched = world.runtime.block_on(node.fetch(&block.parameters, codec)).unwrap();
                let answer = fetched.answer().unwrap();
                assert_eq!(answer.witness, Some(ExecutionWitness::decode(&block.witness).unwrap()));
                // Several requests of a connection at the same time.
                let many = (0..8).map(|_| node.fetch(&block.parameters, codec));
                let many = world.runtime.block_on(futures_util::future::join_all(many));
                assert!(many.iter().all(Result::is_ok));
            }
        }
        let until = Instant::now() + Duration::from_secs(10);
        while submitter.store().record(&json_hash(&block)).unwrap().is_none() {
            assert!(Instant::now() < until, "no copy is kept");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Nodes report their identity in either way; Geth names the fields of headers, and has `debug_` on another port.
#[test]
fn nodes_differ() {
    let world = World::new();
    let block = Block::new(4, 7, 50_000);
    let good = StandIn::new(block.clone());
    for has_b in [true, false] {
        let address = world.node(StandIn { apis793: has_b, ..good.clone() });
        let node = Node::new(&address, None, false, 1 << 20);
        let found = world.runtime.block_on(node.identity()).unwrap();
        assert_eq!((&found.code[..], &found.name[..]), ("SI", "stand-in"));
    }
    let nobody = Node::new("http://127.0.0.1:9", None, false, 1 << 20);
    assert_eq!(world.runtime.block_on(nobody.identity()), None);
    let engine = world.node(StandIn { debug: Debug::Missing, ..good.clone() });
    let engine = Node::new(&engine, None, false, 1 << 20);
    let fetch = |node: &Node| world.runtime.block_on(node.fetch(&block.parameters, Codec::Json));
    let refused = fetch(&engine).unwrap_err().to_string();
    assert!(refused.contains("Method not found"), "{refused}");
    for debug in [Debug::Named, Debug::Encoded] {
        let behind = world.node(StandIn { debug, ..good.clone() });
        let node = engine.clone().with_debug(Node::new(&behind, None, false, 1 << 20));
        let fetched = fetch(&node).unwrap();
        let witness = fetched.answer().unwrap().witness;
        assert_eq!(witness, Some(ExecutionWitness::decode(&block.witness).unwrap()));
    }
}

/// A caller that sends nothing does not hold up others for long, and connection headers of a node are not passed on.
#[test]
fn connections_are_kept_apart() {
    let world = World::new();
    let (listener, behind) = world.listen();
    let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    world.runtime.spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 4_096];
            let count = stream.read(&mut bytes).await.unwrap();
            noted.lock().unwrap().push(String::from_utf8_lossy(&bytes[..count]).to_lowercase());
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: x-hop, close\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nX-End: 2\r\n\r\nok";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let (_, address) = world.service(|service| {
        service.node = Some(Node::new(&behind, None, false, 1 << 20));
        service.proxy = true;
    });
    let ask = |head: &str| {
        let mut stream =
            std::net::TcpStream::connect(address.trim_start_matches("http://")).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = vec![0; 4_096];
        let count = std::io::Read::read(&mut stream, &mut answer).unwrap();
        String::from_utf8_lossy(&answer[..count]).to_lowercase()
    };
    let answer = ask(
        "GET /a?b HTTP/1.1\r\nHost: x\r\nConnection: x-mine\r\nX-Mine: 1\r\nTE: trailers\r\nX-Through: 2\r\n\r\n",
    );
    assert!(answer.starts_with("http/1.1 200") && answer.contains("x-end: 2"), "{answer}");
    assert!(!answer.contains("x-hop") && !answer.contains("keep-alive"), "{answer}");
    let heads = seen.lock().unwrap().clone();
    assert!(
        heads[0].starts_with("get /a?b http/1.1") && heads[0].contains("x-through: 2"),
        "{heads:?}"
    );
    assert!(!heads[0].contains("x-mine") && !heads[0].contains("te: "), "{heads:?}");
    // Whatever the target is, it goes to the node, or nowhere.
    for target in ["OPTIONS *", "POST *", "CONNECT 127.0.0.1:80"] {
        let answer = ask(&format!("{target} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"));
        assert!(!answer.starts_with("http/1.1 200"), "{target}: {answer}");
    }
    assert_eq!(seen.lock().unwrap().len(), 1);
}
