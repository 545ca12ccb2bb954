//! Many ranks under mpirun on this machine: efficiency, the cost of distribution, messages,
//! schedules, orchestration.
//!
//! `cargo build --release -p hekaton-cli --features mpi && cargo run --release -p benches --bin distribution -- --json`
//!
//! Worker ranks have one prover each and are pinned to a core; rank 0 only coordinates and shares a
//! core with a worker. Pairs of measurements alternate, and medians are printed. Where the paper
//! has a figure, it is the rival.
#![allow(clippy::print_stdout, clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of benchmarks")]

use benches::{Line, Run};
use clap::Parser;
use hekaton_circuit::PreparedCircuit;
use hekaton_core::distributed::Executes;
use hekaton_core::distributed::costs::{self, RoundCost};
use hekaton_core::events::Recorder;
use hekaton_core::{Fr, LocalEngine, ProveOptions, SetupOptions, setup};
use hekaton_standard::Chain;
use hekaton_storage::{RunDirectoryOptions, RunIdentity};
use serde_json::Value;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

type Error = Box<dyn std::error::Error>;

/// Benchmarks of distribution.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// Run only this part: efficiency, schedules, aggregation, orchestration or coordinator, which
    /// needs neither mpirun nor the program.
    #[arg(long)]
    only: Option<String>,
    /// The number of subcircuits of the part `coordinator`.
    #[arg(long, default_value_t = 1 << 14)]
    links: usize,
    /// The program `hekaton`, built with --features mpi.
    #[arg(long, default_value = "target/release/hekaton")]
    program: PathBuf,
}

struct Bench {
    options: Options,
    dir: tempfile::TempDir,
}

fn main() -> Result<(), Error> {
    let mut options = Options::parse();
    if options.only.as_deref() == Some("coordinator") {
        return coordinator(&options);
    }
    options.program = options.program.canonicalize()?;
    let bench = Bench { options, dir: tempfile::tempdir()? };
    let wanted = |part: &str| bench.options.only.as_deref().is_none_or(|only| only == part);
    if wanted("efficiency") || wanted("schedules") {
        let merkle = bench.setup("merkle", &["leaf-bytes=54"], &vec![7u8; 32 * 54])?;
        if wanted("efficiency") {
            bench.efficiency(&merkle)?;
        }
        if wanted("schedules") {
            bench.schedules(&merkle)?;
        }
    }
    if wanted("aggregation") {
        bench.aggregation(&bench.setup("chain", &["links=1024", "steps=8"], b"3")?)?;
    }
    if wanted("orchestration") {
        bench.orchestration(&bench.setup("chain", &["links=3000", "steps=1"], b"3")?)?;
    }
    Ok(())
}

/// The coordinator alone: both rounds against 1, 128 and 2,048 ranks in memory that answer at once
/// with valid points, with the log and the events of a run directory.
fn coordinator(options: &Options) -> Result<(), Error> {
    let circuit = Chain { links: options.links, steps: 1 };
    let pool = Arc::new(LocalEngine::new(None)?);
    let keys = setup(&circuit, &pool, &SetupOptions::new("bench").insecure_seed(1))?;
    let input = Fr::from(3u64);
    let prepared = PreparedCircuit::with_input(&circuit, &input)?;
    let run = |ranks: usize, executes: Executes| -> Result<[RoundCost; 2], Error> {
        let dir = tempfile::tempdir()?;
        let identity = RunIdentity::new(&keys.verifying, [0; 32]);
        let directory = RunDirectoryOptions::new().insecure_seed(1);
        let journal = directory.resume(&dir.path().join("run"), &identity)?;
        let events = Mutex::new(std::io::BufWriter::new(tempfile::tempfile()?));
        let recorder = Recorder::new("bench", |record| {
            let mut out = events.lock().unwrap_or_else(PoisonError::into_inner);
            if serde_json::to_writer(&mut *out, record).is_ok() {
                let _ = out.write_all(b"\n");
            }
        });
        let options = ProveOptions::new().journal(&journal).recorder(&recorder);
        Ok(costs::rounds(&prepared, &keys, &pool, ranks, 32, executes, &options)?)
    };
    let designs = [(Executes::Root, "rank 0 executes"), (Executes::Ranks, "ranks execute")];
    let cases = [1, 128, 2048].into_iter().flat_map(|ranks| designs.map(|design| (ranks, design)));
    for (ranks, (executes, design)) in cases {
        let runs = (0..options.run.repetitions).map(|_| run(ranks, executes));
        let costs = runs.collect::<Result<Vec<_>, _>>()?;
        let print = |bench: &str, ours: f64, theirs: f64, unit: &str, larger_is_better: bool| {
            let rival = if theirs.is_finite() { "asked" } else { "" };
            let (size, threads) = (options.links, pool.threads());
            let line = Line { bench, size, threads, ours, rival, theirs, unit, larger_is_better };
            line.print(options.run.json);
        };
        for (index, round) in ["commit", "prove"].into_iter().enumerate() {
            let median = |of: fn(&RoundCost) -> f64| {
                let mut list: Vec<f64> = costs.iter().map(|cost| of(&cost[index])).collect();
                list.sort_by(f64::total_cmp);
                list[list.len() / 2]
            };
            let (cpu, wall) = (median(|c| c.cpu_seconds), median(|c| c.seconds));
            let jobs = options.links as f64;
            let name = format!("coordinator, {ranks} ranks, {design}: {round} round");
            print(&name, jobs / cpu, 5000.0, "jobs a CPU-second", true);
            print(&name, jobs / wall, f64::NAN, "jobs a second", true);
            let serial = median(|c| c.serial_seconds);
            print(&name, jobs / serial, 30000.0, "jobs a second of the one thread", true);
            print(&name, 1e6 * cpu / jobs, f64::NAN, "us of CPU a job", false);
        }
        // In a run of its own: sampling takes CPU time.
        let (peak, result) =
            benches::peak_memory(benches::private_memory(), || run(ranks, executes));
        result?;
        let name = format!("coordinator, {ranks} ranks, {design}: memory");
        print(&name, peak as f64 / options.links as f64, f64::NAN, "bytes a subcircuit", false);
    }
    Ok(())
}

/// An input with its keys.
struct Case {
    input: PathBuf,
    keys: PathBuf,
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// The sum of a field over all ranks' accounts of a phase.
fn accounts(report: &Value, phase: &str, field: &str) -> f64 {
    let all = report["rank_accounts"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter(|a| a["phase"] == phase).map(|a| number(&a[field])).sum()
}

fn phase<'r>(report: &'r Value, name: &str, field: &str) -> &'r Value {
    let all = report["phases"].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().find(|p| p["phase"] == name).map_or(&Value::Null, |p| &p[field])
}

fn seconds(report: &Value, name: &str) -> f64 {
    number(phase(report, name, "seconds"))
}

impl Bench {
    fn setup(&self, circuit: &str, parameters: &[&str], input: &[u8]) -> Result<Case, Error> {
        let name = format!("{circuit}-{}", parameters.join("-"));
        let case = Case {
            input: self.dir.path().join(&name),
            keys: self.dir.path().join(format!("{name}.keys")),
        };
        std::fs::write(&case.input, input)?;
        let mut command = Command::new(&self.options.program);
        command.args(["setup", circuit, "--for"]).arg(&case.input).arg("--keys").arg(&case.keys);
        for parameter in parameters {
            command.args(["-p", parameter]);
        }
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status()?;
        if status.success() { Ok(case) } else { Err(format!("setup {name}: {status}").into()) }
    }

    /// Proves with this number of worker ranks and returns the report.
    fn run(&self, case: &Case, workers: usize, more: &[&str]) -> Result<Value, Error> {
        let mut command = Command::new("mpirun");
        command
            .args([
                "--oversubscribe",
                "--bind-to",
                "core:overload-allowed",
                "--map-by",
                "core",
                "-np",
            ])
            .arg((workers + 1).to_string())
            .arg(&self.options.program)
            .arg("prove")
            .arg(&case.input)
            .arg("--keys")
            .arg(&case.keys)
            .arg("--proof")
            .arg(self.dir.path().join("proof"))
            .args(["--mpi", "--root-proves", "no", "--provers-per-rank", "1", "--json"])
            .args(more)
            .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
            .env("OMPI_MCA_mpi_yield_when_idle", "1")
            .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
            .stderr(Stdio::null());
        let output =
            command.output().map_err(|e| format!("mpirun: {e} (apt-get install openmpi-bin)"))?;
        if !output.status.success() {
            return Err(format!(
                "mpirun with {workers} workers: {}; see {command:?}",
                output.status
            )
            .into());
        }
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    #[allow(clippy::too_many_arguments)] // the columns of a line
    fn print(
        &self,
        bench: &str,
        size: f64,
        ours: f64,
        rival: &str,
        theirs: f64,
        unit: &str,
        larger_is_better: bool,
    ) {
        Line {
            bench,
            size: size as usize,
            threads: 1,
            ours,
            rival,
            theirs,
            unit,
            larger_is_better,
        }
        .print(self.options.run.json);
    }

    /// One and two workers on the same 64 subcircuits: the gain, the time outside arithmetic, and
    /// the traffic.
    fn efficiency(&self, case: &Case) -> Result<(), Error> {
        const PHASES: [&str; 3] = ["commit", "prove", "aggregate"];
        let (mut one, mut two, mut overhead, mut last) =
            (Vec::new(), Vec::new(), Vec::new(), Value::Null);
        for _ in 0..self.options.run.repetitions {
            for workers in [1, 2] {
                last = self.run(case, workers, &[])?;
                let rounds: f64 = PHASES.iter().map(|p| seconds(&last, p)).sum();
                if workers == 2 {
                    two.push(rounds);
                    continue;
                }
                one.push(rounds);
                let busy: f64 = PHASES.iter().map(|p| accounts(&last, p, "busy_seconds")).sum();
                overhead.push(100.0 * (1.0 - busy / number(&last["seconds"])));
            }
        }
        let n = number(&last["subcircuits"]);
        let gain = middle(one) / middle(two);
        self.print("two worker ranks over one", n, gain, "asked", 1.9, "times the rate", true);
        self.print(
            "no arithmetic, one worker rank",
            n,
            middle(overhead),
            "asked at most",
            3.0,
            "% of the run",
            false,
        );
        self.traffic(n, &last);
        let memory = last["rank_accounts"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|a| number(&a["peak_memory"]));
        let (memory, limit) = (memory.fold(0.0, f64::max) / 1e6, 3500.0);
        self.print(
            "peak memory of a rank",
            n,
            memory,
            "paper, 1.3 M constraints",
            limit,
            "MB",
            false,
        );
        Ok(())
    }

    /// The bytes of the most expensive subcircuit of each round.
    fn traffic(&self, n: f64, report: &Value) {
        let most = |round| number(phase(report, round, "most_bytes_a_subcircuit"));
        self.print(
            "commit, most a subcircuit",
            n,
            most("commit"),
            "paper",
            923_136.0,
            "bytes both ways",
            false,
        );
        self.print(
            "prove, most a subcircuit",
            n,
            most("prove"),
            "paper",
            1265.0,
            "bytes both ways",
            false,
        );
    }

    /// Static and dynamic scheduling, with uneven subcircuits, and with another program on one
    /// worker's core.
    fn schedules(&self, case: &Case) -> Result<(), Error> {
        for (bench, slow) in [("uneven subcircuits", false), ("one slow rank", true)] {
            let mut times = [Vec::new(), Vec::new()];
            for _ in 0..self.options.run.repetitions {
                for (schedule, times) in ["dynamic", "static"].into_iter().zip(&mut times) {
                    let _busy = if slow { Some(Busy::on_core(1)?) } else { None };
                    let report = self.run(case, 2, &["--schedule", schedule])?;
                    times.push(seconds(&report, "commit") + seconds(&report, "prove"));
                }
            }
            let [ours, theirs] = times.map(middle);
            self.print(
                bench,
                64.0,
                ours,
                "static schedule",
                theirs,
                "seconds of both rounds",
                false,
            );
        }
        Ok(())
    }

    /// The aggregation of 1,024 proofs, and the size of all messages.
    fn aggregation(&self, case: &Case) -> Result<(), Error> {
        let (mut one, mut two, mut last) = (Vec::new(), Vec::new(), Value::Null);
        for _ in 0..self.options.run.repetitions {
            one.push(seconds(&self.run(case, 1, &[])?, "aggregate"));
            two.push(seconds(&self.run(case, 2, &[])?, "aggregate"));
            last = self.run(case, 2, &["--schedule", "static"])?;
        }
        let n = number(&last["subcircuits"]);
        let gain = middle(one) / middle(two);
        self.print(
            "aggregation, two ranks over one",
            n,
            gain,
            "asked",
            1.8,
            "times the rate",
            true,
        );
        // the commit round's bytes include phase A of the aggregation, 96 bytes per subcircuit;
        // those of the prove round include nothing else
        let own = |phase: &str, field: &str| accounts(&last, phase, field);
        let request = (own("commit", "sent_bytes") - 96.0 * n) / n / 4.0;
        self.print(
            "commit request",
            n,
            request,
            "asked at most",
            40.0,
            "bytes a shared wire",
            false,
        );
        let request = own("prove", "sent_bytes") / 2.0;
        self.print("prove request", n, request, "asked at most", 200.0, "bytes a rank", false);
        let responses = (own("commit", "received_bytes") + own("prove", "received_bytes")) / n;
        self.print(
            "responses, both rounds",
            n,
            responses,
            "asked at most",
            400.0,
            "bytes a subcircuit",
            false,
        );
        Ok(())
    }

    /// Nearly empty subcircuits: how long a rank waits for jobs.
    fn orchestration(&self, case: &Case) -> Result<(), Error> {
        let (mut gaps, mut rates, mut n) = (Vec::new(), Vec::new(), 0.0);
        for _ in 0..self.options.run.repetitions {
            let report = self.run(case, 1, &[])?;
            n = accounts(&report, "commit", "subcircuits");
            gaps.push(accounts(&report, "commit", "idle_seconds") / n * 1e3);
            rates.push(n / seconds(&report, "commit"));
        }
        self.print(
            "mean wait for the next job",
            n,
            middle(gaps),
            "asked at most",
            1.0,
            "ms",
            false,
        );
        // That of the rank and its prover: `--only coordinator` measures the coordinator.
        self.print(
            "commitments of one rank with one prover",
            n,
            middle(rates),
            "",
            f64::NAN,
            "a second",
            true,
        );
        Ok(())
    }
}

/// The median of some figures.
fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Another program that keeps a core busy, until dropped.
struct Busy(Child);

impl Busy {
    fn on_core(core: usize) -> Result<Self, Error> {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string(), "sh", "-c", "while :; do :; done"]);
        Ok(Self(command.stdout(Stdio::null()).spawn()?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
