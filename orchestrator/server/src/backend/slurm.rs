//! `hekaton prove` as a job of SLURM, on as many machines as its batch script asks for.
//!
//! A job outlives the process that has submitted it; the next process to claim the task finds it by a note in the task's folder. The note
//! is on disk before `sbatch` is called. If it is unknown whether the call succeeded, SLURM's queue and accounting are asked for the job by
//! its name for a while before another job is submitted. If two jobs run nevertheless, the lease on their run directory keeps them apart.

use super::hekaton::{Events, Hekaton, only_input};
use super::process::{self, Ended, Program};
use super::{Backend, Outcome, Output, Rejected, Work};
use crate::clock::Clock;
use crate::dispatch::Progress;
use async_trait::async_trait;
use hekaton_orchestrator_client::slurm::{self, Call, JobState, ProofJob};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The time that a program of SLURM may take.
const TIME: Duration = Duration::from_secs(90);

/// The file in a task's folder that names its job.
const NOTE: &str = "slurm.json";

/// The version of that file.
const VERSION: u32 = 1;

/// Proves files with a batch script such as `slurm/prove.sbatch`, which is given `FILE`, `KEYS`, `RUN`, `HEKATON` and `OPTIONS` in its
/// environment.
#[derive(Clone, Debug)]
pub struct Slurm {
    /// The program that the job runs and that verifies its proof on this machine.
    pub hekaton: Hekaton,
    /// The batch script.
    pub script: PathBuf,
    /// The interval between SLURM queries about a job.
    pub poll: Duration,
    /// The time for which SLURM is asked for a job whose submission was not answered, before another one is submitted.
    pub doubt: Duration,
}

/// The note of the job that a task may have.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    version: u32,
    /// `hk-TASK-GENERATION-EPOCH`
    name: String,
    /// The job's number, once it is known.
    number: Option<u64>,
    /// The time of the submission, in milliseconds since 1970.
    submitted: u64,
}

impl Note {
    fn read(folder: &Path) -> Option<Self> {
        let text = std::fs::read(folder.join(NOTE)).ok()?;
        let note: Self = serde_json::from_slice(&text).ok()?;
        // It becomes an argument of SLURM's programs.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (note.version == VERSION && note.name.bytes().all(plain)).then_some(note)
    }

    /// Notes the number and returns the note, or returns `None` if another process has taken the task since.
    fn found(self, number: u64, folder: &Path) -> std::io::Result<Option<Self>> {
        if !self.is_current(folder) {
            return Ok(None);
        }
        let found = Self { number: Some(number), ..self };
        found.write(folder)?;
        Ok(Some(found))
    }

    /// Writes the note, which is on disk when this returns.
    fn write(&self, folder: &Path) -> std::io::Result<()> {
        hekaton_files::write(&folder.join(NOTE), &serde_json::to_vec(self)?)
    }

    /// Reports whether it is still the note of the folder: another process may have taken the task since, and have submitted a job of
    /// its own.
    fn is_current(&self, folder: &Path) -> bool {
        Self::read(folder).is_some_and(|found| found.name == self.name)
    }

    /// Removes it, unless there is another one by now.
    fn remove(&self, folder: &Path) {
        if self.is_current(folder) {
            let _ = std::fs::remove_file(folder.join(NOTE));
        }
    }
}

impl Slurm {
    /// Runs a program of SLURM, and returns what it prints.
    async fn ask(&self, folder: &Path, call: Call) -> Result<String, String> {
        let name = call.program;
        let environment = call.environment.into_iter();
        let program = Program {
            program: name.into(),
            arguments: call.arguments,
            environment: environment.map(|(name, value)| (name.into(), value)).collect(),
            memory: None,
        };
        let run = process::run(&self.hekaton.helper, &program, folder);
        let ended: Ended = tokio::time::timeout(TIME, run)
            .await
            .map_err(|_| format!("{name} took more than {} s", TIME.as_secs()))?
            .map_err(|error| format!("{name}: {error}"))?;
        match ended.code() {
            Some(0) => Ok(ended.printed),
            _ => Err(format!("{name}: {}", ended.describe())),
        }
    }

    /// The last job with a name, from the queue or else from the accounting.
    async fn find(&self, folder: &Path, name: &str) -> Result<Option<u64>, String> {
        let queue = self.ask(folder, slurm::find_in_queue(name)).await?;
        let accounts = match self.ask(folder, slurm::find_in_accounts(name)).await {
            // Without accounting, the queue and the note have to suffice.
            Err(why) if why.contains("disabled") || why.contains("No such file") => String::new(),
            answer => answer?,
        };
        let numbers = queue.lines().chain(accounts.lines());
        Ok(numbers.filter_map(|line| line.trim().parse().ok()).max())
    }

    /// Returns the state of a job.
    async fn state(&self, folder: &Path, number: u64) -> JobState {
        match slurm::state_in_queue(self.ask(folder, slurm::ask_queue(number)).await) {
            Ok(Some(state)) => state,
            Ok(None) => {
                let answer = self.ask(folder, slurm::ask_accounts(number)).await;
                slurm::state_in_accounts(&answer)
            }
            // A controller that restarts must not end the task: the job keeps running.
            Err(why) => {
                tracing::warn!(job = number, %why, "SLURM does not report the state of the job");
                JobState::Waiting
            }
        }
    }

    /// Returns the job of a task, and submits one if there is none.
    async fn job(
        &self,
        work: &Work<'_>,
        input: &Path,
        progress: &Progress,
    ) -> Result<Note, Outcome> {
        let folder = &*work.folder;
        let failed = |error: std::io::Error| {
            Outcome::Again(format!("{}: {error}", folder.join(NOTE).display()))
        };
        let taken = || Outcome::Again("another process has submitted a job of this task".into());
        if let Some(note) = Note::read(folder) {
            if note.number.is_some() {
                return Ok(note);
            }
            if let Some(number) = self.doubt(folder, &note, progress).await {
                return note.found(number, folder).map_err(failed)?.ok_or_else(taken);
            }
        }
        let task = work.task;
        let name = format!("hk-{}-{}-{}", task.id.short(), task.generation, work.epoch);
        let note = Note { version: VERSION, name, number: None, submitted: Clock::system().wall() };
        note.write(folder).map_err(failed)?;
        let submitted = self.submit(work, input, &note.name).await;
        let number = match submitted {
            Ok(number) => number,
            Err(why) => {
                tracing::warn!(%why, job = note.name, "looking for a job that may have been submitted");
                match self.doubt(folder, &note, progress).await {
                    Some(number) => number,
                    None => {
                        note.remove(folder);
                        return Err(Outcome::Again(why));
                    }
                }
            }
        };
        let log = folder.join("log");
        tracing::info!(job = number, name = note.name, log = %log.display(), "submitted to SLURM");
        note.found(number, folder).map_err(failed)?.ok_or_else(taken)
    }

    /// Looks for a job that may have been submitted, until it is found or has had enough time to appear. As long as SLURM does not answer,
    /// it is asked again.
    async fn doubt(&self, folder: &Path, note: &Note, progress: &Progress) -> Option<u64> {
        let until = Instant::now() + self.doubt;
        loop {
            match self.find(folder, &note.name).await {
                Ok(Some(number)) => return Some(number),
                Ok(None) if Instant::now() >= until => return None,
                Ok(None) => {}
                Err(why) => tracing::warn!(job = note.name, %why, "SLURM does not answer"),
            }
            // Waiting for SLURM is not a stall.
            progress.report(0.0);
            tokio::time::sleep(self.poll).await;
        }
    }

    async fn submit(&self, work: &Work<'_>, input: &Path, name: &str) -> Result<u64, String> {
        let (folder, hekaton) = (&*work.folder, &self.hekaton);
        let job = ProofJob {
            script: &self.script,
            name: Some(name),
            log: &folder.join("log"),
            input,
            keys: &hekaton.keys,
            run: &folder.join("run"),
            hekaton: &hekaton.program,
            options: &hekaton.options,
        };
        slurm::job_number(&self.ask(folder, job.submit()).await?)
    }
}

/// Returns the outcome of a job that ended without a proof. If others or the machine ended the job, the task is not at fault.
fn ended(how: &str, number: u64, log: &Path) -> Outcome {
    // Other programs write to the log, too, so it may contain bytes that are not text.
    let said = match std::fs::read(log) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("it cannot be read: {error}"),
    };
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it is empty");
    let why = format!("SLURM job {number} ended as {how}; its log {}: {last}", log.display());
    // The job was stopped from outside, it lost a machine, or another job held the run directory.
    let code = said.lines().rev().find_map(|line| line.split_once("hekaton exited with "));
    let again = code.is_some_and(|(_, code)| ["5", "6"].contains(&code.trim()));
    match again || slurm::is_ended_by_others(how) {
        true => Outcome::Again(why),
        false => Outcome::Failed(why),
    }
}

#[async_trait]
impl Backend for Slurm {
    fn is_remote(&self) -> bool {
        true
    }

    async fn run(&self, work: &Work<'_>, _: &CancellationToken, progress: &Progress) -> Outcome {
        let input = match only_input(work) {
            Ok(input) => input,
            Err(outcome) => return outcome,
        };
        let folder = &*work.folder;
        let (run, log) = (folder.join("run"), folder.join("log"));
        let note = match self.job(work, input, progress).await {
            Ok(note) => note,
            Err(outcome) => return outcome,
        };
        let Some(number) = note.number else {
            return Outcome::Again("its job has no number".into());
        };
        let mut events = Events::of_all(run.join("events.jsonl"));
        let mut over = false;
        let how = loop {
            match self.state(folder, number).await {
                // A job that is requeued looks as if it had ended, for an instant.
                JobState::Ended(how) if over => break how,
                JobState::Ended(_) => over = true,
                JobState::Waiting => {
                    over = false;
                    // Time in the queue is not a stall.
                    progress.report(events.part());
                }
                JobState::Running => over = false,
            }
            events.report(progress);
            tokio::time::sleep(self.poll).await;
        };
        events.report(progress);
        // The next attempt is another job, which resumes.
        note.remove(folder);
        let proof = run.join("proof");
        match proof.is_file() {
            true => Outcome::Done(Output::File(proof)),
            false => ended(&how, number, &log),
        }
    }

    async fn verify(&self, work: &Work<'_>, output: &Path) -> Result<(), Rejected> {
        self.hekaton.verify(work, output).await
    }

    async fn abandon(&self, folder: &Path) -> bool {
        let Some(note) = Note::read(folder) else { return true };
        let number = match note.number {
            Some(number) => Ok(Some(number)),
            None => self.find(folder, &note.name).await,
        };
        let cancelled = match number {
            Ok(Some(number)) => self.ask(folder, slurm::cancel(number)).await.map(drop),
            Ok(None) => {
                let age = Clock::system().wall().saturating_sub(note.submitted);
                // `sbatch` may have run for `TIME` after the note was written, and SLURM may take
                // as long as `doubt` to show the job. Forgetting the note earlier could leave a job
                // that nothing cancels.
                match Duration::from_millis(age) > self.doubt + TIME {
                    true => Ok(()),
                    false => Err("it may still appear".into()),
                }
            }
            Err(why) => Err(why),
        };
        match cancelled {
            Ok(()) => note.remove(folder),
            // It is tried again when folders are tidied up.
            Err(why) => tracing::warn!(job = note.name, %why, "a SLURM job was not cancelled"),
        }
        Note::read(folder).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_says_who_is_at_fault() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        std::fs::write(&log, "one\ntwo\n\n").unwrap();
        let why = |outcome| match outcome {
            Outcome::Failed(why) | Outcome::Again(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(matches!(ended("NODE_FAIL", 7, &log), Outcome::Again(_)));
        assert!(matches!(ended("TIMEOUT", 7, &log), Outcome::Failed(_)));
        std::fs::write(&log, "2026-11-26 hekaton exited with 6\ngiving up\n").unwrap();
        assert!(matches!(ended("FAILED", 7, &log), Outcome::Again(_)));
        std::fs::write(&log, "one\ntwo\n\n").unwrap();
        assert!(why(ended("TIMEOUT", 7, &log)).ends_with(": two"));
    }

    #[test]
    fn notes_are_read_back_and_strange_ones_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(Note::read(folder).is_none());
        let note =
            Note { version: VERSION, name: "hk-a-0-1".into(), number: Some(7), submitted: 1 };
        note.write(folder).unwrap();
        assert_eq!(Note::read(folder).unwrap().number, Some(7));
        for bad in [
            r#"{"version":2,"name":"hk-a","number":7,"submitted":1}"#,
            r#"{"version":1,"name":"hk a --all","number":7,"submitted":1}"#,
            r#"{"version":1,"name":"hk-a","#,
        ] {
            std::fs::write(folder.join(NOTE), bad).unwrap();
            assert!(Note::read(folder).is_none(), "{bad}");
        }
    }
}
