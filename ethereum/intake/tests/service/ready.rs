//! Readiness, and places for bodies.

use super::*;
use hekaton_orchestrator::Client;
use std::net::TcpStream;

fn status(url: &str) -> (u16, String) {
    let (status, body) = send("GET", url, &[], &[]);
    (status, String::from_utf8(body).unwrap())
}

#[test]
fn readiness_tells_whether_the_orchestrator_answers() {
    let world = World::new();
    let (listener, orchestrator) = world.listen();
    let jobs = |address: &str| {
        Some(Jobs {
            client: Client::new(address, None),
            chain: "blocks".into(),
            genesis: None,
            backend: "witness".into(),
        })
    };
    let away = world.service_with(Options::default(), jobs("http://127.0.0.1:9"), |_| {}).1;
    let (found, why) = status(&format!("{away}/readyz"));
    assert!(found == 503 && why.contains("orchestrator") && !why.contains("127.0.0.1"), "{why}");
    assert_eq!(status(&format!("{away}/healthz")).0, 204);
    // It answers that there is no such chain yet; then it refuses the token.
    let says = Arc::new(std::sync::atomic::AtomicU16::new(404));
    let said = Arc::clone(&says);
    let answer = move || {
        let status = said.load(std::sync::atomic::Ordering::Relaxed);
        let body = format!(r#"{{"type":"x","title":"x","status":{status},"detail":"x"}}"#);
        std::future::ready((axum::http::StatusCode::from_u16(status).unwrap(), body))
    };
    let router = axum::Router::new().fallback(answer);
    world.runtime.spawn(async move { axum::serve(listener, router).await.unwrap() });
    let (_, there) = world.service_with(Options::default(), jobs(&orchestrator), |_| {});
    assert_eq!(status(&format!("{there}/readyz")).0, 204);
    says.store(401, std::sync::atomic::Ordering::Relaxed);
    // An answer counts for a second.
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(status(&format!("{there}/readyz")).0, 503);
    // Without an orchestrator, only storage is checked.
    let (_, alone) = world.service(|_| {});
    assert_eq!(status(&format!("{alone}/readyz")).0, 204);
    let blocks = world.folder.path().join("intake-2/blocks");
    std::fs::rename(&blocks, blocks.with_extension("away")).unwrap();
    std::thread::sleep(Duration::from_millis(1_100));
    let (found, why) = status(&format!("{alone}/readyz"));
    assert!(found == 503 && !why.contains("intake-2"), "{why}");
}

/// Many bodies that have begun and stalled leave the places to others, whether they are pushed or passed on.
#[test]
fn slow_bodies_hold_no_places() {
    let world = World::new();
    let block = Block::new(1, 2, 20_000);
    let behind = world.node(StandIn::new(block.clone()));
    let (_, address) = world.service(|service| {
        service.node = Some(Node::new(&behind, None, false, 1 << 20));
        service.proxy = true;
    });
    let host = address.trim_start_matches("http://");
    let slow: Vec<TcpStream> = (0..80)
        .map(|at| {
            let path = ["/v1/witness", "/v1/fetch", "/elsewhere"][at % 3];
            let kind = [OCTETS, JSON, JSON][at % 3];
            let mut stream = TcpStream::connect(host).unwrap();
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: 4000000\r\n\r\n["
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    // They have been seen when a connection that came later is answered.
    assert_eq!(status(&format!("{address}/healthz")).0, 204);
    // A request that waits behind that many bodies for one of eight places is refused after 20 seconds.
    record(&post(&format!("{address}/v1/witness"), OCTETS, &block.push()));
    record(&post(&format!("{address}/v1/fetch"), JSON, &block.parameters.encode()));
    let passed = post(&format!("{address}{}", apis773::PATH), JSON, &block.parameters.encode());
    assert_eq!(passed.0, 200);
    // A body that never ends is given up, with the reason.
    let mut last = slow.into_iter().next_back().unwrap();
    last.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
    let mut answer = [0; 12];
    std::io::Read::read_exact(&mut last, &mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}
