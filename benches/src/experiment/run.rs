//! Running repetitions: prove in one process, verify in another, and keep what they leave.

use super::check::load;
use super::environment::Environment;
use super::failure::{At, FAILED, Failure};
use super::files;
use super::keys::{self, Case};
use super::model::Predictor;
use super::outcome::{self, ACCOUNT};
use super::plan::{self, MOST_REPETITIONS, Plan, Task};
use super::predicted::PREDICTION;
use super::program::Program;
use super::rows::Row;
use super::session::Session;
use super::spec::Point;
use super::statistics::Summary;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// The end of a repetition.
#[derive(Debug)]
pub(crate) enum Ending {
    /// It was done before.
    Known,
    /// It counts.
    Counts(Box<Row>),
    /// It does not count, and why.
    Failed(String),
}

/// Runs repetitions of one result set.
#[derive(Debug)]
pub(crate) struct Runner<'s> {
    pub(crate) session: &'s Session,
    pub(crate) program: &'s Program,
    pub(crate) environment: &'s Environment,
    pub(crate) predictor: Predictor<'s>,
}

impl Runner<'_> {
    /// Runs one repetition unless it is done.
    ///
    /// # Errors
    /// If files cannot be written, or this process was asked to stop: the repetition does not
    /// exist then. A prover that fails is not an error.
    pub(crate) fn repetition(&self, point: &Point, task: &Task) -> Result<Ending, Failure> {
        let results = &self.session.results;
        let complete = plan::directory(results, task);
        if complete.is_dir() {
            let row = outcome::judge(&complete, point, task, &self.environment.digest);
            match row.failure {
                None => return Ok(Ending::Known),
                // Files of another environment, or damaged ones, make room.
                Some(why) => {
                    eprintln!("{}-{}: runs again: {why}", task.0, task.1);
                    fs::remove_dir_all(&complete).at(&complete)?;
                }
            }
        }
        let part = plan::unfinished(results, task);
        super::process::end_leftover(&part.join("pid"), &part);
        let _ = fs::remove_dir_all(&part);
        let case = keys::prepare(self.program, point, &self.session.work, &self.session.stop)?;
        fs::create_dir_all(&part).at(&part)?;
        // Alternating, so that neither order looks like a difference.
        let model_first = task.1 % 2 == 1;
        let measured = self.predict(point, &part, model_first).and_then(|()| {
            let measured = self.measure(point, task, &case, &part)?;
            self.predict(point, &part, !model_first && measured.is_none())?;
            Ok(measured)
        });
        let failure = match measured {
            Ok(failure) => failure,
            Err(e) => {
                let _ = fs::remove_dir_all(&part);
                return Err(e);
            }
        };
        if let Some(why) = failure {
            fs::rename(&part, plan::failed(results, task)).at(&part)?;
            return Ok(Ending::Failed(why));
        }
        let row = outcome::judge(&part, point, task, &self.environment.digest);
        if let Some(why) = row.failure {
            record(&part.join(ACCOUNT), "failure", json!(why))?;
            fs::rename(&part, plan::failed(results, task)).at(&part)?;
            return Ok(Ending::Failed(why));
        }
        // From here on the repetition exists.
        fs::rename(&part, &complete).at(&complete)?;
        Ok(Ending::Counts(Box::new(row)))
    }

    /// Keeps the model's prediction next to the repetition. A point is a point without it, too.
    fn predict(&self, point: &Point, part: &Path, now: bool) -> Result<(), Failure> {
        if !now || !self.predictor.applies(point) {
            return Ok(());
        }
        self.session.stop.check()?;
        match self.predictor.ask(point) {
            Ok(answer) => files::write_json(&part.join(PREDICTION), &answer),
            Err(e) => {
                eprintln!("{}: no prediction: {}", point.id, e.message);
                Ok(())
            }
        }
    }

    /// Proves and verifies; returns why this failed, if it did. Files have relative names, so that
    /// events do not name directories of this machine.
    fn measure(
        &self,
        point: &Point,
        task: &Task,
        case: &Case,
        part: &Path,
    ) -> Result<Option<String>, Failure> {
        let here = |name: &str| part.join(name);
        symlink(case.input(), here("input")).at(part)?;
        symlink(case.keys(), here("keys")).at(part)?;
        files::write_json(&here("setup.json"), &case.setup)?;
        let mut account = json!({
            "schema": plan::SCHEMA, "point": point.id, "repetition": task.1,
            "environment": self.environment.digest, "load_at_start": load(),
            "machine_cores": self.environment.facts["cores"],
        });
        let log = here("log");
        let mut prove = self.program.prove(point, &self.session.launcher);
        prove.args(["input", "--keys", "keys", "--proof", "proof", "--events", "events.jsonl"]);
        prove.arg("--json").current_dir(part);
        let stop = &self.session.stop;
        let pid = here("pid");
        let ended = self.program.run(&mut prove, &here("prove.json"), &log, stop, Some(&pid))?;
        account["cpu_seconds"] = json!(ended.cpu_seconds);
        let failure = if ended.status.success() {
            let mut verify = Command::new(&self.program.path);
            verify.args(["verify"]).arg("proof").arg("--key").arg(case.verifying_key());
            verify.args(["--public", &case.public, "--json"]).current_dir(part);
            let verified = self.program.run(&mut verify, &here("verify.json"), &log, stop, None)?;
            match verified.status.success() {
                true => self.report(part, &log)?,
                false => {
                    Some(format!("the proof was not accepted: {}", said(&here("verify.json"))))
                }
            }
        } else {
            Some(format!("prove ended with {}: {}", ended.status, said(&here("prove.json"))))
        };
        account["failure"] = json!(failure);
        files::write_json(&here(ACCOUNT), &account)?;
        for name in ["input", "keys", "proof", "pid", "prove.json"] {
            let _ = fs::remove_file(here(name));
        }
        Ok(failure)
    }

    fn report(&self, part: &Path, log: &Path) -> Result<Option<String>, Failure> {
        let mut report = Command::new(&self.program.path);
        report.args(["report", "events.jsonl", "--json"]).current_dir(part);
        let output = part.join("report.json");
        let ended = self.program.run(&mut report, &output, log, &self.session.stop, None)?;
        Ok((!ended.status.success()).then(|| format!("report ended with {}", ended.status)))
    }

    /// Runs repetitions in the given order; returns how many failed.
    pub(crate) fn all(&self, plan: &Plan, order: &[Task]) -> Result<usize, Failure> {
        let mut failed = 0;
        for (i, task) in order.iter().enumerate() {
            let point = plan
                .point(&task.0)
                .ok_or_else(|| Failure::new(FAILED, format!("the plan has no point {}", task.0)))?;
            let name = format!("[{}/{}] {}-{}", i + 1, order.len(), task.0, task.1);
            match self.repetition(point, task)? {
                Ending::Known => {}
                Ending::Counts(row) => {
                    let number = |name| row.numbers.get(name).map_or(f64::NAN, |value| *value);
                    eprintln!(
                        "{name}: {:.2} s, {:.2} s of CPU, verified in {:.0} ms",
                        number("seconds"),
                        number("cpu_seconds"),
                        number("verify_ms")
                    );
                }
                Ending::Failed(why) => {
                    failed += 1;
                    eprintln!("{name}: FAILED, no point: {why}");
                }
            }
        }
        Ok(failed)
    }

    /// Repeats points whose interval is too wide, until it is not or there are 15 repetitions.
    pub(crate) fn settle(&self, plan: &mut Plan, experiments: &[String]) -> Result<usize, Failure> {
        let mut failed = 0;
        loop {
            let points = plan.points.iter().filter(|p| experiments.contains(&p.experiment));
            let noisy: Vec<Task> = (points)
                .filter(|p| plan.repetitions[&p.id] < MOST_REPETITIONS && self.is_noisy(plan, p))
                .map(|p| (p.id.clone(), plan.repetitions[&p.id] + 1))
                .collect();
            if noisy.is_empty() {
                return Ok(failed);
            }
            for (id, repetition) in &noisy {
                plan.repetitions.insert(id.clone(), *repetition);
            }
            plan.write(&self.session.results)?;
            failed += self.all(plan, &noisy)?;
        }
    }

    fn is_noisy(&self, plan: &Plan, point: &Point) -> bool {
        let seconds: Vec<f64> = (1..=plan.repetitions[&point.id])
            .filter_map(|repetition| {
                let task = (point.id.clone(), repetition);
                let directory = plan::directory(&self.session.results, &task);
                let row = outcome::judge(&directory, point, &task, &self.environment.digest);
                row.failure.is_none().then(|| row.numbers.get("seconds").copied()).flatten()
            })
            .collect();
        Summary::of(&seconds).is_some_and(|summary| summary.noisy())
    }
}

/// Adds a field to a JSON file.
fn record(path: &Path, name: &str, value: Value) -> Result<(), Failure> {
    let mut content: Value = files::read_json(path)?;
    content[name] = value;
    files::write_json(path, &content)
}

/// The error that a command printed as JSON.
fn said(path: &Path) -> String {
    match files::read_json::<Value>(path) {
        Ok(answer) => answer["error"].as_str().unwrap_or("no error message").to_owned(),
        Err(e) => format!("no error message ({})", e.message),
    }
}
