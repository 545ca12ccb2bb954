//! Collects raw results in `points.csv`, `summary.json` and `claims.json`.

use super::claims;
use super::environment::Environment;
use super::failure::{BAD_FILE, Failure};
use super::files;
use super::measured::{Measured, summarize};
use super::outcome;
use super::plan::{self, Plan, SCHEMA};
use super::rows::Row;
use super::session::Session;
use serde_json::{Value, json};

/// Reads all repetitions of the result set, those that do not count included.
pub(crate) fn rows(session: &Session, plan: &Plan, digest: &str) -> Result<Vec<Row>, Failure> {
    let raw = session.results.join("raw");
    let mut rows = Vec::new();
    for path in if raw.is_dir() { files::entries(&raw)? } else { vec![] } {
        let Some((task, failed)) = plan::task_of(&path) else { continue };
        let Some(point) = plan.point(&task.0) else {
            eprintln!("{}: not in the plan, left out", path.display());
            continue;
        };
        let mut row = outcome::judge(&path, point, &task, digest);
        if failed && row.failure.is_none() {
            row.failure = Some("marked as failed".to_owned());
        }
        rows.push(row);
    }
    let place = |row: &Row| plan.points.iter().position(|p| p.id == row.point.id);
    rows.sort_by_key(|row| (place(row), row.repetition, row.failure.is_none()));
    Ok(rows)
}

/// Writes `points.csv`, `summary.json` and `claims.json`.
pub(crate) fn collect(session: &Session) -> Result<(), Failure> {
    let plan = Plan::read(&session.results)?;
    let environment = Environment::read(&session.environment_file())?;
    let rows = rows(session, &plan, &environment.digest)?;
    if rows.is_empty() {
        let why = "no raw results; `run` writes them";
        return Err(Failure::new(BAD_FILE, format!("{}: {why}", session.results.display())));
    }
    for row in &rows {
        if let Some(why) = &row.failure {
            eprintln!("{}-{}: no point: {why}", row.point.id, row.repetition);
        }
    }
    let fields = rows.iter().map(Row::fields);
    files::write_csv(&session.results.join("points.csv"), Row::head(), fields)?;
    let measured = summarize(&plan, &rows);
    let experiments: Vec<Value> = (session.experiments.iter())
        .map(|e| {
            json!({
                "name": e.name, "title": e.title, "shows": e.shows, "x": e.x, "y": e.y, "series": e.series,
                "paper": e.paper, "claims": e.claims, "circuit": e.circuit(),
                "skipped": plan.skipped.get(&e.name),
            })
        })
        .collect();
    let points: Vec<Value> = measured.iter().map(Measured::object).collect();
    let summary = json!({
        "schema": SCHEMA, "environment": environment.digest, "experiments": experiments,
        "points": points,
    });
    files::write_json(&session.results.join("summary.json"), &summary)?;
    let claims = claims::evaluate(session, &plan, &measured, &environment.digest)?;
    for claim in &claims {
        eprintln!("{:<3} {:<8} {}: {}", claim.id, claim.verdict.word(), claim.text, claim.found);
    }
    let list: Vec<Value> = claims.iter().map(claims::Claim::object).collect();
    let object = json!({ "schema": SCHEMA, "environment": environment.digest, "claims": list });
    files::write_json(&session.results.join("claims.json"), &object)?;
    let good = rows.iter().filter(|row| row.failure.is_none()).count();
    eprintln!(
        "{good} repetitions of {} points, {} that do not count: {}",
        measured.iter().filter(|m| m.repetitions > 0).count(),
        rows.len() - good,
        session.results.join("points.csv").display()
    );
    Ok(())
}
