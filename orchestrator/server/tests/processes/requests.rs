//! Requests and command lines, good and bad.

use super::support::*;
use hekaton_orchestrator::http::{ChainBody, JobBody, RevertBody};
use hekaton_orchestrator::record::Order;
use hekaton_orchestrator::{Client, ClientError, Digest};
use std::path::Path;
use std::process::{Command, Output};

#[test]
fn tenants_are_kept_apart() {
    let (alice, bob) = ("a token of alice", "a token of bob's");
    let digest = |token: &str| Digest::of(token.as_bytes());
    let place = Place::new(&format!(
        "[tenants.alice]\ntoken_digest = \"{}\"\njobs = 2\nchains = 2\nblob_bytes = 100\nbytes_per_day = 150\n[tenants.bob]\ntoken_digest = \"{}\"\n",
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
    let free = ChainBody { order: Order::None, genesis: None, bundles: None };
    alice.make_chain("second", &free).unwrap();
    assert_eq!(status_of(alice.make_chain("third", &free)), 429);
    alice.make_chain("second", &free).unwrap();
    // The limits do not apply to jobs that were accepted before.
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
    // A blob that is stored already, or whose digest is wrong, is not counted: 12 bytes are used so far.
    for count in [98, 98, 98] {
        std::fs::write(&large, vec![7; count]).unwrap();
        alice.put_file(&large).unwrap();
    }
    std::fs::write(&large, [1; 50]).unwrap();
    assert_eq!(status_of(alice.put_file(&large)), 429);
    let workflow = "version = 1\nname = \"one\"\n[inputs.a]\n[[stages]]\nname = \"b\"\nfrom = [\"a\"]\nbackend = \"prove\"\n";
    assert_eq!(status_of(alice.workflow(workflow)), 429, "workflows are blobs, too");
    bob.workflow(workflow).unwrap();
    alice.workflow(workflow).unwrap();
    bob.put_file(&large).unwrap();
    std::fs::write(&large, vec![7; 98]).unwrap();
    alice.put_file(&large).unwrap();
}

/// A client that sends a blob and does not wait for the answer has sent it nevertheless.
#[test]
fn bytes_count_without_an_answer() {
    use std::io::Write as _;
    use std::time::Duration;
    let digest = |bytes: &[u8]| Digest::of(bytes).to_string();
    let place = Place::new(&format!(
        "[tenants.alice]\ntoken_digest = \"{}\"\nblob_bytes = 100\nbytes_per_day = 100\n",
        digest(b"alice")
    ));
    let service = place.serve(&["--slots", "0"]);
    let host = service.address.trim_start_matches("http://");
    let alice = Client::new(&service.address, Some("alice".into()));
    // The service may notice that the caller is gone before it has stored the blob: then nothing is counted. It may also be slow, and
    // have stored an earlier one by now.
    let is_stored = (0..50_u8).any(|attempt| {
        let blob = [attempt; 60];
        let mut stream = std::net::TcpStream::connect(host).unwrap();
        let head = format!("PUT /v1/blobs/{} HTTP/1.1\r\nhost: {host}\r\n", digest(&blob));
        let rest = "authorization: Bearer alice\r\ncontent-length: 60\r\n\r\n";
        stream.write_all(&[head.as_bytes(), rest.as_bytes(), &blob].concat()).unwrap();
        // It leaves later each time: at first, before anything was done.
        std::thread::sleep(Duration::from_millis(u64::from(attempt).pow(2)));
        drop(stream);
        std::thread::sleep(Duration::from_millis(200));
        (0..=attempt).any(|sent| alice.has_blob(&Digest::of(&[sent; 60])).unwrap())
    });
    assert!(is_stored);
    let path = place.path("blob");
    std::fs::write(&path, [100; 60]).unwrap();
    assert_eq!(status_of(alice.put_file(&path)), 429);
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
        (vec![], "/v1/jobs/x".into(), "400", "is not the handle of a job"),
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
        (vec![], format!("/v1/blobs/{none}"), "404", "does not exist"),
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
    let other = ChainBody { order: Order::None, genesis: None, bundles: None };
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

#[cfg(feature = "nats")]
#[test]
fn records_in_nats_are_not_removed() {
    let place = Place::new("");
    let serve = ["serve", "--data", "x", "--slots", "0", "--nats", "nats://127.0.0.1:1"];
    let refused = program(&[&serve[..], &["--keep-days", "3"]].concat(), place.folder.path());
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("cannot be removed from NATS JetStream"));
}

#[test]
fn the_command_line_does_all_of_it() {
    let place = Place::new(
        "[backends.join]\nkind = \"command\"\nunverified = true\n\
         command = [\"sh\", \"-c\", 'out=$1; shift; cat \"$@\" > \"$out\"', \"join\", \"{output}\", \"{inputs}\"]\n",
    );
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

    // A bundle of both, and of whatever follows.
    let bundle = "version = 1\nname = \"bundle\"\n[inputs.proofs]\n[[stages]]\nname = \"join\"\n\
                  from = [\"proofs\"]\ncollect = \"all\"\nbackend = \"join\"\n";
    std::fs::write(place.path("bundle.toml"), bundle).unwrap();
    let made = ["chain", "pairs", "--genesis", "g", "--bundles-of", "main", "--blocks", "2"];
    let made = run(&[&made[..], &["--workflow", "bundle.toml"]].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    wait("a bundle is out", || text(&run(&["proofs", "pairs"]).stdout).lines().count() == 1);
    let out = text(&run(&["proofs", "pairs"]).stdout);
    let joined = place.path("data").join("blobs");
    let blob = out.split_whitespace().last().unwrap();
    assert_eq!(std::fs::read_to_string(joined.join(&blob[..2]).join(blob)).unwrap(), "A\nB\n");
    let refused = run(&["submit", "a", "--chain", "pairs"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(&refused.stderr).contains("are made of those of 'main'"));

    // Without waiting, the next command continues after what the one before submitted.
    let more = run(&["submit", "a", "--chain", "pending"]);
    assert!(more.status.success(), "{}", text(&more.stderr));
    assert!(text(&more.stderr).contains("chain 'pending' did not exist"), "{more:?}");
    let more = run(&["submit", "b", "--chain", "pending"]);
    assert!(more.status.success(), "{}", text(&more.stderr));

    let dead = run(&["submit", "c", "--chain", "main", "--wait"]);
    assert_eq!(dead.status.code(), Some(1), "{}", text(&dead.stdout));
    assert!(text(&dead.stdout).contains("not a witness"));
    let job = text(&dead.stdout).split_whitespace().next().unwrap().to_owned();
    assert!(text(&run(&["status", &job]).stdout).contains("dead"));
    let skipped = run(&["skip", "main/2"]);
    assert!(skipped.status.success(), "{}", text(&skipped.stderr));
    assert!(text(&skipped.stdout).contains(&format!("{job} block 2: skipped")), "{skipped:?}");
    jobs_are_named_in_several_ways(&place, &run);
    // All dead jobs of a chain: three are behind each other, a fourth has no parent.
    for id in ["d1", "d2", "d3"] {
        let dead = run(&["submit", "c", "--chain", "bulk", "--id", id, "--wait"]);
        assert_eq!(dead.status.code(), Some(1), "{}", text(&dead.stdout));
    }
    let alone = ["submit", "c", "--chain", "bulk", "--block", "9", "--parent", "x", "--id", "y"];
    assert_eq!(run(&[&alone[..], &["--wait"]].concat()).status.code(), Some(1));
    let again = run(&["requeue", "--chain", "bulk"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
    let lines = text(&again.stdout);
    assert_eq!(lines.matches(": live").count(), 4, "{lines}");
    let dead = || text(&run(&["status"]).stdout).matches(": dead").count();
    wait("they are dead again", || dead() == 4);
    let skipped = run(&["skip", "--chain", "bulk"]);
    assert!(skipped.status.success(), "{}", text(&skipped.stderr));
    assert_eq!(text(&skipped.stdout).matches(": skipped").count(), 3, "{}", text(&skipped.stdout));
    assert_eq!(dead(), 1, "what does not follow stays");
    assert_eq!(run(&["requeue", "--chain", "none"]).status.code(), Some(4));
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
        (
            vec!["submit", "a", "./a", "--wait", "--output", "x"],
            2,
            "another file has the same name",
        ),
        (vec!["status", "x"], 4, "no job 'x' among the open ones"),
        (vec!["status", "none/1"], 4, "none"),
        (vec!["requeue", "--chain", "pairs"], 0, "has no dead jobs"),
        (vec!["skip", "--chain", "pairs"], 0, "is not dead"),
        (vec!["revert", "main", "x", "7"], 4, "neither one that the chain has published"),
        (vec!["revert", "main", "genesis", "0"], 0, ""),
        (vec!["fetch", "main/1", "fetched"], 1, ""),
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

/// Jobs are named by the beginning of a handle or of a name, or by chain and height; published blocks also when no list has them.
fn jobs_are_named_in_several_ways(place: &Place, run: &dyn Fn(&[&str]) -> Output) {
    let of_main = text(&run(&["--json", "proofs", "main"]).stdout);
    let first: serde_json::Value = serde_json::from_str(of_main.lines().next().unwrap()).unwrap();
    let name = format!("main/{}", first["id"].as_str().unwrap());
    for (named, content) in
        [(&name[..17], "A\n"), (&*name, "A\n"), ("main/0", "A\n"), ("main/1", "B\n")]
    {
        let fetched = run(&["fetch", named, "fetched"]);
        assert!(fetched.status.success(), "{named}: {}", text(&fetched.stderr));
        assert_eq!(std::fs::read_to_string(place.path("fetched")).unwrap(), content, "{named}");
    }
    for (named, code, why) in [
        ("", 2, "does not name a job"),
        ("main/", 2, "'main/' does not name a job"),
        ("main/9", 4, "no job 'main/9'"),
        ("main/x", 4, "no job 'main/x'"),
    ] {
        let refused = run(&["fetch", named, "fetched"]);
        assert_eq!(refused.status.code(), Some(code), "{named}: {}", text(&refused.stderr));
        assert!(text(&refused.stderr).contains(why), "{named}: {}", text(&refused.stderr));
    }
}

/// A block that is done above one that is not is not published yet, as events report.
#[test]
fn events_say_what_is_published() {
    use std::io::{BufRead, BufReader};
    let place = Place::new("");
    let service = place.serve(&[]);
    let client = service.client();
    strict(&client);
    let first = submit(&client, &place, 1, "0 one");
    let dead = submit(&client, &place, 2, "0 impossible");
    let above = submit(&client, &place, 3, "0 three");
    assert_eq!(ended(&client, &first).state, "done");
    assert_eq!(
        (ended(&client, &dead).state, ended(&client, &above).state),
        ("dead".into(), "done".into())
    );
    wait("the first one is published", || published(&client) == ["b1"]);
    let events = begin(&service.address, "GET", "/v1/events", &[], b"").unwrap();
    let mut lines = BufReader::new(events).lines().map(Result::unwrap);
    let mut next = |wanted: &str| {
        lines.find(|line| line == "event: published").unwrap();
        assert_eq!(lines.next().unwrap(), format!("data: {wanted}"));
    };
    next("{\"main\":1}");
    client.skip(&dead.job).unwrap();
    // The skipped block may be published alone at first.
    wait("all are published", || published(&client).len() == 3);
    let last = lines.find(|line| line == "data: {\"main\":3}");
    assert!(last.is_some());
}

/// A job that no process can run reports so when it is submitted, read and waited for; a job that runs reports that it does.
#[test]
fn who_waits_is_told_what_for() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let place = Place::new("");
    let service = place.serve(&[]);
    wait("it is ready", || service.get("/readyz").status == 204);
    let at = service.address.clone();
    let run = |arguments: &[&str]| {
        program(&[arguments, &["--service", &at]].concat(), place.folder.path())
    };
    std::fs::write(place.path("a"), "3 a\n").unwrap();
    let nobody = "waits for the back-end 'witness', which no live process has";
    wait("its processes are known", || {
        let queued = run(&["submit", "a", "--backend", "witness"]);
        assert!(queued.status.success(), "{}", text(&queued.stderr));
        text(&queued.stderr).contains(nobody)
    });
    let job = text(&run(&["submit", "a", "--backend", "witness"]).stdout).trim().to_owned();
    wait("its task is made", || text(&run(&["status", &job]).stdout).contains(nobody));
    assert!(text(&run(&["status"]).stdout).contains(nobody));
    wait("the log has it", || place.errors().contains("backends=\"witness\""));
    for (arguments, said) in [
        (vec!["submit", "a", "--backend", "witness", "--chain", "w", "--wait"], nobody),
        (vec!["submit", "a", "--chain", "r", "--wait"], "runs: 1 task at work"),
    ] {
        let mut waiting = Command::new(PROGRAM)
            .args([&arguments[..], &["--service", &at]].concat())
            .current_dir(place.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(waiting.stderr.take().unwrap()).lines();
        let line = lines.map(Result::unwrap).find(|line| line.contains(said));
        let line = line.unwrap_or_else(|| panic!("{arguments:?}: nothing is said of {said}"));
        assert!(!line.contains(['\r', '\u{1b}']), "{line:?} is for no terminal");
        waiting.kill().unwrap();
        waiting.wait().unwrap();
    }
}
