//! Golden proofs of `hekaton-core`, with the sums of the kernels' host build, which has the logic of a GPU.

use hekaton_core::circuit::Circuit;
use hekaton_core::events::DeviceWork;
use hekaton_core::mirage::WitnessCheck;
use hekaton_core::protocol::accelerator::Accelerator;
use hekaton_core::{Fr, LocalEngine, SetupOptions, setup};
use hekaton_gpu::check::{Proven, prove_with};
use hekaton_gpu::{Device, Error, Gpu, Host, Kernel};
use hekaton_testing::{Digits, Histogram, Squarings};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

fn gpu() -> Box<dyn Accelerator> {
    Box::new(Gpu::new(Arc::new(Host), 0, None).unwrap())
}

fn run<C: Circuit>(circuit: &C, input: &C::Input, device: Box<dyn Accelerator>) -> Proven {
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(circuit, &engine, &SetupOptions::new("golden").insecure_seed(1)).unwrap();
    prove_with(circuit, input, &keys, &engine, vec![device]).unwrap()
}

fn golden(version: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../hekaton-core/tests/golden");
    std::fs::read(format!("{folder}/{version}.proof")).unwrap()
}

/// A circuit without buses: all answers come from the device.
#[test]
fn version_2() {
    let proven = run(&Squarings, &Fr::from(3u64), gpu());
    assert_eq!(proven.notices, Vec::<String>::new());
    assert!(proven.run.proof.as_bytes() == golden("v2"));
    assert_eq!(
        proven.answers(),
        2 * proven.run.instances as u64,
        "a commitment and a proof of each"
    );
}

/// A circuit with a memory, a table, and ranges, of types that differ in size.
#[test]
fn version_4() {
    let histogram = Histogram { rows: 1 << 14, ..Histogram::new(2, 3) };
    let input = Digits { digits: vec![3, 1, 4, 1, 5, 9], asked: 1, clear: true };
    let proven = run(&histogram, &input, gpu());
    assert_eq!(proven.notices, Vec::<String>::new());
    assert!(proven.run.proof.as_bytes() == golden("v4"));
    assert!(proven.answers() > 0);
}

/// The host, with an account of its memory and of copies.
#[derive(Debug, Default)]
struct Counting {
    used: AtomicU64,
    peak: AtomicU64,
    copies: AtomicU64,
    /// The number of copies beside launches that these wait for.
    awaited: AtomicU64,
}

impl Device for Counting {
    fn free_memory(&self) -> Result<u64, Error> {
        Host.free_memory()
    }

    fn limit(&self, _: u64) {}

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

    fn upload_beside(&self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        Host.upload(address, bytes)?;
        self.copies.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn download(&self, address: u64, bytes: &mut [u8]) -> Result<(), Error> {
        Host.download(address, bytes)
    }

    fn clear(&self, address: u64, bytes: usize) -> Result<(), Error> {
        Host.clear(address, bytes)
    }

    unsafe fn launch(&self, kernel: Kernel, blocks: u32, arguments: &[u8]) -> Result<(), Error> {
        let end = Instant::now() + Duration::from_secs(120);
        while self.copies.load(Ordering::SeqCst) < self.awaited.load(Ordering::SeqCst) {
            assert!(Instant::now() < end, "nothing is copied while this batch is computed");
            std::thread::sleep(Duration::from_millis(1));
        }
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
        let proven = run(&histogram, &input, Box::new(gpu));
        assert!(proven.run.proof.as_bytes() == golden("v4"));
        assert!(proven.answers() > 0);
        let peak = device.peak.load(Ordering::Relaxed);
        assert!(peak <= limit, "{peak} bytes of {limit}");
        let too_small = |message: &String| message.contains("its memory is too small");
        assert_eq!(proven.notices.iter().any(too_small), !is_enough, "{:?}", proven.notices);
        assert_eq!(device.used.load(Ordering::Relaxed), 0, "all is freed");
    }
}

/// The assignments of a batch are copied while the one before it is computed, and all is accounted for.
#[test]
fn copies_overlap() {
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&Squarings, &engine, &SetupOptions::new("golden").insecure_seed(1)).unwrap();
    let (key, device) = (&keys.types[0], Arc::new(Counting::default()));
    let gpu = Gpu::new(device.clone(), 0, None).unwrap();
    let prove = |first: u64| {
        let z: Vec<Fr> = (first..).take(key.variables()).map(Fr::from).collect();
        gpu.prove(key, &[z], WitnessCheck::Skip).unwrap()
    };
    let expected = [prove(1), prove(2)];
    // No launch begins before both of the next ones are copied.
    device.awaited.store(4, Ordering::SeqCst);
    let found = std::thread::scope(|scope| {
        let [a, b] = [1, 2].map(|first| scope.spawn(move || prove(first)));
        [a.join().unwrap(), b.join().unwrap()]
    });
    assert!(found == expected);
    let work = gpu.take_work();
    assert!(work.copied_bytes >= key.bytes() + 4 * 32 * key.variables() as u64);
    assert!(work.key_seconds > 0.0 && work.copy_seconds > 0.0 && work.compute_seconds > 0.0);
    assert_eq!(gpu.take_work(), DeviceWork::default());
}
