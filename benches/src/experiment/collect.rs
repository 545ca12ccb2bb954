//! From raw results to `points.csv`, `summary.json` and `claims.json`.

use super::claims;
use super::environment::Environment;
use super::failure::{BAD_FILE, Failure};
use super::files;
use super::outcome;
use super::plan::{self, Plan, SCHEMA};
use super::rows::{COLUMNS, Row};
use super::session::Session;
use super::spec::Point;
use super::statistics::Summary;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// One point with its repetitions.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) point: Point,
    /// How many repetitions count.
    pub(crate) repetitions: usize,
    /// How many do not.
    pub(crate) failed: usize,
    pub(crate) columns: BTreeMap<&'static str, Summary>,
}

impl Measured {
    /// The median of a column, or the value of a parameter.
    #[allow(clippy::cast_precision_loss, reason = "small numbers")]
    pub(crate) fn value(&self, name: &str) -> Option<f64> {
        let column = self.columns.get(name).map(|summary| summary.median);
        column.or_else(|| self.point.parameters.get(name).map(|value| *value as f64))
    }

    fn noisy(&self) -> bool {
        self.columns.get("seconds").is_some_and(Summary::noisy)
    }

    fn object(&self) -> Value {
        let columns: Map<String, Value> = (self.columns.iter())
            .map(|(name, s)| ((*name).to_owned(), json!([s.median, s.low, s.high])))
            .collect();
        json!({
            "point": self.point.id, "experiment": self.point.experiment,
            "scale": self.point.scale, "parameters": self.point.parameters,
            "repetitions": self.repetitions, "failed": self.failed, "noisy": self.noisy(),
            "columns": columns,
        })
    }
}

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

/// Summarizes the rows of each planned point.
pub(crate) fn summarize(plan: &Plan, rows: &[Row]) -> Vec<Measured> {
    let measured = |point: &Point| {
        let own: Vec<&Row> = rows.iter().filter(|row| row.point.id == point.id).collect();
        let good: Vec<&&Row> = own.iter().filter(|row| row.failure.is_none()).collect();
        let columns = COLUMNS.iter().filter_map(|column| {
            let values: Vec<f64> =
                good.iter().filter_map(|row| row.numbers.get(column).copied()).collect();
            // A column that only some repetitions have is not summarized.
            let complete = values.len() == good.len();
            complete.then(|| Summary::of(&values)).flatten().map(|summary| (*column, summary))
        });
        Measured {
            point: point.clone(),
            repetitions: good.len(),
            failed: own.len() - good.len(),
            columns: columns.collect(),
        }
    };
    plan.points.iter().map(measured).collect()
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
    let mut table = Row::head();
    rows.iter().for_each(|row| table += &row.line());
    files::write(&session.results.join("points.csv"), table.as_bytes())?;
    let measured = summarize(&plan, &rows);
    let experiments: Vec<Value> = (session.experiments.iter())
        .map(|e| {
            json!({
                "name": e.name, "title": e.title, "x": e.x, "y": e.y, "series": e.series,
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
    let claims = claims::evaluate(session, &plan, &measured)?;
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
