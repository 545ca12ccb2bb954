//! The program, as its users call it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hekaton-intake");

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

#[test]
fn the_command_line_does_all_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let made =
        run(&["stand-in", "block.ssz", "--bytes", "30000", "--parameters", "block.json"], path);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let checked = run(&["check", "block.ssz"], path);
    assert!(text(&checked.stdout).contains("block 2, 2 headers"), "{}", text(&checked.stdout));

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
        (&["serve", "--data", "d", "--listen", "0.0.0.0:0"], 2, "--secret"),
        (&["serve", "--data", "d", "--secret", "short.hex"], 3, "64 hexadecimal digits"),
        (&["serve", "--data", "d", "--proxy"], 2, "--node"),
    ] {
        let out = run(arguments, path);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(why), "{arguments:?}: {}", text(&out.stderr));
    }

    // It stops in order.
    let pid = service.child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let mut service = service;
    assert!(service.child.wait().unwrap().success());
}
