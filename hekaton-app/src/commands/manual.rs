//! `hekaton completions` and `hekaton man`: generated from the definition of the command line.

use crate::app::App;
use crate::command_line::command_line;
use clap_complete::Shell;
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use serde_json::json;
use std::path::Path;

pub(crate) fn completions(shell: Shell, app: &App) -> Result<(), Failure> {
    // Into memory first: the generator panics if its output is a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command_line(app), app.name(), &mut script);
    output::result(false, &json!({}), String::from_utf8_lossy(&script).trim_end())
}

/// Writes one page for the program and one for each command.
pub(crate) fn man(directory: &Path, app: &App, json: bool) -> Result<(), Failure> {
    if !directory.is_dir() {
        return Err(Failure::new(
            exit::BAD_FILE,
            format!("{} is not a directory: create it first", directory.display()),
        ));
    }
    clap_mangen::generate_to(command_line(app), directory)
        .map_err(|e| format!("{}: {e}", directory.display()))
        .or_fail(exit::BAD_FILE)?;
    let lines = format!(
        "wrote the man pages into {}; read them with: man {}",
        directory.display(),
        directory.join(format!("{}.1", app.name())).display()
    );
    output::result(json, &json!({ "ok": true, "directory": directory }), &lines)
}
