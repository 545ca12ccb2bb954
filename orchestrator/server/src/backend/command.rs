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
/// In its arguments, `{input}` becomes the path of the first input, `{inputs}` all of them (as one argument each, if `{inputs}` is an
/// argument by itself), `{output}` the path to write to, and `{folder}` a folder that outlives the attempt. push0's form is `["prover",
/// "--input-path", "{input}", "--output-path", "{output}"]`.
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

/// A line that a program prints to report its progress.
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
            // A task without inputs gets an empty argument, as a shell would pass it.
            let first =
                work.inputs.first().map_or(String::new(), |path| path.display().to_string());
            let filled = part
                .replace("{input}", &first)
                .replace("{output}", &output.display().to_string())
                .replace("{folder}", &work.folder.display().to_string());
            arguments.push(filled.into());
        }
        let variables = [
            ("HEKATON_TASK", work.task.id.to_string()),
            ("HEKATON_BLOCK", work.task.block.to_string()),
            ("HEKATON_BLOCK_ID", work.task.block_id.to_string()),
            ("HEKATON_ATTEMPT", (work.task.attempts + work.task.deaths).to_string()),
            // Empty without a trace: a `TRACEPARENT` in this process's own environment does not belong to the task.
            ("TRACEPARENT", work.task.trace.as_deref().unwrap_or("").to_owned()),
        ];
        let environment = variables.map(|(name, value)| (name.into(), value.into())).into();
        let program = arguments.remove(0);
        Program { program, arguments, environment, memory: self.memory }
    }
}

#[async_trait]
impl Backend for Command {
    async fn run(&self, work: &Work<'_>, _: &CancellationToken, progress: &Progress) -> Outcome {
        let output = work.folder.join(OUTPUT);
        // The folder outlives attempts. An output that an earlier attempt left must not count for a
        // program that exits with 0 without writing one.
        let _ = std::fs::remove_file(&output);
        let program = self.program(&self.command, work, &output);
        progress.report(0.0);
        let line = {
            let (progress, part) = (progress.clone(), Mutex::new(0.0));
            move |line: &str| {
                let said = serde_json::from_str::<Said>(line).ok().and_then(|said| said.progress);
                let mut last = part.lock().unwrap_or_else(PoisonError::into_inner);
                *last = said.unwrap_or(*last);
                // Any line counts as progress, so that a program that reports no fractions does not stall.
                progress.report(*last);
            }
        };
        let ended = match process::attempt(&self.helper, &program, &work.folder, line).await {
            Ok(ended) => ended,
            // If the program cannot be started, the task is not to blame.
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
            // A verifier that crashes has not judged the output. The output must not count as
            // wrong, since wrong outputs for three jobs in a row end the use of the back-end.
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
