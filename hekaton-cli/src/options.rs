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
    /// Say what proving will take on this machine: sizes, memory, time. Needs no keys
    Estimate(Estimate),
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
    /// Print completions for a shell, for example: hekaton completions bash > /etc/bash_completion.d/hekaton
    Completions(Completions),
    /// Write the man pages into a directory, for example: hekaton man /usr/local/share/man/man1
    Man(Man),
    /// Show what the events of a run come to: phases, times, memory, slowest subcircuits
    Report(Report),
    /// Look at this machine and this job as a place to prove on, and say what to mend: MPI, SLURM, processor, limits
    Doctor(Doctor),
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

/// 8G, 512M, 1.5GiB, 2GB in capitals or not; K, M, G, T alone are powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let text = &text.to_ascii_uppercase().replace('I', "i");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let powers = |unit: &str| "KMGT".find(unit).map(|i| i as i32 + 1);
    let factor = match unit {
        "" | "B" => Some(1.0),
        _ => match (unit.strip_suffix("iB"), unit.strip_suffix('B')) {
            (Some(prefix), _) if prefix.len() == 1 => powers(prefix).map(|p| 1024f64.powi(p)),
            (None, Some(prefix)) if prefix.len() == 1 => powers(prefix).map(|p| 1000f64.powi(p)),
            (None, None) if unit.len() == 1 => powers(unit).map(|p| 1024f64.powi(p)),
            _ => None,
        },
    };
    let value = number
        .parse::<f64>()
        .ok()
        .zip(factor)
        .map(|(n, f)| n * f)
        .filter(|v| (1.0..1e18).contains(v));
    value.map(|v| v as u64).ok_or_else(|| {
        "a size is written as 8G, 512M (of 2^20 bytes), 1.5GB (of 10^9) or in bytes, and not zero".to_owned()
    })
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
#[command(after_help = exit::HELP)]
pub(crate) struct Prove {
    /// The input; `hekaton circuits` says what it is for each circuit
    pub(crate) file: PathBuf,
    /// Directory of the keys
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Where to write the proof [default: FILE.proof, with --run DIR: DIR/proof]
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
    /// Keep what is done in this directory, so that an interrupted run can go on; new or empty unless --resume
    #[arg(long, value_name = "DIR")]
    pub(crate) run: Option<PathBuf>,
    /// Go on with the run in --run DIR, or begin it if none began there yet
    #[arg(long, requires = "run")]
    pub(crate) resume: bool,
    /// Seconds without a sign of life after which a process on another machine counts as dead and its run is taken over, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=600), requires = "run")]
    pub(crate) lease: u64,
    /// Write what happens as JSON lines; docs/events.md has the schema. A file that exists is replaced, with
    /// --resume appended to. DIR/events.jsonl gets the same with --run DIR
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Use at most so much memory (each rank, with --mpi), for example 8G or 512M (powers of 1024): fewer provers at once, and keys are dropped from memory after use
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Don't let each prover check its witness first (a wrong witness is then found after the whole run)
    #[arg(long)]
    pub(crate) no_check: bool,
    #[command(flatten)]
    pub(crate) ranks: Ranks,
    /// FOR TESTS ONLY: take all randomness from a number. The proof is then NOT zero-knowledge
    #[arg(long, value_name = "SEED", hide = true)]
    pub(crate) insecure_seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Proving on many ranks.
#[derive(Debug, Args)]
#[command(next_help_heading = "On many ranks (docs/cluster.md)")]
pub(crate) struct Ranks {
    /// This process is a rank that mpirun or `srun --mpi=pmix` started; all ranks get the same arguments
    #[arg(long, conflicts_with = "threads")]
    pub(crate) mpi: bool,
    /// Whether rank 0, which coordinates, also proves; auto: with up to 8 ranks
    #[arg(long, value_enum, default_value_t = RootProves::Auto, requires = "mpi")]
    pub(crate) root_proves: RootProves,
    /// Single-threaded provers a rank [default: the cores that SLURM or the affinity mask gives it]
    #[arg(long, value_name = "N", value_parser = threads, requires = "mpi")]
    pub(crate) provers_per_rank: Option<NonZeroUsize>,
    /// dynamic: ranks pull subcircuits as they get done with them; static: each has a fixed share, as in the paper
    #[arg(long, value_enum, default_value_t = ScheduleOption::Dynamic, requires = "mpi")]
    pub(crate) schedule: ScheduleOption,
    /// Seconds without a sign of life from a rank after which it is lost; 1 to 3600
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3600), requires = "mpi")]
    pub(crate) silence: u64,
    /// Seconds that a round, or a phase of the aggregation, may take: then the job ends as if a rank were lost, for ranks
    /// that live and never answer [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..), requires = "mpi")]
    pub(crate) round_timeout: Option<u64>,
    /// Copy the keys once a node into this directory on its own disk, and use them there
    #[arg(long, value_name = "DIR", requires = "mpi")]
    pub(crate) stage_keys: Option<PathBuf>,
    /// Only rank 0 sees --keys: it sends them to each node, into --stage-keys DIR [default: the node's temporary directory]
    #[arg(long, requires = "mpi")]
    pub(crate) keys_from_root: bool,
}

/// See [`Ranks::root_proves`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RootProves {
    /// With up to 8 ranks
    Auto,
    /// Always
    Yes,
    /// Never
    No,
}

/// See [`Ranks::schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScheduleOption {
    /// Ranks pull
    Dynamic,
    /// Fixed shares
    Static,
}

#[derive(Debug, Args)]
#[command(after_help = exit::HELP)]
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
    /// Key directories, or directories that hold some directly
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Estimate {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// Take parameters that are not given from this file, and count with its content
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Count with at most so much memory (each rank), for example 8G or 512M (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Count with so many ranks that prove, on machines like this one and a network that takes no time
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) ranks: Option<NonZeroUsize>,
    /// Provers of each rank [default: the threads of this process]
    #[arg(long, value_name = "N", value_parser = threads, requires = "ranks")]
    pub(crate) provers_per_rank: Option<NonZeroUsize>,
    /// Count without the two mask wires a subcircuit
    #[arg(long)]
    pub(crate) no_zero_knowledge: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Directories that a run will use (keys, run directory), to look at their file systems
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory; it must exist
    pub(crate) directory: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }

    #[test]
    fn sizes() {
        let cases = [
            ("8G", 8 << 30),
            ("512M", 512 << 20),
            ("2GB", 2_000_000_000),
            ("1.5GiB", 3 << 29),
            ("100", 100),
            ("7B", 7),
            ("8g", 8 << 30),
            ("2gb", 2_000_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(size(text), Ok(bytes), "{text}");
        }
        for text in ["", "G", "-1G", "1X", "1GG", "1GiBB", "nan", "1e3", "0", "inf"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
