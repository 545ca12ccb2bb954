//! Times the phases of a run, for people who tune them: `cargo bench -p benches --bench phases`.
#![allow(missing_docs)]

use criterion::{Criterion, criterion_group, criterion_main};
use hekaton_circuit::{Masking, MemoryChallenges, PreparedCircuit};
use hekaton_core::protocol::coordinator::Coordinator;
use hekaton_core::protocol::messages::ProveRound;
use hekaton_core::protocol::worker::{Worker, WorkerError};
use hekaton_core::{Fr, LocalEngine, Randomness, SetupOptions, WitnessCheck, setup, verify};
use hekaton_standard::Chain;

fn phases(c: &mut Criterion) {
    let mut group = c.benchmark_group("chain, 64 links of 2^12 steps");
    group.sample_size(10);
    let circuit = Chain { links: 64, steps: (1 << 12) - 8 };
    let input = Fr::from(3u64);
    let engine = LocalEngine::new(None).unwrap();
    let keys = setup(&circuit, &engine, &SetupOptions::new("bench")).unwrap();
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    let prepared = PreparedCircuit::with_input(&circuit, &input).unwrap();
    let coordinator = Coordinator::new(&prepared, &keys, &engine, 1).unwrap();
    let worker = Worker::new(&prepared, &keys.types, Masking::Masked, WitnessCheck::Check);
    let job = |i| coordinator.prove_job(i, &randomness).unwrap();
    let round =
        ProveRound { memory: MemoryChallenges::new(Fr::from(u128::MAX), Fr::from(u128::MAX - 4)) };
    group.bench_function("execute", |b| b.iter(|| prepared.execute().unwrap()));
    group.bench_function("commit one", |b| b.iter(|| worker.commit(job(1)).unwrap()));
    group.bench_function("prove one", |b| b.iter(|| worker.resume(job(1)).prove(&round).unwrap()));

    let order = coordinator.order();
    let commitments = engine
        .each(&order, usize::MAX, |i| Ok::<_, WorkerError>(worker.commit(job(i))?.1))
        .unwrap();
    let round = coordinator.committed(commitments.clone(), &engine).unwrap().prove_round();
    let responses =
        engine.each(&order, usize::MAX, |i| worker.resume(job(i)).prove(&round)).unwrap();
    let aggregate = || {
        let committed = coordinator.committed(commitments.clone(), &engine).unwrap();
        committed.proven(responses.clone()).unwrap().finish().unwrap()
    };
    group.bench_function("aggregate and verify", |b| b.iter(aggregate));
    let proof = aggregate();
    group.bench_function("verify", |b| {
        b.iter(|| verify(&keys.verifying, coordinator.public_values(), proof.as_bytes()).unwrap());
    });
    group.finish();
}

criterion_group!(benches, phases);
criterion_main!(benches);
