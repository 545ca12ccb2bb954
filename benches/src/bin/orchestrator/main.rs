//! Benchmarks of the orchestrator: what it adds to a prover, against a dispatcher as push0's text describes it.
//!
//! Provers sleep. Ours are asked over HTTP, from submission to the answer that the job is done; the rival's clients publish a task and
//! wait for its result. Records are in SQLite, or in a NATS server that syncs every write, which is also the rival's.

mod nats;
mod ours;
mod push0;
mod text;

use benches::{Line, Run, peak_of_process, times};
use clap::Parser;
use std::path::PathBuf;
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Benchmarks of the orchestrator.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// Tasks per rate.
    #[arg(long, default_value_t = 300)]
    tasks: usize,
    /// Tasks per second at which overhead is measured.
    #[arg(long, value_delimiter = ',', default_value = "10,50,100")]
    rates: Vec<u32>,
    /// The number of tasks that run at the same time where overhead is measured.
    #[arg(long, default_value_t = 10)]
    slots: usize,
    /// The times that provers sleep where scaling is measured, in milliseconds.
    #[arg(long, value_delimiter = ',', default_value = "0,100,1000")]
    sleeps: Vec<u64>,
    /// The number of provers that sleep at the same time.
    #[arg(long, default_value_t = 32)]
    sleepers: usize,
    /// The program hekaton-orchestrator, for the text's other experiments: kills, order, a join, a burst, memory. Nothing else is
    /// measured then.
    #[arg(long)]
    program: Option<PathBuf>,
    /// The program nats-server. Without it, only SQLite is measured, without a rival.
    #[arg(long, env = "NATS_SERVER")]
    nats_server: Option<PathBuf>,
}

/// Something that runs tasks.
trait System: Sync {
    /// Has a task done. Returns when its result is known.
    fn task(&self, number: usize) -> Result<(), Error>;
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    if let Some(program) = &options.program {
        return text::run(&options, program);
    }
    let server = options.nats_server.as_deref().map(nats::Server::start).transpose()?;
    bare(&options)?;
    overhead(&options, server.as_ref())?;
    scaling(&options, server.as_ref())?;
    let memory = peak_of_process() as f64 / 1e6;
    print(
        &options,
        "memory of this process, clients and rival included",
        0,
        memory,
        ("", f64::NAN),
        "MB",
        false,
    );
    Ok(())
}

fn print(
    options: &Options,
    bench: &str,
    size: usize,
    ours: f64,
    (rival, theirs): (&str, f64),
    unit: &str,
    larger_is_better: bool,
) {
    let line =
        Line { bench, size, threads: options.slots, ours, rival, theirs, unit, larger_is_better };
    line.print(options.run.json);
}

/// A prover without anything around it.
fn bare(options: &Options) -> Result<(), Error> {
    let prover = ours::Sleeper(Duration::ZERO);
    let calls = (0..1_000).map(|_| times(|| prover.call()).0.wall).collect();
    let micros = benches::median(calls).as_secs_f64() * 1e6;
    print(options, "bare prover", 1, micros, ("", f64::NAN), "us", false);
    Ok(())
}

/// Latencies of tasks that come at a steady rate, in milliseconds, sorted.
fn latencies(system: &dyn System, tasks: usize, rate: u32) -> Result<Vec<f64>, Error> {
    let start = Instant::now();
    let joined: Result<Vec<f64>, Error> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..tasks)
            .map(|number| {
                scope.spawn(move || {
                    let at = Duration::from_secs_f64(number as f64 / f64::from(rate));
                    std::thread::sleep(at.saturating_sub(start.elapsed()));
                    let sent = Instant::now();
                    system.task(number)?;
                    Ok(sent.elapsed().as_secs_f64() * 1e3)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().map_err(|_| "a client panicked")?).collect()
    });
    let mut sorted = joined?;
    sorted.sort_by(f64::total_cmp);
    Ok(sorted)
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = (1..sorted.len()).find(|&at| at as f64 >= part * sorted.len() as f64);
    sorted[at.unwrap_or(sorted.len()) - 1]
}

fn overhead(options: &Options, server: Option<&nats::Server>) -> Result<(), Error> {
    for &rate in &options.rates {
        let theirs = match server {
            Some(server) => {
                let rival = push0::Push0::start(server, options.slots, Duration::ZERO)?;
                Some(latencies(&rival, options.tasks, rate)?)
            }
            None => None,
        };
        for store in ours::Place::all(server) {
            let system = ours::Orchestrator::start(&store, options.slots, Duration::ZERO)?;
            let ours = latencies(&system, options.tasks, rate)?;
            for (name, part) in [("P50", 0.5), ("P99", 0.99)] {
                let bench = format!("overhead, {}, {rate} a second, {name}", store.name());
                let figure = theirs.as_ref().map_or(f64::NAN, |theirs| quantile(theirs, part));
                let rival = ("push0 as published, NATS synced", figure);
                print(options, &bench, options.tasks, quantile(&ours, part), rival, "ms", false);
            }
        }
    }
    Ok(())
}

/// The time of ten tasks for each of some sleepers.
fn ten_each(system: &dyn System, sleepers: usize) -> Result<f64, Error> {
    let (spent, done) = times(|| {
        std::thread::scope(|scope| {
            // As many clients as tasks may run, and as many again that wait in the queue.
            let threads: Vec<_> = (0..2 * sleepers)
                .map(|client| {
                    scope.spawn(move || (0..5).try_for_each(|at| system.task(5 * client + at)))
                })
                .collect();
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| "a client panicked")?)
        })
    });
    done?;
    Ok(spent.wall.as_secs_f64())
}

fn scaling(options: &Options, server: Option<&nats::Server>) -> Result<(), Error> {
    let sleepers = options.sleepers;
    for &millis in &options.sleeps {
        let sleep = Duration::from_millis(millis);
        let (mut theirs, mut their_rate) = (f64::NAN, f64::NAN);
        if let Some(server) = server {
            let one = ten_each(&push0::Push0::start(server, 1, sleep)?, 1)?;
            let all = ten_each(&push0::Push0::start(server, sleepers, sleep)?, sleepers)?;
            (theirs, their_rate) = (one / all, 10.0 * sleepers as f64 / all);
        }
        for store in ours::Place::all(server) {
            let one = ten_each(&ours::Orchestrator::start(&store, 1, sleep)?, 1)?;
            let all = ten_each(&ours::Orchestrator::start(&store, sleepers, sleep)?, sleepers)?;
            let bench = format!("efficiency of {sleepers}, {}, {millis} ms", store.name());
            let rival = ("push0 as published, NATS synced", 100.0 * theirs);
            print(options, &bench, sleepers, 100.0 * one / all, rival, "%", true);
            let bench = format!("tasks of {sleepers}, {}, {millis} ms", store.name());
            let rival = ("push0 as published, NATS synced", their_rate);
            print(options, &bench, sleepers, 10.0 * sleepers as f64 / all, rival, "a second", true);
        }
    }
    Ok(())
}
