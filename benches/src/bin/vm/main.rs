//! Programs on the machine: how fast they run, in comparison with ckb-vm and qemu-riscv32, and how fast
//! their runs are proven, in comparison with our own worker on a chain of squarings and with the paper's
//! figure for TinyRAM.
//!
//! `cargo run --release -p benches --bin vm -- --json`
//!
//! Programs are those of `circuits/vm/guests`, on inputs that make about `--cycles` cycles of them. Rates of
//! proofs are cycles for each second of processor time of a whole run, tables and aggregation included.
#![allow(clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of benchmarks")]

mod guests;
mod rivals;

use benches::{Line, Run, Times, medians, peak_of_process, time, times};
use clap::Parser;
use guests::{Error, Guest, MAX_CYCLES};
use hekaton_circuit::PreparedCircuit;
use hekaton_circuit::named::NamedCircuit;
use hekaton_core::mirage::ProvingKey;
use hekaton_core::{
    FamilyKey, LocalEngine, ProveOptions, ProverKeys, SetupOptions, derive, prove, setup,
    setup_family, verify,
};
use hekaton_paper::{Ram, RamParameters};
use hekaton_standard::Chain;
use hekaton_vm::{Counts, Isa, MachineCircuit, Program, Sizes, run};
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// The paper's rate for TinyRAM with a dummy ALU: 50 kHz on 4,096 cores of EPYC 7763.
const PAPER: f64 = 12.2;

/// Benchmarks of the machine.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// The number of cycles of each program, about.
    #[arg(long, default_value_t = 1 << 20)]
    cycles: u64,
    /// The most constraints of a subcircuit.
    #[arg(long, default_value_t = 1 << 17)]
    rows: usize,
    /// The programs to run; hash is there, too, on an eighth of the cycles, since its calls are one each.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "fibonacci,quicksort,sha256,json,interpreter"
    )]
    programs: Vec<String>,
    /// The programs whose runs are proven; tinyram is that of the paper's RAM experiment.
    #[arg(long, value_delimiter = ',', default_value = "json,tinyram")]
    prove: Vec<String>,
    /// The number of proofs of each.
    #[arg(long, default_value_t = 1)]
    proofs: usize,
    /// The number of threads for proofs [default: the cores that this process may use].
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// The program of `rivals/ckb-vm`.
    #[arg(long)]
    ckb_vm: Option<PathBuf>,
    /// qemu-riscv32, which is in Debian's package qemu-user.
    #[arg(long, default_value = "qemu-riscv32")]
    qemu: PathBuf,
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    let directory = tempfile::tempdir()?;
    let guests = guests::build(directory.path(), &options.programs, options.cycles)?;
    for guest in &guests {
        execution(&options, guest)?;
    }
    let proven: Vec<&Guest> =
        guests.iter().filter(|guest| options.prove.contains(&guest.name)).collect();
    if !proven.is_empty() {
        proofs(&options, &proven)?;
    }
    if options.prove.iter().any(|name| name == "tinyram") {
        tinyram(&options)?;
    }
    Ok(())
}

/// Cycles of TinyRAM, with the same machine and the paper's figure.
fn tinyram(options: &Options) -> Result<(), Error> {
    let engine = LocalEngine::new(options.threads)?;
    let (threads, json) = (engine.threads(), options.run.json);
    let cycles = options.cycles as usize;
    let circuit = Ram::with(RamParameters { cycles, memory: 0, rows: options.rows })?;
    let input = circuit.open(&circuit.sample())?;
    let keys = setup(&circuit, &engine, &SetupOptions::new("tinyram"))?;
    let all: Result<Vec<_>, Error> = (0..options.proofs.max(1))
        .map(|_| {
            let (spent, result) =
                times(|| prove(&circuit, &input, &keys, &engine, &ProveOptions::new()));
            let proven = result?;
            verify(&keys.verifying, &proven.public_values, proven.proof.as_bytes())?;
            Ok(spent)
        })
        .collect();
    let spent = medians(&all?);
    let print = |ours: f64, rival, theirs, unit| {
        let (bench, size) = ("tinyram: proof", cycles);
        let larger_is_better = true;
        Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better }.print(json);
    };
    let rate = |time: Duration| cycles as f64 / time.as_secs_f64();
    print(rate(spent.cpu), "the paper, on EPYC 7763", PAPER, "cycles a CPU second");
    print(rate(spent.wall), "", f64::NAN, "cycles a second of wall time");
    Ok(())
}

/// The cycles of a program, its rows, and the rates of executing it.
fn execution(options: &Options, guest: &Guest) -> Result<(), Error> {
    let (name, json) = (guest.name.as_str(), options.run.json);
    let program = Program::from_elf(&guest.elf)?;
    let found = run(&program, &guest.input, MAX_CYCLES)?;
    let (cycles, sizes) = (found.cycles() as usize, Sizes { rows: options.rows });
    let line = |bench: &str, ours: f64, rival, theirs: f64, unit, larger_is_better| {
        let (bench, size) = (&*format!("{name}: {bench}"), cycles);
        Line { bench, size, threads: 1, ours, rival, theirs, unit, larger_is_better }.print(json);
    };
    let rows = sizes.constraints_of(&found) as f64 / cycles as f64;
    line("constraints", rows, "", f64::NAN, "a cycle", false);
    let repeat = |f: &dyn Fn() -> Result<(), Error>| -> Result<f64, Error> {
        let repetitions = (0..options.run.repetitions).map(|_| {
            let (time, result) = times(f);
            result.map(|()| time)
        });
        let all = repetitions.collect::<Result<Vec<_>, _>>()?;
        Ok(cycles as f64 / medians(&all).cpu.as_secs_f64() / 1e6)
    };
    let first = repeat(&|| Ok(run(&program, &guest.input, MAX_CYCLES).map(drop)?))?;
    let replay = repeat(&|| Ok(found.replay(&program).map(drop)?))?;
    let rate = "million cycles a second";
    match rivals::ckb_vm(options, guest, &found)? {
        Some(seconds) => {
            let theirs = cycles as f64 / seconds / 1e6;
            line("first pass", first, "ckb-vm 0.24", theirs, rate, true);
        }
        None => line("first pass", first, "", f64::NAN, rate, true),
    }
    line("replay", replay, "", f64::NAN, rate, true);
    if let Some(seconds) = rivals::qemu(options, guest, &found)? {
        let theirs = cycles as f64 / seconds / 1e6;
        line("first pass", first, "qemu-riscv32, its start included", theirs, rate, true);
    }
    Ok(())
}

/// A family of keys in memory.
struct Family {
    key: FamilyKey,
    types: Vec<ProvingKey>,
}

fn proofs(options: &Options, guests: &[&Guest]) -> Result<(), Error> {
    let engine = LocalEngine::new(options.threads)?;
    let mut bench = Proofs::new(options, &engine)?;
    guests.iter().try_for_each(|guest| bench.measure(guest))
}

/// A rival without a figure.
const ALONE: (&str, f64) = ("", f64::NAN);

/// Proofs of programs, all of them with one family of keys.
struct Proofs<'a> {
    options: &'a Options,
    engine: &'a LocalEngine,
    family: Family,
    /// Constraints for each second of processor time that a chain of squarings takes.
    chain: f64,
    /// Bytes for each second of processor time that SHA-256 by instructions takes, once it is known.
    by_instructions: f64,
}

impl<'a> Proofs<'a> {
    /// Makes the keys, and prints what they cost.
    fn new(options: &'a Options, engine: &'a LocalEngine) -> Result<Self, Error> {
        let chain = chain_rate(options, engine)?;
        let mut types = Vec::new();
        let most = (options.cycles * 32 / options.rows as u64 + 64).next_power_of_two() as usize;
        let template = MachineCircuit::of_family(Isa::Rv32im, Sizes { rows: options.rows });
        let prepared = PreparedCircuit::new(&template)?;
        let keep = |key| {
            types.push(key);
            Ok::<_, Infallible>(())
        };
        let (spent, key) =
            times(|| setup_family(&prepared, most, engine, &SetupOptions::new("vm"), keep, |_| {}));
        let family = Family { key: key?, types };
        let bench = Self { options, engine, family, chain, by_instructions: f64::NAN };
        bench.cost(
            "setup of the family",
            options.rows,
            spent.cpu.as_secs_f64(),
            ALONE,
            "CPU seconds",
        );
        Ok(bench)
    }

    /// Derives the keys of a program, proves its run, and prints what that took.
    fn measure(&mut self, guest: &Guest) -> Result<(), Error> {
        let (program, name) = (Program::from_elf(&guest.elf)?, &guest.name);
        let found = run(&program, &guest.input, MAX_CYCLES)?;
        let cycles = found.cycles() as usize;
        let sizes = Sizes { rows: self.options.rows };
        let counts = Counts::of(&found, &program, &guest.input, sizes);
        let public_words = guest.input.public.len();
        let execution =
            MachineCircuit { program, sizes, counts, public_words, max_cycles: MAX_CYCLES };
        let prepared = execution.prepared()?;
        let (seconds, derived) = time(|| derive(&self.family.key, &prepared, "{}", self.engine));
        let (aggregation, verifying) = derived?;
        let (n, seconds) = (prepared.layout().instances(), seconds.as_secs_f64());
        self.cost(&format!("{name}: keys derived"), n, seconds, ("target", 0.3), "seconds");
        let has = |key: &ProvingKey| verifying.types.iter().any(|kind| kind.name == key.name());
        let (types, others) = std::mem::take(&mut self.family.types).into_iter().partition(has);
        let keys = ProverKeys { verifying, aggregation, types };
        if let Some((spent, verified)) = self.prove(&execution, guest, &keys)? {
            self.rates(guest, cycles, &spent);
            let layout = prepared.layout();
            let constraints: usize = layout
                .instance_ids()
                .map(|id| keys.types[layout.type_index(id)].constraints())
                .sum();
            let ours = constraints as f64 / spent.cpu.as_secs_f64();
            let (chain, unit) = (("chain", self.chain), "constraints a CPU second");
            self.rate(&format!("{name}: proof"), constraints, ours, chain, unit);
            let share = 1.0 - sizes.constraints_of(&found) as f64 / constraints as f64;
            let what = format!("{name}: tables, memory, filling");
            self.cost(&what, constraints, share, ALONE, "of all constraints");
            let megabytes = peak_of_process() as f64 / 1e6;
            let unit = "MB, all keys and their setup included";
            self.cost(&format!("{name}: peak memory"), cycles, megabytes, ALONE, unit);
            let ms = verified.as_secs_f64() * 1e3;
            self.cost(&format!("{name}: verification"), n, ms, ALONE, "ms");
        }
        self.family.types = keys.types;
        self.family.types.extend(others);
        Ok(())
    }

    /// Proves a run some times, and verifies the last proof. Returns what a proof and the verification
    /// took; `None` if there is to be no proof.
    fn prove(
        &self,
        execution: &MachineCircuit,
        guest: &Guest,
        keys: &ProverKeys,
    ) -> Result<Option<(Times, Duration)>, Error> {
        let (mut all, mut last) = (Vec::new(), None);
        for _ in 0..self.options.proofs {
            let options = ProveOptions::new();
            let (spent, proven) =
                times(|| prove(execution, &guest.input, keys, self.engine, &options));
            all.push(spent);
            last = Some(proven?);
        }
        let Some(proven) = last else { return Ok(None) };
        let (verified, verdict) =
            time(|| verify(&keys.verifying, &proven.public_values, proven.proof.as_bytes()));
        verdict?;
        Ok(Some((medians(&all), verified)))
    }

    /// Prints the rates of a proof by cycles, and by bytes for programs that hash.
    fn rates(&mut self, guest: &Guest, cycles: usize, spent: &Times) {
        let bench = format!("{}: proof", guest.name);
        let (cpu, wall) = (spent.cpu.as_secs_f64(), spent.wall.as_secs_f64());
        let paper = ("the paper's TinyRAM", PAPER);
        self.rate(&bench, cycles, cycles as f64 / cpu, paper, "cycles a CPU second");
        self.rate(&bench, cycles, cycles as f64 / wall, ALONE, "cycles a second of wall time");
        let bytes = guest.input.private.len();
        let (rate, unit) = (bytes as f64 / cpu, "bytes a CPU second");
        match guest.name.as_str() {
            "sha256" => {
                self.by_instructions = rate;
                self.rate(&bench, bytes, rate, ALONE, unit);
            }
            // It computes two digests, so it does more for a byte.
            "hash" => {
                let rival = ("sha256, instructions", self.by_instructions);
                self.rate(&bench, bytes, rate, rival, unit);
            }
            _ => {}
        }
    }

    /// Prints a figure of which more is better.
    fn rate(&self, bench: &str, size: usize, ours: f64, rival: (&str, f64), unit: &str) {
        let (threads, (rival, theirs)) = (self.engine.threads(), rival);
        let larger_is_better = true;
        Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better }
            .print(self.options.run.json);
    }

    /// Prints a figure of which less is better.
    fn cost(&self, bench: &str, size: usize, ours: f64, rival: (&str, f64), unit: &str) {
        let (threads, (rival, theirs)) = (self.engine.threads(), rival);
        let larger_is_better = false;
        Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better }
            .print(self.options.run.json);
    }
}

/// Constraints for each second of processor time that a chain of squarings takes.
fn chain_rate(options: &Options, engine: &LocalEngine) -> Result<f64, Error> {
    let chain = Chain { links: 8, steps: options.rows - 64 };
    let keys = setup(&chain, engine, &SetupOptions::new("chain"))?;
    let input = hekaton_circuit::Fr::from(3u64);
    let all: Result<Vec<_>, Error> = (0..options.run.repetitions)
        .map(|_| {
            let (spent, proof) =
                times(|| prove(&chain, &input, &keys, engine, &ProveOptions::new()));
            proof?;
            Ok(spent)
        })
        .collect();
    let constraints = chain.links * keys.types[0].constraints();
    Ok(constraints as f64 / medians(&all?).cpu.as_secs_f64())
}
