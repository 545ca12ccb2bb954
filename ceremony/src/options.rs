//! The command line.

use clap::{Args, Parser, Subcommand};
use hekaton_ceremony::Chain;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::manual::Manual;
use hekaton_terminal::options::{THREADS, Threads};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The codes with which the program exits.
const EXIT_CODES: &str = "Exit codes:
  0    done; with a service, for contribute and send: the contribution is in
       the transcript
  1    a check fails, or a contribution is refused
  2    the command line is wrong
  3    a file cannot be used: it is missing, damaged, in the way, or from
       another ceremony
  4    the command failed: a service did not answer, a deadline has passed, a
       disk is full
  130  interrupted; run the same command to continue";

/// Setup ceremonies: contribute to them, coordinate them, serve them
#[derive(Debug, Parser)]
#[command(name = "hekaton-ceremony", bin_name = "hekaton ceremony", version, after_help = exit::help_after("Examples:
  hekaton ceremony contribute https://ceremony.example --name Alice --invitation CODE
  hekaton ceremony serve powers --listen 0.0.0.0:8650 --invitations invitations.txt

The commands that need a circuit are in the program hekaton:
  hekaton ceremony new ..      begin a ceremony: for powers, or for the keys of a circuit
  hekaton ceremony verify ..   check a ceremony: records, every point, and the keys
  hekaton ceremony finish ..   end a ceremony after a check of everything, and write the keys

docs/guide/ceremony.md has a walkthrough for coordinators, contributors, auditors and
users of keys.", EXIT_CODES))]
pub(crate) struct Options {
    /// Print results as one JSON object on standard output
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Contribute: multiply by secrets that nobody else knows, prove knowledge of them, and forget them
    Contribute(Contribute),
    /// Download a ceremony, or write its state as one file for contributors without a network
    Fetch(Fetch),
    /// Send a contribution that was made without a network
    Send(Send),
    /// Check a contribution, and accept it if it is valid
    Add(Add),
    /// Mix in a public value that nobody could foresee, as the announced end of a ceremony
    Beacon(Beacon),
    /// Serve a ceremony over HTTP: its files, a queue of contributors, and their uploads
    Serve(Serve),
    /// Show the chains of a ceremony and their contributors
    Status(Status),
    /// Print the receipt of a contributor, to be signed and published
    Receipt(Receipt),
    #[command(flatten)]
    Manual(Manual),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton ceremony contribute https://ceremony.example --name Alice --invitation CODE
  hekaton ceremony contribute powers --name Alice --out alice
  hekaton ceremony contribute state --name \"Bob (bob.example)\" --only phi --out bob

With the address of a service, this waits for its turn, downloads, computes, uploads and
waits for the verdict. It keeps everything but secrets in the folder --out; after an
interruption, the same command continues from there. With a directory or a state, it
writes one file, which you send back to the coordinator.

Everything that was received is checked first. Secrets come from the operating system
and from what you type, are never written to a file, and are overwritten in memory.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct Contribute {
    /// The address of a service, the directory of a ceremony, or a state that `fetch` wrote
    #[arg(value_name = "URL|DIR|STATE")]
    pub(crate) ceremony: String,
    /// Your name in the record, at most 128 bytes; it is a claim that your receipt supports
    #[arg(long)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) invitation: Invitation,
    /// Contribute only to these chains: tau, phi, or numbers of segments, separated by commas
    #[arg(long, value_name = "CHAINS", value_delimiter = ',', value_parser = chain)]
    pub(crate) only: Vec<Chain>,
    /// Refuse any ceremony but the one with this digest, which its coordinator has announced
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) expect: Option<[u8; 32]>,
    /// The file to write; with a service, the folder of the contribution
    /// [default with a service: ceremony-DIGEST]
    #[arg(long, value_name = "PATH")]
    pub(crate) out: Option<PathBuf>,
    /// Do not ask for confirmation or for a text
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

fn chain(text: &str) -> Result<Chain, String> {
    Chain::named(text).ok_or_else(|| "expected tau, phi, or the number of a segment".to_owned())
}

fn digest(text: &str) -> Result<[u8; 32], String> {
    let bytes = hex::decode(text).ok().and_then(|bytes| bytes.try_into().ok());
    bytes.ok_or_else(|| "expected 64 hexadecimal digits".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton ceremony fetch https://ceremony.example --out powers --directory   # to verify it
  hekaton ceremony fetch https://ceremony.example --out state
  hekaton ceremony fetch powers --out state

To continue an interrupted download of a directory, run the command again.")]
pub(crate) struct Fetch {
    /// The address of a service, or the directory of a ceremony
    #[arg(value_name = "URL|DIR")]
    pub(crate) ceremony: String,
    /// The file to write; with --directory, the directory
    #[arg(long, value_name = "PATH")]
    pub(crate) out: PathBuf,
    /// Write the directory of the ceremony, with all that auditors need
    #[arg(long)]
    pub(crate) directory: bool,
    /// Refuse any ceremony but the one with this digest
    #[arg(long, value_name = "HEX", value_parser = digest)]
    pub(crate) expect: Option<[u8; 32]>,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton ceremony send alice https://ceremony.example --invitation CODE

The contribution is refused if somebody else has contributed since the state was fetched.")]
pub(crate) struct Send {
    /// The file of the contribution
    pub(crate) contribution: PathBuf,
    /// The address of the service
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) invitation: Invitation,
}

#[derive(Debug, Args)]
pub(crate) struct Invitation {
    /// The code of your invitation, if the service requires one; with @FILE, the code is read from the file,
    /// so that other users of this machine cannot see it
    #[arg(long, value_name = "CODE|@FILE")]
    invitation: Option<String>,
}

impl Invitation {
    /// Returns the code.
    pub(crate) fn code(&self) -> Result<Option<String>, Failure> {
        let Some(given) = &self.invitation else { return Ok(None) };
        let Some(path) = given.strip_prefix('@') else { return Ok(Some(given.clone())) };
        let path = Path::new(path);
        let text = exit::read_limited(path, 1 << 10, "the limit for an invitation")?;
        let code = String::from_utf8(text).map_err(|_| format!("{}: is not text", path.display()));
        // The file may hold a whole line of the coordinator's file: the code, then a name.
        let code = code.or_fail(exit::BAD_FILE)?.split_whitespace().next().map(str::to_owned);
        match code {
            Some(code) => Ok(Some(code)),
            None => Err(Failure::new(exit::BAD_FILE, format!("{}: is empty", path.display()))),
        }
    }
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton ceremony add powers alice")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct Add {
    /// The directory of the ceremony
    pub(crate) ceremony: PathBuf,
    /// The file of the contribution
    pub(crate) contribution: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton ceremony beacon powers --value 9f3c..

A beacon is a contribution whose secrets everybody can compute: the value is hashed
2^EXPONENT times. The security of keys does not depend on it, and it does not count as
a contributor.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct Beacon {
    /// The directory of the ceremony
    pub(crate) ceremony: PathBuf,
    /// The value, in hexadecimal digits
    #[arg(long, value_name = "HEX", value_parser = value)]
    pub(crate) value: Bytes,
    /// The binary logarithm of the number of hashes, at most 30
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u8).range(0..=30))]
    pub(crate) exponent: u8,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// A value of any length.
#[derive(Clone, Debug)]
pub(crate) struct Bytes(pub(crate) Vec<u8>);

fn value(text: &str) -> Result<Bytes, String> {
    let bytes = hex::decode(text).ok().filter(|bytes| (1..=1024).contains(&bytes.len()));
    bytes.map(Bytes).ok_or_else(|| "expected 2 to 2048 hexadecimal digits".to_owned())
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton ceremony serve powers --listen 127.0.0.1:8650 --invitations invitations.txt
  hekaton ceremony serve merkle --listen 0.0.0.0:8650 --open --deadline 2h

Each line of the file of invitations has a code of at least 16 characters and, if it is
for one person only, a name. A code is good for one contribution to each chain.

Contributors wait for their turn. At a time, one contributor works on each segment, and
one on both chains of powers. The deadline covers download, computation and upload, and
is extended while bytes of the upload arrive. The service holds the directory's lock: stop it for `add`,
`beacon` and `finish`. It speaks HTTP, directly or behind a reverse proxy with TLS:
the security of keys depends on neither.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct Serve {
    /// The directory of the ceremony
    pub(crate) ceremony: PathBuf,
    /// The address to listen on
    #[arg(long, value_name = "IP:PORT", default_value = "127.0.0.1:8650")]
    pub(crate) listen: SocketAddr,
    /// The file of invitations
    #[arg(long, value_name = "FILE", required_unless_present = "open")]
    pub(crate) invitations: Option<PathBuf>,
    /// Admit everybody
    #[arg(long, conflicts_with = "invitations")]
    pub(crate) open: bool,
    /// The time that each contributor has, for example 90s, 30m or 2h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = time)]
    pub(crate) deadline: Duration,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// Reads a time: at least as long as contributors may need to notice their turn, and at most a month.
fn time(text: &str) -> Result<Duration, String> {
    let (number, unit) =
        text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit {
        "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        _ => None,
    };
    let seconds = number.parse::<u64>().ok().zip(unit).and_then(|(n, unit)| n.checked_mul(unit));
    let seconds = seconds.filter(|seconds| (5..=31 * 86_400).contains(seconds));
    seconds
        .map(Duration::from_secs)
        .ok_or_else(|| "expected a time from 5s to 31 days, for example 90s, 30m or 2h".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    /// The address of a service, the directory of a ceremony, or a state
    #[arg(value_name = "URL|DIR|STATE")]
    pub(crate) ceremony: String,
}

#[derive(Debug, Args)]
#[command(after_help = "Example:
  hekaton ceremony receipt powers --name Alice > alice.txt
  ssh-keygen -Y sign -n hekaton-ceremony -f ~/.ssh/id_ed25519 alice.txt

The receipt lists all contributions under this name, which anybody could have used.
Contributors should sign the receipt that `contribute` wrote, which lists only their own.")]
pub(crate) struct Receipt {
    /// The directory of the ceremony, or a state
    pub(crate) ceremony: PathBuf,
    /// The name of the contributor
    #[arg(long)]
    pub(crate) name: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Options::command().debug_assert();
        let seconds = |text| time(text).map(|time| time.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("30m"), Ok(1_800));
        assert_eq!(seconds("744h"), Ok(31 * 86_400));
        for text in ["", "30", "m", "0s", "4s", "-1s", "745h", "1d", "99999999999999999999s"] {
            assert!(seconds(text).is_err(), "{text}");
        }
    }
}
