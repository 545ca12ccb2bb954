//! Arbitrary programs, whose arguments name the files to read and write.

use super::process::{self, Ended, Helper, Program};
use super::{Backend, Outcome, Output, Rejected, Work};
use crate::dispatch::Progress;
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tokio_util::sync::CancellationToken;

/// A program for each attempt.
///
/// In its arguments, `{input}` becomes the path of the first input, `{inputs}` all of them (as one argument each, where it is an
/// argument by itself), `{output}` the path to write to, and `{folder}` a folder that outlives the attempt. push0's form is
/// `["prover", "--input-path", "{input}", "--output-path", "{output}"]`.
///
/// Each line that it prints is progress; `{"progress": 0.5}` reports the fraction done.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// A program that exits with 0 if the output is right and with 1 if it is wrong.
    pub verify: Option<Vec<String>>,
    /// The meanings of the exit codes of `command`.
    pub exits: Exits,
    /// The address space that an attempt may have, in bytes.
    pub memory: Option<u64>,
    /// The helper that starts the program.
    pub helper: Helper,
}

/// The meanings of exit codes. 0 is done; a code in neither list is a failed attempt, as is a signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Exits {
    /// Codes that mean that no attempt can succeed.
    pub dead: Vec<i32>,
    /// Codes that mean that the attempt was abandoned through no fault of the task.
    pub again: Vec<i32>,
}

/// A line that a program prints to say how far it is.
#[derive(Deserialize)]
struct Said {
    progress: Option<f32>,
}

/// The name of the file to which an attempt writes its output.
const OUTPUT: &str = "output";

impl Command {
    fn program(&self, template: &[String], work: &Work<'_>, output: &Path) -> Program {
        let mut arguments = Vec::new();
        for part in template {
            if part == "{inputs}" {
                arguments.extend(work.inputs.iter().map(|path| path.clone().into_os_string()));
                continue;
            }
            let first = work.inputs.first().map(|path| path.display().to_string());
            let filled = part
                .replace("{input}", &first.unwrap_or_default())
                .replace("{output}", &output.display().to_string())
                .replace("{folder}", &work.folder.display().to_string());
            arguments.push(filled.into());
        }
        let environment = [
            ("HEKATON_TASK", work.task.id.to_string()),
            ("HEKATON_BLOCK", work.task.block.to_string()),
            ("HEKATON_BLOCK_ID", work.task.block_id.to_string()),
            ("HEKATON_ATTEMPT", (work.task.attempts + work.task.deaths).to_string()),
            ("TRACEPARENT", work.task.trace.clone().unwrap_or_default()),
        ];
        let environment = environment.map(|(name, value)| (name.into(), value.into())).into();
        let program = arguments.remove(0);
        Program { program, arguments, environment, memory: self.memory }
    }
}

#[async_trait]
impl Backend for Command {
    async fn run(&self, work: &Work<'_>, _: &CancellationToken, progress: &Progress) -> Outcome {
        let output = work.folder.join(OUTPUT);
        let _ = std::fs::remove_file(&output);
        let program = self.program(&self.command, work, &output);
        progress.report(0.0);
        let line = {
            let (progress, part) = (progress.clone(), Mutex::new(0.0));
            move |line: &str| {
                let said = serde_json::from_str::<Said>(line).ok().and_then(|said| said.progress);
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                *part = said.unwrap_or(*part);
                progress.report(*part);
            }
        };
        let ended = match process::attempt(&self.helper, &program, &work.folder, line).await {
            Ok(ended) => ended,
            // No task is to blame for that.
            Err(error) => return Outcome::Again(format!("{}: {error}", self.command[0])),
        };
        outcome(&ended, &self.exits, &output)
    }

    async fn verify(&self, work: &Work<'_>, output: &Path) -> Result<(), Rejected> {
        let Some(template) = &self.verify else { return Ok(()) };
        let program = self.program(template, work, output);
        match process::run(&self.helper, &program, &work.folder).await {
            Ok(ended) if ended.code() == Some(0) => Ok(()),
            Ok(ended) if ended.code() == Some(1) => Err(Rejected::Wrong(ended.describe())),
            Ok(ended) => Err(Rejected::Unverified(ended.describe())),
            Err(error) => Err(Rejected::Unverified(format!("{}: {error}", template[0]))),
        }
    }
}

/// Returns the outcome that an exit code means.
pub(super) fn outcome(ended: &Ended, exits: &Exits, output: &Path) -> Outcome {
    match ended.code() {
        Some(0) if output.is_file() => Outcome::Done(Output::File(output.to_owned())),
        Some(0) => Outcome::Failed(format!("it ended without writing {}", output.display())),
        Some(code) if exits.dead.contains(&code) => Outcome::Impossible(ended.describe()),
        Some(code) if exits.again.contains(&code) => Outcome::Again(ended.describe()),
        _ => Outcome::Failed(ended.describe()),
    }
}
