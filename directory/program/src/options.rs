//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use hekaton_directory_server::Mode;
use hekaton_terminal::exit;
use hekaton_terminal::manual::Manual;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// The codes with which the program exits.
const EXIT_CODES: &str = "Exit codes:
  0    done; for lookup, history, epoch and audit: everything was verified
  1    an answer, a record or a proof is rejected, or a key is a test key
  2    the command line is wrong
  3    a file or folder cannot be used: missing, damaged, in the way, or of
       another version or setup
  4    the command failed: a server did not answer, a proof could not be
       made, a disk is full
  5    prove: interrupted; the same command continues
  130  interrupted immediately";

/// The end of a command's `--help`, with its examples.
fn help_after(examples: &str) -> String {
    exit::help_after(examples, EXIT_CODES)
}

/// A verifiable key directory: serve it, look labels up, prove and audit its epochs
#[derive(Debug, Parser)]
#[command(name = "hekaton-directory", bin_name = "hekaton directory", version, after_help = help_after("Examples:
  hekaton setup epochs -p profile=compress --up-to 4K --keys epochs.keys   # by whom clients trust
  hekaton directory init alice.dir --keys epochs.keys
  hekaton directory serve alice.dir --keys epochs.keys
  hekaton directory insert http://localhost:8640 alice 'her key'
  hekaton directory lookup http://localhost:8640 alice --parameters parameters.json
  hekaton directory audit http://localhost:8640 --parameters parameters.json --keys epochs.keys

DIRECTORY is the address of a service, or a folder that no service has open.
An update is accepted once it is on the server's disk, visible once the record of its
epoch is signed, and proven once a proof of its epoch is attached.
docs/guide/directory.md has all the steps."))]
pub(crate) struct Options {
    /// Print results as one JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Directory,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Directory {
    /// Make a new directory in a folder
    Init(DirectoryInit),
    /// Give labels new values
    Insert(DirectoryInsert),
    /// Look a label up, and verify the answer
    Lookup(DirectoryLookUp),
    /// Read all values that a label has had, and verify them
    History(DirectoryLookUp),
    /// Show an epoch, and verify its record
    Epoch(DirectoryEpoch),
    /// Verify all epochs: that each change inserted a label or raised its version by one
    Audit(DirectoryAudit),
    /// Serve a directory over HTTP, and prove its epochs
    Serve(Box<DirectoryServe>),
    /// Prove the epochs of a folder that have no proof
    Prove(DirectoryProve),
    /// Show what was signed last, or keep that outside of the folder, too
    Head(DirectoryHead),
    /// Check the whole database of a folder
    Check(DirectoryFolder),
    /// Remove what only trees of earlier epochs have
    Prune(DirectoryPrune),
    /// Erase a value; its digest stays
    Erase(DirectoryErase),
    #[command(flatten)]
    Manual(Manual),
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton directory init alice.dir --keys epochs.keys

The folder gets a key that signs records (signing.key, secret) and the parameters
(parameters.json), which clients must have from somebody they trust, and not from the
server that they check. Those who made the keys can forge epochs: that must not be
the operator of the directory.")]
pub(crate) struct DirectoryInit {
    /// The folder; it must be new or empty
    pub(crate) folder: PathBuf,
    /// The keys of the epochs' proofs, written by `hekaton setup epochs --up-to SIZE`; family.json and
    /// family.key of them are enough
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// Keep what was signed last in this file, too, on another disk than the folder: with it, an older copy of the
    /// folder is found out and signs nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
    /// Levels of the tree in a row of the database
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=8))]
    pub(crate) levels: u8,
    /// Accept keys made for tests, under which anyone can forge proofs
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

/// A folder that no service has open.
#[derive(Debug, Args)]
pub(crate) struct DirectoryFolder {
    /// The folder
    pub(crate) folder: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton directory head alice.dir
  hekaton directory head alice.dir /other/disk/alice.head

With FILE, the last signed epoch is kept there, too, from now on, by all commands on this
folder; serve refuses a folder that is older than FILE says, and a missing FILE. An
existing FILE must name the last signed epoch of this directory. Start a new one only if
no newer copy of the folder has ever been served. The file that the folder had before says
then that it was left, and backups that name it are refused.")]
pub(crate) struct DirectoryHead {
    /// The folder
    pub(crate) folder: PathBuf,
    /// The file, outside of the folder, on another disk
    pub(crate) file: Option<PathBuf>,
    /// Refuse a folder that does not have this signed record, as a client keeps it with --seen
    #[arg(long, value_name = "RECORD", requires = "file")]
    pub(crate) expect_head: Option<PathBuf>,
}

/// The directory that a client asks.
#[derive(Debug, Args)]
pub(crate) struct Asked {
    /// The address of a service, such as http://localhost:8640, or a folder that no service has open
    pub(crate) directory: String,
    /// The parameters of the directory, which must not come from its server [default: those in the folder]
    #[arg(long, value_name = "FILE")]
    pub(crate) parameters: Option<PathBuf>,
    /// Keep the last record in this file, and verify that later ones continue it: without it, a server
    /// can show an older state, or another history
    #[arg(long, value_name = "FILE")]
    pub(crate) seen: Option<PathBuf>,
    /// Reject the last epoch if it was closed longer ago than this, for example 5m, or that far in the future: a server with --heartbeat
    /// closes one in time, or hides it
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) max_age: Option<Duration>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton directory insert http://localhost:8640 alice 'her key'
  hekaton directory insert alice.dir bob --value-file bob.key --expected absent
  hekaton directory insert alice.dir --file updates.jsonl
  hekaton directory insert http://localhost:8640 alice 'her key' --wait proven

A line of the file is a JSON object with label, value (text) or value_base64, and, if the
label must have a version before, expected: its number, or \"absent\".")]
pub(crate) struct DirectoryInsert {
    /// The address of a service, such as http://localhost:8640, or a folder that no service has open
    pub(crate) directory: String,
    /// The label: 1 to 1,024 bytes of text
    #[arg(required_unless_present = "file", conflicts_with = "file")]
    pub(crate) label: Option<String>,
    /// The value, as text
    #[arg(required_unless_present_any = ["file", "value_file"], conflicts_with_all = ["file", "value_file"])]
    pub(crate) value: Option<String>,
    /// The value, as a file of at most 64 KiB
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) value_file: Option<PathBuf>,
    /// The version that the label must have before, or `absent`
    #[arg(long, value_name = "VERSION", value_parser = expected, conflicts_with = "file")]
    pub(crate) expected: Option<ExpectedOption>,
    /// Many updates, one on each line
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// A name for these updates, long and random: when the same command is run again with the same name, no update is done
    /// twice [default: a random one, which is shown if sending fails]
    #[arg(long, value_name = "NAME")]
    pub(crate) batch: Option<String>,
    /// The state of the updates at which to return; a folder that no service has open proves nothing
    #[arg(long, value_enum, default_value_t)]
    pub(crate) wait: Until,
    /// A file that has one token of the service's writers alone (`serve --tokens`)
    #[arg(long, value_name = "FILE")]
    pub(crate) token: Option<PathBuf>,
}

/// The state of updates that is waited for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    /// On the server's disk
    Accepted,
    /// In a signed record
    #[default]
    Visible,
    /// Covered by a proof, as the service says: an audit verifies it
    Proven,
}

/// The version that a label must have.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpectedOption {
    /// The label must not exist.
    Absent,
    /// The label must have this version.
    Version(u32),
}

fn expected(text: &str) -> Result<ExpectedOption, String> {
    match text {
        "absent" => Ok(ExpectedOption::Absent),
        number => number
            .parse()
            .map(ExpectedOption::Version)
            .map_err(|_| "expected the number of a version, or absent".to_owned()),
    }
}

#[derive(Debug, Args)]
#[command(after_help = help_after("Example:
  hekaton directory lookup http://localhost:8640 alice --parameters parameters.json --seen last

That a label has no value is an answer, too, and verified. What is rejected ends with
exit code 1; with the record, it may be evidence against the server."))]
pub(crate) struct DirectoryLookUp {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// The label
    pub(crate) label: String,
    /// As it was after this epoch [default: the last one]
    #[arg(long, value_name = "N")]
    pub(crate) epoch: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct DirectoryEpoch {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// The number of the epoch [default: the last one]
    pub(crate) epoch: Option<u32>,
}

#[derive(Debug, Args)]
#[command(after_help = help_after("Example:
  hekaton directory audit http://localhost:8640 --parameters parameters.json --keys epochs.keys
  hekaton directory audit http://localhost:8640 --parameters parameters.json --keys epochs.keys --wait

The keys must be those that the parameters name; family.json and family.key of them are
enough. An audit that holds says that between its first and its last epoch, labels whose
version is the same had the same value all the time."))]
pub(crate) struct DirectoryAudit {
    #[command(flatten)]
    pub(crate) asked: Asked,
    /// The keys of the epochs' proofs
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    /// The first record [default: epoch 0]
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u32,
    /// The last record [default: that of the last proven epoch, or, with --wait, of the last one]
    #[arg(long, value_name = "N")]
    pub(crate) to: Option<u32>,
    /// Wait until a service has proven the epochs that are audited: a proof takes its time after an update is visible
    #[arg(long)]
    pub(crate) wait: bool,
    /// Accept keys made for tests, under which anyone can forge proofs
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

/// Options for opening a folder to change it.
#[derive(Debug, Args)]
pub(crate) struct Serving {
    /// The most updates of an epoch
    #[arg(long, value_name = "N", default_value_t = 1024, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub(crate) max_updates: u32,
    /// Time that an update waits for others before its epoch is closed, for example 500ms, 10s or 5m
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = time)]
    pub(crate) interval: Duration,
    /// Close an epoch without changes if no other one was closed for this time, so that clients can tell a directory in which nothing
    /// happens from one that hides what does: 1s to 12h. Its proof takes as long as that of one update [default: none]
    #[arg(long, value_name = "TIME", value_parser = heartbeat)]
    pub(crate) heartbeat: Option<Duration>,
    /// The most updates that are accepted and not visible; more are refused for the moment
    #[arg(long, value_name = "N", default_value_t = 1 << 16)]
    pub(crate) max_pending: usize,
    /// Order of computing and writing epochs
    #[arg(long, value_enum, default_value_t)]
    pub(crate) mode: ModeOption,
}

/// The order of the two stages of a commit.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum ModeOption {
    /// Serial or pipelined, by what the stages take
    #[default]
    Auto,
    /// One after the other
    Serial,
    /// An epoch is computed while the one before it is written
    Pipelined,
    /// Several epochs are written at once, and become visible in their order
    AnyOrder,
}

impl From<ModeOption> for Mode {
    fn from(option: ModeOption) -> Self {
        match option {
            ModeOption::Auto => Self::Auto,
            ModeOption::Serial => Self::Serial,
            ModeOption::Pipelined => Self::Pipelined,
            ModeOption::AnyOrder => Self::AnyOrder,
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = help_after("Example:
  hekaton directory serve alice.dir --keys epochs.keys --listen 127.0.0.1:8640

The connections are not encrypted: to reach the service from elsewhere, put something in
front of it that speaks TLS, and use --tokens: all clients of a proxy look like programs on
this machine. Everybody may look labels up; with --tokens, updates need one of the
tokens in the file, and without it the service listens on this machine only.
GET /openapi.json describes the API, /metrics is for Prometheus.

A folder that is older than --head says is refused: it would sign second records of
epochs. Without a head outside of the folder, an older copy of it is served.

After the first Ctrl-C or SIGTERM, accepted updates still become visible; after the
second one, they are left for the next start. Nothing accepted is lost either way, and
a proof that was begun is continued at the next start."))]
pub(crate) struct DirectoryServe {
    /// The folder
    pub(crate) folder: PathBuf,
    /// The keys of the epochs' proofs [default: epochs are not proven]
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: Option<PathBuf>,
    /// Address to listen on; port 0 chooses a port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8640")]
    pub(crate) listen: SocketAddr,
    /// Take updates only with one of the tokens in this file, one on each line, each of at least 16 characters. A writer may
    /// change every label
    #[arg(long, value_name = "FILE")]
    pub(crate) tokens: Option<PathBuf>,
    /// The file outside of the folder that names the last signed epoch; it must be there, and is kept for all commands
    /// on this folder [default: as init or head has it]
    #[arg(long, value_name = "FILE")]
    pub(crate) head: Option<PathBuf>,
    /// Refuse a folder that does not have this signed record, as a client or a witness keeps it with --seen: it is an
    /// older copy
    #[arg(long, value_name = "RECORD")]
    pub(crate) expect_head: Option<PathBuf>,
    /// Refuse updates for the moment while more epochs than that have no proof, those without changes among them [default: no limit]
    #[arg(long, value_name = "N", requires = "keys")]
    pub(crate) max_unproven: Option<u32>,
    #[command(flatten)]
    pub(crate) serving: Serving,
    #[command(flatten)]
    pub(crate) proving: Proving,
}

/// Proofs made elsewhere.
#[derive(Debug, Args)]
pub(crate) struct ToOrchestrator {
    /// Have each proof made by hekaton-orchestrator, such as http://127.0.0.1:8642, instead of on this machine; its back-end has the
    /// same keys. Jobs continue when this command is stopped
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["threads", "slurm", "memory_limit"])]
    pub(crate) orchestrator: Option<String>,
    /// A file with this directory's token there
    #[arg(long, value_name = "FILE", requires = "orchestrator")]
    pub(crate) orchestrator_token: Option<PathBuf>,
    /// The chain there; its blocks are epoch-N
    #[arg(long, value_name = "NAME", default_value = "directory")]
    pub(crate) orchestrator_chain: String,
    /// The back-end there
    #[arg(long, value_name = "NAME", default_value = "epochs")]
    pub(crate) orchestrator_backend: String,
}

/// Options for proving epochs.
#[derive(Debug, Args)]
pub(crate) struct Proving {
    /// Submit this batch script for each proof, as slurm/prove.sbatch, instead of proving on this machine. The folder must be
    /// on a file system that all machines share; jobs keep running when this command is stopped
    #[arg(long, value_name = "SCRIPT", conflicts_with = "threads")]
    pub(crate) slurm: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) orchestrator: ToOrchestrator,
    /// Use at most this much memory to prove, for example 8G
    #[arg(long, value_name = "SIZE", value_parser = hekaton_terminal::options::size)]
    pub(crate) memory_limit: Option<u64>,
    #[command(flatten)]
    pub(crate) threads: hekaton_terminal::options::Threads,
    /// Accept keys made for tests, under which anyone can forge proofs
    #[arg(long, hide = true)]
    pub(crate) accept_test_keys: bool,
}

#[derive(Debug, Args)]
#[command(after_help = help_after("Example:
  hekaton directory prove alice.dir --keys epochs.keys"))]
pub(crate) struct DirectoryProve {
    /// The folder
    pub(crate) folder: PathBuf,
    /// The keys of the epochs' proofs
    #[arg(long, value_name = "DIR")]
    pub(crate) keys: PathBuf,
    #[command(flatten)]
    pub(crate) proving: Proving,
}

#[derive(Debug, Args)]
pub(crate) struct DirectoryPrune {
    /// The folder
    pub(crate) folder: PathBuf,
    /// The first epoch for which look-ups are still answered. Records, values, proofs and the log stay
    pub(crate) epoch: u32,
}

#[derive(Debug, Args)]
pub(crate) struct DirectoryErase {
    /// The folder
    pub(crate) folder: PathBuf,
    /// The label
    pub(crate) label: String,
    /// The version of the value
    pub(crate) version: u32,
}

/// Parses 500ms, 10s, 5m or 2h.
fn time(text: &str) -> Result<Duration, String> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let factor = match unit {
        "ms" => Some(1e-3),
        "s" => Some(1.0),
        "m" => Some(60.0),
        "h" => Some(3600.0),
        _ => None,
    };
    let seconds = number.parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
    seconds
        .filter(|seconds| (0.0..=86_400.0).contains(seconds))
        .map(Duration::from_secs_f64)
        .ok_or_else(|| "a time is written as 500ms, 10s, 5m or 2h, and is at most a day".to_owned())
}

/// Parses the time after which an epoch without changes is closed: records have no fractions of seconds, and clients reject what is older
/// than a day at most.
fn heartbeat(text: &str) -> Result<Duration, String> {
    let allowed = Duration::from_secs(1)..=Duration::from_secs(12 * 3600);
    time(text).and_then(|time| match allowed.contains(&time) {
        true => Ok(time),
        false => Err("expected 1s to 12h".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        for (text, millis) in
            [("500ms", 500), ("10s", 10_000), ("1.5m", 90_000), ("0s", 0), ("24h", 86_400_000)]
        {
            assert_eq!(time(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for text in ["", "10", "s", "-1s", "1x", "25h", "1e3s", "nan"] {
            assert!(time(text).is_err(), "{text}");
        }
        for (text, is_one) in [("999ms", false), ("1s", true), ("12h", true), ("13h", false)] {
            assert_eq!(heartbeat(text).is_ok(), is_one, "{text}");
        }
    }
}
