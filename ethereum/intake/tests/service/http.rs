//! Tests of the rules of HTTP for names and headers.

use super::*;
use std::io::Read;

/// Sends a request as it is written. Returns the answer's head, in lowercase, and its body.
fn ask(address: &str, request: &[u8]) -> (String, String) {
    let mut stream = std::net::TcpStream::connect(address.trim_start_matches("http://")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    (head.to_lowercase(), body.to_owned())
}

#[test]
fn names_have_no_case() {
    let world = World::new();
    let secret = Secret::new([9; 32]);
    let (_, address) = world.service(|service| service.secret = Some(secret.clone()));
    let url = format!("{address}/v1/witness");
    let body = Block::new(1, 2, 5_000).push();
    let zipped = gzip(&body);
    for (scheme, coding, body) in [
        ("Bearer ", "", &body),
        ("bearer ", "IDENTITY", &body),
        ("BEARER  ", "Gzip", &zipped),
        ("bEARER ", "X-GZIP", &zipped),
        ("Bearer ", " gzip , identity", &zipped),
    ] {
        let token = format!("{scheme}{}", secret.token());
        let headers = [
            ("content-type", "Application/Octet-Stream; x=y"),
            ("authorization", &token),
            ("content-encoding", coding),
        ];
        record(&send("POST", &url, &headers, body));
    }
}

#[test]
fn refusals_say_what_to_do() {
    let world = World::new();
    let secret = Secret::new([9; 32]);
    let (_, address) = world.service(|service| service.secret = Some(secret.clone()));
    let token = secret.token();
    let other = Secret::new([8; 32]).token();
    let close = "host: x\r\nconnection: close\r\n";
    let post = |path: &str, more: &str| {
        format!("POST {path} HTTP/1.1\r\n{close}content-length: 2\r\n{more}\r\n{{}}")
    };
    let octets = format!("content-type: {OCTETS}\r\nauthorization: Bearer {token}\r\n");
    for (request, status, header) in [
        (post("/v1/witness", ""), 401, "www-authenticate: bearer"),
        (
            post("/v1/witness", &format!("authorization: Bearer {other}\r\n")),
            401,
            "www-authenticate: bearer error=\"invalid_token\"",
        ),
        (
            post("/v1/witness", &format!("{octets}content-encoding: br\r\n")),
            415,
            "accept-encoding: gzip",
        ),
        (format!("PUT /v1/witness HTTP/1.1\r\n{close}\r\n"), 405, "allow: get,head,post"),
        (format!("DELETE /v1/fetch HTTP/1.1\r\n{close}\r\n"), 405, "allow: post"),
        (post("/readyz", ""), 405, "allow: get,head"),
        (
            format!("GET /v1/witness/%ff HTTP/1.1\r\nauthorization: Bearer {token}\r\n{close}\r\n"),
            400,
            "content-type: application/problem+json",
        ),
    ] {
        let (head, body) = ask(&address, request.as_bytes());
        assert!(head.starts_with(&format!("http/1.1 {status}")), "{request}\n{head}");
        assert!(head.contains(header), "{header} is not in {head}");
        assert!(head.contains("content-type: application/problem+json"), "{head}");
        let problem: Problem = serde_json::from_str(&body).unwrap();
        assert_eq!(problem.status, status);
        assert!(!problem.detail.is_empty());
    }
    let (head, _) = ask(&address, format!("GET /metrics HTTP/1.1\r\n{close}\r\n").as_bytes());
    assert!(head.contains("content-type: application/openmetrics-text"), "{head}");
}

/// Pages of other sites cannot send witnesses, nor requests that pass on to the node.
#[test]
fn pages_of_other_sites_are_refused() {
    let world = World::new();
    let (_, address) = world.service(|_| {});
    let body = Block::new(1, 2, 5_000).push();
    for (path, mark) in [
        ("/v1/witness", ("origin", "https://example.com")),
        ("/v1/witness", ("sec-fetch-site", "cross-site")),
        ("/", ("sec-fetch-site", "same-site")),
    ] {
        let headers = [("content-type", OCTETS), mark];
        let refused = problem(send("POST", &format!("{address}{path}"), &headers, &body));
        assert_eq!((refused.status, &refused.kind[..]), (403, "/engine-api/errors/origin"));
    }
    record(&post(&format!("{address}/v1/witness"), OCTETS, &body));
}

/// Errors of the server's disk are logged, and not reported to callers.
#[test]
fn answers_name_no_files() {
    let world = World::new();
    let (_, address) = world.service(|_| {});
    let block = Block::new(1, 2, 5_000);
    let found = record(&post(&format!("{address}/v1/witness"), OCTETS, &block.push()));
    let folder = world.folder.path().join("intake-0/blocks");
    std::fs::write(folder.join(format!("{}.json", found.block)), "{").unwrap();
    let broken = problem(send("GET", &format!("{address}/v1/witness/{}", found.block), &[], &[]));
    assert_eq!((broken.status, broken.detail.contains('/')), (500, false), "{broken:?}");
}
