//! The cost of operation: events and logs, resuming after an interruption, starting a verifier,
//! deriving keys.
//!
//! `cargo build --release -p hekaton-cli && cargo run --release -p benches --bin operations -- --json`
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of benchmarks")]

use benches::{Line, Run, alternate_times, median, time};
use clap::Parser;
use hekaton_circuit::{Circuit, PreparedCircuit};
use hekaton_core::events::{Event, Phase, Recorder};
use hekaton_core::{
    Cancellation, Fr, LocalEngine, ProveError, ProveOptions, ProverKeys, SetupOptions, derive,
    prove, setup, setup_family, setup_into,
};
use hekaton_standard::{Chain, Merkle};
use hekaton_storage::{KeyStore, RunDirectoryOptions, RunIdentity};
use std::convert::Infallible;
use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

type Error = Box<dyn std::error::Error>;

/// Benchmarks of operation.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// The program `hekaton`, which is run as a verifier.
    #[arg(long, default_value = "target/release/hekaton")]
    program: std::path::PathBuf,
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    overhead(&options)?;
    resume(&options)?;
    verifier(&options)?;
    family(&options)
}

fn keys<C: Circuit>(circuit: &C) -> Result<ProverKeys, Error> {
    Ok(setup(circuit, &LocalEngine::new(None)?, &SetupOptions::new("bench"))?)
}

/// Keys for 1,024 subcircuits, derived from those of a family, against a setup for this layout.
fn family(options: &Options) -> Result<(), Error> {
    let circuit = |leaves| Merkle { leaves, leaf_bytes: 54, iterations: 1, extra_wires: 0 };
    let (template, circuit) = (circuit(5), circuit(512));
    let (template, prepared) = (PreparedCircuit::new(&template)?, PreparedCircuit::new(&circuit)?);
    let (engine, setup_options) = (LocalEngine::new(None)?, SetupOptions::new("bench"));
    let instances = prepared.layout().instances();
    let keep = |_| Ok::<_, Infallible>(());
    let family = setup_family(&template, 2 * instances, &engine, &setup_options, keep, |_| {})?;
    let (a, b) = alternate_times(
        options.run.repetitions,
        || drop(derive(&family, &prepared, "{}", &engine).unwrap_or_else(|e| panic!("{e}"))),
        || drop(setup(&circuit, &engine, &setup_options).unwrap_or_else(|e| panic!("{e}"))),
    );
    let line = Line {
        bench: "keys for 1,024 subcircuits, derived",
        size: instances,
        threads: engine.threads(),
        ours: a.wall.as_secs_f64(),
        rival: "setup for this layout",
        theirs: b.wall.as_secs_f64(),
        unit: "s",
        larger_is_better: false,
    };
    line.print(options.run.json);
    Line { rival: "limit", theirs: 0.3, ..line }.print(options.run.json);
    let (ours, theirs) = (a.cpu.as_secs_f64(), b.cpu.as_secs_f64());
    Line { ours, theirs, unit: "CPU s", ..line }.print(options.run.json);
    Ok(())
}

/// A run of subcircuits with 26 k and 46 k constraints, with and without run directory and events,
/// in alternation.
fn overhead(options: &Options) -> Result<(), Error> {
    let circuit = Merkle { leaves: 12, leaf_bytes: 54, iterations: 1, extra_wires: 0 };
    let file: Vec<u8> = (0..12 * 54).map(|i| (i * 31) as u8).collect();
    let (keys, engine) = (keys(&circuit)?, LocalEngine::new(None)?);
    let identity = RunIdentity::new(&keys.verifying, [0; 32]);
    let (mut plain, mut kept) = (Vec::new(), Vec::new());
    let mut subcircuits = 0;
    for _ in 0..2 * options.run.repetitions {
        let (t, run) = time(|| prove(&circuit, &file[..], &keys, &engine, &ProveOptions::new()));
        subcircuits = run?.instances;
        plain.push(t);
        let dir = tempfile::tempdir()?;
        let (t, result) = time(|| -> Result<(), Error> {
            let events = Mutex::new(std::fs::File::create(dir.path().join("events"))?);
            let recorder = Recorder::new("bench", |record| {
                if let (Ok(mut file), Ok(line)) = (events.lock(), serde_json::to_string(record)) {
                    let _ = writeln!(file, "{line}");
                }
            });
            let directory = RunDirectoryOptions::new().begin(&dir.path().join("run"), &identity)?;
            let options = ProveOptions::new().recorder(&recorder).journal(&directory);
            prove(&circuit, &file[..], &keys, &engine, &options)?;
            Ok(())
        });
        result?;
        kept.push(t);
    }
    let line = Line {
        bench: "run with events and logs",
        size: subcircuits,
        threads: 2,
        ours: median(kept).as_secs_f64(),
        rival: "the same without",
        theirs: median(plain).as_secs_f64(),
        unit: "s",
        larger_is_better: false,
    };
    line.print(options.run.json);
    Ok(())
}

/// A finished commit round of 1,000 subcircuits, from opening the run directory to the start of the
/// prove round.
fn resume(options: &Options) -> Result<(), Error> {
    let circuit = Chain { links: 1000, steps: 2 };
    let (keys, engine, input) = (keys(&circuit)?, LocalEngine::new(None)?, Fr::from(3u64));
    let identity = RunIdentity::new(&keys.verifying, [0; 32]);
    let mut times = Vec::new();
    for _ in 0..options.run.repetitions {
        let dir = tempfile::tempdir()?;
        // the first process stops before its first proof, the second one is timed up to there
        for timed in [false, true] {
            let stop = Cancellation::new();
            let recorder = Recorder::new("bench", |record| {
                if matches!(record.event, Event::PhaseStart { phase: Phase::Prove, .. }) {
                    stop.cancel();
                }
            });
            let (t, result) = time(|| -> Result<(), Error> {
                let run = RunDirectoryOptions::new().resume(dir.path(), &identity)?;
                let options =
                    ProveOptions::new().recorder(&recorder).journal(&run).cancellation(&stop);
                match prove(&circuit, &input, &keys, &engine, &options) {
                    Err(ProveError::Cancelled) => Ok(()),
                    other => {
                        Err(format!("not cancelled: {:?}", other.map(|run| run.instances)).into())
                    }
                }
            });
            result?;
            if timed {
                times.push(t);
            }
        }
    }
    let line = Line {
        bench: "resume after the commit round",
        size: 1000,
        threads: 2,
        ours: median(times).as_secs_f64(),
        rival: "limit",
        theirs: 1.0,
        unit: "s",
        larger_is_better: false,
    };
    line.print(options.run.json);
    Ok(())
}

/// `hekaton verify` of a proof of 1,024 subcircuits, from process start to exit.
fn verifier(options: &Options) -> Result<(), Error> {
    let dir = tempfile::tempdir()?;
    let path = |name: &str| dir.path().join(name);
    let circuit = Chain { links: 1024, steps: 2 };
    let setup_options =
        SetupOptions::new("chain").parameters(&serde_json::json!({ "links": 1024, "steps": 2 }));
    let mut sink = KeyStore::create(&path("keys"))?;
    let engine = LocalEngine::new(None)?;
    setup_into(&circuit, &engine, &setup_options, &mut sink, |_| {})?;
    let (_, keys) = KeyStore::open(&path("keys"))?;
    let run = prove(&circuit, &Fr::from(3u64), &keys, &engine, &ProveOptions::new())?;
    std::fs::write(path("proof"), run.proof.as_bytes())?;
    let public: Vec<String> = run.public_values.iter().map(ToString::to_string).collect();
    let verify = |program: &Path| -> Result<Duration, Error> {
        let mut command = std::process::Command::new(program);
        command
            .arg("verify")
            .arg(path("proof"))
            .arg("--key")
            .arg(path("keys").join("verifying.key"));
        command.arg("--public").arg(public.join(","));
        let (t, output) = time(|| command.output());
        let output =
            output.map_err(|e| format!("{}: {e}: build hekaton-cli first", program.display()))?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(t)
    };
    let times = (0..10 * options.run.repetitions)
        .map(|_| verify(&options.program))
        .collect::<Result<Vec<_>, _>>()?;
    let line = Line {
        bench: "hekaton verify, the whole process",
        size: 1024,
        threads: 1,
        ours: median(times).as_secs_f64() * 1e3,
        rival: "limit",
        theirs: 60.0,
        unit: "ms",
        larger_is_better: false,
    };
    line.print(options.run.json);
    Ok(())
}
