//! Judges whether a repetition counts: the run finished, its events are complete, the proof was
//! accepted, and the environment is that of the result set.

use super::files;
use super::plan::Task;
use super::predicted::{PREDICTION, Predicted};
use super::rows::{self, Row};
use super::spec::Point;
use serde_json::Value;
use std::path::Path;

/// The file in which the program records a repetition, in addition to the files of `hekaton`.
pub(crate) const ACCOUNT: &str = "run.json";

/// Reads a repetition. If it does not count, the row has the reason.
pub(crate) fn judge(directory: &Path, point: &Point, task: &Task, environment: &str) -> Row {
    let account = files::read_json::<Value>(&directory.join(ACCOUNT));
    // A row that does not count has an empty field if its environment is unknown.
    let found = account.as_ref().ok().and_then(|account| account["environment"].as_str());
    let own = found.map_or_else(String::new, str::to_owned);
    let numbers = account
        .map_err(|e| e.message)
        .and_then(|account| measured(directory, point, &account, environment));
    match numbers {
        Ok(numbers) => Row {
            point: point.clone(),
            repetition: task.1,
            numbers,
            environment: own,
            failure: None,
        },
        Err(why) => Row::failed(point, task.1, &own, why),
    }
}

fn measured(
    directory: &Path,
    point: &Point,
    account: &Value,
    environment: &str,
) -> Result<std::collections::BTreeMap<&'static str, f64>, String> {
    let read = |name: &str| files::read_json::<Value>(&directory.join(name)).map_err(|e| e.message);
    if account["schema"] != super::plan::SCHEMA {
        return Err(format!("{ACCOUNT} has schema {}", account["schema"]));
    }
    if let Some(why) = account["failure"].as_str() {
        return Err(why.to_owned());
    }
    let own = account["environment"].as_str().unwrap_or("unknown");
    if own != environment {
        return Err(format!("environment {own}, and the result set has {environment}"));
    }
    let share = processor_share(&directory.join("events.jsonl"))?;
    let verified = read("verify.json")?;
    if verified["ok"] != true {
        return Err("the proof was not accepted".into());
    }
    let report = read("report.json")?;
    if report["state"] != "finished" {
        return Err(format!("the state of the run is {}, expected \"finished\"", report["state"]));
    }
    if let Some(expected) = point.subcircuits.filter(|n| report["subcircuits"] != *n) {
        let found = &report["subcircuits"];
        return Err(format!("the run has {found} subcircuits, expected {expected}"));
    }
    let mut numbers = rows::numbers(point, &report, &verified, &read("setup.json")?, account);
    if let Some(share) = share {
        let shared = account["machine_cores"].as_f64().filter(|_| point.oversubscribe);
        rows::adjust(&mut numbers, share, shared);
    }
    if directory.join(PREDICTION).exists()
        && let Some(predicted) = Predicted::from_answer(&read(PREDICTION)?)
    {
        rows::compare(&mut numbers, &predicted);
    }
    Ok(numbers)
}

/// The part of a processor that provers had while they worked on subcircuits; `None` if the events
/// do not say. Events must reach from the start of a process to its written proof, without a torn
/// line.
fn processor_share(path: &Path) -> Result<Option<f64>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    if !text.ends_with('\n') {
        return Err("the events are truncated: the last line is not complete".into());
    }
    let mut outcome = None;
    let mut written = false;
    let (mut seconds, mut cpu_seconds) = (0.0, 0.0);
    for (number, line) in text.lines().enumerate() {
        let event: Value = serde_json::from_str(line)
            .map_err(|_| format!("the events are damaged: line {} is not JSON", number + 1))?;
        match event["event"].as_str() {
            Some("run_end") => outcome = event["outcome"].as_str().map(str::to_owned),
            Some("proof_written") => written = true,
            Some("subcircuit") => {
                // Events of earlier versions have no CPU time: then there is no share.
                seconds += event["seconds"].as_f64().unwrap_or(0.0);
                cpu_seconds += event["cpu_seconds"].as_f64().unwrap_or(0.0);
            }
            _ => {}
        }
    }
    match outcome.as_deref() {
        Some("finished") if written => {
            Ok((seconds > 0.0 && cpu_seconds > 0.0).then(|| (cpu_seconds / seconds).min(1.0)))
        }
        Some("finished") => Err("the events are truncated: no proof was written".into()),
        Some(other) => Err(format!("the run ended as {other}")),
        None => Err("the events are truncated: the run has no end".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("events.jsonl");
        let end = "{\"event\":\"run_end\",\"outcome\":\"finished\"}\n";
        let proof = "{\"event\":\"proof_written\"}\n";
        let judge = |text: &str| {
            std::fs::write(&path, text).unwrap();
            processor_share(&path)
        };
        assert_eq!(judge(&format!("{end}{proof}")).unwrap(), None);
        let subcircuit = "{\"event\":\"subcircuit\",\"seconds\":2.0,\"cpu_seconds\":0.5}\n";
        assert_eq!(judge(&format!("{subcircuit}{subcircuit}{end}{proof}")).unwrap(), Some(0.25));
        for text in ["", end, proof, "{\"event\"\n", &format!("{end}{}", proof.trim_end())] {
            assert!(judge(text).is_err(), "{text}");
        }
        assert!(judge(&end.replace("finished", "failed")).unwrap_err().contains("failed"));
    }
}
