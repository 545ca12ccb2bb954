//! `hekaton report`: what the events of a run come to.

mod html;
mod summary;

pub(crate) use summary::Summary;

use crate::exit::{self, Failure};
use crate::options::Report;
use crate::output;
use hekaton_core::events::{Event, Record, SCHEMA};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

pub(crate) fn run(command: &Report, json: bool) -> Result<(), Failure> {
    let path = if command.path.is_dir() { command.path.join("events.jsonl") } else { command.path.clone() };
    if let Some(to) = &command.html {
        output::check_output(to, "--html", &[&path])?;
    }
    let records = read(&path)?;
    let mut summary = Summary::default();
    records.iter().for_each(|record| summary.add(record));
    summary.end();
    if let Some(to) = &command.html {
        let page = html::page(&summary, &records);
        output::write(to, page.as_bytes())?;
    }
    output::result(json, &summary.object(), &summary.table())
}

/// Reads a file of events. Lines that are none (a process was killed while it wrote one) are left out with a warning.
fn read(path: &Path) -> Result<Vec<Record>, Failure> {
    let failure = |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path)
        .map_err(|e| failure(format!("{e}: give a run directory, or a file written by `prove --events`")))?;
    let (mut records, mut bad) = (Vec::<Record>::new(), 0usize);
    for line in BufReader::new(file).split(b'\n') {
        let line = line.map_err(|e| failure(e.to_string()))?;
        match serde_json::from_slice::<Record>(&line) {
            Ok(record) if record.at.is_finite() => records.push(record),
            _ if line.is_empty() => {}
            _ => bad += 1,
        }
    }
    match records.first().map(|r| &r.event) {
        Some(Event::ProcessStart { schema: SCHEMA, .. }) => {}
        Some(Event::ProcessStart { schema, .. }) => {
            return Err(failure(format!("events of schema {schema}, this program reads schema {SCHEMA}")));
        }
        _ => return Err(failure("these are no events of a run".into())),
    }
    if bad > 0 {
        eprintln!("warning: {}: {bad} damaged lines are left out", path.display());
    }
    Ok(records)
}

/// Where `report` finds the events of a run, and where the result of a finished run lies.
pub(crate) fn result_path(run: &Path) -> PathBuf {
    run.join("report.json")
}
