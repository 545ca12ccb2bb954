//! The behavior of `experiment` that users see: refusals, interrupted runs, and repetitions that do
//! not count. A script stands in for `hekaton` where a real run would be slow.
#![allow(clippy::print_stderr, reason = "says what was skipped")]
#![allow(clippy::unwrap_used, reason = "a test")]

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// One experiment with two points of two repetitions, and one whose circuit does not exist.
const MINI: &str = r#"
name = "mini"
title = "A small experiment"
shows = "A sentence."
circuit = "chain"
paper = ["fig8_aggregation.csv"]
x = "subcircuits"
y = ["aggregate_s"]
series = "cores"
claims = []
input = { text = "3" }
[scale.tiny]
parameters = { links = "subcircuits", steps = 8 }
subcircuits = [2, 4]
cores = [1]
repetitions = 2
[scale.cluster]
parameters = { links = "subcircuits", steps = 8 }
subcircuits = [2]
cores = [100000]
repetitions = 1
"#;

/// An experiment whose circuit does not exist.
const LACKING: &str = r#"
name = "fig9"
title = "An experiment to come"
shows = "A sentence."
requires-circuit = "later"
paper = ["fig9_vkd.csv"]
x = "batch"
y = ["units_per_second"]
series = "cores"
claims = ["C7"]
"#;

/// Two circuits in one figure, and what the model says of larger machines.
const VARIANTS: &str = r#"
name = "fig9"
title = "Two circuits"
shows = "A sentence."
circuit = "chain"
paper = ["fig9_vkd.csv"]
x = "batch"
y = ["seconds", "units_per_second"]
series = "variant"
claims = ["C7"]
units = "batch"
input = { text = "3" }
[scale.tiny]
parameters = { batch = [1, 2, 4], links = 2 }
limits = [{ variant = "slow", most = { batch = 2 } }]
cores = [1]
repetitions = 1
[scale.tiny.variants]
fast = { options = { steps = "8" } }
slow = { circuit = "chain", options = { steps = "9" } }
[scale.tiny.projection]
cores = [32, 4096]
provers-per-rank = 32
parameters = { batch = [64] }
limits = [{ variant = "slow", when = { batch = 64 }, most = { links = 1 } }]
"#;

/// A directory of experiments with a stand-in for `hekaton`.
struct Stage {
    dir: tempfile::TempDir,
    hekaton: PathBuf,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let stage = Self { hekaton: dir.path().join("bin/hekaton"), dir };
        for name in ["bin", "experiments", "paper-data", "plot"] {
            fs::create_dir(stage.path(name)).unwrap();
        }
        let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/hekaton");
        fs::copy(fixture, &stage.hekaton).unwrap();
        let paper = Path::new(REPOSITORY).join("paper-results");
        for part in ["paper-data", "plot"] {
            for entry in fs::read_dir(paper.join(part)).unwrap().flatten() {
                if entry.path().is_file() {
                    fs::copy(entry.path(), stage.path(part).join(entry.file_name())).unwrap();
                }
            }
        }
        stage.write("experiments/mini.toml", MINI);
        stage.write("bin/model", "1 0.5 1.5");
        stage.write("experiments/fig9.toml", LACKING);
        stage
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_experiment"));
        command.args(arguments).arg("--hekaton").arg(&self.hekaton);
        command.arg("--directory").arg(self.dir.path());
        command.arg("--results").arg(self.path("set")).arg("--work").arg(self.path("work"));
        command.stdin(Stdio::null());
        command
    }

    /// Runs a command; returns its exit code and all that it printed.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        shown(&self.command(arguments).output().unwrap())
    }

    /// Returns the repetitions that were proved, in order.
    fn proved(&self) -> Vec<String> {
        let calls = fs::read_to_string(self.path("bin/calls")).unwrap_or_default();
        calls.lines().filter_map(|line| line.strip_prefix("prove ")).map(str::to_owned).collect()
    }

    /// Returns the calls of the stand-in that begin like this, with the rest of each line.
    fn calls(&self, what: &str) -> Vec<String> {
        let calls = fs::read_to_string(self.path("bin/calls")).unwrap_or_default();
        calls.lines().filter_map(|line| line.strip_prefix(what)).map(str::to_owned).collect()
    }

    /// A claim's verdict and what was found.
    fn claim(&self, id: &str) -> (String, String) {
        let claims = fs::read(self.path("set/claims.json")).unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        let claim = claims["claims"].as_array().unwrap().iter().find(|c| c["id"] == id).unwrap();
        let text = |name: &str| claim[name].as_str().unwrap().to_owned();
        (text("verdict"), text("found"))
    }

    /// The lines of `points.csv` about repetitions that count, and those about others.
    fn rows(&self) -> (Vec<String>, Vec<String>) {
        let table = fs::read_to_string(self.path("set/points.csv")).unwrap();
        table.lines().skip(1).map(str::to_owned).partition(|line| line.contains(",true,"))
    }

    /// Starts `run` and waits until this repetition hangs.
    fn hanging(&self, repetition: &str) -> std::process::Child {
        self.write("bin/hang", repetition);
        let mut child = self.command(&["run", "mini"]).stderr(Stdio::null()).spawn().unwrap();
        let pid = self.path(&format!("set/raw/{repetition}.part/pid"));
        let start = Instant::now();
        while !(pid.exists() && self.proved().iter().any(|p| p == repetition)) {
            if start.elapsed() > Duration::from_secs(60) {
                child.kill().unwrap();
                panic!("{repetition} was not started");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    }
}

fn shown(output: &Output) -> (i32, String) {
    let text = [output.stdout.clone(), output.stderr.clone()].concat();
    (output.status.code().unwrap_or(-1), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn an_unknown_key_is_refused_with_its_line_and_the_known_names() {
    let stage = Stage::new();
    stage.write("experiments/mini.toml", &MINI.replace("claims = []", "claims = []\nclaim = 1"));
    let (code, said) = stage.run(&["list"]);
    assert_eq!(code, 3, "{said}");
    for part in ["mini.toml", "line 11", "`claim`", "`claims`", "`requires-circuit`"] {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn edited_data_of_the_paper_is_refused() {
    let stage = Stage::new();
    let path = stage.path("paper-data/fig8_aggregation.csv");
    let text = fs::read_to_string(&path).unwrap().replace("16,100", "16,101");
    fs::write(&path, text).unwrap();
    let (code, said) = stage.run(&["list"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("fig8_aggregation.csv") && said.contains("must not be edited"), "{said}");
}

#[test]
fn what_does_not_fit_the_machine_is_refused_before_anything_runs() {
    let stage = Stage::new();
    let (code, said) = stage.run(&["check", "mini", "--scale", "cluster"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("100000 cores of"), "{said}");
    assert!(said.contains("the largest scale that fits is --scale tiny"), "{said}");
    assert_eq!(stage.run(&["run", "mini", "--scale", "cluster"]).0, 2);
    assert!(stage.proved().is_empty() && !stage.path("set").exists());
    assert_eq!(stage.run(&["check", "mini"]).0, 0);
}

#[test]
fn points_for_more_cores_than_there_are_are_left_out() {
    let stage = Stage::new();
    stage.write("experiments/mini.toml", &MINI.replacen("cores = [1]", "cores = [1, 90000]", 1));
    let (code, said) = stage.run(&["check", "mini"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("left out: 90000 cores of"), "{said}");
    let (code, said) = stage.run(&["run", "mini"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("2 of 4 points need more than the"), "{said}");
    assert!(said.contains("up to 90000, and are left out"), "{said}");
    assert_eq!(stage.proved().len(), 4, "two sizes on one core, twice");
    // The same plan, made on a machine with more cores, is continued here.
    let path = stage.path("set/plan.json");
    let mut plan: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    for point in plan["points"].as_array().unwrap().clone() {
        let id = point["id"].as_str().unwrap().replace(".c1.", ".c90000.");
        let mut more = point.clone();
        (more["id"], more["cores"]) = (id.clone().into(), 90_000.into());
        plan["repetitions"][&id] = 2.into();
        plan["points"].as_array_mut().unwrap().push(more);
    }
    fs::write(&path, plan.to_string()).unwrap();
    let (code, said) = stage.run(&["run", "mini", "--resume"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(stage.proved().len(), 4, "{said}");
}

#[test]
fn after_kill_9_only_the_interrupted_repetition_runs_again() {
    let stage = Stage::new();
    let mut child = stage.hanging("mini.c1.s4-2");
    let pid = fs::read_to_string(stage.path("set/raw/mini.c1.s4-2.part/pid")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let before = stage.proved();
    fs::remove_file(stage.path("bin/hang")).unwrap();
    let (code, said) = stage.run(&["run", "mini"]);
    assert_eq!(code, 2, "without --resume, existing points are refused: {said}");
    let (code, said) = stage.run(&["run", "mini", "--resume"]);
    assert_eq!(code, 0, "{said}");
    let mut all = ["mini.c1.s2-1", "mini.c1.s2-2", "mini.c1.s4-1", "mini.c1.s4-2"]
        .map(str::to_owned)
        .to_vec();
    let after = stage.proved();
    let again: Vec<&String> = after[before.len()..].iter().collect();
    assert!(again.contains(&&all[3]), "{again:?}");
    assert_eq!(after.len(), 5, "one repetition ran twice: {after:?}");
    let mut once: Vec<String> = after;
    once.sort();
    once.dedup();
    all.sort();
    assert_eq!(once, all);
    // What the killed run had left behind is gone: it would have disturbed the others.
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(!state.contains("(sleep) S"), "{state}");
    assert_eq!(stage.run(&["collect"]).0, 0);
    assert_eq!(stage.rows().0.len(), 4);
    // Nothing is left to do.
    assert_eq!(stage.run(&["run", "mini", "--resume"]).0, 0);
    assert_eq!(stage.proved().len(), 5);
}

#[test]
fn sigterm_leaves_no_point() {
    let stage = Stage::new();
    let mut child = stage.hanging("mini.c1.s2-1");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let left: Vec<String> = fs::read_dir(stage.path("set/raw"))
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    assert!(left.iter().all(|name| !name.starts_with("mini.c1.s2-1")), "{left:?}");
}

#[test]
fn a_proof_that_does_not_verify_is_no_point() {
    let stage = Stage::new();
    stage.write("bin/verify-refuses", "");
    let (code, said) = stage.run(&["run", "mini"]);
    assert_eq!(code, 4, "{said}");
    assert!(
        said.contains("no point: the proof was not accepted: the proof does not hold"),
        "{said}"
    );
    let (code, said) = stage.run(&["collect"]);
    assert_eq!(code, 0, "{said}");
    let (good, bad) = stage.rows();
    assert_eq!((good.len(), bad.len()), (0, 4));
    assert!(stage.run(&["status"]).1.contains("0 of 2 done, 2 failed"));
    // Without the separate verification's answer, a repetition does not count, either.
    fs::remove_file(stage.path("bin/verify-refuses")).unwrap();
    assert_eq!(stage.run(&["run", "mini", "--resume"]).0, 0);
    fs::remove_file(stage.path("set/raw/mini.c1.s2-1/verify.json")).unwrap();
    assert_eq!(stage.run(&["collect"]).0, 0);
    assert_eq!(stage.rows().0.len(), 3);
}

#[test]
fn a_failed_repetition_is_counted_and_no_point() {
    let stage = Stage::new();
    stage.write("bin/prove-fails", "");
    assert_eq!(stage.run(&["run", "mini"]).0, 4);
    fs::remove_file(stage.path("bin/prove-fails")).unwrap();
    assert_eq!(stage.run(&["run", "mini", "--resume"]).0, 0);
    let (code, said) = stage.run(&["collect"]);
    assert_eq!(code, 0, "{said}");
    assert!(
        said.contains("no point: prove ended with exit status: 4: a witness is wrong"),
        "{said}"
    );
    let (good, bad) = stage.rows();
    assert_eq!((good.len(), bad.len()), (4, 4));
    let summary: Value =
        serde_json::from_slice(&fs::read(stage.path("set/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["points"][0]["repetitions"], 2);
    assert_eq!(summary["points"][0]["failed"], 2);
}

#[test]
fn two_environments_share_no_series() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["run", "mini"]).0, 0);
    let path = stage.path("set/raw/mini.c1.s4-1/run.json");
    let mut account: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    account["environment"] = "0123456789abcdef".into();
    fs::write(&path, account.to_string()).unwrap();
    let (code, said) = stage.run(&["collect"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("mini.c1.s4-1: no point: environment 0123456789abcdef"), "{said}");
    assert_eq!(stage.rows().0.len(), 3);
    let (code, said) = stage.run(&["run", "mini", "--resume"]);
    assert_eq!(code, 0, "{said}");
    assert_eq!(stage.proved().len(), 5, "it runs again");
    // Another build of the program is another environment: all points run again.
    let script = fs::read_to_string(&stage.hekaton).unwrap();
    fs::write(&stage.hekaton, script + "# another build\n").unwrap();
    let (code, said) = stage.run(&["run", "mini", "--resume"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("the environment has changed (program_sha256)"), "{said}");
    assert_eq!(stage.proved().len(), 9);
}

#[test]
fn truncated_events_are_no_point() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["run", "mini"]).0, 0);
    let path = stage.path("set/raw/mini.c1.s2-2/events.jsonl");
    let events = fs::read_to_string(&path).unwrap();
    fs::write(&path, &events[..events.len() - 10]).unwrap();
    let (code, said) = stage.run(&["collect"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("mini.c1.s2-2: no point: the events are truncated"), "{said}");
    assert_eq!(stage.rows().0.len(), 3);
}

#[test]
fn results_of_another_schema_are_refused() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["run", "mini"]).0, 0);
    let path = stage.path("set/plan.json");
    let plan = fs::read_to_string(&path).unwrap().replace("\"schema\": 1", "\"schema\": 2");
    fs::write(&path, plan).unwrap();
    let (code, said) = stage.run(&["collect"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("schema 2, expected 1"), "{said}");
}

#[test]
fn an_experiment_without_its_circuit_is_skipped_everywhere() {
    let stage = Stage::new();
    let (code, said) = stage.run(&["list"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("skipped: no circuit yet"), "{said}");
    let (code, said) = stage.run(&["run"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("fig9: skipped: no circuit yet (later)"), "{said}");
    assert!(stage.run(&["status"]).1.contains("skipped: no circuit yet"));
    assert_eq!(stage.run(&["collect"]).0, 0);
    let claims: Value =
        serde_json::from_slice(&fs::read(stage.path("set/claims.json")).unwrap()).unwrap();
    let claim = claims["claims"].as_array().unwrap().iter().find(|c| c["id"] == "C7").unwrap();
    assert_eq!((&claim["verdict"], &claim["found"]), (&"skipped".into(), &"no circuit yet".into()));
    // The circuit appears, and parameters are still missing: the error says so.
    let script = fs::read_to_string(&stage.hekaton).unwrap();
    let script =
        script.replace("{\"name\":\"chain\"}", "{\"name\":\"chain\"},{\"name\":\"later\"}");
    fs::write(&stage.hekaton, script).unwrap();
    let (code, said) = stage.run(&["run", "fig9"]);
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("fig9: no [scale.tiny]"), "{said}");
}

#[test]
fn circuits_are_compared_and_projected() {
    let stage = Stage::new();
    stage.write("experiments/fig9.toml", VARIANTS);
    let (code, said) = stage.run(&["list"]);
    assert_eq!(code, 0, "{said}");
    let ids = ["fast.batch1", "fast.batch2", "fast.batch4", "slow.batch1", "slow.batch2"];
    for id in ids {
        assert!(said.contains(&format!("  fig9.c1.{id} x 1\n")), "{id}: {said}");
    }
    assert!(!said.contains("slow.batch4"), "{said}");
    for command in [&["run", "fig9"][..], &["model"], &["collect"]] {
        let (code, said) = stage.run(command);
        assert_eq!(code, 0, "{command:?}: {said}");
    }
    let setups = stage.calls("setup ");
    assert!(
        setups.iter().any(|call| call.contains("-p batch=4 -p links=2 -p steps=8")),
        "{setups:?}"
    );
    assert!(
        setups.iter().any(|call| call.contains("-p batch=2 -p links=2 -p steps=9")),
        "{setups:?}"
    );
    let (verdict, found) = stage.claim("C7");
    assert_eq!(verdict, "holds", "{found}");
    assert!(found.contains("fast ") && found.contains("; slow "), "{found}");
    // Five phases of one second per link, in nodes of 128 cores.
    let projection = fs::read_to_string(stage.path("set/projection.csv")).unwrap();
    let rows: Vec<&str> = projection.lines().skip(1).collect();
    assert_eq!(rows.len(), 2, "{projection}");
    for (row, cores) in rows.iter().zip(["32", "4096"]) {
        let start = format!("fig9,fig9.c{cores}.fast.batch64,fast,64,{cores},64,640,10.0");
        assert!(row.starts_with(&start), "{row}");
    }
    let asked = stage.calls("predict cores = 4096 ");
    assert!(asked.iter().all(|call| call.contains("cores_per_node = 128")), "{asked:?}");
    assert!(asked.iter().any(|call| call.contains("provers_per_rank = 32")), "{asked:?}");
    let wrong = VARIANTS.replace("variant = \"slow\", most", "variant = \"none\", most");
    stage.write("experiments/fig9.toml", &wrong);
    let (code, said) = stage.run(&["list"]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("\"none\" in \"limits\" is not a variant in [scale.tiny]"), "{said}");
}

#[test]
fn arrays_have_one_element_per_repetition() {
    let stage = Stage::new();
    let example =
        fs::read_to_string(Path::new(REPOSITORY).join("paper-results/clusters/example.toml"));
    stage.write("site.toml", &example.unwrap().replace("modules = [\"openmpi\"]", "modules = []"));
    let site = stage.path("site.toml");
    let constants = stage.path("constants.json");
    let model = ["--calibration", constants.to_str().unwrap()];
    let arguments = ["run", "mini", "--dry-run", "--slurm", site.to_str().unwrap()];
    let arguments = [&arguments[..], &model[..]].concat();
    let (code, said) = stage.run(&arguments);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("sbatch --array=0-3%1"), "{said}");
    // Four repetitions of 0.01 s on a node of 128 cores.
    assert!(said.contains("about 0.0 core-hours, 0.00 USD, without setup"), "{said}");
    let free = fs::read_to_string(&site).unwrap().replace("0.00232", "-1.0");
    stage.write("free.toml", &free);
    let free = stage.path("free.toml");
    let (code, said) = stage.run(&["run", "mini", "--resume", "--slurm", free.to_str().unwrap()]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("usd-per-core-hour must not be negative"), "{said}");
    let script = stage.path("set/arrays/0.sbatch");
    assert!(fs::read_to_string(&script).unwrap().contains("#SBATCH --exclusive"));
    // What SLURM would do; the last element twice, as after a requeue.
    for index in [0, 1, 2, 3, 3] {
        let mut element = Command::new("bash");
        element.arg(&script).env("SLURM_ARRAY_TASK_ID", index.to_string());
        let (code, said) = shown(&element.output().unwrap());
        assert_eq!(code, 0, "{said}");
    }
    assert_eq!(stage.proved().len(), 4);
    assert!(stage.run(&["status"]).1.contains("0 repetitions missing"));
    assert!(constants.is_file(), "elements have the options of the model");
}

#[test]
fn the_model_is_compared_with_the_medians() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["run", "mini"]).0, 0);
    assert_eq!(stage.run(&["collect"]).0, 0);
    assert_eq!(stage.claim("C9"), ("skipped".into(), "model: not run".into()));
    let (code, said) = stage.run(&["compare"]);
    assert_eq!(code, 3, "{said}");
    // The aggregation takes as many seconds as there are links, half of them for other programs.
    let (code, said) = stage.run(&["model"]);
    assert_eq!(code, 0, "{said}");
    let table = fs::read_to_string(stage.path("set/model.csv")).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    let head = "point,seconds,lo_s,hi_s,aggregate_s,aggregate_lo_s,aggregate_hi_s,environment";
    assert_eq!((lines.len(), lines[0]), (3, head));
    let numbers = "20.000000,10.000000,30.000000,4.000000,2.000000,6.000000,";
    assert!(lines[2].starts_with(&format!("mini.c1.s4,{numbers}")), "{table}");
    assert_eq!(stage.run(&["collect"]).0, 0);
    let (verdict, found) = stage.claim("C9");
    assert_eq!(verdict, "holds");
    for part in ["2 of 2 medians in the band; 2 of 2 without", "next to runs are 2.00 to 2.00"] {
        assert!(found.contains(part), "{found}");
    }
    let (code, said) = stage.run(&["compare", "mini"]);
    assert_eq!(code, 0, "{said}");
    let rows: Vec<Value> = said.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let row = |i: usize, name: &str| rows[i][name].as_f64().unwrap();
    assert_eq!(rows.len(), 4, "each point as measured, and adjusted: {said}");
    assert_eq!(["ours", "theirs", "ratio"].map(|name| row(2, name)), [4.0, 4.0, 1.0]);
    assert_eq!(["ours", "theirs", "ratio"].map(|name| row(3, name)), [2.0, 4.0, 2.0]);
    // Where nothing was predicted next to the repetitions, it is now; the constants are measured
    // once per environment, and a median outside of the band counts against the model.
    stage.write("bin/model", "2 1.5 2.5");
    assert_eq!(stage.run(&["model"]).0, 0);
    assert_eq!(fs::read_to_string(stage.path("set/model.csv")).unwrap(), table);
    for repetition in fs::read_dir(stage.path("set/raw")).unwrap().flatten() {
        fs::remove_file(repetition.path().join("model.json")).unwrap();
    }
    let (code, said) = stage.run(&["model"]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("mini.c1.s2: note: a note"), "{said}");
    assert_eq!(stage.calls("calibrate").len(), 1);
    assert_eq!(stage.run(&["collect"]).0, 0);
    assert_eq!(stage.claim("C9").0, "fails");
}

#[test]
fn points_of_a_ratio_run_one_after_the_other() {
    let stage = Stage::new();
    let mini = MINI.replacen("cores = [1]", "cores = [1, 2]\nprovers-per-rank = 1", 1);
    let mini = mini.replace("claims = []", "claims = []\npaired = true");
    stage.write("experiments/mini.toml", &mini);
    let example =
        fs::read_to_string(Path::new(REPOSITORY).join("paper-results/clusters/example.toml"));
    let example = example.unwrap().replace("modules = [\"openmpi\"]", "modules = []");
    // the launcher of the example needs SLURM
    let launcher = example.lines().find(|line| line.starts_with("launcher")).unwrap().to_owned();
    stage.write("site.toml", &example.replace(&launcher, "launcher = \"env\""));
    let site = stage.path("site.toml");
    let (code, said) = stage.run(&["run", "mini", "--dry-run", "--slurm", site.to_str().unwrap()]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("sbatch --array=0-3%1"), "four elements of two points: {said}");
    let tasks = fs::read_to_string(stage.path("set/arrays/0.tasks")).unwrap();
    let mut lines: Vec<&str> = tasks.lines().collect();
    lines.sort_unstable();
    let expected = [
        "1 mini.c1.s2 mini.c2.s2",
        "1 mini.c1.s4 mini.c2.s4",
        "2 mini.c2.s2 mini.c1.s2",
        "2 mini.c2.s4 mini.c1.s4",
    ];
    assert_eq!(lines, expected, "in alternating order");
    for index in 0..4 {
        let mut element = Command::new("bash");
        element.arg(stage.path("set/arrays/0.sbatch"));
        element.env("SLURM_ARRAY_TASK_ID", index.to_string());
        let (code, said) = shown(&element.output().unwrap());
        assert_eq!(code, 0, "{said}");
    }
    let pairs: Vec<String> = stage.proved().chunks(2).map(|pair| pair.join(" ")).collect();
    let of_line = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        format!("{}-{} {}-{}", words[1], words[0], words[2], words[0])
    };
    assert_eq!(pairs, tasks.lines().map(of_line).collect::<Vec<_>>());
    assert!(stage.run(&["status"]).1.contains("0 repetitions missing"));
}

#[test]
fn predictions_of_another_environment_are_refused() {
    let stage = Stage::new();
    assert_eq!(stage.run(&["run", "mini"]).0, 0);
    assert_eq!(stage.run(&["model"]).0, 0);
    let script = fs::read_to_string(&stage.hekaton).unwrap();
    fs::write(&stage.hekaton, script + "# another build\n").unwrap();
    let (code, said) = stage.run(&["model"]);
    assert_eq!(code, 4, "{said}");
    assert!(said.contains("differs from the result set's (program_sha256)"), "{said}");
    assert_eq!(stage.run(&["run", "mini", "--resume"]).0, 0);
    let (code, said) = stage.run(&["collect"]);
    assert_eq!(code, 3, "{said}");
    assert!(
        said.contains("was predicted in another environment: run `experiment model`"),
        "{said}"
    );
    assert_eq!(stage.run(&["model"]).0, 0);
    assert_eq!(stage.calls("calibrate").len(), 2, "another environment has other constants");
    assert_eq!(stage.run(&["collect"]).0, 0);
}

#[test]
fn the_model_gets_the_cores_that_there_are() {
    let stage = Stage::new();
    let ranks = "cores = [1, 4096]\nprovers-per-rank = 1\noversubscribe = true";
    let mini = MINI.replacen("cores = [1]", ranks, 1).replacen("[2, 4]", "[2]", 1);
    stage.write("experiments/mini.toml", &mini);
    let launcher = ["--launcher", "env"];
    let (code, said) = stage.run(&[&["run", "mini"], &launcher[..]].concat());
    assert_eq!(code, 0, "more provers than cores are allowed here: {said}");
    let here = std::thread::available_parallelism().unwrap();
    let cluster = format!("cores_per_node = {here} format = 1 provers_per_rank = 1 ");
    let expected = [format!("cores = 1 {cluster}"), format!("cores = {here} {cluster}")];
    let mut calls = stage.calls("predict ");
    calls.sort();
    calls.dedup();
    assert_eq!(calls, expected);
    // With a cluster, points have the cores that they ask for.
    stage.write("site.toml", "format = 1\nlatency_seconds = 1e-6\nprovers_per_rank = 7\n");
    let site = stage.path("site.toml");
    let constants = stage.path("constants.json");
    let files = ["--cluster", site.to_str().unwrap(), "--calibration", constants.to_str().unwrap()];
    fs::remove_dir_all(stage.path("set/raw")).unwrap();
    let arguments = [&["run", "mini", "--resume"], &launcher[..], &files[..]].concat();
    assert_eq!(stage.run(&arguments).0, 0);
    let call = stage.calls("predict cores = 4096 ").pop().unwrap();
    assert!(
        call.contains("latency_seconds = ") && call.contains("provers_per_rank = 1 "),
        "{call}"
    );
    assert!(constants.is_file(), "measured into the file that the option names");
}

/// A Python with matplotlib: the one in EXPERIMENT_PYTHON, or python3.
fn python() -> Option<String> {
    let python = std::env::var("EXPERIMENT_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).args(["-c", "import matplotlib"]).output().ok()?;
    output.status.success().then_some(python)
}

/// Fails if a page needs anything from elsewhere, or contains a script.
fn check_page(path: &Path) {
    let page = fs::read_to_string(path).unwrap();
    let lower = page.to_lowercase();
    for wrong in ["src=", "<script", "<link", "@import", "href=\"http", "url(http", "href='http"] {
        assert!(!lower.contains(wrong), "{}: {wrong}", path.display());
    }
    assert!(page.matches("<svg").count() >= 2, "{}", path.display());
}

/// Looks at a page in headless Chromium: every experiment's figure is drawn, nothing comes from
/// elsewhere, and nothing is logged. Returns what it said.
fn look_at(set: &Path) -> Option<(i32, String)> {
    let browser = std::env::var("CHROMIUM").unwrap_or_else(|_| "chromium".into());
    for program in [browser.as_str(), "node"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("SKIPPED: looking at {}: no {program}", set.display());
            return None;
        }
    }
    let summary = fs::read(set.join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let names = summary["experiments"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|e| e["name"].as_str().unwrap()).collect();
    assert!(!names.is_empty());
    let mut look = Command::new("node");
    look.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page.mjs"));
    Some(shown(&look.arg(set.join("index.html")).args(names).output().unwrap()))
}

/// Fails if a file is not well-formed XML. Nothing to say without Python.
fn check_svgs(directory: &Path) {
    let parse = "import sys, xml.etree.ElementTree as t\nfor f in sys.argv[1:]: t.parse(f)";
    let svgs = fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    let svgs: Vec<PathBuf> = svgs.filter(|p| p.extension().is_some_and(|e| e == "svg")).collect();
    assert!(!svgs.is_empty());
    match Command::new("python3").args(["-c", parse]).args(&svgs).output() {
        Ok(output) => assert!(output.status.success(), "{}", shown(&output).1),
        Err(e) => eprintln!("SKIPPED: parsing SVG files: python3: {e}"),
    }
}

#[test]
fn figures_are_self_contained() {
    let Some(python) = python() else {
        return eprintln!("SKIPPED: no matplotlib; set EXPERIMENT_PYTHON");
    };
    let stage = Stage::new();
    let (code, said) = stage.run(&["all", "--python", &python]);
    assert_eq!(code, 0, "{said}");
    check_page(&stage.path("set/index.html"));
    check_svgs(&stage.path("set/figures"));
    let page = fs::read_to_string(stage.path("set/index.html")).unwrap();
    for part in [
        "skipped: no circuit yet",
        "AMD EPYC 7763",
        "Failed repetitions: 0",
        "model, with its interval",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(stage.path("set/figures/mini.pdf").is_file());
    let Some((code, said)) = look_at(&stage.path("set")) else { return };
    assert_eq!(code, 0, "{said}");
    // What a browser would complain about is noticed.
    for (wrong, reason) in [
        ("<img src=\"https://example.org/a.png\">", "only the page itself"),
        ("<script>undefined()</script>", "Expected values to be strictly equal"),
        ("<p id=\"mini-figure_1\"></p>", "the same id"),
        ("<div style=\"width: 9000px\">x</div>", "too wide"),
        ("<style>svg { display: none }</style>", "0 x 0"),
        ("<style>path, use { display: none }</style>", "0 shapes"),
    ] {
        stage.write("set/index.html", &page.replace("</body>", &format!("{wrong}</body>")));
        let (code, said) = look_at(&stage.path("set")).unwrap();
        assert!(code != 0 && said.contains(reason), "{wrong}: {said}");
    }
    let lost = page.replace("<clipPath id=\"", "<clipPath id=\"lost-");
    stage.write("set/index.html", &lost);
    let (code, said) = look_at(&stage.path("set")).unwrap();
    assert!(code != 0 && said.contains("references that lead nowhere"), "{said}");
}

#[test]
fn committed_result_sets_are_complete() {
    let directory = Path::new(REPOSITORY).join("paper-results/results");
    for set in fs::read_dir(directory).unwrap().flatten().filter(|e| e.path().is_dir()) {
        check_svgs(&set.path().join("figures"));
        for name in ["env.json", "plan.json", "points.csv", "summary.json", "claims.json"] {
            assert!(set.path().join(name).is_file(), "{}: {name}", set.path().display());
        }
    }
}

/// The page of each committed set can be drawn from what is committed.
#[test]
fn committed_result_sets_have_pages() {
    let Some(python) = python() else {
        return eprintln!("SKIPPED: no matplotlib; set EXPERIMENT_PYTHON");
    };
    let directory = Path::new(REPOSITORY).join("paper-results/results");
    for set in fs::read_dir(directory).unwrap().flatten().filter(|e| e.path().is_dir()) {
        let stage = Stage::new();
        fs::create_dir(stage.path("set")).unwrap();
        for entry in fs::read_dir(set.path()).unwrap().flatten() {
            if entry.path().is_file() && entry.file_name() != "index.html" {
                fs::copy(entry.path(), stage.path("set").join(entry.file_name())).unwrap();
            }
        }
        let (code, said) = stage.run(&["report", "--python", &python]);
        assert_eq!(code, 0, "{}: {said}", set.path().display());
        check_page(&stage.path("set/index.html"));
        if let Some((code, said)) = look_at(&stage.path("set")) {
            assert_eq!(code, 0, "{}: {said}", set.path().display());
        }
    }
}

/// The whole chain with the real program, if it was built next to this one.
#[test]
fn a_real_proof_is_measured() {
    let mut stage = Stage::new();
    let built = Path::new(env!("CARGO_BIN_EXE_experiment")).with_file_name("hekaton");
    if !built.is_file() {
        return eprintln!("SKIPPED: {} was not built", built.display());
    }
    stage.hekaton = built;
    stage.write("experiments/mini.toml", &MINI.replace("repetitions = 2", "repetitions = 1"));
    let (code, said) = stage.run(&["run", "mini"]);
    assert_eq!(code, 0, "{said}");
    let (code, said) = stage.run(&["collect"]);
    assert_eq!(code, 0, "{said}");
    let summary: Value =
        serde_json::from_slice(&fs::read(stage.path("set/summary.json")).unwrap()).unwrap();
    let columns = &summary["points"][1]["columns"];
    assert_eq!(columns["subcircuits"][0], 4.0);
    // 42 + 192 (10 + 6 log2 4) + 576
    assert_eq!(columns["proof_bytes"][0], 4842.0);
    for name in ["seconds", "cpu_seconds", "verify_ms", "peak_memory_bytes", "key_bytes"] {
        assert!(columns[name][0].as_f64().unwrap() > 0.0, "{name}: {columns}");
    }
}
