//! The aggregation: time per proof, verification, proof size.
//!
//! `cargo run --release -p benches --bin aggregation -- --json`
//!
//! There is no other implementation of this aggregation to run: the rivals are the figures measured
//! for the research code of the paper on a comparable core, and the project's own limits.
#![allow(clippy::print_stdout)]

use benches::{Line, Run, median, time};
use clap::Parser;
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::protocol::coordinator::Coordinator;
use hekaton_core::protocol::worker::{Worker, WorkerError};
use hekaton_core::{Fr, LocalEngine, Randomness, SetupOptions, WitnessCheck, setup, verify};
use hekaton_standard::Chain;
use std::num::NonZeroUsize;
use std::time::Duration;

type Error = Box<dyn std::error::Error>;

/// Aggregation benchmarks.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// log2 of the number of subcircuits; may be repeated.
    #[arg(long, default_values_t = [6, 8, 10])]
    log_size: Vec<u32>,
    /// Number of threads.
    #[arg(long, default_value = "1")]
    threads: NonZeroUsize,
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    let engine = LocalEngine::new(Some(options.threads))?;
    for log_size in &options.log_size {
        let n = 1 << log_size;
        print(&options, n, &measure(&options, &engine, n)?);
    }
    Ok(())
}

/// The medians of all repetitions, and the size of a proof.
struct Measured {
    aggregation: Duration,
    verification: Duration,
    bytes: usize,
}

/// Measures the aggregation of `n` proofs, from commitments and responses that workers have made.
fn measure(options: &Options, engine: &LocalEngine, n: usize) -> Result<Measured, Error> {
    let circuit = Chain { links: n, steps: 1 };
    let keys = setup(&circuit, engine, &SetupOptions::new("bench"))?;
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    let input = Fr::from(3u64);
    let prepared = PreparedCircuit::with_input(&circuit, &input)?;
    let (mut times, mut verifications) = (Vec::new(), Vec::new());
    let mut bytes = 0;
    for _ in 0..options.run.repetitions {
        let threads = options.threads.get();
        let coordinator = Coordinator::new(&prepared, &keys, engine, threads)?;
        let worker = Worker::new(&prepared, &keys.types, Masking::Masked, WitnessCheck::Check);
        let order = coordinator.order();
        let job = |i| coordinator.prove_job(i, &randomness).unwrap_or_else(|e| panic!("{e}"));
        let commitments =
            engine.each(&order, usize::MAX, |i| Ok::<_, WorkerError>(worker.commit(job(i))?.1))?;
        let (first, commit_round) = time(|| coordinator.committed(commitments, engine));
        let committed = commit_round?;
        let round = committed.prove_round();
        let responses = engine.each(&order, usize::MAX, |i| worker.resume(job(i)).prove(&round))?;
        let proven = committed.proven(responses)?;
        // includes verification of the result, as in every run
        let (second, aggregated) = time(|| proven.finish());
        let proof = aggregated?;
        times.push(first + second);
        bytes = proof.as_bytes().len();
        for _ in 0..5 {
            let (t, verdict) =
                time(|| verify(&keys.verifying, coordinator.public_values(), proof.as_bytes()));
            verdict?;
            verifications.push(t);
        }
    }
    Ok(Measured { aggregation: median(times), verification: median(verifications), bytes })
}

fn print(options: &Options, n: usize, measured: &Measured) {
    let threads = options.threads.get();
    // ms per proof of the research code: by number of proofs on one thread, and on two
    let paper = match (n, threads) {
        (64, 1) => 16.8,
        (256, 1) => 17.7,
        (_, 2) => 7.4,
        _ => 15.1,
    };
    let line = Line {
        bench: "aggregation, verified",
        size: n,
        threads,
        ours: measured.aggregation.as_secs_f64() * 1e3 / n as f64,
        rival: "research code of the paper (measured elsewhere)",
        theirs: paper,
        unit: "ms a proof",
        larger_is_better: false,
    };
    line.print(options.run.json);
    let ours = measured.verification.as_secs_f64() * 1e3;
    Line {
        bench: "verification",
        ours,
        threads: 1,
        rival: "limit",
        theirs: 30.0,
        unit: "ms",
        ..line
    }
    .print(options.run.json);
    Line {
        bench: "proof",
        ours: measured.bytes as f64,
        threads: 1,
        rival: "limit",
        theirs: 24_000.0,
        unit: "bytes",
        ..line
    }
    .print(options.run.json);
}
