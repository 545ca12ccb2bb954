//! `hekaton report`: summarizes the events of a run.

mod events;
mod html;
mod summary;
mod table;

pub(crate) use summary::Summary;

use crate::options::Report;
use hekaton_core::events::{Event, Record, SCHEMA};
use hekaton_terminal::exit::{self, Failure};
use hekaton_terminal::output::{self, Inputs};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

// A file that is not ours may have one line of any length, which must not fill the memory.
/// The maximum length of a line with an event, in bytes.
const LONGEST_LINE: u64 = 1 << 24;
/// The upper bound of an event's time, in seconds; damaged numbers beyond it would spoil every sum.
const LONGEST_RUN: f64 = 1e9;

pub(crate) fn run(command: &Report, json: bool) -> Result<(), Failure> {
    let path = if command.path.is_dir() {
        command.path.join("events.jsonl")
    } else {
        command.path.clone()
    };
    if let Some(to) = &command.html {
        // The event file may be in a run directory, whose files must not be overwritten.
        let run = path.parent().filter(|parent| parent.join("run.json").exists());
        output::check_output(to, "--html", &Inputs { files: &[&path], keys: None, run })?;
    }
    let mut records = Vec::new();
    // Events of a run of a million subcircuits take much memory, and only the page needs them.
    let summary = summarize(&path, |record| {
        if command.html.is_some() {
            records.push(record);
        }
    })?;
    if let Some(to) = &command.html {
        let page = html::page(&summary, &records);
        output::write(to, page.as_bytes())?;
    }
    output::result(json, &summary.object(), &summary.table())
}

/// Summarizes an event file, and passes each event to `each`. Lines that are not events are skipped with a
/// warning, because a process may have been killed while it wrote one.
pub(crate) fn summarize(path: &Path, mut each: impl FnMut(Record)) -> Result<Summary, Failure> {
    let failure = |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| {
        failure(format!("{e}: expected a run directory, or a file written by `prove --events`"))
    })?;
    let (mut summary, mut first, mut bad) = (Summary::default(), true, 0usize);
    let mut reader = BufReader::new(file);
    loop {
        let mut line = Vec::new();
        let read = (&mut reader).take(LONGEST_LINE).read_until(b'\n', &mut line);
        if read.map_err(|e| failure(e.to_string()))? == 0 {
            break;
        }
        line.pop_if(|byte| *byte == b'\n');
        let record = serde_json::from_slice::<Record>(&line)
            .ok()
            .filter(|r| (0.0..LONGEST_RUN).contains(&r.at));
        match record.as_ref().map(|r| &r.event) {
            Some(Event::ProcessStart { schema, .. }) if *schema != SCHEMA => {
                return Err(failure(format!(
                    "has events of schema {schema}, but this program reads schema {SCHEMA}"
                )));
            }
            Some(Event::ProcessStart { .. }) => {}
            _ if first => return Err(failure("does not contain the events of a run".into())),
            None if line.is_empty() => continue,
            None => bad += 1,
            Some(_) => {}
        }
        first = false;
        if let Some(record) = record {
            summary.add(&record);
            each(record);
        }
    }
    if first {
        return Err(failure("contains no events".into()));
    }
    if bad > 0 {
        let lines = if bad == 1 { "line" } else { "lines" };
        output::say(format!("warning: {}: skipped {bad} damaged {lines}", path.display()));
    }
    summary.end();
    Ok(summary)
}

/// Returns the path at which a run directory keeps the report of a finished run.
pub(crate) fn result_path(run: &Path) -> PathBuf {
    run.join("report.json")
}
