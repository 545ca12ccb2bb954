//! Runs the experiments of the paper and evaluates them: paper-results/README.md.
//!
//! `cargo run --release -p benches --bin experiment -- all --scale tiny`

use std::process::ExitCode;

fn main() -> ExitCode {
    benches::experiment::main()
}
