//! The workload of the paper's protocol has exactly the sizes that the paper and its code state.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use benches::paper_workload::aggregation::{Cost, Pairs};
use benches::paper_workload::coordinator::{between_rounds, commit_request, prove_request, trace};
use benches::paper_workload::ours::{slot_values, with_worker};
use benches::paper_workload::r1cs::{ProveRequest, Shape, Subtrace, System, Version};
use benches::paper_workload::worker::{Bases, Executed, PaperWorker};
use hekaton_arith::{Fr, Gt};
use std::process::Command;

fn system(author_rows: usize, occurrences: usize, levels: usize, version: Version) -> System {
    let trace = Subtrace::new(&slot_values(occurrences));
    let shape = Shape { author_rows, occurrences, levels, version };
    System::new(shape, &trace, &ProveRequest::example(levels)).unwrap()
}

/// Rows, committed variables, and public variables of the synthesized R1CS.
fn counts(occurrences: usize, levels: usize, version: Version) -> [usize; 3] {
    let system = system(7, occurrences, levels, version);
    [system.rows - 7, system.committed.len(), system.public.len()]
}

#[test]
fn the_memory_check_has_the_rows_and_variables_of_the_paper() {
    for (s, levels, rows, committed) in
        [(1, 1, 493, 4), (100, 8, 5_140, 400), (100, 10, 6_100, 400), (10_000, 10, 134_800, 40_000)]
    {
        let published = counts(s, levels, Version::Published);
        assert_eq!(published, [rows, committed, 3], "s = {s}, n = 2^{levels}");
        let sound = counts(s, levels, Version::Sound);
        assert_eq!(sound, [rows + 2 * s, committed, 3 + s], "s = {s}, n = 2^{levels}");
    }
}

#[test]
fn ours_has_a_row_and_a_variable_per_slot() {
    for (s, rows, committed) in [(100, 103, 102), (10_000, 10_003, 10_002)] {
        with_worker(s, s, |sizes, _| {
            assert_eq!([sizes.rows - s, sizes.committed], [rows, committed]);
            assert_eq!(sizes.job, 37 + 32 * committed);
            Ok(())
        })
        .unwrap();
    }
    assert!(with_worker(9, 10, |_, _| Ok(())).is_err(), "slots without a row");
}

#[test]
fn the_worker_runs_six_msms_and_seven_transforms() {
    for version in [Version::Published, Version::Sound] {
        let worker = PaperWorker::new(system(50, 6, 2, version)).unwrap();
        let trace = Subtrace::new(&slot_values(6));
        let request = ProveRequest::example(2);
        let bases = Bases::new([&worker]);
        worker.run(&bases, &trace, &request).unwrap();
        let once = Executed { g1_msms: 5, g2_msms: 1, transforms: 7 };
        assert_eq!(worker.executed(), once);
        assert_eq!(worker.lengths()[4], 24);
    }
}

/// The quotient is a polynomial of the right degree, so rows, transforms and witness fit together;
/// a witness with one wrong value leaves a remainder.
#[test]
fn the_quotient_is_a_polynomial_for_good_witnesses_only() {
    let worker = PaperWorker::new(system(50, 6, 2, Version::Published)).unwrap();
    let trace = Subtrace::new(&slot_values(6));
    let mut z = worker.system.shape.witness(&trace, &ProveRequest::example(2)).unwrap();
    let last = |z: &[Fr]| *worker.quotient(z).last().unwrap();
    assert_eq!(worker.system.unsatisfied(&z), None);
    assert_eq!(last(&z), Fr::from(0u64));
    z[worker.system.committed.start + 3] += Fr::from(1u64);
    assert!(worker.system.unsatisfied(&z).is_some());
    assert_ne!(last(&z), Fr::from(0u64));
}

#[test]
fn messages_have_the_lengths_of_the_paper() {
    for s in [1, 100, 10_000] {
        let accesses = trace(1, s);
        assert_eq!(commit_request(&accesses, &accesses).len(), 92 * s);
    }
    for (levels, bytes) in [(8, 577), (10, 641), (11, 673), (14, 769)] {
        let request = ProveRequest::example(levels);
        assert_eq!(prove_request(&request, &request.before).len(), bytes);
    }
}

#[test]
fn the_coordinator_hashes_twice_per_subcircuit_and_its_products_agree() {
    let (n, s) = (16, 5);
    let mut accesses = trace(n, s);
    let prepared = between_rounds(&accesses, s).unwrap();
    assert_eq!(prepared.hashes, 2 * n);
    assert_eq!(prepared.products[0], prepared.products[1]);
    assert_eq!(prepared.requests.len(), n);
    assert!(prepared.requests.iter().flat_map(|r| &r.paths).all(|path| path.len() == 4));
    accesses.truncate(15 * s);
    assert!(between_rounds(&accesses, s).is_err(), "no power of two");
}

#[test]
fn aggregations_have_the_loops_and_elements_of_the_table() {
    let n = 16;
    let pairs = Pairs::new(n);
    assert_eq!(pairs.run(n, &Cost::PAPER), 35 * n);
    assert_eq!(pairs.run(n, &Cost::OURS), 11 * n + 6);
    assert_eq!([Cost::PAPER, Cost::OURS].map(|cost| cost.gt_elements(10)), [82, 70]);
    assert_eq!(Cost::PAPER.gt_bytes(10), 82 * Gt::COMPRESSED);
}

#[test]
fn every_line_of_output_says_that_it_proves_nothing() {
    let small =
        ["--constraints", "40", "--wires", "2,30", "--subcircuits", "4", "--repetitions", "1"];
    for json in [&["--json"][..], &[]] {
        let output = Command::new(env!("CARGO_BIN_EXE_paper_workload"))
            .args(small)
            .args(json)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().count() > 30, "{text}");
        for line in text.lines() {
            assert!(line.contains("proves nothing"), "{line}");
            if !json.is_empty() {
                let row: serde_json::Value = serde_json::from_str(line).unwrap();
                assert_eq!(row["note"], benches::paper_workload::NOTE);
            }
        }
    }
}
