//! The simulator against its executable specification, `paper-results/model/scaling_model.py`.

use hekaton_plan::simulate::{Cluster, Constant, Constants, Design, Load, Prediction, predict};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The largest relative difference. Users are promised 1 %, but both simulate the same events, so
/// only rounding may differ; with 1 %, a test would miss small terms that were dropped.
const TOLERANCE: f64 = 1e-9;

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

fn whole(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a whole number"))
}

/// The specification's own constants: those of a platform, and those that it has in its formulas.
fn constants(platform: &Value, load: &Value) -> Constants {
    use Constant as C;
    let of = |key: &str| number(&platform[key]);
    let values = [
        (C::AggregateProof, of("agg")),
        (C::AggregateRound, of("agg_round")),
        (C::DecodeG1Checked, of("g1")),
        (C::DecodeG2Checked, of("g2")),
        (C::DecodeG1Unchecked, 0.27 * of("g1")),
        (C::DecodeG2Unchecked, 0.33 * of("g2")),
        (C::MembershipG1Batched, 0.0),
        (C::MembershipG2Batched, 0.0),
        (C::CommitFixed, of("commit0")),
        (C::CommitWire, of("wire")),
        (C::HashByte, of("hash")),
        (C::FullNodeRate, of("full_node")),
        (C::EncodeJob, 5e-6),
        (C::EncodeOccurrence, 15e-9),
        (C::EncodePrivateByte, 0.65e-9),
        (C::RecordAnswer, 11.5e-6),
        (C::AcceptAnswer, 1.7e-6),
        (C::ScanRank, 0.5e-9),
        (C::LayoutOccurrence, 18e-9),
        (C::DigestOccurrence, 6.8e-9),
        (C::ExecuteOccurrence, number(&load["execute_wire"])),
        (C::MillerProduct, 2.3e-6),
        (C::CollectProof, 0.18e-6),
        (C::EncodeOwnJob, 4.8e-6),
        (C::SummarizeOccurrence, 161e-9),
        (C::SliceSubcircuit, 0.28e-6),
    ];
    assert_eq!(values.len(), Constant::ALL.len(), "every constant has a value");
    let mut out = Constants::new("test", "test");
    values.into_iter().for_each(|(constant, value)| out.assume(constant, value));
    out
}

fn cluster(c: &Value) -> Cluster {
    let of = |key: &str| number(&c[key]);
    Cluster {
        cores: whole(&c["cores"]),
        provers_per_rank: whole(&c["provers"]),
        cores_per_node: whole(&c["node"]),
        latency: of("latency"),
        nap: of("nap"),
        bandwidth: of("bandwidth"),
        message: of("cpu_message"),
        file_system: of("fs_all"),
        file_system_per_node: of("fs_node"),
        key_tree_step: 0.01,
        job_sigma: of("sigma_job"),
        rank_sigma: of("sigma_rank"),
        slow_rank_share: of("slow"),
        node_mtbf: of("mtbf_node"),
        requeue: of("requeue"),
        price: of("price"),
    }
}

fn load(w: &Value, platform: &Value) -> Load {
    let of = |key: &str| number(&w[key]);
    let rate = number(&platform["rate"][w["workload"].as_str().unwrap()]);
    let padded = whole(&w["n"]).next_power_of_two() as f64;
    Load {
        constraints: of("constraints"),
        subcircuits: whole(&w["n"]),
        wires: of("wires"),
        mask_wires: 2.0,
        private_bytes: of("private"),
        alone_seconds: of("sub") / rate,
        execute_seconds: of("execute"),
        match_seconds: [of("match"), of("match_largest")],
        // What `estimate` counts exactly, the specification approximates.
        key_bytes: 407.0 * of("sub") * of("types") + 772.0 * padded,
        all_domains: of("domain") * of("types"),
        largest_domain: of("domain"),
    }
}

/// The design of this name; the specification must have the same fields.
fn design(d: &Value) -> Design {
    let mut found = Design::named(d["name"].as_str().unwrap()).unwrap();
    found.steal = d["schedule"] == "dynamic";
    assert_eq!(u64::from(found.threads), whole(&d["threads"]));
    assert_eq!(found.batch_check, d["batch_check"].as_bool().unwrap());
    assert_eq!(u64::from(found.fanout.map_or(0, |fanout| fanout.get())), whole(&d["fanout"]));
    assert_eq!(found.sliced_execute, d["sliced_execute"].as_bool().unwrap());
    assert_eq!(found.key_tree, d["key_tree"].as_bool().unwrap());
    found
}

/// All figures that both report, with their names.
fn figures(found: &Prediction, expected: &Value) -> Vec<(String, f64, f64)> {
    let mut out: Vec<(String, f64, f64)> = (found.phases.named().iter())
        .map(|(name, seconds)| ((*name).to_owned(), *seconds, number(&expected["phases"][*name])))
        .collect();
    let mut add = |name: &str, found: f64| out.push((name.into(), found, number(&expected[name])));
    add("seconds", found.seconds());
    add("ideal", found.ideal_seconds);
    add("efficiency", found.efficiency());
    add("efficiency_rounds", found.efficiency_of_rounds());
    add("cpcs", found.constraints_per_core_second);
    add("rank0_bytes", found.rank_0_bytes);
    add("rank_bytes", found.rank_bytes);
    add("network_bytes", found.network_bytes);
    add("expected_with_failures", found.expected_seconds);
    add("cost", found.cost);
    for (name, busy) in ["commit", "prove"].into_iter().zip(found.coordinator_busy) {
        out.push((format!("busy {name}"), busy, number(&expected["coordinator_busy"][name])));
    }
    out
}

/// Every phase, the totals, memory, traffic and cost agree with the specification.
#[test]
#[allow(clippy::print_stdout, reason = "with --nocapture, how well each scenario agrees")]
fn the_simulator_is_the_specification() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../paper-results/model");
    let output = Command::new("python3")
        .args(["-B", "scenarios.py"])
        .current_dir(&directory)
        .output()
        .expect("python3 runs the specification");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scenarios: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(scenarios.len(), 20);
    let (mut worst, mut failures) = (0.0f64, Vec::new());
    for s in &scenarios {
        let load = load(&s["load"], &s["platform"]);
        let constants = constants(&s["platform"], &s["load"]);
        let found = predict(&load, &cluster(&s["cluster"]), &design(&s["design"]), &constants);
        let found = found.unwrap();
        let mut of_scenario = 0.0f64;
        for (name, found, expected) in figures(&found, &s["result"]) {
            let difference = (found - expected).abs() / expected.abs().max(f64::MIN_POSITIVE);
            of_scenario = of_scenario.max(difference);
            if difference.is_nan() || difference > TOLERANCE {
                failures.push(format!("{}: {name}: {found} against {expected}", s["name"]));
            }
        }
        if found.bottleneck() != s["result"]["bottleneck"] {
            failures.push(format!("{}: bottleneck {}", s["name"], found.bottleneck()));
        }
        println!("{:.1e} {}: {:.3} s", of_scenario, s["name"], found.seconds());
        worst = worst.max(of_scenario);
    }
    println!("largest difference: {worst:.1e}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
