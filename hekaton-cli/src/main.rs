//! `hekaton` with the standard circuits.

use hekaton_cli::{Registry, run};
use hekaton_standard::{Chain, Merkle};
use std::process::ExitCode;

fn main() -> ExitCode {
    run(&Registry::new().with::<Merkle>().with::<Chain>())
}
