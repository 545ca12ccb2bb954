//! Workflows: files that define the tasks of a job, checked before they are accepted.

use crate::id::{Digest, Name};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// The version of workflow files.
const VERSION: u32 = 1;

/// The number of tasks that a job may have.
pub const MAX_TASKS: usize = 4_096;

/// The number of blobs that an input of a job or of a task may have: a record holds their digests.
pub const MAX_BLOBS: usize = 512;

/// The number of stages, and of inputs, that a workflow may have.
const MAX_STAGES: usize = 64;

/// The number of digests of inputs and outputs that a job's record may hold: 67 bytes each, with room for the rest of the record.
const MAX_DIGESTS: usize = 700;

/// A graph of stages.
///
/// ```
/// let workflow = hekaton_orchestrator_client::Workflow::parse(r#"
///     version = 1
///     name = "chunks"
///     [inputs.chunks]
///     [[stages]]
///     name = "chunk"
///     from = ["chunks"]
///     backend = "prove"
///     [[stages]]
///     name = "batch"
///     from = ["chunk"]
///     collect = "all"
///     backend = "aggregate"
/// "#).unwrap();
/// assert_eq!(workflow.stages.len(), 2);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The version of the file: 1.
    pub version: u32,
    /// The name that people use for it.
    pub name: Name,
    /// The inputs that a job brings.
    #[serde(default)]
    pub inputs: BTreeMap<Name, Input>,
    /// The stages that work on them.
    #[serde(default)]
    pub stages: Vec<Stage>,
}

/// Blobs that a job brings under one name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The smallest number of blobs.
    #[serde(default = "one")]
    pub at_least: usize,
    /// The largest number of blobs.
    #[serde(default = "many")]
    pub at_most: usize,
}

/// Tasks of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// The name that people and other stages use for it.
    pub name: Name,
    /// Inputs of the job and outputs of other stages, by their names.
    pub from: Vec<Name>,
    /// The grouping of these blobs into tasks.
    #[serde(default)]
    pub collect: Collect,
    /// The back-end that runs the tasks.
    pub backend: Name,
    /// The number of copies of each task that run at the same time. The first output counts, the other copies are cancelled.
    #[serde(default = "single")]
    pub copies: u8,
    /// The number of failed attempts after which a task is dead.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// The time that an attempt may take, in seconds.
    #[serde(default = "day")]
    pub seconds: u32,
    /// The time that an attempt may go without progress, in seconds. Only for back-ends that report progress.
    #[serde(default = "day")]
    pub stall_seconds: u32,
    /// The number of milliseconds without a new output after which a barrier continues with the outputs that are there. If it is not set,
    /// partial groups are never made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial_after_millis: Option<u32>,
}

/// The grouping of outputs into tasks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Collect {
    /// Each output by itself; of several sources, those with the same index.
    #[default]
    Each,
    /// All outputs of the block: a barrier.
    All,
    /// The given number of consecutive outputs of each source.
    Sequential(u32),
    /// Groups formed by the process's strategy of this name.
    Custom(Name),
}

fn one() -> usize {
    1
}
fn many() -> usize {
    MAX_BLOBS
}
fn single() -> u8 {
    1
}
fn attempts() -> u32 {
    4
}
fn day() -> u32 {
    86_400
}

/// An error in a workflow, or in a job for it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowError {
    /// The file is not a workflow.
    #[error("not a workflow: {0}")]
    Parse(String),
    /// A field has a value that it cannot have.
    #[error("{place}: {why}")]
    Bad {
        /// The input or the stage.
        place: String,
        /// The error, and what would be right.
        why: String,
    },
    /// Stages wait for each other.
    #[error("the stages {0} wait for each other")]
    Cycle(String),
}

fn bad(place: impl std::fmt::Display, why: impl Into<String>) -> WorkflowError {
    WorkflowError::Bad { place: place.to_string(), why: why.into() }
}

impl Workflow {
    /// Reads a TOML file and checks it.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn parse(text: &str) -> Result<Self, WorkflowError> {
        let workflow: Self =
            toml::from_str(text).map_err(|e| WorkflowError::Parse(e.to_string()))?;
        workflow.check()?;
        Ok(workflow)
    }

    /// Reads what [`Self::to_bytes`] returned, and checks it: blobs come from outside.
    ///
    /// # Errors
    /// The first thing that is wrong, and where.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, WorkflowError> {
        let workflow: Self =
            // JSON, because this writes it in only one way: the digest of a workflow must not depend on spaces and comments in its file.
            serde_json::from_slice(bytes).map_err(|e| WorkflowError::Parse(e.to_string()))?;
        workflow.check()?;
        Ok(workflow)
    }

    /// Returns the canonical encoding, from which the workflow's digest is computed.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("workflows have names as keys and no floats")
    }

    /// A workflow of one stage that passes each input file to a back-end.
    pub fn single(backend: Name) -> Self {
        let input: Name = "input".parse().expect("a name");
        let stage = Stage {
            name: "prove".parse().expect("a name"),
            from: vec![input.clone()],
            collect: Collect::Each,
            backend: backend.clone(),
            copies: single(),
            attempts: attempts(),
            seconds: day(),
            stall_seconds: day(),
            partial_after_millis: None,
        };
        let inputs = BTreeMap::from([(input, Input { at_least: 1, at_most: MAX_BLOBS })]);
        Self { version: VERSION, name: backend, inputs, stages: vec![stage] }
    }

    fn check(&self) -> Result<(), WorkflowError> {
        if self.version != VERSION {
            let why = format!("expected version {VERSION}, found version {}", self.version);
            return Err(bad("workflow", why));
        }
        if self.stages.is_empty() || self.stages.len() > MAX_STAGES {
            return Err(bad(
                "workflow",
                format!("expected 1 to {MAX_STAGES} stages, found {}", self.stages.len()),
            ));
        }
        if self.inputs.len() > MAX_STAGES {
            return Err(bad(
                "workflow",
                format!("input limit exceeded: {} of {MAX_STAGES}", self.inputs.len()),
            ));
        }
        for (name, input) in &self.inputs {
            let place = format_args!("input '{name}'").to_string();
            if input.at_least > input.at_most || input.at_most > MAX_BLOBS || input.at_most == 0 {
                return Err(bad(
                    place,
                    format!("0 <= at_least <= at_most <= {MAX_BLOBS} must hold"),
                ));
            }
            // A job would have to bring files that nothing reads, so the name is likely to be a
            // mistake.
            if !self.stages.iter().any(|stage| stage.from.contains(name)) {
                return Err(bad(place, "no stage uses it"));
            }
        }
        let mut names: BTreeSet<&Name> = self.inputs.keys().collect();
        for stage in &self.stages {
            // `from` names inputs and stages alike, so one name for two of them would be ambiguous.
            if !names.insert(&stage.name) {
                let why = "there is an input or another stage with this name";
                return Err(bad(format_args!("stage '{}'", stage.name), why));
            }
        }
        for stage in &self.stages {
            check_stage(stage, &names)?;
        }
        self.order().map(drop)
    }

    /// Returns the stages in an order in which each comes after those that it waits for.
    ///
    /// # Errors
    /// If there is no such order, as stages wait for each other.
    pub fn order(&self) -> Result<Vec<usize>, WorkflowError> {
        let mut order: Vec<usize> = Vec::new();
        while order.len() < self.stages.len() {
            let ready = |&at: &usize| {
                let settled = |name: &Name| {
                    self.inputs.contains_key(name)
                        || order.iter().any(|&done| self.stages[done].name == *name)
                };
                !order.contains(&at) && self.stages[at].from.iter().all(settled)
            };
            let Some(next) = (0..self.stages.len()).find(ready) else {
                let left: Vec<String> = (0..self.stages.len())
                    .filter(|at| !order.contains(at))
                    .map(|at| format!("'{}'", self.stages[at].name))
                    .collect();
                return Err(WorkflowError::Cycle(left.join(", ")));
            };
            order.push(next);
        }
        Ok(order)
    }

    /// Returns the number of stages before each one, on the longest path from the inputs.
    ///
    /// # Errors
    /// If there is no such number, as stages wait for each other.
    pub fn depths(&self) -> Result<Vec<u16>, WorkflowError> {
        let mut depths = vec![0; self.stages.len()];
        for at in self.order()? {
            let behind = self.stages[at].from.iter().filter_map(|name| self.stage(name));
            depths[at] = behind.map(|stage| depths[stage] + 1).max().unwrap_or(0);
        }
        Ok(depths)
    }

    /// Returns the index of a stage.
    pub fn stage(&self, name: &Name) -> Option<usize> {
        self.stages.iter().position(|stage| stage.name == *name)
    }

    /// Reports whether no other stage uses the outputs of a stage, which are then the job's outputs.
    pub fn is_last(&self, at: usize) -> bool {
        !self.stages.iter().any(|stage| stage.from.contains(&self.stages[at].name))
    }

    /// Checks the inputs of a job: their names, their numbers of blobs, and that the sources of each stage match.
    ///
    /// # Errors
    /// The first input or stage that does not fit.
    pub fn check_inputs(&self, inputs: &BTreeMap<Name, Vec<Digest>>) -> Result<(), WorkflowError> {
        if let Some(name) = inputs.keys().find(|name| !self.inputs.contains_key(name)) {
            let known: Vec<&str> = self.inputs.keys().map(Name::as_str).collect();
            let why = format!("the workflow's inputs are {}", known.join(", "));
            return Err(bad(format_args!("input '{name}'"), why));
        }
        let mut counts: BTreeMap<&Name, Option<usize>> = BTreeMap::new();
        for (name, input) in &self.inputs {
            let count = inputs.get(name).map_or(0, Vec::len);
            if !(input.at_least..=input.at_most).contains(&count) {
                let Input { at_least, at_most } = input;
                let why = format!("expected {at_least} to {at_most} files, found {count}");
                return Err(bad(format_args!("input '{name}'"), why));
            }
            counts.insert(name, Some(count));
        }
        // Counted before the job is accepted, because exceeding a limit later could only make the
        // job dead, after hours of proving.
        let mut tasks = 0;
        let mut digests: usize = inputs.values().map(Vec::len).sum();
        for at in self.order()? {
            let stage = &self.stages[at];
            let sources: Option<Vec<usize>> = stage.from.iter().map(|name| counts[name]).collect();
            let failed = |why: String| bad(format_args!("stage '{}'", stage.name), why);
            let count = stage.count_outputs(sources.as_deref()).map_err(failed)?;
            // Outputs of the last stages are those of the job, and are in its record with its inputs.
            if self.is_last(at) {
                digests += count.unwrap_or(0);
            }
            if digests > MAX_DIGESTS {
                let why = format!(
                    "file limit exceeded: inputs and outputs can be {MAX_DIGESTS} together"
                );
                return Err(failed(why));
            }
            // The number of tasks of a custom stage is unknown until they are planned, and is counted then.
            tasks += count.unwrap_or(0) * usize::from(stage.copies);
            if tasks > MAX_TASKS {
                return Err(failed(format!("task limit exceeded: a job can have {MAX_TASKS}")));
            }
            counts.insert(&stage.name, count);
        }
        Ok(())
    }
}

impl Stage {
    /// Returns the number of outputs, if it follows from the numbers of the sources' outputs, or an error if these do not match.
    fn count_outputs(&self, sources: Option<&[usize]>) -> Result<Option<usize>, String> {
        let Some(sources) = sources else { return Ok(None) };
        let size = match self.collect {
            Collect::Custom(_) => return Ok(None),
            Collect::All if sources.iter().sum::<usize>() > MAX_BLOBS => {
                return Err(format!("input limit exceeded: a task can have {MAX_BLOBS}"));
            }
            Collect::All => return Ok(Some(1)),
            Collect::Each => 1,
            Collect::Sequential(size) => size as usize,
        };
        if sources.windows(2).any(|two| two[0] != two[1]) {
            let found = list(sources);
            return Err(format!("its sources have different numbers of outputs: {found}"));
        }
        Ok(Some(sources[0].div_ceil(size)))
    }
}

/// Returns numbers as a list for a text.
fn list(numbers: &[usize]) -> String {
    numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

fn check_stage(stage: &Stage, names: &BTreeSet<&Name>) -> Result<(), WorkflowError> {
    let place = || format!("stage '{}'", stage.name);
    if stage.from.len() > MAX_STAGES {
        return Err(bad(
            place(),
            format!("'from' has {} names, and the limit is {MAX_STAGES}", stage.from.len()),
        ));
    }
    if stage.from.is_empty() {
        return Err(bad(place(), "'from' names no input and no stage"));
    }
    for (at, name) in stage.from.iter().enumerate() {
        if !names.contains(name) {
            return Err(bad(place(), format!("'{name}' is neither an input nor a stage")));
        }
        if stage.from[..at].contains(name) {
            return Err(bad(place(), format!("'from' names '{name}' twice")));
        }
    }
    let ranges = [
        ("copies", u32::from(stage.copies), 8),
        ("attempts", stage.attempts, 100),
        ("seconds", stage.seconds, 30 * day()),
        ("stall_seconds", stage.stall_seconds, 30 * day()),
    ];
    for (field, value, most) in ranges {
        if !(1..=most).contains(&value) {
            return Err(bad(place(), format!("'{field}': expected 1 to {most}, found {value}")));
        }
    }
    let most = u32::try_from(MAX_BLOBS / stage.from.len()).expect("there are at most 512 blobs");
    if let Collect::Sequential(size) = stage.collect
        && !(1..=most).contains(&size)
    {
        return Err(bad(place(), format!("'sequential': expected 1 to {most}, found {size}")));
    }
    if stage.partial_after_millis.is_some() && stage.collect != Collect::All {
        return Err(bad(place(), "'partial_after_millis' is for stages that collect all"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, rest: &str) -> String {
        format!("[[stages]]\nname = \"{name}\"\nbackend = \"b\"\n{rest}\n")
    }

    fn parse(stages: &[String]) -> Result<Workflow, String> {
        let head = "version = 1\nname = \"w\"\n[inputs.a]\nat_most = 4\n";
        let text = format!("{head}{}", stages.concat());
        Workflow::parse(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn workflows_that_cannot_work_are_refused() {
        let from_a = stage("s", "from = [\"a\"]");
        let workflow =
            parse(&[from_a.clone(), stage("t", "from = [\"s\", \"a\"]\ncollect = \"all\"")]);
        let workflow = workflow.unwrap();
        assert_eq!(Workflow::from_bytes(&workflow.to_bytes()), Ok(workflow.clone()));
        assert_eq!(workflow.depths().unwrap(), [0, 1]);

        for (stages, why) in [
            (vec![], "expected 1 to 64 stages, found 0"),
            (vec![from_a.clone(), stage("t", "from = []")], "'from' names no"),
            (vec![stage("s", "from = [\"x\"]")], "input 'a': no stage uses it"),
            (vec![stage("s", "from = [\"a\", \"x\"]")], "'x' is neither an input nor a stage"),
            (vec![stage("s", "from = [\"a\", \"a\"]")], "twice"),
            (vec![stage("a", "from = [\"a\"]")], "with this name"),
            (vec![from_a.clone(), from_a.clone()], "with this name"),
            (
                vec![
                    from_a.clone(),
                    stage("t", "from = [\"u\"]"),
                    stage("u", "from = [\"t\", \"s\"]"),
                ],
                "the stages 't', 'u' wait for each other",
            ),
            (vec![stage("s", "from = [\"a\"]\ncopies = 0")], "'copies': expected 1 to 8, found 0"),
            (
                vec![stage("s", "from = [\"a\"]\nattempts = 101")],
                "'attempts': expected 1 to 100, found 101",
            ),
            (
                vec![stage("s", "from = [\"a\"]\ncollect = { sequential = 0 }")],
                "'sequential': expected 1 to 512, found 0",
            ),
            (vec![stage("s", "from = [\"a\"]\npartial_after_millis = 1")], "collect all"),
            (vec![stage("s", "from = [\"a\"]\nelse = 1")], "unknown field"),
            (vec![stage("s/", "from = [\"a\"]")], "is not a name"),
        ] {
            let found = parse(&stages).unwrap_err();
            assert!(found.contains(why), "{found}\nand not: {why}");
        }
        let other =
            Workflow::parse("version = 2\nname = \"w\"\nstages = []\n[inputs]").unwrap_err();
        assert!(other.to_string().contains("found version 2"), "{other}");
    }

    #[test]
    fn what_jobs_bring_is_checked() {
        let text = "version = 1\nname = \"w\"\n[inputs.a]\n[inputs.b]\nat_least = 0\n";
        let stages = [
            stage("s", "from = [\"a\"]\ncopies = 8"),
            stage("t", "from = [\"s\", \"b\"]"),
            stage("u", "from = [\"t\"]\ncollect = { sequential = 3 }"),
        ];
        let workflow = Workflow::parse(&format!("{text}{}", stages.concat())).unwrap();
        let check = |inputs: &[(&str, usize)]| {
            let blobs = |&(name, count): &(&str, usize)| {
                (name.parse().unwrap(), vec![Digest::of(b"x"); count])
            };
            let checked = workflow.check_inputs(&inputs.iter().map(blobs).collect());
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check(&[("a", 5), ("b", 5)]), Ok(()));
        for (inputs, why) in [
            (vec![("a", 5), ("c", 1)], "input 'c': the workflow's inputs are a, b"),
            (vec![("b", 5)], "input 'a': expected 1 to 512 files, found 0"),
            (vec![("a", 513)], "found 513"),
            (
                vec![("a", 5), ("b", 4)],
                "stage 't': its sources have different numbers of outputs: 5, 4",
            ),
            (vec![("a", 512), ("b", 512)], "can be 700 together"),
        ] {
            let found = check(&inputs).unwrap_err();
            assert!(found.contains(why), "{found}\nand not: {why}");
        }
    }
}
