//! `hekaton` with the circuits of the paper's experiments.

use hekaton_app::App;
use hekaton_directory_circuit::Epochs;
use hekaton_paper::{FullEpoch, Pedersen, Ram};
use hekaton_standard::{Chain, Merkle};
use hekaton_witness::StateWitness;
use std::process::ExitCode;

fn main() -> ExitCode {
    App::new("hekaton-paper")
        .circuit::<Merkle>()
        .circuit::<Chain>()
        .circuit::<Epochs>()
        .circuit::<StateWitness>()
        .circuit::<Ram>()
        .circuit::<FullEpoch>()
        .circuit::<Pedersen>()
        .run()
}
