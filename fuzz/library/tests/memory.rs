//! The memory that the verifier allocates for arbitrary input: at n = 2^10 its peak stays below 64
//! MiB.

use hekaton_core::{
    Fr, LocalEngine, ProveOptions, SetupOptions, VerifyingKey, fuzzing as entry, prove, setup,
};
use hekaton_fuzzing::{Program, check_proof};
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

const LIMIT: usize = 64 << 20;

#[test]
fn the_verifier_stays_small() {
    let circuit = hekaton_standard::Chain { links: 1 << 10, steps: 1 };
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit, &engine, &SetupOptions::new("chain").insecure_seed(1)).unwrap();
    let run = prove(&circuit, &Fr::from(3u64), &keys, &engine, &ProveOptions::new()).unwrap();
    let (good, public, key_bytes) =
        (run.proof.as_bytes().to_vec(), run.public_values, keys.verifying.to_bytes());
    drop((keys, engine));

    let fields = entry::fields(10);
    assert_eq!(fields.last().unwrap().end, good.len());
    let mut random = 1u64;
    let mut draw = move || {
        random =
            random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        random.to_be_bytes()[2]
    };
    ALLOCATOR.reset_peak_usage();
    for round in 0..150 {
        let program: Vec<u8> = (0..24).map(|_| draw()).collect();
        let (mut proof, mut key_file) = (good.clone(), key_bytes.clone());
        if round % 3 == 0 {
            let _ = Program::new(&program).mutate(&mut key_file);
        } else if round > 0 {
            let _ = Program::new(&program).mutate_elements(&mut proof, &fields);
        }
        // lengths that promise more data than there is
        if round % 10 == 9 {
            let at = 12 + usize::from(draw()) % 120;
            key_file[at..at + 4].fill(0xff);
        }
        if let Ok(key) = VerifyingKey::from_bytes(&key_file)
            && key_file == key_bytes
        {
            check_proof(&key, &public, &good, &proof);
        }
    }
    let peak = ALLOCATOR.peak_usage();
    assert!(peak < LIMIT, "{peak} bytes");
}
