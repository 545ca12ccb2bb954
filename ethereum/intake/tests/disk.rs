//! A disk that is full: witnesses that cannot be stored are refused, reads still succeed, and everything resumes by itself with new space.

use hekaton_intake::record::Record;
use hekaton_intake::stand_in::Block;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

/// A small file system of its own, which only the processes that its shell starts can see.
struct SmallDisk {
    folder: tempfile::TempDir,
    shell: Child,
    orders: ChildStdin,
    started: usize,
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.orders.write_all(b"kill -9 $last\n");
        let _ = self.orders.write_all(b"exit\n");
        let _ = self.shell.wait();
    }
}

fn wait(what: &str, mut happens: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !happens() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

impl SmallDisk {
    /// Mounts the file system. Returns `None` if that is not possible.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
        let mut command = Command::new("unshare");
        command.args(if root { &["-m"][..] } else { &["-U", "-r", "-m"] }).arg("sh");
        let command = command.stdin(Stdio::piped()).stdout(Stdio::null()).current_dir(&folder);
        let mut shell = command.spawn().ok()?;
        let mut orders = shell.stdin.take().unwrap();
        let order = "mkdir disk; mount -t tmpfs -o size=1m,mode=700 hekaton-test disk && touch yes || touch no\n";
        // Without namespaces, nothing reads it.
        let _ = orders.write_all(order.as_bytes());
        let mut disk = Self { folder, shell, orders, started: 0 };
        let path = disk.folder.path().to_owned();
        wait("a small file system is mounted, or not", || {
            let has_ended = disk.shell.try_wait().is_ok_and(|ended| ended.is_some());
            has_ended || path.join("yes").exists() || path.join("no").exists()
        });
        path.join("yes").exists().then_some(disk)
    }

    /// Starts a service on the file system. Returns its address.
    fn serve(&mut self) -> String {
        self.started += 1;
        let out = format!("out-{}", self.started);
        let program = env!("CARGO_BIN_EXE_hekaton-intake");
        let order = format!(
            "'{program}' --json serve --listen 127.0.0.1:0 --data disk/data >{out} 2>>log & last=$!\n"
        );
        self.orders.write_all(order.as_bytes()).unwrap();
        let mut address = None;
        wait("it has started", || {
            let line = std::fs::read_to_string(self.folder.path().join(&out)).unwrap_or_default();
            let said = serde_json::from_str::<serde_json::Value>(&line).ok();
            address = said.and_then(|said| Some(said["address"].as_str()?.to_owned()));
            address.is_some()
        });
        address.unwrap()
    }

    /// Returns a path as the processes see it.
    fn path(&self, name: &str) -> PathBuf {
        let inside = self.folder.path().join("disk").join(name);
        PathBuf::from(format!("/proc/{}/root", self.shell.id()))
            .join(inside.strip_prefix("/").unwrap())
    }

    fn fill(&self) {
        let mut file = std::fs::File::create(self.path("ballast")).unwrap();
        for size in [1 << 16, 1 << 12, 1] {
            while file.write_all(&vec![7; size]).is_ok() {}
        }
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
    let Some(mut disk) = SmallDisk::new() else {
        let _ = writeln!(std::io::stderr(), "skipped: no file system can be mounted here");
        return;
    };
    let mut address = disk.serve();
    let push = |address: &str, seed| {
        let block = Block::new(seed, 2, 20_000);
        send("POST", &format!("{address}/v1/witness"), &block.push())
    };
    let get = |address: &str, path: &str| send("GET", &format!("{address}{path}"), &[]);
    let (status, first) = push(&address, 1);
    assert_eq!(status, 202, "{first}");
    let first: Record = serde_json::from_str(&first).unwrap();
    let read = |address: &str| {
        let (status, text) = get(address, &format!("/v1/witness/{}", first.block));
        assert_eq!(
            (status, serde_json::from_str::<Record>(&text).ok()),
            (200, Some(first.clone()))
        );
    };
    assert_eq!(get(&address, "/readyz").0, 204);
    disk.fill();
    for _ in 0..2 {
        let (status, why) = push(&address, 2);
        assert_eq!(status, 507, "{why}");
        assert!(why.contains("no space") && !why.contains("disk/data"), "{why}");
        wait("it is not ready", || get(&address, "/readyz").0 == 503);
        assert!(get(&address, "/readyz").1.contains("full"));
        assert_eq!(get(&address, "/healthz").0, 204);
        read(&address);
        // A process that starts on a full disk does as well.
        disk.orders.write_all(b"kill -9 $last; wait $last\n").unwrap();
        address = disk.serve();
    }
    std::fs::remove_file(disk.path("ballast")).unwrap();
    wait("it is ready again", || get(&address, "/readyz").0 == 204);
    let (status, second) = push(&address, 2);
    assert_eq!(status, 202, "{second}");
    read(&address);
    // A witness that could not be stored has left nothing behind.
    let incoming = std::fs::read_dir(disk.path("data/blobs/incoming")).unwrap().count();
    assert_eq!(incoming, 0);
}
