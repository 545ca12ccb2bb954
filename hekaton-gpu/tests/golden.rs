//! Golden proofs of `hekaton-core`, with the sums of the kernels' host build, which has the logic of a GPU.

use hekaton_core::circuit::Circuit;
use hekaton_core::events::{Event, Recorder};
use hekaton_core::protocol::accelerator::{Accelerator, Accelerators};
use hekaton_core::{
    Fr, LocalEngine, ProveOptions, ProvenRun, Randomness, SetupOptions, prove, setup,
};
use hekaton_gpu::{Gpu, Host};
use hekaton_testing::{Digits, Histogram, Squarings};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn gpu(limit: Option<u64>) -> Box<dyn Accelerator> {
    Box::new(Gpu::new(Arc::new(Host), 0, limit).unwrap())
}

/// Proves with devices, and returns the run, the number of answers that devices computed, and notices.
fn run<C: Circuit>(
    circuit: &C,
    input: &C::Input,
    devices: Vec<Box<dyn Accelerator>>,
) -> (ProvenRun, u64, Vec<String>) {
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(circuit, &engine, &SetupOptions::new("golden").insecure_seed(1)).unwrap();
    let accelerators = Accelerators::new(devices);
    let (messages, count) = (Mutex::new(Vec::new()), AtomicU64::new(0));
    let recorder = Recorder::new("test", |record| match &record.event {
        Event::Device(account) => drop(count.fetch_add(account.subcircuits, Ordering::Relaxed)),
        Event::Notice { message } => messages.lock().unwrap().push(message.clone()),
        _ => {}
    });
    let options = ProveOptions::new()
        .randomness(Randomness::seeded_not_zero_knowledge(1))
        .recorder(&recorder)
        .accelerators(&accelerators);
    let run = prove(circuit, input, &keys, &engine, &options).unwrap();
    drop(recorder);
    (run, count.into_inner(), messages.into_inner().unwrap())
}

fn golden(version: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hekaton-core/tests/golden");
    std::fs::read(format!("{folder}/{version}.proof")).unwrap()
}

/// A circuit without buses: all answers come from the device.
#[test]
fn version_2() {
    let (run, count, messages) = run(&Squarings, &Fr::from(3u64), vec![gpu(None)]);
    assert_eq!(messages, Vec::<String>::new());
    assert!(run.proof.as_bytes() == golden("v2"));
    assert_eq!(count, 2 * run.instances as u64, "a commitment and a proof of each");
}

/// A circuit with a memory, a table, and ranges, of types that differ in size.
#[test]
fn version_4() {
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    let (run, count, messages) = run(&histogram, &input, vec![gpu(None)]);
    assert_eq!(messages, Vec::<String>::new());
    assert!(run.proof.as_bytes() == golden("v4"));
    assert!(count > 0);
}

/// With too little memory for some types, the CPU proves those.
#[test]
fn little_memory() {
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    let (run, _, messages) = run(&histogram, &input, vec![gpu(Some(1 << 20))]);
    assert!(run.proof.as_bytes() == golden("v4"));
    assert!(
        messages.iter().any(|message| message.contains("its memory is too small")),
        "{messages:?}"
    );
}
