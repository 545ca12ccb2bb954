//! Witnesses in answers of JSON-RPC that pass on their way from a node to its caller.

use super::*;
use hekaton_intake::record::Source;
use hekaton_intake::stand_in::ForkName;
use std::sync::Mutex;

pub(super) fn call(method: &str, block: &Block) -> Vec<u8> {
    let parameters = block.parameters.to_json();
    let call =
        serde_json::json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": parameters});
    call.to_string().into_bytes()
}

/// A service in proxy mode before a node.
fn proxy(world: &World, node: StandIn) -> (Arc<JobSubmitter>, String, String) {
    let behind = world.node(node);
    let (submitter, address) = world.service(|service| {
        service.node = Some(Node::new(&behind, None, false, 10_000_000));
        service.proxy = true;
    });
    (submitter, address, behind)
}

fn kept(submitter: &JobSubmitter, block: &Block) -> Record {
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        if let Some(record) = submitter.store().record(&json_hash(block)).unwrap() {
            return record;
        }
        assert!(Instant::now() < until, "no copy is kept");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_copy_is_kept_of_witnesses_in_json_rpc() {
    let world = World::new();
    for (method, fork) in [
        ("engine_newPayloadWithWitnessV2", ForkName::Shanghai),
        ("engine_newPayloadWithWitnessV3", ForkName::Cancun),
        ("engine_newPayloadWithWitnessV4", ForkName::Prague),
        ("engine_newPayloadWithWitnessV4", ForkName::Osaka),
        ("engine_newPayloadWithWitnessV5", ForkName::Amsterdam),
    ] {
        let block = Block::new(4, 7, 200_000).in_fork(fork);
        let (submitter, address, behind) = proxy(&world, StandIn::new(block.clone()));
        let body = call(method, &block);
        let direct = post(&behind, JSON, &body);
        // The caller may allow compression, which the node must not use.
        let headers =
            [("content-type", "application/json; charset=utf-8"), ("accept-encoding", "gzip")];
        assert_eq!(send("POST", &format!("{address}/"), &headers, &body), direct, "{method}");
        let record = kept(&submitter, &block);
        assert_eq!((record.source, record.bytes), (Source::Proxy, block.witness.len() as u64));
        let witness: hekaton_orchestrator::Digest = record.witness.parse().unwrap();
        assert_eq!(submitter.store().blobs().get(&witness, 1 << 20).unwrap(), block.witness);
    }
}

/// A node that gives these answers in turn, whatever it is asked.
fn answering(world: &World, answers: Vec<Vec<u8>>) -> String {
    let (listener, address) = world.listen();
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let router = axum::Router::new().fallback(move || {
        let answer = answers.lock().unwrap().next().unwrap();
        std::future::ready(([("content-type", JSON)], answer))
    });
    let end = world.end.subscribe();
    world.runtime.spawn(async move {
        let limits = hekaton_service::Limits::new(64, Duration::from_secs(60));
        hekaton_service::accept(router, listener, limits, end).await.close().await;
    });
    address
}

/// Nothing but a valid answer with a witness to a call that asks for one is kept, and everything passes.
#[test]
fn other_answers_of_json_rpc_only_pass() {
    let world = World::new();
    let block = Block::new(4, 7, 20_000);
    let [other, last] = [5, 6].map(|seed| Block::new(seed, 7, 20_000));
    let with_witness = "engine_newPayloadWithWitnessV5";
    let answer_to =
        |node: StandIn, block: &Block| post(&world.node(node), JSON, &call(with_witness, block)).1;
    let good = answer_to(StandIn::new(block.clone()), &block);
    let end = answer_to(StandIn::new(last.clone()), &last);
    let mut invalid: serde_json::Value = serde_json::from_slice(&good).unwrap();
    assert!(invalid["result"]["witness"].is_string());
    invalid["result"]["status"] = "INVALID".into();
    let invalid = invalid.to_string().into_bytes();
    let asks = call(with_witness, &block);
    let batch = [&b"["[..], &asks, b"]"].concat();
    let batched = [&b"["[..], &good, b"]"].concat();
    let json = ("content-type", JSON);
    // The body of the compressed request is not compressed: it would be read if the header were ignored.
    let gzip = ("content-encoding", "gzip");
    for (headers, body, answer) in [
        // Each of these answers has the witness of the block, and would be kept if the call were not looked at.
        (vec![json], call("engine_newPayloadV5", &block), &good),
        (vec![json], call("engine_unknown", &block), &good),
        (vec![json], asks[..asks.len() - 1].to_vec(), &good),
        (vec![json], batch.clone(), &good),
        (vec![json], batch, &batched),
        (vec![json, gzip], asks.clone(), &good),
        (vec![("content-type", "text/plain")], asks.clone(), &good),
        // The call is right, but the block is invalid, or the witness is that of another block.
        (vec![json], asks.clone(), &invalid),
        (vec![json], call(with_witness, &other), &good),
    ] {
        let behind = answering(&world, vec![answer.clone(), end.clone()]);
        let (submitter, address) = world.service(|service| {
            service.node = Some(Node::new(&behind, None, false, 10_000_000));
            service.proxy = true;
        });
        let url = format!("{address}/");
        assert_eq!(send("POST", &url, &headers, &body), (200, answer.clone()));
        // The same service keeps what comes later, so it would have kept this as well by then.
        assert_eq!(post(&url, JSON, &call(with_witness, &last)), (200, end.clone()));
        kept(&submitter, &last);
        for block in [&block, &other] {
            let found = submitter.store().record(&json_hash(block)).unwrap();
            assert_eq!(found, None, "{}", String::from_utf8_lossy(&body[..60]));
        }
    }
}

/// The node must not compress an answer of which a copy is made. Other requests keep what they accept.
#[test]
fn only_answers_with_a_witness_must_not_be_compressed() {
    let world = World::new();
    let (listener, behind) = world.listen();
    let (heads, seen) = std::sync::mpsc::channel();
    world.runtime.spawn(async move {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 65_536];
            let count = stream.read(&mut bytes).await.unwrap();
            heads.send(String::from_utf8_lossy(&bytes[..count]).to_lowercase()).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let (_, address) = world.service(|service| {
        service.node = Some(Node::new(&behind, None, false, 1 << 20));
        service.proxy = true;
    });
    let block = Block::new(4, 7, 3_000);
    let with_witness = call("engine_newPayloadWithWitnessV5", &block);
    let batch = [&b"["[..], &with_witness, b"]"].concat();
    let json = ("content-type", JSON);
    let gzip = ("content-encoding", "gzip");
    for (path, headers, body, keeps) in [
        ("/", vec![json], &with_witness, false),
        ("/", vec![json], &call("engine_newPayloadV5", &block), true),
        ("/", vec![json], &batch, true),
        ("/", vec![], &with_witness, true),
        ("/", vec![json, gzip], &with_witness, true),
        ("/other", vec![json], &with_witness, true),
        (apis793::PATH, vec![], &with_witness, false),
    ] {
        let headers = [&headers[..], &[("accept-encoding", "br")]].concat();
        let (status, _) = send("POST", &format!("{address}{path}"), &headers, body);
        assert_eq!(status, 200);
        let head = seen.recv().unwrap();
        assert_eq!(head.contains("accept-encoding: br"), keeps, "{head}");
    }
}
