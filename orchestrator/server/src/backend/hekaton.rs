//! `hekaton prove` on this machine, with a run directory, so that an attempt does not repeat what an earlier one has proven.

use super::command::{Exits, outcome};
use super::process::{self, Helper, Program};
use super::{Backend, Outcome, Rejected, Work};
use crate::clock::millis;
use crate::dispatch::Progress;
use async_trait::async_trait;
use std::ffi::OsString;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The interval between reads of the events of a run.
const LOOK: Duration = Duration::from_millis(500);

/// Proves files with the keys of a key store or key family.
#[derive(Clone, Debug)]
pub struct Hekaton {
    /// The program.
    pub program: PathBuf,
    /// The key store or key family.
    pub keys: PathBuf,
    /// More options of `hekaton prove`.
    pub options: Vec<String>,
    /// The helper that starts the program.
    pub helper: Helper,
}

impl Hekaton {
    fn call(&self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Program {
        Program {
            program: self.program.clone().into(),
            arguments: arguments.into_iter().map(Into::into).collect(),
            environment: vec![],
            memory: None,
        }
    }

    /// The exit codes of `hekaton prove`: an input that it cannot read or prove stays impossible, and an interrupted run is resumed.
    fn exits() -> Exits {
        // 5 is a run that was stopped, 6 one that lost a rank or whose directory another process
        // holds, and 130 an interrupt: the next attempt resumes.
        Exits { dead: vec![1, 2, 3], again: vec![5, 6, 130] }
    }

    /// The part of a key store that verifies, or a key family.
    fn verifying(&self) -> PathBuf {
        let key = self.keys.join("verifying.key");
        if key.is_file() { key } else { self.keys.clone() }
    }
}

#[async_trait]
impl Backend for Hekaton {
    async fn run(&self, work: &Work<'_>, _: &CancellationToken, progress: &Progress) -> Outcome {
        let input = match only_input(work) {
            Ok(input) => input,
            Err(outcome) => return outcome,
        };
        let run = work.folder.join("run");
        let output = work.folder.join("proof");
        let mut arguments: Vec<OsString> = vec!["prove".into(), input.into()];
        arguments.extend(["--keys".into(), self.keys.clone().into_os_string()]);
        // Always with `--resume`: the folder belongs to this task alone, so any files in it were left by an earlier attempt at the same
        // input.
        arguments.extend(["--run".into(), run.clone().into_os_string(), "--resume".into()]);
        arguments.extend(["--proof".into(), output.clone().into_os_string()]);
        arguments.extend(self.options.iter().map(OsString::from));
        let program = self.call(arguments);
        let mut events = Events::new(run.join("events.jsonl"));
        let ended = {
            let ended = process::attempt(&self.helper, &program, &work.folder, |_| {});
            tokio::pin!(ended);
            loop {
                tokio::select! {
                    biased;
                    ended = &mut ended => break ended,
                    () = tokio::time::sleep(LOOK) => events.report(progress),
                }
            }
        };
        events.report(progress);
        match ended {
            Ok(ended) => outcome(&ended, &Self::exits(), &output),
            Err(error) => Outcome::Again(format!("{}: {error}", self.program.display())),
        }
    }

    /// The public values come from the input, not from the prover.
    async fn verify(&self, work: &Work<'_>, output: &Path) -> Result<(), Rejected> {
        let unverified = |why: String| Rejected::Unverified(why);
        let input = work.inputs.first().ok_or_else(|| unverified("there is no input".into()))?;
        let keys = self.keys.clone().into_os_string();
        let hash =
            self.call(["hash".into(), input.clone().into_os_string(), "--keys".into(), keys]);
        let hashed = process::run(&self.helper, &hash, &work.folder)
            .await
            .map_err(|error| unverified(error.to_string()))?;
        if hashed.code() != Some(0) {
            return Err(unverified(hashed.describe()));
        }
        let public = hashed.printed.trim().to_owned();
        let mut arguments: Vec<OsString> = vec!["verify".into(), output.into(), "--key".into()];
        arguments.extend([self.verifying().into_os_string(), "--public".into(), public.into()]);
        // A family has keys for many sizes, and the input determines which of them a proof is for.
        if self.keys.join("family.json").is_file() {
            arguments.extend(["--for".into(), input.into()]);
        }
        let program = self.call(arguments);
        let verified = process::run(&self.helper, &program, &work.folder)
            .await
            .map_err(|error| unverified(error.to_string()))?;
        match verified.code() {
            Some(0) => Ok(()),
            // The proof is wrong, not the call: exit code 1 is the verifier's verdict.
            Some(1) => {
                // The files of the run may be the cause, so the next attempt must not resume from them.
                let _ = std::fs::remove_dir_all(work.folder.join("run"));
                Err(Rejected::Wrong(verified.describe()))
            }
            _ => Err(unverified(verified.describe())),
        }
    }
}

/// The file to prove.
pub(super) fn only_input<'a>(work: &'a Work<'_>) -> Result<&'a Path, Outcome> {
    match &work.inputs[..] {
        [input] => Ok(input),
        inputs => {
            let why = format!("`hekaton prove` takes one input, not {}", inputs.len());
            Err(Outcome::Impossible(why))
        }
    }
}

/// The events of a run, as they are written.
pub(super) struct Events {
    path: PathBuf,
    read: u64,
    rest: String,
    subcircuits: u64,
    answered: u64,
    /// The time at which the process's clock was 0, in seconds since 1970.
    since: Option<f64>,
    phases: Vec<(String, u64, u64)>,
}

impl Events {
    pub(super) fn new(path: PathBuf) -> Self {
        // A resumed run appends to the same file.
        let read = std::fs::metadata(&path).map_or(0, |found| found.len());
        Self::from(path, read)
    }

    /// Also reads what was written before, to follow a run of another process. That process reported its phases.
    pub(super) fn of_all(path: PathBuf) -> Self {
        let mut events = Self::from(path, 0);
        events.news();
        events.phases.clear();
        events
    }

    fn from(path: PathBuf, read: u64) -> Self {
        Self {
            path,
            read,
            rest: String::new(),
            subcircuits: 0,
            answered: 0,
            since: None,
            phases: vec![],
        }
    }

    /// Reports what was written since.
    pub(super) fn report(&mut self, progress: &Progress) {
        if let Some(part) = self.news() {
            progress.report(part);
        }
        for (phase, from, to) in self.phases.drain(..) {
            progress.phase(&phase, from, to);
        }
    }

    /// Reads new events, and returns the progress of the run if there are any.
    fn news(&mut self) -> Option<f32> {
        let mut file = std::fs::File::open(&self.path).ok()?;
        file.seek(SeekFrom::Start(self.read)).ok()?;
        let mut bytes = Vec::new();
        // A limit for each look: the file of a long run that is followed from its beginning is large.
        let count = file.take(1 << 20).read_to_end(&mut bytes).ok()?;
        if count == 0 {
            return None;
        }
        self.read += count as u64;
        self.rest.push_str(&String::from_utf8_lossy(&bytes));
        while let Some(end) = self.rest.find('\n') {
            let line: String = self.rest.drain(..=end).collect();
            self.event(&line);
        }
        Some(self.part())
    }

    /// Returns the progress of the run, from 0 to 1.
    pub(super) fn part(&self) -> f32 {
        // Two rounds for each subcircuit.
        let all = (2 * self.subcircuits).max(1);
        (self.answered as f32 / all as f32).min(1.0)
    }

    fn event(&mut self, line: &str) {
        let Ok(event) = serde_json::from_str::<serde_json::Value>(line) else { return };
        let at = event["at"].as_f64();
        match event["event"].as_str() {
            Some("run_start") => self.subcircuits = event["subcircuits"].as_u64().unwrap_or(0),
            Some("phase_start") => {
                let rounds = ["commit", "prove"].map(serde_json::Value::from);
                if rounds.contains(&event["phase"]) {
                    self.answered += event["done"].as_u64().unwrap_or(0);
                }
            }
            Some("subcircuit") => self.answered += 1,
            // A resumed run reports what was done before as the `done` of its rounds.
            Some("process_start") => {
                self.answered = 0;
                self.since = event["unix_time"].as_f64().zip(at).map(|(time, at)| time - at);
            }
            Some("phase_end") => {
                let (phase, seconds) = (event["phase"].as_str(), event["seconds"].as_f64());
                if let (Some(since), Some(at), Some(phase), Some(seconds)) =
                    (self.since, at, phase, seconds)
                {
                    let [from, to] = [since + at - seconds, since + at]
                        .map(|time| Duration::try_from_secs_f64(time).map(millis));
                    // The file is that of another program: a phase at an impossible time is left out of the trace.
                    if let (Ok(from), Ok(to)) = (from, to) {
                        self.phases.push((phase.chars().take(40).collect(), from, to));
                    }
                }
            }
            _ => {}
        }
    }
}
