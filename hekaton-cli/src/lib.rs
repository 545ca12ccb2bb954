//! The program `hekaton` as a library: the whole command line for any circuits.
//!
//! ```no_run
//! use hekaton_cli::App;
//! use hekaton_standard::{Chain, Merkle};
//!
//! fn main() -> std::process::ExitCode {
//!     App::new("hekaton").circuit::<Merkle>().circuit::<Chain>().run()
//! }
//! ```
//!
//! Exit codes are documented in `hekaton --help`.

mod app;
mod application;
mod command_line;
mod commands;
mod event_files;
mod family;
mod gpu;
mod hints;
mod imported;
mod machine;
mod opened_keys;
mod options;
mod public_values;
mod ranks;
mod report;
mod run;
mod subject;
mod transcripts;

pub use app::App;
