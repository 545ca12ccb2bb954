//! The program, as its users call it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hekaton-intake");

/// Witnesses alone, in JSON and in SSZ, are checked and pushed with the parameters of their block; the written file is canonical.
#[test]
fn witnesses_alone_are_checked_and_pushed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let make = ["--parameters", "block.json", "--witness", "witness.json", "--bytes", "9000"];
    assert!(run(&[&["stand-in", "block.ssz"], &make[..]].concat(), path).status.success());
    let good = |arguments: &[&str], says: &str| {
        let out = run(arguments, path);
        assert!(out.status.success(), "{arguments:?}: {}", text(&out.stderr));
        assert!(text(&out.stdout).contains(says), "{arguments:?}: {}", text(&out.stdout));
        text(&out.stdout)
    };
    good(&["check", "block.ssz", "--output", "canonical.ssz"], "block 2; headers: 2");
    // Alone, with its block, in an answer of JSON-RPC, and as a body.
    good(&["check", "witness.json", "--output", "same.ssz"], "block 2; headers: 2");
    let read = |name: &str| std::fs::read(path.join(name)).unwrap();
    assert_eq!(read("same.ssz"), read("canonical.ssz"));
    let mut witness: serde_json::Value = serde_json::from_slice(&read("witness.json")).unwrap();
    witness["state"].as_array_mut().unwrap().reverse();
    witness["state"][0] = "0x80".into();
    let answer = serde_json::json!({ "jsonrpc": "2.0", "id": 1, "result": witness });
    std::fs::write(path.join("answer.json"), answer.to_string()).unwrap();
    good(&["check", "--parameters", "block.json", "answer.json"], "left out: 1 empty items");
    let parameters: serde_json::Value = serde_json::from_slice(&read("block.json")).unwrap();
    let body = serde_json::json!({ "parameters": parameters, "witness": witness });
    std::fs::write(path.join("body.json"), body.to_string()).unwrap();
    let counted = good(&["--json", "check", "body.json"], "\"left_out\":{\"codes\":0,\"empty\":1");
    assert!(serde_json::from_str::<serde_json::Value>(&counted).is_ok(), "{counted}");
    good(&["check", "--parameters", "block.json", "canonical.ssz"], "block 2");

    let service = start(&["serve", "--data", "pushed"], path);
    let to = ["--to", &service.address];
    for files in [
        &["block.ssz"][..],
        &["body.json"],
        &["--parameters", "block.json", "answer.json", "witness.json", "canonical.ssz"],
    ] {
        good(&[&["push"], files, &to].concat(), "block 2 ");
    }
    assert_eq!(std::fs::read_dir(path.join("pushed/blocks")).unwrap().count(), 1);

    let mut sorted = read("canonical.ssz");
    std::fs::write(path.join("cut.ssz"), sorted.split_off(40)).unwrap();
    let error = serde_json::json!({ "error": { "code": -32_000, "message": "pruned" } });
    std::fs::write(path.join("error.json"), error.to_string()).unwrap();
    std::fs::write(path.join("other.json"), "[]").unwrap();
    // Without contents.
    std::fs::File::create(path.join("long.ssz")).unwrap().set_len(1 << 32).unwrap();
    let nobody = ["--to", "http://127.0.0.1:9"];
    for (arguments, code, why) in [
        (&["check", "error.json"][..], 1, "pruned"),
        (&["check", "block.json"], 1, "block.json: "),
        (&["check", "--parameters", "block.json", "cut.ssz"], 1, "cut.ssz: "),
        (&["check", "--parameters", "other.json", "witness.json"], 3, "other.json: "),
        (&["check", "long.ssz"], 3, "more than"),
        (&["check", "block.ssz", "body.json", "--output", "x"], 2, "one file"),
        (&["push", "witness.json"], 1, "--parameters"),
        (&[&["push", "block.ssz"], &nobody[..]].concat(), 4, "refused"),
        (
            &["serve", "--data", "d", "--orchestrator", "x", "--genesis", "0x12"],
            2,
            "64 hexadecimal",
        ),
    ] {
        let out = run(arguments, path);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(why), "{arguments:?}: {}", text(&out.stderr));
    }
}

/// A log that is a file has no colors.
#[test]
fn files_get_no_colors() {
    let folder = tempfile::tempdir().unwrap();
    let node = ["--node", "http://127.0.0.1:9", "--orchestrator", "http://127.0.0.1:9"];
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--data", "d", "--listen", "127.0.0.1:0"]).args(node);
    command.current_dir(&folder).env_remove("NO_COLOR").env_remove("RUST_LOG");
    let command = command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut service = Running { child: command.spawn().unwrap(), address: String::new() };
    let mut line = String::new();
    BufReader::new(service.child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("WARN") && !line.contains('\u{1b}'), "{line:?}");
}

/// A service or a node, killed at the end of its test.
struct Running {
    child: Child,
    address: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn start(arguments: &[&str], folder: &Path) -> Running {
    let mut command = Command::new(PROGRAM);
    command.arg("--json").args(arguments).args(["--listen", "127.0.0.1:0"]).current_dir(folder);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let started: serde_json::Value = serde_json::from_str(&line).unwrap();
    Running { address: started["address"].as_str().unwrap().to_owned(), child }
}

fn run(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).env("RUST_LOG", "off").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lists the record of the only block of a service, prints it, and submits it again.
fn records_are_listed(service: &Running, path: &Path) {
    let to = ["--to", &service.address];
    let ask = |arguments: &[&str]| run(&[arguments, &to].concat(), path);
    let listed = ask(&["--json", "list", "--status", "pending", "--limit", "1"]);
    assert!(listed.status.success(), "{}", text(&listed.stderr));
    let page: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&page["next"], &page["unreadable"]), (&serde_json::Value::Null, &0.into()));
    let record = &page["records"][0];
    let block = record["block"].as_str().unwrap();
    let line = format!("block 2 {block}: push, pending\n");
    assert_eq!(text(&ask(&["list"]).stdout), line);
    assert_eq!(text(&ask(&["list", "--status", "aside"]).stdout), "");
    assert_eq!(text(&ask(&["list", "--after", &format!("2-{block}")]).stdout), "");
    let upper = format!("0x{}", block.to_uppercase());
    assert!(text(&ask(&["get", &upper]).stdout).contains("\"source\": \"push\""));
    let again = ask(&["--json", "resubmit", block]);
    let again: serde_json::Value = serde_json::from_slice(&again.stdout).unwrap();
    assert!(again["order"].as_u64() > record["order"].as_u64(), "{again}");
    // A reason with line breaks stays on its line.
    let file = path.join(format!("pushed/blocks/{block}.json"));
    let kept = std::fs::read(&file).unwrap();
    let mut refused = again;
    refused["refused"] = "a\nblock\u{1b}[2J".into();
    std::fs::write(&file, refused.to_string()).unwrap();
    let line = format!("block 2 {block}: push, pending, refused: a block [2J\n");
    assert_eq!(text(&ask(&["list"]).stdout), line);
    std::fs::write(&file, kept).unwrap();
    let zeros = "0".repeat(64);
    for (arguments, code, why) in [
        (&["get", &zeros][..], 1, "there is no witness of block"),
        (&["resubmit", &zeros], 1, "there is no witness of block"),
        (&["get", "x"], 2, "64 hexadecimal digits"),
        (&["list", "--limit", "0"], 2, "1..=1000"),
        (&["list", "--after", "5"], 2, "a height, a hyphen"),
    ] {
        let out = ask(arguments);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(why), "{arguments:?}: {}", text(&out.stderr));
    }
    let out = run(&["list", "--to", "http://127.0.0.1:9"], path);
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
}

#[test]
fn the_command_line_does_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let made =
        run(&["stand-in", "block.ssz", "--bytes", "30000", "--parameters", "block.json"], path);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let checked = run(&["check", "block.ssz"], path);
    assert!(text(&checked.stdout).contains("block 2; headers: 2"), "{}", text(&checked.stdout));

    // Push.
    let service = start(&["serve", "--data", "pushed"], path);
    let body = std::fs::read(path.join("block.ssz")).unwrap();
    let agent = ureq::Agent::new_with_defaults();
    let answer = agent
        .post(format!("{}/v1/witness", service.address))
        .content_type("application/octet-stream")
        .send(&body[..])
        .unwrap();
    assert_eq!(answer.status(), 202);
    assert_eq!(std::fs::read_dir(path.join("pushed/blocks")).unwrap().count(), 1);
    records_are_listed(&service, path);

    // Blocks of other forks.
    for fork in ["shanghai", "cancun", "prague", "osaka", "amsterdam"] {
        let parameters = format!("{fork}.json");
        let make = ["stand-in", "other.ssz", "--fork", fork, "--bytes", "9000"];
        let make = [&make[..], &["--parameters", &parameters]].concat();
        assert!(run(&make, path).status.success());
        for checked in
            [&["check", "other.ssz"][..], &["push", "other.ssz", "--to", &service.address]]
        {
            let out = run(checked, path);
            assert!(out.status.success(), "{fork}: {}", text(&out.stderr));
        }
    }

    // Fetch: the node makes the same block.
    let node = start(&["stand-in-node", "--bytes", "30000"], path);
    for codec in ["a", "b", "json"] {
        let fetch = ["fetch", "block.json", "--data", "fetched", "--node", &node.address];
        let fetched = run(&[&fetch[..], &["--codec", codec]].concat(), path);
        assert!(fetched.status.success(), "{codec}: {}", text(&fetched.stderr));
        assert!(text(&fetched.stdout).contains("2 headers"), "{}", text(&fetched.stdout));
    }
    drop(node);

    let mut wrong = body.clone();
    *wrong.last_mut().unwrap() ^= 1;
    wrong.truncate(wrong.len() - 1);
    std::fs::write(path.join("cut.ssz"), &wrong).unwrap();
    let mut foreign = body;
    foreign[600] ^= 1;
    std::fs::write(path.join("foreign.ssz"), &foreign).unwrap();
    std::fs::write(path.join("short.hex"), "0x12").unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let occupied = listener.local_addr().unwrap().to_string();
    for (arguments, code, why) in [
        (&["check", "none"][..], 3, "none: "),
        (&["check", "cut.ssz"], 1, "public_keys"),
        (&["check", "foreign.ssz"], 1, "foreign.ssz: "),
        (&["check"], 2, "FILES"),
        (&["fetch", "block.ssz", "--data", "d"], 3, "it is not JSON"),
        (
            &["fetch", "block.json", "--data", "d", "--node", "http://127.0.0.1:9", "--codec", "a"],
            4,
            "refused",
        ),
        (&["fetch", "block.json", "--data", "block.json"], 3, "block.json"),
        (&["fetch", "cancun.json", "--data", "d", "--codec", "793"], 2, "use --codec json"),
        (&["serve", "--data", "d", "--listen", "0.0.0.0:0"], 2, "--secret"),
        (&["serve", "--data", "d", "--listen", "nowhere"], 2, "--listen nowhere"),
        (&["serve", "--data", "d", "--listen", &occupied], 4, "in use"),
        (&["serve", "--data", "d", "--secret", "short.hex"], 3, "64 hexadecimal digits"),
        (&["serve", "--data", "d", "--proxy"], 2, "--node"),
    ] {
        let out = run(arguments, path);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(why), "{arguments:?}: {}", text(&out.stderr));
    }

    // The process stops in order.
    let pid = service.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let mut service = service;
    assert!(service.child.wait().unwrap().success());
}
