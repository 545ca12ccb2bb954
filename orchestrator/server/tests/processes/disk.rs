//! A disk that is full: requests that need no space succeed, the others say why not, and everything resumes by itself once there is space.

use super::support::*;
use hekaton_orchestrator::{Client, Digest};
use hekaton_testing::{OnDisk, SmallDisk};

/// A disk, and a place with the other files of services on it.
struct Bench {
    place: Place,
    disk: SmallDisk,
}

impl Bench {
    fn new() -> Self {
        let disk = SmallDisk::new("12m").expect("a small file system can be mounted");
        Self { place: Place::new(""), disk }
    }

    fn serve(&mut self) -> OnDisk {
        let settings = self.place.path("settings.toml");
        let command = format!(
            "'{PROGRAM}' --json serve --listen 127.0.0.1:0 --data disk/data --settings '{}'",
            settings.display()
        );
        self.disk.serve(&command, &self.place.path("stderr"))
    }
}

fn client_of(service: &OnDisk) -> Client {
    Client::new(&service.address, None)
}

#[test]
fn a_full_disk_stops_writes_and_nothing_else() {
    let mut bench = Bench::new();
    let service = bench.serve();
    let client = client_of(&service);
    wait("it is ready", || get(&service.address, "/readyz").status == 204);
    strict(&client);
    let first = submit(&client, &bench.place, 1, "0 one");
    let status = ended(&client, &first);
    wait("it is published", || published(&client) == ["b1"]);
    // Its input is there before the disk is full.
    std::fs::write(bench.place.path("input"), "0 two\n").unwrap();
    let second = client.put_file(&bench.place.path("input")).unwrap();

    let check = |bench: &Bench, service: &OnDisk| {
        let client = client_of(service);
        wait("it says that it is not ready", || get(&service.address, "/readyz").status == 503);
        let answer = get(&service.address, "/readyz");
        assert!(answer.body.contains("no blob can be stored"), "{}", answer.body);
        assert!(!answer.body.contains("/data"), "{}", answer.body);
        // Reads still succeed.
        for path in ["/healthz", "/metrics", "/v1/jobs", "/v1/chains/main", "/openapi.json"] {
            assert_eq!(get(&service.address, path).status, 200, "{path}");
        }
        assert_eq!(client.job(&first.job, 0).unwrap().outputs, status.outputs);
        assert_eq!(published(&client), ["b1"]);
        assert_eq!(output(&client, &bench.place, &status), "ONE");
        // Writes report what is wrong, and when to retry.
        let blob = Digest::of(b"more than there is space for\n");
        let body = b"more than there is space for\n";
        let answer = put(&service.address, &format!("/v1/blobs/{blob}"), body);
        assert_eq!(answer.status, 507, "{}", answer.body);
        assert!(answer.header("retry-after").is_some(), "{:?}", answer.head);
        assert!(!answer.body.contains("/data"), "{}", answer.body);
    };
    bench.disk.fill();
    check(&bench, &service);
    // A process that starts now does as much.
    drop(service);
    let service = bench.serve();
    check(&bench, &service);
    bench.disk.free();
    wait("it is ready again", || get(&service.address, "/readyz").status == 204);
    let client = client_of(&service);
    let job = client.submit(&body(2, &second.to_string())).unwrap();
    assert_eq!(ended(&client, &job).state, "done", "{}", bench.place.errors());
    wait("it is published", || published(&client) == ["b1", "b2"]);
}

/// Although the disk is full again and again, all blocks that were accepted are published in the end.
#[test]
fn what_was_accepted_while_a_disk_fills_up_is_published() {
    let mut bench = Bench::new();
    let service = bench.serve();
    let client = client_of(&service);
    wait("it is ready", || get(&service.address, "/readyz").status == 204);
    strict(&client);
    let blobs: Vec<Digest> = (1..=8)
        .map(|block| {
            std::fs::write(bench.place.path("input"), format!("0.1 w{block}\n")).unwrap();
            client.put_file(&bench.place.path("input")).unwrap()
        })
        .collect();
    let mut accepted = 0;
    for blob in &blobs {
        if accepted % 2 == 1 {
            bench.disk.fill();
        }
        let body = body(accepted + 1, &blob.to_string());
        let sent = client.submit(&body);
        std::thread::sleep(std::time::Duration::from_millis(300));
        if accepted % 2 == 1 {
            bench.disk.free();
        }
        let mut sent = sent.map_err(|error| assert!(error.may_be_repeated(), "{error}"));
        wait("it is accepted", || {
            if sent.is_err() {
                sent = client.submit(&body).map_err(drop);
            }
            sent.is_ok()
        });
        accepted += 1;
    }
    let all: Vec<String> = (1..=accepted).map(|block| format!("b{block}")).collect();
    let is_published = within(std::time::Duration::from_secs(120), || {
        client.proofs("main", 0).is_ok_and(|it| it.proofs.iter().map(|it| &it.id).eq(&all))
    });
    assert!(is_published, "{:?}\n{}", published(&client), bench.place.errors());
}
