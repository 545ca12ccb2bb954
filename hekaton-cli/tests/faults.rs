//! The scenarios of a run that is left alone overnight. One test per scenario:
//!
//! | scenario | what must happen |
//! |---|---|
//! | SIGKILL at any moment | `--resume` ends with a verified proof; completed work is not repeated |
//! | SIGINT, SIGTERM | subcircuits in progress are kept, exit code 5; a second signal ends with 130 |
//! | the disk is full, in each phase | exit code 4 or 3 and the file's name; the run can be resumed |
//! | the directory is read-only | exit code 3, nothing changes |
//! | the clock is set back | nothing |
//! | two processes | the second is refused while the first is alive |
//! | a holder on another machine dies | its lease is taken over after the deadline |
//! | a run is taken over | the old holder stops and writes nothing more |
//! | another key, input or layout | refused, with the difference |

mod common;

use common::{Chain, fails, hekaton, ok};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Steps per subcircuit of [`chain`].
const STEPS: usize = 250;

/// 64 subcircuits, half a second's work with fast kernels: long enough for a test to interfere
/// with the run.
fn chain() -> &'static Chain {
    static CHAIN: OnceLock<Chain> = OnceLock::new();
    CHAIN.get_or_init(|| Chain::new(64, STEPS))
}

fn start(mut command: Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill")
        .args([&format!("-{signal}"), &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

/// Waits until all threads are stopped, which they are not yet when `kill` returns.
fn until_stopped(child: &Child) {
    let stopped = |task: std::io::Result<std::fs::DirEntry>| {
        // "ID (NAME) STATE ..."; a thread may have ended meanwhile
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        stat.is_empty() || stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T'))
    };
    let since = Instant::now();
    while !std::fs::read_dir(format!("/proc/{}/task", child.id())).unwrap().all(stopped) {
        assert!(since.elapsed() < Duration::from_secs(60), "it does not stop");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for the end; returns the exit code and standard error.
fn wait(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn events(run: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(format!("{run}/events.jsonl")).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits for an event of a run.
fn until(run: &str, what: &str, holds: impl Fn(&Value) -> bool) {
    let since = Instant::now();
    while !events(run).iter().any(&holds) {
        assert!(since.elapsed() < Duration::from_secs(60), "{what} does not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn phase_started(phase: &'static str) -> impl Fn(&Value) -> bool {
    move |e| e["event"] == "phase_start" && e["phase"] == phase
}

/// The number of times that subcircuits were done again, over all processes of a run.
fn done_again(run: &str) -> usize {
    let mut times: BTreeMap<(String, u64), usize> = BTreeMap::new();
    for e in events(run).iter().filter(|e| e["event"] == "subcircuit") {
        *times.entry((e["phase"].to_string(), e["instance"].as_u64().unwrap())).or_default() += 1;
    }
    assert!(times.len() <= 2 * chain().links);
    times.values().map(|n| n - 1).sum()
}

/// Checks a run after a kill: it can be resumed to a verified proof, and of the subcircuits
/// reported done, only those that two provers had in flight are done again.
fn check_resumed(run: &str) {
    chain().finish(run);
    assert!(done_again(run) <= 2, "{} subcircuits were done again", done_again(run));
    // the logs hold each answer once or, when killed between log and event, at most twice
    for (name, len) in [("commitments", 104), ("proofs", 280)] {
        let segments = (1..).map_while(|i| std::fs::metadata(format!("{run}/{name}.{i}.log")).ok());
        let n: u64 = segments.map(|m| m.len().saturating_sub(64) / len).sum();
        assert!((64..=66).contains(&n), "{n} records in {name}");
    }
    assert!(!std::path::Path::new(&format!("{run}/seed")).exists(), "a finished run needs no seed");
}

#[test]
fn killed_at_twenty_moments() {
    let chain = chain();
    let since = Instant::now();
    let whole = chain.path("whole");
    assert!(
        chain
            .prove(&whole, &[])
            .stderr(Stdio::null())
            .stdout(Stdio::null())
            .status()
            .unwrap()
            .success()
    );
    let total = since.elapsed();
    let mut random = std::process::id();
    for i in 0..20u32 {
        let run = chain.path(&format!("kill-{i}"));
        // anywhere in the i-th twentieth of a run's life
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let moment = (total * i + total * (random >> 16) / 65_536) / 20;
        let child = start(chain.prove(&run, &[]));
        std::thread::sleep(moment);
        signal(&child, "KILL");
        wait(child);
        check_resumed(&run);
    }
}

#[test]
fn killed_in_each_phase_and_again() {
    let chain = chain();
    let run = chain.path("phases");
    for phase in ["execute", "commit", "prove", "prove", "aggregate"] {
        let _ = std::fs::remove_file(format!("{run}/events.jsonl"));
        let child = start(chain.prove(&run, &["--resume"]));
        until(&run, phase, phase_started(phase));
        signal(&child, "KILL");
        wait(child);
    }
    let _ = std::fs::remove_file(format!("{run}/events.jsonl"));
    check_resumed(&run);
    // once more: finished runs stay finished
    chain.finish(&run);
    assert!(
        events(&run)
            .iter()
            .any(|e| e["message"].as_str().is_some_and(|m| m.contains("already finished")))
    );
}

#[test]
fn signals() {
    let chain = chain();
    for name in ["INT", "TERM"] {
        let run = chain.path(&format!("signal-{name}"));
        let child = start(chain.prove(&run, &[]));
        until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
        signal(&child, name);
        let (code, err) = wait(child);
        assert_eq!(code, Some(5), "{err}");
        assert!(err.contains("--resume"), "{err}");
        assert_eq!(events(&run).last().unwrap()["outcome"], "interrupted");
        assert!(
            !std::path::Path::new(&format!("{run}/lease.json")).exists(),
            "the lease is given back"
        );
        let done = events(&run)
            .iter()
            .filter(|e| e["event"] == "subcircuit" && e["phase"] == "prove")
            .count();
        assert!((1..64).contains(&done), "{done} proofs were made");
        chain.finish(&run);
        assert_eq!(done_again(&run), 0);
        let report = ok(&["report", &run]);
        assert!(report.contains("2 (interrupted, finished)"), "{report}");
    }
}

/// The second signal ends the process immediately, and the run can be resumed; without a run
/// directory, the first signal ends it.
#[test]
fn a_second_signal_ends_at_once() {
    // subcircuits that take seconds even with the fastest kernels
    let chain = Chain::new(2, 300_000);
    let run = chain.path("twice");
    let mut child = start(chain.prove(&run, &["--json"]));
    until(&run, "the prove round", phase_started("prove"));
    // until provers have begun, the first signal ends the run
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, "INT");
    let (mut stderr, mut err) = (BufReader::new(child.stderr.take().unwrap()), String::new());
    while !err.contains("stopping") {
        assert_ne!(stderr.read_line(&mut err).unwrap(), 0, "{err}");
    }
    // sooner, it would count as the same request
    std::thread::sleep(Duration::from_millis(400));
    signal(&child, "TERM");
    stderr.read_to_string(&mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{err}");
    assert!(err.contains("ended immediately"), "{err}");
    chain.finish(&run);
    let (x, keys, proof) = (chain.path("x"), chain.path("keys"), chain.path("proof"));
    let child = start(common::command(&[
        "prove",
        &x,
        "--keys",
        &keys,
        "--proof",
        &proof,
        "--events",
        &chain.path("e"),
    ]));
    let since = Instant::now();
    while !std::fs::read_to_string(chain.path("e"))
        .unwrap_or_default()
        .contains(r#""phase":"prove""#)
    {
        assert!(since.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(&child, "INT");
    assert_eq!(wait(child).0, Some(130));
    assert!(!std::path::Path::new(&proof).exists());
}

#[test]
fn two_processes() {
    let chain = chain();
    let run = chain.path("two");
    let first = start(chain.prove(&run, &[]));
    until(&run, "the prove round", phase_started("prove"));
    for _ in 0..2 {
        let second = chain.prove(&run, &["--resume"]).output().unwrap();
        let err = String::from_utf8_lossy(&second.stderr);
        assert_eq!(second.status.code(), Some(6), "{err}");
        assert!(err.contains(&format!("held by process {}", first.id())), "{err}");
    }
    assert_eq!(wait(first).0, Some(0), "the first is not disturbed");
    // a frozen process is not dead
    let run = chain.path("frozen");
    let first = start(chain.prove(&run, &[]));
    until(&run, "the prove round", phase_started("prove"));
    signal(&first, "STOP");
    let second = chain.prove(&run, &["--resume", "--lease", "1"]).output().unwrap();
    assert_eq!(second.status.code(), Some(6));
    signal(&first, "CONT");
    assert_eq!(wait(first).0, Some(0));
}

/// A lease as a process on another machine would leave it.
fn foreign_lease(run: &str, heartbeat: u64) {
    let text = format!(
        r#"{{"format_version":1,"host":"elsewhere","machine":"another","pid":1,"process_start":1,"token":"feedfeed","deadline_seconds":1,"heartbeat":"{heartbeat:020}"}}"#
    );
    let temporary = format!("{run}/foreign");
    std::fs::write(&temporary, text).unwrap();
    std::fs::rename(temporary, format!("{run}/lease.json")).unwrap();
}

#[test]
fn a_lease_of_another_machine() {
    let chain = chain();
    // alive: its heartbeat changes
    let run = chain.path("foreign");
    let child = start(chain.prove(&run, &[]));
    until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
    signal(&child, "KILL");
    wait(child);
    foreign_lease(&run, 1);
    let second = start(chain.prove(&run, &["--resume"]));
    std::thread::sleep(Duration::from_millis(400));
    foreign_lease(&run, 2);
    let (code, err) = wait(second);
    assert_eq!(code, Some(6), "{err}");
    assert!(err.contains("held by process 1 on elsewhere"), "{err}");
    // dead: after its deadline it is taken over
    let since = Instant::now();
    chain.finish(&run);
    assert!(since.elapsed() >= Duration::from_secs(1));
    assert!(
        events(&run)
            .iter()
            .any(|e| e["message"].as_str().is_some_and(|m| m.contains("took over the lease")))
    );
    assert!(done_again(&run) <= 2);
}

#[test]
fn an_old_holder_stops() {
    let chain = chain();
    let run = chain.path("old-holder");
    let child = start(chain.prove(&run, &[]));
    until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
    signal(&child, "STOP");
    until_stopped(&child);
    foreign_lease(&run, 1);
    let sizes = || {
        ["events.jsonl", "commitments.1.log", "proofs.1.log"]
            .map(|f| std::fs::metadata(format!("{run}/{f}")).unwrap().len())
    };
    let before = sizes();
    signal(&child, "CONT");
    let (code, err) = wait(child);
    assert_eq!(code, Some(4), "{err}");
    assert!(err.contains("taken over by process 1 on elsewhere"), "{err}");
    // a thread that checked the lease just before the stop may write that one record, to a segment
    // that belongs to this process
    let (after, most) = (sizes(), [1 << 10, 0, 1 << 10]);
    let grown: [u64; 3] = std::array::from_fn(|i| after[i] - before[i]);
    assert!(
        grown.iter().zip(most).all(|(grown, most)| *grown <= most),
        "it writes nothing more: {before:?}, {after:?}"
    );
    assert!(
        std::fs::read_to_string(format!("{run}/lease.json")).unwrap().contains("elsewhere"),
        "the lease is not its own"
    );
    chain.finish(&run);
}

#[test]
fn another_run_is_refused() {
    let chain = chain();
    let run = chain.path("refused");
    let child = start(chain.prove(&run, &[]));
    until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
    signal(&child, "KILL");
    wait(child);
    let (x, keys) = (chain.path("x"), chain.path("keys"));
    fails(3, "--resume", &["prove", &x, "--keys", &keys, "--run", &run]);
    std::fs::write(chain.path("y"), "8\n").unwrap();
    fails(
        3,
        "its input differs",
        &["prove", &chain.path("y"), "--keys", &keys, "--run", &run, "--resume"],
    );
    let other = chain.path("other-keys");
    ok(&["setup", "chain", "-p", "links=64", "-p", &format!("steps={STEPS}"), "--keys", &other]);
    fails(3, "its verifying key: ", &["prove", &x, "--keys", &other, "--run", &run, "--resume"]);
    let other = chain.path("shorter-keys");
    ok(&["setup", "chain", "-p", "links=63", "-p", &format!("steps={STEPS}"), "--keys", &other]);
    fails(3, "its layout: ", &["prove", &x, "--keys", &other, "--run", &run, "--resume"]);
    fails(3, "neither empty nor a run directory", &["prove", &x, "--keys", &keys, "--run", &keys]);
    fails(2, "--run", &["prove", &x, "--keys", &keys, "--resume"]);
    chain.finish(&run);
}

/// Runs a script with the chain's input and keys in a small file system in memory.
fn with_tmpfs(script: &str) -> (Option<i32>, String) {
    let chain = chain();
    common::tool().with_tmpfs(script, &[("X", &chain.path("x")), ("KEYS", &chain.path("keys"))])
}

/// The disk is full after a varying number of pages: wherever that happens, the error names the
/// file, and the run can be resumed once there is room.
#[test]
fn disk_full_in_each_phase() {
    let mut phases = std::collections::BTreeSet::new();
    // files take whole pages, so with more room the failure moves through all phases
    for pages in (1..12).chain([16, 22]) {
        let script = format!(
            "mount -o remount,size={}k $DIR; \
             $HEKATON prove $X --keys $KEYS --threads 2 --run $DIR/run 2>$DIR.err >/dev/null; code=$?; \
             cat $DIR.err; rm $DIR.err; echo code=$code; mount -o remount,size=4m $DIR; \
             $HEKATON prove $X --keys $KEYS --threads 2 --run $DIR/run --resume >/dev/null 2>&1 || exit 98; \
             cp $DIR/run/proof {}",
            4 * pages,
            chain().path("tmpfs-proof"),
        );
        let (code, out) = with_tmpfs(&script);
        assert_eq!(code, Some(0), "{pages} pages: {out}");
        chain().verify(&chain().path("tmpfs-proof"));
        if out.contains("code=0") {
            phases.insert("done".to_owned());
            continue;
        }
        assert!(out.contains("code=4") || out.contains("code=3"), "{pages} pages: {out}");
        assert!(
            out.contains("No space left on device") && out.contains("/run"),
            "{pages} pages: {out}"
        );
        assert!(!out.contains("panicked"), "{out}");
        let file = ["seed", "run.json", "lease", "commitments.", "proofs.", "run/proof", ".tmp"];
        phases.extend(file.iter().filter(|f| out.contains(*f)).map(|f| (*f).to_owned()));
    }
    for file in ["commitments.", "proofs.", "run/proof", "done"] {
        assert!(phases.contains(file), "no failure at {file}: {phases:?}");
    }
}

#[test]
fn read_only_directory() {
    let script = "mkdir $DIR/run; mount -o remount,ro $DIR; \
        $HEKATON prove $X --keys $KEYS --run $DIR/run; echo code=$?; $HEKATON prove $X --keys $KEYS --run $DIR/new; echo code=$?; \
        $HEKATON prove $X --keys $KEYS --proof $DIR/p; echo code=$?; ls -A $DIR/run";
    let (_, out) = with_tmpfs(script);
    assert_eq!(out.matches("code=3").count(), 3, "{out}");
    assert_eq!(out.matches("Read-only file system").count(), 3, "{out}");
    assert!(!out.contains("panicked"), "{out}");
}

/// The clock is set back by a week between two processes.
#[test]
fn clock_set_back() {
    let chain = chain();
    let run = chain.path("clock");
    let faked = |shift: &str, command: Command| {
        let mut faked = Command::new("faketime");
        faked
            .args(["-f", shift])
            .arg(command.get_program())
            .args(command.get_args())
            .env("DONT_FAKE_MONOTONIC", "1");
        faked
    };
    let child = start(faked("+3d", chain.prove(&run, &[])));
    until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
    // faketime replaces itself by the program, so this kills the program
    signal(&child, "KILL");
    wait(child);
    let output = faked("-4d", chain.prove(&run, &["--resume"]))
        .output()
        .expect("faketime is installed by scripts/test");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    chain.verify(&format!("{run}/proof"));
    assert!(done_again(&run) <= 2);
    let clocks: Vec<f64> = events(&run).iter().filter_map(|e| e["unix_time"].as_f64()).collect();
    assert!(
        clocks.len() == 2 && clocks[0] - clocks[1] > 6.0 * 86_400.0,
        "the clock was set back: {clocks:?}"
    );
    let report: Value = serde_json::from_str(&ok(&["report", &run, "--json"])).unwrap();
    assert!((0.0..600.0).contains(&report["seconds"].as_f64().unwrap()), "{report}");
}

/// `prove --events` writes all events; `report` refuses a file that is not an event file.
#[test]
fn events_and_reports() {
    let chain = chain();
    let (x, keys, proof) = (chain.path("x"), chain.path("keys"), chain.path("events-proof"));
    let file = chain.path("events");
    let args = ["prove", &x, "--keys", &keys, "--proof", &proof, "--events"];
    ok(&[&args[..], &[&file]].concat());
    let lines = std::fs::read_to_string(&file).unwrap();
    let all: Vec<Value> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!((&all[0]["event"], &all[0]["schema"]), (&"process_start".into(), &1.into()));
    let count = |name: &str| all.iter().filter(|e| e["event"] == name).count();
    assert_eq!(
        (count("run_start"), count("subcircuit"), count("run_end"), count("proof_written")),
        (1, 128, 1, 1)
    );
    assert_eq!((count("phase_start"), count("phase_end")), (5, 5));
    assert!(count("memory") >= 5);
    let page = chain.path("page.html");
    let table = ok(&["report", &file, "--html", &page]);
    assert!(
        table.contains("prove round") && table.contains("peak memory") && table.contains(&proof),
        "{table}"
    );
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("prover-1") && html.contains("<svg") && !html.contains("<script"));
    fails(3, "does not contain the events of a run", &["report", &x]);
    fails(3, "No such file", &["report", &keys]);
    fails(3, "that is the input", &["report", &file, "--html", &file]);
    fails(3, "that is the input", &[&args[..], &[&x]].concat());
    fails(3, "not a regular file", &[&args[..], &["/dev/full"]].concat());
    assert!(hekaton(&["report", &file, "--json"]).status.success());
}

/// The page in a real browser: its console stays empty, and every bar is drawn.
#[test]
fn the_report_in_a_browser() {
    let chain = chain();
    let (file, page, shot) =
        (chain.path("browser-events"), chain.path("browser.html"), chain.path("browser.png"));
    let (x, keys, proof) = (chain.path("x"), chain.path("keys"), chain.path("browser-proof"));
    ok(&["prove", &x, "--keys", &keys, "--proof", &proof, "--events", &file]);
    ok(&["report", &file, "--html", &page]);
    let browse = |what: &str| {
        let mut chromium = Command::new("chromium");
        chromium.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--window-size=1200,1500",
        ]);
        chromium
            .arg(format!("--user-data-dir={}", chain.path("browser-profile")))
            .arg(what)
            .arg(format!("file://{page}"));
        let output = chromium.output().expect("chromium is installed by scripts/test");
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!err.contains("CONSOLE"), "{err}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let dom = browse("--dump-dom");
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(
        dom.matches("<rect").count() == html.matches("<rect").count()
            && dom.contains("</polyline>"),
        "{dom}"
    );
    browse(&format!("--screenshot={shot}"));
    assert!(std::fs::metadata(&shot).unwrap().len() > 20_000, "the page is not empty");
}

/// Standard error is a pipe whose reader is gone: neither progress nor the message after a signal
/// ends the run.
#[test]
fn a_closed_standard_error() {
    let chain = chain();
    let run = chain.path("deaf");
    let mut child = start(chain.prove(&run, &[]));
    drop(child.stderr.take());
    until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let mut child = start(chain.prove(&run, &["--resume"]));
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    chain.verify(&format!("{run}/proof"));
}

/// Under nohup, SIGHUP is ignored; otherwise it stops the run like SIGTERM.
#[test]
fn hangups() {
    let chain = chain();
    for nohup in [true, false] {
        let run = chain.path(&format!("hangup-{nohup}"));
        let command = chain.prove(&run, &[]);
        let mut wrapped = Command::new(if nohup { "nohup" } else { "env" });
        wrapped.arg(command.get_program()).args(command.get_args());
        let child = start(wrapped);
        until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
        signal(&child, "HUP");
        assert_eq!(wait(child).0, Some(if nohup { 0 } else { 5 }));
    }
}

/// Some wrappers deliver every signal twice; signals within 300 ms count as one request.
#[test]
fn two_signals_at_once_are_one() {
    let chain = chain();
    let run = chain.path("double");
    let child = start(chain.prove(&run, &[]));
    until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
    let pid = child.id().to_string();
    let script = "kill -TERM $0; kill -HUP $0; kill -TERM $0";
    assert!(Command::new("sh").args(["-c", script, &pid]).status().unwrap().success());
    assert_eq!(wait(child).0, Some(5));
}

/// Outputs cannot overwrite the files of a run directory.
#[test]
fn a_run_is_not_overwritten() {
    let chain = chain();
    let run = chain.path("guarded");
    let child = start(chain.prove(&run, &[]));
    until(&run, "a proof", |e| e["event"] == "subcircuit" && e["phase"] == "prove");
    signal(&child, "KILL");
    wait(child);
    let (x, keys) = (chain.path("x"), chain.path("keys"));
    let before = std::fs::read(format!("{run}/seed")).unwrap();
    for name in [
        "seed",
        "run.json",
        "proofs.1.log",
        "commitments.7.log",
        "events.jsonl",
        "lease.json",
        "report.json",
    ] {
        let path = format!("{run}/../guarded/{name}");
        for option in ["--events", "--proof"] {
            let args = ["prove", &x, "--keys", &keys, "--run", &run, "--resume", option, &path];
            fails(3, "belongs to the run directory itself", &args);
        }
        let says = if name == "events.jsonl" {
            "that is the input"
        } else {
            "belongs to the run directory itself"
        };
        fails(3, says, &["report", &run, "--html", &path]);
    }
    assert_eq!(std::fs::read(format!("{run}/seed")).unwrap(), before);
    // DIR/proof is where the proof goes anyway, and other names in the directory are allowed
    let (proof, page) = (format!("{run}/proof"), format!("{run}/page.html"));
    ok(&[
        "prove",
        &x,
        "--keys",
        &keys,
        "--run",
        &run,
        "--resume",
        "--proof",
        &proof,
        "--events",
        &format!("{run}/more.jsonl"),
    ]);
    chain.verify(&proof);
    ok(&["report", &run, "--html", &page]);
    // a refused run leaves an older event file alone
    let events = chain.path("older-events");
    std::fs::write(&events, "precious").unwrap();
    fails(
        3,
        "already holds a run",
        &["prove", &x, "--keys", &keys, "--run", &run, "--events", &events],
    );
    assert_eq!(std::fs::read_to_string(&events).unwrap(), "precious");
    fails(3, "is a file, not a run directory", &["prove", &x, "--keys", &keys, "--run", &x]);
    fails(
        3,
        "where the proof goes",
        &["prove", &x, "--keys", &keys, "--proof", &events, "--events", &events],
    );
    fails(
        3,
        "belongs to the run",
        &["report", &format!("{run}/events.jsonl"), "--html", &format!("{run}/proof")],
    );
    let (new, sub) = (chain.path("new-run"), chain.path("new-run/sub/proof"));
    fails(
        3,
        "does not exist: create it first",
        &["prove", &x, "--keys", &keys, "--run", &new, "--proof", &sub],
    );
    // a finished run of another input is refused
    std::fs::write(chain.path("z"), "9\n").unwrap();
    fails(
        3,
        "is finished, and its proof does not hold",
        &["prove", &chain.path("z"), "--keys", &keys, "--run", &run, "--resume"],
    );
    fails(
        3,
        "does not exist: create it first",
        &["report", &run, "--html", &chain.path("no/where.html")],
    );
}
