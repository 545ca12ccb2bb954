//! Helpers of the tests.

use hekaton_testing::Tool;
use std::path::Path;
use std::process::Command;

/// The program `hekaton`, beside `hekaton-directory`, which it runs.
pub(crate) fn tool() -> Tool {
    let program = Path::new(env!("CARGO_BIN_EXE_hekaton-directory")).with_file_name("hekaton");
    assert!(program.is_file(), "{} is missing: cargo build -p hekaton-cli", program.display());
    Tool(program)
}

/// The program, with arguments.
pub(crate) fn command(args: &[&str]) -> Command {
    tool().command(args)
}

/// Runs a command that must succeed; returns its standard output.
#[track_caller]
pub(crate) fn ok(args: &[&str]) -> String {
    tool().ok(args)
}

/// Runs a command that must fail with this exit code and an error that contains this text.
#[track_caller]
pub(crate) fn fails(code: i32, says: &str, args: &[&str]) {
    tool().fails(code, says, args);
}
