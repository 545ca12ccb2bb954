//! `hekaton prove`, on threads and on ranks.

use clap::Args;
use hekaton_terminal::options::{Threads, size, threads};
use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// The options of `prove`.
#[derive(Debug, Args)]
#[command(after_help = super::help_after(
    "Examples:
  hekaton prove FILE --keys FILE.keys --proof FILE.proof
  hekaton prove FILE --keys FILE.keys --run DIR           # can be interrupted
  hekaton prove FILE --keys FILE.keys --run DIR --resume  # resumes it",
))]
pub struct Prove {
    /// The input; `hekaton circuits` describes it for each circuit
    pub file: PathBuf,
    /// The key store or key family, written by `hekaton setup`. On many ranks: a key store
    #[arg(long, value_name = "DIR")]
    pub keys: PathBuf,
    /// Write the proof to this file [default: FILE.proof, or DIR/proof with --run DIR]
    #[arg(long, value_name = "FILE")]
    pub(crate) proof: Option<PathBuf>,
    /// Also write the public values to this file, for `verify --public @FILE` [default: the proof's
    /// name with .public.json, where the values take more than 1,024 bytes]
    #[arg(long, value_name = "FILE")]
    pub(crate) public: Option<PathBuf>,
    /// Keep completed work in this directory, so that an interrupted run can be resumed; the
    /// directory must be new or empty unless --resume is given
    #[arg(long, value_name = "DIR")]
    pub(crate) run: Option<PathBuf>,
    /// Resume the run in --run DIR, or start it if DIR holds no run yet
    #[arg(long, requires = "run")]
    pub(crate) resume: bool,
    /// Seconds without a sign of life after which a process on another machine counts as dead and its
    /// run is taken over; 1 to 600
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 30,
        value_parser = clap::value_parser!(u64).range(1..=600),
        requires = "run"
    )]
    pub(crate) lease: u64,
    /// Make a direct proof: that of each subcircuit, for up to about 200 of them, which a contract on the
    /// EVM can verify. It cannot be made into an aggregated proof later, nor the other way round
    #[arg(long)]
    pub(crate) direct: bool,
    /// With --direct: 32 bytes that the proof is bound to, as hexadecimal digits, for example the hash of
    /// a chain, a contract and a recipient [default: zeros]
    #[arg(long, value_name = "HEX", value_parser = super::shared::context, requires = "direct")]
    pub(crate) context: Option<[u8; 32]>,
    /// Write events to this file as JSON lines; docs/guide/events.md has the schema. An existing
    /// file is replaced, or appended to with --resume. With --run DIR, the same events also go to
    /// DIR/events.jsonl
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Use at most this much memory (per rank, with --mpi), for example 8G or 512M (powers of
    /// 1024), by running fewer provers at once and dropping keys from memory after use
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) memory_limit: Option<u64>,
    /// The GPUs that prove beside the cores: auto, all that are found, for circuits of at least 2^25 constraints; off; or numbers, for
    /// example 0,1. With --mpi, each rank takes one of them
    #[arg(long, value_name = "GPUS", default_value = "auto", value_parser = gpus)]
    pub(crate) gpu: Gpus,
    /// Use at most this much memory of each GPU [default: 90 % of what is free]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) gpu_memory: Option<u64>,
    /// Skip each prover's check of its witness (a wrong witness is then found only at the end of
    /// the run)
    #[arg(long)]
    pub(crate) no_check: bool,
    #[command(flatten)]
    pub(crate) ranks: Ranks,
    /// FOR TESTS ONLY: derive all randomness from a number. The proof is then NOT zero-knowledge
    // Hidden, because only tests need the same proof twice.
    #[arg(long, value_name = "SEED", hide = true)]
    pub(crate) insecure_seed: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

impl Prove {
    /// Reports whether this process is one of many ranks.
    #[cfg(feature = "mpi")]
    pub(crate) fn is_on_ranks(&self) -> bool {
        self.ranks.mpi
    }

    /// The context of a direct run; none for an aggregated proof.
    pub(crate) fn direct_context(&self) -> Option<[u8; 32]> {
        self.direct.then(|| self.context.unwrap_or([0; 32]))
    }
}

/// The GPUs of a run; see [`Prove::gpu`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// All, if they are worth it
    Auto,
    /// None
    Off,
    /// Those with these numbers
    These(Vec<usize>),
}

fn gpus(text: &str) -> Result<Gpus, String> {
    let error = || "expected auto, off, or numbers of GPUs, for example 0,1".to_owned();
    match text {
        "auto" => Ok(Gpus::Auto),
        "off" => Ok(Gpus::Off),
        _ => {
            let numbers = text.split(',').map(str::parse).collect::<Result<Vec<usize>, _>>();
            let numbers = numbers.map_err(|_| error())?;
            let differ = numbers.iter().collect::<BTreeSet<_>>().len() == numbers.len();
            if differ { Ok(Gpus::These(numbers)) } else { Err("a GPU is named twice".to_owned()) }
        }
    }
}

/// Proving on many ranks.
#[derive(Debug, Args)]
#[command(next_help_heading = "On many ranks (docs/guide/cluster.md)")]
pub(crate) struct Ranks {
    /// This process is a rank that mpirun or `srun --mpi=pmix` started; start all ranks with
    /// the same arguments
    // Not detected from the environment: under a launcher that is not recognized, every process would prove the whole
    // input. A rank's threads follow from --provers-per-rank and the ranks on its node.
    #[arg(long, conflicts_with = "threads")]
    pub(crate) mpi: bool,
    /// Let rank 0, the coordinator, prove too; auto: with up to 8 ranks
    #[arg(long, value_enum, default_value_t = RootProves::Auto, requires = "mpi")]
    pub(crate) root_proves: RootProves,
    /// Single-threaded provers per rank [default: the cores that SLURM or the affinity mask allows]
    #[arg(long, value_name = "N", value_parser = threads, requires = "mpi")]
    pub(crate) provers_per_rank: Option<NonZeroUsize>,
    /// dynamic: ranks pull subcircuits as they finish others; static: each rank gets a fixed share,
    /// as in the paper
    #[arg(long, value_enum, default_value_t = ScheduleOption::Dynamic, requires = "mpi")]
    pub(crate) schedule: ScheduleOption,
    /// The ranks that execute the circuit. root: rank 0, which sends each subcircuit its values; ranks:
    /// each rank its own part, so all ranks read FILE; auto: ranks, if there are more than 8 and the
    /// circuit can execute a part of itself. A circuit with memories always has root, because the last
    /// access to a cell may be in any part
    #[arg(long, value_enum, default_value_t = ExecuteOption::Auto, requires = "mpi")]
    pub(crate) execute: ExecuteOption,
    /// The same as --execute ranks: each rank reads the values of its parts from the witness FILE
    #[arg(long, requires = "mpi", conflicts_with = "execute")]
    pub(crate) witness_on_ranks: bool,
    /// Ranks per leader, which relays messages between them and rank 0; 0: no leaders [default: 32 with
    /// more than 256 ranks]
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
    /// Seconds that a round, or a phase of the aggregation, may take before the job ends as if a rank
    /// were lost; for ranks that are alive but do not answer [default: no limit]
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
    /// Let only rank 0 read --keys, and send them to each node, into --stage-keys DIR [default: the
    /// node's temporary directory]
    #[arg(long, requires = "mpi")]
    pub(crate) keys_from_root: bool,
}

/// The choice whether rank 0 also proves; see [`Ranks::root_proves`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RootProves {
    /// With up to 8 ranks
    Auto,
    /// Always
    Yes,
    /// Never
    No,
}

/// The ranks that execute the circuit; see [`Ranks::execute`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExecuteOption {
    /// Ranks, with more than 8 of them and a circuit that can execute a part of itself
    Auto,
    /// Rank 0
    Root,
    /// Each rank its own part
    Ranks,
}

/// The assignment of subcircuits to ranks; see [`Ranks::schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ScheduleOption {
    /// Ranks pull subcircuits as they finish others
    Dynamic,
    /// Each rank gets a fixed share
    Static,
}
