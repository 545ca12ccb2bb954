//! `hekaton estimate --calibrate`.

use hekaton_core::LocalEngine;
use hekaton_core::system;
use hekaton_plan::simulate::{Source, calibrate};
use hekaton_terminal::exit::{self, Failure, OrFail};
use hekaton_terminal::output;
use hekaton_terminal::progress::Display;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::Path;

/// Measures the constants of this machine and writes them to a file.
pub(crate) fn run(path: &Path, threads: Option<NonZeroUsize>, json: bool) -> Result<(), Failure> {
    let engine = LocalEngine::new(threads).or_fail(exit::FAILED)?;
    let display = Display::new();
    let step = |what: &str| display.line(&format!("measuring {what}"));
    let constants = calibrate(&engine, env!("CARGO_PKG_VERSION"), &system::processor(), &step)
        .or_fail(exit::FAILED)?;
    let text = format!("{:#}\n", constants.to_json());
    let failure = |e| Failure::new(exit::BAD_FILE, format!("{}: {e}", path.display()));
    hekaton_files::write(path, text.as_bytes()).map_err(failure)?;
    drop(display);
    // A prediction whose design needs one of these refuses the file, so the user should state them now.
    let absent: Vec<&str> = constants.absent().into_iter().map(|c| c.name()).collect();
    let mut object = constants.to_json();
    object["ok"] = Value::Bool(true);
    object["file"] = json!(path);
    object["not_measured"] = json!(absent);
    let mut table = String::new();
    for (constant, found) in constants.iter() {
        let how = match &found.source {
            Source::Measured(how) => how,
            Source::Assumed => "",
        };
        table += &format!("{:<34} {:>9.2e}  {how}\n", constant.name(), found.value);
    }
    for name in absent {
        table += &format!("{name:<34} {:>9}  state it in the cluster file, under [assumed]\n", "-");
    }
    table += &format!("\nwrote {}", path.display());
    output::result(json, &object, &table)
}
