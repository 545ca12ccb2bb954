//! A disk that is full: witnesses that cannot be stored are refused, reads still succeed, and everything resumes by itself with new space.

use hekaton_intake::record::Record;
use hekaton_intake::stand_in::Block;
use hekaton_testing::SmallDisk;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

fn wait(what: &str, mut happens: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !happens() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send(method: &str, url: &str, body: &[u8]) -> (u16, String) {
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let request = ureq::http::Request::builder().method(method).uri(url);
    let request = request.header("content-type", "application/octet-stream");
    let mut answer = agent.run(request.body(body).unwrap()).unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

#[test]
fn a_full_disk_accepts_nothing_and_reads_go_on() {
    let Some(mut disk) = SmallDisk::new("1m") else {
        let _ = writeln!(std::io::stderr(), "skipped: no file system can be mounted here");
        return;
    };
    let program = env!("CARGO_BIN_EXE_hekaton-intake");
    let serve = format!("'{program}' --json serve --listen 127.0.0.1:0 --data disk/data");
    let mut service = disk.serve(&serve, Path::new("log"));
    let push = |address: &str, seed| {
        let block = Block::new(seed, 2, 20_000);
        send("POST", &format!("{address}/v1/witness"), &block.push())
    };
    let get = |address: &str, path: &str| send("GET", &format!("{address}{path}"), &[]);
    let (status, first) = push(&service.address, 1);
    assert_eq!(status, 202, "{first}");
    let first: Record = serde_json::from_str(&first).unwrap();
    let read = |address: &str| {
        let (status, text) = get(address, &format!("/v1/witness/{}", first.block));
        assert_eq!(
            (status, serde_json::from_str::<Record>(&text).ok()),
            (200, Some(first.clone()))
        );
    };
    assert_eq!(get(&service.address, "/readyz").0, 204);
    disk.fill();
    for _ in 0..2 {
        let (status, why) = push(&service.address, 2);
        assert_eq!(status, 507, "{why}");
        assert!(why.contains("no space") && !why.contains("disk/data"), "{why}");
        wait("it is not ready", || get(&service.address, "/readyz").0 == 503);
        assert!(get(&service.address, "/readyz").1.contains("full"));
        assert_eq!(get(&service.address, "/healthz").0, 204);
        read(&service.address);
        // A process that starts on a full disk does as well.
        drop(service);
        service = disk.serve(&serve, Path::new("log"));
    }
    disk.free();
    wait("it is ready again", || get(&service.address, "/readyz").0 == 204);
    let (status, second) = push(&service.address, 2);
    assert_eq!(status, 202, "{second}");
    read(&service.address);
    // A witness that could not be stored has left nothing behind.
    let incoming = std::fs::read_dir(disk.path("data/blobs/incoming")).unwrap().count();
    assert_eq!(incoming, 0);
}
