//! Imported circuits: what cuts cost, the import, the worker on an imported part, and whole runs.
//!
//! `cargo run --release -p benches --bin partition -- --json --r1cs c.r1cs --wtns c.wtns`
//!
//! The circuit is any of circom's; without one, an arkworks circuit in one piece is imported.
//! The committed figures are for `circuits/r1cs/circom/sha256_chain.circom`. Rivals: the hand-made
//! `merkle` subcircuit and ark-groth16 in this process; and as child processes, where options say where
//! they are, Mt-KaHyPar, legogroth16 and snarkjs, and gnark on SHA-256 of its own.
#![allow(clippy::print_stderr)]

use ark_bls12_381::Bls12_381;
use ark_groth16::Groth16;
use ark_groth16::r1cs_to_qap::LibsnarkReduction;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystemRef, LinearCombination, SynthesisError, Variable,
};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use benches::{Line, Times, alternate_times, peak_memory, private_memory, time, times};
use clap::Parser;
use ecdsa::Ecdsa;
use hekaton_circuit::prover::Prefix;
use hekaton_circuit::{Circuit, Masking, MemoryChallenges, PreparedCircuit};
use hekaton_core::protocol::coordinator::Coordinator;
use hekaton_core::protocol::messages::ProveRound;
use hekaton_core::protocol::worker::Worker;
use hekaton_core::{
    Fr, LocalEngine, ProveOptions, ProverKeys, Randomness, SetupOptions, WitnessCheck,
    prove_prepared, setup,
};
use hekaton_examples::monolith::Steps;
use hekaton_r1cs::{
    Imported, Monolith, R1csFile, System, Unique, WitnessFile, system_of, witness_of,
};
use hekaton_standard::Merkle;
use options::{Error, Options, WorkerRate};
use rivals::WholeRun;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

mod ecdsa;
mod options;
mod rivals;

type Ark = Groth16<Bls12_381, LibsnarkReduction>;
const RIVAL: &str = "ark-groth16 0.6";

fn main() -> Result<(), Error> {
    let options = Options::parse();
    if options.ecdsa {
        let circuit = Ecdsa::signed().ok_or("no signature")?;
        let monolith = Monolith::of_system("ecdsa", [0; 32], system_of(circuit)?)?;
        return cut(&options, &monolith);
    }
    let folder = tempfile::tempdir()?;
    let (source, witness) = match (&options.r1cs, &options.wtns) {
        (Some(r1cs), Some(wtns)) => (r1cs.clone(), wtns.clone()),
        _ => arkworks(folder.path(), 3 << options.log_rows)?,
    };
    if options.unique {
        return unique(&options, &source, &witness);
    }
    if options.cut {
        return cut(&options, &Monolith::read(&source, None, |_, _| {})?);
    }
    let directory = folder.path().join("circuit");
    import(&options, &source, &directory)?;
    let imported = Imported::open(&directory)?;
    let witness_file = WitnessFile::open(&witness)?;
    let one = LocalEngine::new(NonZeroUsize::new(1))?;
    let worker = worker(&options, &imported, &witness_file, &one)?;
    let system = R1csFile::open(&source)?.read(|_| {})?;
    whole_run(&options, &imported, &witness_file, [&source, &witness], &system, worker)
}

/// The files of an arkworks circuit with about this number of constraints.
fn arkworks(folder: &Path, rows: u64) -> Result<(PathBuf, PathBuf), Error> {
    let circuit = Steps { steps: rows / 3, start: Some(Fr::from(3u64)) };
    let (r1cs, wtns) = (folder.join("steps.r1cs"), folder.join("steps.wtns"));
    std::fs::write(&r1cs, R1csFile::bytes_of(&system_of(circuit)?, 1))?;
    std::fs::write(&wtns, WitnessFile::bytes_of(&witness_of(circuit)?))?;
    Ok((r1cs, wtns))
}

/// Prints the CPU time and the time that a million rows take on one thread, beside a limit for the CPU time.
fn per_million<'a>(
    options: &Options,
    bench: &'a str,
    rows: usize,
    elapsed: &Times,
    limit: f64,
) -> Line<'a> {
    let of_a_million = |time: Duration| time.as_secs_f64() * 1e6 / rows as f64;
    let line = Line {
        bench,
        size: rows,
        threads: 1,
        ours: of_a_million(elapsed.cpu),
        rival: "limit",
        theirs: limit,
        unit: "CPU s a million rows",
        larger_is_better: false,
    };
    line.print(options.run.json);
    let wall = Line { ours: of_a_million(elapsed.wall), unit: "s a million rows", ..line };
    wall.print(options.run.json);
    line
}

/// Asks which values follow from the inputs: time on one thread, and memory.
fn unique(options: &Options, source: &Path, witness: &Path) -> Result<(), Error> {
    let monolith = Monolith::read(source, None, |_, _| {})?;
    let (rows, entries) = (monolith.system().rows(), monolith.system().terms());
    let before = private_memory();
    let (bytes, (elapsed, result)) = peak_memory(before, || {
        times(|| -> Result<_, Error> {
            let question = Unique::of_monolith(&monolith)?;
            let values = question.values(&WitnessFile::open(witness)?)?;
            let (verdicts, _) = question.verdicts(&values, |wire| wire.to_string())?;
            Ok(verdicts)
        })
    });
    let verdicts = result?;
    let undecided: usize = verdicts.undecided_counts().iter().sum();
    let line = per_million(options, "check --unique", rows, &elapsed, 3.0);
    let (bench, bytes) = ("check --unique, memory", bytes as f64 / entries as f64);
    Line { bench, ours: bytes, theirs: 200.0, unit: "bytes an entry", ..line }
        .print(options.run.json);
    let (bench, rival, theirs) = ("check --unique, undecided", "", f64::NAN);
    Line { bench, ours: undecided as f64, rival, theirs, unit: "values", ..line }
        .print(options.run.json);
    Ok(())
}

/// Measures the cost of the cut of a circuit, against a limit and Mt-KaHyPar.
fn cut(options: &Options, monolith: &Monolith) -> Result<(), Error> {
    let (elapsed, cut) = time(|| monolith.cut(1 << options.log_rows, |_| {}));
    let plan = cut?;
    let line = Line {
        bench: "rows added by the cut",
        size: monolith.system().rows(),
        threads: 1,
        ours: 100.0 * plan.added(),
        rival: "limit",
        theirs: 1.0,
        unit: "%",
        larger_is_better: false,
    };
    let print = |line: Line<'_>| line.print(options.run.json);
    print(line);
    let types = plan.parts.types.len() as f64;
    print(Line { bench: "types", ours: types, theirs: 8.0, unit: "types", ..line });
    let alone = Line { rival: "", theirs: f64::NAN, ..line };
    let parts = plan.parts.parts.len() as f64;
    print(Line { bench: "parts", ours: parts, unit: "parts", ..alone });
    let bytes = plan.key_bytes() as f64;
    print(Line { bench: "proving keys", ours: bytes, unit: "bytes", ..alone });
    rivals::mtkahypar(options, monolith.system(), line, elapsed)
}

/// Imports the circuit: time and memory on one thread, and what its cut costs.
fn import(options: &Options, source: &Path, directory: &Path) -> Result<(), Error> {
    let before = private_memory();
    let (bytes, result) = peak_memory(before, || {
        times(|| -> Result<_, Error> {
            let monolith = Monolith::read(source, None, |_, _| {})?;
            let plan = monolith.cut(1 << options.log_rows, |_| {})?;
            monolith.write(&plan, directory)?;
            Ok(())
        })
    });
    let (elapsed, result) = result;
    result?;
    let monolith = Monolith::read(source, None, |_, _| {})?;
    cut(options, &monolith)?;
    let rows = monolith.system().rows();
    let line = per_million(options, "import", rows, &elapsed, 6.0);
    let (bench, bytes) = ("import, memory", bytes as f64 / rows as f64);
    Line { bench, ours: bytes, theirs: 700.0, unit: "bytes a row", ..line }.print(options.run.json);
    Ok(())
}

/// Challenges of full size.
fn memory() -> MemoryChallenges {
    let g = Fr::from(u128::MAX);
    MemoryChallenges::new(g, g - Fr::from(4u64))
}

/// A subcircuit of a circuit on its input, with keys.
struct Part<'a> {
    keys: ProverKeys,
    prepared: PreparedCircuit<'a>,
    randomness: Randomness,
}

impl<'a> Part<'a> {
    fn new<C: Circuit>(
        circuit: &'a C,
        input: &'a C::Input,
        engine: &LocalEngine,
    ) -> Result<Self, Error> {
        let keys =
            setup(circuit, engine, &SetupOptions::new("bench")).map_err(|e| e.to_string())?;
        let prepared = PreparedCircuit::with_input(circuit, input)?;
        let randomness = Randomness::seeded_not_zero_knowledge(1);
        Ok(Self { keys, prepared, randomness })
    }

    /// Commits and proves the largest subcircuit, its witness included; returns its constraints.
    fn prove(&self, coordinator: &Coordinator<'_>) -> usize {
        let instance = coordinator.order()[0];
        let keys = &self.keys.types;
        let worker = Worker::new(&self.prepared, keys, Masking::Masked, WitnessCheck::Check);
        let round = ProveRound { memory: memory() };
        let job = coordinator.prove_job(instance, &self.randomness);
        let proven = job.map_err(Error::from).and_then(|job| {
            let (committed, _) = worker.commit(job)?;
            Ok(committed.prove(&round)?)
        });
        proven.unwrap_or_else(|e| panic!("{e}"));
        coordinator.constraints(instance)
    }

    /// Makes the witness of the subcircuit that [`Self::prove`] proves.
    fn witness(&self, coordinator: &Coordinator<'_>) -> Result<(), Error> {
        let job = coordinator.prove_job(coordinator.order()[0], &self.randomness)?;
        let prefix = Prefix::new(&job.slots, &job.values, &memory()).map_err(|_| "a pole")?;
        let layout = self.prepared.layout();
        let kind = layout.type_ids().nth(job.kind).ok_or("no type")?;
        let private = job.private.as_ref().ok_or("no private input")?;
        let variables = self.keys.types[job.kind].variables();
        self.prepared.witness(kind, Masking::Masked, &prefix, private, variables)?;
        Ok(())
    }
}

/// The worker on an imported part against the worker on the hand-made SHA-256 subcircuit, one thread;
/// and what of its time the witness takes.
fn worker(
    options: &Options,
    imported: &Imported,
    witness: &WitnessFile,
    one: &LocalEngine,
) -> Result<WorkerRate, Error> {
    let blocks = ((1usize << options.log_rows) - 1000) / 26_300;
    let leaf_bytes = 64 * blocks.max(1) - 10;
    let merkle = Merkle { leaves: 1, leaf_bytes, iterations: 1, extra_wires: 0 };
    #[allow(clippy::cast_possible_truncation, reason = "any bytes will do")]
    let file: Vec<u8> = (0..leaf_bytes).map(|i| (i * i) as u8).collect();
    let (ours, theirs) = (Part::new(imported, witness, one)?, Part::new(&merkle, &file[..], one)?);
    let coordinators = [&ours, &theirs].map(|part| {
        Coordinator::new(&part.prepared, &part.keys, one, 1).unwrap_or_else(|e| panic!("{e}"))
    });
    let rows = [ours.prove(&coordinators[0]), theirs.prove(&coordinators[1])];
    let (a, b) = alternate_times(
        options.run.repetitions,
        || {
            ours.prove(&coordinators[0]);
        },
        || {
            theirs.prove(&coordinators[1]);
        },
    );
    let rate = |t: Duration| (rows[0] as f64 / t.as_secs_f64()).round();
    let worker = WorkerRate { wall: rate(a.wall), cpu: rate(a.cpu) };
    worker.against(options, "worker on the merkle subcircuit", rows[1], b);
    let (proven, witness) = alternate_times(
        options.run.repetitions,
        || {
            ours.prove(&coordinators[0]);
        },
        || ours.witness(&coordinators[0]).unwrap_or_else(|e| panic!("{e}")),
    );
    let line = Line {
        bench: "witness of a part, of its proving time",
        size: rows[0],
        threads: 1,
        ours: 100.0 * witness.cpu.as_secs_f64() / proven.cpu.as_secs_f64(),
        rival: "limit",
        theirs: 2.0,
        unit: "%",
        larger_is_better: false,
    };
    line.print(options.run.json);
    Ok(worker)
}

/// A circuit in one piece for arkworks.
struct Whole<'a> {
    system: &'a System,
    values: Option<&'a [Fr]>,
}

impl ConstraintSynthesizer<Fr> for Whole<'_> {
    fn generate_constraints(self, cs: ConstraintSystemRef<Fr>) -> Result<(), SynthesisError> {
        let value = |wire: u32| {
            let values = self.values.ok_or(SynthesisError::AssignmentMissing)?;
            Ok(values[wire as usize])
        };
        let mut variables = vec![Variable::One];
        for wire in 1..self.system.wires() {
            variables.push(match wire <= self.system.public() {
                true => cs.new_input_variable(|| value(wire))?,
                false => cs.new_witness_variable(|| value(wire))?,
            });
        }
        for row in 0..self.system.rows() {
            let [a, b, c] = self.system.row(row).map(|side| {
                let coefficients = self.system.coefficients();
                let term = |t: &hekaton_r1cs::Term| {
                    (coefficients[t.coefficient as usize], variables[t.wire as usize])
                };
                LinearCombination(side.iter().map(term).collect())
            });
            cs.enforce_r1cs_constraint(|| a, || b, || c)?;
        }
        Ok(())
    }
}

/// The whole circuit, proven by Hekaton with aggregation and verification, and in one piece by the
/// rivals.
fn whole_run(
    options: &Options,
    imported: &Imported,
    witness: &WitnessFile,
    [source, wtns]: [&Path; 2],
    system: &System,
    worker: WorkerRate,
) -> Result<(), Error> {
    let engine = LocalEngine::new(Some(options.threads))?;
    let part = Part::new(imported, witness, &engine)?;
    let values = witness.values(0..witness.wires())?;
    let mut rng = StdRng::seed_from_u64(1);
    let whole = |values| Whole { system, values };
    let ark_key = Ark::generate_random_parameters_with_reduction(whole(None), &mut rng)?;
    let prove_options = ProveOptions::new();
    let mut ours = || {
        let run = prove_prepared(&part.prepared, &part.keys, &engine, &prove_options);
        drop(run.unwrap_or_else(|e| panic!("{e}")));
    };
    let theirs = || {
        let proof =
            Ark::create_random_proof_with_reduction(whole(Some(&values)), &ark_key, &mut rng);
        proof.map_or_else(|e| panic!("{e}"), drop);
    };
    let (a, b) = alternate_times(options.run.repetitions, &mut ours, theirs);
    let line = Line {
        bench: "whole run",
        size: system.rows(),
        threads: options.threads.get(),
        ours: a.wall.as_secs_f64(),
        rival: RIVAL,
        theirs: b.wall.as_secs_f64(),
        unit: "s",
        larger_is_better: false,
    };
    let print = |line: Line<'_>, a: Times, b: Times| {
        line.print(options.run.json);
        let cpu = |t: Times| t.cpu.as_secs_f64();
        Line { ours: cpu(a), theirs: cpu(b), unit: "CPU s", ..line }.print(options.run.json);
    };
    print(line, a, b);
    // arkworks proves on one thread.
    worker.against(options, RIVAL, system.rows(), b);
    WholeRun { options, source, witness: wtns, ours: a, line, worker }.against_all(&mut ours)
}
