//! The commands for completions and man pages.

use crate::exit::Failure;
use crate::output;
pub use hekaton_service::manual::Manual;
use serde_json::json;

/// Runs one of the commands for a program, and prints the result.
///
/// # Errors
/// Fails if the man pages cannot be written, or standard output is closed.
pub fn run(command: &Manual, program: clap::Command, json: bool) -> Result<(), Failure> {
    let text = command.run(program).map_err(|why| Failure::new(why.code, why.message))?;
    output::result(json, &json!({ "ok": true, "text": text }), &text)
}
