//! The options, and the rate of a worker, with which rivals are compared.

use benches::{Line, Run, Times};
use clap::Parser;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) type Error = Box<dyn std::error::Error + Send + Sync>;

/// Benchmarks of imported circuits.
#[derive(Parser)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) run: Run,
    /// A circuit of circom, for BLS12-381.
    #[arg(long, requires = "wtns")]
    pub(crate) r1cs: Option<PathBuf>,
    /// A witness of it.
    #[arg(long, requires = "r1cs")]
    pub(crate) wtns: Option<PathBuf>,
    /// Cut the verification of an ECDSA signature, 4 million constraints of arkworks' emulated
    /// fields, and do nothing else; takes minutes and 10 GiB.
    #[arg(long, conflicts_with = "r1cs")]
    pub(crate) ecdsa: bool,
    /// Ask which values follow from the inputs, and do nothing else.
    #[arg(long)]
    pub(crate) unique: bool,
    /// Cut the circuit, and do nothing else.
    #[arg(long)]
    pub(crate) cut: bool,
    /// log2 of the rows of a part.
    #[arg(long, default_value_t = 17)]
    pub(crate) log_rows: u32,
    /// Number of threads of whole runs.
    #[arg(long, default_value = "2")]
    pub(crate) threads: NonZeroUsize,
    /// A Python that has Mt-KaHyPar (`benches/rivals/cut_with_mtkahypar.py`).
    #[arg(long)]
    pub(crate) mtkahypar: Option<PathBuf>,
    /// The program of `benches/rivals/legogroth16`.
    #[arg(long)]
    pub(crate) legogroth16: Option<PathBuf>,
    /// The command line of snarkjs (`build/cli.cjs` of the npm package), run by node.
    #[arg(long, requires = "zkey")]
    pub(crate) snarkjs: Option<PathBuf>,
    /// snarkjs' key of the circuit.
    #[arg(long)]
    pub(crate) zkey: Option<PathBuf>,
    /// The program of `paper-results/peers/gnark`.
    #[arg(long)]
    pub(crate) gnark: Option<PathBuf>,
    /// The folder in which that program keeps its keys; the first run takes minutes.
    #[arg(long, default_value = ".")]
    pub(crate) gnark_keys: PathBuf,
    /// The number of SHA-256 blocks in the circuit, to compare them with gnark's own circuit, too.
    #[arg(long)]
    pub(crate) blocks: Option<u32>,
}

/// The rate of the worker on one thread, in constraints per second.
#[derive(Clone, Copy)]
pub(crate) struct WorkerRate {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

impl WorkerRate {
    /// Prints it next to the rate of a rival that proved a circuit on one thread.
    pub(crate) fn against(self, options: &Options, rival: &str, constraints: usize, theirs: Times) {
        let rate = |t: Duration| (constraints as f64 / t.as_secs_f64()).round();
        let line = Line {
            bench: "worker on an imported part",
            size: constraints,
            threads: 1,
            ours: self.wall,
            rival,
            theirs: rate(theirs.wall),
            unit: "constraints a core-second",
            larger_is_better: true,
        };
        line.print(options.run.json);
        let unit = "constraints a CPU-second";
        Line { ours: self.cpu, theirs: rate(theirs.cpu), unit, ..line }.print(options.run.json);
    }
}
