//! The shares of the protocol and of the kernels in the difference to the paper: the amounts
//! of work of the paper's protocol with the kernels of this project, against this project's worker.
//! It is not a proof, and every line states that.
//!
//! `cargo run --release -p benches --bin paper_workload -- --json`
#![allow(clippy::print_stdout)]

use benches::paper_workload::aggregation::{Cost, Pairs};
use benches::paper_workload::coordinator::{between_rounds, commit_request, prove_request, trace};
use benches::paper_workload::ours::{OurSizes, slot_values, with_worker};
use benches::paper_workload::r1cs::{ProveRequest, Shape, Subtrace, System, Version};
use benches::paper_workload::worker::{Bases, PaperWorker};
use benches::paper_workload::{Error, NOTE};
use benches::{Line, Run, alternate_times, medians, times};
use clap::Parser;
use hekaton_core::protocol::messages::{Message, ProveRound};
use std::time::Duration;

/// The workload of the paper's protocol with our kernels; proves nothing.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// The rows of the author's gadgets in a subcircuit.
    #[arg(long, default_value_t = 30_000)]
    constraints: usize,
    /// Occurrences of shared wires in a subcircuit, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1000])]
    wires: Vec<usize>,
    /// The number of subcircuits, a power of two from 2 up.
    #[arg(long, default_value_t = 1024)]
    subcircuits: usize,
}

/// Both versions of the paper's memory check, and their names in output.
const VERSIONS: [(Version, &str); 2] =
    [(Version::Published, "as published"), (Version::Sound, "a sound version")];

fn main() -> Result<(), Error> {
    let options = Options::parse();
    if !options.subcircuits.is_power_of_two() || options.subcircuits < 2 {
        return Err("--subcircuits must be a power of two, at least 2".into());
    }
    for wires in &options.wires {
        with_worker(options.constraints, *wires, |sizes, run| {
            workers(&options, *wires, sizes, run)
        })?;
        coordinator(&options, *wires)?;
    }
    aggregation(&options);
    Ok(())
}

impl Options {
    fn levels(&self) -> usize {
        self.subcircuits.ilog2() as usize
    }

    fn print(&self, bench: &str, size: usize, unit: &str, ours: f64, theirs: f64) {
        let line = Line {
            bench,
            size,
            threads: 1,
            ours,
            rival: "workload of the paper's protocol",
            theirs,
            unit,
            larger_is_better: false,
        };
        println!("{}", line.text(self.run.json, Some(NOTE)));
    }
}

/// One bar: a version of the paper's memory check, with a number of author rows.
struct Bar {
    name: String,
    worker: PaperWorker,
}

/// The bars of one number of wires: the same subcircuit, and the largest that fits our domain.
fn bars(
    options: &Options,
    wires: usize,
    domain: usize,
    trace: &Subtrace,
    request: &ProveRequest,
) -> Result<Vec<Bar>, Error> {
    let mut bars = Vec::new();
    for (version, name) in VERSIONS {
        let author_rows = options.constraints;
        let levels = options.levels();
        let shape = Shape { author_rows, occurrences: wires, levels, version };
        let same = PaperWorker::new(System::new(shape, trace, request)?)?;
        let overhead = same.system.rows - author_rows;
        bars.push(Bar { name: format!("worker, {name}, same subcircuit"), worker: same });
        // Without room for a single author row, this bar does not exist.
        if let Some(rows) = domain.checked_sub(overhead).filter(|rows| *rows > 0) {
            let shape = Shape { author_rows: rows.min(author_rows), ..shape };
            let worker = PaperWorker::new(System::new(shape, trace, request)?)?;
            bars.push(Bar { name: format!("worker, {name}, same domain"), worker });
        }
    }
    Ok(bars)
}

/// Prints sizes and times of the worker.
fn workers(
    options: &Options,
    wires: usize,
    sizes: OurSizes,
    ours: &dyn Fn() -> Result<(), Error>,
) -> Result<(), Error> {
    let trace = Subtrace::new(&slot_values(wires));
    let request = ProveRequest::example(options.levels());
    let bars = bars(options, wires, sizes.domain, &trace, &request)?;
    let bases = Bases::new(bars.iter().map(|bar| &bar.worker));
    for Bar { name, worker } in &bars {
        let system = &worker.system;
        let print = |what: &str, unit, ours, theirs| {
            let bench = format!("{name}, {wires} wires{what}");
            options.print(&bench, options.constraints, unit, ours, theirs);
        };
        let count = |what, unit, ours: usize, theirs: usize| {
            print(what, unit, ours as f64, theirs as f64);
        };
        let author_rows = system.shape.author_rows;
        count(": author", "rows", options.constraints, author_rows);
        let overhead = system.rows - author_rows;
        count(": memory check", "rows", sizes.rows - options.constraints, overhead);
        count(": committed", "variables", sizes.committed, system.committed.len());
        count(": domain", "elements", sizes.domain, worker.domain.size());
        let theirs = || {
            let points = worker.run(&bases, &trace, &request);
            std::hint::black_box(points.unwrap_or_else(|e| panic!("{e}")));
        };
        let ours = || ours().unwrap_or_else(|e| panic!("{e}"));
        let (a, b) = alternate_times(options.run.repetitions, ours, theirs);
        let each = |t: Duration, rows: usize| t.as_secs_f64() * 1e6 / rows as f64;
        let figures = |a, b| (each(a, options.constraints), each(b, author_rows));
        let (a_cpu, b_cpu) = figures(a.cpu, b.cpu);
        print("", "CPU us an author row", a_cpu, b_cpu);
        let (a_wall, b_wall) = figures(a.wall, b.wall);
        print("", "us an author row", a_wall, b_wall);
    }
    let print = |what: &str, ours: usize, theirs: usize| {
        let bench = format!("{what}, {wires} wires");
        options.print(&bench, options.subcircuits, "bytes", ours as f64, theirs as f64);
    };
    let accesses = benches::paper_workload::coordinator::trace(1, wires);
    print(
        "commit request, private input not counted",
        sizes.job,
        commit_request(&accesses, &accesses).len(),
    );
    print(
        "prove request (ours: one a rank)",
        ProveRound::LEN,
        prove_request(&request, &request.before).len(),
    );
    Ok(())
}

/// Prints the time of the coordinator between the rounds. Ours does nothing there.
fn coordinator(options: &Options, wires: usize) -> Result<(), Error> {
    let accesses = trace(options.subcircuits, wires);
    let mut all = Vec::new();
    for _ in 0..options.run.repetitions {
        let (t, prepared) = times(|| between_rounds(&accesses, wires));
        std::hint::black_box(prepared?);
        all.push(t);
    }
    let t = medians(&all);
    let bench = format!("coordinator between the rounds, {wires} wires");
    for (unit, t) in [("CPU ms", t.cpu), ("ms", t.wall)] {
        options.print(&bench, options.subcircuits, unit, 0.0, t.as_secs_f64() * 1e3);
    }
    Ok(())
}

/// Prints the Miller loops and the elements of the target group.
fn aggregation(options: &Options) {
    let (n, levels) = (options.subcircuits, options.levels());
    let print = |what: &str, unit, ours: f64, theirs: f64| {
        options.print(&format!("aggregation: {what}"), n, unit, ours, theirs);
    };
    let pairs = Pairs::new(n);
    let (ours, theirs) = (Cost::OURS, Cost::PAPER);
    let (mut our_loops, mut their_loops) = (0, 0);
    let (a, b) = alternate_times(
        options.run.repetitions,
        || our_loops = pairs.run(n, &ours),
        || their_loops = pairs.run(n, &theirs),
    );
    print("Miller loops", "loops", our_loops as f64, their_loops as f64);
    for (unit, a, b) in [("CPU s", a.cpu, b.cpu), ("s", a.wall, b.wall)] {
        print("time of the Miller loops", unit, a.as_secs_f64(), b.as_secs_f64());
    }
    let elements = [ours, theirs].map(|cost| cost.gt_elements(levels) as f64);
    print("target group in the proof", "elements", elements[0], elements[1]);
    let bytes = [ours, theirs].map(|cost| cost.gt_bytes(levels) as f64);
    print("target group in the proof", "bytes", bytes[0], bytes[1]);
}
