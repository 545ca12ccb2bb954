//! The command line.

use crate::exit;
use clap::{Args, Parser, Subcommand};
use hekaton_circuit::named::{ParameterMap, parameter_value};
use hekaton_plan::simulate::Design;
use serde_json::Value;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Proves computations that are too large for one prover: splits them into
/// subcircuits, proves these in parallel, and aggregates them into one small proof.
///
/// A first proof of a file's SHA-256 Merkle root, and its verification:
///
///   hekaton setup merkle --up-to 1M --keys merkle.keys
///   hekaton prove FILE --keys merkle.keys --proof FILE.proof
///   hekaton verify FILE.proof --key merkle.keys --for FILE \
///       --public $(hekaton hash FILE --keys merkle.keys)
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
    /// Show what cutting a circuit of circom into parts would cost, before anything is written
    Analyse(Analyse),
    /// Import a circuit of circom: cut it into parts that can be proven on many machines
    Import(Import),
    /// Generate the keys of a circuit (anyone who runs this could forge proofs under them)
    Setup(Setup),
    /// Estimate what proving takes on this machine: sizes, memory, time. Needs no keys
    Estimate(Estimate),
    /// Prove a file
    Prove(Prove),
    /// Verify a proof against the public values and the small verifying key
    Verify(Verify),
    /// Run all subcircuits without proving, and name the constraint that fails
    Check(Check),
    /// Compute the public values of a file without proving
    Hash(Hash),
    /// Show what is in a proof, a key file, or a key store
    Inspect(Inspect),
    /// Verify and list key stores
    #[command(subcommand)]
    Keys(Keys),
    /// Print completions for a shell
    Completions(Completions),
    /// Write the man pages into a directory
    Man(Man),
    /// Summarize the events of a run: phases, times, memory, slowest subcircuits
    Report(Report),
    /// Prove runs of programs for RISC-V: one set of keys serves all programs and all lengths
    #[command(subcommand)]
    Vm(Vm),
    /// Check whether this machine and this job can prove, and report what to fix: MPI, SLURM,
    /// processor, limits
    Doctor(Doctor),
}

/// A circuit in one piece.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The constraints, as `circom --r1cs --prime bls12381` writes them
    pub(crate) file: PathBuf,
    /// The names of wires, as `circom --sym` writes them, for messages about constraints
    #[arg(long, value_name = "FILE")]
    pub(crate) sym: Option<PathBuf>,
    /// The most rows of a part: a number, or a power such as 2^17 [default: the largest of 2^14 to
    /// 2^20 with at least four parts per prover]
    #[arg(long, value_name = "N", value_parser = rows)]
    pub(crate) rows: Option<u64>,
    /// The number of provers that will take part [default: the cores of this machine]
    #[arg(long, value_name = "N", value_parser = threads, conflicts_with = "rows")]
    pub(crate) provers: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton analyse sha.r1cs --sym sha.sym --provers 128

With --sym, it also lists the templates that repeat: how many components there are,
how many constraints each has, and how many wires these share with others.

A part has a row for each of its constraints, and one more for each wire that it
shares with other parts.")]
pub(crate) struct Analyse {
    #[command(flatten)]
    pub(crate) source: Source,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  circom sha.circom --r1cs --wasm --sym --prime bls12381 --O1
  hekaton import sha.r1cs --sym sha.sym --out sha.hk
  hekaton check sha.hk sha.wtns
  hekaton setup sha.hk --keys sha.keys
  hekaton prove sha.wtns --keys sha.keys
  hekaton hash sha.wtns --keys sha.keys > public.json
  hekaton verify sha.wtns.proof --key sha.keys/verifying.key --public @public.json

docs/guide/circom.md has the whole way.")]
pub(crate) struct Import {
    #[command(flatten)]
    pub(crate) source: Source,
    /// The circuit directory to write; it must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Import a circuit also if the cut more than doubles its constraints
    #[arg(long)]
    pub(crate) force: bool,
}

/// A circuit and its parameters.
#[derive(Debug, Args)]
pub(crate) struct Circuit {
    /// Name of the circuit; `circuits` lists them. A program with one circuit does not need it. A
    /// name with / or . is the directory of an imported circuit
    pub(crate) circuit: Option<String>,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
}

/// The parameters of a circuit.
#[derive(Debug, Args)]
pub(crate) struct Parameters {
    /// A parameter, for example -p leaf-bytes=1024; may be repeated. A value is JSON, or text
    #[arg(short, long = "parameter", value_name = "NAME=VALUE", value_parser = parameter)]
    pub(crate) parameters: Vec<(String, Value)>,
}

impl Parameters {
    /// The parameters by name.
    pub(crate) fn map(&self) -> ParameterMap {
        self.parameters.iter().cloned().collect()
    }
}

fn parameter(text: &str) -> Result<(String, Value), String> {
    let expected = "expected NAME=VALUE, for example leaf-bytes=1024";
    let (name, value) = text.split_once('=').ok_or(expected)?;
    Ok((name.to_owned(), parameter_value(value)))
}

fn key_digest(text: &str) -> Result<[u8; 32], String> {
    let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "expected a digest of 64 hexadecimal digits".to_owned())
}

/// Parses 131072 or 2^17.
fn rows(text: &str) -> Result<u64, String> {
    let number = match text.split_once('^') {
        Some((base, exponent)) => (base.parse::<u64>().ok())
            .zip(exponent.parse().ok())
            .and_then(|(base, exponent)| base.checked_pow(exponent)),
        None => text.parse().ok(),
    };
    let number = number.filter(|number| (8..=1 << 28).contains(number));
    number.ok_or_else(|| "expected a number in 8..=2^28, or a power such as 2^17".to_owned())
}

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let number = text.parse().ok().filter(|n: &NonZeroUsize| n.get() <= 4096);
    number.ok_or_else(|| "expected a number in 1..=4096".to_owned())
}

/// Parses 8G, 512M, 1.5GiB or 2GB, in upper or lower case; K, M, G, T alone are powers of 1024.
fn size(text: &str) -> Result<u64, String> {
    let text = &text.to_ascii_uppercase().replace('I', "i");
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let powers = |unit: &str| "KMGT".find(unit).and_then(|i| i32::try_from(i + 1).ok());
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
    value.map(whole_bytes).ok_or_else(|| {
        "a size is written as 8G, 512M (of 2^20 bytes), 1.5GB (of 10^9 bytes), or as a number of \
         bytes, and is not zero"
            .to_owned()
    })
}

/// Drops the fraction of a byte.
#[allow(clippy::cast_possible_truncation, reason = "sizes are below 1e18")]
fn whole_bytes(bytes: f64) -> u64 {
    bytes as u64
}

/// The help of `--threads` where threads are not provers.
const THREADS: &str = "Number of threads [default: the cores this process may use]";

#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// Number of threads, each with one single-threaded prover [default: the cores this process
    /// may use]
    #[arg(long, value_parser = threads)]
    pub(crate) threads: Option<NonZeroUsize>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton setup merkle --up-to 1M --keys merkle.keys     # for every file of up to 1 MiB
  hekaton setup merkle --for FILE --keys FILE.keys       # for files like this one
  hekaton setup merkle -p leaves=1024 -p leaf-bytes=512 --keys merkle.keys

Setup draws secret trapdoors and deletes them. Anyone who runs it could keep
them and forge proofs, so run it where the verifiers trust it.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct Setup {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// Derive missing parameters from this file (for merkle: the number of leaves)
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Make the keys of a family, which serve every input of up to this size, for example 16M (of
    /// 2^20 bytes): `prove` and `verify` derive from them what they need
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["file", "r1cs"])]
    pub(crate) up_to: Option<u64>,
    /// For an imported circuit: first compare it with this source, constraint by constraint
    #[arg(long, value_name = "FILE")]
    pub(crate) r1cs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) new: NewKeys,
}

/// Keys that a setup makes.
#[derive(Debug, Args)]
pub(crate) struct NewKeys {
    /// The directory to write; it must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Generate keys for proofs that are not zero-knowledge: such a proof lets anyone confirm a
    /// guess of the witness. Saves two shared wires per subcircuit
    #[arg(long)]
    pub(crate) no_zero_knowledge: bool,
    /// FOR TESTS ONLY: derive the trapdoors from a number, so that anyone can forge proofs
    #[arg(long, value_name = "SEED", hide = true)]
    pub(crate) insecure_seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
#[command(after_help = exit::help_after(
    "Examples:
  hekaton prove FILE --keys FILE.keys --proof FILE.proof
  hekaton prove FILE --keys FILE.keys --run DIR           # can be interrupted
  hekaton prove FILE --keys FILE.keys --run DIR --resume  # resumes it",
))]
pub(crate) struct Prove {
    /// The input; `hekaton circuits` describes it for each circuit
    pub(crate) file: PathBuf,
    /// The key store or key family, written by `hekaton setup`. On many ranks: a key store
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Where to write the proof [default: FILE.proof, or DIR/proof with --run DIR]
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
    /// Keep completed work in this directory, so that an interrupted run can be resumed; the
    /// directory must be new or empty unless --resume is given
    #[arg(long, value_name = "DIR")]
    pub(crate) run: Option<PathBuf>,
    /// Resume the run in --run DIR, or start it if DIR holds no run yet
    #[arg(long, requires = "run")]
    pub(crate) resume: bool,
    /// Seconds without a sign of life after which a process on another machine counts as dead and
    /// its run is taken over; 1 to 600
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=600),
        requires = "run"
    )]
    pub(crate) lease: u64,
    /// Write events to this file as JSON lines; docs/guide/events.md has the schema. An existing
    /// file is replaced, or appended to with --resume. With --run DIR, the same events also go to
    /// DIR/events.jsonl
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Use at most this much memory (per rank, with --mpi), for example 8G or 512M (powers of
    /// 1024): runs fewer provers at once, and drops keys from memory after use
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Skip each prover's check of its witness (a wrong witness is then found only at the end of
    /// the run)
    #[arg(long)]
    pub(crate) no_check: bool,
    #[command(flatten)]
    pub(crate) ranks: Ranks,
    /// FOR TESTS ONLY: derive all randomness from a number. The proof is then NOT zero-knowledge
    #[arg(long, value_name = "SEED", hide = true)]
    pub(crate) insecure_seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Proving on many ranks.
#[derive(Debug, Args)]
#[command(next_help_heading = "On many ranks (docs/guide/cluster.md)")]
pub(crate) struct Ranks {
    /// This process is a rank that mpirun or `srun --mpi=pmix` started; start all ranks with
    /// the same arguments
    #[arg(long, conflicts_with = "threads")]
    pub(crate) mpi: bool,
    /// Whether rank 0, the coordinator, also proves; auto: with up to 8 ranks
    #[arg(long, value_enum, default_value_t = RootProves::Auto, requires = "mpi")]
    pub(crate) root_proves: RootProves,
    /// Single-threaded provers per rank [default: the cores that SLURM or the affinity mask allows]
    #[arg(long, value_name = "N", value_parser = threads, requires = "mpi")]
    pub(crate) provers_per_rank: Option<NonZeroUsize>,
    /// dynamic: ranks pull subcircuits as they finish others; static: each rank gets a fixed share,
    /// as in the paper
    #[arg(long, value_enum, default_value_t = ScheduleOption::Dynamic, requires = "mpi")]
    pub(crate) schedule: ScheduleOption,
    /// Who executes the circuit: root: rank 0, which sends each subcircuit its values; ranks: each
    /// rank its own part, so all of them read FILE; auto: ranks, with more than 8 of them and a
    /// circuit that can execute a part of itself. In a circuit with memories it is always root, because
    /// the last access to a cell may be in any part
    #[arg(long, value_enum, default_value_t = ExecuteOption::Auto, requires = "mpi")]
    pub(crate) execute: ExecuteOption,
    /// The same as --execute ranks: each rank reads the values of its parts in the witness FILE
    #[arg(long, requires = "mpi", conflicts_with = "execute")]
    pub(crate) witness_on_ranks: bool,
    /// Ranks per leader, which stands between them and rank 0; 0: no leaders [default: 32 with more
    /// than 256 ranks]
    #[arg(long, value_name = "N", requires = "mpi")]
    pub(crate) ranks_per_leader: Option<usize>,
    /// Seconds without a sign of life after which a rank counts as lost; 1 to 3600
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u64).range(1..=3600),
        requires = "mpi"
    )]
    pub(crate) silence: u64,
    /// Seconds that a round, or a phase of the aggregation, may take before the job ends as if a
    /// rank were lost; for ranks that are alive but never answer [default: no limit]
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..),
        requires = "mpi"
    )]
    pub(crate) round_timeout: Option<u64>,
    /// Copy the keys once per node into this directory on its own disk, and use the copy
    #[arg(long, value_name = "DIR", requires = "mpi")]
    pub(crate) stage_keys: Option<PathBuf>,
    /// Only rank 0 reads --keys: it sends them to each node, into --stage-keys DIR [default: the
    /// node's temporary directory]
    #[arg(long, requires = "mpi")]
    pub(crate) keys_from_root: bool,
}

/// Whether rank 0 also proves; see [`Ranks::root_proves`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RootProves {
    /// With up to 8 ranks
    Auto,
    /// Always
    Yes,
    /// Never
    No,
}

/// Who executes the circuit; see [`Ranks::execute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExecuteOption {
    /// Ranks, with more than 8 of them and a circuit that can execute a part of itself
    Auto,
    /// Rank 0
    Root,
    /// Each rank its own part
    Ranks,
}

/// How subcircuits are assigned to ranks; see [`Ranks::schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScheduleOption {
    /// Ranks pull subcircuits as they finish others
    Dynamic,
    /// Each rank gets a fixed share
    Static,
}

#[derive(Debug, Args)]
#[command(after_help = exit::help_after(
    "Example:
  hekaton verify FILE.proof --key FILE.keys/verifying.key \\
      --public $(hekaton hash FILE --keys FILE.keys)
  hekaton verify FILE.proof --key merkle.keys -p leaves=17 --public ROOT   # a key family

The proof may come from anyone. The verifying key must come from a setup that you
trust: those who ran it could forge proofs under it.",
))]
pub(crate) struct Verify {
    /// The proof
    pub(crate) proof: PathBuf,
    /// The verifying key, verifying.key in the key store; or a key family (of which verifiers need
    /// family.json and family.key), with the parameters that it leaves open
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// With a key family: take open parameters from this input
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The public values: as `hash` prints them, as a JSON object with a value for each name or a JSON array, or
    /// @FILE to read either from a file
    #[arg(long, value_name = "VALUES")]
    pub(crate) public: String,
    /// Refuse every verifying key but the one with this digest, as setup printed it; with a key
    /// family, every family but the one with this digest. The circuit name
    /// and parameters in a key are unverified: the digest is what to compare
    #[arg(long, value_name = "HEX", value_parser = key_digest)]
    pub(crate) key_digest: Option<[u8; 32]>,
    /// Accept keys made for tests, under which anyone can forge proofs
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:
  hekaton check merkle FILE -p leaf-bytes=512
  hekaton check merkle FILE -p leaf-bytes=512 --mutate"
)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// The input
    #[arg(required = true)]
    pub(crate) file: PathBuf,
    /// Also change the value in one slot at a time, and report slots whose change no constraint
    /// notices. This synthesizes each subcircuit several times per slot
    #[arg(long)]
    pub(crate) mutate: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton hash FILE --keys FILE.keys
  hekaton hash FILE --circuit merkle -p leaf-bytes=512")]
pub(crate) struct Hash {
    /// The input
    pub(crate) file: PathBuf,
    /// Name of the circuit [default: the first one of the program]
    #[arg(long)]
    pub(crate) circuit: Option<String>,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// Take the circuit and its parameters from this key store
    #[arg(long, value_name = "DIR", conflicts_with_all = ["circuit", "parameters"])]
    pub(crate) keys: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton inspect FILE.proof
  hekaton inspect FILE.keys")]
pub(crate) struct Inspect {
    /// A proof, a verifying key, a proving key, an aggregation key, a key store, or an imported
    /// circuit
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton report DIR
  hekaton report DIR --html report.html")]
pub(crate) struct Report {
    /// A run directory, or a file written by `prove --events`
    pub(crate) path: PathBuf,
    /// Also write a page with a chart of phases and provers, memory over time, and the slowest
    /// subcircuits
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hekaton keys family merkle --up-to 16M --keys merkle.keys
  hekaton keys derive merkle.keys --for FILE --out FILE.keys
  hekaton keys verify FILE.keys
  hekaton keys list DIR")]
pub(crate) enum Keys {
    /// Generate the keys of a family, which serve every input up to a size: the same as `setup
    /// --up-to`
    Family(Box<Setup>),
    /// Derive the keys of one circuit from those of a family. This needs no secret, and its result
    /// depends on the family and the circuit only
    Derive(KeysDerive),
    /// Check keys from elsewhere: every digest, every point, and every pairing relation that can be
    /// checked without the trapdoors
    Verify(KeysVerify),
    /// List key stores
    List(KeysList),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton keys verify FILE.keys

This does not show that the trapdoors were deleted: those who ran the setup may
still be able to forge proofs.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct KeysVerify {
    /// The key store or key family
    pub(crate) keys: PathBuf,
    /// For keys of an imported circuit: also check that they are those of this source
    #[arg(long, value_name = "FILE")]
    pub(crate) r1cs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton keys derive merkle.keys --for FILE --out FILE.keys
  hekaton keys derive merkle.keys -p leaves=17 --out leaves-17.keys

`prove`, `hash` and `verify` derive keys by themselves. Keys that are derived once
are for provers on many ranks, and for verifiers who want the small file
verifying.key. Proving keys are links to those of the family where the file
system allows it.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct KeysDerive {
    /// The key family
    pub(crate) family: PathBuf,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// Take open parameters from this input (for merkle: the number of leaves)
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The key store to write; the directory must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
pub(crate) struct KeysList {
    /// Key stores, or directories that directly contain some
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton estimate merkle --for FILE
  hekaton estimate merkle -p leaves=1024 -p leaf-bytes=512 --ranks 4 --provers-per-rank 32
  hekaton estimate --calibrate node.json          # on a node of the cluster
  hekaton estimate merkle -p leaves=1024 -p leaf-bytes=4096 --cores 4096 --calibration node.json

docs/guide/scaling.md explains what is measured and what is assumed.")]
pub(crate) struct Estimate {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// Derive missing parameters from this file, and run the circuit on its content
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Assume at most this much memory (per rank), for example 8G or 512M (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Assume N proving ranks on machines like this one, and a network without delay
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) ranks: Option<NonZeroUsize>,
    /// Provers per rank [default: the threads of this process]
    #[arg(long, value_name = "N", value_parser = threads, requires = "ranks")]
    pub(crate) provers_per_rank: Option<NonZeroUsize>,
    /// Estimate proofs that are not zero-knowledge, without the two mask wires per subcircuit
    #[arg(long)]
    pub(crate) no_zero_knowledge: bool,
    #[command(flatten)]
    pub(crate) prediction: PredictionOptions,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Predicting a run on a cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "On a cluster (docs/guide/scaling.md)")]
pub(crate) struct PredictionOptions {
    /// Also predict a run on N cores by simulating it, with coordinator, network and file system
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(1..=1 << 32),
        requires = "calibration",
        conflicts_with_all = ["ranks", "calibrate"]
    )]
    pub(crate) cores: Option<u64>,
    /// The constants of a node of the cluster, measured there with --calibrate
    #[arg(long, value_name = "FILE", requires = "cores")]
    pub(crate) calibration: Option<PathBuf>,
    /// What is known of the cluster, as TOML; the rest is assumed
    #[arg(long, value_name = "FILE", requires = "cores")]
    pub(crate) cluster: Option<PathBuf>,
    /// What the coordinator does by itself: flat, pool, slices or tree [default: what the program
    /// does with so many ranks: pool with up to 8, slices with up to 256, then tree]
    #[arg(long, value_name = "NAME", requires = "cores", value_parser = Design::named)]
    pub(crate) design: Option<Design>,
    /// Predict N subcircuits of the same mean size, instead of the circuit's own number
    #[arg(
        long,
        value_name = "N",
        requires = "cores",
        value_parser = clap::value_parser!(u64).range(1..=1 << 31)
    )]
    pub(crate) subcircuits: Option<u64>,
    /// Measure the constants of this machine and write them to FILE; takes a circuit's place
    #[arg(long, value_name = "FILE", conflicts_with_all = ["circuit", "parameters", "file"])]
    pub(crate) calibrate: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  clang --target=riscv32 -march=rv32im -mabi=ilp32 -mno-relax -O2 -ffreestanding \\
      -nostdlib -static -fuse-ld=lld start.S program.c -o program
  hekaton vm setup --keys vm.keys                   # once, for all programs
  hekaton vm run program --input FILE               # without a proof
  hekaton vm prove program --input FILE --keys vm.keys
  hekaton vm verify program.proof --program program --keys vm.keys

docs/guide/programs.md says how to write programs.")]
pub(crate) enum Vm {
    /// Generate the keys for all programs (anyone who runs this could forge proofs under them)
    Setup(VmSetup),
    /// Run a program without proving: its result, what it executes, what its proof takes
    Run(VmRun),
    /// Prove the run of a program
    Prove(Box<VmProve>),
    /// Verify that a program exits with the code and the output that a proof says
    Verify(VmVerify),
    /// Show what a proof says, or what is in a program. Nothing is verified
    Inspect(VmInspect),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton vm setup --keys vm.keys
  hekaton vm setup --rows 2^12 --subcircuits 256 --keys small.keys   # for short runs

Setup draws secret trapdoors and deletes them. Anyone who runs it could keep
them and forge proofs, so run it where the verifiers trust it.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct VmSetup {
    /// The most constraints of a subcircuit, from 2^12: larger ones are fewer, and take more memory
    /// to prove and time to set up. With 2^17, keys have 2.3 GB and a prover takes 0.5 GB
    #[arg(long, value_name = "N", value_parser = rows, default_value = "2^17")]
    pub(crate) rows: u64,
    /// The most subcircuits of a run: with 2^17 rows, each is for about 6,000 cycles
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u64).range(64..=1 << 24),
        default_value_t = 4096
    )]
    pub(crate) subcircuits: u64,
    #[command(flatten)]
    pub(crate) new: NewKeys,
}

/// What a program runs on.
#[derive(Clone, Debug, Args)]
pub(crate) struct MachineInput {
    /// The private input: at 0x20000000, behind the public one, the number of its bytes, then these
    #[arg(long, value_name = "FILE")]
    pub(crate) input: Option<PathBuf>,
    /// The public input, which verifiers must have: at 0x20000000, filled up with zeros to whole words
    #[arg(long, value_name = "FILE")]
    pub(crate) public_input: Option<PathBuf>,
    /// Give up after this many cycles
    #[arg(long, value_name = "N", default_value_t = 1 << 28)]
    pub(crate) max_cycles: u64,
    /// Have as many subcircuits of each kind as this JSON object says, which `vm run --json` prints as
    /// "counts". A proof says how many there are, so roughly how often each kind of instruction was
    /// executed; proofs of one shape say nothing about that. A run that does not fit fails
    #[arg(long, value_name = "FILE")]
    pub(crate) shape: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton vm run program --input FILE --keys vm.keys")]
pub(crate) struct VmRun {
    /// The program: a statically linked ELF file for rv32im
    pub(crate) program: PathBuf,
    #[command(flatten)]
    pub(crate) input: MachineInput,
    /// Count subcircuits for these keys
    #[arg(long, value_name = "DIR", conflicts_with = "rows")]
    pub(crate) keys: Option<PathBuf>,
    /// Count subcircuits of at most this many constraints
    #[arg(long, value_name = "N", value_parser = rows, default_value = "2^17")]
    pub(crate) rows: u64,
    /// Also measure this machine for two seconds, and estimate what a proof takes
    #[arg(long)]
    pub(crate) estimate: bool,
    /// Write the output to this file, as bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
#[command(
    after_help = exit::help_after(
        "Examples:
  hekaton vm prove program --input FILE --keys vm.keys --proof FILE.proof
  hekaton vm prove program --input FILE --keys vm.keys --run DIR           # can be interrupted
  hekaton vm prove program --input FILE --keys vm.keys --run DIR --resume  # resumes it"
    ),
    mut_arg("file", |file| {
        file.value_name("PROGRAM").help("The program: a statically linked ELF file for rv32im")
    }),
    mut_arg("keys", |keys| keys.help("The keys, written by `vm setup`")),
    mut_arg("proof", |proof| proof.help("Where to write the proof [default: PROGRAM.proof]")),
    mut_arg("execute", |execute| {
        execute.help(
            "Who executes the program: ranks: each of them, and replays what its subcircuits prove; \
             root: rank 0, which sends that to all others; auto: ranks",
        )
    })
)]
pub(crate) struct VmProve {
    #[command(flatten)]
    pub(crate) prove: Prove,
    #[command(flatten)]
    pub(crate) input: MachineInput,
}

#[derive(Debug, Args)]
#[command(after_help = exit::help_after(
    "Example:
  hekaton vm verify program.proof --program program --keys vm.keys

The proof may come from anyone. The keys must come from a setup that you trust: those
who ran it could forge proofs under them. The program is the statement: verify with
the file that you compiled.",
))]
pub(crate) struct VmVerify {
    /// The proof
    pub(crate) proof: PathBuf,
    /// The program
    #[arg(long, value_name = "FILE")]
    pub(crate) program: PathBuf,
    /// The keys, of which verifiers need family.json and family.key
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// The public input
    #[arg(long, value_name = "FILE")]
    pub(crate) public_input: Option<PathBuf>,
    /// The exit code that the program must have
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) exit_code: u32,
    /// The output that the program must have: a file of up to 64 bytes
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Refuse all keys but those with this digest, as setup printed it
    #[arg(long, value_name = "HEX", value_parser = key_digest)]
    pub(crate) key_digest: Option<[u8; 32]>,
    /// Accept keys made for tests, under which anyone can forge proofs
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

#[derive(Debug, Args)]
pub(crate) struct VmInspect {
    /// The proof, or the program
    pub(crate) file: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton doctor FILE.keys DIR
  srun -N2 --ntasks-per-node=1 --mpi=pmix hekaton doctor .

Each line is ok, note, or BAD; exit code 4 means that something is BAD.")]
pub(crate) struct Doctor {
    /// Directories that a run will use (keys, run directory), to check their file systems
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton completions bash > /etc/bash_completion.d/hekaton")]
pub(crate) struct Completions {
    /// The shell
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton man /usr/local/share/man/man1")]
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
