//! `hekaton report`: what the events of a run come to.

mod html;
mod summary;

pub(crate) use summary::Summary;

use crate::exit::{self, Failure};
use crate::options::Report;
use crate::terminal::output::{self, Inputs};
use hekaton_core::events::{Event, Record, SCHEMA};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Longer lines are none of ours.
const LONGEST_LINE: u64 = 1 << 24;
/// Later times, in seconds, are none of ours.
const LONGEST_RUN: f64 = 1e9;

pub(crate) fn run(command: &Report, json: bool) -> Result<(), Failure> {
    let path = if command.path.is_dir() {
        command.path.join("events.jsonl")
    } else {
        command.path.clone()
    };
    if let Some(to) = &command.html {
        // the file may be that of a run directory
        let run = path.parent().filter(|parent| parent.join("run.json").exists());
        output::check_output(to, "--html", &Inputs { files: &[&path], keys: None, run })?;
    }
    let mut records = Vec::new();
    let summary = summarise(&path, |record| {
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

/// What the events of a file come to; `each` gets all of them, too. Lines that are none (a process was killed while it
/// wrote one) are left out with a warning.
pub(crate) fn summarise(path: &Path, mut each: impl FnMut(Record)) -> Result<Summary, Failure> {
    let failure = |why: String| Failure::new(exit::BAD_FILE, format!("{}: {why}", path.display()));
    let file = std::fs::File::open(path).map_err(|e| {
        failure(format!("{e}: give a run directory, or a file written by `prove --events`"))
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
                    "events of schema {schema}, this program reads schema {SCHEMA}"
                )));
            }
            Some(Event::ProcessStart { .. }) => {}
            _ if first => return Err(failure("these are no events of a run".into())),
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
        return Err(failure("there are no events in it".into()));
    }
    if bad > 0 {
        output::say(format!("warning: {}: {bad} damaged lines are left out", path.display()));
    }
    summary.end();
    Ok(summary)
}

/// Where the result of a finished run lies.
pub(crate) fn result_path(run: &Path) -> PathBuf {
    run.join("report.json")
}
