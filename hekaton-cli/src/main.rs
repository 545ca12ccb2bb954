//! `hekaton` with the standard circuits.

use hekaton_cli::App;
use hekaton_directory_circuit::Epochs;
use hekaton_standard::{Chain, Merkle};
use hekaton_witness::StateWitness;
use std::process::ExitCode;

fn main() -> ExitCode {
    App::new("hekaton")
        .circuit::<Merkle>()
        .circuit::<Chain>()
        .circuit::<Epochs>()
        .circuit::<StateWitness>()
        .run()
}
