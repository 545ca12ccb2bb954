//! `hekaton` with the standard circuits.

use hekaton_app::App;
use hekaton_cli::{ImportedCircuits, KeyDirectory, MachinePrograms, NewPackage};
use hekaton_directory_circuit::Epochs;
use hekaton_standard::{Chain, Merkle};
use hekaton_witness::StateWitness;
use std::process::ExitCode;

/// Faster than the allocator of musl, which static programs would use (Cargo.toml).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    App::new("hekaton")
        .circuit::<Merkle>()
        .circuit::<Chain>()
        .circuit::<Epochs>()
        .circuit::<StateWitness>()
        .with(NewPackage)
        .with(ImportedCircuits)
        .with(MachinePrograms)
        .with(KeyDirectory)
        .built_with_mpi_by("cargo install --path hekaton-cli --features mpi")
        .run()
}
