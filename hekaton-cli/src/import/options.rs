//! The options of `hekaton import`.

use clap::Args;
use hekaton_app::product::rows;
use hekaton_terminal::options::threads;
use std::num::NonZeroUsize;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  circom sha.circom --r1cs --wasm --sym --prime bls12381 --O1
  hekaton import sha.r1cs --sym sha.sym --provers 128 --dry-run   # compare the sizes of parts
  hekaton import sha.r1cs --sym sha.sym --provers 128 --out sha.hk
  hekaton check sha.hk sha.wtns
  hekaton setup sha.hk --keys sha.keys
  hekaton prove sha.wtns --keys sha.keys
  hekaton hash sha.wtns --keys sha.keys > public.json
  hekaton verify sha.wtns.proof --key sha.keys/verifying.key --public @public.json

A part has one row for each of its constraints, and one more row for each wire that it
shares with other parts. With --sym, --dry-run also lists templates that repeat: the
number of components, the constraints of each, and the wires that it shares with others.

docs/guide/circom.md explains all steps.")]
pub(crate) struct Import {
    /// The constraints, as `circom --r1cs --prime bls12381` writes them
    pub(crate) file: PathBuf,
    /// The names of wires, as `circom --sym` writes them, for messages about constraints
    #[arg(long, value_name = "FILE")]
    pub(crate) sym: Option<PathBuf>,
    /// The maximum number of rows of a part, or a power such as 2^17 [default: the cheapest of 2^14 to
    /// 2^20; more only where smaller parts share nearly all wires]
    #[arg(long, value_name = "N", value_parser = rows)]
    pub(crate) rows: Option<u64>,
    /// The number of provers that will prove the circuit [default: the cores of this machine]
    #[arg(long, value_name = "N", value_parser = threads, conflicts_with = "rows")]
    pub(crate) provers: Option<NonZeroUsize>,
    /// The circuit directory to write; it must be new or empty
    // Without --out and without --dry-run, a user has forgotten one of them: nothing is assumed.
    #[arg(long, value_name = "DIR", required_unless_present = "dry_run")]
    pub(crate) out: Option<PathBuf>,
    /// Only show what the cut would cost: parts, keys, memory and time for each size of parts
    #[arg(long, conflicts_with_all = ["out", "force"])]
    pub(crate) dry_run: bool,
    /// Import the circuit even if the cut more than doubles its constraints and one part alone would
    /// be faster
    #[arg(long)]
    pub(crate) force: bool,
}
