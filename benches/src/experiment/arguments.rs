//! The command line.

use super::spec::SCALES;
use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Repeats the experiments of the paper: plans points, measures them, and draws the results next to
/// the paper's.
///
///   experiment check --scale tiny     # what it takes, before anything runs
///   experiment all --scale tiny       # everything, to index.html
///
/// paper-results/README.md describes the claims, and how to add a cluster.
#[derive(Debug, Parser)]
#[command(name = "experiment", version, verbatim_doc_comment, after_help = HELP)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) places: Places,
    #[command(subcommand)]
    pub(crate) command: Command,
}

const HELP: &str = "Exit codes:
  0  done
  2  the command line is wrong, or this machine is too small for the scale
  3  a file cannot be used: missing, damaged, edited, or of another schema
  4  a point failed, or a program could not be run
  5  interrupted; `run --resume` continues";

/// The paths, scale and launcher that all commands share.
#[derive(Debug, Args)]
pub(crate) struct Places {
    /// The program to measure
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        default_value = "target/release/hekaton-paper"
    )]
    pub(crate) hekaton: PathBuf,
    /// The directory of experiments, data of the paper, and results
    #[arg(long, global = true, value_name = "DIR", default_value = "paper-results")]
    pub(crate) directory: PathBuf,
    /// Name of this machine in the result set NAME-DATE [default: the host's]
    #[arg(long, global = true)]
    pub(crate) name: Option<String>,
    /// The result set [default: DIR/results/NAME-DATE, or the latest of NAME, if it exists]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Keep inputs and keys, which may be large, in this directory
    #[arg(long, global = true, value_name = "DIR", default_value = "target/experiment")]
    pub(crate) work: PathBuf,
    /// The size of the points: tiny takes minutes on 2 cores
    #[arg(long, global = true, default_value = "tiny", value_parser = PossibleValuesParser::new(SCALES))]
    pub(crate) scale: String,
    /// The command that starts ranks, with {ranks} and {provers}
    #[arg(
        long,
        global = true,
        value_name = "COMMAND",
        default_value = "mpirun --bind-to none --oversubscribe -np {ranks}"
    )]
    pub(crate) launcher: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List experiments, their points, and why some are skipped
    List,
    /// Show what points require: memory, disk, time. Exit code 2 if the machine is too small
    Check(Chosen),
    /// Measure: keys once per circuit, then all repetitions in random order
    Run(Run),
    /// Measure one repetition of planned points, as an element of a SLURM array
    Point(PointArguments),
    /// Show how many repetitions are done, failed, and missing
    Status,
    /// Write points.csv, summary.json, and claims.json from the raw results
    Collect,
    /// Predict the points with the model, and write model.csv
    Model(Model),
    /// Print the model next to the medians, as one JSON object per point
    Compare(Chosen),
    /// Draw all figures, and write index.html: all figures, claims and the environment on one page
    Report(Report),
    /// Run other provers that are at hand, for comparison
    Peers,
    /// Run check, run, model, collect, and report in sequence
    All(All),
}

#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// Experiments [default: all]
    pub(crate) experiments: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// Run only repetitions that are not done yet
    #[arg(long)]
    pub(crate) resume: bool,
    /// The seed of the order of repetitions
    #[arg(long, default_value_t = super::plan::SEED)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) model: Model,
    /// Submit array jobs to SLURM, as this file describes the cluster
    #[arg(long, value_name = "FILE")]
    pub(crate) slurm: Option<PathBuf>,
    /// With --slurm: write the batch scripts, and print the commands instead of submitting
    #[arg(long, requires = "slurm")]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct PointArguments {
    /// The points of the element, as `list` prints them
    #[arg(required = true, value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// The number of the repetition, from 1
    #[arg(long, default_value_t = 1)]
    pub(crate) repetition: usize,
    #[command(flatten)]
    pub(crate) model: Model,
}

/// The model, which predicts each point next to its repetitions.
#[derive(Debug, Args)]
pub(crate) struct Model {
    /// The model's constants, by `hekaton estimate --calibrate`; measured here if the file does not
    /// exist [default: a file of the environment in the directory of --work]
    #[arg(long, value_name = "FILE")]
    pub(crate) calibration: Option<PathBuf>,
    /// The cluster on which the points ran, for `hekaton estimate --cluster` [default: this machine]
    #[arg(long, value_name = "FILE")]
    pub(crate) cluster: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// A Python of at least 3.11 with the packages of plot/requirements.txt
    #[arg(long, value_name = "PATH", default_value = "python3")]
    pub(crate) python: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct All {
    #[command(flatten)]
    pub(crate) run: Run,
    #[command(flatten)]
    pub(crate) report: Report,
}
