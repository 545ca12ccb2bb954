//! Look-ups, memories and hash functions by look-ups, against the same done with bits or Merkle paths,
//! and against gnark's arguments where its program is at hand.
//!
//! `cargo run --release -p benches --bin lookups -- --json`
//!
//! Each line is a rate of whole runs on one thread, aggregation and tables included; what is done
//! with bits is done for a part of the items (`--share`), because its rate does not depend on their
//! number.
#![allow(clippy::print_stderr)]
#![allow(clippy::cast_possible_truncation, reason = "small numbers of benchmarks")]

mod hashes;
mod memory;
mod ranges;
mod rivals;

use benches::{Line, Run, Times, alternate_times};
use clap::Parser;
use hekaton_circuit::{Circuit, PreparedCircuit, count};
use hekaton_core::protocol::coordinator::Coordinator;
use hekaton_core::{
    LocalEngine, ProveOptions, ProverKeys, SetupOptions, prove, prove_prepared, setup,
};
use std::num::NonZeroUsize;
use std::path::PathBuf;

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Benchmarks of look-ups.
#[derive(Parser)]
struct Options {
    #[command(flatten)]
    run: Run,
    /// The number of values of 16 bits.
    #[arg(long, default_value_t = 1 << 17)]
    ranges: usize,
    /// The number of accesses to a memory, half of them writes.
    #[arg(long, default_value_t = 1 << 15)]
    accesses: usize,
    /// The number of Keccak-f permutations, and of SHA-256 blocks.
    #[arg(long, default_value_t = 100)]
    hashes: usize,
    /// The share of these that is done with bits, as its inverse.
    #[arg(long, default_value_t = 8)]
    share: usize,
    /// The program of `paper-results/peers/gnark`.
    #[arg(long)]
    gnark: Option<PathBuf>,
    /// The folder in which that program keeps its keys; the first run takes minutes.
    #[arg(long, default_value = ".")]
    gnark_keys: PathBuf,
    /// Run only benchmarks whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<(), Error> {
    let options = Options::parse();
    let bench = Bench { options: &options, one: LocalEngine::new(NonZeroUsize::new(1))? };
    let part = |all: usize| (all / options.share.max(1)).max(1);
    if bench.wants("range checks of 16 bits") {
        let all = options.ranges;
        let ours = ranges::by_look_ups(all);
        let theirs = (ranges::by_bits(part(all)), part(all));
        bench.compare(
            "range checks of 16 bits",
            "range",
            (&ours, all),
            "bits",
            (&theirs.0, theirs.1),
            all,
        )?;
        bench.overhead("range checks of 16 bits", all, &ours)?;
    }
    if bench.wants("accesses to a memory") {
        // A path of ten Poseidon hashes, read and written, has 4,900 rows.
        let (all, few) = (options.accesses, (options.accesses / 256).max(1));
        let (ours, theirs) = (memory::by_ram(all), memory::by_paths(few)?);
        let rival = "Merkle paths by Poseidon";
        bench.compare(
            "accesses to a memory",
            "memory",
            (&ours, all),
            rival,
            (&theirs, few),
            all,
        )?;
        bench.overhead("accesses to a memory", all, &ours)?;
    }
    for hash in [hashes::Hash::Keccak, hashes::Hash::Sha256] {
        let name = hash.name();
        if bench.wants(name) {
            let (all, few) = (options.hashes, part(options.hashes));
            let (ours, theirs) = (hash.by_look_ups(all), hash.by_bits(few));
            // gnark proves in one piece, of about 150,000 constraints each.
            bench.compare(name, hash.workload(), (&ours, all), "bits", (&theirs, few), few)?;
            bench.overhead(name, all, &ours)?;
        }
    }
    Ok(())
}

struct Bench<'a> {
    options: &'a Options,
    one: LocalEngine,
}

impl Bench<'_> {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.options.only)
    }

    fn keys<C: Circuit>(&self, circuit: &C) -> Result<ProverKeys, Error> {
        Ok(setup(circuit, &self.one, &SetupOptions::new("bench"))?)
    }

    /// Rows, and rates of whole runs, of two circuits that do the same thing for as many items as
    /// stated; and the rate of gnark for as many as in `gnark`.
    fn compare<A: Circuit<Input = ()>, B: Circuit<Input = ()>>(
        &self,
        name: &str,
        workload: &str,
        (ours, items): (&A, usize),
        rival: &str,
        (theirs, their_items): (&B, usize),
        gnark: usize,
    ) -> Result<(), Error> {
        let line = Line {
            bench: name,
            size: items,
            threads: 1,
            ours: rows(ours)? as f64 / items as f64,
            rival,
            theirs: rows(theirs)? as f64 / their_items as f64,
            unit: "rows an item",
            larger_is_better: false,
        };
        line.print(self.options.run.json);
        let (our_keys, their_keys) = (self.keys(ours)?, self.keys(theirs)?);
        let (a, b) = alternate_times(
            self.options.run.repetitions,
            || self.run(ours, &our_keys),
            || self.run(theirs, &their_keys),
        );
        let rate = |items: usize, time: std::time::Duration| items as f64 / time.as_secs_f64();
        let line = Line { larger_is_better: true, ..line };
        for (unit, ours, theirs) in
            [("items a core-second", a.wall, b.wall), ("items a CPU-second", a.cpu, b.cpu)]
        {
            let (ours, theirs) = (rate(items, ours), rate(their_items, theirs));
            Line { ours, theirs, unit, ..line }.print(self.options.run.json);
        }
        rivals::gnark(self.options, workload, gnark, &line, a)
    }

    fn run<C: Circuit<Input = ()>>(&self, circuit: &C, keys: &ProverKeys) {
        prove(circuit, &(), keys, &self.one, &ProveOptions::new())
            .map_or_else(|e| panic!("{e}"), |_| ());
    }

    /// Measures the work of the coordinator before the first request of a run with tables, as a share of
    /// the run: execution, layout, digests. The comparison of the types with the keys is left out, which
    /// does not grow with the number of subcircuits and is the same without tables. Look-ups are counted
    /// by the provers.
    fn overhead<C: Circuit<Input = ()>>(
        &self,
        name: &str,
        items: usize,
        circuit: &C,
    ) -> Result<(), Error> {
        let keys = self.keys(circuit)?;
        let prepared = PreparedCircuit::with_input(circuit, &())?;
        let start = || {
            Coordinator::new(&prepared, &keys, &self.one, 1).map_or_else(|e| panic!("{e}"), drop);
        };
        let types = || {
            Coordinator::check(&prepared, &keys, &self.one, 1).unwrap_or_else(|e| panic!("{e}"));
        };
        let whole = || {
            prove_prepared(&prepared, &keys, &self.one, &ProveOptions::new())
                .map_or_else(|e| panic!("{e}"), |_| ());
        };
        let repetitions = self.options.run.repetitions;
        let (start, types): (Times, Times) = alternate_times(10 * repetitions, start, types);
        let (whole, _): (Times, Times) = alternate_times(repetitions, whole, || ());
        Line {
            bench: &format!("start of the coordinator: {name}"),
            size: items,
            threads: 1,
            ours: start.cpu.saturating_sub(types.cpu).as_secs_f64(),
            rival: "the whole run",
            theirs: whole.cpu.as_secs_f64(),
            unit: "CPU s",
            larger_is_better: false,
        }
        .print(self.options.run.json);
        Ok(())
    }
}

/// The number of rows of all subcircuits.
fn rows<C: Circuit>(circuit: &C) -> Result<usize, Error> {
    Ok(count(circuit)?.iter().map(|kind| kind.constraints * kind.instances).sum())
}

/// The items of each of as many equal parts as need at most `most` each.
fn parts(items: usize, most: usize) -> (usize, usize) {
    let parts = items.div_ceil(most.max(1)).max(1);
    (parts, items.div_ceil(parts))
}
