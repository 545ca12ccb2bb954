//! Golden proofs of `hekaton-core`, with the sums of the kernels' host build, which has the logic of a GPU.

use hekaton_core::circuit::Circuit;
use hekaton_core::events::{Event, Recorder};
use hekaton_core::protocol::accelerator::{Accelerator, Accelerators};
use hekaton_core::{
    Fr, LocalEngine, ProveOptions, ProvenRun, Randomness, SetupOptions, prove, setup,
};
use hekaton_gpu::{Device, Error, Gpu, Host, Kernel};
use hekaton_testing::{Digits, Histogram, Squarings};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

fn gpu() -> Box<dyn Accelerator> {
    Box::new(Gpu::new(Arc::new(Host), 0, None).unwrap())
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
    let (run, count, messages) = run(&Squarings, &Fr::from(3u64), vec![gpu()]);
    assert_eq!(messages, Vec::<String>::new());
    assert!(run.proof.as_bytes() == golden("v2"));
    assert_eq!(count, 2 * run.instances as u64, "a commitment and a proof of each");
}

/// A circuit with a memory, a table, and ranges, of types that differ in size.
#[test]
fn version_4() {
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    let (run, count, messages) = run(&histogram, &input, vec![gpu()]);
    assert_eq!(messages, Vec::<String>::new());
    assert!(run.proof.as_bytes() == golden("v4"));
    assert!(count > 0);
}

/// The host, with an account of its memory.
#[derive(Debug, Default)]
struct Counting {
    used: AtomicU64,
    peak: AtomicU64,
}

impl Device for Counting {
    fn free_memory(&self) -> Result<u64, Error> {
        Host.free_memory()
    }

    fn trim(&self) {}

    fn allocate(&self, bytes: usize) -> Result<u64, Error> {
        let used = self.used.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        self.peak.fetch_max(used, Ordering::Relaxed);
        Host.allocate(bytes)
    }

    fn free(&self, address: u64, bytes: usize) {
        self.used.fetch_sub(bytes as u64, Ordering::Relaxed);
        Host.free(address, bytes);
    }

    fn upload(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        Host.upload(address, bytes)
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        Host.download(address, bytes)
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<(), Error> {
        Host.clear(address, bytes)
    }

    unsafe fn launch(&self, kernel: Kernel, blocks: u32, arguments: &[u8]) -> Result<(), Error> {
        // SAFETY: the caller's.
        unsafe { Host.launch(kernel, blocks, arguments) }
    }

    fn finish(&self) -> Result<(), Error> {
        Host.finish()
    }

    fn name(&self) -> String {
        Host.name()
    }
}

/// A limit of memory is kept, and the CPU proves the types that do not fit.
#[test]
fn limits_of_memory_are_kept() {
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    for (limit, is_enough) in [(1 << 20, false), (1 << 27, true)] {
        let device = Arc::new(Counting::default());
        let gpu = Gpu::new(device.clone(), 0, Some(limit)).unwrap();
        let (run, count, messages) = run(&histogram, &input, vec![Box::new(gpu)]);
        assert!(run.proof.as_bytes() == golden("v4"));
        assert!(count > 0);
        let peak = device.peak.load(Ordering::Relaxed);
        assert!(peak <= limit, "{peak} bytes of {limit}");
        let too_small = messages.iter().any(|message| message.contains("its memory is too small"));
        assert_eq!(too_small, !is_enough, "{messages:?}");
        assert_eq!(device.used.load(Ordering::Relaxed), 0, "all is freed");
    }
}
