//! Reports a missing MPI, with what to install, before the bindings fail less clearly.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MPICC");
    // Not PATH, which differs between shells: an error is reported again in the next build anyway.
    // only the bindings need MPI
    if std::env::var_os("CARGO_FEATURE_MPI").is_none() {
        return;
    }
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| "mpicc".to_owned());
    if Command::new(&compiler).arg("--version").output().is_err() {
        println!(
            "cargo::error=MPI is missing ('{compiler}' cannot be run). On Debian and Ubuntu: \
             sudo apt-get install libopenmpi-dev openmpi-bin libclang-dev. On a cluster: module \
             load openmpi (or set MPICC). To build without MPI, leave out --features mpi."
        );
    }
}
