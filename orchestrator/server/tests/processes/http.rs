//! The service as HTTP and its own description specify it: every operation, every example, every status.

use super::support::*;
use hekaton_orchestrator::{Client, Digest};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A description of the API, with what was seen of it.
struct Described {
    doc: Value,
    seen: BTreeSet<(String, String, u16)>,
}

/// A request that the examples of the description make up.
struct Example {
    path: String,
    kind: Option<String>,
    body: Vec<u8>,
}

impl Described {
    fn operations(&self) -> Vec<(String, String)> {
        let paths = self.doc["paths"].as_object().unwrap().iter();
        let all = paths.flat_map(|(path, item)| {
            item.as_object().unwrap().keys().map(move |method| (method.clone(), path.clone()))
        });
        all.collect()
    }

    fn operation(&self, method: &str, path: &str) -> &Value {
        let operation = &self.doc["paths"][path][method];
        assert!(operation.is_object(), "{method} {path} is not described");
        operation
    }

    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(name) => {
                let name = name.strip_prefix("#/components/schemas/").unwrap();
                let found = &self.doc["components"]["schemas"][name];
                assert!(found.is_object(), "there is no schema {name}");
                self.resolve(found)
            }
            None => schema,
        }
    }

    fn example(&self, method: &str, path: &str) -> Example {
        let operation = self.operation(method, path);
        let mut url = path.to_owned();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] == "path" {
                let example = parameter["example"].as_str();
                let example = example.unwrap_or_else(|| panic!("{path}: no example of {name}"));
                url = url.replace(&format!("{{{name}}}"), example);
            }
        }
        let Some(content) = operation["requestBody"]["content"].as_object() else {
            return Example { path: url, kind: None, body: vec![] };
        };
        let [(kind, content)] = content.iter().collect::<Vec<_>>()[..] else { panic!("{path}") };
        let schema = self.resolve(&content["schema"]);
        let example =
            [&content["example"], &schema["example"]].into_iter().find(|it| !it.is_null());
        let example = example.unwrap_or_else(|| panic!("{method} {path}: no example of the body"));
        let body = match example {
            Value::String(text) => text.clone().into_bytes(),
            other => other.to_string().into_bytes(),
        };
        Example { path: url, kind: Some(kind.clone()), body }
    }

    /// Returns a schema with its parts merged.
    fn flat(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        let Some(parts) = schema["allOf"].as_array() else { return schema.clone() };
        let (mut properties, mut required) = (serde_json::Map::new(), vec![]);
        for part in parts.iter().map(|part| self.flat(part)) {
            properties.extend(part["properties"].as_object().unwrap().clone());
            required.extend(part["required"].as_array().unwrap().clone());
        }
        serde_json::json!({ "type": "object", "properties": properties, "required": required })
    }

    /// Lists the ways in which a value violates a schema.
    fn violations(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let schema = &self.flat(schema);
        let mut found = vec![];
        let types: Vec<&str> = match &schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => vec![],
        };
        let is = |kind: &&str| match *kind {
            "object" => value.is_object(),
            "array" => value.is_array(),
            "string" => value.is_string(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            other => panic!("{at}: the type {other}"),
        };
        if !types.is_empty() && !types.iter().any(is) {
            found.push(format!("{at}: {value} is none of {types:?}"));
        }
        if let Some(several) = schema["oneOf"].as_array()
            && several.iter().filter(|it| self.violations(it, value, at).is_empty()).count() != 1
        {
            found.push(format!("{at}: {value} is not one of {several:?}"));
        }
        if let Some(items) = value.as_array() {
            let each = items.iter().flat_map(|it| self.violations(&schema["items"], it, at));
            found.extend(each);
        }
        if let Some(fields) = value.as_object() {
            for name in schema["required"].as_array().into_iter().flatten() {
                if !fields.contains_key(name.as_str().unwrap()) {
                    found.push(format!("{at}: there is no {name}"));
                }
            }
            for (name, field) in fields {
                let at = format!("{at}.{name}");
                match (&schema["properties"][name], &schema["additionalProperties"]) {
                    (Value::Null, Value::Bool(false)) => found.push(format!("{at}: not described")),
                    // A schema without properties does not restrict its fields.
                    (Value::Null, Value::Null) if schema["properties"].is_object() => {
                        found.push(format!("{at}: not described"));
                    }
                    (Value::Null, rest @ Value::Object(_)) => {
                        found.extend(self.violations(rest, field, &at));
                    }
                    (Value::Null, _) => {}
                    (schema, _) => found.extend(self.violations(schema, field, &at)),
                }
            }
        }
        found
    }

    /// Checks an answer against the description.
    fn check(&mut self, method: &str, path: &str, answer: &Answer) {
        let status = answer.status;
        self.seen.insert((method.into(), path.into(), status));
        let responses = &self.operation(method, path)["responses"];
        let response = &responses[status.to_string()];
        assert!(
            response.is_object(),
            "{method} {path}: {status} is not described: {}",
            answer.body
        );
        let kind = answer.header("content-type").map(|it| it.split(';').next().unwrap().trim());
        let Some(content) = response["content"].as_object() else {
            assert_eq!(answer.body, "", "{method} {path}: {status} has a body");
            return;
        };
        let kind = kind.unwrap_or_else(|| panic!("{method} {path}: {status} without a body"));
        let content = content.get(kind);
        let content = content.unwrap_or_else(|| panic!("{method} {path}: {status} as {kind}"));
        if kind.ends_with("json") {
            let found = self.violations(&content["schema"], &answer.json(), "");
            assert!(found.is_empty(), "{method} {path}: {found:?} in {}", answer.body);
        }
        if [429, 503, 507].contains(&status) {
            assert!(answer.header("retry-after").is_some(), "{method} {path}: {:?}", answer.head);
        }
        if status == 401 {
            let how = answer.header("www-authenticate").unwrap_or_default();
            assert!(how.starts_with("Bearer"), "{method} {path}: {how}");
        }
    }
}

fn described(address: &str) -> Described {
    Described { doc: get(address, "/openapi.json").json(), seen: BTreeSet::new() }
}

/// The method and path as described, the expected status, the header with the token, the path that is sent, and the body.
type Try<'a> = (&'a str, &'a str, u16, (&'a str, &'a str), String, Vec<u8>);

/// A back-end that fails for as long as one file is there, and waits where another one is.
fn place(more: &str) -> Place {
    let place = Place::new(more);
    let script = format!(
        "if [ -e '{}' ]; then sleep 1; exit 3; fi; if [ -e '{}' ]; then sleep 600; fi; cp \"$1\" \"$2\"",
        place.path("fails").display(),
        place.path("waits").display(),
    );
    std::fs::write(place.path("prover"), script).unwrap();
    std::fs::write(place.path("verifier"), "exit 0").unwrap();
    place
}

#[test]
fn all_examples_are_accepted_and_all_answers_are_as_described() {
    let place = place("");
    let service = place.serve(&[]);
    let at = service.address.clone();
    wait("it is ready", || service.get("/readyz").status == 204);
    let mut api = described(&at);
    let mut done = BTreeSet::new();
    let mut send = |api: &mut Described, method: &str, path: &str, wanted: u16| {
        let Example { path: url, kind, body } = api.example(method, path);
        let head: Vec<_> = kind.iter().map(|kind| ("content-type", kind.as_str())).collect();
        let answer = ask(&at, &method.to_uppercase(), &url, &head, &body);
        assert_eq!(answer.status, wanted, "{method} {url}: {}", answer.body);
        api.check(method, path, &answer);
        done.insert((method.to_owned(), path.to_owned()));
        answer
    };
    let job = |state: &str| {
        let path = described(&at).example("get", "/v1/jobs/{job}").path;
        wait(state, || get(&at, &path).json()["state"] == state);
    };
    for (method, path, status) in [
        ("put", "/v1/blobs/{digest}", 200),
        ("get", "/v1/blobs/{digest}", 200),
        ("post", "/v1/workflows", 200),
        ("put", "/v1/chains/{chain}", 200),
        ("get", "/v1/chains/{chain}", 200),
    ] {
        send(&mut api, method, path, status);
    }
    std::fs::write(place.path("fails"), "").unwrap();
    send(&mut api, "post", "/v1/jobs", 201);
    send(&mut api, "post", "/v1/jobs", 200);
    job("dead");
    send(&mut api, "get", "/v1/chains/{chain}/dead", 200);
    send(&mut api, "post", "/v1/jobs/{job}/requeue", 200);
    job("dead");
    send(&mut api, "delete", "/v1/jobs/{job}", 200);
    send(&mut api, "post", "/v1/jobs/{job}/requeue", 200);
    job("dead");
    send(&mut api, "post", "/v1/jobs/{job}/skip", 204);
    send(&mut api, "post", "/v1/chains/{chain}/revert", 200);
    std::fs::remove_file(place.path("fails")).unwrap();
    send(&mut api, "post", "/v1/jobs", 201);
    job("done");
    wait("it is published", || {
        !get(&at, "/v1/chains/main/proofs").json()["proofs"].as_array().unwrap().is_empty()
    });
    for (method, path, status) in [
        ("get", "/v1/jobs/{job}", 200),
        ("get", "/v1/jobs", 200),
        ("get", "/v1/chains/{chain}/proofs", 200),
        ("get", "/healthz", 200),
        ("get", "/readyz", 204),
        ("get", "/metrics", 200),
        ("get", "/openapi.json", 200),
    ] {
        send(&mut api, method, path, status);
    }
    // Events end with the process.
    let events = begin(&at, "GET", "/v1/events", &[], b"").unwrap();
    events.peek(&mut [0]).unwrap();
    send(&mut api, "post", "/v1/drain", 204);
    let answer = finish(events);
    assert_eq!(answer.status, 200);
    api.check("get", "/v1/events", &answer);
    done.insert(("get".into(), "/v1/events".into()));
    let all: BTreeSet<_> = api.operations().into_iter().collect();
    assert_eq!(done, all, "each operation is tried");
}

/// Every status of the description is provoked, and no other is answered.
#[test]
fn every_status_is_described_and_every_one_described_is_answered() {
    let digest = |token: &str| Digest::of(token.as_bytes());
    let place = place(&format!(
        "[tenants.alice]\ntoken_digest = \"{}\"\nblob_bytes = 200\nbytes_per_day = 300\n\
         [tenants.bob]\ntoken_digest = \"{}\"\njobs = 1\nchains = 1\n",
        digest("alice"),
        digest("bob"),
    ));
    let service = place.serve(&[]);
    let at = service.address.clone();
    wait("it is ready", || service.get("/readyz").status == 204);
    let mut api = described(&at);
    let alice = ("authorization", "Bearer alice");
    let bob = ("authorization", "bearer bob");
    let none = Digest::of(b"none").to_string();
    // The statuses that all operations have in common.
    for (method, path) in api.operations() {
        let Example { path: url, kind, body } = api.example(&method, &path);
        let verb = method.to_uppercase();
        let kind = kind.unwrap_or_else(|| "text/plain".into());
        let head = [alice, ("content-type", kind.as_str())];
        let with = |more: (&'static str, &'static str)| [&head[..], &[more]].concat();
        let mut tries = vec![
            (403, url.clone(), with(("origin", "http://evil.example")), body.clone()),
            (415, url.clone(), with(("content-encoding", "GZIP")), body.clone()),
        ];
        if api.operation(&method, &path)["responses"]["401"].is_object() {
            tries.push((401, url.clone(), vec![("content-type", &kind)], body.clone()));
            let other = ("authorization", "Bearer other");
            tries.push((401, url.clone(), vec![other, ("content-type", &kind)], body.clone()));
            let basic = ("authorization", "Basic YTpi");
            tries.push((401, url.clone(), vec![basic, ("content-type", &kind)], body.clone()));
        }
        if path.contains('{') {
            let (before, rest) = path.split_once('{').unwrap();
            let after = rest.split_once('}').unwrap().1;
            tries.push((400, format!("{before}%20!{after}"), head.to_vec(), body.clone()));
            tries.push((400, format!("{before}%ff{after}"), head.to_vec(), body.clone()));
        }
        if path.ends_with("proofs")
            || path.ends_with("dead")
            || (method == "get" && path == "/v1/jobs/{job}")
        {
            tries.push((400, format!("{url}?more=1"), head.to_vec(), body.clone()));
        }
        if kind == "application/json" {
            tries.push((400, url.clone(), head.to_vec(), b"{\"more\":1}".to_vec()));
            tries.push((
                415,
                url.clone(),
                vec![alice, ("content-type", "text/plain")],
                body.clone(),
            ));
        }
        if kind == "application/json" || kind == "application/toml" {
            tries.push((413, url.clone(), head.to_vec(), vec![b'1'; (1 << 20) + 1]));
            tries.push((400, url.clone(), head.to_vec(), vec![0xff]));
        }
        for (wanted, url, head, body) in tries {
            let answer = ask(&at, &verb, &url, &head, &body);
            assert_eq!(answer.status, wanted, "{method} {url} {head:?}: {}", answer.body);
            api.check(&method, &path, &answer);
        }
    }
    // The statuses of single operations, in an order in which they can be provoked.
    let text = |value: Value| value.to_string().into_bytes();
    let strict = text(serde_json::json!({ "order": "strict", "genesis": "genesis" }));
    let free = text(serde_json::json!({ "order": "none" }));
    let example: Value = serde_json::from_slice(&api.example("post", "/v1/jobs").body).unwrap();
    let job = |change: Value| {
        let mut body = example.clone();
        body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        text(body)
    };
    let (first, rival) = (job(serde_json::json!({})), job(serde_json::json!({ "id": "rival" })));
    let misfit = job(serde_json::json!({ "inputs": { "input": [none] } }));
    let nothing = |chain: &str| format!("/v1/jobs/{chain}.b.{none}");
    let blob = api.example("put", "/v1/blobs/{digest}");
    let bundles = |of: &str, workflow: &str| {
        text(serde_json::json!({
            "order": "strict", "genesis": "g",
            "bundles": { "of": of, "blocks": 2, "workflow": workflow, "input": "chunks" },
        }))
    };
    let workflow = api.example("post", "/v1/workflows").body;
    std::fs::write(place.path("fails"), "").unwrap();
    let mut tries: Vec<Try<'_>> = vec![
        ("put", "/v1/blobs/{digest}", 200, bob, blob.path.clone(), blob.body.clone()),
        ("put", "/v1/blobs/{digest}", 413, alice, format!("/v1/blobs/{none}"), vec![0; 201]),
        ("get", "/v1/blobs/{digest}", 404, alice, format!("/v1/blobs/{none}"), vec![]),
        ("post", "/v1/workflows", 422, alice, "/v1/workflows".into(), b"stages = 1".to_vec()),
        ("get", "/v1/chains/{chain}", 404, bob, "/v1/chains/main".into(), vec![]),
        ("get", "/v1/chains/{chain}/proofs", 404, bob, "/v1/chains/main/proofs".into(), vec![]),
        ("get", "/v1/chains/{chain}/dead", 404, bob, "/v1/chains/main/dead".into(), vec![]),
        ("post", "/v1/jobs", 404, bob, "/v1/jobs".into(), first.clone()),
        ("put", "/v1/chains/{chain}", 404, bob, "/v1/chains/b".into(), bundles("main", &none)),
        ("put", "/v1/chains/{chain}", 200, bob, "/v1/chains/main".into(), strict.clone()),
        ("put", "/v1/chains/{chain}", 409, bob, "/v1/chains/main".into(), free.clone()),
        ("get", "/v1/chains/{chain}/dead", 400, bob, "/v1/chains/main/dead?block=1".into(), vec![]),
        ("put", "/v1/chains/{chain}", 429, bob, "/v1/chains/other".into(), free.clone()),
        ("post", "/v1/jobs", 422, bob, "/v1/jobs".into(), misfit),
        ("post", "/v1/jobs", 201, bob, "/v1/jobs".into(), first.clone()),
        ("post", "/v1/jobs", 409, bob, "/v1/jobs".into(), rival),
        ("get", "/v1/jobs/{job}", 404, bob, nothing("main"), vec![]),
        ("delete", "/v1/jobs/{job}", 404, bob, nothing("main"), vec![]),
        ("post", "/v1/jobs/{job}/requeue", 404, bob, nothing("main") + "/requeue", vec![]),
        ("post", "/v1/jobs/{job}/skip", 404, bob, nothing("main") + "/skip", vec![]),
    ];
    let revert = |to: &str| text(serde_json::json!({ "to": to, "block": 7 }));
    let at_revert = "/v1/chains/{chain}/revert";
    tries.extend([
        ("post", at_revert, 404, bob, "/v1/chains/none/revert".into(), revert("genesis")),
        ("post", at_revert, 400, bob, "/v1/chains/main/revert".into(), revert("never")),
    ]);
    let run = |api: &mut Described, tries: Vec<Try<'_>>| {
        for (method, path, wanted, who, url, body) in tries {
            let kind = api.example(method, path).kind.unwrap_or_else(|| "text/plain".into());
            let head = [who, ("content-type", kind.as_str())];
            let answer = ask(&at, &method.to_uppercase(), &url, &head, &body);
            assert_eq!(answer.status, wanted, "{method} {url}: {}", answer.body);
            api.check(method, path, &answer);
        }
    };
    run(&mut api, tries);
    let known = ask(&at, "POST", "/v1/jobs", &[bob, JSON], &first).json();
    let handle = format!("/v1/jobs/{}", known["job"].as_str().unwrap());
    let state = |wanted: &str| {
        let read = || ask(&at, "GET", &handle, &[bob], b"").json()["state"] == wanted;
        wait(wanted, read);
    };
    state("dead");
    let dead = |after: &str| {
        let answer = ask(&at, "GET", &format!("/v1/chains/main/dead{after}"), &[bob], b"");
        answer.json()["jobs"].as_array().unwrap().len()
    };
    assert_eq!(["", "?block=0&id=x", "?block=1&id=b1"].map(dead), [1, 1, 0]);
    // A client that asks whether a blob is there may submit its job next, so it must not be removed as unused.
    let digest = blob.path.rsplit('/').next().unwrap();
    let file = place.path("data").join("blobs").join(&digest[..2]).join(digest);
    let long_ago = SystemTime::now() - Duration::from_secs(48 * 3_600);
    std::fs::File::open(&file).unwrap().set_modified(long_ago).unwrap();
    assert_eq!(ask(&at, "HEAD", &blob.path, &[bob], b"").status, 200);
    let touched = std::fs::metadata(&file).unwrap().modified().unwrap();
    assert!(touched > long_ago + Duration::from_secs(24 * 3_600));
    let requeue = "/v1/jobs/{job}/requeue";
    std::fs::remove_file(place.path("fails")).unwrap();
    let known = Digest::of(&[1; 150]).to_string();
    let more = Digest::of(&[2; 151]).to_string();
    run(
        &mut api,
        vec![
            ("put", "/v1/blobs/{digest}", 200, alice, format!("/v1/blobs/{known}"), vec![1; 150]),
            ("put", "/v1/blobs/{digest}", 429, alice, format!("/v1/blobs/{more}"), vec![2; 151]),
            ("post", "/v1/workflows", 429, alice, "/v1/workflows".into(), workflow),
        ],
    );
    let listeners: Vec<_> = (0..16)
        .map(|_| {
            use std::io::{Read, Write};
            let host = at.trim_start_matches("http://");
            let mut stream = std::net::TcpStream::connect(host).unwrap();
            let head = format!(
                "GET /v1/events HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer alice\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).unwrap();
            stream.read_exact(&mut [0; 16]).unwrap();
            stream
        })
        .collect();
    run(&mut api, vec![("get", "/v1/events", 429, alice, "/v1/events".into(), vec![])]);
    drop(listeners);
    let tag = format!("\"{}\"", Digest::of(&blob.body));
    for tags in [tag.clone(), format!("\"x\", W/{tag}"), "*".into()] {
        let head = [alice, ("if-none-match", tags.as_str())];
        let answer = ask(&at, "GET", &blob.path, &head, b"");
        assert_eq!((answer.status, answer.header("etag")), (304, Some(tag.as_str())));
        api.check("get", "/v1/blobs/{digest}", &answer);
    }
    // Published jobs cannot be cancelled, requeued or skipped.
    let client = Client::new(&at, Some("bob".into()));
    wait("the first one is published", || {
        let answer = ask(&at, "POST", &format!("{handle}/requeue"), &[bob], b"");
        [200, 409, 429].contains(&answer.status) && published(&client) == ["b1"]
    });
    run(
        &mut api,
        vec![
            ("delete", "/v1/jobs/{job}", 409, bob, handle.clone(), vec![]),
            ("post", requeue, 409, bob, format!("{handle}/requeue"), vec![]),
            ("post", "/v1/jobs/{job}/skip", 409, bob, format!("{handle}/skip"), vec![]),
        ],
    );
    // One open job is as many as there may be: the second one, behind one that is dead.
    std::fs::write(place.path("fails"), "").unwrap();
    let block = |id: &str, parent: &str, block: u64| {
        job(serde_json::json!({ "id": id, "parent": parent, "block": block }))
    };
    let shows = |id: &str, state: &str| {
        let jobs = ask(&at, "GET", "/v1/jobs", &[bob], b"").json();
        let mut jobs = jobs["jobs"].as_array().unwrap().iter();
        jobs.any(|job| job["id"] == id && job["state"] == state)
    };
    let dead = ask(&at, "POST", "/v1/jobs", &[bob, JSON], &block("b8", "b1", 8));
    assert_eq!(dead.status, 201, "{}", dead.body);
    wait("one is dead", || shows("b8", "dead"));
    std::fs::remove_file(place.path("fails")).unwrap();
    std::fs::write(place.path("waits"), "").unwrap();
    let open = ask(&at, "POST", "/v1/jobs", &[bob, JSON], &block("b9", "b8", 9));
    assert_eq!(open.status, 201, "{}", open.body);
    wait("one is open", || shows("b9", "live"));
    let again = format!("/v1/jobs/{}/requeue", dead.json()["job"].as_str().unwrap());
    run(
        &mut api,
        vec![
            ("post", "/v1/jobs", 429, bob, "/v1/jobs".into(), block("b10", "b9", 10)),
            ("post", requeue, 429, bob, again, vec![]),
        ],
    );

    // The remaining statuses need a full disk, a server that is away, or a blob that was removed: `disk.rs`, `nats.rs`, and
    // `blobs_are_held_before_a_record_names_them` in the library.
    let elsewhere =
        [("put", "/v1/blobs/{digest}", 507), ("get", "/readyz", 503), ("post", requeue, 422)];
    let mut missing = vec![];
    for (method, path) in api.operations() {
        let statuses = api.operation(&method, &path)["responses"].as_object().unwrap().keys();
        for status in statuses.filter_map(|status| status.parse::<u16>().ok()) {
            let is_seen = api.seen.contains(&(method.clone(), path.clone(), status));
            let is_elsewhere = elsewhere.contains(&(method.as_str(), path.as_str(), status));
            if status >= 300 && !is_seen && !is_elsewhere {
                missing.push((method.clone(), path.clone(), status));
            }
        }
    }
    assert_eq!(missing, [], "described, and never answered");
}

#[test]
fn requests_are_understood_as_http_says() {
    let token = Digest::of(b"secret");
    let place = Place::new(&format!("[tenants.alice]\ntoken_digest = \"{token}\"\n"));
    let service = place.serve(&["--slots", "0"]);
    let at = &service.address;
    let path = "/v1/jobs";
    for (value, status) in [
        ("Bearer secret", 200),
        ("bearer secret", 200),
        ("BEARER   secret ", 200),
        ("Bearer", 401),
        ("Bearersecret", 401),
        ("Basic secret", 401),
        ("Bearer SECRET", 401),
    ] {
        let answer = ask(at, "GET", path, &[("authorization", value)], b"");
        assert_eq!(answer.status, status, "{value}: {}", answer.body);
        let how = answer.header("www-authenticate");
        assert_eq!(how.is_some(), status == 401, "{value}: {how:?}");
    }
    let wrong = ask(at, "GET", path, &[("authorization", "Bearer x")], b"");
    assert_eq!(wrong.header("www-authenticate"), Some("Bearer error=\"invalid_token\""));
    let alice = ("authorization", "bearer secret");
    // HEAD is GET without a body, and an existing path reports the methods that it allows.
    for path in ["/healthz", "/metrics", "/openapi.json", "/", "/live.js", "/v1/jobs"] {
        let (get, head) =
            (ask(at, "GET", path, &[alice], b""), ask(at, "HEAD", path, &[alice], b""));
        assert_eq!((get.status, head.status, head.body.as_str()), (200, 200, ""), "{path}");
        assert_eq!(get.header("content-type"), head.header("content-type"), "{path}");
    }
    for (method, path, allow) in [
        ("PATCH", "/v1/jobs", &["GET", "HEAD", "POST"][..]),
        ("DELETE", "/v1/chains/main", &["GET", "HEAD", "PUT"]),
        ("HEAD", "/v1/workflows", &["POST"]),
        ("OPTIONS", "/v1/workflows", &["POST"]),
        ("POST", "/healthz", &["GET", "HEAD"]),
    ] {
        let answer = ask(at, method, path, &[alice], b"");
        assert_eq!(answer.status, 405, "{method} {path}");
        let found: BTreeSet<&str> = answer.header("allow").unwrap().split(',').collect();
        assert_eq!(found, allow.iter().copied().collect(), "{method} {path}");
    }
    // Media types and codings are the same in capital letters, and with parameters.
    let body = b"{\"order\":\"strict\",\"genesis\":\"genesis\"}";
    for kind in ["application/json", "Application/JSON", "application/json; charset=UTF-8"] {
        let head = [alice, ("content-type", kind), ("content-encoding", "Identity")];
        let answer = ask(at, "PUT", "/v1/chains/main", &head, body);
        assert_eq!(answer.status, 200, "{kind}: {}", answer.body);
    }
    for coding in ["gzip", "GZIP", "identity, br"] {
        let head = [alice, JSON, ("content-encoding", coding)];
        let answer = ask(at, "PUT", "/v1/chains/main", &head, body);
        assert_eq!(answer.status, 415, "{coding}: {}", answer.body);
        assert_eq!(answer.header("accept-encoding"), Some("identity"));
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
    for path in ["/none", "/v1/chains/%ff"] {
        let answer = ask(at, "GET", path, &[alice], b"");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{path}");
    }
}

/// Small blobs are verified before anything is sent; a large one breaks off before its end. Sent again, both are whole.
#[test]
fn damaged_blobs_are_not_served() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let at = &service.address;
    let contents = [vec![1; 100], vec![2; (4 << 20) + 1], vec![3; 9 << 20]];
    for content in contents {
        let digest = Digest::of(&content).to_string();
        let path = format!("/v1/blobs/{digest}");
        assert_eq!(put(at, &path, &content).status, 200);
        assert_eq!(get(at, &path).bytes, content);
        let stored = place.path("data/blobs").join(&digest[..2]).join(&digest);
        for at_byte in [0, content.len() - 1] {
            let mut damaged = content.clone();
            damaged[at_byte] ^= 1;
            std::fs::write(&stored, &damaged).unwrap();
            let answer = get(at, &path);
            match answer.status {
                200 => {
                    let length: usize = answer.header("content-length").unwrap().parse().unwrap();
                    assert_eq!(length, content.len());
                    assert!(answer.bytes.len() < length, "it breaks off");
                }
                status => {
                    assert_eq!(status, 404, "{}", answer.body);
                    assert!(answer.body.contains("send it again"), "{}", answer.body);
                    assert!(!answer.body.contains("/blobs"), "{}", answer.body);
                    assert_eq!(ask(at, "HEAD", &path, &[], b"").status, 404);
                }
            }
            let digest: Digest = digest.parse().unwrap();
            service.client().get_blob(&digest, &place.path("got")).unwrap_err();
            assert!(!place.path("got").exists());
            assert!(place.errors().contains("is damaged"), "{}", place.errors());
            assert_eq!(put(at, &path, &content).status, 200);
            assert_eq!(get(at, &path).bytes, content);
        }
    }
}

/// Answers to tenants do not name files of the server, and a log in a file has no colors.
#[test]
fn answers_name_no_files_and_logs_have_no_colors() {
    let place = Place::new("");
    // The prover fails, and prints all of its arguments.
    let script = "echo \"cannot read $1 for $2\" >&2; exit 3";
    std::fs::write(place.path("prover"), script).unwrap();
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    let job = submit(&client, &place, 1, "0 one");
    let status = ended(&client, &job);
    let reason = status.reason.unwrap();
    assert!(reason.contains("cannot read blobs/"), "{reason}");
    let folder = place.folder.path().display().to_string();
    assert!(!reason.contains(&folder), "{reason}");
    assert!(place.errors().contains(&folder), "the log has it: {}", place.errors());
    // The files of the service are gone.
    for name in ["orchestrator.db", "orchestrator.db-wal", "orchestrator.db-shm"] {
        std::fs::remove_file(place.path("data").join(name)).unwrap();
    }
    std::fs::remove_dir_all(place.path("data/blobs")).unwrap();
    std::fs::write(place.path("data/blobs"), "").unwrap();
    wait("it is not ready", || service.get("/readyz").status == 503);
    let body = serde_json::to_vec(&body(2, &Digest::of(b"x").to_string())).unwrap();
    let answers = [
        service.get("/readyz"),
        service.get("/healthz"),
        service.get(&format!("/v1/blobs/{}", Digest::of(b"x"))),
        put(&service.address, &format!("/v1/blobs/{}", Digest::of(b"x")), b"x"),
        ask(&service.address, "POST", "/v1/jobs", &[JSON], &body),
        ask(&service.address, "PUT", "/v1/chains/new", &[JSON], b"{\"order\":\"none\"}"),
    ];
    let statuses: BTreeMap<u16, &Answer> = answers.iter().map(|it| (it.status, it)).collect();
    assert!(statuses.keys().any(|status| *status >= 500), "{statuses:?}");
    for answer in &answers {
        assert!(!answer.body.contains(&folder), "{}", answer.body);
        assert!(!answer.body.contains("os error"), "{}", answer.body);
    }
    assert!(!place.errors().contains('\u{1b}'), "{}", place.errors());
}
