//! `hekaton estimate --cores` and `--calibrate`.

mod common;

use common::{fails, ok};
use serde_json::Value;
use std::path::PathBuf;

const CHAIN: [&str; 6] = ["estimate", "chain", "-p", "links=4", "-p", "steps=9"];

/// A calibration file without the constants of designs that do not exist.
fn calibration() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/calibration.json").to_owned()
}

struct Directory(tempfile::TempDir);

impl Directory {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> String {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name).to_string_lossy().into_owned()
    }
}

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&CHAIN[..], more].concat()
}

#[test]
fn a_cluster_is_predicted() {
    let (calibration, directory) = (calibration(), Directory::new());
    let cluster = directory.write(
        "cluster.toml",
        "format = 1\nprovers_per_rank = 16\nlatency_seconds = 2e-6\n\
         [assumed]\nencode_own_job_seconds = 4e-6\nsummarize_occurrence_seconds = 1e-7\n\
         slice_subcircuit_seconds = 2e-7\n",
    );
    let options = ["--cores", "64", "--calibration", &calibration, "--cluster", &cluster];
    let more = ["--design", "tree", "--subcircuits", "1000", "--json"];
    let found: Value = serde_json::from_str(&ok(&with(&[&options[..], &more].concat()))).unwrap();
    assert_eq!(found["subcircuits"], 4, "the estimate itself is of the circuit");
    let predicted = &found["prediction"];
    assert_eq!((&predicted["cores"], &predicted["ranks"]), (&64.into(), &4.into()));
    assert_eq!((&predicted["design"], &predicted["subcircuits"]), (&"tree".into(), &1000.into()));
    let phases = predicted["phases"].as_array().unwrap();
    let sum: f64 = phases.iter().map(|phase| phase["seconds"].as_f64().unwrap()).sum();
    assert!((sum / predicted["seconds"].as_f64().unwrap() - 1.0).abs() < 1e-9 && sum > 0.0);
    // Every value comes with its source.
    let (cluster, constants) = (&predicted["cluster"], &predicted["constants"]);
    assert_eq!(cluster["latency_seconds"]["source"], "cluster file");
    assert_eq!(cluster["nap_seconds"]["source"], "assumed");
    assert_eq!(constants["encode_own_job_seconds"]["source"], "assumed");
    assert_eq!(constants["hash_byte_seconds"]["source"], "measured");
    assert!(predicted["notes"][0].as_str().unwrap().contains("another processor"));

    let text = ok(&with(&["--cores", "64", "--calibration", &calibration]));
    for part in ["predicted on 64 cores", "bottleneck", "assumed", "nap_seconds = 5e-5"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_is_missing_or_unknown_is_named() {
    let (calibration, directory) = (calibration(), Directory::new());
    let cores = ["--cores", "64", "--calibration"];
    let fail = |code, says: &str, more: &[&str]| fails(code, says, &with(more));
    fail(2, "--calibration <FILE>", &["--cores", "64"]);
    fail(3, "none.json", &[&cores[..], &["none.json"]].concat());
    let all = [&cores[..], &[&calibration]].concat();
    fail(3, "the constant encode_own_job_seconds", &[&all[..], &["--design", "tree"]].concat());
    fail(2, "flat, pool, slices, tree", &[&all[..], &["--design", "star"]].concat());
    fail(2, "33 cores cannot be", &["--cores", "33", "--calibration", &calibration]);

    let text = std::fs::read_to_string(&calibration).unwrap();
    let renamed = text.replace("scan_rank_seconds", "scan");
    let without = directory.write("without.json", &renamed);
    let missing = "the constant scan_rank_seconds was not measured";
    fail(3, missing, &[&cores[..], &[&without]].concat());
    let old = directory.write("old.json", &text.replace("\"version\": 1", "\"version\": 0"));
    fail(3, "has version 0, expected 1", &[&cores[..], &[&old]].concat());

    let cluster = directory.write("cluster.toml", "format = 1\nlatency = 1\n");
    let unknown = "cluster.toml: unknown key latency; known keys: provers_per_rank";
    fail(3, unknown, &[&all[..], &["--cluster", &cluster]].concat());
}

#[test]
fn a_machine_is_calibrated() {
    let directory = Directory::new();
    let file = directory.path("node.json").to_string_lossy().into_owned();
    let text = ok(&["estimate", "--calibrate", &file]);
    assert!(text.contains("decode_g1_checked_seconds") && text.contains("wrote"), "{text}");
    let found: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&found["format"], &found["program"]), (&1.into(), &"0.1.0".into()));
    // What was measured is enough for the program as it is.
    ok(&with(&["--cores", "8", "--calibration", &file]));
    fails(2, "cannot be used with", &["estimate", "chain", "--calibrate", &file]);
}
