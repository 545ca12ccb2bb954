//! The fuzz targets as property tests, with the same mutations as the fuzzers, and the seeds of
//! their corpora.
#![allow(clippy::cast_possible_truncation, reason = "small numbers of tests")]

use hekaton_core::protocol::messages::Message;
use hekaton_fuzzing::{CLAIM, GOLDEN, MANIFEST, R1CS, SYM, WTNS, answers, directory, log, program};
use proptest::prelude::*;
use std::path::{Path, PathBuf};

type Target = fn(&[u8]);

const TARGETS: [(&str, Target); 16] = [
    ("proof", hekaton_fuzzing::proof),
    ("verifying_key", hekaton_fuzzing::verifying_key),
    ("manifest", hekaton_fuzzing::manifest),
    ("run_log", hekaton_fuzzing::run_log),
    ("messages", hekaton_fuzzing::messages),
    ("key_file", hekaton_fuzzing::key_file),
    ("family_key", hekaton_fuzzing::family_key),
    ("r1cs", hekaton_fuzzing::r1cs),
    ("wtns", hekaton_fuzzing::wtns),
    ("sym", hekaton_fuzzing::sym),
    ("circuit_directory", hekaton_fuzzing::circuit_directory),
    ("program_file", hekaton_fuzzing::program_file),
    ("claim", hekaton_fuzzing::claim),
    ("directory_answer", hekaton_fuzzing::directory_answer),
    ("intake", hekaton_fuzzing::intake),
    ("ceremony", hekaton_fuzzing::ceremony),
];

/// Mostly short programs, and some files.
fn input() -> impl Strategy<Value = Vec<u8>> {
    let program =
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|rest| [vec![1], rest].concat());
    let file = prop::collection::vec(any::<u8>(), 0..200).prop_map(|rest| [vec![0], rest].concat());
    prop_oneof![6 => program, 1 => file]
}

macro_rules! properties {
    ($($name:ident)*) => {
        proptest! {
            $(
                #[test]
                fn $name(data in input()) {
                    hekaton_fuzzing::$name(&data);
                }
            )*
        }
    };
}

properties! { proof verifying_key manifest run_log messages key_file family_key r1cs wtns sym circuit_directory program_file claim directory_answer intake ceremony }

fn seeds(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds").join(target)
}

/// Runs every seed. With `HEKATON_WRITE_SEEDS` set, writes the seeds first.
#[test]
fn seeds_run() {
    if std::env::var_os("HEKATON_WRITE_SEEDS").is_some() {
        write_seeds();
    }
    for (name, target) in TARGETS {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(seeds(name)).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        assert!(!files.is_empty(), "no seeds for {name}");
        for file in files {
            target(&std::fs::read(&file).unwrap());
        }
    }
}

fn write_seeds() {
    let good: [(&str, Vec<u8>); 10] = [
        ("proof", GOLDEN[0].proof.to_vec()),
        ("verifying_key", GOLDEN[0].key.to_vec()),
        ("manifest", MANIFEST.as_bytes().to_vec()),
        ("run_log", log().to_vec()),
        ("messages", answers()[1].to_bytes()),
        ("r1cs", R1CS.to_vec()),
        ("wtns", WTNS.to_vec()),
        ("sym", SYM.to_vec()),
        ("program_file", program().to_vec()),
        ("claim", CLAIM.to_vec()),
    ];
    for (target, bytes) in good {
        std::fs::create_dir_all(seeds(target)).unwrap();
        std::fs::write(seeds(target).join("good"), [vec![0], bytes].concat()).unwrap();
    }
    // paths, histories, records, witnesses and parameters
    for (which, bytes) in (0..).zip(directory::answers()) {
        let target = seeds("directory_answer");
        std::fs::create_dir_all(&target).unwrap();
        std::fs::write(target.join(format!("good-{which}")), [&[2 * which], &bytes[..]].concat())
            .unwrap();
        std::fs::write(target.join(format!("unchanged-{which}")), [2 * which + 1]).unwrap();
    }
    // with buses
    for (target, bytes) in [("proof", GOLDEN[1].proof), ("verifying_key", GOLDEN[1].key)] {
        std::fs::write(seeds(target).join("buses"), [&[2], bytes].concat()).unwrap();
        std::fs::write(seeds(target).join("buses-unchanged"), [3]).unwrap();
        let element = [3, 1, 0, 2, 1, 0, 5, 1, 3, 0, 1, 9, 0, 3, 2];
        std::fs::write(seeds(target).join("buses-element"), element).unwrap();
    }
    std::fs::write(seeds("family_key").join("buses-unchanged"), [3]).unwrap();
    for (target, _) in TARGETS {
        std::fs::create_dir_all(seeds(target)).unwrap();
        std::fs::write(seeds(target).join("unchanged"), [1]).unwrap();
        // one program for each kind of step
        for step in 0..8u8 {
            std::fs::write(
                seeds(target).join(format!("step-{step}")),
                [1, step, 0, 60, 1, 0, 9, 3, 0, 0],
            )
            .unwrap();
            let element = [1, 1, 0, 2, step, 0, 5, 1, 3, 0, 1, 8 + step, 0, 3, 2];
            std::fs::write(seeds(target).join(format!("element-{step}")), element).unwrap();
        }
    }
}

/// Adversarial tests 31, 45 and 46: each mutation of each field of a proof, one at a time, is
/// refused.
#[test]
fn every_field_every_mutation() {
    for field in 0..hekaton_fuzzing::proof_fields(0) {
        for how in 0..16u8 {
            hekaton_fuzzing::proof(&[1, 1, 0, field as u8, how, 0xe0, 0, 1, 0]);
        }
    }
    // and of the verifying keys, without and with buses
    for (first, fields) in [(1, 11), (3, 13)] {
        for field in 0..fields {
            for how in 0..16u8 {
                hekaton_fuzzing::verifying_key(&[first, 1, 0, field, how, 0xe0, 0, 1, 0]);
            }
        }
    }
}
