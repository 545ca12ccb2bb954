//! The prover against ark-groth16: worker part, setup, memory, and a whole run against the worker
//! part.
//!
//! `cargo run --release -p benches --bin prover -- --json`
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of benchmarks")]

use ark_bls12_381::Bls12_381;
use ark_ff::Field;
use ark_groth16::Groth16;
use ark_groth16::r1cs_to_qap::LibsnarkReduction;
use ark_relations::gr1cs::{
    ConstraintSynthesizer, ConstraintSystem, OptimizationGoal, SynthesisError, SynthesisMode,
};
use ark_std::rand::SeedableRng;
use ark_std::rand::rngs::StdRng;
use benches::{Line, Run, Times, alternate_times, median, peak_memory, time, times};
use clap::Parser;
use hekaton_circuit::{
    CheckOptions, Circuit, CircuitError, InstanceId, LayoutBuilder, LayoutError, Masking,
    MemoryChallenges, PreparedCircuit, StandAlone, Subcircuit, TypeId, WireId, WireValues,
    check_with, count_prepared,
};
use hekaton_core::protocol::coordinator::Coordinator;
use hekaton_core::protocol::messages::{Job, ProveRound};
use hekaton_core::protocol::worker::Worker;
use hekaton_core::{
    Fr, LocalEngine, ProveOptions, ProverKeys, Randomness, SetupOptions, WitnessCheck, prove,
    setup, setup_into,
};
use hekaton_examples::hash_chain::HashChain;
use hekaton_standard::{Chain, Merkle};
use hekaton_storage::KeyStore;
use std::num::NonZeroUsize;
use std::sync::Barrier;
use std::time::Duration;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Ark = Groth16<Bls12_381, LibsnarkReduction>;
type ArkKey = ark_groth16::ProvingKey<Bls12_381>;
const RIVAL: &str = "ark-groth16 0.6";

/// Prover benchmarks.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// log2 of the number of constraints of the worker part's subcircuit.
    #[arg(long, default_value_t = 17)]
    log_size: u32,
    /// Run only benchmarks whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// Key store of the child process that measures memory.
    #[arg(long, hide = true)]
    memory_keys: Option<std::path::PathBuf>,
    /// The workload that the child process measures.
    #[arg(long, hide = true)]
    memory_of: Option<String>,
}

const SHA: &str = "worker: SHA-256";
const CHAIN: &str = "worker: chain of products";
/// A chain of an eighth more than the power of two: its domain is 3 * 2^k, the rival's the next power.
const DOMAIN: &str = "worker: domain of 3 * 2^k";
/// Rows with long linear combinations of full-size values, a quarter as many as of the others.
const POSEIDON: &str = "worker: Poseidon";
/// Nothing but rows of the memory check, an eighth as many as of the others.
const WIDE_WIRES: &str = "worker: shared wires of 255 bits";
const NARROW_WIRES: &str = "worker: shared wires of 32 bits";
const WHOLE: &str = "whole run: 64 merkle subcircuits";

fn main() -> Result<(), Error> {
    let options = Options::parse();
    let size = 1usize << options.log_size;
    // as many SHA-256 blocks, of about 26,200 constraints each, as fit
    let blocks = (size - 1000) / 26_300;
    let sha =
        Merkle { leaves: 1, leaf_bytes: (64 * blocks.max(1)) - 10, iterations: 1, extra_wires: 0 };
    let file: Vec<u8> = (0..sha.leaf_bytes).map(|i| (i * i) as u8).collect();
    let chain = Chain { links: 1, steps: size - 64 };
    let between = Chain { links: 1, steps: size + size / 8 };
    // 243 constraints per hash
    let hashes = HashChain { links: 1, hashes: ((size / 4).saturating_sub(64) / 243).max(1) };
    let start = Fr::from(3u64);
    let wires = SharedWires { wires: size / 8 - 8 };
    let (full, small) = (Fr::from(u128::MAX).pow([5u64]), Fr::from(1u64 << 31));
    match (&options.memory_keys, options.memory_of.as_deref()) {
        (Some(keys), Some(SHA)) => return memory_child(keys, &sha, &file),
        (Some(keys), Some(CHAIN)) => return memory_child(keys, &chain, &start),
        (Some(keys), Some(DOMAIN)) => return memory_child(keys, &between, &start),
        (Some(keys), Some(POSEIDON)) => return memory_child(keys, &hashes, &start),
        (Some(keys), Some(WIDE_WIRES)) => return memory_child(keys, &wires, &full),
        (Some(keys), Some(NARROW_WIRES)) => return memory_child(keys, &wires, &small),
        _ => {}
    }
    let wants = |bench: &str| bench.contains(&options.only);
    if wants(SHA) {
        worker(&options, SHA, &sha, &file)?;
    }
    if wants(CHAIN) {
        worker(&options, CHAIN, &chain, &start)?;
    }
    if wants(DOMAIN) {
        worker(&options, DOMAIN, &between, &start)?;
    }
    if wants(POSEIDON) {
        worker(&options, POSEIDON, &hashes, &start)?;
    }
    if wants(WIDE_WIRES) {
        worker(&options, WIDE_WIRES, &wires, &full)?;
    }
    if wants(NARROW_WIRES) {
        worker(&options, NARROW_WIRES, &wires, &small)?;
    }
    if wants(WHOLE) {
        whole_run(&options)?;
    }
    Ok(())
}

/// Two subcircuits that share wires, and do nothing else. Wire i has the value of the input plus i.
struct SharedWires {
    wires: usize,
}

impl Circuit for SharedWires {
    type Input = Fr;
    type Plan = Vec<WireId>;
    type Trace = ();
    type Private = ();

    fn layout(&self, layout: &mut LayoutBuilder) -> Result<Vec<WireId>, LayoutError> {
        let kind = layout.subcircuit_type("wires", self.wires);
        let wires = (0..self.wires as u64).map(|i| layout.wire("wire", i)).collect::<Vec<_>>();
        let [writer, reader] = [layout.instance(kind), layout.instance(kind)];
        for (slot, wire) in wires.iter().enumerate() {
            layout.unconstrained(kind, slot);
            layout.write(writer, slot, *wire);
            layout.read(reader, slot, *wire);
        }
        Ok(wires)
    }

    fn execute(
        &self,
        wires: &Vec<WireId>,
        input: &Fr,
        values: &mut WireValues,
    ) -> Result<(), CircuitError> {
        for (i, wire) in (0u64..).zip(wires) {
            values.set(*wire, *input + Fr::from(i));
        }
        Ok(())
    }

    fn private_input(
        &self,
        _: &Vec<WireId>,
        _: &Fr,
        (): &(),
        _: InstanceId,
    ) -> Result<(), CircuitError> {
        Ok(())
    }

    fn synthesize(
        &self,
        _: &Vec<WireId>,
        _: &Subcircuit,
        _: Option<&()>,
    ) -> Result<(), SynthesisError> {
        Ok(())
    }
}

fn keys<C: Circuit>(circuit: &C, engine: &LocalEngine) -> Result<(Times, ProverKeys), Error> {
    let (elapsed, keys) =
        times(|| setup(circuit, engine, &SetupOptions::new("bench")).map_err(|e| e.to_string()));
    Ok((elapsed, keys?))
}

/// Commit and prove of the largest subcircuit, synthesis included, on one thread, against
/// ark-groth16 on the same R1CS.
fn worker<C: Circuit>(
    options: &Options,
    name: &str,
    circuit: &C,
    input: &C::Input,
) -> Result<(), Error> {
    let one = LocalEngine::new(NonZeroUsize::new(1))?;
    let mut rng = StdRng::seed_from_u64(1);
    let prepared = PreparedCircuit::with_input(circuit, input)?;
    let (our_setup, keys) = keys(circuit, &one)?;
    let coordinator = Coordinator::new(&prepared, &keys, &one, 1)?;
    let largest = Largest::new(options, &prepared, &keys, &one, &coordinator)?;
    let setup_circuit = StandAlone::setup(&prepared, largest.kind);
    let (their_setup, ark_setup) =
        times(|| Ark::generate_random_parameters_with_reduction(setup_circuit, &mut rng));
    let ark_key = ark_setup?;

    let line = largest.rates(name, &ark_key, &mut rng);
    let bench = format!("setup of {name}");
    let seconds = Line { bench: &bench, larger_is_better: false, ..line };
    seconds.in_seconds(options, our_setup, their_setup);
    largest.before_the_proof(name, seconds);

    drop(coordinator);
    drop((keys, ark_key));
    let bytes = memory(options, name)?;
    let bench = format!("private memory of {name}");
    let ours = (bytes as f64 / line.size as f64).round();
    Line {
        bench: &bench,
        ours,
        rival: "limit",
        theirs: 1400.0,
        unit: "bytes a constraint",
        larger_is_better: false,
        ..line
    }
    .print(options.run.json);
    Ok(())
}

/// The largest subcircuit of a circuit, which both provers prove on one thread.
struct Largest<'a> {
    options: &'a Options,
    prepared: &'a PreparedCircuit<'a>,
    keys: &'a ProverKeys,
    engine: &'a LocalEngine,
    coordinator: &'a Coordinator<'a>,
    instance: usize,
    kind: TypeId,
    randomness: Randomness,
    round: ProveRound,
}

impl<'a> Largest<'a> {
    fn new(
        options: &'a Options,
        prepared: &'a PreparedCircuit<'a>,
        keys: &'a ProverKeys,
        engine: &'a LocalEngine,
        coordinator: &'a Coordinator<'a>,
    ) -> Result<Self, Error> {
        let randomness = Randomness::seeded_not_zero_knowledge(1);
        let instance = coordinator.order()[0];
        let sample = coordinator.prove_job(instance, &randomness)?;
        let kind = prepared.layout().type_ids().nth(sample.kind).ok_or("no type")?;
        let round = prove_round();
        Ok(Self { options, prepared, keys, engine, coordinator, instance, kind, randomness, round })
    }

    fn job(&self) -> Job {
        let job = self.coordinator.prove_job(self.instance, &self.randomness);
        job.unwrap_or_else(|e| panic!("{e}"))
    }

    /// Measures and prints the rates of both provers. Returns the first line.
    fn rates<'l>(&self, name: &'l str, ark_key: &ArkKey, rng: &mut StdRng) -> Line<'l> {
        let types = &self.keys.types;
        let worker = Worker::new(self.prepared, types, Masking::Masked, WitnessCheck::Check);
        let ours = || {
            let (committed, _) = worker.commit(self.job()).unwrap_or_else(|e| panic!("{e}"));
            committed.prove(&self.round).map_or_else(|e| panic!("{e}"), |_| ())
        };
        let slots = self.prepared.layout().slots(self.kind);
        let theirs = || {
            let job = self.job();
            let (slots, values) = (&job.slots[..slots], &job.values[..slots]);
            let private =
                job.private.as_ref().unwrap_or_else(|| panic!("the job has a private input"));
            let memory = &self.round.memory;
            let circuit =
                StandAlone::with_values(self.prepared, self.kind, slots, values, memory, private)
                    .unwrap_or_else(|| panic!("no pole"));
            Ark::create_random_proof_with_reduction(circuit, ark_key, rng)
                .map_or_else(|e| panic!("{e}"), |_| ())
        };
        let (a, b) = alternate_times(self.options.run.repetitions, ours, theirs);
        let constraints = self.coordinator.constraints(self.instance);
        let rate = |t: Duration| (constraints as f64 / t.as_secs_f64()).round();
        let line = Line {
            bench: name,
            size: constraints,
            threads: 1,
            ours: rate(a.wall),
            rival: RIVAL,
            theirs: rate(b.wall),
            unit: "constraints a core-second",
            larger_is_better: true,
        };
        line.print(self.options.run.json);
        let unit = "constraints a CPU-second";
        Line { ours: rate(a.cpu), theirs: rate(b.cpu), unit, ..line }.print(self.options.run.json);
        line
    }

    /// Measures and prints what comes before a proof: counting constraints, the start of a
    /// coordinator, and the check of a witness. `line` has the columns that they share.
    fn before_the_proof(&self, name: &str, line: Line<'_>) {
        let &Self {
            options, prepared, keys, engine, coordinator, ref randomness, ref round, ..
        } = self;
        let repetitions = options.run.repetitions;
        let bench = format!("count of {name}");
        let seconds = Line { bench: &bench, rival: "arkworks' matrices", ..line };
        let ours = || count_prepared(prepared).map_or_else(|e| panic!("{e}"), |_| ());
        let (a, b) = alternate_times(repetitions, ours, || ark_matrices(prepared));
        seconds.in_seconds(options, a, b);

        let bench = format!("start of {name}");
        let seconds = Line { bench: &bench, ..seconds };
        let ours =
            || Coordinator::new(prepared, keys, engine, 1).map_or_else(|e| panic!("{e}"), drop);
        let (a, b) = alternate_times(repetitions, ours, || ark_matrices(prepared));
        seconds.in_seconds(options, a, b);

        let bench = format!("check of {name}");
        let rival = "arkworks' matrices and is_satisfied";
        let seconds = Line { bench: &bench, rival, ..seconds };
        let ours = || match check_with(prepared, &CheckOptions::new(), &mut |_, _| {}) {
            Ok(report) => assert_eq!(report.violated, 0, "the witness is good"),
            Err(e) => panic!("{e}"),
        };
        let theirs = || {
            ark_check(prepared, coordinator, randomness, &round.memory)
                .unwrap_or_else(|e| panic!("{e}"));
        };
        let (a, b) = alternate_times(repetitions, ours, theirs);
        seconds.in_seconds(options, a, b);
    }
}

/// The prove round with challenges that do not depend on commitments.
fn prove_round() -> ProveRound {
    ProveRound { memory: MemoryChallenges::new(Fr::from(u128::MAX), Fr::from(u128::MAX - 4)) }
}

trait InSeconds {
    fn in_seconds(self, options: &Options, ours: Times, theirs: Times);
}

impl InSeconds for Line<'_> {
    /// Prints the wall time, and the processor time below it.
    fn in_seconds(self, options: &Options, ours: Times, theirs: Times) {
        let print = |unit, a: Duration, b: Duration| {
            Line { ours: a.as_secs_f64(), theirs: b.as_secs_f64(), unit, ..self }
                .print(options.run.json);
        };
        print("s", ours.wall, theirs.wall);
        print("CPU s", ours.cpu, theirs.cpu);
    }
}

/// Does what every user of arkworks does before anything else, for each type: synthesis without a
/// witness, and the matrices.
fn ark_matrices(circuit: &PreparedCircuit<'_>) {
    for kind in circuit.layout().type_ids() {
        let cs = ConstraintSystem::<Fr>::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        cs.set_mode(SynthesisMode::Setup);
        StandAlone::setup(circuit, kind)
            .generate_constraints(cs.clone())
            .unwrap_or_else(|e| panic!("{e}"));
        cs.finalize();
        std::hint::black_box(cs.to_matrices().unwrap_or_else(|e| panic!("{e}")));
    }
}

/// The matrices of each type, and whether each instance satisfies its constraints.
fn ark_check(
    prepared: &PreparedCircuit<'_>,
    coordinator: &Coordinator<'_>,
    randomness: &Randomness,
    memory: &MemoryChallenges,
) -> Result<(), Error> {
    ark_matrices(prepared);
    let layout = prepared.layout();
    for (instance, id) in layout.instance_ids().enumerate() {
        let job = coordinator.prove_job(instance, randomness)?;
        let kind = layout.type_of(id);
        let slots = layout.slots(kind);
        let (slots, values) = (&job.slots[..slots], &job.values[..slots]);
        let private = job.private.as_ref().ok_or("the job has no private input")?;
        let circuit = StandAlone::with_values(prepared, kind, slots, values, memory, private);
        let cs = ConstraintSystem::<Fr>::new_ref();
        cs.set_optimization_goal(OptimizationGoal::Constraints);
        circuit.ok_or("a pole")?.generate_constraints(cs.clone())?;
        cs.finalize();
        if !cs.is_satisfied()? {
            return Err("the witness is wrong".into());
        }
    }
    Ok(())
}

/// Peak private memory of one prover in a process of its own, without the key, which is mapped from
/// disk.
fn memory(options: &Options, name: &str) -> Result<u64, Error> {
    let dir = tempfile::tempdir()?;
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command
        .arg("--log-size")
        .arg(options.log_size.to_string())
        .arg("--memory-keys")
        .arg(dir.path().join("keys"));
    command.arg("--memory-of").arg(name);
    // the first process makes the keys, the second proves with them
    for _ in 0..2 {
        let output = command.output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        if let Ok(bytes) = String::from_utf8_lossy(&output.stdout).trim().parse() {
            return Ok(bytes);
        }
    }
    Err("the child process printed no figure".into())
}

/// The child process of [`memory`]: runs setup if there are no keys, else one proof, and prints the
/// peak.
fn memory_child<C: Circuit>(
    path: &std::path::Path,
    circuit: &C,
    input: &C::Input,
) -> Result<(), Error> {
    if !path.exists() {
        let mut sink = KeyStore::create(path)?;
        let engine = LocalEngine::new(None)?;
        setup_into(circuit, &engine, &SetupOptions::new("bench"), &mut sink, |_| {})?;
        return Ok(());
    }
    let before = benches::private_memory();
    let (bytes, result) = peak_memory(before, || -> Result<(), Error> {
        let (_, keys) = KeyStore::open(path)?;
        let randomness = Randomness::seeded_not_zero_knowledge(1);
        let round = prove_round();
        let prepared = PreparedCircuit::with_input(circuit, input)?;
        let one = LocalEngine::new(NonZeroUsize::new(1))?;
        let coordinator = Coordinator::new(&prepared, &keys, &one, 1)?;
        let worker = Worker::new(&prepared, &keys.types, Masking::Masked, WitnessCheck::Check);
        let job = coordinator.prove_job(coordinator.order()[0], &randomness)?;
        worker.commit(job)?.0.prove(&round)?;
        Ok(())
    });
    result?;
    println!("{bytes}");
    Ok(())
}

/// The time of all worker parts on one thread, while as many threads run as the barrier has.
fn worker_parts(
    prepared: &PreparedCircuit<'_>,
    keys: &ProverKeys,
    engine: &LocalEngine,
    randomness: &Randomness,
    start: &Barrier,
) -> Result<Duration, Error> {
    let round = prove_round();
    let coordinator = Coordinator::new(prepared, keys, engine, 2)?;
    let worker = Worker::new(prepared, &keys.types, Masking::Masked, WitnessCheck::Check);
    // one subcircuit per type, weighted by the number of its instances: order() is type by type
    let order = coordinator.order();
    let (mut at, mut all) = (0, Duration::ZERO);
    while at < order.len() {
        let same = order[at..]
            .iter()
            .take_while(|i| coordinator.constraints(**i) == coordinator.constraints(order[at]))
            .count();
        let job = coordinator.prove_job(order[at], randomness)?;
        start.wait();
        let (t, result) =
            time(|| worker.commit(job).and_then(|(committed, _)| committed.prove(&round)));
        result?;
        all += t * u32::try_from(same)?;
        at += same;
    }
    Ok(all)
}

/// 64 `merkle` subcircuits on two threads, aggregation included, against the rate of the worker
/// part alone for the same subcircuits: on one thread, and on two at once, which share caches,
/// memory bandwidth and the cores' clock.
fn whole_run(options: &Options) -> Result<(), Error> {
    let circuit = Merkle { leaves: 32, leaf_bytes: 54, iterations: 1, extra_wires: 0 };
    let file: Vec<u8> = (0..32 * 54).map(|i| (i * 31) as u8).collect();
    let two = LocalEngine::new(NonZeroUsize::new(2))?;
    let (_, keys) = keys(&circuit, &two)?;
    let randomness = Randomness::seeded_not_zero_knowledge(1);
    let prepared = PreparedCircuit::with_input(&circuit, &file[..])?;
    let workers = |start: &Barrier| worker_parts(&prepared, &keys, &two, &randomness, start);
    let (mut alone, mut paired, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.run.repetitions {
        alone.push(workers(&Barrier::new(1))?);
        let start = Barrier::new(2);
        let both = std::thread::scope(|scope| {
            let other = scope.spawn(|| workers(&start));
            let one = workers(&start)?;
            let joined = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            Ok::<_, Error>((one + joined?) / 2)
        });
        paired.push(both?);
        let prove_options = ProveOptions::new();
        let (t, proved) = time(|| prove(&circuit, &file[..], &keys, &two, &prove_options));
        let run = proved?;
        eprintln!(
            "whole run: {:.2?}, {} subcircuits, {} constraints",
            t, run.instances, run.constraints
        );
        whole.push((t, run.constraints));
    }
    let constraints = whole[0].1;
    let wall = median(whole.into_iter().map(|w| w.0).collect());
    for (rival, workers) in
        [("own worker part, one thread", alone), ("own worker part, two threads at once", paired)]
    {
        let line = Line {
            bench: WHOLE,
            size: constraints as usize,
            threads: 2,
            ours: (constraints as f64 / wall.as_secs_f64() / 2.0).round(),
            rival,
            theirs: (constraints as f64 / median(workers).as_secs_f64()).round(),
            unit: "constraints a core-second",
            larger_is_better: true,
        };
        line.print(options.run.json);
    }
    Ok(())
}
