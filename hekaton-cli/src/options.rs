//! The command line.

use crate::exit;
use clap::{Args, Parser, Subcommand};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Proves computations that are too large for one prover, in parts, with one small proof.
///
/// A first proof of a file's SHA-256 Merkle root, and its verification:
///
///   hekaton setup merkle --for FILE --keys FILE.keys
///   hekaton prove FILE --keys FILE.keys --proof FILE.proof
///   hekaton verify FILE.proof --key FILE.keys/verifying.key --public $(hekaton hash FILE --keys FILE.keys)
#[derive(Debug, Parser)]
#[command(name = "hekaton", version, verbatim_doc_comment, after_help = exit::HELP)]
pub(crate) struct Options {
    /// Print results as one JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the circuits and their parameters
    Circuits,
    /// Make the keys of a circuit (whoever runs this could forge proofs under them)
    Setup(Setup),
    /// Prove a file
    Prove(Prove),
    /// Verify a proof: takes the proof, the public values and the small verifying key, nothing else
    Verify(Verify),
    /// Run all subcircuits without proving and say which constraint fails
    Check(Check),
    /// Compute the public values of a file without proving
    Hash(Hash),
    /// Show what is in a proof, a key file or a key directory
    Inspect(Inspect),
    /// Look after key directories
    #[command(subcommand)]
    Keys(Keys),
    /// Show what the events of a run come to: phases, times, memory, slowest subcircuits
    Report(Report),
}

/// Which circuit.
#[derive(Debug, Args)]
pub(crate) struct Circuit {
    /// Name of the circuit; `hekaton circuits` lists them
    pub(crate) circuit: String,
    /// A parameter, for example -p leaf-bytes=1024; may be given several times
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, u64)>,
}

fn parameter(text: &str) -> Result<(String, u64), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=VALUE")?;
    let value = value.parse().map_err(|_| format!("'{value}' is no number"))?;
    Ok((name.to_owned(), value))
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= 4096);
    number.ok_or_else(|| "a number of threads is in 1..=4096".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// Threads, one single-threaded prover each [default: the cores this process may use]
    #[arg(long, value_parser = threads)]
    pub(crate) threads: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
pub(crate) struct Setup {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// Take parameters that are not given from this file (for merkle: the number of leaves)
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Directory for the keys; it must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Make proofs that are not zero-knowledge: a guess of the witness can be confirmed from them. Saves two shared
    /// wires a subcircuit
    #[arg(long)]
    pub(crate) no_zero_knowledge: bool,
    /// FOR TESTS ONLY: derive the trapdoors from a number, so that everybody can forge
    #[arg(long, value_name = "SEED", hide = true)]
    pub(crate) insecure_seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
pub(crate) struct Prove {
    /// The input; `hekaton circuits` says what it is for each circuit
    pub(crate) file: PathBuf,
    /// Directory of the keys
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Where to write the proof [default: FILE.proof, with --run DIR: DIR/proof]
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
    /// Keep what is done in this directory, so that an interrupted run can go on; it must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) run: Option<PathBuf>,
    /// Go on with the run in --run DIR, or begin it if none began there yet
    #[arg(long, requires = "run")]
    pub(crate) resume: bool,
    /// Seconds without a sign of life after which a process on another machine counts as dead and its run is taken over
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600), requires = "run")]
    pub(crate) lease: u64,
    /// Write what happens as JSON lines; docs/events.md has the schema. DIR/events.jsonl gets the same with --run DIR
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Don't let each prover check its witness first (a wrong witness is then found after the whole run)
    #[arg(long)]
    pub(crate) no_check: bool,
    /// FOR TESTS ONLY: take all randomness from a number. The proof is then NOT zero-knowledge
    #[arg(long, value_name = "SEED", hide = true)]
    pub(crate) insecure_seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// The proof
    pub(crate) proof: PathBuf,
    /// The verifying key, KEYS/verifying.key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The public values, as `hekaton hash` prints them
    #[arg(long, value_name = "VALUES")]
    pub(crate) public: String,
    /// Accept keys made for tests, under which anybody can forge
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// The input
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Hash {
    /// The input
    pub(crate) file: PathBuf,
    /// Circuit
    #[arg(long, default_value = "merkle")]
    pub(crate) circuit: String,
    /// A parameter, for example -p leaf-bytes=1024; may be given several times
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, u64)>,
    /// Take circuit and parameters from this key directory
    #[arg(long, value_name = "DIR", conflicts_with_all = ["circuit", "parameters"])]
    pub(crate) keys: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// A proof, a verifying key, a proving key, an aggregation key, or a key directory
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// A run directory, or a file written by `prove --events`
    pub(crate) path: PathBuf,
    /// Write a page with a chart of phases and provers, memory over time and the slowest subcircuits
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Check keys from elsewhere: every digest, every point, and every pairing relation that needs no trapdoor
    Verify(KeysVerify),
    /// List key directories
    List(KeysList),
}

#[derive(Debug, Args)]
pub(crate) struct KeysVerify {
    /// The key directory
    pub(crate) keys: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
pub(crate) struct KeysList {
    /// Key directories, or directories that hold some
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
}
