//! Setup ceremonies against those of gnark and snarkjs, where their programs are at hand, and against our own kernels.
//!
//! `cargo run --release -p benches --bin ceremony -- --json`
//!
//! Everything runs on one thread. A contribution is compared by the rate of points, since each program publishes its own number of them;
//! checks and the start of a circuit's phase by the rate of rows.
#![allow(clippy::print_stderr)]

use benches::{Line, Run, Times, alternate_times, peak_of_process, times};
use clap::Parser;
use hekaton_arith::{Fr, G1Point, Group};
use hekaton_ceremony::{
    Chain, Contributor, Coordinator, FamilyPlan, Kind, Response, Seed, Transcript, contribute,
    new_family, new_powers, points_of_chains, verify_powers,
};
use hekaton_circuit::{Masking, PreparedCircuit};
use hekaton_core::LocalEngine;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Benchmarks of setup ceremonies.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// The number of rows, a power of two.
    #[arg(long, default_value_t = 1 << 20)]
    rows: usize,
    /// Halve the number of rows this often, for a run of minutes.
    #[arg(long, default_value_t = 0)]
    smaller: u32,
    /// The number of contributions to powers whose check is compared with that of one.
    #[arg(long, default_value_t = 10)]
    contributions: usize,
    /// The program of `benches/rivals/mpcsetup`.
    #[arg(long)]
    gnark: Option<PathBuf>,
    /// snarkjs's program, `build/cli.cjs`, which node runs, for 1/4 of the rows.
    #[arg(long)]
    snarkjs: Option<PathBuf>,
}

struct Bench {
    directory: tempfile::TempDir,
    rows: usize,
    run: Run,
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn line<'a>(&self, bench: &'a str, rival: &'a str, unit: &'a str) -> Line<'a> {
        let (size, nan) = (self.rows, f64::NAN);
        Line {
            bench,
            size,
            threads: 1,
            ours: nan,
            rival,
            theirs: nan,
            unit,
            larger_is_better: true,
        }
    }

    fn print(&self, line: Line<'_>, ours: f64, theirs: f64) {
        Line { ours, theirs, ..line }.print(self.run.json);
    }

    /// Contributes to some chains, as one of many.
    fn contribute(&self, from: &Transcript, chains: &[Chain], out: &Path) -> Result<(), Error> {
        let (name, program, kind) = ("bench", "benches", Kind::Contribution);
        let contributor = Contributor { name, program, kind, chains };
        Ok(contribute(from, &contributor, Seed::draw("")?, out, &mut |_| {}).map(drop)?)
    }

    /// Contributes to all chains of a directory, and adds the contribution.
    fn step(&self, directory: &Path) -> Result<(), Error> {
        let out = self.path("contribution");
        let mut coordinator = Coordinator::open(directory)?;
        let chains = coordinator.transcript.genesis.chains();
        self.contribute(&coordinator.transcript, &chains, &out)?;
        let response = Response::open(&out, &coordinator.transcript.genesis)?;
        Ok(coordinator.add(&response, &mut |_| {})?)
    }
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    let rows = options.rows >> options.smaller;
    if !rows.is_power_of_two() || rows < 64 {
        return Err("--rows must be a power of two, of which at least 64 are left".into());
    }
    let bench = Bench { directory: tempfile::tempdir()?, rows, run: options.run.clone() };
    let one = LocalEngine::new(NonZeroUsize::new(1))?;
    one.install(|| all(&bench, &options))
}

fn all(bench: &Bench, options: &Options) -> Result<(), Error> {
    let gnark = options.gnark.as_deref().map(|program| gnark(program, bench.rows)).transpose()?;
    let theirs = |name: &str| match &gnark {
        Some(found) => {
            found[name].as_f64().ok_or_else(|| format!("gnark printed no '{name}'").into())
        }
        None => Ok::<f64, Error>(f64::NAN),
    };
    if gnark.is_none() {
        eprintln!("skipped: gnark, without --gnark");
    }
    // tau: 4 N in G1 and N in G2, on both sides.
    let powers = bench.path("powers");
    let transcript = new_powers(&powers, bench.rows, 2, "", &|_| {})?;
    bench.step(&powers)?;
    let transcript_now = Transcript::open(&powers)?;
    let out = bench.path("measured");
    let points = points_of_chains(&transcript.genesis, &[Chain::Tau]) as f64;
    let (contributed, result) = times(|| bench.contribute(&transcript_now, &[Chain::Tau], &out));
    result?;
    let per_point = |times: Times| points / times.wall.as_secs_f64();
    let line = bench.line("contribution to powers", "gnark 0.16 mpcsetup", "points a core-second");
    bench.print(line, per_point(contributed), points / theirs("contribute")?);
    let (added, result) = times(|| -> Result<(), Error> {
        let mut coordinator = Coordinator::open(&powers)?;
        let response = Response::open(&out, &coordinator.transcript.genesis)?;
        Ok(coordinator.add(&response, &mut |_| {})?)
    });
    result?;
    let rate = |times: Times| bench.rows as f64 / times.wall.as_secs_f64();
    let line = bench.line("check of a contribution", "gnark 0.16 mpcsetup", "rows a core-second");
    bench.print(line, rate(added), bench.rows as f64 / theirs("add")?);
    let line = bench.line("peak memory of both", "limit", "MB");
    let peak = peak_of_process() as f64 / 1e6;
    bench.print(Line { larger_is_better: false, ..line }, peak, 200.0);
    snarkjs(bench, options, per_point(contributed))?;
    family(bench, &powers, &theirs)?;
    many(bench, options)
}

/// The start of a family, and contributions to it.
fn family(
    bench: &Bench,
    powers: &Path,
    theirs: &dyn Fn(&str) -> Result<f64, Error>,
) -> Result<(), Error> {
    let checked = verify_powers(&Transcript::open(powers)?, &mut |_| {})?;
    // A row a step, and some more.
    let circuit = hekaton_standard::Chain { links: 1, steps: bench.rows - 16 };
    let prepared = PreparedCircuit::new(&circuit)?;
    let masking = Masking::new(false);
    let kinds = prepared.layout().type_ids();
    let types: Vec<_> = kinds.map(|kind| prepared.r1cs(kind, masking)).collect::<Result<_, _>>()?;
    let plan = FamilyPlan {
        circuit: "chain".into(),
        parameters: "{}".into(),
        zero_knowledge: false,
        instances: 2,
        buses: Vec::new(),
        segment_points: None,
        beacon: String::new(),
    };
    let path = bench.path("family");
    let (begun, family) =
        times(|| new_family(&path, plan, &checked, None, &types, &|_| {}, &mut |_| {}));
    let family = family?;
    let rows: usize = types.iter().map(hekaton_circuit::R1cs::constraints).sum();
    eprintln!("{} types with {rows} rows", types.len());
    let rate = |seconds: f64| rows as f64 / seconds;
    let line =
        bench.line("start of a circuit's phase", "gnark 0.16 mpcsetup", "rows a core-second");
    bench.print(line, rate(begun.wall.as_secs_f64()), bench.rows as f64 / theirs("new")?);

    let out = bench.path("of family");
    let chains = family.genesis.chains();
    let count = points_of_chains(&family.genesis, &chains);
    let base = G1Point::generator();
    let scalars = hekaton_arith::powers(Fr::from(3u64), count);
    let points = G1Point::mul_each(&vec![base; count], &scalars);
    let scalar = scalars[count - 1];
    let mut failed = Ok(());
    let (contributed, multiplied) = alternate_times(
        bench.run.repetitions,
        || {
            let _ = std::fs::remove_file(&out);
            if let Err(error) = bench.contribute(&family, &chains, &out) {
                failed = Err(error);
            }
        },
        || drop(G1Point::mul_all(&points, &scalar)),
    );
    failed?;
    let per_second = |times: Times| count as f64 / times.wall.as_secs_f64();
    let line =
        bench.line("contribution to a circuit", "own products, in memory", "points a core-second");
    bench.print(line, per_second(contributed), per_second(multiplied));
    let line =
        bench.line("contribution to a circuit", "gnark 0.16 mpcsetup", "points a core-second");
    bench.print(
        line,
        per_second(contributed),
        theirs("circuit_points")? / theirs("circuit_contribute")?,
    );
    Ok(())
}

/// The whole check of one contribution, and of many.
fn many(bench: &Bench, options: &Options) -> Result<(), Error> {
    let path = bench.path("many");
    new_powers(&path, bench.rows, 2, "", &|_| {})?;
    bench.step(&path)?;
    let check = || -> Result<Times, Error> {
        let transcript = Transcript::open(&path)?;
        let (times, result) = times(|| verify_powers(&transcript, &mut |_| {}).map(drop));
        result?;
        Ok(times)
    };
    let first = check()?;
    for _ in 1..options.contributions {
        bench.step(&path)?;
    }
    let last = check()?;
    let name = format!("check of {} contributions", options.contributions);
    let line = bench.line(&name, "check of one", "s");
    let line = Line { larger_is_better: false, ..line };
    bench.print(line, last.wall.as_secs_f64(), first.wall.as_secs_f64());
    Ok(())
}

/// The seconds that gnark takes.
fn gnark(program: &Path, rows: usize) -> Result<serde_json::Value, Error> {
    let output = Command::new(program)
        .args(["--rows", &rows.to_string()])
        .stderr(Stdio::inherit())
        .output()?;
    if !output.status.success() {
        return Err(format!("{} failed: {}", program.display(), output.status).into());
    }
    // What its logger prints precedes the result.
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().rfind(|line| line.starts_with('{')).ok_or("gnark printed no result")?;
    Ok(serde_json::from_str(last)?)
}

/// The rate of snarkjs on one core, for 1/4 of the rows: it has the same points.
fn snarkjs(bench: &Bench, options: &Options, ours: f64) -> Result<(), Error> {
    let Some(program) = &options.snarkjs else {
        eprintln!("skipped: snarkjs, without --snarkjs");
        return Ok(());
    };
    let rows = (bench.rows / 4).max(2);
    let run = |arguments: &[&str]| -> Result<Times, Error> {
        let mut command = Command::new("taskset");
        command.args(["-c", "0", "node"]).arg(program).arg("powersoftau").args(arguments);
        command.current_dir(bench.directory.path()).stdout(Stdio::null());
        let (times, status) = times(|| command.status());
        match status?.success() {
            true => Ok(times),
            false => Err(format!("snarkjs powersoftau {} failed", arguments[0]).into()),
        }
    };
    run(&["new", "bls12-381", &rows.ilog2().to_string(), "0.ptau"])?;
    let contributed = run(&["contribute", "0.ptau", "1.ptau", "--name=bench", "-e=bench"])?;
    // 2N - 1 of tau, N each of alpha and beta in G1, N of tau in G2.
    let points = (5 * rows - 1) as f64;
    let line = bench.line("contribution to powers", "snarkjs 0.7", "points a core-second");
    bench.print(line, ours, points / contributed.wall.as_secs_f64());
    Ok(())
}
