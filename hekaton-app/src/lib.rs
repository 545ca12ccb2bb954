//! The command line of the prover for circuits of one's own: setup, proofs on threads and on MPI ranks, verification, checks,
//! estimates and reports.
//!
//! ```no_run
//! use hekaton_app::App;
//! use hekaton_standard::Chain;
//!
//! fn main() -> std::process::ExitCode {
//!     App::new("chain").circuit::<Chain>().run()
//! }
//! ```
//!
//! Exit codes are documented in `--help`. The program `hekaton` is this one with circuits of its own, imports of circuits from other
//! tools, a RISC-V machine, and a key directory: `hekaton-cli`, whose [products](product) a program may have, too.

mod app;
mod application;
mod command_line;
mod commands;
mod event_files;
mod family;
mod gpu;
mod hints;
mod imported;
mod imports;
mod opened_keys;
mod options;
pub mod product;
mod programs;
mod public_values;
mod ranks;
mod report;
mod run;
mod subject;
mod transcripts;

pub use app::App;
