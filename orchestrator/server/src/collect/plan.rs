//! Plans of what is to be done next for a job: a function of its record, its workflow and its tasks, without side effects.
//!
//! The tasks have fixed places, so two owners of a partition, or one that was started again, plan the same and the store keeps
//! the first of equal creations.

use crate::record::{Job, JobState, Task, TaskKey, TaskState};
use hekaton_orchestrator_client::{Collect, Digest, MAX_BLOBS, MAX_TASKS, Name, Workflow};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A write that a plan asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Make a task.
    Create(TaskKey, Box<Task>),
    /// Make a task ready again for a later generation.
    Revive(TaskKey),
    /// Take a task back.
    Cancel(TaskKey),
    /// The job has come to an end.
    End(JobState),
}

/// The outputs available to a stage.
#[derive(Debug)]
pub struct Sources<'a> {
    /// The outputs of each source by index, as far as they are there.
    pub outputs: &'a [Vec<Option<Digest>>],
    /// `true` if the number of outputs of every source is final.
    pub complete: bool,
    /// Time since the last output was added.
    pub quiet: Duration,
}

/// The groups that a strategy forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Inputs of tasks, by their index. An index must get the same inputs each time it is asked for.
    pub groups: Vec<Option<Vec<Digest>>>,
    /// `true` if the number of groups is final.
    pub complete: bool,
}

/// Decides which outputs make a task.
pub trait Strategy: Send + Sync {
    /// The groups that are known by now.
    ///
    /// # Errors
    /// Why the job cannot be done with these outputs; it is dead then.
    fn collect(&self, sources: &Sources<'_>) -> Result<Groups, String>;
}

/// Custom strategies, by the names that workflows use.
#[derive(Clone, Default)]
pub struct Strategies(BTreeMap<Name, Arc<dyn Strategy>>);

impl Strategies {
    /// Adds a strategy, or replaces one.
    #[must_use]
    pub fn with(mut self, name: Name, strategy: Arc<dyn Strategy>) -> Self {
        self.0.insert(name, strategy);
        self
    }
}

impl fmt::Debug for Strategies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The input of a plan.
#[derive(Debug)]
pub struct Situation<'a> {
    /// The job.
    pub job: &'a Job,
    /// Its workflow.
    pub workflow: &'a Workflow,
    /// Its tasks, by stage, index and copy.
    pub tasks: &'a BTreeMap<TaskKey, Task>,
    /// Custom strategies.
    pub strategies: &'a Strategies,
    /// Milliseconds since 1970.
    pub now: u64,
    /// Time since the last output was added.
    pub quiet: Duration,
}

impl Situation<'_> {
    /// The writes that are due, in the order in which they are to be made.
    pub fn plan(&self) -> Vec<Step> {
        // A task of a later generation: the job was written since, and what is known of it is old.
        if self.tasks.values().any(|task| task.generation > self.job.generation) {
            return vec![];
        }
        match self.job.state {
            JobState::Live => self.live(),
            // Also after it is done: a copy may have been claimed at the last moment.
            JobState::Done { .. }
            | JobState::Dead { .. }
            | JobState::Skipped { .. }
            | JobState::Cancelled { .. } => {
                let open = self.tasks.iter().filter(|(_, task)| !task.state.is_final());
                open.map(|(key, _)| Step::Cancel(*key)).collect()
            }
        }
    }

    fn live(&self) -> Vec<Step> {
        let identity = self.job.identity();
        let partition = self.job.key().partition();
        let depths = self.workflow.depths();
        let mut steps = Vec::new();
        // By name: outputs by index, and whether there will be more.
        let mut known: BTreeMap<&Name, (Vec<Option<Digest>>, bool)> = BTreeMap::new();
        for (name, blobs) in &self.job.inputs {
            known.insert(name, (blobs.iter().copied().map(Some).collect(), true));
        }
        for name in self.workflow.inputs.keys() {
            known.entry(name).or_insert((vec![], true));
        }
        let mut count = 0;
        let dead = |reason: String| vec![Step::End(JobState::Dead { reason, at: self.now })];
        for at in self.workflow.order().unwrap_or_default() {
            let stage = &self.workflow.stages[at];
            let number = u16::try_from(at).unwrap_or(u16::MAX);
            let outputs: Vec<_> = stage.from.iter().map(|name| known[name].0.clone()).collect();
            let complete = stage.from.iter().all(|name| known[name].1);
            let sources = Sources { outputs: &outputs, complete, quiet: self.quiet };
            let partial = stage.partial_after_millis.map(u64::from).map(Duration::from_millis);
            let collected = match &stage.collect {
                Collect::Each => sequential(&sources, 1),
                Collect::Sequential(size) => sequential(&sources, *size as usize),
                Collect::All => all(&sources, partial),
                Collect::Custom(name) => match self.strategies.0.get(name) {
                    Some(strategy) => strategy.collect(&sources),
                    None => Err(format!("no strategy '{name}' is known here")),
                },
            };
            let Groups { mut groups, mut complete } = match collected {
                Ok(groups) => groups,
                Err(why) => return dead(format!("stage '{}': {why}", stage.name)),
            };
            let key = |index: usize, copy: u8| TaskKey {
                partition,
                job: identity,
                stage: number,
                index: u32::try_from(index).unwrap_or(u32::MAX),
                copy,
            };
            // A task that exists keeps its inputs, even if the group would be larger now.
            if stage.collect == Collect::All
                && groups.is_empty()
                && self.tasks.contains_key(&key(0, 0))
            {
                (groups, complete) = (vec![None], true);
            }
            count += groups.len() * usize::from(stage.copies);
            if count > MAX_TASKS {
                let why = format!("the job would have more than {MAX_TASKS} tasks");
                return dead(format!("stage '{}': {why}", stage.name));
            }
            let mut outputs = Vec::with_capacity(groups.len());
            for (index, group) in groups.into_iter().enumerate() {
                let copies = (0..stage.copies)
                    .map(|copy| (key(index, copy), self.tasks.get(&key(index, copy))));
                let copies: Vec<_> = copies.collect();
                let output = copies.iter().find_map(|(_, task)| match task.as_ref()?.state {
                    TaskState::Done { output, .. } => Some(output),
                    _ => None,
                });
                outputs.push(output);
                let mut hopeless = Vec::new();
                // All copies get the same inputs, even if a partial group has grown since the first was made.
                let made = copies.iter().find_map(|(_, task)| Some((*task)?.inputs.clone()));
                let group = made.or(group);
                for (key, task) in &copies {
                    match (task, output, &group) {
                        (None, None, Some(inputs)) => {
                            if inputs.len() > MAX_BLOBS {
                                let why = format!("a task would have more than {MAX_BLOBS} inputs");
                                return dead(format!("stage '{}': {why}", stage.name));
                            }
                            let task = self.task(at, key, depths[at], inputs.clone());
                            steps.push(Step::Create(*key, Box::new(task)));
                        }
                        (Some(task), Some(_), _) if !task.state.is_final() => {
                            steps.push(Step::Cancel(*key));
                        }
                        (Some(task), None, _) => match &task.state {
                            TaskState::Dead { .. } | TaskState::Cancelled { .. }
                                if task.generation < self.job.generation =>
                            {
                                steps.push(Step::Revive(*key));
                            }
                            TaskState::Dead { reason, .. } => hopeless.push(reason.clone()),
                            TaskState::Cancelled { .. } => hopeless.push("it was cancelled".into()),
                            _ => {}
                        },
                        _ => {}
                    }
                }
                if hopeless.len() == copies.len() {
                    let why = hopeless.swap_remove(0);
                    return dead(format!("task {index} of stage '{}': {why}", stage.name));
                }
            }
            known.insert(&stage.name, (outputs, complete));
        }
        let last = (0..self.workflow.stages.len()).filter(|&at| self.workflow.is_last(at));
        let last = last.map(|at| &known[&self.workflow.stages[at].name]);
        let outputs: Option<Vec<Digest>> = last
            .map(|(outputs, complete)| {
                outputs.iter().copied().collect::<Option<Vec<_>>>().filter(|_| *complete)
            })
            .collect::<Option<Vec<_>>>()
            .map(|outputs| outputs.concat());
        if let Some(outputs) = outputs {
            // A partial barrier may leave tasks that nobody waits for.
            let planned = |key: &TaskKey| {
                steps.iter().any(|step| matches!(step, Step::Cancel(planned) if planned == key))
            };
            let left = self.tasks.iter().filter(|(_, task)| !task.state.is_final());
            let left: Vec<_> = left.filter(|(key, _)| !planned(key)).map(|(key, _)| *key).collect();
            steps.retain(|step| matches!(step, Step::Cancel(_)));
            steps.extend(left.into_iter().map(Step::Cancel));
            steps.push(Step::End(JobState::Done { outputs, at: self.now }));
        }
        steps
    }

    fn task(&self, at: usize, key: &TaskKey, depth: u16, inputs: Vec<Digest>) -> Task {
        let (job, stage) = (self.job, &self.workflow.stages[at]);
        let place = [&key.stage.to_le_bytes()[..], &key.index.to_le_bytes(), &[key.copy]].concat();
        let mut parts: Vec<&[u8]> = vec![key.job.as_bytes(), &place];
        parts.extend(inputs.iter().map(|input| &input.as_bytes()[..]));
        Task {
            id: Digest::of_parts("hekaton orchestrator 1 task", parts),
            job: job.key(),
            generation: job.generation,
            block: job.block,
            block_id: job.id.clone(),
            lane: job.lane,
            stage: stage.name.clone(),
            depth,
            backend: stage.backend.clone(),
            inputs,
            limits: stage.into(),
            trace: job.trace.clone(),
            created: self.now,
            attempts: 0,
            failed: BTreeMap::new(),
            refused: BTreeSet::new(),
            last: None,
            deaths: 0,
            returns: 0,
            not_before: 0,
            last_failure: None,
            state: TaskState::Ready,
        }
    }
}

/// Groups of consecutive outputs, each as soon as it is full.
fn sequential(sources: &Sources<'_>, size: usize) -> Result<Groups, String> {
    let lengths: Vec<usize> = sources.outputs.iter().map(Vec::len).collect();
    if sources.complete && lengths.windows(2).any(|two| two[0] != two[1]) {
        return Err(format!("its sources have {lengths:?} outputs, not equally many"));
    }
    let longest = lengths.iter().copied().max().unwrap_or(0);
    let group = |at: usize| -> Option<Vec<Digest>> {
        let range = at * size..((at + 1) * size).min(longest);
        if range.len() < size && !sources.complete {
            return None;
        }
        let parts = sources
            .outputs
            .iter()
            .flat_map(|source| range.clone().map(|index| source.get(index).copied().flatten()));
        parts.collect()
    };
    let groups = (0..longest.div_ceil(size)).map(group).collect();
    Ok(Groups { groups, complete: sources.complete })
}

/// A single group of all outputs, or of those available once no output was added for a while.
fn all(sources: &Sources<'_>, partial: Option<Duration>) -> Result<Groups, String> {
    let found = sources.outputs.iter().flatten();
    let there: Vec<Digest> = found.clone().copied().flatten().collect();
    let full = sources.complete && there.len() == found.count();
    let enough = partial.is_some_and(|after| sources.quiet >= after) && !there.is_empty();
    let groups = if full || enough { vec![Some(there)] } else { vec![] };
    let complete = !groups.is_empty();
    Ok(Groups { groups, complete })
}
