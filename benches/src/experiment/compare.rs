//! The model's predictions next to the medians, as a table in JSON.

use super::collect;
use super::environment::Environment;
use super::failure::{BAD_FILE, Failure};
use super::measured::summarize;
use super::model;
use super::plan::Plan;
use super::session::Session;
use serde_json::{Value, json};
use std::thread::available_parallelism;

/// Prints how far predictions are from medians, one JSON object per point in the fields that the
/// benchmarks have. A ratio above 1 means that the run was faster than predicted.
pub(crate) fn compare(session: &Session, experiments: &[String]) -> Result<(), Failure> {
    let chosen = session.chosen(experiments)?;
    let plan = Plan::read(&session.results)?;
    let environment = Environment::read(&session.environment_file())?;
    let model = model::read(session, &environment.digest)?.ok_or_else(|| {
        let why = "no model.csv; `experiment model` writes it";
        Failure::new(BAD_FILE, format!("{}: {why}", session.results.display()))
    })?;
    let measured = summarize(&plan, &collect::rows(session, &plan, &environment.digest)?);
    let here = available_parallelism().map_or(1, std::num::NonZero::get);
    for found in model::comparisons(session, &measured, &model) {
        let point = &found.measured.point;
        if !chosen.iter().any(|e| e.name == point.experiment) {
            continue;
        }
        let plain = Some((found.seconds, found.band[0] / found.seconds));
        // Pairs of a prediction and a run do not notice that the machine's speed drifts.
        let adjusted = found.adjusted.map(|s| (s, found.ratio.unwrap_or(found.band[0] / s)));
        for (name, times) in [("", plain), (", less other programs", adjusted)] {
            let Some((seconds, ratio)) = times else { continue };
            let row = json!({
                "bench": format!("{}, {}{name}", point.experiment, found.column),
                "point": point.id, "size": point.ranks(), "threads": point.cores.min(here),
                "ours": seconds, "rival": "model", "theirs": found.band[0],
                "band": [found.band[1], found.band[2]], "ratio": ratio,
                "unit": "s", "repetitions": found.measured.repetitions,
            });
            print(&row);
        }
    }
    Ok(())
}

#[allow(clippy::print_stdout, reason = "the result of the command")]
fn print(row: &Value) {
    println!("{row}");
}
