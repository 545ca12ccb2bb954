//! The description of the API is what the service does: whatever it allows is taken, and whatever is answered is as described.

use super::{Running, options};
use crate::{ServiceOptions, open_api};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Values that a schema allows: each of its examples, choices and ends, with all optional fields and without them.
fn values(all: &Value, schema: &Value) -> Vec<Value> {
    if let Some(name) = schema["$ref"].as_str() {
        return values(all, named(all, name));
    }
    let mut found: Vec<Value> = schema["examples"].as_array().cloned().unwrap_or_default();
    found.extend(schema.get("example").cloned());
    if let Some(items) = schema["oneOf"].as_array() {
        found.extend(items.iter().flat_map(|item| values(all, item)));
        return found;
    }
    if let Some(choices) = schema["enum"].as_array() {
        found.extend(choices.iter().cloned());
        return found;
    }
    for kind in kinds(schema) {
        match kind.as_str() {
            "object" => found.extend(objects(all, schema)),
            "string" if schema["format"] == "byte" => {
                found.extend(["", "AA==", "AP8K"].map(Value::from))
            }
            "string" if schema.get("pattern").is_some() => {}
            "string" => {
                let length =
                    |name: &str| schema[name].as_u64().map(|n| usize::try_from(n).unwrap());
                let ends = [length("minLength").unwrap_or(0), length("maxLength").unwrap_or(9)];
                found.extend(ends.map(|length| Value::from("x".repeat(length))));
            }
            "integer" => {
                let end = |name: &str| schema[name].as_u64();
                found.push(end("minimum").unwrap_or(0).into());
                found.push(end("maximum").unwrap_or(u32::MAX.into()).into());
            }
            "boolean" => found.extend([true, false].map(Value::from)),
            "null" => found.push(Value::Null),
            other => panic!("{other} in {schema}"),
        }
    }
    found
}

fn objects(all: &Value, schema: &Value) -> Vec<Value> {
    let Some(fields) = schema["properties"].as_object() else { return vec![json!({})] };
    let is_required = |name: &str| {
        schema["required"].as_array().is_some_and(|required| required.iter().any(|r| r == name))
    };
    let first = |schema: &Value| values(all, schema).into_iter().next().unwrap();
    let least: serde_json::Map<String, Value> = fields
        .iter()
        .filter(|(name, _)| is_required(name))
        .map(|(name, schema)| (name.clone(), first(schema)))
        .collect();
    let mut found = vec![Value::from(least.clone())];
    // Each value of each field, with the least that others may have.
    for (name, schema) in fields {
        for value in values(all, schema) {
            let mut object = least.clone();
            object.insert(name.clone(), value);
            found.push(object.into());
        }
    }
    let most = fields.iter().map(|(name, schema)| (name.clone(), first(schema)));
    found.push(Value::from(most.collect::<serde_json::Map<_, _>>()));
    found
}

fn named<'v>(all: &'v Value, reference: &str) -> &'v Value {
    all.pointer(reference.trim_start_matches('#')).unwrap_or_else(|| panic!("{reference}"))
}

fn kinds(schema: &Value) -> Vec<String> {
    match &schema["type"] {
        Value::String(kind) => vec![kind.clone()],
        Value::Array(kinds) => kinds.iter().map(|kind| kind.as_str().unwrap().into()).collect(),
        other => panic!("{other} is the type of {schema}"),
    }
}

/// Checks that a value is one that a schema allows. Fields that are not described are not allowed.
fn check(all: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    if let Some(name) = schema["$ref"].as_str() {
        return check(all, named(all, name), value);
    }
    let wrong = || Err(format!("{value} is not {schema}"));
    if let Some(items) = schema["oneOf"].as_array() {
        let count = items.iter().filter(|item| check(all, item, value).is_ok()).count();
        return if count == 1 { Ok(()) } else { wrong() };
    }
    if schema["enum"].as_array().is_some_and(|choices| !choices.contains(value)) {
        return wrong();
    }
    let is_kind = |kind: &String| match kind.as_str() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        other => panic!("{other} in {schema}"),
    };
    if !kinds(schema).iter().any(is_kind) {
        return wrong();
    }
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check(all, &schema["items"], item)),
        Value::Object(fields) if schema.get("properties").is_some() => {
            let required = schema["required"].as_array().into_iter().flatten();
            for name in required.map(|name| name.as_str().unwrap()) {
                if !fields.contains_key(name) {
                    return Err(format!("{value} has no {name}"));
                }
            }
            fields.iter().try_for_each(|(name, field)| match schema["properties"].get(name) {
                Some(schema) => check(all, schema, field),
                None => Err(format!("{name} of {value} is not described")),
            })
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap();
            let is_less = schema["minimum"].as_f64().is_some_and(|least| number < least);
            let is_more = schema["maximum"].as_f64().is_some_and(|most| number > most);
            if is_less || is_more { wrong() } else { Ok(()) }
        }
        Value::String(text) if schema["format"] == "byte" => {
            let is_one = text.len() % 4 == 0
                && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b));
            if is_one { Ok(()) } else { wrong() }
        }
        _ => Ok(()),
    }
}

struct Asked {
    status: u16,
    kind: String,
    body: Vec<u8>,
}

fn ask(running: &Running, method: &str, path: &str, body: Option<&Value>) -> Asked {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let mut request = ureq::http::Request::builder()
        .method(method)
        .uri(format!("{}{path}", running.client.address()));
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = body.map(|body| serde_json::to_vec(body).unwrap()).unwrap_or_default();
    let mut answer = match method {
        "get" => agent.run(request.method("GET").body(()).unwrap()),
        "post" => agent.run(request.method("POST").body(&body[..]).unwrap()),
        other => panic!("{other}"),
    }
    .unwrap();
    let kind = answer.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
    let kind = kind.unwrap_or_default().split(';').next().unwrap().to_owned();
    let status = answer.status().as_u16();
    Asked { status, kind, body: answer.body_mut().read_to_vec().unwrap() }
}

/// Checks that an answer is described.
fn described(all: &Value, operation: &Value, asked: &Asked, what: &str) {
    let Asked { status, kind, body } = asked;
    let response = &operation["responses"][status.to_string()];
    assert!(response.is_object(), "{what}: {status} is not described");
    let Some(contents) = response["content"].as_object() else {
        assert!(body.is_empty(), "{what}: {status} has a body, which is not described");
        return;
    };
    let content = contents.get(kind).unwrap_or_else(|| panic!("{what}: {status} {kind}"));
    if kind.ends_with("json") {
        let value = serde_json::from_slice(body).unwrap();
        check(all, &content["schema"], &value).unwrap_or_else(|why| panic!("{what}: {why}"));
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The paths of an operation, one with each value of each parameter.
fn paths(all: &Value, path: &str, operation: &Value) -> Vec<String> {
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let values: Vec<(String, bool, Vec<Value>)> = parameters
        .iter()
        .map(|parameter| {
            let mut found = values(all, &parameter["schema"]);
            found.extend(parameter.get("example").cloned());
            found.retain(|value| !value.is_null() && *value != json!(""));
            assert!(!found.is_empty(), "{path}: {parameter}");
            (text(&parameter["name"]), parameter["in"] == "path", found)
        })
        .collect();
    let count = values.iter().map(|(_, _, values)| values.len()).max().unwrap_or(1);
    (0..count)
        .map(|at| {
            let (mut path, mut query) = (path.to_owned(), Vec::new());
            for (name, is_path, values) in &values {
                let value = text(&values[at % values.len()]);
                match is_path {
                    true => path = path.replace(&format!("{{{name}}}"), &value),
                    false => query.push(format!("{name}={value}")),
                }
            }
            if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
        })
        .collect()
}

/// Everything that the description allows is sent, and taken; each answer is one that it describes.
#[test]
fn the_description_is_what_the_service_does() {
    let running = Running::start(options(), ServiceOptions::default(), None);
    running.insert("alice", "1");
    running.insert("x", "1");
    let all = serde_json::to_value(open_api()).unwrap();
    let mut statuses = BTreeSet::new();
    let mut sent = 0;
    for (path, operations) in all["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let content = &operation["requestBody"]["content"]["application/json"];
            let mut bodies: Vec<Option<Value>> = vec![None];
            if content.is_object() {
                let found = values(&all, &content["schema"]);
                for body in &found {
                    check(&all, &content["schema"], body).unwrap();
                }
                bodies = found.into_iter().map(Some).collect();
            }
            for path in paths(&all, path, operation) {
                for body in &bodies {
                    let asked = ask(&running, method, &path, body.as_ref());
                    let what = format!(
                        "{method} {path} {body:?}: {}",
                        String::from_utf8_lossy(&asked.body)
                    );
                    described(&all, operation, &asked, &what);
                    // Nothing that is described is misunderstood: it may be gone, in conflict, or not there yet.
                    assert!(
                        [200, 202, 204, 404, 409].contains(&asked.status),
                        "{} {what}",
                        asked.status
                    );
                    statuses.insert(asked.status);
                    sent += 1;
                }
            }
            // What is not described has an answer that is.
            for wrong in
                [format!("{}?surplus=1", path.replace(['{', '}'], "")), path.replace('{', "%ff{")]
            {
                let asked = ask(&running, method, &wrong, Some(&json!([])));
                if operation["parameters"].is_array() && asked.status != 405 {
                    described(&all, operation, &asked, &wrong);
                }
            }
        }
    }
    assert!(sent > 60, "{sent}");
    assert_eq!(statuses, BTreeSet::from([200, 202, 204, 404, 409]));
    // What `expected` was described as, and was never taken.
    let schema = &all["components"]["schemas"]["UpdateBody"];
    let update = |expected: Value| json!({ "label": "alice", "value": "v", "expected": expected });
    for expected in [json!({ "Version": 0 }), json!({ "Absent": "absent" }), json!("no"), json!(-1)]
    {
        assert!(check(&all, schema, &update(expected.clone())).is_err(), "{expected}");
        assert_eq!(ask(&running, "post", "/v1/updates", Some(&update(expected))).status, 400);
    }
    for expected in [json!(0), json!("absent")] {
        check(&all, schema, &update(expected)).unwrap();
    }
}
