//! The program: processes that are started, asked, killed and started again.

use hekaton_orchestrator::http::{ChainBody, JobBody, JobStatus, RevertBody};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{Client, ClientError, Digest};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hekaton-orchestrator");

/// A process, killed at the end of its test.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    }

    fn client(&self) -> Client {
        Client::new(&self.address, None)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sleeps as long as its input says, and writes its second word in capital letters.
const PROVER: &str = r#"read seconds word < "$1"
echo "$HEKATON_BLOCK $HEKATON_ATTEMPT" >> LOG
case $word in
    impossible) echo "not a witness" >&2; exit 3 ;;
    wrong) echo wrong > "$2"; exit 0 ;;
    poison) kill -9 $PPID; exit 0 ;;
    leaves) sleep 300 & ;;
    tired) exit 75 ;;
esac
[ "$HEKATON_ATTEMPT" = 0 ] || seconds=0
sleep "$seconds"
echo "$word" | tr a-z A-Z > "$2"
"#;

const VERIFIER: &str = r#"read seconds word < "$1"
[ "$(cat "$2")" = "$(echo "$word" | tr a-z A-Z)" ] || { echo "it is $(cat "$2")" >&2; exit 1; }
"#;

/// A folder with settings.
struct Place {
    folder: tempfile::TempDir,
    /// More arguments of all processes.
    more: Vec<String>,
}

impl Place {
    fn new(more: &str) -> Self {
        let place = Self { folder: tempfile::tempdir().unwrap(), more: vec![] };
        let path = |name: &str| place.path(name).display().to_string();
        std::fs::write(place.path("prover"), PROVER.replace("LOG", &path("log"))).unwrap();
        std::fs::write(place.path("verifier"), VERIFIER).unwrap();
        let call =
            |name: &str| format!("[\"sh\", {:?}, \"{{input}}\", \"{{output}}\"]", path(name));
        let settings = format!(
            "version = 1\nslots = 2\n{more}\n[backends.prove]\nkind = \"command\"\ncommand = {}\nverify = {}\n\
             exits = {{ dead = [3], again = [75] }}\n",
            call("prover"),
            call("verifier"),
        );
        std::fs::write(place.path("settings.toml"), settings).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, arguments: &[&str]) -> Process {
        let log = std::fs::File::options().create(true).append(true).open(self.path("stderr"));
        let mut child = Command::new(PROGRAM)
            .arg("--json")
            .args(arguments)
            .arg("--data")
            .arg(self.path("data"))
            .arg("--settings")
            .arg(self.path("settings.toml"))
            .args(&self.more)
            .env("RUST_LOG", "info")
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

    fn serve(&self, more: &[&str]) -> Process {
        self.start(&[&["serve", "--listen", "127.0.0.1:0"], more].concat())
    }

    fn work(&self) -> Process {
        self.start(&["work", "--slots", "1"])
    }

    fn errors(&self) -> String {
        std::fs::read_to_string(self.path("stderr")).unwrap_or_default()
    }

    /// How often the prover was started.
    fn attempts(&self) -> usize {
        std::fs::read_to_string(self.path("log")).unwrap_or_default().lines().count()
    }

    /// The history keeps all promises.
    fn check(&self) {
        let output =
            Command::new(PROGRAM).args(["check", "--data"]).arg(self.path("data")).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), self.errors());
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn body(block: u64, blob: &str) -> JobBody {
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
fn submit(client: &Client, place: &Place, block: u64, input: &str) -> JobStatus {
    let file = place.path("input");
    std::fs::write(&file, format!("{input}\n")).unwrap();
    let blob = client.put_file(&file).unwrap();
    // The store may be away: what is sent again is done once.
    let mut job = client.submit(&body(block, &blob.to_string()));
    wait("it is submitted", || {
        if job.as_ref().is_err_and(ClientError::may_be_repeated) {
            job = client.submit(&body(block, &blob.to_string()));
        }
        job.is_ok() || !job.as_ref().is_err_and(ClientError::may_be_repeated)
    });
    job.unwrap()
}

fn strict(client: &Client) {
    let body = ChainBody { order: Order::Strict, genesis: Some("genesis".into()) };
    client.make_chain("main", &body).unwrap();
}

/// Waits for the end of a job.
fn ended(client: &Client, job: &JobStatus) -> JobStatus {
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

fn wait(what: &str, mut until: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !until() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The blocks that the chain has published.
fn published(client: &Client) -> Vec<String> {
    client.proofs("main", 0).unwrap().proofs.into_iter().map(|proof| proof.id).collect()
}

fn output(client: &Client, place: &Place, status: &JobStatus) -> String {
    let path = place.path("output");
    client.get_blob(&status.outputs[0].parse::<Digest>().unwrap(), &path).unwrap();
    std::fs::read_to_string(path).unwrap().trim().to_owned()
}

fn status_of<T: std::fmt::Debug>(outcome: Result<T, ClientError>) -> u16 {
    match outcome {
        Err(ClientError::Problem { problem, .. }) => problem.status,
        other => panic!("{other:?} is not a problem"),
    }
}

#[test]
fn jobs_are_proven_and_published_in_order() {
    let place = Place::new("");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    // The first one takes longest.
    let inputs = ["1 one", "0.2 two", "0 three"];
    let jobs: Vec<JobStatus> =
        (1..).zip(inputs).map(|(block, input)| submit(&client, &place, block, input)).collect();
    let again = submit(&client, &place, 2, "0.2 two");
    assert_eq!((again.job, again.accepted), (jobs[1].job.clone(), jobs[1].accepted));
    for (job, word) in jobs.iter().zip(["ONE", "TWO", "THREE"]) {
        let status = ended(&client, job);
        assert_eq!(status.state, "done", "{status:?}");
        assert_eq!(output(&client, &place, &status), word);
    }
    wait("all are published", || published(&client) == ["b1", "b2", "b3"]);
    assert_eq!(place.attempts(), 3);
    place.check();
}

#[test]
fn a_worker_that_is_killed_is_replaced_within_seconds() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let first = place.work();
    // No other test, and no other run of this one, sleeps for so long.
    let seconds = format!("{}.{}", 600, std::process::id());
    let job = submit(&client, &place, 1, &format!("{seconds} one"));
    let sleeping = || {
        let found = Command::new("pgrep").args(["-x", "-f", &format!("sleep {seconds}")]).output();
        text(&found.unwrap().stdout).lines().count()
    };
    wait("it runs", || sleeping() == 1);
    let second = place.work();
    std::thread::sleep(Duration::from_secs(2));
    first.kill();
    let killed = Instant::now();
    let status = ended(&client, &job);
    // Not after the five reads of a session on another machine, since its lock is free. (A generous limit, for slow machines.)
    assert!(killed.elapsed() < Duration::from_secs(30));
    assert_eq!(status.state, "done", "{status:?}\n{}", place.errors());
    assert_eq!(place.attempts(), 2);
    wait("nothing is left of the first attempt", || sleeping() == 0);
    drop(second);
    place.check();
}

#[test]
fn a_frozen_worker_loses_its_lease_and_does_no_harm() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let frozen = place.work();
    // The next holder of the task kills its prover, which is not frozen.
    let job = submit(&client, &place, 1, "30 one");
    wait("it runs", || place.attempts() == 1);
    frozen.signal("-STOP");
    let other = place.work();
    wait("another one has it", || place.attempts() == 2);
    frozen.signal("-CONT");
    let status = ended(&client, &job);
    assert_eq!((status.state.as_str(), status.outputs.len()), ("done", 1), "{status:?}");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(client.job(&job.job, 0).unwrap(), status, "the first result stays");
    assert_eq!(place.attempts(), 2, "{}", place.errors());
    drop((frozen, other));
    place.check();
}

/// `HEKATON_KILLS` is how many rounds there are.
#[test]
fn everything_may_be_killed_at_any_time() {
    let rounds = std::env::var("HEKATON_KILLS").map_or(6, |text| text.parse().unwrap());
    let place = Place::new("");
    let mut service = place.serve(&[]);
    strict(&service.client());
    let mut worker = place.start(&["work", "--collect"]);
    let mut jobs = Vec::new();
    for round in 0..rounds {
        for at in 1..=3 {
            let block = 3 * round + at;
            jobs.push(submit(&service.client(), &place, block, &format!("0.{at} w{block}")));
        }
        std::thread::sleep(Duration::from_millis(100 + 131 * (round % 5)));
        match round % 3 {
            0 => {
                worker.kill();
                worker = place.start(&["work", "--collect"]);
            }
            1 => {
                service.kill();
                service = place.serve(&[]);
            }
            _ => {
                worker.kill();
                service.kill();
                (service, worker) = (place.serve(&[]), place.start(&["work", "--collect"]));
            }
        }
    }
    let client = service.client();
    for job in &jobs {
        let status = ended(&client, job);
        assert_eq!(status.state, "done", "{status:?}\n{}", place.errors());
        assert_eq!(output(&client, &place, &status), format!("W{}", status.block));
    }
    wait("all are published", || published(&client).len() == jobs.len());
    // Only what ran when something was killed ran again: at most four at a time.
    let again = place.attempts() - jobs.len();
    assert!(again <= 4 * usize::try_from(rounds).unwrap(), "{again} attempts too many");
    drop((service, worker));
    place.check();
}

/// A server of NATS that syncs every write; none where there is no such program (`NATS_SERVER`, or in PATH).
#[cfg(feature = "nats")]
fn nats(place: &Place, port: u16) -> Option<Child> {
    let program = std::env::var_os("NATS_SERVER").unwrap_or_else(|| "nats-server".into());
    let config = place.path("nats.conf");
    let text = format!(
        "host: 127.0.0.1\nport: {port}\njetstream {{\n  store_dir: {:?}\n  sync_interval: always\n}}\n",
        place.path("nats"),
    );
    std::fs::write(&config, text).unwrap();
    let mut command = Command::new(program);
    let child = command.arg("-c").arg(config).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    if child.is_err() {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), "SKIPPED: there is no nats-server");
    }
    wait("it answers", || {
        child.is_err() || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
    });
    child.ok()
}

/// The same with records in NATS JetStream, whose server is killed, too.
#[cfg(feature = "nats")]
#[test]
fn nats_and_everything_else_may_be_killed() {
    let mut place = Place::new("");
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let Some(mut server) = nats(&place, port) else { return };
    place.more = vec!["--nats".into(), format!("nats://127.0.0.1:{port}")];
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    let mut worker = place.start(&["work", "--collect"]);
    let mut jobs = Vec::new();
    for round in 0..3 {
        for at in 1..=3 {
            let block = 3 * round + at;
            jobs.push(submit(&client, &place, block, &format!("0.{at} w{block}")));
        }
        std::thread::sleep(Duration::from_millis(150));
        server.kill().unwrap();
        server.wait().unwrap();
        std::thread::sleep(Duration::from_millis(500));
        // The worker dies after the server is back, and once while it is away.
        let away = (round == 1).then(|| worker.child.kill().unwrap());
        server = nats(&place, port).unwrap();
        if away.is_none() {
            std::thread::sleep(Duration::from_millis(300));
        }
        worker.kill();
        worker = place.start(&["work", "--collect"]);
    }
    for job in &jobs {
        let status = ended(&client, job);
        assert_eq!(status.state, "done", "{status:?}\n{}", place.errors());
        assert_eq!(output(&client, &place, &status), format!("W{}", status.block));
    }
    let all: Vec<String> = (1..=9).map(|block| format!("b{block}")).collect();
    wait("all are published in order", || {
        client.proofs("main", 0).is_ok_and(|it| it.proofs.len() == 9)
    });
    assert_eq!(published(&client), all);
    drop((service, worker));
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_task_that_kills_its_worker_dies_at_last() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    strict(&client);
    let job = submit(&client, &place, 1, "0 poison");
    let after = submit(&client, &place, 2, "0 two");
    let mut worker = place.work();
    let until = Instant::now() + Duration::from_secs(120);
    let status = loop {
        let status = client.job(&job.job, 0).unwrap();
        if status.state != "live" {
            break status;
        }
        assert!(Instant::now() < until, "{}", place.errors());
        if worker.child.try_wait().unwrap().is_some() {
            worker = place.work();
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(status.state, "dead");
    assert!(status.reason.unwrap().contains("ended while it ran the task"));
    drop(worker);
    let worker = place.work();
    assert_eq!(ended(&client, &after).state, "done");
    assert_eq!(published(&client), [""; 0]);
    client.skip(&job.job).unwrap();
    wait("the chain goes on", || published(&client) == ["b1", "b2"]);
    drop(worker);
    place.check();
}

#[test]
fn wrong_and_impossible_tasks() {
    let place = Place::new("");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    client.make_chain("files", &ChainBody { order: Order::None, genesis: None }).unwrap();
    let impossible = submit(&client, &place, 1, "0 impossible");
    let status = ended(&client, &impossible);
    assert_eq!((status.state.as_str(), place.attempts()), ("dead", 1));
    assert!(status.reason.unwrap().contains("not a witness"));
    assert_eq!(client.requeue(&impossible.job).unwrap().state, "live");
    let status = ended(&client, &impossible);
    assert_eq!((status.generation, place.attempts()), (1, 2));
    assert_eq!(client.cancel(&impossible.job).unwrap().state, "cancelled");

    // What leaves something running behind ends all the same.
    let leaves = submit(&client, &place, 1, "0 leaves");
    assert_eq!(ended(&client, &leaves).state, "done");
    // What is given back uncounted is not given back all the time.
    let tired = submit(&client, &place, 2, "0 tired");
    std::thread::sleep(Duration::from_secs(3));
    assert!((1..8).contains(&(place.attempts() - 3)), "{} attempts", place.attempts());
    assert_eq!(client.cancel(&tired.job).unwrap().state, "cancelled");

    // Its outputs do not count, and after those of three tasks its back-end is not used anymore.
    let wrong = ["0 wrong", "0.0 wrong", "0.00 wrong"].map(|input| {
        std::fs::write(place.path("input"), format!("{input}\n")).unwrap();
        let blob = client.put_file(&place.path("input")).unwrap();
        let inputs = BTreeMap::from([("input".into(), vec![blob.to_string()])]);
        let backend = Some("prove".into());
        client
            .submit(&JobBody { chain: "files".into(), backend, inputs, ..JobBody::default() })
            .unwrap()
    });
    let metrics = || {
        let url = format!("{}/metrics", service.address);
        text(&Command::new("curl").args(["-s", &url]).output().unwrap().stdout)
    };
    wait("it is quarantined", || metrics().contains("quarantined{backend=\"prove\"} 1"));
    let live = wrong.iter().filter(|job| client.job(&job.job, 0).unwrap().state == "live").count();
    let unrunnable = format!("tasks_unrunnable {live}");
    wait("nobody can run them", || metrics().contains(&unrunnable));
    drop(service);
    place.check();
}

#[test]
fn a_process_stops_in_order() {
    let place = Place::new("");
    let mut service = place.serve(&["--grace", "60"]);
    let client = service.client();
    strict(&client);
    let job = submit(&client, &place, 1, "1 one");
    let later = submit(&client, &place, 2, "60 two");
    wait("both run", || place.attempts() == 2);
    service.signal("-TERM");
    assert_eq!(ended(&client, &job).state, "done", "what runs may end");
    assert_eq!(client.job(&later.job, 0).unwrap().state, "live");
    // A second signal is a hurry.
    service.signal("-TERM");
    assert!(service.child.wait().unwrap().success(), "{}", place.errors());
    place.check();
    let again = place.serve(&[]);
    wait("it is claimed at once", || place.attempts() == 3);
    let log = std::fs::read_to_string(place.path("log")).unwrap();
    assert_eq!(log.lines().last(), Some("2 0"), "the attempt before is not counted");
    drop(again);
}

#[test]
fn tenants_are_kept_apart() {
    let (alice, bob) = ("a token of alice", "a token of bob's");
    let digest = |token: &str| Digest::of(token.as_bytes());
    let place = Place::new(&format!(
        "[tenants.alice]\ntoken_digest = \"{}\"\njobs = 2\nblob_bytes = 100\n[tenants.bob]\ntoken_digest = \"{}\"\n",
        digest(alice),
        digest(bob),
    ));
    let service = place.serve(&["--slots", "0"]);
    let client = |token: Option<&str>| Client::new(&service.address, token.map(str::to_owned));
    let (nobody, alice, bob) = (client(None), client(Some(alice)), client(Some(bob)));
    assert_eq!(status_of(nobody.chain("main")), 401);
    assert_eq!(status_of(client(Some("another token")).chain("main")), 401);
    strict(&alice);
    let job = submit(&alice, &place, 1, "0 one");
    assert_eq!(status_of(bob.job(&job.job, 0)), 404);
    assert_eq!(status_of(bob.cancel(&job.job)), 404);
    assert_eq!(status_of(bob.proofs("main", 0)), 404);
    assert_eq!(status_of(bob.requeue(&job.job)), 404);
    assert_eq!(status_of(bob.skip(&job.job)), 404);
    let all = RevertBody { to: "genesis".into(), block: 0 };
    assert_eq!(status_of(bob.revert("main", &all)), 404);
    assert_eq!(status_of(bob.drain()), 403, "who has a token is not the operator");
    // Bob's chain of the same name is another one.
    strict(&bob);
    submit(&bob, &place, 1, "0 one");
    // Limits, which do not refuse what was accepted before.
    submit(&alice, &place, 2, "0 two");
    let blob = Digest::of(b"0 two\n").to_string();
    let refused =
        |block: u64| matches!(alice.submit(&body(block, &blob)), Err(ClientError::Problem { .. }));
    let mut block = 2;
    wait("two are open", || {
        block += 1;
        refused(block)
    });
    assert_eq!(status_of(alice.submit(&body(block, &blob))), 429);
    assert_eq!(alice.submit(&body(2, &blob)).unwrap().state, "live");
    let large = place.path("large");
    std::fs::write(&large, [0; 101]).unwrap();
    assert_eq!(status_of(alice.put_file(&large)), 413);
}

#[test]
fn bad_requests_say_what_is_wrong() {
    let place = Place::new("");
    let service = place.serve(&["--slots", "0"]);
    let client = service.client();
    let curl = |arguments: &[String], path: &str| -> (String, String) {
        let url = format!("{}{path}", service.address);
        let mut curl = Command::new("curl");
        curl.args(["-s", "-w", "\n%{http_code}"]).args(arguments).arg(url);
        let out = text(&curl.output().unwrap().stdout);
        let (body, code) = out.rsplit_once('\n').unwrap();
        (code.to_owned(), body.to_owned())
    };
    let none = Digest::of(b"none");
    let json = |body: &str| {
        ["-H", "content-type: application/json", "-d", body].map(str::to_owned).to_vec()
    };
    let job = |rest: &str| {
        json(&format!("{{\"chain\":\"main\",\"inputs\":{{\"input\":[\"{none}\"]}}{rest}}}"))
    };
    let with = |options: &[&str]| options.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    let put = |body: &str| [json(body), with(&["-X", "PUT"])].concat();
    for (arguments, path, code, why) in [
        (vec![], "/v1/nothing".to_owned(), "404", "openapi.json"),
        (with(&["-X", "PATCH"]), "/v1/jobs".into(), "405", "no such method"),
        (vec![], "/v1/jobs/x".into(), "400", "is not a name"),
        (vec![], format!("/v1/jobs/a.b.{none}"), "404", "there is no job"),
        (vec![], "/v1/chains/main".into(), "404", "make it first"),
        (json("{"), "/v1/jobs".into(), "400", "EOF"),
        (
            json("{\"chain\":\"main\",\"inputs\":{},\"more\":1}"),
            "/v1/jobs".into(),
            "400",
            "unknown field",
        ),
        (job(""), "/v1/jobs".into(), "400", "either a 'workflow' or a 'backend'"),
        (job(",\"backend\":\"prove\""), "/v1/jobs".into(), "422", "PUT it to"),
        (job(",\"workflow\":\"zz\""), "/v1/jobs".into(), "400", "64 lowercase"),
        (put("{\"order\":\"strict\"}"), "/v1/chains/main".into(), "400", "genesis"),
        (put("{\"order\":\"best\"}"), "/v1/chains/main".into(), "400", "unknown variant"),
        (put("x"), format!("/v1/blobs/{none}"), "400", "the body has digest"),
        (put("x"), "/v1/blobs/abc".into(), "400", "64 lowercase"),
        (vec![], format!("/v1/blobs/{none}"), "404", "there is no blob"),
        (with(&["-d", "stages = 1"]), "/v1/workflows".into(), "422", "not a workflow"),
        (with(&["-H", "origin: http://evil"]), "/healthz".into(), "403", "another site"),
        (with(&["-H", "host: evil.example:80"]), "/healthz".into(), "403", "this machine"),
    ] {
        let (found, body) = curl(&arguments, &path);
        assert_eq!(found, code, "{path}: {body}");
        assert!(body.contains(why), "{path}: {body}\nand not: {why}");
    }
    assert_eq!(curl(&[], "/readyz").0, "204");
    assert!(curl(&[], "/openapi.json").1.contains("Hekaton orchestrator"));
    strict(&client);
    let other = ChainBody { order: Order::None, genesis: None };
    assert_eq!(status_of(client.make_chain("main", &other)), 409);
    submit(&client, &place, 1, "0 one");
    // Another block in the same place.
    let blob = Digest::of(b"0 one\n").to_string();
    let rival = JobBody { id: Some("rival".into()), ..body(1, &blob) };
    assert_eq!(status_of(client.submit(&rival)), 409);
}

fn blake3_of(path: &Path) -> String {
    Digest::of(&std::fs::read(path).unwrap()).to_string()
}

fn program(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).current_dir(folder).env("RUST_LOG", "off").output().unwrap()
}

#[test]
fn the_command_line_does_all_of_it() {
    let place = Place::new("");
    let service = place.serve(&[]);
    let at = service.address.clone();
    let run = |arguments: &[&str]| {
        program(&[arguments, &["--service", &at]].concat(), place.folder.path())
    };
    for (name, input) in [("a", "0 a"), ("b", "0 b"), ("c", "0 impossible")] {
        std::fs::write(place.path(name), format!("{input}\n")).unwrap();
    }
    let done = run(&["submit", "a", "--wait", "--output", "a.proof"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(std::fs::read_to_string(place.path("a.proof")).unwrap(), "A\n");
    let done = run(&["submit", "a", "b", "--chain", "main", "--wait", "--output", "proofs"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(std::fs::read_to_string(place.path("proofs/b.proof")).unwrap(), "B\n");
    wait("both are out", || text(&run(&["proofs", "main"]).stdout).lines().count() == 2);
    let chain = text(&run(&["chain", "main"]).stdout);
    assert!(chain.contains("block 1"), "{chain}");

    // Without waiting, the next command continues after what the one before submitted.
    let more = run(&["submit", "a", "--chain", "pending"]);
    assert!(more.status.success(), "{}", text(&more.stderr));
    let more = run(&["submit", "b", "--chain", "pending"]);
    assert!(more.status.success(), "{}", text(&more.stderr));

    let dead = run(&["submit", "c", "--chain", "main", "--wait"]);
    assert_eq!(dead.status.code(), Some(1), "{}", text(&dead.stdout));
    assert!(text(&dead.stdout).contains("not a witness"));
    let job = text(&dead.stdout).split_whitespace().next().unwrap().to_owned();
    assert!(text(&run(&["status", &job]).stdout).contains("dead"));
    assert!(run(&["skip", &job]).status.success());
    let workflow = "version = 1\nname = \"two\"\n[inputs.x]\n[[stages]]\nname = \"one\"\nfrom = [\"x\"]\n\
                    backend = \"prove\"\n";
    std::fs::write(place.path("two.toml"), workflow).unwrap();
    let inputs = ["-i", "x=a", "-i", "x=b", "--wait", "--output", "two"];
    let done = run(&[&["submit", "--workflow", "two.toml"], &inputs[..]].concat());
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(std::fs::read_to_string(place.path("two.1")).unwrap(), "B\n");

    for (arguments, code, why) in [
        (vec!["submit"], 2, "name files"),
        (vec!["submit", "none"], 3, "none: "),
        (vec!["submit", "a", "./a", "--wait", "--output", "x"], 2, "two files are called"),
        (vec!["status", "x"], 4, "is not a name"),
        (vec!["revert", "main", "x", "7"], 0, ""),
        (vec!["revert", "main", "x", "1"], 4, "not one that the chain has published"),
        (vec!["workflow", "a"], 4, "not a workflow"),
    ] {
        let out = run(&arguments);
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(why), "{arguments:?}: {}", text(&out.stderr));
    }
    // A damaged input is found, and sent again it is whole again.
    let blob = blake3_of(&place.path("a"));
    let stored = place.path("data").join("blobs").join(&blob[..2]).join(&blob);
    std::fs::write(&stored, "0 z\n").unwrap();
    let done = run(&["submit", "a", "--chain", "again", "--wait", "--output", "again.proof"]);
    assert!(done.status.success(), "{}", text(&done.stderr));
    assert_eq!(std::fs::read_to_string(place.path("again.proof")).unwrap(), "A\n");
    drop(service);
    let nowhere = ["--slots", "0", "--listen", "127.0.0.1:0"];
    for (arguments, code, why) in [
        (vec!["serve", "--data", "d"], 2, "there is no back-end"),
        (vec!["serve", "--data", "d", "--slots", "0", "--listen", "0.0.0.0:0"], 2, "name tenants"),
        (vec!["serve", "--data", "d", "--keys", "none"], 2, "hekaton setup"),
        (vec!["serve", "--data", "d", "--settings", "a"], 2, "TOML"),
        (vec!["check", "--data", "d"], 3, "there is no orchestrator.db"),
        ([&["serve", "--data", "a"], &nowhere[..]].concat(), 3, "the folder a"),
        (vec!["status", "x", "--service", "127.0.0.1:9"], 4, "127.0.0.1:9"),
    ] {
        let out = program(&arguments, place.folder.path());
        assert_eq!(out.status.code(), Some(code), "{arguments:?}: {}", text(&out.stderr));
        assert!(text(&out.stderr).contains(why), "{arguments:?}: {}", text(&out.stderr));
    }
    place.check();
}
