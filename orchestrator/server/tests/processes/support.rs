//! Processes, and the requests that tests send to them.

use hekaton_orchestrator::http::{ChainBody, JobBody, JobStatus};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{Client, ClientError, Digest};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(super) const PROGRAM: &str = env!("CARGO_BIN_EXE_hekaton-orchestrator");

/// A process, killed at the end of its test.
pub(super) struct Process {
    pub(super) child: Child,
    pub(super) address: String,
}

impl Process {
    pub(super) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(super) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    pub(super) fn client(&self) -> Client {
        Client::new(&self.address, None)
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        get(&self.address, path)
    }
}

/// An answer as it came.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// The status, or 0 without an answer.
    pub(super) status: u16,
    /// The headers in lower case, without the status line.
    pub(super) head: Vec<(String, String)>,
    pub(super) bytes: Vec<u8>,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// Sends a request unchanged.
pub(super) fn begin(
    address: &str,
    method: &str,
    path: &str,
    head: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<TcpStream> {
    let host = address.trim_start_matches("http://");
    let mut stream = TcpStream::connect(host)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut text = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\nhost: {host}\r\n");
    for (name, value) in head {
        text += &format!("{name}: {value}\r\n");
    }
    if !body.is_empty() || ["PUT", "POST"].contains(&method) {
        text += &format!("content-length: {}\r\n", body.len());
    }
    // The service may not read a body that it refuses to its end.
    let _ = stream.write_all(&[text.as_bytes(), b"\r\n", body].concat());
    Ok(stream)
}

/// Reads whatever comes back, even if it breaks off.
pub(super) fn finish(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return Answer::default();
    };
    let head = text(&bytes[..end]);
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
    let head = lines.filter_map(|line| line.split_once(':'));
    let head = head.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    let bytes = bytes[end + 4..].to_vec();
    Answer { status: status.unwrap_or(0), head, body: text(&bytes), bytes }
}

pub(super) fn ask(
    address: &str,
    method: &str,
    path: &str,
    head: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    begin(address, method, path, head, body).map(finish).unwrap_or_default()
}

pub(super) fn get(address: &str, path: &str) -> Answer {
    ask(address, "GET", path, &[], b"")
}

pub(super) fn put(address: &str, path: &str, body: &[u8]) -> Answer {
    ask(address, "PUT", path, &[], body)
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A prover that sleeps as long as its input says, and writes its second word in capital letters.
pub(super) const PROVER: &str = r#"read seconds word < "$1"
echo "$HEKATON_BLOCK $HEKATON_ATTEMPT" >> LOG
# It may hold a password.
[ -z "$HEKATON_NATS" ] || exit 3
case $word in
    impossible) echo "not a witness" >&2; exit 3 ;;
    wrong) echo wrong > "$2"; exit 0 ;;
    poison) kill -9 $PPID; exit 0 ;;
    leaves) sleep 300 & ;;
    tired) exit 75 ;;
    hungry) head -c 600000000 /dev/zero | tail >/dev/null || exit 3 ;;
esac
[ "$HEKATON_ATTEMPT" = 0 ] || seconds=0
sleep "$seconds"
echo "$word" | tr a-z A-Z > "$2"
"#;

pub(super) const VERIFIER: &str = r#"read seconds word < "$1"
[ "$(cat "$2")" = "$(echo "$word" | tr a-z A-Z)" ] || { echo "it is $(cat "$2")" >&2; exit 1; }
"#;

/// A folder with settings.
pub(super) struct Place {
    pub(super) folder: tempfile::TempDir,
    /// Additional arguments of all processes.
    pub(super) more: Vec<String>,
    /// A program that starts the others, with its first arguments.
    pub(super) launcher: Vec<String>,
    /// Additional environment variables of all processes.
    pub(super) environment: Vec<(String, String)>,
}

impl Place {
    pub(super) fn new(more: &str) -> Self {
        let (more_arguments, launcher, environment) = Default::default();
        let folder = tempfile::tempdir().unwrap();
        let place = Self { folder, more: more_arguments, launcher, environment };
        let path = |name: &str| place.path(name).display().to_string();
        std::fs::write(place.path("prover"), PROVER.replace("LOG", &path("log"))).unwrap();
        std::fs::write(place.path("verifier"), VERIFIER).unwrap();
        let call =
            |name: &str| format!("[\"sh\", {:?}, \"{{input}}\", \"{{output}}\"]", path(name));
        let settings = format!(
            "version = 1\nslots = 2\n{more}\n[backends.prove]\nkind = \"command\"\ncommand = {}\nverify = {}\n\
             exits = {{ dead = [3], again = [75] }}\nmemory_bytes = 300000000\n",
            call("prover"),
            call("verifier"),
        );
        std::fs::write(place.path("settings.toml"), settings).unwrap();
        place
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn start(&self, arguments: &[&str]) -> Process {
        let log = std::fs::File::options().create(true).append(true).open(self.path("stderr"));
        let all = [&self.launcher[..], &[PROGRAM.to_owned()]].concat();
        let mut child = Command::new(&all[0])
            .args(&all[1..])
            .arg("--json")
            .args(arguments)
            .arg("--data")
            .arg(self.path("data"))
            .arg("--settings")
            .arg(self.path("settings.toml"))
            .args(&self.more)
            .env("RUST_LOG", "info")
            .envs(self.environment.clone())
            .stdout(Stdio::piped())
            .stderr(log.unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let started: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("{}", self.errors()));
        let address = started["address"].as_str().unwrap_or_default().to_owned();
        Process { child, address }
    }

    pub(super) fn serve(&self, more: &[&str]) -> Process {
        self.start(&[&["serve", "--listen", "127.0.0.1:0"], more].concat())
    }

    pub(super) fn work(&self) -> Process {
        self.start(&["work", "--slots", "1"])
    }

    pub(super) fn errors(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// Returns the number of times that the prover was started.
    pub(super) fn attempts(&self) -> usize {
        std::fs::read_to_string(self.path("log")).unwrap_or_default().lines().count()
    }

    /// Checks that the history keeps all promises.
    pub(super) fn check(&self) {
        let output =
            Command::new(PROGRAM).args(["check", "--data"]).arg(self.path("data")).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), self.errors());
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

pub(super) fn body(block: u64, blob: &str) -> JobBody {
    JobBody {
        chain: "main".into(),
        block,
        id: Some(format!("b{block}")),
        parent: Some(if block == 1 { "genesis".into() } else { format!("b{}", block - 1) }),
        backend: Some("prove".into()),
        inputs: BTreeMap::from([("input".into(), vec![blob.to_owned()])]),
        ..JobBody::default()
    }
}

/// Submits a block of the chain `main` with a text as its input.
pub(super) fn submit(client: &Client, place: &Place, block: u64, input: &str) -> JobStatus {
    let file = place.path("input");
    std::fs::write(&file, format!("{input}\n")).unwrap();
    let blob = client.put_file(&file).unwrap();
    // The store may be away: a request that is sent again takes effect once.
    let mut job = client.submit(&body(block, &blob.to_string()));
    wait("it is submitted", || {
        if job.as_ref().is_err_and(ClientError::may_be_repeated) {
            job = client.submit(&body(block, &blob.to_string()));
        }
        job.is_ok() || !job.as_ref().is_err_and(ClientError::may_be_repeated)
    });
    job.unwrap()
}

pub(super) fn strict(client: &Client) {
    let body = ChainBody { order: Order::Strict, genesis: Some("genesis".into()), bundles: None };
    client.make_chain("main", &body).unwrap();
}

/// Waits for the end of a job.
pub(super) fn ended(client: &Client, job: &JobStatus) -> JobStatus {
    let until = Instant::now() + Duration::from_secs(90);
    loop {
        if let Ok(status) = client.job(&job.job, 5)
            && status.state != "live"
        {
            return status;
        }
        assert!(Instant::now() < until, "{} has not ended", job.job);
        std::thread::sleep(Duration::from_millis(20));
    }
}

pub(super) fn wait(what: &str, until: impl FnMut() -> bool) {
    assert!(within(Duration::from_secs(60), until), "{what}");
}

/// Reports whether a condition becomes true in time.
pub(super) fn within(time: Duration, mut until: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + time;
    while !until() {
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}

/// Returns the blocks that the chain has published.
pub(super) fn published(client: &Client) -> Vec<String> {
    client.proofs("main", 0).unwrap().proofs.into_iter().map(|proof| proof.id).collect()
}

pub(super) fn output(client: &Client, place: &Place, status: &JobStatus) -> String {
    let path = place.path("output");
    client.get_blob(&status.outputs[0].parse::<Digest>().unwrap(), &path).unwrap();
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

pub(super) fn status_of<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> u16 {
    match outcome {
        Err(ClientError::Problem { problem, .. }) => problem.status,
        other => panic!("{other:?} is not a problem"),
    }
}
