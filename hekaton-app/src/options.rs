//! The command line.

mod ceremony;
mod prove;
mod shared;

pub(crate) use ceremony::{Ceremony, CeremonyFinish, CeremonyNew, CeremonyVerify, Expected};
pub use prove::Prove;
pub(crate) use prove::{ExecuteOption, Gpus, Ranks, RootProves, ScheduleOption};
pub(crate) use shared::Parameters;
pub use shared::{NewKeys, key_digest, rows};

use clap::{Args, Parser, Subcommand};
use hekaton_plan::simulate::Design;
use hekaton_terminal::exit;
use hekaton_terminal::manual::Manual;
use hekaton_terminal::options::{THREADS, Threads, size, threads};
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The codes with which the program exits.
const EXIT_CODES: &str = "Exit codes:
  0    done; for verify: the proof holds
  1    verify: the proof does not hold, or the keys are test keys;
       check: a constraint is not satisfied
  2    the command line is wrong: also public values that cannot be read, and an
       input that is too large for a key family
  3    a file or directory cannot be used: missing, damaged, in the way, or of
       another version or setup
  4    the run failed: the input does not fit, a witness is wrong, a disk is full
  5    interrupted; the run directory has all completed work: resume with
       --resume
  6    a rank was lost or fell silent, or another process holds the run
       directory, which has all completed work: resume with --resume
  130  interrupted immediately; no result was written";

/// The end of a command's `--help`, with its examples.
pub fn help_after(examples: &str) -> String {
    exit::help_after(examples, EXIT_CODES)
}

/// Proves computations that are too large for one prover: splits them into
/// subcircuits, proves these in parallel, and aggregates them into one small proof.
///
/// A first proof of a file's SHA-256 Merkle root, and its verification:
///
///   hekaton setup merkle --up-to 1M --keys merkle.keys
///   hekaton prove FILE --keys merkle.keys --proof FILE.proof
///   hekaton verify FILE.proof --key merkle.keys --for FILE \
///       --public $(hekaton hash FILE --keys merkle.keys)
// Verbatim, so that the example keeps its line breaks.
#[derive(Debug, Parser)]
#[command(name = "hekaton", version, verbatim_doc_comment, after_help = help_after(""))]
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
    /// Generate the keys of a circuit (anyone who runs this could forge proofs under them)
    Setup(Setup),
    /// Estimate sizes, memory and time of a proof on this machine, without keys
    Estimate(Estimate),
    /// Prove a file
    Prove(Prove),
    /// Verify a proof against the public values and the small verifying key
    Verify(Verify),
    /// Run all subcircuits without proving, and report the first constraint that fails
    Check(Check),
    /// Compute the public values of a file without proving
    Hash(Hash),
    /// Show the contents of a proof, a key file, or a key store
    Inspect(Inspect),
    /// Derive, verify and list keys
    #[command(subcommand)]
    Keys(Keys),
    /// Export verifiers of direct proofs, and proofs for them: also as contract and calldata for the EVM
    #[command(subcommand)]
    Export(Export),
    #[command(flatten)]
    Manual(Manual),
    /// Summarize the events of a run: phases, times, memory, slowest subcircuits
    Report(Report),
    /// Make keys jointly, so that nobody can forge proofs unless all who took part collude
    #[command(subcommand)]
    Ceremony(Box<Ceremony>),
    /// Check whether this machine and this job can prove, and report what to fix: MPI, SLURM,
    /// processor, limits
    Doctor(Doctor),
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
    /// Take missing parameters from this file (for merkle: the number of leaves)
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Generate a key family for all inputs of up to this size, for example 16M (of 2^20 bytes):
    /// `prove` and `verify` derive the keys of one input from it
    // An input has one size, and so has an imported circuit: neither has a family.
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with_all = ["file", "r1cs"])]
    pub(crate) up_to: Option<u64>,
    /// For an imported circuit: first compare it with this source, constraint by constraint
    #[arg(long, value_name = "FILE")]
    pub(crate) r1cs: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) new: NewKeys,
}

#[derive(Debug, Args)]
#[command(after_help = help_after(
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
    /// The verifying key, verifying.key in the key store; or the directory of a key family (verifiers
    /// need its family.json and family.key), with the open parameters. For a direct proof: the direct
    /// key, which `hekaton export verifier` writes
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// With a key family: take open parameters from this input
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The public values: as `hash` prints them, as a JSON object with a value for each name, as a JSON
    /// array, or @FILE to read them from a file, such as that of `prove --public`. Numbers are decimal
    /// without leading zeros, or hexadecimal with 0x
    #[arg(long, value_name = "VALUES")]
    pub(crate) public: String,
    /// With a direct proof: the 32 bytes that it must be bound to, as hexadecimal digits [default: zeros]
    #[arg(long, value_name = "HEX", value_parser = shared::context)]
    pub(crate) context: Option<[u8; 32]>,
    /// Refuse any verifying key, or any key family, without this digest, which setup printed. Compare
    /// digests, because a key's circuit name and parameters are unverified
    #[arg(long, value_name = "HEX", value_parser = key_digest)]
    pub(crate) key_digest: Option<[u8; 32]>,
    /// Accept keys made for tests, under which anyone can forge proofs
    // Hidden: a user who looks for a way around a refusal must not find this one in --help.
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

// The circuit comes before the file, but a program with one circuit does not need it.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Examples:
  hekaton check merkle FILE -p leaf-bytes=512
  hekaton check merkle FILE -p leaf-bytes=512 --unique
  hekaton check sha.r1cs sha.wtns --sym sha.sym --unique   # before the import
  hekaton check sha.hk sha.wtns --unique --second other.wtns

--unique asks whether the outputs follow from the inputs, for this input. A value that
does not is one that the author forgot to constrain: a second witness shows it, and
the exit code is 1. docs/guide/check.md explains how to read the verdicts."
)]
pub(crate) struct Check {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// The input
    #[arg(required = true)]
    pub(crate) file: PathBuf,
    /// With a .r1cs file as the circuit: the names of wires, as `circom --sym` writes them
    #[arg(long, value_name = "FILE")]
    pub(crate) sym: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) unique: Unique,
}

/// The options of the question whether values follow from the inputs.
#[derive(Debug, Args)]
pub(crate) struct Unique {
    /// Also find values that do not follow from the inputs. Of a circuit in Rust, the first subcircuit
    /// of each type is checked
    #[arg(long)]
    pub(crate) unique: bool,
    /// Check all subcircuits of a circuit in Rust
    #[arg(long, requires = "unique")]
    pub(crate) every: bool,
    /// List all values that are free or undecided, not only the first few
    #[arg(long, requires = "unique")]
    pub(crate) all: bool,
    /// Fail also if an output is neither shown to follow nor shown to be free
    #[arg(long, requires = "unique")]
    pub(crate) strict: bool,
    /// Write the second witness of a circuit from circom, if one is found; `prove` accepts it
    #[arg(long, value_name = "FILE", requires = "unique")]
    pub(crate) second: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton hash FILE --keys FILE.keys
  hekaton hash FILE --circuit merkle -p leaf-bytes=512")]
pub(crate) struct Hash {
    /// The input
    pub(crate) file: PathBuf,
    /// Name of the circuit [default: the first circuit of the program]
    #[arg(long)]
    pub(crate) circuit: Option<String>,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// Take the circuit and its parameters from this key store
    // Keys determine both, and values of another circuit would verify under no key.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["circuit", "parameters"])]
    pub(crate) keys: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton inspect FILE.proof
  hekaton inspect FILE.keys")]
pub(crate) struct Inspect {
    /// A proof, a key of any kind, a key store, a key family, or an imported circuit
    pub(crate) path: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton report DIR
  hekaton report DIR --html report.html")]
pub(crate) struct Report {
    /// A run directory, or a file written by `prove --events`
    pub(crate) path: PathBuf,
    /// Also write an HTML page with a chart of phases and provers, memory over time, and the slowest
    /// subcircuits
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hekaton keys derive merkle.keys --for FILE --out FILE.keys
  hekaton keys verify FILE.keys
  hekaton keys list DIR")]
pub(crate) enum Keys {
    /// Derive the keys of one circuit from a key family. This needs no secret, and the result depends
    /// only on the family and the circuit
    Derive(KeysDerive),
    /// Check keys from another source: all digests, all points, and all pairing relations that can be
    /// checked without the trapdoors
    Verify(KeysVerify),
    /// List key stores
    List(KeysList),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton keys verify FILE.keys
  hekaton keys verify merkle.keys --powers powers    # and everything about their ceremony
  hekaton keys verify sha.keys --powers powers --circuit sha.hk --r1cs sha.r1cs

This shows that the keys have the form of keys of this circuit. It does not show who
chose their secrets, and those who did can forge proofs: compare the printed digest
with the one that a party you trust has published. Exit code 1 means that no relation
covers some elements that verifiers use; they are listed.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct KeysVerify {
    /// The key store or key family
    pub(crate) keys: PathBuf,
    /// For keys of an imported circuit: also compare their constraints with this source
    #[arg(long, value_name = "FILE")]
    pub(crate) r1cs: Option<PathBuf>,
    /// For keys from a ceremony: also check the whole ceremony, with the directory of its powers
    #[arg(long, value_name = "DIR")]
    pub(crate) powers: Option<PathBuf>,
    /// With --powers, for keys of an imported circuit: its directory
    #[arg(long, value_name = "DIR", requires = "powers")]
    pub(crate) circuit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton keys derive merkle.keys --for FILE --out FILE.keys
  hekaton keys derive merkle.keys -p leaves=17 --out leaves-17.keys

`prove`, `hash` and `verify` derive keys by themselves. Derive them once for provers on
many ranks, and for verifiers who want the small file verifying.key. If the file system
allows it, proving keys are links to those of the family.")]
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

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hekaton export verifier FILE.keys --out direct.key
  hekaton export verifier direct.key --evm --out Verifier.sol
  hekaton export proof FILE.proof --evm --key direct.key --public @FILE.public.json

docs/guide/evm.md explains all steps.")]
pub(crate) enum Export {
    /// Write the direct key, with which direct proofs are verified; or with --evm the contract
    Verifier(ExportVerifier),
    /// Write a direct proof as the calldata of the contract, after verifying it
    Proof(ExportProof),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton export verifier FILE.keys --out direct.key
  hekaton export verifier merkle.keys --for FILE --evm --out Verifier.sol
  hekaton export verifier merkle.keys --for FILE --evm --check Verifier.sol

The contract is compiled with solc --via-ir --optimize --evm-version prague. Its public KEY
is the digest of the direct key. From a key family, the contract can cost less gas:
compare it with that family.")]
pub(crate) struct ExportVerifier {
    /// The key store, the key family with the open parameters, or a direct key
    pub(crate) keys: PathBuf,
    #[command(flatten)]
    pub(crate) parameters: Parameters,
    /// With a key family: take open parameters from this input
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The contract in Solidity, for chains with the precompiles of EIP-2537
    #[arg(long)]
    pub(crate) evm: bool,
    /// The file to write. Large contracts have further files beside it, for the contracts of their data
    #[arg(long, value_name = "FILE", required_unless_present = "check")]
    pub(crate) out: Option<PathBuf>,
    /// Write nothing: compare this file with the one that would be written
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    pub(crate) check: Option<PathBuf>,
    /// Accept keys made for tests, under which anyone can forge proofs
    // Hidden: a user who looks for a way around a refusal must not find this one in --help.
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton export proof FILE.proof --evm --key direct.key --public @FILE.public.json \\
      --out calldata.hex
  cast call CONTRACT --data $(cat calldata.hex)")]
pub(crate) struct ExportProof {
    /// The direct proof
    pub(crate) proof: PathBuf,
    /// For the EVM: the calldata of the contract's function verify
    #[arg(long, required = true)]
    pub(crate) evm: bool,
    /// The direct key
    #[arg(long, value_name = "FILE")]
    pub(crate) key: PathBuf,
    /// The public values, as for `verify`
    #[arg(long, value_name = "VALUES")]
    pub(crate) public: String,
    /// The 32 bytes that the proof is bound to, as hexadecimal digits [default: zeros]
    #[arg(long, value_name = "HEX", value_parser = shared::context)]
    pub(crate) context: Option<[u8; 32]>,
    /// The file to write, with hexadecimal digits [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Accept keys made for tests, under which anyone can forge proofs
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

#[derive(Debug, Args)]
pub(crate) struct KeysList {
    /// Key stores, or directories that directly contain key stores
    #[arg(default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton estimate merkle --for FILE
  hekaton estimate merkle --up-to 1M
  hekaton estimate merkle -p leaves=1024 -p leaf-bytes=512 --ranks 4 --provers-per-rank 32
  hekaton estimate merkle -p leaves=1024 -p leaf-bytes=512 --gpu 24G
  hekaton estimate --calibrate node.json          # on a node of the cluster
  hekaton estimate merkle -p leaves=1024 -p leaf-bytes=4096 --cores 4096 --calibration node.json

docs/guide/scaling.md explains measurements and assumptions.")]
pub(crate) struct Estimate {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// Take missing parameters from this file, and run the circuit on its content
    #[arg(long = "for", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Estimate the largest proof under the key family that `setup --up-to` makes, for an input of this
    /// size, for example 16M (of 2^20 bytes). For circuits that take any file: it has zeros only
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "file")]
    pub(crate) up_to: Option<u64>,
    /// Assume at most this much memory (per rank), for example 8G or 512M (powers of 1024)
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// Assume N proving ranks on machines like this one, and a network without delay
    #[arg(long, value_name = "N", value_parser = threads)]
    pub(crate) ranks: Option<NonZeroUsize>,
    /// Provers per rank [default: the threads of this process]
    // For one rank, --threads has this number, and sets what is measured as well.
    #[arg(long, value_name = "N", value_parser = threads, requires = "ranks")]
    pub(crate) provers_per_rank: Option<NonZeroUsize>,
    /// Estimate proofs that are not zero-knowledge, without the two mask wires per subcircuit
    #[arg(long)]
    pub(crate) no_zero_knowledge: bool,
    /// Also say what fits on a GPU with this much memory, for example 24G, and how many cores like these keep it busy
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu: Option<u64>,
    /// Also say what a setup ceremony for these keys takes, for contributors and for the coordinator
    #[arg(long)]
    pub(crate) ceremony: bool,
    /// The number of contributors, one after another
    #[arg(long, value_name = "K", default_value_t = 10, requires = "ceremony")]
    pub(crate) contributors: u32,
    /// The bytes per second that contributors download and upload, for example 20M (of 2^20 bytes)
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "20M", requires = "ceremony")]
    pub(crate) bandwidth: u64,
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
    // The simulation has a rule for each design and no measurement of its own, so it needs constants from a node, and it
    // cannot be combined with the estimate for a network without delay.
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
    /// Read known properties of the cluster from this TOML file; others are assumed
    #[arg(long, value_name = "FILE", requires = "cores")]
    pub(crate) cluster: Option<PathBuf>,
    /// The design of the coordinator: flat, pool, slices or tree [default: pool with up to 8 ranks,
    /// slices with up to 256, then tree]
    #[arg(long, value_name = "NAME", requires = "cores", value_parser = Design::named)]
    pub(crate) design: Option<Design>,
    /// Predict N subcircuits of the same mean size, instead of the circuit's number
    #[arg(
        long,
        value_name = "N",
        requires = "cores",
        value_parser = clap::value_parser!(u64).range(1..=1 << 31)
    )]
    pub(crate) subcircuits: Option<u64>,
    /// Measure the constants of this machine and write them to FILE, instead of estimating a circuit
    #[arg(long, value_name = "FILE", conflicts_with_all = ["circuit", "parameters", "file", "up_to"])]
    pub(crate) calibrate: Option<PathBuf>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
    }
}
