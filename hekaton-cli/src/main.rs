//! `hekaton` with the standard circuits.

use hekaton_cli::App;
use hekaton_directory_circuit::{Epochs, FullEpoch};
use hekaton_standard::{Chain, Merkle};
use hekaton_vm::Ram;
use hekaton_witness::StateWitness;
use std::process::ExitCode;

fn main() -> ExitCode {
    App::new("hekaton")
        .circuit::<Merkle>()
        .circuit::<Chain>()
        .circuit::<Ram>()
        .circuit::<Epochs>()
        .circuit::<FullEpoch>()
        .circuit::<StateWitness>()
        .run()
}
