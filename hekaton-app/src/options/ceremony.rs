//! `hekaton ceremony`.

use super::Circuit;
use super::shared::rows;
use clap::{Args, Subcommand};
use hekaton_terminal::options::{THREADS, Threads, size};
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
#[command(after_help = "Commands of the program hekaton-ceremony, which contributors need alone:
  hekaton ceremony contribute   multiply by secrets that nobody else knows, prove that, and forget them
  hekaton ceremony fetch        download a ceremony, or write its state as one file
  hekaton ceremony send         send a contribution that was made without a network
  hekaton ceremony add          check a contribution, and accept it
  hekaton ceremony beacon       mix in a public value that nobody could foresee
  hekaton ceremony serve        serve a ceremony over HTTP
  hekaton ceremony status       show the chains of a ceremony and their contributors
  hekaton ceremony receipt      print the receipt of a contributor

A ceremony for powers, and one for a family from these powers:
  hekaton ceremony new --rows 2^18 --subcircuits 4096 --out powers
  hekaton ceremony contribute powers --name Alice --out alice    # on Alice's machine
  hekaton ceremony add powers alice
  hekaton ceremony finish powers
  hekaton ceremony new merkle --up-to 1M --powers powers --out merkle
  hekaton ceremony contribute merkle --name Bob --out bob
  hekaton ceremony add merkle bob
  hekaton ceremony finish merkle --powers powers --keys merkle.keys

Nobody can forge proofs under the keys unless everybody who contributed to one of the
chains kept and pooled their secrets. docs/guide/ceremony.md has a walkthrough for
coordinators, contributors, auditors and users of keys.")]
pub(crate) enum Ceremony {
    /// Begin a ceremony: for powers, or with a circuit for the keys of its family
    New(CeremonyNew),
    /// End a ceremony after a check of everything; for a family, also write its keys
    Finish(CeremonyFinish),
    /// Check a ceremony: what everybody contributed, every point, and the keys
    Verify(CeremonyVerify),
    /// A command of hekaton-ceremony with its arguments
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton ceremony new --rows 2^18 --subcircuits 4096 --out powers
  hekaton ceremony new merkle --up-to 1M --powers powers --out merkle
  hekaton ceremony new vm -p rows=4096 --subcircuits 256 --powers powers --out vm
  hekaton ceremony new ./sha.hk --r1cs sha.r1cs --powers powers --out sha    # an imported circuit

  hekaton ceremony new --rows 2^18 --subcircuits 4096 --powers-from challenge --out powers
  hekaton ceremony new --rows 2^18 --subcircuits 4096 --powers-from powers --out more

Powers serve all families with domains of up to --rows rows and up to --subcircuits
subcircuits. A family needs powers of a ceremony that is finished.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct CeremonyNew {
    #[command(flatten)]
    pub(crate) circuit: Circuit,
    /// For powers: the largest number of rows of a subcircuit, 2^k or 3 * 2^k, or a number that is
    /// rounded up to one
    #[arg(long, value_name = "N", value_parser = rows, conflicts_with = "powers")]
    pub(crate) rows: Option<u64>,
    /// The largest number of subcircuits of a proof: for powers, and for families whose inputs have no size
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 32))]
    pub(crate) subcircuits: Option<u64>,
    /// For a family: all inputs of up to this size, for example 16M (of 2^20 bytes)
    #[arg(long, value_name = "SIZE", value_parser = size, conflicts_with = "rows")]
    pub(crate) up_to: Option<u64>,
    /// For a family: the directory of the powers, whose ceremony is finished
    #[arg(long, value_name = "DIR")]
    pub(crate) powers: Option<PathBuf>,
    /// For powers: begin with those of others: the directory of a finished ceremony for powers, whose contributors count; or, for the
    /// chain of tau only, a challenge or a response of the powersoftau programs of Zcash and Filecoin, which
    /// serves 3/4 of its powers and counts for nobody
    #[arg(long, value_name = "DIR|FILE", conflicts_with = "powers")]
    pub(crate) powers_from: Option<PathBuf>,
    /// Refuse these unless this is the transcript digest of the ceremony, or the BLAKE2b-512 digest of the file
    #[arg(long, value_name = "HEX", value_parser = digest, requires = "powers_from")]
    pub(crate) expect: Option<Expected>,
    /// Extend the family of these keys, which come from a ceremony with the same powers, by the types that the circuit has in
    /// addition
    #[arg(long, value_name = "KEYS", requires = "powers")]
    pub(crate) extends: Option<PathBuf>,
    /// For an imported circuit: also compare its constraints with this source
    #[arg(long, value_name = "FILE", requires = "powers")]
    pub(crate) r1cs: Option<PathBuf>,
    /// For a family whose proofs are not to be zero-knowledge
    #[arg(long, requires = "powers")]
    pub(crate) no_zero_knowledge: bool,
    /// Split the types of a family into segments of at most this many points, to which different
    /// people can contribute at the same time [default: one segment]
    #[arg(long, value_name = "N", requires = "powers")]
    pub(crate) segment_points: Option<usize>,
    /// The announced source of a beacon, for example "the first block of Ethereum after 2027-01-01"
    #[arg(long, value_name = "TEXT", default_value = "", hide_default_value = true)]
    pub(crate) beacon: String,
    /// The directory to write; it must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

/// The digest of what a ceremony begins with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Expected {
    /// The digest of a transcript.
    Transcript([u8; 32]),
    /// The BLAKE2b-512 digest of a file.
    File([u8; 64]),
}

fn digest(text: &str) -> Result<Expected, String> {
    let bytes = hex::decode(text).ok();
    let found = bytes.and_then(|bytes| match bytes.len() {
        32 => bytes.try_into().ok().map(Expected::Transcript),
        _ => bytes.try_into().ok().map(Expected::File),
    });
    found.ok_or_else(|| {
        "expected 64 hexadecimal digits for a ceremony, or 128 for a file".to_owned()
    })
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton ceremony finish powers
  hekaton ceremony finish merkle --powers powers --keys merkle.keys
  hekaton ceremony finish sha --powers powers --circuit ./sha.hk --trial sha.wtns --keys sha.keys")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct CeremonyFinish {
    /// The directory of the ceremony
    pub(crate) ceremony: PathBuf,
    /// For a family: the directory of the powers
    #[arg(long, value_name = "DIR", requires = "keys")]
    pub(crate) powers: Option<PathBuf>,
    /// For a family: the directory for the keys, which must be new or empty
    #[arg(long, value_name = "DIR", requires = "powers")]
    pub(crate) keys: Option<PathBuf>,
    /// For a family that extends another one: that one's keys
    #[arg(long, value_name = "KEYS", requires = "keys")]
    pub(crate) extends: Option<PathBuf>,
    /// For an imported circuit: its directory
    #[arg(long, value_name = "DIR", requires = "keys")]
    pub(crate) circuit: Option<PathBuf>,
    /// Prove this input, or program for the machine, under the keys before they are made visible [default: the circuit's sample, or a
    /// program that does nothing]
    #[arg(long, value_name = "FILE", requires = "keys")]
    pub(crate) trial: Option<PathBuf>,
    /// Make the keys visible without a trial
    #[arg(long, requires = "keys", conflicts_with = "trial")]
    pub(crate) no_trial: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  hekaton ceremony verify powers
  hekaton ceremony verify merkle --powers powers --keys merkle.keys --receipt alice.txt
  hekaton ceremony verify merkle.keys/ceremony/family --records-only

Exit code 1 means that a check fails: do not use the keys. Exit code 3 means that a
file cannot be read, or belongs to another ceremony.")]
#[command(mut_arg("threads", |threads| threads.help(THREADS)))]
pub(crate) struct CeremonyVerify {
    /// The directory of the ceremony
    pub(crate) ceremony: PathBuf,
    /// For a family: the directory of the powers
    #[arg(long, value_name = "DIR", conflicts_with = "records_only")]
    pub(crate) powers: Option<PathBuf>,
    /// For a family that extends another one: that one's keys
    #[arg(long, value_name = "KEYS", requires = "powers")]
    pub(crate) extends: Option<PathBuf>,
    /// For an imported circuit: its directory
    #[arg(long, value_name = "DIR", requires = "powers")]
    pub(crate) circuit: Option<PathBuf>,
    /// Also compare these keys with the transcript
    #[arg(long, value_name = "DIR", requires = "powers")]
    pub(crate) keys: Option<PathBuf>,
    /// Also look for the contributions in this receipt; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) receipt: Vec<PathBuf>,
    /// Check the records only: who contributed, and that everybody knew their secrets
    #[arg(long)]
    pub(crate) records_only: bool,
    #[command(flatten)]
    pub(crate) threads: Threads,
}
