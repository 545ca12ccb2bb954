//! The command line.

use clap::{Args, Parser, Subcommand};
use hekaton_service::manual::Manual;
use std::ffi::OsString;
use std::path::PathBuf;

pub(crate) const EXIT_CODES: &str = "Exit codes:
  0  done
  1  the job is dead, skipped or cancelled; check: a promise is broken
  2  the command line or the settings are wrong
  3  a file or folder cannot be used
  4  the service refuses the request or does not answer, or the address of --listen
     cannot be used";

/// Orchestrates provers: runs a stream of proving jobs, survives failures, and publishes the proofs in order
#[derive(Parser)]
#[command(name = "hekaton-orchestrator", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    /// Print results as JSON, one object per line
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Start a process that takes jobs, runs them and publishes
    Serve(Serve),
    /// Start a process that only runs tasks, on the same folder as another one
    Work(Work),
    /// Submit files, each as a job of its own, or one job with several inputs
    Submit(Submit),
    /// Print the state of a job; without JOB, of the open jobs, the last ones that have ended, and the blocks that stand still
    Status(Status),
    /// Cancel a job
    Cancel(OfJob),
    /// Make a dead or cancelled job, or all dead jobs of a chain, live again; finished tasks stay finished
    Requeue(OfJobs),
    /// Make a chain continue without its next block, or without all next blocks, as long as they are dead
    Skip(OfJobs),
    /// Write the proof of a finished job, or of a published block, to a file
    Fetch(Fetch),
    /// Make a chain, or print the state of one
    Chain(ChainCommand),
    /// Print what a chain has published
    Proofs(Proofs),
    /// Remove the blocks after a given block from a chain (re-org)
    Revert(Revert),
    /// Check a workflow file, store it, and print the digest by which jobs name it
    Workflow(WorkflowCommand),
    /// Make a process claim no more tasks, and exit when its running tasks have ended
    Drain(ToService),
    /// Check the whole history of a folder against what the orchestrator promises
    Check(Check),
    /// Print the digest of a token, for the settings; reads the token from standard input
    TokenDigest,
    #[command(flatten)]
    Manual(Manual),
    /// Start a program that is killed with the process that starts it (used by the orchestrator itself)
    #[command(hide = true)]
    Exec(Exec),
}

#[derive(Args)]
pub(crate) struct Place {
    /// The folder of records, blobs and run directories; made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The settings (docs/guide/orchestrator.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) settings: Option<PathBuf>,
    /// Keep records in NATS JetStream at this address, such as nats://HOST:4222; all machines must then share the folder
    #[cfg(feature = "nats")]
    // Hidden, because an address may contain a password.
    #[arg(long, value_name = "ADDRESS", env = "HEKATON_NATS", hide_env_values = true)]
    pub(crate) nats: Option<String>,
    /// The name that distinguishes this orchestrator from others on the same NATS server
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "NAME", default_value = "hekaton", requires = "nats")]
    pub(crate) namespace: String,
    /// The number of NATS servers that keep each record. With 1, the server needs `sync_interval: always` (version 2.10.0 or later); with
    /// more, version 2.11.0 or later
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "N", default_value_t = 1, requires = "nats")]
    pub(crate) replicas: usize,
    /// The user's JWT and NKEY seed for NATS, as nsc writes them
    #[cfg(feature = "nats")]
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub(crate) nats_credentials: Option<PathBuf>,
    /// Add a back-end `prove` that runs `hekaton prove` with these keys
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: Option<PathBuf>,
    /// The program of that back-end
    #[arg(long, value_name = "FILE", default_value = "hekaton")]
    pub(crate) hekaton: PathBuf,
    /// The number of tasks to run at the same time [default: the settings' value, or 1]
    #[arg(long)]
    pub(crate) slots: Option<usize>,
    /// Send spans of jobs and tasks to an OpenTelemetry collector, such as http://127.0.0.1:4318
    #[cfg(feature = "traces")]
    #[arg(long, value_name = "ADDRESS", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub(crate) otlp: Option<String>,
    /// The time that running tasks may take when the process is asked to stop, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub(crate) grace: u64,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-orchestrator serve --data jobs --keys FILE.keys
  hekaton-orchestrator serve --data jobs --settings orchestrator.toml --listen 127.0.0.1:8642

The first SIGINT or SIGTERM gives running tasks --grace seconds to end; a second one ends them at
once. Either way, the next process on the folder resumes where this one stopped.")]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) place: Place,
    /// The address to listen on. Without tenants in the settings, it must be a local one (127.0.0.1)
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8642")]
    pub(crate) listen: String,
    /// Remove jobs that ended more than N days ago, with the blobs that only they use and their history [default: the settings' value, or
    /// keep everything]. Not with --nats
    #[arg(long, value_name = "N")]
    pub(crate) keep_days: Option<u32>,
}

#[derive(Args)]
pub(crate) struct Work {
    #[command(flatten)]
    pub(crate) place: Place,
    /// Also create tasks and publish, so that publication continues if the serving process dies
    #[arg(long)]
    pub(crate) collect: bool,
}

#[derive(Args)]
pub(crate) struct ToService {
    /// The service
    #[arg(long, value_name = "ADDRESS", default_value = "http://127.0.0.1:8642")]
    pub(crate) service: String,
    /// A file with the token of a tenant
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-orchestrator submit FILE --wait --output FILE.proof
  hekaton-orchestrator submit block-*.bin --chain main --wait   # in order, each after the one before
  hekaton-orchestrator submit --workflow zkevm.toml -i chunks=a.bin -i chunks=b.bin --chain main")]
pub(crate) struct Submit {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// Files; each is a job for --backend
    pub(crate) files: Vec<PathBuf>,
    /// The chain; created if it does not exist: without order if it is 'files', otherwise with strict order after 'genesis'
    #[arg(long, default_value = "files")]
    pub(crate) chain: String,
    /// The back-end
    #[arg(long, default_value = "prove")]
    pub(crate) backend: String,
    /// A workflow file instead of a back-end
    #[arg(long, value_name = "FILE", conflicts_with = "files")]
    pub(crate) workflow: Option<PathBuf>,
    /// An input of the workflow; may be repeated
    #[arg(short, long, value_name = "NAME=FILE", requires = "workflow")]
    pub(crate) input: Vec<String>,
    /// The height of the first block [default: after the last one that was accepted]
    #[arg(long)]
    pub(crate) block: Option<u64>,
    /// The name of the block [default: a digest of its content]
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// The block before the first one [default: the last one that was accepted]
    #[arg(long)]
    pub(crate) parent: Option<String>,
    /// Urgency, 0 is the most urgent
    #[arg(long, default_value_t = 1)]
    pub(crate) lane: u8,
    /// Wait until all are done; progress is reported on standard error
    #[arg(long)]
    pub(crate) wait: bool,
    /// Write the proof to this file; with several jobs, the proofs to this folder
    #[arg(long, value_name = "PATH", requires = "wait")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// The job: its handle, which `submit` prints, the beginning of that or of the block's name, CHAIN/HEIGHT, or CHAIN/NAME
    pub(crate) job: Option<String>,
}

#[derive(Args)]
pub(crate) struct OfJob {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// The job: its handle, which `submit` prints, the beginning of that or of the block's name, CHAIN/HEIGHT, or CHAIN/NAME
    pub(crate) job: String,
}

#[derive(Args)]
pub(crate) struct OfJobs {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// The job: its handle, which `submit` prints, the beginning of that or of the block's name, CHAIN/HEIGHT, or CHAIN/NAME
    #[arg(required_unless_present = "chain", conflicts_with = "chain")]
    pub(crate) job: Option<String>,
    /// All dead jobs of this chain, oldest first; `skip` stops at the first block that is not dead
    #[arg(long)]
    pub(crate) chain: Option<String>,
}

#[derive(Args)]
#[command(after_help = "Examples:
  hekaton-orchestrator fetch main/17 17.proof        # block 17 of a chain
  hekaton-orchestrator fetch main/9f2ab1 17.proof    # a name, or the beginning of one")]
pub(crate) struct Fetch {
    #[command(flatten)]
    pub(crate) of: OfJob,
    /// The file; with several outputs, their numbers are appended
    pub(crate) output: PathBuf,
}

#[derive(Args)]
pub(crate) struct ChainCommand {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// The chain
    pub(crate) chain: String,
    /// Create the chain with strict order; ID is the parent of its first block
    #[arg(long, value_name = "ID", conflicts_with = "unordered")]
    pub(crate) genesis: Option<String>,
    /// Create the chain without order
    #[arg(long)]
    pub(crate) unordered: bool,
    /// Create a chain of bundles: one job of --workflow for every --blocks blocks that CHAIN publishes
    #[arg(long, value_name = "CHAIN", requires = "genesis", requires = "bundle_workflow")]
    pub(crate) bundles_of: Option<String>,
    /// The number of blocks that make a bundle
    #[arg(long, value_name = "N", default_value_t = 8, requires = "bundles_of")]
    pub(crate) blocks: u32,
    /// The workflow file of a bundle's job. Its only input gets the outputs of the blocks
    #[arg(long = "workflow", id = "bundle_workflow", value_name = "FILE", requires = "bundles_of")]
    pub(crate) workflow: Option<PathBuf>,
    /// The urgency of bundles, 0 is the most urgent
    #[arg(long, default_value_t = 1, requires = "bundles_of")]
    pub(crate) lane: u8,
}

#[derive(Args)]
pub(crate) struct Proofs {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// The chain
    pub(crate) chain: String,
    /// Only entries after this revision
    #[arg(long, value_name = "REV", default_value_t = 0)]
    pub(crate) from: u64,
}

#[derive(Args)]
pub(crate) struct Revert {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// The chain
    pub(crate) chain: String,
    /// The last block that stays; the genesis to remove all blocks
    pub(crate) last: String,
    /// Its height
    pub(crate) block: u64,
    /// The block that is to follow; if it already does, nothing is removed
    #[arg(long, value_name = "ID")]
    pub(crate) next: Option<String>,
}

#[derive(Args)]
pub(crate) struct WorkflowCommand {
    #[command(flatten)]
    pub(crate) to: ToService,
    /// The workflow
    pub(crate) file: PathBuf,
}

#[derive(Args)]
pub(crate) struct Check {
    /// The folder
    #[arg(long, value_name = "DIR")]
    pub(crate) data: PathBuf,
    /// The time after which an unpublished block to which nothing has happened counts as a broken promise
    #[arg(long, value_name = "SECONDS", default_value_t = hekaton_orchestrator::standstill::PATIENCE.as_secs())]
    pub(crate) patience: u64,
}

#[derive(Args)]
pub(crate) struct Exec {
    pub(crate) parent: u32,
    #[arg(long)]
    pub(crate) memory: Option<u64>,
    // Behind `--`: the program has options of its own.
    #[arg(last = true)]
    pub(crate) program: Vec<OsString>,
}
