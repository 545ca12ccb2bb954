//! A disk that is full: requests that need no space succeed, the others say why not, and everything resumes by itself once there is space.

use super::support::*;
use hekaton_orchestrator::{Client, Digest};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A small file system of its own, which only the processes that it starts can see.
struct SmallDisk {
    shell: Child,
    orders: ChildStdin,
    started: usize,
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}

impl SmallDisk {
    fn new(place: &Place) -> Self {
        let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut command = Command::new("unshare");
        command.args(if root { &["-m"][..] } else { &["-U", "-r", "-m"] }).arg("sh");
        let mut shell = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut orders = shell.stdin.take().unwrap();
        let data = place.path("data");
        std::fs::create_dir_all(&data).unwrap();
        let (data, done) = (data.display(), place.path("mounted"));
        let order = format!(
            "cd /; mount -t tmpfs -o size=12m,mode=700 hekaton-test '{data}' && touch '{}'\n",
            done.display()
        );
        orders.write_all(order.as_bytes()).unwrap();
        wait("a small file system is mounted", || done.exists());
        Self { shell, orders, started: 0 }
    }

    /// Starts a service on the file system.
    fn serve(&mut self, place: &Place) -> OnDisk {
        self.started += 1;
        let name = |what: &str| place.path(&format!("{what}-{}", self.started));
        let (out, pid) = (name("out"), name("pid"));
        let order = format!(
            "'{PROGRAM}' --json serve --listen 127.0.0.1:0 --data '{}' --settings '{}' >'{}' 2>>'{}' & echo $! >'{}'\n",
            place.path("data").display(),
            place.path("settings.toml").display(),
            out.display(),
            place.path("stderr").display(),
            pid.display(),
        );
        self.orders.write_all(order.as_bytes()).unwrap();
        let mut address = None;
        wait("it has started", || {
            let line = std::fs::read_to_string(&out).unwrap_or_default();
            let said = serde_json::from_str::<serde_json::Value>(&line).ok();
            address = said.and_then(|said| Some(said["address"].as_str()?.to_owned()));
            address.is_some()
        });
        let pid = std::fs::read_to_string(pid).unwrap().trim().to_owned();
        OnDisk { address: address.unwrap(), pid }
    }

    /// Returns a path as the processes see it.
    fn path(&self, place: &Place, name: &str) -> PathBuf {
        let inside = place.path("data").join(name);
        let root = format!("/proc/{}/root", self.shell.id());
        PathBuf::from(root).join(inside.strip_prefix("/").unwrap())
    }

    /// Fills the file system to the last byte.
    fn fill(&self, place: &Place) {
        let mut file = std::fs::File::create(self.path(place, "ballast")).unwrap();
        for size in [1 << 20, 1 << 12, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
    }

    fn free(&self, place: &Place) {
        std::fs::remove_file(self.path(place, "ballast")).unwrap();
    }
}

/// A service that the shell has started.
struct OnDisk {
    address: String,
    pid: String,
}

impl OnDisk {
    fn client(&self) -> Client {
        Client::new(&self.address, None)
    }

    fn kill(self) {
        drop(self);
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-KILL", &self.pid]).status();
    }
}

#[test]
fn a_full_disk_stops_writes_and_nothing_else() {
    let place = Place::new("");
    let mut disk = SmallDisk::new(&place);
    let service = disk.serve(&place);
    let client = service.client();
    wait("it is ready", || get(&service.address, "/readyz").status == 204);
    strict(&client);
    let first = submit(&client, &place, 1, "0 one");
    let status = ended(&client, &first);
    wait("it is published", || published(&client) == ["b1"]);
    // Its input is there before the disk is full.
    std::fs::write(place.path("input"), "0 two\n").unwrap();
    let second = client.put_file(&place.path("input")).unwrap();

    let check = |service: &OnDisk| {
        let client = service.client();
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
        assert_eq!(output(&client, &place, &status), "ONE");
        // Writes report what is wrong, and when to retry.
        let blob = Digest::of(b"more than there is space for\n");
        let body = b"more than there is space for\n";
        let answer = put(&service.address, &format!("/v1/blobs/{blob}"), body);
        assert_eq!(answer.status, 507, "{}", answer.body);
        assert!(answer.header("retry-after").is_some(), "{:?}", answer.head);
        assert!(!answer.body.contains("/data"), "{}", answer.body);
    };
    disk.fill(&place);
    check(&service);
    // A process that starts now does as much.
    service.kill();
    let service = disk.serve(&place);
    check(&service);
    disk.free(&place);
    wait("it is ready again", || get(&service.address, "/readyz").status == 204);
    let client = service.client();
    let job = client.submit(&body(2, &second.to_string())).unwrap();
    assert_eq!(ended(&client, &job).state, "done", "{}", place.errors());
    wait("it is published", || published(&client) == ["b1", "b2"]);
    service.kill();
    drop(disk);
}

/// Although the disk is full again and again, all blocks that were accepted are published in the end.
#[test]
fn what_was_accepted_while_a_disk_fills_up_is_published() {
    let place = Place::new("");
    let mut disk = SmallDisk::new(&place);
    let service = disk.serve(&place);
    let client = service.client();
    wait("it is ready", || get(&service.address, "/readyz").status == 204);
    strict(&client);
    let blobs: Vec<Digest> = (1..=8)
        .map(|block| {
            std::fs::write(place.path("input"), format!("0.1 w{block}\n")).unwrap();
            client.put_file(&place.path("input")).unwrap()
        })
        .collect();
    let mut accepted = 0;
    for blob in &blobs {
        if accepted % 2 == 1 {
            disk.fill(&place);
        }
        let body = body(accepted + 1, &blob.to_string());
        let sent = client.submit(&body);
        std::thread::sleep(std::time::Duration::from_millis(300));
        if accepted % 2 == 1 {
            disk.free(&place);
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
    assert!(is_published, "{:?}\n{}", published(&client), place.errors());
    service.kill();
    drop(disk);
}
